#include "history/lifecycle.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "history/callbacks.h"
#include "history/cancellation.h"
#include "history/chain.h"
#include "history/children.h"
#include "history/durable.h"
#include "history/standalone.h"
#include "history/workflow_task.h"

namespace fairlead::history {

namespace {

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

// What a command to continue as new leaves open stays as it is.
void fill_in(const model::RunState& state, model::ContinueAsNew* next) {
  if (next->workflow_type().empty()) next->set_workflow_type(state.workflow_type());
  if (next->task_queue().empty()) next->set_task_queue(state.task_queue());
  if (next->run_timeout_ns() == 0) next->set_run_timeout_ns(state.run_timeout_ns());
  if (next->task_timeout_ns() == 0) next->set_task_timeout_ns(state.task_timeout_ns());
}

// A run that a client starts is acknowledged by an event of its own. The first thing that such a
// run needs is a task.
void begin_durable(Transaction& tx, const Beginning& beginning) {
  auto& state = tx.state();
  auto* durable = state.mutable_durable();
  durable->set_wakes(!durable->hosts_activity());
  if (durable->run_number() == 0) durable->set_run_number(1);
  if (state.has_parent() || durable->run_number() > 1) return;
  model::Event event;
  event.set_kind(model::START_ACCEPTED);
  event.set_door(beginning.envelope);
  event.mutable_workflow_started()->set_original_run_id(state.run_id());
  event.mutable_workflow_started()->set_workflow_type(state.workflow_type());
  tx.append(std::move(event));
}

}  // namespace

model::Status closing_status(model::EventKind kind) {
  switch (kind) {
    case model::WORKFLOW_COMPLETED:
      return model::COMPLETED;
    case model::WORKFLOW_FAILED:
      return model::FAILED;
    case model::WORKFLOW_CANCELED:
      return model::CANCELED;
    case model::WORKFLOW_TIMED_OUT:
      return model::TIMED_OUT;
    case model::WORKFLOW_CONTINUED_AS_NEW:
      return model::CONTINUED_AS_NEW;
    default:
      FL_ASSERT(kind == model::WORKFLOW_TERMINATED, "a run closes in one of six ways");
      return model::TERMINATED;
  }
}

TimeNs run_expiration(const model::RunState& state) {
  if (state.run_timeout_ns() == 0) return 0;
  // Rounded like the whole chain's: a run that has all of its time ends with it, not before.
  return shorter(round_up_to_ms(add_saturated(state.execution_ns(), state.run_timeout_ns())),
                 state.execution_expiration_ns());
}

DurationNs effective_task_timeout(const Limits& limits, DurationNs asked, DurationNs run_timeout) {
  const DurationNs timeout = asked > 0 ? asked : limits.workflow_task_timeout;
  return shorter(std::min(timeout, limits.workflow_task_timeout_max), run_timeout);
}

void start_run(Transaction& tx, const Beginning& beginning) {
  auto& state = tx.state();
  FL_ASSERT(state.next_event_id() == 1, "a run begins once");
  DurationNs delay = beginning.start_delay;
  if (state.attempt() == 0) state.set_attempt(1);
  if (!state.cron_schedule().empty() && state.initiator() == model::INITIATOR_UNSPECIFIED) {
    delay = cron_delay(state.cron_schedule(), tx.now, tx.now).value_or(0);
    state.set_initiator(model::BY_CRON);
  }
  state.set_status(model::RUNNING);
  state.set_start_ns(tx.now);
  state.set_task_attempt(1);
  state.set_execution_ns(add_saturated(tx.now, delay));
  state.set_run_timeout_ns(shorter(state.run_timeout_ns(), state.execution_timeout_ns()));
  state.set_task_timeout_ns(
      effective_task_timeout(tx.limits, state.task_timeout_ns(), state.run_timeout_ns()));
  if (state.execution_timeout_ns() > 0 && state.execution_expiration_ns() == 0) {
    state.set_execution_expiration_ns(
        round_up_to_ms(add_saturated(tx.now, state.execution_timeout_ns())));
  }
  state.set_run_expiration_ns(run_expiration(state));

  if (is_durable(state)) begin_durable(tx, beginning);
  model::Event event;
  event.set_kind(model::WORKFLOW_STARTED);
  event.set_door(beginning.door);
  event.set_envelope(beginning.envelope);
  auto* started = event.mutable_workflow_started();
  started->set_execution_timeout_ns(state.execution_timeout_ns());
  started->set_run_timeout_ns(state.run_timeout_ns());
  started->set_task_timeout_ns(state.task_timeout_ns());
  started->set_execution_expiration_ns(state.execution_expiration_ns());
  started->set_first_task_backoff_ns(delay);
  started->set_original_run_id(state.run_id());
  started->set_first_run_id(state.first_run_id());
  started->set_attempt(state.attempt());
  started->set_continued_run_id(state.continued_run_id());
  started->set_initiator(state.initiator());
  started->set_cron_schedule(state.cron_schedule());
  started->set_eager_accepted(beginning.eager_accepted);
  started->set_workflow_type(state.workflow_type());
  started->set_task_queue(state.task_queue());
  if (state.has_parent()) *started->mutable_parent() = state.parent();
  if (state.has_root()) *started->mutable_root() = state.root();
  if (state.has_retry_policy()) *started->mutable_retry_policy() = state.retry_policy();
  if (state.has_priority()) *started->mutable_priority() = state.priority();
  *started->mutable_reset_points() = state.reset_points();
  started->set_run_number(state.durable().run_number());
  for (const auto& callback : beginning.callbacks) started->add_callbacks(callback);
  begin_callbacks(tx, beginning.callbacks);
  tx.append(std::move(event));
  if (is_durable(state)) write_inherited_request(tx);
  if (delay > 0) {
    state.set_first_task_at_ns(state.execution_ns());
  } else {
    tx.want_task();
  }
}

absl::Status signal_run(Transaction& tx, std::string door, std::string envelope,
                        const model::Origin* origin) {
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
  if (origin != nullptr) *event.mutable_origin() = *origin;
  tx.record(std::move(event));
  return absl::OkStatus();
}

void request_cancel(Transaction& tx, std::string door, std::string envelope,
                    const model::Origin* origin) {
  auto& state = tx.state();
  if (!tx.run().is_open() || state.cancel_requested()) return;
  state.set_cancel_requested(true);
  // Unlike a signal, a cancellation also ends the wait for the first task.
  state.set_first_task_at_ns(0);
  model::Event event;
  event.set_kind(model::WORKFLOW_CANCEL_REQUESTED);
  event.set_door(std::move(door));
  event.set_envelope(std::move(envelope));
  if (origin != nullptr) *event.mutable_origin() = *origin;
  tx.record(std::move(event));
}

void close_run(Transaction& tx, model::Event closing) {
  auto& state = tx.state();
  const auto kind = closing.kind();
  if (kind == model::WORKFLOW_CONTINUED_AS_NEW) {
    fill_in(state, closing.mutable_workflow_closed()->mutable_next());
  }
  auto successor = decide_successor(tx, &closing);
  if (successor.has_value()) {
    FL_ASSERT(!tx.successor_run_id.empty(), "a run that may go on was given the next one's id");
    successor->run_id = tx.successor_run_id;
    successor->closing = closing;
    state.set_next_run_id(successor->run_id);
    closing.mutable_workflow_closed()->set_new_run_id(successor->run_id);
  }
  auto* next = closing.mutable_workflow_closed()->mutable_next();
  next->clear_start_door();
  next->clear_memo();
  next->clear_search_attributes();
  const int64_t id = tx.append(closing);
  // A run that a reset ends goes on as the new one.
  if (!successor.has_value() && state.reset_run_id().empty()) {
    tell_child_closed(tx, closing, id);
    tell_schedule(tx, kind, id);
  }
  const bool is_inherited = successor.has_value() && successor->initiator != model::BY_CRON;
  if (!is_inherited && state.reset_run_id().empty()) fire_callbacks(tx);
  tx.close(closing_status(kind));
  if (successor.has_value()) tx.follow_with(std::move(*successor));
}

void terminate_run(Transaction& tx, model::Event closing) {
  FL_ASSERT(tx.run().is_open(), "only an open run can be terminated");
  end_task_of_closing_run(tx);
  close_run(tx, std::move(closing));
}

void terminate_by_server(Transaction& tx, const std::string& reason, const std::string& details) {
  if (is_standalone(tx.state())) {
    terminate_standalone(tx, {kServerIdentity, reason, ""});
    return;
  }
  model::Event event;
  event.set_kind(model::WORKFLOW_TERMINATED);
  event.mutable_workflow_closed()->set_reason(reason);
  event.mutable_workflow_closed()->set_details(details);
  event.mutable_workflow_closed()->set_identity(kServerIdentity);
  terminate_run(tx, std::move(event));
}

void time_out_run(Transaction& tx) {
  model::Event event;
  event.set_kind(model::WORKFLOW_TIMED_OUT);
  event.mutable_workflow_closed();
  terminate_run(tx, std::move(event));
}

}  // namespace fairlead::history
