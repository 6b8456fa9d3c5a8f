// Reading events back: the other half of event_attributes.cc and other_run_events.cc.

#include "api/temporal/asked.h"
#include "api/temporal/convert.h"
#include "api/temporal/event_attributes.h"

// Fields that the API calls deprecated are still sent by workers that people run.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fairlead::api {

namespace {

using namespace temporal::api::history::v1;
namespace enums = temporal::api::enums::v1;

void read_run(const temporal::api::common::v1::WorkflowExecution& run, model::RunName* name) {
  name->set_workflow_id(run.workflow_id());
  name->set_run_id(run.run_id());
}

void read_reset_points(const temporal::api::workflow::v1::ResetPoints& points,
                       model::WorkflowStarted& known) {
  for (const auto& point : points.points()) {
    auto& read = *known.add_reset_points();
    read.mutable_build()->set_binary_checksum(point.binary_checksum());
    read.mutable_build()->set_build_id(point.build_id());
    read.set_run_id(point.run_id());
    read.set_completed_id(point.first_workflow_task_completed_id());
    read.set_created_ns(time_of(point.create_time()));
    read.set_expires_ns(time_of(point.expire_time()));
    read.set_is_resettable(point.resettable());
  }
}

void workflow_started(const WorkflowExecutionStartedEventAttributes& a,
                      model::WorkflowStarted& known) {
  known.set_workflow_type(a.workflow_type().name());
  known.set_task_queue(a.task_queue().name());
  known.set_execution_timeout_ns(duration_or_zero(a.workflow_execution_timeout()));
  known.set_run_timeout_ns(duration_or_zero(a.workflow_run_timeout()));
  known.set_task_timeout_ns(duration_or_zero(a.workflow_task_timeout()));
  known.set_execution_expiration_ns(time_of(a.workflow_execution_expiration_time()));
  known.set_first_task_backoff_ns(duration_or_zero(a.first_workflow_task_backoff()));
  known.set_original_run_id(a.original_execution_run_id());
  known.set_first_run_id(a.first_execution_run_id());
  known.set_continued_run_id(a.continued_execution_run_id());
  known.set_initiator(static_cast<model::Initiator>(a.initiator()));
  known.set_attempt(a.attempt());
  known.set_cron_schedule(a.cron_schedule());
  known.set_eager_accepted(a.eager_execution_accepted());
  if (a.has_retry_policy()) *known.mutable_retry_policy() = read_retry_policy(a.retry_policy());
  if (a.has_priority()) *known.mutable_priority() = read_priority(a.priority());
  if (a.has_root_workflow_execution()) {
    read_run(a.root_workflow_execution(), known.mutable_root());
  }
  if (a.has_parent_workflow_execution()) {
    auto& parent = *known.mutable_parent();
    parent.set_namespace_name(a.parent_workflow_namespace());
    parent.set_namespace_id(a.parent_workflow_namespace_id());
    read_run(a.parent_workflow_execution(), parent.mutable_run());
    parent.set_initiated_id(a.parent_initiated_event_id());
  }
  read_reset_points(a.prev_auto_reset_points(), known);
  keep_fields(a.memo().fields(), known.mutable_memo());
  keep_fields(a.search_attributes().indexed_fields(), known.mutable_search_attributes());
  for (const auto& callback : a.completion_callbacks()) {
    known.add_callbacks(callback.SerializeAsString());
  }
}

void options_updated(const WorkflowExecutionOptionsUpdatedEventAttributes& a,
                     model::WorkflowOptionsUpdated& known) {
  // Said of every change of an operator's; a priority that was taken away is not.
  if (a.has_priority() || a.unset_versioning_override()) {
    *known.mutable_priority() = read_priority(a.priority());
  }
  known.set_attached_request_id(a.attached_request_id());
  for (const auto& callback : a.attached_completion_callbacks()) {
    known.add_attached_callbacks(callback.SerializeAsString());
  }
}

void task_scheduled(const WorkflowTaskScheduledEventAttributes& a,
                    model::WorkflowTaskScheduled& known) {
  known.mutable_queue()->set_name(a.task_queue().name());
  known.mutable_queue()->set_sticky(a.task_queue().kind() == enums::TASK_QUEUE_KIND_STICKY);
  known.mutable_queue()->set_normal_name(a.task_queue().normal_name());
  known.set_start_to_close_ns(duration_or_zero(a.start_to_close_timeout()));
  known.set_attempt(a.attempt());
}

void task_started(const WorkflowTaskStartedEventAttributes& a, model::WorkflowTaskStarted& known) {
  known.set_scheduled_id(a.scheduled_event_id());
  known.set_identity(a.identity());
  known.set_request_id(a.request_id());
  known.set_history_bytes(a.history_size_bytes());
}

template <typename A>
void task_ended(const A& a, model::WorkflowTaskEnded& known) {
  known.set_scheduled_id(a.scheduled_event_id());
  known.set_started_id(a.started_event_id());
  if constexpr (requires { a.timeout_type(); }) {
    known.set_timeout_type(static_cast<model::TimeoutType>(a.timeout_type()));
  }
  if constexpr (requires { a.cause(); }) known.set_failed_cause(a.cause());
  if constexpr (requires { a.sdk_metadata(); }) *known.mutable_build() = read_build(a);
}

void activity_scheduled(const ActivityTaskScheduledEventAttributes& a,
                        model::ActivityScheduled& known) {
  known.set_activity_id(a.activity_id());
  known.set_activity_type(a.activity_type().name());
  known.set_task_queue(a.task_queue().name());
  known.set_schedule_to_close_ns(duration_or_zero(a.schedule_to_close_timeout()));
  known.set_schedule_to_start_ns(duration_or_zero(a.schedule_to_start_timeout()));
  known.set_start_to_close_ns(duration_or_zero(a.start_to_close_timeout()));
  known.set_heartbeat_ns(duration_or_zero(a.heartbeat_timeout()));
  known.set_workflow_task_completed_id(a.workflow_task_completed_event_id());
  *known.mutable_retry_policy() = read_retry_policy(a.retry_policy());
  if (a.has_priority()) *known.mutable_priority() = read_priority(a.priority());
}

void activity_started(const ActivityTaskStartedEventAttributes& a, model::ActivityStarted& known) {
  known.set_scheduled_id(a.scheduled_event_id());
  known.set_identity(a.identity());
  known.set_request_id(a.request_id());
  known.set_attempt(a.attempt());
}

template <typename A>
void activity_ended(const A& a, model::ActivityEnded& known) {
  known.set_scheduled_id(a.scheduled_event_id());
  known.set_started_id(a.started_event_id());
}

void timer_started(const TimerStartedEventAttributes& a, model::TimerStarted& known) {
  known.set_timer_id(a.timer_id());
  known.set_start_to_fire_ns(duration_or_zero(a.start_to_fire_timeout()));
  known.set_workflow_task_completed_id(a.workflow_task_completed_event_id());
}

template <typename A>
void timer_ended(const A& a, model::TimerEnded& known) {
  known.set_timer_id(a.timer_id());
  known.set_started_id(a.started_event_id());
}

template <typename A, typename Fields>
void command_recorded(const A& a, const Fields& fields, model::CommandRecorded& known) {
  known.set_workflow_task_completed_id(a.workflow_task_completed_event_id());
  note_upserts(fields, *known.mutable_upserts());
}

void child_initiated(const HistoryEvent& event, model::ChildInitiated& known) {
  const auto& a = event.start_child_workflow_execution_initiated_event_attributes();
  known.set_namespace_name(a.namespace_());
  known.set_namespace_id(a.namespace_id());
  known.set_workflow_id(a.workflow_id());
  known.set_workflow_type(a.workflow_type().name());
  known.set_task_queue(a.task_queue().name());
  known.set_execution_timeout_ns(duration_or_zero(a.workflow_execution_timeout()));
  known.set_run_timeout_ns(duration_or_zero(a.workflow_run_timeout()));
  known.set_task_timeout_ns(duration_or_zero(a.workflow_task_timeout()));
  known.set_parent_close_policy(static_cast<model::ParentClosePolicy>(a.parent_close_policy()));
  known.set_reuse_policy(a.workflow_id_reuse_policy());
  if (a.has_retry_policy()) *known.mutable_retry_policy() = read_retry_policy(a.retry_policy());
  known.set_cron_schedule(a.cron_schedule());
  if (a.has_priority()) *known.mutable_priority() = read_priority(a.priority());
  known.set_workflow_task_completed_id(a.workflow_task_completed_event_id());
  keep_fields(a.memo().fields(), known.mutable_memo());
  keep_fields(a.search_attributes().indexed_fields(), known.mutable_search_attributes());
  known.set_start_door(started_door(a, a.workflow_id()));
  known.set_started_door(child_started_door(a));
  known.set_user_metadata(event.user_metadata().SerializeAsString());
  known.set_start_envelope(started_envelope(known.user_metadata()));
}

template <typename A>
void child_event(const A& a, model::ChildEvent& known) {
  known.set_namespace_name(a.namespace_());
  known.set_namespace_id(a.namespace_id());
  known.set_workflow_type(a.workflow_type().name());
  known.set_initiated_id(a.initiated_event_id());
  if constexpr (requires { a.workflow_execution(); }) {
    read_run(a.workflow_execution(), known.mutable_run());
  } else {
    known.mutable_run()->set_workflow_id(a.workflow_id());
  }
  if constexpr (requires { a.started_event_id(); }) known.set_started_id(a.started_event_id());
  if constexpr (requires { a.retry_state(); }) {
    known.set_retry_state(static_cast<model::RetryState>(a.retry_state()));
  }
  if constexpr (requires { a.cause(); }) known.set_failed_cause(a.cause());
}

template <typename A>
void external_event(const A& a, model::ExternalEvent& known) {
  known.set_namespace_name(a.namespace_());
  known.set_namespace_id(a.namespace_id());
  read_run(a.workflow_execution(), known.mutable_run());
  if constexpr (requires { a.initiated_event_id(); }) {
    known.set_initiated_id(a.initiated_event_id());
  } else {
    known.set_workflow_task_completed_id(a.workflow_task_completed_event_id());
    known.set_children_only(a.child_workflow_only());
  }
  if constexpr (requires { a.cause(); }) known.set_failed_cause(a.cause());
}

void continued_as_new(const WorkflowExecutionContinuedAsNewEventAttributes& a,
                      model::WorkflowClosed& known) {
  known.set_new_run_id(a.new_execution_run_id());
  known.set_workflow_task_completed_id(a.workflow_task_completed_event_id());
  auto& next = *known.mutable_next();
  next.set_workflow_type(a.workflow_type().name());
  next.set_task_queue(a.task_queue().name());
  next.set_run_timeout_ns(duration_or_zero(a.workflow_run_timeout()));
  next.set_task_timeout_ns(duration_or_zero(a.workflow_task_timeout()));
  next.set_backoff_ns(duration_or_zero(a.backoff_start_interval()));
  next.set_initiator(static_cast<model::Initiator>(a.initiator()));
}

void update_accepted(const WorkflowExecutionUpdateAcceptedEventAttributes& a,
                     model::UpdateEvent& known) {
  known.set_update_id(a.protocol_instance_id());
  if (a.has_accepted_request()) known.set_request(a.accepted_request().SerializeAsString());
}

}  // namespace

model::Build read_build(const WorkflowTaskCompletedEventAttributes& a) {
  model::Build build;
  build.set_binary_checksum(a.binary_checksum());
  build.set_build_id(a.has_deployment_version() ? a.deployment_version().build_id()
                     : a.has_deployment()       ? a.deployment().build_id()
                                                : a.worker_version().build_id());
  return build;
}

void read_known_attributes(const HistoryEvent& e, model::Event& event) {
  switch (event.kind()) {
    case model::WORKFLOW_STARTED:
      return workflow_started(e.workflow_execution_started_event_attributes(),
                              *event.mutable_workflow_started());
    case model::WORKFLOW_TASK_SCHEDULED:
      return task_scheduled(e.workflow_task_scheduled_event_attributes(),
                            *event.mutable_workflow_task_scheduled());
    case model::WORKFLOW_TASK_STARTED:
      return task_started(e.workflow_task_started_event_attributes(),
                          *event.mutable_workflow_task_started());
    case model::WORKFLOW_TASK_COMPLETED:
      return task_ended(e.workflow_task_completed_event_attributes(),
                        *event.mutable_workflow_task_ended());
    case model::WORKFLOW_TASK_FAILED:
      return task_ended(e.workflow_task_failed_event_attributes(),
                        *event.mutable_workflow_task_ended());
    case model::WORKFLOW_TASK_TIMED_OUT:
      return task_ended(e.workflow_task_timed_out_event_attributes(),
                        *event.mutable_workflow_task_ended());
    case model::ACTIVITY_SCHEDULED:
      return activity_scheduled(e.activity_task_scheduled_event_attributes(),
                                *event.mutable_activity_scheduled());
    case model::ACTIVITY_STARTED:
      return activity_started(e.activity_task_started_event_attributes(),
                              *event.mutable_activity_started());
    case model::ACTIVITY_COMPLETED:
      return activity_ended(e.activity_task_completed_event_attributes(),
                            *event.mutable_activity_ended());
    case model::ACTIVITY_FAILED:
      return activity_ended(e.activity_task_failed_event_attributes(),
                            *event.mutable_activity_ended());
    case model::ACTIVITY_TIMED_OUT:
      return activity_ended(e.activity_task_timed_out_event_attributes(),
                            *event.mutable_activity_ended());
    case model::ACTIVITY_CANCELED:
      return activity_ended(e.activity_task_canceled_event_attributes(),
                            *event.mutable_activity_ended());
    case model::ACTIVITY_CANCEL_REQUESTED:
      event.mutable_activity_cancel_requested()->set_scheduled_id(
          e.activity_task_cancel_requested_event_attributes().scheduled_event_id());
      return;
    case model::TIMER_STARTED:
      return timer_started(e.timer_started_event_attributes(), *event.mutable_timer_started());
    case model::TIMER_FIRED:
      return timer_ended(e.timer_fired_event_attributes(), *event.mutable_timer_ended());
    case model::TIMER_CANCELED:
      return timer_ended(e.timer_canceled_event_attributes(), *event.mutable_timer_ended());
    case model::SEARCH_ATTRIBUTES_UPSERTED: {
      const auto& a = e.upsert_workflow_search_attributes_event_attributes();
      return command_recorded(a, a.search_attributes().indexed_fields(),
                              *event.mutable_command_recorded());
    }
    case model::PROPERTIES_MODIFIED: {
      const auto& a = e.workflow_properties_modified_event_attributes();
      return command_recorded(a, a.upserted_memo().fields(), *event.mutable_command_recorded());
    }
    case model::WORKFLOW_OPTIONS_UPDATED:
      return options_updated(e.workflow_execution_options_updated_event_attributes(),
                             *event.mutable_workflow_options_updated());
    case model::UPDATE_ADMITTED: {
      const auto& a = e.workflow_execution_update_admitted_event_attributes();
      event.mutable_update_event()->set_update_id(a.request().meta().update_id());
      event.mutable_update_event()->set_request(a.request().SerializeAsString());
      return;
    }
    case model::UPDATE_ACCEPTED:
      return update_accepted(e.workflow_execution_update_accepted_event_attributes(),
                             *event.mutable_update_event());
    case model::UPDATE_COMPLETED: {
      const auto& a = e.workflow_execution_update_completed_event_attributes();
      event.mutable_update_event()->set_update_id(a.meta().update_id());
      event.mutable_update_event()->set_accepted_id(a.accepted_event_id());
      return;
    }
    case model::WORKFLOW_COMPLETED:
    case model::WORKFLOW_FAILED:
    case model::WORKFLOW_TIMED_OUT:
    case model::WORKFLOW_CANCELED:
    case model::WORKFLOW_TERMINATED:
      event.mutable_workflow_closed();
      return;
    default:
      return read_other_run_attributes(e, event);
  }
}

void read_other_run_attributes(const HistoryEvent& e, model::Event& event) {
  switch (event.kind()) {
    case model::WORKFLOW_CONTINUED_AS_NEW:
      return continued_as_new(e.workflow_execution_continued_as_new_event_attributes(),
                              *event.mutable_workflow_closed());
    case model::CHILD_INITIATED:
      return child_initiated(e, *event.mutable_child_initiated());
    case model::CHILD_START_FAILED:
      return child_event(e.start_child_workflow_execution_failed_event_attributes(),
                         *event.mutable_child_event());
    case model::CHILD_STARTED:
      return child_event(e.child_workflow_execution_started_event_attributes(),
                         *event.mutable_child_event());
    case model::CHILD_COMPLETED:
      return child_event(e.child_workflow_execution_completed_event_attributes(),
                         *event.mutable_child_event());
    case model::CHILD_FAILED:
      return child_event(e.child_workflow_execution_failed_event_attributes(),
                         *event.mutable_child_event());
    case model::CHILD_CANCELED:
      return child_event(e.child_workflow_execution_canceled_event_attributes(),
                         *event.mutable_child_event());
    case model::CHILD_TIMED_OUT:
      return child_event(e.child_workflow_execution_timed_out_event_attributes(),
                         *event.mutable_child_event());
    case model::CHILD_TERMINATED:
      return child_event(e.child_workflow_execution_terminated_event_attributes(),
                         *event.mutable_child_event());
    case model::SIGNAL_EXTERNAL_INITIATED: {
      const auto& a = e.signal_external_workflow_execution_initiated_event_attributes();
      external_event(a, *event.mutable_external_event());
      event.mutable_external_event()->set_target_door(signaled_door(a));
      return;
    }
    case model::CANCEL_EXTERNAL_INITIATED: {
      const auto& a = e.request_cancel_external_workflow_execution_initiated_event_attributes();
      external_event(a, *event.mutable_external_event());
      event.mutable_external_event()->set_target_door(cancel_door(a));
      return;
    }
    case model::SIGNAL_EXTERNAL_FAILED:
      return external_event(e.signal_external_workflow_execution_failed_event_attributes(),
                            *event.mutable_external_event());
    case model::CANCEL_EXTERNAL_FAILED:
      return external_event(e.request_cancel_external_workflow_execution_failed_event_attributes(),
                            *event.mutable_external_event());
    case model::EXTERNAL_SIGNALED:
      return external_event(e.external_workflow_execution_signaled_event_attributes(),
                            *event.mutable_external_event());
    case model::EXTERNAL_CANCEL_REQUESTED:
      return external_event(e.external_workflow_execution_cancel_requested_event_attributes(),
                            *event.mutable_external_event());
    default:
      return;
  }
}

}  // namespace fairlead::api
