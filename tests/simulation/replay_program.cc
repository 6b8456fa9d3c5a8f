// The other half of a replay: what the program does with what it has seen.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "simulation/replay.h"
#include "temporal/api/enums/v1/command_type.pb.h"
#include "temporal/api/enums/v1/workflow.pb.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;

namespace {

void set(google::protobuf::Duration* duration, DurationNs value) {
  duration->set_seconds(value / kSecond);
  duration->set_nanos(static_cast<int32_t>(value % kSecond));
}

}  // namespace

std::vector<Command> Replay::decide() {
  commands_.clear();
  run();
  has_decided_ = true;
  return commands_;
}

Command& Replay::add(int type) {
  commands_.emplace_back().set_command_type(static_cast<CommandType>(type));
  return commands_.back();
}

void Replay::run() {
  if (is_done_) return;
  if (is_cancel_requested_ && program_.obeys_cancel) {
    add(COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION)
        .mutable_cancel_workflow_execution_command_attributes();
    is_done_ = true;
    return;
  }
  while (step_ < program_.steps.size()) {
    const bool enters = !has_entered_;
    has_entered_ = true;
    if (!run_step(program_.steps[step_], step_, enters)) return;
    ++step_;
    has_entered_ = false;
  }
  if (program_.continues) return continue_as_new();
  bool has_failed = program_.fails_at_end;
  for (const auto& [id, activity] : activities_) {
    has_failed |= activity.has_failed && program_.fails_with_activity;
  }
  close(has_failed);
}

void Replay::close(bool has_failed) {
  is_done_ = true;
  if (has_failed) {
    auto* failure = add(COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION)
                        .mutable_fail_workflow_execution_command_attributes()
                        ->mutable_failure();
    failure->set_message("the program says so");
    failure->mutable_application_failure_info()->set_type("ProgramFailure");
  } else {
    add(COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION)
        .mutable_complete_workflow_execution_command_attributes()
        ->mutable_result()
        ->add_payloads()
        ->set_data(absl::StrCat("done after ", signals_, " signals"));
  }
}

bool Replay::run_step(const ProgramStep& step, size_t index, bool enters) {
  const std::string timer = absl::StrCat("t", index);
  const auto activity_id = [index](int i) { return absl::StrCat("a", index, ".", i); };
  switch (step.kind) {
    case ProgramStep::Kind::kActivities: {
      bool all_ended = true;
      for (int i = 0; i < step.count; ++i) {
        if (enters) schedule_activity(activity_id(i), false);
        all_ended &= activities_[activity_id(i)].has_ended;
      }
      return all_ended;
    }
    case ProgramStep::Kind::kTimer:
      if (enters) start_timer(timer, step.time);
      return timers_[timer].state == State::kFired;
    case ProgramStep::Kind::kSignals:
      if (enters && signals_ - signals_used_ < step.count) start_timer(timer, step.time);
      if (signals_ - signals_used_ >= step.count) {
        if (timers_.contains(timer)) cancel_timer(timer);
        signals_used_ += step.count;
        return true;
      }
      return timers_[timer].state == State::kFired;
    case ProgramStep::Kind::kCancelTimer:
      if (enters) {
        start_timer(timer, step.time);
        start_timer(absl::StrCat("long-", timer), step.time + 5 * kMinute);
      }
      if (timers_[timer].state != State::kFired) return false;
      cancel_timer(absl::StrCat("long-", timer));
      return true;
    case ProgramStep::Kind::kCancelActivity: {
      if (enters) {
        schedule_activity(activity_id(0), true);
        start_timer(timer, step.time);
      }
      auto& activity = activities_[activity_id(0)];
      if (activity.has_ended) {
        cancel_timer(timer);
        return true;
      }
      if (timers_[timer].state == State::kFired && !activity.is_cancel_asked) {
        activity.is_cancel_asked = true;
        add(COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK)
            .mutable_request_cancel_activity_task_command_attributes()
            ->set_scheduled_event_id(activity.scheduled_id);
      }
      return false;
    }
    case ProgramStep::Kind::kChildren: {
      bool all_ended = true;
      for (int i = 0; i < step.count; ++i) {
        const auto id = absl::StrCat(workflow_id_, "/", index, ".", i);
        if (enters) start_child(id);
        all_ended &= children_[id].has_ended;
      }
      return all_ended;
    }
    case ProgramStep::Kind::kSignalOther: {
      if (enters) {
        auto* command = add(COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION)
                            .mutable_signal_external_workflow_execution_command_attributes();
        command->mutable_execution()->set_workflow_id(absl::StrCat(workflow_id_, "/0.0"));
        command->set_signal_name("poke");
        command->mutable_input()->add_payloads()->set_data(
            absl::StrCat("from ", input_, " at ", index));
        return false;
      }
      return std::all_of(sent_.begin(), sent_.end(), [](const auto& one) { return one.second; });
    }
    case ProgramStep::Kind::kMarker:
      add(COMMAND_TYPE_RECORD_MARKER)
          .mutable_record_marker_command_attributes()
          ->set_marker_name(absl::StrCat("m", index));
      return true;
  }
  return true;
}

void Replay::schedule_activity(const std::string& id, bool is_long) {
  activities_[id];
  const auto shape = make_activity(input_, id, is_long);
  auto* command =
      add(COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK).mutable_schedule_activity_task_command_attributes();
  command->set_activity_id(id);
  command->mutable_activity_type()->set_name(is_long ? "long" : "short");
  command->mutable_task_queue()->set_name("activities");
  command->mutable_input()->add_payloads()->set_data(absl::StrCat("input of ", id));
  set(command->mutable_start_to_close_timeout(), shape.start_to_close);
  if (shape.schedule_to_close > 0) {
    set(command->mutable_schedule_to_close_timeout(), shape.schedule_to_close);
  }
  if (shape.schedule_to_start > 0) {
    set(command->mutable_schedule_to_start_timeout(), shape.schedule_to_start);
  }
  if (shape.heartbeat > 0) set(command->mutable_heartbeat_timeout(), shape.heartbeat);
  auto* retry = command->mutable_retry_policy();
  set(retry->mutable_initial_interval(), shape.retry_interval + kMillisecond);
  retry->set_backoff_coefficient(1.5);
  set(retry->mutable_maximum_interval(), 5 * kSecond);
  retry->set_maximum_attempts(shape.attempts_max);
  command->mutable_priority()->set_priority_key(shape.priority);
}

void Replay::start_child(const std::string& id) {
  children_[id];
  auto* command = add(COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION)
                      .mutable_start_child_workflow_execution_command_attributes();
  command->set_workflow_id(id);
  command->mutable_workflow_type()->set_name("program");
  command->mutable_input()->add_payloads()->set_data(absl::StrCat(input_, "/", id));
  command->set_parent_close_policy(
      static_cast<ParentClosePolicy>(make_parent_close_policy(input_, id)));
  if (command->parent_close_policy() == PARENT_CLOSE_POLICY_ABANDON) {
    command->mutable_retry_policy()->set_maximum_attempts(2);
  }
}

void Replay::continue_as_new() {
  is_done_ = true;
  auto* command = add(COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION)
                      .mutable_continue_as_new_workflow_execution_command_attributes();
  command->mutable_input()->add_payloads()->set_data(input_ + "~");
}

void Replay::start_timer(const std::string& id, DurationNs time) {
  timers_[id];
  auto* command = add(COMMAND_TYPE_START_TIMER).mutable_start_timer_command_attributes();
  command->set_timer_id(id);
  set(command->mutable_start_to_fire_timeout(), time);
}

void Replay::cancel_timer(const std::string& id) {
  auto& timer = timers_[id];
  if (timer.state != State::kPending) return;
  timer.state = State::kCanceled;
  add(COMMAND_TYPE_CANCEL_TIMER).mutable_cancel_timer_command_attributes()->set_timer_id(id);
}

}  // namespace fairlead::sim
