#include "history/standalone.h"

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/activity.h"

namespace fairlead::history {

namespace {

model::Status status_after(model::EventKind end) {
  switch (end) {
    case model::ACTIVITY_COMPLETED:
      return model::COMPLETED;
    case model::ACTIVITY_FAILED:
      return model::FAILED;
    case model::ACTIVITY_TIMED_OUT:
      return model::TIMED_OUT;
    default:
      FL_ASSERT(end == model::ACTIVITY_CANCELED, "an activity ends in one of four ways");
      return model::CANCELED;
  }
}

const char* status_name(model::Status status) {
  switch (status) {
    case model::COMPLETED:
      return "Completed";
    case model::FAILED:
      return "Failed";
    case model::TIMED_OUT:
      return "TimedOut";
    case model::CANCELED:
      return "Canceled";
    default:
      return "Terminated";
  }
}

absl::Status invalid_transition(const model::RunState& state) {
  return errors::failed_precondition(
      absl::StrCat("invalid transition from ", status_name(state.status())));
}

}  // namespace

absl::Status missing_run(model::Flavour flavour, const std::string& id, const std::string& run_id) {
  if (flavour == model::STANDALONE) return errors::standalone_not_found(id);
  return run_id.empty() ? errors::workflow_not_found(id) : errors::run_not_found(id, run_id);
}

absl::Status closed_run(const model::RunState& state) {
  return is_standalone(state) ? errors::standalone_not_found(state.workflow_id())
                              : errors::workflow_completed();
}

absl::Status missing_attempt(const model::RunState& state) {
  return is_standalone(state) ? errors::standalone_not_found(state.workflow_id())
                              : errors::activity_not_found();
}

absl::Status cannot_complete(const model::RunState& state) {
  return is_standalone(state) ? invalid_transition(state) : errors::workflow_completed();
}

void start_standalone(Transaction& tx, model::Event draft, DurationNs start_delay) {
  auto& state = tx.state();
  FL_ASSERT(state.next_event_id() == kStandaloneScheduledId, "a run begins once");
  state.set_status(model::RUNNING);
  state.set_attempt(1);
  state.set_start_ns(tx.now);
  state.set_execution_ns(add_saturated(tx.now, start_delay));
  state.mutable_standalone()->set_start_delay_ns(start_delay);
  schedule_activity(tx, std::move(draft), start_delay);
}

int64_t record_standalone(Transaction& tx, model::Event event) {
  const auto kind = event.kind();
  if (kind == model::ACTIVITY_STARTED) {
    // Told with the activity and not by an event. Who ends an attempt that nobody has is its
    // worker.
    auto* activity = tx.run().find_activity(kStandaloneScheduledId);
    activity->set_last_worker_identity(event.activity_started().identity());
    tx.state().mutable_standalone()->set_last_started_ns(event.time_ns());
    return 0;
  }
  const int64_t id = tx.append(std::move(event));
  tx.close(status_after(kind));
  return id;
}

void keep_ended_activity(Transaction& tx, const model::ActivityState& activity) {
  auto* ended = tx.state().mutable_ended_activity();
  *ended = activity;
  ended->clear_place();
  ended->clear_lease();
}

void note_standalone_start(Transaction& tx) {
  auto& state = tx.state();
  state.mutable_standalone()->set_last_started_ns(tx.now);
  // A worker waited for it: to its owner, being offered and being taken are two changes all the
  // same.
  if (!tx.offers().empty()) state.set_state_transitions(state.state_transitions() + 1);
}

void note_standalone_heartbeat(Transaction& tx) {
  auto* standalone = tx.state().mutable_standalone();
  standalone->set_last_heartbeat_ns(tx.now);
  standalone->set_heartbeats(standalone->heartbeats() + 1);
}

absl::StatusOr<bool> may_cancel(const Run& run, const Stopper& by) {
  const auto& asked_by = run.state.standalone().cancel_request_id();
  if (run.state.cancel_requested() && asked_by == by.request_id) return false;
  if (!run.is_open()) {
    return errors::failed_precondition(
        absl::StrCat("activity is in terminal state ", status_name(run.state.status())));
  }
  if (run.state.cancel_requested()) {
    return errors::failed_precondition(
        absl::StrCat("cancellation already requested with request ID ", asked_by));
  }
  return true;
}

absl::StatusOr<bool> may_terminate(const Run& run, const Stopper& by) {
  if (run.is_open()) return true;
  if (run.state.status() != model::TERMINATED) return invalid_transition(run.state);
  const auto& ended_by = run.state.standalone().terminate_request_id();
  if (ended_by == by.request_id) return false;
  return errors::failed_precondition(absl::StrCat("already terminated with request ID ", ended_by));
}

void cancel_standalone(Transaction& tx, const Stopper& by) {
  auto* activity = tx.run().find_activity(kStandaloneScheduledId);
  FL_ASSERT(activity != nullptr, "an open run has its activity");
  tx.touch(*activity).set_cancel_requested(true);
  tx.state().set_cancel_requested(true);
  auto* standalone = tx.state().mutable_standalone();
  standalone->set_cancel_reason(by.reason);
  standalone->set_cancel_request_id(by.request_id);
  if (activity->started_ns() == 0) cancel_activity(tx, *activity, by.identity, by.door);
}

void terminate_standalone(Transaction& tx, const Stopper& by) {
  FL_ASSERT(tx.run().is_open(), "only an open run can be terminated");
  tx.state().mutable_standalone()->set_terminate_request_id(by.request_id);
  model::Event event;
  event.set_kind(model::ACTIVITY_FAILED);
  auto* ended = event.mutable_activity_ended();
  ended->set_scheduled_id(kStandaloneScheduledId);
  ended->set_identity(by.identity);
  ended->mutable_failure()->set_kind(model::Failure::TERMINATED);
  ended->mutable_failure()->set_message(by.reason);
  tx.append(std::move(event));
  tx.close(model::TERMINATED);
}

}  // namespace fairlead::history
