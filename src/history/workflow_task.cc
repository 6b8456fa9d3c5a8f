#include "history/workflow_task.h"

#include <algorithm>

#include "base/assert.h"
#include "history/durable.h"
#include "history/lifecycle.h"
#include "history/reset_points.h"

namespace fairlead::history {

namespace {

constexpr int64_t kShownTwiceMax = 10;  // events that a worker reads again after a discarded task
constexpr int32_t kSlowAttempt = 3;     // attempts beyond this one get longer and longer timeouts
constexpr DurationNs kSlowAttemptFirst = 5 * kSecond;
constexpr DurationNs kSlowAttemptMax = 10 * kMinute;

DurationNs task_timeout(const model::RunState& state, int32_t attempt) {
  if (attempt <= kSlowAttempt) return state.task_timeout_ns();
  const int32_t doublings = std::min(attempt - kSlowAttempt - 1, 20);
  return state.task_timeout_ns() + std::min(kSlowAttemptFirst << doublings, kSlowAttemptMax);
}

model::QueueTarget normal_queue(const model::RunState& state) {
  model::QueueTarget queue;
  queue.set_name(state.task_queue());
  return queue;
}

model::Event scheduled_event(const model::WorkflowTaskState& task, int32_t attempt) {
  model::Event event;
  event.set_kind(model::WORKFLOW_TASK_SCHEDULED);
  event.set_time_ns(task.scheduled_ns());
  auto* scheduled = event.mutable_workflow_task_scheduled();
  *scheduled->mutable_queue() = task.queue();
  scheduled->set_start_to_close_ns(task.start_to_close_ns());
  scheduled->set_attempt(attempt);
  return event;
}

model::Event started_event(const Run& run, const Limits& limits, int64_t next_event_id) {
  const auto& task = run.state.workflow_task();
  model::Event event;
  event.set_kind(model::WORKFLOW_TASK_STARTED);
  event.set_time_ns(task.started_ns());
  auto* started = event.mutable_workflow_task_started();
  started->set_scheduled_id(task.scheduled_id());
  started->set_identity(task.identity());
  started->set_request_id(task.request_id());
  started->set_history_bytes(task.history_bytes());
  started->set_history_too_large(task.history_bytes() >= limits.history_bytes_suggest);
  started->set_too_many_events(next_event_id >= limits.history_events_suggest);
  started->set_too_many_updates(static_cast<int64_t>(run.updates.size()) * 10 >=
                                limits.updates * 9);
  started->set_suggest_continue_as_new(started->history_too_large() || started->too_many_events() ||
                                       started->too_many_updates());
  return event;
}

void offer_task(Transaction& tx) {
  auto& state = tx.state();
  auto* task = state.mutable_workflow_task();
  task->set_stamp(tx.next_stamp());
  tx.offer(
      {model::WORKFLOW_TASK, task->queue(), task->scheduled_id(), task->stamp(), state.priority()});
}

// Ends a task that did not succeed: stickiness goes, what was buffered is written, and the next
// task is either a fresh one or a silent retry.
void end_unsuccessfully(Transaction& tx, model::EventKind kind, TaskFailure failure,
                        model::TimeoutType timeout) {
  auto& state = tx.state();
  if (state.workflow_task().speculative()) write_virtual_events(tx);
  const auto task = state.workflow_task();
  tx.note_lost_task();
  if (!task.virtual_events()) {
    model::Event event;
    event.set_kind(kind);
    event.set_door(std::move(failure.door));
    auto* ended = event.mutable_workflow_task_ended();
    ended->set_scheduled_id(task.scheduled_id());
    ended->set_started_id(task.started_id());
    ended->set_timeout_type(timeout);
    if (kind == model::WORKFLOW_TASK_FAILED) {
      ended->set_failed_cause(failure.cause);
      if (failure.failure.ByteSizeLong() > 0) {
        *ended->mutable_failure() = std::move(failure.failure);
      }
      ended->set_identity(std::move(failure.identity));
      ended->set_base_run_id(std::move(failure.base_run_id));
      ended->set_new_run_id(std::move(failure.new_run_id));
    }
    tx.append(std::move(event));
  }
  const bool was_sticky = state.has_sticky();
  state.clear_workflow_task();
  state.clear_sticky();
  const bool starts_over =
      was_sticky || state.buffered_size() > 0 ||
      (kind == model::WORKFLOW_TASK_FAILED && begins_anew(static_cast<FailedCause>(failure.cause)));
  state.set_task_attempt(starts_over ? 1 : task.attempt() + 1);
  tx.flush_buffered();
  tx.want_task();
}

void schedule(Transaction& tx, bool is_speculative) {
  auto& state = tx.state();
  FL_ASSERT(!state.has_workflow_task(), "a run has at most one workflow task");
  const int32_t attempt = std::max(1, state.task_attempt());
  auto* task = state.mutable_workflow_task();
  task->set_attempt(attempt);
  task->set_scheduled_ns(tx.now);
  task->set_original_scheduled_ns(tx.now);
  task->set_start_to_close_ns(task_timeout(state, attempt));
  if (state.has_sticky() && attempt == 1) {
    task->mutable_queue()->set_name(state.sticky().name());
    task->mutable_queue()->set_sticky(true);
    task->mutable_queue()->set_normal_name(state.task_queue());
    task->set_schedule_to_start_deadline_ns(
        add_saturated(tx.now, state.sticky().schedule_to_start_ns()));
  } else {
    *task->mutable_queue() = normal_queue(state);
  }
  if (attempt > 1 || is_speculative) {
    task->set_virtual_events(true);
    task->set_speculative(attempt == 1);
    task->set_scheduled_id(state.next_event_id());
  } else {
    task->set_scheduled_id(tx.append(scheduled_event(*task, attempt)));
  }
  offer_task(tx);
}

}  // namespace

bool begins_anew(FailedCause cause) {
  return cause == FailedCause::kFailoverCloseCommand || cause == FailedCause::kResetWorkflow;
}

void write_virtual_events(Transaction& tx) {
  auto* task = tx.state().mutable_workflow_task();
  task->set_virtual_events(false);
  task->set_speculative(false);
  tx.state().set_first_task_at_ns(0);  // this is the first one
  const int64_t scheduled_id = tx.append(scheduled_event(*task, task->attempt()));
  FL_ASSERT(scheduled_id == task->scheduled_id(), "a promised id is kept");
  if (task->started_id() == 0) return;
  const int64_t started_id =
      tx.append(started_event(tx.run(), tx.limits, tx.state().next_event_id()));
  FL_ASSERT(started_id == task->started_id(), "a worker was shown this id");
}

void schedule_workflow_task(Transaction& tx) { schedule(tx, false); }

void schedule_speculative_task(Transaction& tx) { schedule(tx, true); }

void discard_speculative_task(Transaction& tx) {
  FL_ASSERT(may_discard_task(tx.run(), true), "a task that left a trace stays");
  tx.state().clear_workflow_task();
}

bool may_discard_task(const Run& run, bool rereads) {
  const auto& state = run.state;
  const int64_t shown = state.next_event_id() - (state.last_completed_task_started_id() + 2);
  return run.has_started_task() && state.workflow_task().speculative() &&
         state.buffered_size() == 0 && shown <= (rereads ? kShownTwiceMax : 0);
}

bool start_workflow_task(Transaction& tx, uint64_t stamp, const Taker& taker) {
  auto& state = tx.state();
  if (is_durable(state)) return start_durable_task(tx, stamp, taker);
  if (!tx.run().is_open() || !state.has_workflow_task()) return false;
  auto* task = state.mutable_workflow_task();
  if (task->started_id() != 0 || task->stamp() != stamp) return false;

  task->clear_place();
  task->set_schedule_to_start_deadline_ns(0);
  if (!taker.from_sticky_queue) state.clear_sticky();
  if (task->virtual_events() && state.next_event_id() != task->scheduled_id()) {
    // Events arrived since the retry was made, so its promised ids are taken: it becomes a task
    // like any other, scheduled now, so that the history's times do not run backwards.
    task->set_virtual_events(false);
    task->set_attempt(1);
    task->set_scheduled_ns(tx.now);
    task->set_scheduled_id(tx.append(scheduled_event(*task, 1)));
  }
  task->set_started_ns(tx.now);
  task->set_identity(taker.identity);
  task->set_request_id(taker.request_id);
  task->set_history_bytes(state.history_bytes());
  task->set_started_id(task->virtual_events()
                           ? task->scheduled_id() + 1
                           : tx.append(started_event(tx.run(), tx.limits, state.next_event_id())));
  return true;
}

bool holds_workflow_task(const Run& run, const WorkflowTaskId& id) {
  if (!run.is_open() || !run.has_started_task()) return false;
  const auto& task = run.state.workflow_task();
  return task.scheduled_id() == id.scheduled_id && task.started_id() == id.started_id &&
         task.attempt() == id.attempt && task.started_ns() == id.started_ns;
}

int64_t complete_workflow_task(Transaction& tx, const std::string& door,
                               const model::Build& build) {
  auto& state = tx.state();
  if (state.workflow_task().virtual_events()) write_virtual_events(tx);
  const auto task = state.workflow_task();
  model::Event event;
  event.set_kind(model::WORKFLOW_TASK_COMPLETED);
  event.set_door(door);
  auto* ended = event.mutable_workflow_task_ended();
  ended->set_scheduled_id(task.scheduled_id());
  ended->set_started_id(task.started_id());
  *ended->mutable_build() = build;
  // The task is over before its end is written: what the commands cause is not buffered.
  state.clear_workflow_task();
  state.set_task_attempt(1);
  state.set_close_refused(false);
  state.set_last_completed_task_started_id(task.started_id());
  const int64_t id = tx.append(std::move(event));
  add_reset_point(tx.run(), build, id, tx.now);
  return id;
}

void fail_workflow_task(Transaction& tx, TaskFailure failure) {
  const auto cause = static_cast<FailedCause>(failure.cause);
  if (cause == FailedCause::kGrpcMessageTooLarge) {
    terminate_by_server(tx, "GrpcMessageTooLarge");
    return;
  }
  end_unsuccessfully(tx, model::WORKFLOW_TASK_FAILED, std::move(failure),
                     model::TIMEOUT_UNSPECIFIED);
}

void time_out_workflow_task(Transaction& tx) {
  if (is_durable(tx.state())) return retry_durable_task(tx, 0);
  end_unsuccessfully(tx, model::WORKFLOW_TASK_TIMED_OUT, {}, model::START_TO_CLOSE);
}

void time_out_sticky_task(Transaction& tx) {
  auto& state = tx.state();
  auto* task = state.mutable_workflow_task();
  tx.drop(model::WORKFLOW_TASK, task->mutable_place());
  model::Event event;
  event.set_kind(model::WORKFLOW_TASK_TIMED_OUT);
  event.mutable_workflow_task_ended()->set_scheduled_id(task->scheduled_id());
  event.mutable_workflow_task_ended()->set_timeout_type(model::SCHEDULE_TO_START);
  tx.append(std::move(event));
  state.clear_workflow_task();
  state.clear_sticky();
  tx.want_task();
}

void release_sticky_task(Transaction& tx) {
  auto& state = tx.state();
  auto* task = state.mutable_workflow_task();
  tx.drop(model::WORKFLOW_TASK, task->mutable_place());
  *task->mutable_queue() = normal_queue(state);
  task->set_schedule_to_start_deadline_ns(0);
  offer_task(tx);
}

void offer_workflow_task_again(Transaction& tx) {
  auto& state = tx.state();
  if (!state.has_workflow_task() || tx.run().has_started_task()) return;
  auto* task = state.mutable_workflow_task();
  if (task->speculative()) return;
  tx.drop(model::WORKFLOW_TASK, task->mutable_place());
  offer_task(tx);
}

void force_fail_workflow_task(Transaction& tx) {
  TaskFailure failure;
  failure.cause = static_cast<int>(FailedCause::kForceCloseCommand);
  failure.identity = kServerIdentity;
  end_unsuccessfully(tx, model::WORKFLOW_TASK_FAILED, std::move(failure),
                     model::TIMEOUT_UNSPECIFIED);
}

void end_task_of_closing_run(Transaction& tx) {
  if (is_durable(tx.state())) {
    flush_signals(tx);
  } else if (tx.run().has_started_task()) {
    force_fail_workflow_task(tx);
  }
}

std::string virtual_events(const Run& run, const Codec& codec) {
  std::string history;
  if (!run.state.has_workflow_task() || !run.state.workflow_task().virtual_events()) return history;
  const auto& task = run.state.workflow_task();
  // While it waits, new events may have taken the promised ids; then there is nothing to show.
  if (run.state.next_event_id() != task.scheduled_id()) return history;
  auto scheduled = scheduled_event(task, task.attempt());
  scheduled.set_id(task.scheduled_id());
  codec.append_event(scheduled, &history);
  if (task.started_id() != 0) {
    auto started = started_event(run, Limits{}, task.started_id());
    started.set_id(task.started_id());
    codec.append_event(started, &history);
  }
  return history;
}

}  // namespace fairlead::history
