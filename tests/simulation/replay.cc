#include "simulation/replay.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "temporal/api/enums/v1/event_type.pb.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;

void Replay::fail(const std::string& what) {
  if (error_.empty()) error_ = absl::StrCat(what, " (event ", next_id_, ")");
}

void Replay::expect_equal(int64_t got, int64_t wanted, const char* what) {
  if (got != wanted) fail(absl::StrCat(what, " is ", got, " and should be ", wanted));
}

bool Replay::apply(const HistoryEvent& event) {
  expect_equal(event.event_id(), next_id_, "event id");
  if (is_closed_) fail("an event follows the closing one");
  switch (event.event_type()) {
    case EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: {
      const auto& started = event.workflow_execution_started_event_attributes();
      expect_equal(next_id_, 1, "the started event's id");
      if (started.input().payloads_size() != 1) {
        fail("the input was lost");
        break;
      }
      input_ = started.input().payloads(0).data();
      workflow_id_ = started.workflow_id();
      program_ = make_program(input_);
      break;
    }
    case EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
    case EVENT_TYPE_WORKFLOW_TASK_STARTED:
    case EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
    case EVENT_TYPE_WORKFLOW_TASK_FAILED:
    case EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
      apply_task_event(event);
      break;
    case EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
      ++signals_;
      break;
    case EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
      if (is_cancel_requested_) fail("cancellation was requested twice");
      is_cancel_requested_ = true;
      break;
    case EVENT_TYPE_ACTIVITY_TASK_STARTED:
      break;
    case EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
      if (!event.worker_may_ignore()) fail("a worker cannot know what this event is");
      break;
    case EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
      apply_activity_end(event.activity_task_completed_event_attributes().scheduled_event_id(),
                         false);
      break;
    case EVENT_TYPE_ACTIVITY_TASK_FAILED:
      apply_activity_end(event.activity_task_failed_event_attributes().scheduled_event_id(), true);
      break;
    case EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
      apply_activity_end(event.activity_task_timed_out_event_attributes().scheduled_event_id(),
                         true);
      break;
    case EVENT_TYPE_ACTIVITY_TASK_CANCELED:
      apply_activity_end(event.activity_task_canceled_event_attributes().scheduled_event_id(),
                         false);
      break;
    case EVENT_TYPE_TIMER_FIRED: {
      const auto& fired = event.timer_fired_event_attributes();
      const auto timer = timers_.find(fired.timer_id());
      if (timer == timers_.end() || timer->second.state != State::kPending) {
        fail(absl::StrCat("timer ", fired.timer_id(), " fired and was not running"));
        break;
      }
      expect_equal(fired.started_event_id(), timer->second.started_id, "a timer's started event");
      timer->second.state = State::kFired;
      break;
    }
    case EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
    case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
      is_closed_ = true;
      break;
    default:
      if (apply_update_event(event)) {
        ++next_id_;
        return error_.empty();
      }
      if (apply_other_run_event(event)) break;
      apply_command_event(event);
      ++next_id_;
      return error_.empty();
  }
  const bool follows_commands = event.event_type() != EVENT_TYPE_WORKFLOW_TASK_COMPLETED;
  if (follows_commands && !expected_.empty()) {
    fail(absl::StrCat("event of type ", event.event_type(), " stands where the event of command ",
                      expected_.front().command_type(), " belongs"));
  }
  ++next_id_;
  return error_.empty();
}

void Replay::apply_task_event(const HistoryEvent& event) {
  switch (event.event_type()) {
    case EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
      scheduled_id_ = event.event_id();
      return;
    case EVENT_TYPE_WORKFLOW_TASK_STARTED:
      expect_equal(event.workflow_task_started_event_attributes().scheduled_event_id(),
                   scheduled_id_, "a task's scheduled event");
      started_id_ = event.event_id();
      has_decided_ = false;
      return;
    case EVENT_TYPE_WORKFLOW_TASK_COMPLETED: {
      const auto& completed = event.workflow_task_completed_event_attributes();
      expect_equal(completed.scheduled_event_id(), scheduled_id_, "a task's scheduled event");
      expect_equal(completed.started_event_id(), started_id_, "a task's started event");
      expect_equal(event.event_id(), started_id_ + 1, "a task's completed event");
      if (!has_decided_) decide();
      expected_.assign(commands_.begin(), commands_.end());
      completed_id_ = event.event_id();
      completed_started_id_ = started_id_;
      admitted_.clear();
      has_decided_ = false;
      return;
    }
    default:
      // What was decided for this task never happened. Only a fresh replay may see such an event:
      // after it the server sends the whole history.
      if (has_decided_) fail("a task that this worker answered is said to have failed");
  }
}

Replay::Child* Replay::find_child(int64_t initiated_id) {
  for (auto& [id, child] : children_) {
    if (child.initiated_id == initiated_id) return &child;
  }
  fail(absl::StrCat("something happened to a child that was never asked for: ", initiated_id));
  return nullptr;
}

template <typename Attributes>
void Replay::apply_child_end(const Attributes& attributes) {
  auto* child = find_child(attributes.initiated_event_id());
  if (child == nullptr) return;
  if (child->has_ended) fail("a child ended twice");
  expect_equal(attributes.started_event_id(), child->started_id, "a child's started event");
  if (child->started_id == 0) fail("a child ended that was never started");
  child->has_ended = true;
}

// What happened to other runs. False if the event is of another kind.
bool Replay::apply_other_run_event(const HistoryEvent& event) {
  const auto sent = [&](int64_t initiated_id) {
    const auto found = sent_.find(initiated_id);
    if (found == sent_.end() || found->second) return fail("a signal to another run ended twice");
    found->second = true;
  };
  switch (event.event_type()) {
    case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED: {
      auto* child = find_child(
          event.child_workflow_execution_started_event_attributes().initiated_event_id());
      if (child == nullptr) return true;
      if (child->started_id != 0 || child->has_ended) fail("a child started twice");
      child->started_id = event.event_id();
      return true;
    }
    case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: {
      auto* child = find_child(
          event.start_child_workflow_execution_failed_event_attributes().initiated_event_id());
      if (child == nullptr) return true;
      if (child->started_id != 0 || child->has_ended) fail("a started child was not started");
      child->has_ended = true;
      return true;
    }
    case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
      apply_child_end(event.child_workflow_execution_completed_event_attributes());
      return true;
    case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
      apply_child_end(event.child_workflow_execution_failed_event_attributes());
      return true;
    case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
      apply_child_end(event.child_workflow_execution_canceled_event_attributes());
      return true;
    case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
      apply_child_end(event.child_workflow_execution_timed_out_event_attributes());
      return true;
    case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
      apply_child_end(event.child_workflow_execution_terminated_event_attributes());
      return true;
    case EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
      sent(event.external_workflow_execution_signaled_event_attributes().initiated_event_id());
      return true;
    case EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
      sent(event.signal_external_workflow_execution_failed_event_attributes().initiated_event_id());
      return true;
    default:
      return false;
  }
}

// The worker's answers to updates, which it gives before all else that it decides.
bool Replay::apply_update_event(const HistoryEvent& event) {
  if (event.has_workflow_execution_update_accepted_event_attributes()) {
    open_updates_.push_back(
        event.workflow_execution_update_accepted_event_attributes().protocol_instance_id());
  } else if (event.has_workflow_execution_update_completed_event_attributes()) {
    const auto& id =
        event.workflow_execution_update_completed_event_attributes().meta().update_id();
    if (std::erase(open_updates_, id) != 1) fail("an update was completed that is not open");
  } else if (event.has_workflow_execution_update_admitted_event_attributes()) {
    if (!expected_.empty()) fail("an update is admitted among a task's commands");
    admitted_.push_back(event.workflow_execution_update_admitted_event_attributes().request());
    return true;
  } else {
    return false;
  }
  if (expected_.size() != commands_.size()) fail("an update stands among the program's commands");
  return true;
}

void Replay::apply_activity_end(int64_t scheduled_id, bool has_failed) {
  for (auto& [id, activity] : activities_) {
    if (activity.scheduled_id != scheduled_id) continue;
    if (activity.has_ended) fail(absl::StrCat("activity ", id, " ended twice"));
    activity.has_ended = true;
    activity.has_failed = has_failed;
    return;
  }
  fail(absl::StrCat("an activity ended that was never scheduled: ", scheduled_id));
}

// Each command has exactly one event, in the order of the commands.
void Replay::apply_command_event(const HistoryEvent& event) {
  if (expected_.empty()) {
    fail(absl::StrCat("event of type ", event.event_type(), " has no command"));
    return;
  }
  const Command command = expected_.front();
  expected_.pop_front();
  const auto check = [&](const auto& attributes, CommandType type) {
    expect_equal(type, command.command_type(), "the event's command");
    expect_equal(attributes.workflow_task_completed_event_id(), completed_id_,
                 "the completed task of a command's event");
  };
  switch (event.event_type()) {
    case EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: {
      const auto& scheduled = event.activity_task_scheduled_event_attributes();
      check(scheduled, COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK);
      if (scheduled.activity_id() !=
          command.schedule_activity_task_command_attributes().activity_id()) {
        fail("another activity was scheduled than the program asks for");
      }
      activities_[scheduled.activity_id()].scheduled_id = event.event_id();
      return;
    }
    case EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED: {
      const auto& asked = event.activity_task_cancel_requested_event_attributes();
      check(asked, COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK);
      expect_equal(asked.scheduled_event_id(),
                   command.request_cancel_activity_task_command_attributes().scheduled_event_id(),
                   "the activity to cancel");
      return;
    }
    case EVENT_TYPE_TIMER_STARTED: {
      const auto& started = event.timer_started_event_attributes();
      check(started, COMMAND_TYPE_START_TIMER);
      if (started.timer_id() != command.start_timer_command_attributes().timer_id()) {
        fail("another timer was started than the program asks for");
      }
      timers_[started.timer_id()].started_id = event.event_id();
      return;
    }
    case EVENT_TYPE_TIMER_CANCELED: {
      const auto& canceled = event.timer_canceled_event_attributes();
      check(canceled, COMMAND_TYPE_CANCEL_TIMER);
      expect_equal(canceled.started_event_id(), timers_[canceled.timer_id()].started_id,
                   "a timer's started event");
      return;
    }
    case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: {
      const auto& initiated = event.start_child_workflow_execution_initiated_event_attributes();
      check(initiated, COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION);
      if (initiated.workflow_id() !=
          command.start_child_workflow_execution_command_attributes().workflow_id()) {
        fail("another child was started than the program asks for");
      }
      children_[initiated.workflow_id()].initiated_id = event.event_id();
      return;
    }
    case EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
      check(event.signal_external_workflow_execution_initiated_event_attributes(),
            COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION);
      sent_[event.event_id()] = false;
      return;
    case EVENT_TYPE_MARKER_RECORDED:
      check(event.marker_recorded_event_attributes(), COMMAND_TYPE_RECORD_MARKER);
      return;
    case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
      check(event.workflow_execution_completed_event_attributes(),
            COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION);
      break;
    case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
      check(event.workflow_execution_failed_event_attributes(),
            COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION);
      break;
    case EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
      check(event.workflow_execution_continued_as_new_event_attributes(),
            COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION);
      break;
    case EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
      check(event.workflow_execution_canceled_event_attributes(),
            COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION);
      break;
    default:
      fail(absl::StrCat("event of type ", event.event_type(), " is unknown to the worker"));
      return;
  }
  is_closed_ = true;
}

}  // namespace fairlead::sim
