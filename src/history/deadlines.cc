#include "history/deadlines.h"

#include <algorithm>
#include <vector>

#include "history/activity.h"
#include "history/callbacks.h"
#include "history/cancellation.h"
#include "history/durable.h"
#include "history/lifecycle.h"
#include "history/standalone.h"
#include "history/workflow_task.h"

namespace fairlead::history {

namespace {

struct ActivityDeadline {
  TimeNs at = kNever;
  // Unspecified: the back-off ends, or the lease of who has it.
  model::TimeoutType type = model::TIMEOUT_UNSPECIFIED;

  void consider(TimeNs from, DurationNs limit, model::TimeoutType timeout) {
    if (limit <= 0) return;
    const TimeNs due = add_saturated(from, limit);
    if (due < at) *this = {due, timeout};
  }
};

// While an activity is paused only the attempt that a worker has can run out of time.
ActivityDeadline activity_deadline(const model::ActivityState& activity) {
  const auto& limits = activity.scheduled();
  const bool is_started = activity.started_ns() != 0;
  ActivityDeadline next;
  // First, for the case that both run out at once: without a limit of its own the wait for a worker
  // has that of the whole, and it is what was too long.
  if (!is_started && !activity.has_pause() && !activity.backing_off()) {
    next.consider(activity.scheduled_ns(), limits.schedule_to_start_ns(), model::SCHEDULE_TO_START);
  }
  if (!activity.has_pause()) {
    next.consider(activity.first_scheduled_ns(), limits.schedule_to_close_ns(),
                  model::SCHEDULE_TO_CLOSE);
  }
  if (is_started) {
    next.consider(activity.started_ns(), limits.start_to_close_ns(), model::START_TO_CLOSE);
    const TimeNs heard_of = std::max(activity.started_ns(), activity.heartbeat_ns());
    next.consider(heard_of, limits.heartbeat_ns(), model::HEARTBEAT);
    next.consider(std::max(heard_of, activity.renewed_ns()), limits.lease_ns(),
                  model::TIMEOUT_UNSPECIFIED);
  } else if (!activity.has_pause() && activity.backing_off()) {
    if (activity.scheduled_ns() < next.at) next = {activity.scheduled_ns()};
  }
  return next;
}

TimeNs task_deadline(const model::RunState& state) {
  const auto& task = state.workflow_task();
  if (is_durable(state)) return durable_task_deadline(task);
  if (task.started_id() != 0) return add_saturated(task.started_ns(), task.start_to_close_ns());
  return task.schedule_to_start_deadline_ns() != 0 ? task.schedule_to_start_deadline_ns() : kNever;
}

void pass_task_time(Transaction& tx) {
  const auto& state = tx.state();
  if (!state.has_workflow_task() || task_deadline(state) > tx.now) return;
  if (is_durable(state)) {
    pass_durable_task_time(tx);
  } else if (state.workflow_task().started_id() != 0) {
    time_out_workflow_task(tx);
  } else {
    time_out_sticky_task(tx);
  }
}

void fire_timers(Transaction& tx) {
  std::vector<model::TimerState> due;
  for (const auto& [id, timer] : tx.run().timers) {
    if (timer.fire_ns() <= tx.now && !is_held_back(tx.run(), timer)) due.push_back(timer);
  }
  std::stable_sort(due.begin(), due.end(),
                   [](const auto& a, const auto& b) { return a.fire_ns() < b.fire_ns(); });
  for (const auto& timer : due) {
    tx.erase_timer(timer.started_id());
    model::Event event;
    event.set_kind(model::TIMER_FIRED);
    event.mutable_timer_ended()->set_timer_id(timer.timer_id());
    event.mutable_timer_ended()->set_started_id(timer.started_id());
    if (timer.has_step()) *event.mutable_timer_ended()->mutable_step() = timer.step();
    if (!timer.wait_id().empty()) {
      event.mutable_timer_ended()->set_wait_id(timer.wait_id());
      time_out_wait(tx, timer.wait_id());
    }
    tx.record(std::move(event));
  }
}

void pass_activity_time(Transaction& tx) {
  std::vector<std::pair<TimeNs, int64_t>> due;
  for (const auto& [id, activity] : tx.run().activities) {
    const auto deadline = activity_deadline(activity);
    if (deadline.at <= tx.now) due.emplace_back(deadline.at, id);
  }
  std::sort(due.begin(), due.end());
  // Woken for a deadline that has moved on.
  if (due.empty() && is_standalone(tx.state())) tx.hide_step();
  for (const auto& [at, id] : due) {
    auto& activity = tx.run().activities[id];
    const auto deadline = activity_deadline(activity);
    if (deadline.type == model::TIMEOUT_UNSPECIFIED && activity.started_ns() != 0) {
      lose_activity(tx, activity);
    } else if (deadline.type == model::TIMEOUT_UNSPECIFIED) {
      offer_activity(tx, activity);
      // Nothing that its owner hears of: the attempt was announced when the last one failed.
      if (is_standalone(tx.state())) tx.hide_step();
    } else {
      time_out_activity(tx, activity, deadline.type);
    }
  }
}

}  // namespace

TimeNs next_deadline(const Run& run) {
  const auto& state = run.state;
  if (!run.is_open()) {
    const TimeNs deletion = state.delete_at_ns() != 0 ? state.delete_at_ns() : kNever;
    return std::min(deletion, callback_deadline(run));
  }
  TimeNs next = cancellation_deadline(state);
  if (state.run_expiration_ns() != 0) next = std::min(next, state.run_expiration_ns());
  if (state.first_task_at_ns() != 0) next = std::min(next, state.first_task_at_ns());
  if (state.has_workflow_task()) next = std::min(next, task_deadline(state));
  for (const auto& [id, timer] : run.timers) {
    if (!is_held_back(run, timer)) next = std::min(next, timer.fire_ns());
  }
  for (const auto& [id, activity] : run.activities) {
    next = std::min(next, activity_deadline(activity).at);
  }
  return next;
}

std::vector<Expiring> expiring_tasks(const Run& run, TimeNs now) {
  std::vector<Expiring> tasks;
  const auto& state = run.state;
  if (!run.is_open()) return tasks;
  if (state.run_expiration_ns() != 0 && state.run_expiration_ns() <= now) return tasks;
  const auto& task = state.workflow_task();
  if (!is_durable(state) && task.place().seq() != 0 && task.started_id() == 0 &&
      task_deadline(state) <= now) {
    tasks.push_back({model::WORKFLOW_TASK, task.place().queue()});
  }
  for (const auto& [id, activity] : run.activities) {
    const auto deadline = activity_deadline(activity);
    if (deadline.type != model::SCHEDULE_TO_START || deadline.at > now) continue;
    if (activity.place().seq() != 0) {
      tasks.push_back({model::ACTIVITY_TASK, activity.place().queue()});
    }
  }
  return tasks;
}

void pass_time(Transaction& tx) {
  auto& state = tx.state();
  if (!tx.run().is_open()) return pass_callback_time(tx);
  if (state.run_expiration_ns() != 0 && state.run_expiration_ns() <= tx.now) {
    time_out_run(tx);
    return;
  }
  if (cancellation_deadline(state) <= tx.now) return expire_cancellation(tx);
  if (state.first_task_at_ns() != 0 && state.first_task_at_ns() <= tx.now) {
    state.set_first_task_at_ns(0);
    tx.want_task();
    // A task that an update brought before its time might be taken back: from now on it may not.
    if (state.workflow_task().speculative()) write_virtual_events(tx);
  }
  pass_task_time(tx);
  fire_timers(tx);
  pass_activity_time(tx);
}

}  // namespace fairlead::history
