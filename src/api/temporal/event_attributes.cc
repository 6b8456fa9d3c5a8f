#include "api/temporal/event_attributes.h"

#include <string>

#include "api/temporal/codec.h"
#include "api/temporal/pieces.h"
#include "temporal/api/history/v1/message.pb.h"

// A message of the API is filled by each function here, in the order of its field numbers.
// Durations that may be zero are written all the same where SDKs expect the message to be there:
// the TypeScript SDK throws when it is not.
namespace fairlead::api {

namespace {

using namespace temporal::api::history::v1;
namespace enums = temporal::api::enums::v1;
using wire::Writer;

void workflow_started(Writer& writer, const model::WorkflowStarted& known) {
  using A = WorkflowExecutionStartedEventAttributes;
  write_type(writer, A::kWorkflowTypeFieldNumber, known.workflow_type());
  if (known.has_parent()) {
    const auto& parent = known.parent();
    writer.string(A::kParentWorkflowNamespaceFieldNumber, parent.namespace_name());
    write_execution(writer, A::kParentWorkflowExecutionFieldNumber, parent.run().workflow_id(),
                    parent.run().run_id());
    writer.integer(A::kParentInitiatedEventIdFieldNumber, parent.initiated_id());
    writer.string(A::kParentWorkflowNamespaceIdFieldNumber, parent.namespace_id());
  }
  write_task_queue(writer, A::kTaskQueueFieldNumber, known.task_queue());
  if (known.execution_timeout_ns() != 0) {
    writer.duration(A::kWorkflowExecutionTimeoutFieldNumber, known.execution_timeout_ns());
  }
  // A run that was asked for by a command always has one, if only to say that there is none.
  if (known.run_timeout_ns() != 0 || known.has_parent() ||
      known.initiator() == model::BY_WORKFLOW) {
    writer.duration(A::kWorkflowRunTimeoutFieldNumber, known.run_timeout_ns());
  }
  writer.duration(A::kWorkflowTaskTimeoutFieldNumber, known.task_timeout_ns());
  writer.string(A::kContinuedExecutionRunIdFieldNumber, known.continued_run_id());
  writer.integer(A::kInitiatorFieldNumber, known.initiator());
  writer.string(A::kOriginalExecutionRunIdFieldNumber, known.original_run_id());
  writer.string(A::kFirstExecutionRunIdFieldNumber, known.first_run_id());
  if (known.has_retry_policy()) {
    write_retry_policy(writer, A::kRetryPolicyFieldNumber, known.retry_policy());
  }
  writer.integer(A::kAttemptFieldNumber, known.attempt());
  write_time(writer, A::kWorkflowExecutionExpirationTimeFieldNumber,
             known.execution_expiration_ns());
  writer.string(A::kCronScheduleFieldNumber, known.cron_schedule());
  writer.duration(A::kFirstWorkflowTaskBackoffFieldNumber, known.first_task_backoff_ns());
  if (!known.reset_points().empty()) {
    write_reset_points(writer, A::kPrevAutoResetPointsFieldNumber, known.reset_points());
  }
  if (known.has_root()) {
    write_execution(writer, A::kRootWorkflowExecutionFieldNumber, known.root().workflow_id(),
                    known.root().run_id());
  }
  write_priority(writer, A::kPriorityFieldNumber, known.priority());
  writer.boolean(A::kEagerExecutionAcceptedFieldNumber, known.eager_accepted());
  for (const auto& callback : known.callbacks()) {
    writer.bytes(A::kCompletionCallbacksFieldNumber, callback);
  }
}

void options_updated(Writer& writer, const model::WorkflowOptionsUpdated& known) {
  using A = WorkflowExecutionOptionsUpdatedEventAttributes;
  writer.string(A::kAttachedRequestIdFieldNumber, known.attached_request_id());
  for (const auto& callback : known.attached_callbacks()) {
    writer.bytes(A::kAttachedCompletionCallbacksFieldNumber, callback);
  }
  write_priority(writer, A::kPriorityFieldNumber, known.priority());
}

void workflow_completed(Writer& writer, const model::WorkflowClosed& known) {
  using A = WorkflowExecutionCompletedEventAttributes;
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
  writer.string(A::kNewExecutionRunIdFieldNumber, known.new_run_id());
}

void workflow_failed(Writer& writer, const model::WorkflowClosed& known) {
  using A = WorkflowExecutionFailedEventAttributes;
  writer.integer(A::kRetryStateFieldNumber, known.retry_state());
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
  writer.string(A::kNewExecutionRunIdFieldNumber, known.new_run_id());
}

void workflow_timed_out(Writer& writer, const model::WorkflowClosed& known) {
  using A = WorkflowExecutionTimedOutEventAttributes;
  writer.integer(A::kRetryStateFieldNumber, known.retry_state());
  writer.string(A::kNewExecutionRunIdFieldNumber, known.new_run_id());
}

void workflow_canceled(Writer& writer, const model::WorkflowClosed& known) {
  using A = WorkflowExecutionCanceledEventAttributes;
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
}

void workflow_terminated(Writer& writer, const model::WorkflowClosed& known) {
  using A = WorkflowExecutionTerminatedEventAttributes;
  writer.string(A::kReasonFieldNumber, known.reason());
  if (!known.details().empty()) write_json_text(writer, A::kDetailsFieldNumber, known.details());
  writer.string(A::kIdentityFieldNumber, known.identity());
}

void workflow_task_scheduled(Writer& writer, const model::WorkflowTaskScheduled& known) {
  using A = WorkflowTaskScheduledEventAttributes;
  write_task_queue(writer, A::kTaskQueueFieldNumber, known.queue());
  writer.duration(A::kStartToCloseTimeoutFieldNumber, known.start_to_close_ns());
  writer.integer(A::kAttemptFieldNumber, known.attempt());
}

void workflow_task_started(Writer& writer, const model::WorkflowTaskStarted& known) {
  using A = WorkflowTaskStartedEventAttributes;
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.string(A::kIdentityFieldNumber, known.identity());
  writer.string(A::kRequestIdFieldNumber, known.request_id());
  writer.boolean(A::kSuggestContinueAsNewFieldNumber, known.suggest_continue_as_new());
  writer.integer(A::kHistorySizeBytesFieldNumber, known.history_bytes());
  // A packed list of enums whose values fit in a byte each.
  std::string reasons;
  if (known.history_too_large()) {
    reasons.push_back(char{enums::SUGGEST_CONTINUE_AS_NEW_REASON_HISTORY_SIZE_TOO_LARGE});
  }
  if (known.too_many_events()) {
    reasons.push_back(char{enums::SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_HISTORY_EVENTS});
  }
  if (known.too_many_updates()) {
    reasons.push_back(char{enums::SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_UPDATES});
  }
  writer.string(A::kSuggestContinueAsNewReasonsFieldNumber, reasons);
}

void workflow_task_completed(Writer& writer, const model::WorkflowTaskEnded& known) {
  using A = WorkflowTaskCompletedEventAttributes;
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
  writer.string(A::kIdentityFieldNumber, known.identity());
}

void workflow_task_timed_out(Writer& writer, const model::WorkflowTaskEnded& known) {
  using A = WorkflowTaskTimedOutEventAttributes;
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
  writer.integer(A::kTimeoutTypeFieldNumber, known.timeout_type());
}

void workflow_task_failed(Writer& writer, const model::WorkflowTaskEnded& known) {
  using A = WorkflowTaskFailedEventAttributes;
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
  writer.integer(A::kCauseFieldNumber, known.failed_cause());
  if (known.has_failure()) write_failure(writer, A::kFailureFieldNumber, known.failure());
  writer.string(A::kIdentityFieldNumber, known.identity());
  writer.string(A::kBaseRunIdFieldNumber, known.base_run_id());
  writer.string(A::kNewRunIdFieldNumber, known.new_run_id());
}

void activity_scheduled(Writer& writer, const model::ActivityScheduled& known) {
  using A = ActivityTaskScheduledEventAttributes;
  writer.string(A::kActivityIdFieldNumber, known.activity_id());
  write_type(writer, A::kActivityTypeFieldNumber, known.activity_type());
  write_task_queue(writer, A::kTaskQueueFieldNumber, known.task_queue());
  writer.duration(A::kScheduleToCloseTimeoutFieldNumber, known.schedule_to_close_ns());
  writer.duration(A::kScheduleToStartTimeoutFieldNumber, known.schedule_to_start_ns());
  writer.duration(A::kStartToCloseTimeoutFieldNumber, known.start_to_close_ns());
  writer.duration(A::kHeartbeatTimeoutFieldNumber, known.heartbeat_ns());
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
  write_retry_policy(writer, A::kRetryPolicyFieldNumber, known.retry_policy());
  write_priority(writer, A::kPriorityFieldNumber, known.priority());
}

void activity_started(Writer& writer, const model::ActivityStarted& known) {
  using A = ActivityTaskStartedEventAttributes;
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.string(A::kIdentityFieldNumber, known.identity());
  writer.string(A::kRequestIdFieldNumber, known.request_id());
  writer.integer(A::kAttemptFieldNumber, known.attempt());
  if (known.has_last_failure()) {
    write_failure(writer, A::kLastFailureFieldNumber, known.last_failure());
  }
}

void activity_completed(Writer& writer, const model::ActivityEnded& known) {
  using A = ActivityTaskCompletedEventAttributes;
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
  writer.string(A::kIdentityFieldNumber, known.identity());
}

void activity_failed(Writer& writer, const model::ActivityEnded& known) {
  using A = ActivityTaskFailedEventAttributes;
  if (known.has_failure()) write_failure(writer, A::kFailureFieldNumber, known.failure());
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
  writer.string(A::kIdentityFieldNumber, known.identity());
  writer.integer(A::kRetryStateFieldNumber, known.retry_state());
}

void activity_timed_out(Writer& writer, const model::ActivityEnded& known) {
  using A = ActivityTaskTimedOutEventAttributes;
  if (known.has_failure()) write_failure(writer, A::kFailureFieldNumber, known.failure());
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
  writer.integer(A::kRetryStateFieldNumber, known.retry_state());
}

void activity_canceled(Writer& writer, const model::ActivityEnded& known) {
  using A = ActivityTaskCanceledEventAttributes;
  if (known.canceled_before_start()) {
    write_json_text(writer, A::kDetailsFieldNumber, "ACTIVITY_ID_NOT_STARTED");
  }
  writer.integer(A::kLatestCancelRequestedEventIdFieldNumber, known.latest_cancel_requested_id());
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
  writer.string(A::kIdentityFieldNumber, known.identity());
}

void activity_cancel_requested(Writer& writer, const model::ActivityCancelRequested& known) {
  using A = ActivityTaskCancelRequestedEventAttributes;
  writer.integer(A::kScheduledEventIdFieldNumber, known.scheduled_id());
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
}

void timer_started(Writer& writer, const model::TimerStarted& known) {
  using A = TimerStartedEventAttributes;
  writer.string(A::kTimerIdFieldNumber, known.timer_id());
  writer.duration(A::kStartToFireTimeoutFieldNumber, known.start_to_fire_ns());
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
}

void timer_fired(Writer& writer, const model::TimerEnded& known) {
  using A = TimerFiredEventAttributes;
  writer.string(A::kTimerIdFieldNumber, known.timer_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
}

void timer_canceled(Writer& writer, const model::TimerEnded& known) {
  using A = TimerCanceledEventAttributes;
  writer.string(A::kTimerIdFieldNumber, known.timer_id());
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
  writer.string(A::kIdentityFieldNumber, known.identity());
}

template <typename A>
void command_recorded(Writer& writer, const model::CommandRecorded& known) {
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
}

}  // namespace

void write_known_attributes(Writer& writer, const model::Event& event) {
  switch (event.kind()) {
    case model::WORKFLOW_STARTED:
      return workflow_started(writer, event.workflow_started());
    case model::WORKFLOW_COMPLETED:
      return workflow_completed(writer, event.workflow_closed());
    case model::WORKFLOW_FAILED:
      return workflow_failed(writer, event.workflow_closed());
    case model::WORKFLOW_TIMED_OUT:
      return workflow_timed_out(writer, event.workflow_closed());
    case model::WORKFLOW_CANCELED:
      return workflow_canceled(writer, event.workflow_closed());
    case model::WORKFLOW_TERMINATED:
      return workflow_terminated(writer, event.workflow_closed());
    case model::WORKFLOW_TASK_SCHEDULED:
      return workflow_task_scheduled(writer, event.workflow_task_scheduled());
    case model::WORKFLOW_TASK_STARTED:
      return workflow_task_started(writer, event.workflow_task_started());
    case model::WORKFLOW_TASK_COMPLETED:
      return workflow_task_completed(writer, event.workflow_task_ended());
    case model::WORKFLOW_TASK_TIMED_OUT:
      return workflow_task_timed_out(writer, event.workflow_task_ended());
    case model::WORKFLOW_TASK_FAILED:
      return workflow_task_failed(writer, event.workflow_task_ended());
    case model::ACTIVITY_SCHEDULED:
      return activity_scheduled(writer, event.activity_scheduled());
    case model::ACTIVITY_STARTED:
      return activity_started(writer, event.activity_started());
    case model::ACTIVITY_COMPLETED:
      return activity_completed(writer, event.activity_ended());
    case model::ACTIVITY_FAILED:
      return activity_failed(writer, event.activity_ended());
    case model::ACTIVITY_TIMED_OUT:
      return activity_timed_out(writer, event.activity_ended());
    case model::ACTIVITY_CANCELED:
      return activity_canceled(writer, event.activity_ended());
    case model::ACTIVITY_CANCEL_REQUESTED:
      return activity_cancel_requested(writer, event.activity_cancel_requested());
    case model::TIMER_STARTED:
      return timer_started(writer, event.timer_started());
    case model::TIMER_FIRED:
      return timer_fired(writer, event.timer_ended());
    case model::TIMER_CANCELED:
      return timer_canceled(writer, event.timer_ended());
    case model::MARKER_RECORDED:
      return command_recorded<MarkerRecordedEventAttributes>(writer, event.command_recorded());
    case model::SEARCH_ATTRIBUTES_UPSERTED:
      return command_recorded<UpsertWorkflowSearchAttributesEventAttributes>(
          writer, event.command_recorded());
    case model::PROPERTIES_MODIFIED:
      return command_recorded<WorkflowPropertiesModifiedEventAttributes>(writer,
                                                                         event.command_recorded());
    case model::UPDATE_ACCEPTED:
      writer.string(WorkflowExecutionUpdateAcceptedEventAttributes::kAcceptedRequestFieldNumber,
                    event.update_event().request());
      return;
    case model::UPDATE_ADMITTED:
      writer.bytes(WorkflowExecutionUpdateAdmittedEventAttributes::kRequestFieldNumber,
                   event.update_event().request());
      writer.integer(WorkflowExecutionUpdateAdmittedEventAttributes::kOriginFieldNumber,
                     enums::UPDATE_ADMITTED_EVENT_ORIGIN_REAPPLY);
      return;
    case model::WORKFLOW_OPTIONS_UPDATED:
      return options_updated(writer, event.workflow_options_updated());
    case model::UPDATE_COMPLETED:
      writer.integer(WorkflowExecutionUpdateCompletedEventAttributes::kAcceptedEventIdFieldNumber,
                     event.update_event().accepted_id());
      return;
    default:
      return write_other_run_attributes(writer, event);
  }
}

}  // namespace fairlead::api
