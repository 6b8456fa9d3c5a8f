#include "api/durable/run_status.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::durable {

std::string_view status_of(const model::RunState& run) {
  switch (run.status()) {
    case model::COMPLETED:
    case model::CONTINUED_AS_NEW:
      return "completed";
    case model::FAILED:
    case model::TIMED_OUT:
      return "failed";
    case model::CANCELED:
      return "cancelled";
    case model::TERMINATED:
      return "terminated";
    default:
      if (run.durable().hosts_activity()) return "running";
      if (run.last_completed_task_started_id() == 0) return "pending";
      return run.has_workflow_task() ? "running" : "waiting";
  }
}

std::string_view bucket_of(std::string_view status) {
  if (status == "completed") return "completed";
  if (status == "failed" || status == "cancelled" || status == "terminated") return "failed";
  return "running";
}

json::value closed_reason(const model::RunState& run) {
  switch (run.status()) {
    case model::COMPLETED:
      return "completed";
    case model::CONTINUED_AS_NEW:
      return "continued";
    case model::FAILED:
      return "failed";
    case model::TIMED_OUT:
      return "timed_out";
    case model::CANCELED:
      return "cancelled";
    case model::TERMINATED:
      return "terminated";
    default:
      return nullptr;
  }
}

json::object deadlines_of(const model::ActivityState& activity) {
  const auto& limits = activity.scheduled();
  json::object deadlines;
  const auto put = [&](const char* what, TimeNs from, DurationNs limit) {
    if (limit > 0) deadlines[what] = format_time(add_saturated(from, limit));
  };
  put("start_to_close", activity.started_ns(), limits.start_to_close_ns());
  put("schedule_to_close", activity.first_scheduled_ns(), limits.schedule_to_close_ns());
  put("heartbeat", std::max(activity.started_ns(), activity.heartbeat_ns()), limits.heartbeat_ns());
  return deadlines;
}

void add_stop(const ErrorDetail& detail, json::object* answer) {
  int status_number = 0;
  int64_t closed = 0;
  model::RunState run;
  if (absl::SimpleAtoi(detail.fields[1], &status_number)) {
    run.set_status(static_cast<model::Status>(status_number));
  }
  const std::string word(status_of(run));
  (*answer)["stop_reason"] = absl::StrCat("run_", word);
  (*answer)["cancel_requested"] = word == "cancelled" || word == "terminated";
  (*answer)["can_continue"] = false;
  (*answer)["run_status"] = word;
  (*answer)["run_closed_reason"] = closed_reason(run);
  if (absl::SimpleAtoi(detail.fields[2], &closed)) (*answer)["run_closed_at"] = format_time(closed);
}

}  // namespace fairlead::durable
