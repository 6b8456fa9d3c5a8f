#include "history/rebuild.h"

#include "base/assert.h"
#include "base/time.h"
#include "history/children.h"
#include "history/commands.h"
#include "history/lifecycle.h"
#include "history/reset_points.h"
#include "history/workflow_task.h"

namespace fairlead::history {

void Rebuild::apply(const model::Event& event, int64_t bytes) {
  auto& state = run_.state;
  FL_ASSERT(event.id() == state.next_event_id(),
            "a history is read from its first event, in order");
  state.set_next_event_id(event.id() + 1);
  state.set_history_bytes(state.history_bytes() + bytes);
  switch (event.attributes_case()) {
    case model::Event::kWorkflowStarted:
      return start(event);
    case model::Event::kWorkflowTaskScheduled:
    case model::Event::kWorkflowTaskStarted:
    case model::Event::kWorkflowTaskEnded:
      return apply_task(event);
    case model::Event::kActivityScheduled:
    case model::Event::kActivityStarted:
    case model::Event::kActivityEnded:
    case model::Event::kActivityCancelRequested:
      return apply_activity(event);
    case model::Event::kTimerStarted:
    case model::Event::kTimerEnded:
      return apply_timer(event);
    case model::Event::kChildInitiated:
    case model::Event::kChildEvent:
    case model::Event::kExternalEvent:
      return apply_other_run(event);
    case model::Event::kUpdateEvent:
      return apply_update(event);
    case model::Event::kWorkflowClosed:
      return close(event);
    case model::Event::kCommandRecorded:
      return upsert(event, &state);
    case model::Event::kWorkflowOptionsUpdated:
      return apply_options(event);
    default:
      break;
  }
  if (event.kind() == model::WORKFLOW_SIGNALED) state.set_signals(state.signals() + 1);
  if (event.kind() == model::WORKFLOW_CANCEL_REQUESTED) {
    state.set_cancel_requested(true);
    state.set_first_task_at_ns(0);
  }
}

void Rebuild::start(const model::Event& event) {
  auto& state = run_.state;
  const auto& started = event.workflow_started();
  state.set_status(model::RUNNING);
  state.set_start_ns(event.time_ns());
  state.set_execution_ns(add_saturated(event.time_ns(), started.first_task_backoff_ns()));
  if (started.first_task_backoff_ns() > 0) state.set_first_task_at_ns(state.execution_ns());
  state.set_first_run_id(started.first_run_id());
  state.set_continued_run_id(started.continued_run_id());
  state.set_initiator(started.initiator());
  state.set_attempt(started.attempt());
  state.set_task_attempt(1);
  state.set_workflow_type(started.workflow_type());
  state.set_task_queue(started.task_queue());
  state.set_execution_timeout_ns(started.execution_timeout_ns());
  state.set_run_timeout_ns(started.run_timeout_ns());
  state.set_task_timeout_ns(started.task_timeout_ns());
  state.set_execution_expiration_ns(started.execution_expiration_ns());
  state.set_run_expiration_ns(run_expiration(state));
  state.set_cron_schedule(started.cron_schedule());
  if (started.has_retry_policy()) *state.mutable_retry_policy() = started.retry_policy();
  if (started.has_parent()) *state.mutable_parent() = started.parent();
  if (started.has_root()) *state.mutable_root() = started.root();
  *state.mutable_priority() = started.priority();
  *state.mutable_reset_points() = started.reset_points();
  *state.mutable_memo() = started.memo();
  *state.mutable_search_attributes() = started.search_attributes();
  for (const auto& door : started.callbacks()) {
    add_callback(door, state.start_request_id(), event);
  }
}

void Rebuild::add_callback(const std::string& door, const std::string& request_id,
                           const model::Event& event) {
  model::CallbackState callback;
  callback.set_number(static_cast<int64_t>(run_.callbacks.size()) + 1);
  callback.set_door(door);
  callback.set_request_id(request_id);
  callback.set_attached(event.kind() == model::WORKFLOW_OPTIONS_UPDATED);
  callback.set_registered_ns(event.time_ns());
  run_.add_loaded(std::move(callback));
}

void Rebuild::apply_options(const model::Event& event) {
  const auto& options = event.workflow_options_updated();
  if (options.has_priority()) *run_.state.mutable_priority() = options.priority();
  const auto& request_id = options.attached_request_id();
  if (!request_id.empty()) {
    run_.requests[request_id].set_request_id(request_id);
    run_.requests[request_id].set_event_id(event.id());
  }
  for (const auto& door : options.attached_callbacks()) add_callback(door, request_id, event);
}

void Rebuild::apply_task(const model::Event& event) {
  auto& state = run_.state;
  if (event.has_workflow_task_scheduled()) {
    const auto& scheduled = event.workflow_task_scheduled();
    state.set_first_task_at_ns(0);
    state.clear_workflow_task();
    auto* task = state.mutable_workflow_task();
    task->set_scheduled_id(event.id());
    task->set_attempt(scheduled.attempt());
    task->set_scheduled_ns(event.time_ns());
    task->set_original_scheduled_ns(event.time_ns());
    task->set_start_to_close_ns(scheduled.start_to_close_ns());
    *task->mutable_queue() = scheduled.queue();
    return;
  }
  if (event.has_workflow_task_started()) {
    const auto& started = event.workflow_task_started();
    auto* task = state.mutable_workflow_task();
    task->set_started_id(event.id());
    task->set_started_ns(event.time_ns());
    task->set_identity(started.identity());
    task->set_request_id(started.request_id());
    task->set_history_bytes(started.history_bytes());
    return;
  }
  const auto& ended = event.workflow_task_ended();
  if (event.kind() == model::WORKFLOW_TASK_COMPLETED) {
    state.set_last_completed_task_started_id(ended.started_id());
    state.set_task_attempt(1);
    add_reset_point(run_, ended.build(), event.id(), event.time_ns());
  } else if (ended.timeout_type() != model::SCHEDULE_TO_START) {
    state.set_task_attempt(begins_anew(static_cast<FailedCause>(ended.failed_cause()))
                               ? 1
                               : state.workflow_task().attempt() + 1);
  }
  state.clear_workflow_task();
}

void Rebuild::apply_activity(const model::Event& event) {
  if (event.has_activity_scheduled()) {
    model::ActivityState activity;
    activity.set_scheduled_id(event.id());
    *activity.mutable_scheduled() = event.activity_scheduled();
    activity.set_attempt(1);
    activity.set_first_scheduled_ns(event.time_ns());
    activity.set_scheduled_ns(event.time_ns());
    run_.add_loaded(std::move(activity));
    return;
  }
  if (event.has_activity_started()) {
    const auto& started = event.activity_started();
    auto* activity = run_.find_activity(started.scheduled_id());
    FL_ASSERT(activity != nullptr, "what is started was scheduled");
    activity->set_started_ns(event.time_ns());
    activity->set_started_identity(started.identity());
    activity->set_request_id(started.request_id());
    activity->set_attempt(started.attempt());
    started_[started.scheduled_id()] = event.id();
    return;
  }
  if (event.has_activity_cancel_requested()) {
    auto* activity = run_.find_activity(event.activity_cancel_requested().scheduled_id());
    if (activity == nullptr) return;  // its end was known already
    activity->set_cancel_requested(true);
    activity->set_cancel_requested_id(event.id());
    return;
  }
  const int64_t id = event.activity_ended().scheduled_id();
  if (const auto* activity = run_.find_activity(id)) {
    run_.activity_ids.erase(activity->scheduled().activity_id());
    run_.activities.erase(id);
  }
  started_.erase(id);
}

void Rebuild::apply_timer(const model::Event& event) {
  if (event.has_timer_started()) {
    model::TimerState timer;
    timer.set_timer_id(event.timer_started().timer_id());
    timer.set_started_id(event.id());
    timer.set_fire_ns(add_saturated(event.time_ns(), event.timer_started().start_to_fire_ns()));
    run_.add_loaded(std::move(timer));
    return;
  }
  run_.timers.erase(event.timer_ended().started_id());
  run_.timer_ids.erase(event.timer_ended().timer_id());
}

void Rebuild::apply_other_run(const model::Event& event) {
  if (event.has_child_initiated()) {
    unanswered_[event.id()] = event;
    run_.add_loaded(new_child(run_.state, event));
    return;
  }
  if (event.kind() == model::SIGNAL_EXTERNAL_INITIATED ||
      event.kind() == model::CANCEL_EXTERNAL_INITIATED) {
    unanswered_[event.id()] = event;
    run_.add_loaded(new_external(run_.state, event));
    return;
  }
  if (event.has_external_event()) {
    run_.externals.erase(event.external_event().initiated_id());
    unanswered_.erase(event.external_event().initiated_id());
    return;
  }
  const auto& about = event.child_event();
  unanswered_.erase(about.initiated_id());
  if (event.kind() != model::CHILD_STARTED) {
    run_.children.erase(about.initiated_id());
    return;
  }
  auto& child = run_.children[about.initiated_id()];
  child.set_is_started(true);
  child.set_started_id(event.id());
  child.set_run_id(about.run().run_id());
}

void Rebuild::apply_update(const model::Event& event) {
  const auto& about = event.update_event();
  auto& update = run_.updates[about.update_id()];
  update.set_update_id(about.update_id());
  if (event.kind() == model::UPDATE_ADMITTED) {
    update.set_admitted_id(event.id());
    update.set_request(about.request());
    return;
  }
  update.clear_request();
  event.kind() == model::UPDATE_ACCEPTED ? update.set_accepted_id(event.id())
                                         : update.set_completed_id(event.id());
}

void Rebuild::close(const model::Event& event) {
  auto& state = run_.state;
  state.set_status(closing_status(event.kind()));
  state.set_close_ns(event.time_ns());
  state.clear_workflow_task();
  state.set_first_task_at_ns(0);
  run_.activities.clear();
  run_.activity_ids.clear();
  run_.timers.clear();
  run_.timer_ids.clear();
  run_.children.clear();
  run_.externals.clear();
  absl::erase_if(run_.updates, [](const auto& row) { return row.second.accepted_id() == 0; });
  started_.clear();
  unanswered_.clear();
}

}  // namespace fairlead::history
