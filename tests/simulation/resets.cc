// Resets: what the history of a run that was begun again says about the one it was begun from.

#include "absl/strings/str_cat.h"
#include "simulation/auditor.h"
#include "temporal/api/enums/v1/event_type.pb.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;

namespace {

// Events that a reset may write itself before the task fails: scheduled and started.
constexpr size_t kOwnMax = 2;

size_t shared_events(const Events& a, const Events& b) {
  size_t shared = 0;
  while (shared < a.size() && shared < b.size() &&
         a[shared].SerializeAsString() == b[shared].SerializeAsString()) {
    ++shared;
  }
  return shared;
}

absl::btree_map<std::string, int> signals_in(const Events& events) {
  absl::btree_map<std::string, int> signals;
  for (const auto& event : events) {
    if (!event.has_workflow_execution_signaled_event_attributes()) continue;
    ++signals[event.workflow_execution_signaled_event_attributes().input().payloads(0).data()];
  }
  return signals;
}

// Updates that were accepted, or admitted and wait for it.
absl::btree_set<std::string> updates_in(const Events& events) {
  absl::btree_set<std::string> updates;
  for (const auto& event : events) {
    if (event.has_workflow_execution_update_accepted_event_attributes()) {
      updates.insert(
          event.workflow_execution_update_accepted_event_attributes().protocol_instance_id());
    } else if (event.has_workflow_execution_update_admitted_event_attributes()) {
      updates.insert(
          event.workflow_execution_update_admitted_event_attributes().request().meta().update_id());
    }
  }
  return updates;
}

absl::btree_set<int64_t> pending_activities(const Events& events, size_t count) {
  absl::btree_set<int64_t> pending;
  for (size_t i = 0; i < count; ++i) {
    const auto& event = events[i];
    if (event.has_activity_task_scheduled_event_attributes()) pending.insert(event.event_id());
    pending.erase(event.activity_task_completed_event_attributes().scheduled_event_id());
    pending.erase(event.activity_task_failed_event_attributes().scheduled_event_id());
    pending.erase(event.activity_task_timed_out_event_attributes().scheduled_event_id());
    pending.erase(event.activity_task_canceled_event_attributes().scheduled_event_id());
  }
  return pending;
}

}  // namespace

void Auditor::told_reset(const std::string& base_run_id, const std::string& run_id) {
  if (base_run_id == run_id) return fail(absl::StrCat("run ", run_id, " was reset to itself"));
  if (is_closed(base_run_id)) probes_->hit(Probe::kResetOfClosed);
  told_closed(base_run_id);
  const auto base = runs_[base_run_id];
  auto& run = runs_[run_id];
  run.workflow_id = base.workflow_id;
  run.input = base.input;
  for (const auto& [payload, is_told] : base.signals) {
    if (is_told) run.signals[payload] = true;
  }
}

// The run in which the first event was written.
std::string Auditor::origin_of(const std::string& run_id) const {
  std::string origin = run_id;
  for (auto run = runs_.find(origin); run != runs_.end(); run = runs_.find(origin)) {
    const auto* reset = reset_event(run->second.history, origin);
    if (reset == nullptr) break;
    origin = reset->workflow_task_failed_event_attributes().base_run_id();
  }
  return origin;
}

void Auditor::settle_reset(const std::string& run_id, const Run& run) {
  const auto* reset = reset_event(run.history, run_id);
  if (reset == nullptr) return;
  const auto& base_run_id = reset->workflow_task_failed_event_attributes().base_run_id();
  const auto base = runs_.find(base_run_id);
  if (base == runs_.end() || base->second.history.empty()) {
    return fail(absl::StrCat("run ", run_id, " was reset from a run that nobody knows"));
  }
  if (reset_event(base->second.history, base_run_id) != nullptr) {
    probes_->hit(Probe::kResetOfReset);
  }
  const size_t shared = shared_events(run.history, base->second.history);
  if (shared + kOwnMax + 1 < static_cast<size_t>(reset->event_id())) {
    fail(absl::StrCat("run ", run_id, " shares ", shared, " events with ", base_run_id,
                      " and was reset at event ", reset->event_id()));
  }
  if (!pending_activities(run.history, shared).empty()) probes_->hit(Probe::kActivityOfAReset);
  // What stands between the failed task and the next one.
  for (auto i = static_cast<size_t>(reset->event_id());
       i < run.history.size() && !run.history[i].has_workflow_task_scheduled_event_attributes();
       ++i) {
    if (run.history[i].has_workflow_execution_signaled_event_attributes()) {
      probes_->hit(Probe::kSignalGivenAgain);
    }
    if (run.history[i].has_workflow_execution_update_admitted_event_attributes()) {
      probes_->hit(Probe::kUpdateAdmittedAgain);
    }
  }
  settle_given_again(run_id, run, base->second);
}

// Whatever anyone had told the base was told to the new run as well.
void Auditor::settle_given_again(const std::string& run_id, const Run& run, const Run& base) {
  const auto signals = signals_in(run.history);
  for (const auto& [payload, times] : signals_in(base.history)) {
    const auto found = signals.find(payload);
    if (found == signals.end() || found->second < times) {
      fail(absl::StrCat("run ", run_id, " was reset and has lost signal ", payload));
    }
  }
  const auto updates = updates_in(run.history);
  for (const auto& id : updates_in(base.history)) {
    if (!updates.contains(id)) {
      fail(absl::StrCat("run ", run_id, " was reset and has lost update ", id));
    }
  }
}

}  // namespace fairlead::sim
