// Going on with a failed run, from the step that it failed at.

#include "api/durable/desk.h"
#include "api/durable/redrive.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

constexpr size_t kWithRun = 2;

std::string_view why_not(std::string_view reason) {
  if (reason == "run_not_failed") return "the run has not failed";
  if (reason == "redrive_step_unknown") {
    return "the run did not fail with an activity, so there is no step to go on from";
  }
  if (reason == "redrive_open_operations") return "an earlier step of the run had not ended";
  if (reason == "redrive_history_too_large")
    return "the run's history is too large to be taken over";
  if (reason == "redrive_not_supported") return "the run was asked to stop";
  return "";
}

}  // namespace

void Door::Impl::redrive(CallPtr call) {
  if (text_of(call->body, "request_id").size() > 255) {
    return call->invalid("request_id", "request_id must not be longer than 255 bytes");
  }
  durable_.redrive_run(
      {run_of(*call, kWithRun), cut_history},
      here<shard::Redriven>([call](absl::StatusOr<shard::Redriven> done) {
        if (!done.ok()) {
          const auto detail = error_detail(done.status());
          const std::string_view why =
              detail.kind == ErrorKind::kLeaseRefused ? why_not(detail.fields[0]) : "";
          if (why.empty()) return refuse_command(*call, done.status());
          return call->refuse(409, detail.fields[0], why, {{"workflow_id", call->arg(0)}});
        }
        call->answer(200, {{"workflow_id", call->arg(0)},
                           {"run_id", done->run_id},
                           {"redriven_from_run_id", call->arg(1)},
                           {"command_id", done->run_id},
                           {"command_status", "accepted"},
                           {"outcome", "redriven"},
                           {"duplicate", !done->is_new},
                           {"reason", nullptr}});
      }));
}

}  // namespace fairlead::durable
