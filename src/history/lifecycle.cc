#include "history/lifecycle.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "history/workflow_task.h"

namespace fairlead::history {

namespace {

constexpr char kServerIdentity[] = "history-service";

// The smaller of two durations of which zero means "none".
DurationNs shorter(DurationNs a, DurationNs b) {
  if (a == 0) return b;
  if (b == 0) return a;
  return std::min(a, b);
}

TimeNs round_up_to_ms(TimeNs time) {
  if (time > kNever - kMillisecond) return time;
  return (time + kMillisecond - 1) / kMillisecond * kMillisecond;
}

}  // namespace

void start_run(Transaction& tx, const Beginning& beginning) {
  auto& state = tx.state();
  FL_ASSERT(state.next_event_id() == 1, "a run begins once");
  state.set_status(model::RUNNING);
  state.set_start_ns(tx.now);
  state.set_attempt(1);
  state.set_task_attempt(1);
  state.set_execution_ns(add_saturated(tx.now, beginning.start_delay));
  state.set_run_timeout_ns(shorter(state.run_timeout_ns(), state.execution_timeout_ns()));
  const DurationNs asked =
      state.task_timeout_ns() > 0 ? state.task_timeout_ns() : tx.limits.workflow_task_timeout;
  state.set_task_timeout_ns(
      shorter(std::min(asked, tx.limits.workflow_task_timeout_max), state.run_timeout_ns()));
  if (state.execution_timeout_ns() > 0) {
    state.set_execution_expiration_ns(
        round_up_to_ms(add_saturated(tx.now, state.execution_timeout_ns())));
  }
  if (state.run_timeout_ns() > 0) {
    state.set_run_expiration_ns(shorter(add_saturated(state.execution_ns(), state.run_timeout_ns()),
                                        state.execution_expiration_ns()));
  }

  model::Event event;
  event.set_kind(model::WORKFLOW_STARTED);
  event.set_door(beginning.door);
  event.set_envelope(beginning.envelope);
  auto* started = event.mutable_workflow_started();
  started->set_execution_timeout_ns(state.execution_timeout_ns());
  started->set_run_timeout_ns(state.run_timeout_ns());
  started->set_task_timeout_ns(state.task_timeout_ns());
  started->set_execution_expiration_ns(state.execution_expiration_ns());
  started->set_first_task_backoff_ns(beginning.start_delay);
  started->set_original_run_id(state.run_id());
  started->set_first_run_id(state.first_run_id());
  started->set_attempt(state.attempt());
  tx.append(std::move(event));
  if (beginning.start_delay > 0) {
    state.set_first_task_at_ns(state.execution_ns());
  } else {
    tx.want_task();
  }
}

absl::Status signal_run(Transaction& tx, std::string door, std::string envelope) {
  auto& state = tx.state();
  if (!tx.run().is_open()) return errors::workflow_completed();
  if (state.close_refused() && tx.run().has_started_task()) {
    return errors::busy_workflow(
        "workflow operation can not be applied because workflow is closing");
  }
  if (state.signals() >= tx.limits.signals) {
    return errors::invalid_argument("exceeded workflow execution limit for signal events");
  }
  state.set_signals(state.signals() + 1);
  model::Event event;
  event.set_kind(model::WORKFLOW_SIGNALED);
  event.set_door(std::move(door));
  event.set_envelope(std::move(envelope));
  tx.record(std::move(event));
  return absl::OkStatus();
}

void request_cancel(Transaction& tx, std::string door, std::string envelope) {
  auto& state = tx.state();
  if (!tx.run().is_open() || state.cancel_requested()) return;
  state.set_cancel_requested(true);
  // Unlike a signal, a cancellation also ends the wait for the first task.
  state.set_first_task_at_ns(0);
  model::Event event;
  event.set_kind(model::WORKFLOW_CANCEL_REQUESTED);
  event.set_door(std::move(door));
  event.set_envelope(std::move(envelope));
  tx.record(std::move(event));
}

void terminate_run(Transaction& tx, model::Event closing) {
  FL_ASSERT(tx.run().is_open(), "only an open run can be terminated");
  end_task_of_closing_run(tx);
  const auto status =
      closing.kind() == model::WORKFLOW_TIMED_OUT ? model::TIMED_OUT : model::TERMINATED;
  tx.append(std::move(closing));
  tx.close(status);
}

void terminate_by_server(Transaction& tx, const std::string& reason, const std::string& details) {
  model::Event event;
  event.set_kind(model::WORKFLOW_TERMINATED);
  event.mutable_workflow_closed()->set_reason(reason);
  event.mutable_workflow_closed()->set_details(details);
  event.mutable_workflow_closed()->set_identity(kServerIdentity);
  terminate_run(tx, std::move(event));
}

void time_out_run(Transaction& tx) {
  const auto& state = tx.state();
  const bool whole_execution =
      state.execution_expiration_ns() != 0 && state.execution_expiration_ns() <= tx.now;
  model::Event event;
  event.set_kind(model::WORKFLOW_TIMED_OUT);
  event.mutable_workflow_closed()->set_retry_state(whole_execution ? model::RETRY_TIMEOUT
                                                                   : model::RETRY_POLICY_NOT_SET);
  terminate_run(tx, std::move(event));
}

}  // namespace fairlead::history
