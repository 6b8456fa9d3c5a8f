// What was promised about activities without a workflow.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "simulation/auditor.h"

namespace fairlead::sim {

namespace {
// By which a worker's token names such an activity.
constexpr int64_t kScheduledId = 1;
}  // namespace

void Auditor::told_lone_ended(const std::string& run_id, const LoneOutcome& outcome) {
  auto& run = runs_[run_id];
  run.is_lone = true;
  auto& activity = run.activities[kScheduledId];
  activity.end_told = std::min(activity.end_told, clock_->now());
  if (run.lone_outcome.has_value()) {
    if (run.lone_outcome->SerializeAsString() != outcome.SerializeAsString()) {
      fail(absl::StrCat("the outcome of ", run_id, " was\n", run.lone_outcome->ShortDebugString(),
                        "\nand now is\n", outcome.ShortDebugString()));
    }
    return;
  }
  run.lone_outcome = outcome;
  if (outcome.failure().has_canceled_failure_info()) probes_->hit(Probe::kLoneCanceled);
  if (outcome.failure().has_terminated_failure_info()) probes_->hit(Probe::kLoneTerminated);
}

void Auditor::told_lone_terminated(const std::string& run_id) {
  runs_[run_id].is_lone = true;
  runs_[run_id].is_lone_terminated = true;
}

void Auditor::settle_lone() {
  for (const auto& [run_id, run] : runs_) {
    if (!run.is_lone) continue;
    const auto found = run.activities.find(kScheduledId);
    const bool was_handed_out = found != run.activities.end();
    if (!run.lone_outcome.has_value()) {
      fail(absl::StrCat("nobody heard of the end of ", run_id));
    } else if (run.is_lone_terminated &&
               !run.lone_outcome->failure().has_terminated_failure_info()) {
      fail(absl::StrCat("the acknowledged termination of ", run_id,
                        " is lost: ", run.lone_outcome->ShortDebugString()));
    } else if (was_handed_out && found->second.result.has_value() &&
               (run.lone_outcome->result().payloads_size() != 1 ||
                run.lone_outcome->result().payloads(0).data() != *found->second.result)) {
      fail(absl::StrCat("the acknowledged result of ", run_id,
                        " is lost: ", run.lone_outcome->ShortDebugString()));
    } else if (was_handed_out && found->second.is_canceled &&
               !run.lone_outcome->failure().has_canceled_failure_info()) {
      fail(absl::StrCat("the acknowledged cancellation of ", run_id, " is lost"));
    }
  }
}

}  // namespace fairlead::sim
