#include <algorithm>
#include <string>
#include <vector>

#include "api/temporal/answers.h"
#include "api/temporal/codec.h"
#include "api/temporal/pieces.h"
#include "temporal/api/failure/v1/message.pb.h"
#include "temporal/api/workflow/v1/message.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// DescribeWorkflowExecution. Memo, search attributes, failures and metadata are kept as the bytes
// that clients sent and are spliced in unread, so even fields that we have never heard of come
// back.
namespace fairlead::api {

namespace {

namespace common = temporal::api::common::v1;
namespace enums = temporal::api::enums::v1;
namespace workflow = temporal::api::workflow::v1;
using wire::Writer;

void write_config(Writer& writer, const model::RunState& run) {
  using Config = workflow::WorkflowExecutionConfig;
  write_task_queue(writer, Config::kTaskQueueFieldNumber, run.task_queue());
  if (run.execution_timeout_ns() != 0) {
    writer.duration(Config::kWorkflowExecutionTimeoutFieldNumber, run.execution_timeout_ns());
  }
  if (run.run_timeout_ns() != 0 || run.has_parent() || run.initiator() == model::BY_WORKFLOW) {
    writer.duration(Config::kWorkflowRunTimeoutFieldNumber, run.run_timeout_ns());
  }
  writer.duration(Config::kDefaultWorkflowTaskTimeoutFieldNumber, run.task_timeout_ns());
  writer.string(Config::kUserMetadataFieldNumber, run.user_metadata());
}

bool is_open(const model::RunState& run) { return run.status() == model::RUNNING; }

void write_info(Writer& writer, const model::RunState& run) {
  using Info = workflow::WorkflowExecutionInfo;
  write_execution(writer, Info::kExecutionFieldNumber, run.workflow_id(), run.run_id());
  write_type(writer, Info::kTypeFieldNumber, run.workflow_type());
  write_time(writer, Info::kStartTimeFieldNumber, run.start_ns());
  if (!is_open(run)) write_time(writer, Info::kCloseTimeFieldNumber, run.close_ns());
  writer.integer(Info::kStatusFieldNumber, run.status());
  writer.integer(Info::kHistoryLengthFieldNumber, std::max<int64_t>(run.next_event_id() - 1, 0));
  if (run.has_parent()) {
    writer.string(Info::kParentNamespaceIdFieldNumber, run.parent().namespace_id());
    write_execution(writer, Info::kParentExecutionFieldNumber, run.parent().run().workflow_id(),
                    run.parent().run().run_id());
  }
  write_time(writer, Info::kExecutionTimeFieldNumber, run.execution_ns());
  write_payload_map(writer, Info::kMemoFieldNumber, common::Memo::kFieldsFieldNumber, run.memo());
  write_payload_map(writer, Info::kSearchAttributesFieldNumber,
                    common::SearchAttributes::kIndexedFieldsFieldNumber, run.search_attributes());
  // The run that follows this one was told when it will be gone.
  auto points = run.reset_points();
  for (auto& point : points) {
    if (!run.next_run_id().empty() && point.run_id().empty()) {
      point.set_expires_ns(run.delete_at_ns());
    }
  }
  write_reset_points(writer, Info::kAutoResetPointsFieldNumber, points, run.run_id());
  writer.string(Info::kTaskQueueFieldNumber, run.task_queue());
  writer.integer(Info::kStateTransitionCountFieldNumber, run.state_transitions());
  writer.integer(Info::kHistorySizeBytesFieldNumber, run.history_bytes());
  if (!is_open(run)) {
    // A run that ended during its start delay never executed: zero, not less.
    writer.duration(Info::kExecutionDurationFieldNumber,
                    std::max<int64_t>(run.close_ns() - run.execution_ns(), 0));
  }
  const auto& root_id = run.has_root() ? run.root().workflow_id() : run.workflow_id();
  const auto& root_run = run.has_root() ? run.root().run_id() : run.run_id();
  write_execution(writer, Info::kRootExecutionFieldNumber, root_id, root_run);
  writer.string(Info::kFirstRunIdFieldNumber, run.first_run_id());
  write_priority(writer, Info::kPriorityFieldNumber, run.priority());
}

void write_request_id(Writer& writer, const std::string& request_id, model::EventKind kind,
                      int64_t event_id) {
  writer.message(workflow::WorkflowExecutionExtendedInfo::kRequestIdInfosFieldNumber,
                 [&](Writer& entry) {
                   entry.string(1, request_id);
                   entry.message(2, [&](Writer& info) {
                     info.integer(workflow::RequestIdInfo::kEventTypeFieldNumber, kind);
                     info.integer(workflow::RequestIdInfo::kEventIdFieldNumber, event_id);
                     info.boolean(workflow::RequestIdInfo::kBufferedFieldNumber, event_id == 0);
                   });
                 });
}

void write_callback(Writer& writer, const model::CallbackState& callback) {
  using Info = workflow::CallbackInfo;
  using State = model::CallbackState;
  writer.bytes(Info::kCallbackFieldNumber, callback.door());
  writer.message(Info::kTriggerFieldNumber, [](Writer& trigger) {
    trigger.message(Info::Trigger::kWorkflowClosedFieldNumber, [](Writer&) {});
  });
  write_time(writer, Info::kRegistrationTimeFieldNumber, callback.registered_ns());
  const auto state = [&] {
    switch (callback.stage()) {
      case State::SCHEDULED:
        return enums::CALLBACK_STATE_SCHEDULED;
      case State::BACKING_OFF:
        return enums::CALLBACK_STATE_BACKING_OFF;
      case State::SUCCEEDED:
        return enums::CALLBACK_STATE_SUCCEEDED;
      case State::FAILED:
        return enums::CALLBACK_STATE_FAILED;
      default:
        return enums::CALLBACK_STATE_STANDBY;
    }
  }();
  writer.integer(Info::kStateFieldNumber, state);
  writer.integer(Info::kAttemptFieldNumber, callback.attempts());
  write_time(writer, Info::kLastAttemptCompleteTimeFieldNumber, callback.attempt_ended_ns());
  if (!callback.failure().empty()) {
    temporal::api::failure::v1::Failure failure;
    failure.set_message(callback.failure());
    failure.mutable_application_failure_info()->set_non_retryable(callback.stage() ==
                                                                  State::FAILED);
    writer.bytes(Info::kLastAttemptFailureFieldNumber, failure.SerializeAsString());
  }
  if (callback.stage() == State::BACKING_OFF) {
    write_time(writer, Info::kNextAttemptScheduleTimeFieldNumber, callback.due_ns());
  }
}

void write_extended_info(Writer& writer, const shard::RunView& view) {
  using Info = workflow::WorkflowExecutionExtendedInfo;
  const auto& run = view.run;
  write_time(writer, Info::kExecutionExpirationTimeFieldNumber, run.execution_expiration_ns());
  write_time(writer, Info::kRunExpirationTimeFieldNumber, run.run_expiration_ns());
  writer.boolean(Info::kCancelRequestedFieldNumber, run.cancel_requested());
  const bool is_reset = run.ancestors_size() > 0;
  if (is_reset) write_time(writer, Info::kLastResetTimeFieldNumber, run.start_ns());
  write_time(writer, Info::kOriginalStartTimeFieldNumber,
             is_reset ? run.original_start_ns() : run.start_ns());
  writer.string(Info::kResetRunIdFieldNumber, run.reset_run_id());
  if (!run.start_request_id().empty() && run.continued_run_id().empty()) {
    write_request_id(writer, run.start_request_id(), model::WORKFLOW_STARTED, 1);
  }
  for (const auto& request : view.requests) {
    write_request_id(writer, request.request_id(), model::WORKFLOW_OPTIONS_UPDATED,
                     request.event_id());
  }
}

// When the attempt in hand failed and the next one begins; said only while the activity waits for
// it.
void write_backoff(Writer& writer, const model::ActivityState& activity) {
  using Info = workflow::PendingActivityInfo;
  if (!activity.backing_off() || activity.has_pause()) return;
  const DurationNs interval = activity.scheduled_ns() - activity.last_attempt_complete_ns();
  writer.duration(Info::kCurrentRetryIntervalFieldNumber, std::max<DurationNs>(interval, 0));
  write_time(writer, Info::kNextAttemptScheduleTimeFieldNumber, activity.scheduled_ns());
}

void write_pause(Writer& writer, const model::ActivityPause& pause) {
  using Info = workflow::PendingActivityInfo::PauseInfo;
  write_time(writer, Info::kPauseTimeFieldNumber, pause.since_ns());
  writer.message(Info::kManualFieldNumber, [&](Writer& manual) {
    manual.string(Info::Manual::kIdentityFieldNumber, pause.identity());
    manual.string(Info::Manual::kReasonFieldNumber, pause.reason());
  });
}

void write_activity(Writer& writer, const model::ActivityState& activity) {
  using Info = workflow::PendingActivityInfo;
  const auto& scheduled = activity.scheduled();
  writer.string(Info::kActivityIdFieldNumber, scheduled.activity_id());
  write_type(writer, Info::kActivityTypeFieldNumber, scheduled.activity_type());
  writer.integer(Info::kStateFieldNumber, pending_state(activity));
  writer.string(Info::kHeartbeatDetailsFieldNumber, activity.heartbeat_details());
  write_time(writer, Info::kLastHeartbeatTimeFieldNumber, activity.heartbeat_ns());
  write_time(writer, Info::kLastStartedTimeFieldNumber, activity.started_ns());
  writer.integer(Info::kAttemptFieldNumber, std::max(activity.attempt(), 1));
  writer.integer(Info::kMaximumAttemptsFieldNumber, scheduled.retry_policy().maximum_attempts());
  write_time(writer, Info::kScheduledTimeFieldNumber, activity.scheduled_ns());
  if (scheduled.schedule_to_close_ns() != 0) {
    write_time(writer, Info::kExpirationTimeFieldNumber,
               add_saturated(activity.first_scheduled_ns(), scheduled.schedule_to_close_ns()));
  }
  if (activity.has_last_failure()) {
    write_failure(writer, Info::kLastFailureFieldNumber, activity.last_failure());
  }
  writer.string(Info::kLastWorkerIdentityFieldNumber, activity.started_ns() != 0
                                                          ? activity.started_identity()
                                                          : activity.last_worker_identity());
  write_time(writer, Info::kLastAttemptCompleteTimeFieldNumber,
             activity.last_attempt_complete_ns());
  write_backoff(writer, activity);
  writer.boolean(Info::kPausedFieldNumber, activity.has_pause());
  write_priority(writer, Info::kPriorityFieldNumber, scheduled.priority());
  if (activity.has_pause()) {
    writer.message(Info::kPauseInfoFieldNumber,
                   [&](Writer& info) { write_pause(info, activity.pause()); });
  }
  write_activity_options(writer, Info::kActivityOptionsFieldNumber, scheduled);
}

void write_child(Writer& writer, const model::ChildState& child) {
  using Info = workflow::PendingChildExecutionInfo;
  writer.string(Info::kWorkflowIdFieldNumber, child.initiated().workflow_id());
  writer.string(Info::kRunIdFieldNumber, child.run_id());
  writer.string(Info::kWorkflowTypeNameFieldNumber, child.initiated().workflow_type());
  writer.integer(Info::kInitiatedIdFieldNumber, child.initiated_id());
  writer.integer(Info::kParentClosePolicyFieldNumber, child.initiated().parent_close_policy());
}

void write_workflow_task(Writer& writer, const model::WorkflowTaskState& task) {
  using Info = workflow::PendingWorkflowTaskInfo;
  writer.integer(Info::kStateFieldNumber, task.started_id() != 0
                                              ? enums::PENDING_WORKFLOW_TASK_STATE_STARTED
                                              : enums::PENDING_WORKFLOW_TASK_STATE_SCHEDULED);
  write_time(writer, Info::kScheduledTimeFieldNumber, task.scheduled_ns());
  write_time(writer, Info::kOriginalScheduledTimeFieldNumber, task.original_scheduled_ns());
  write_time(writer, Info::kStartedTimeFieldNumber, task.started_ns());
  writer.integer(Info::kAttemptFieldNumber, task.attempt());
}

}  // namespace

std::string encode_describe(const shard::RunView& view) {
  using Describe = temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse;
  const auto& run = view.run;
  std::string answer;
  Writer writer(&answer);
  writer.message(Describe::kExecutionConfigFieldNumber,
                 [&](Writer& config) { write_config(config, run); });
  writer.message(Describe::kWorkflowExecutionInfoFieldNumber,
                 [&](Writer& info) { write_info(info, run); });
  for (const auto& activity : view.activities) {
    writer.message(Describe::kPendingActivitiesFieldNumber,
                   [&](Writer& info) { write_activity(info, activity); });
  }
  for (const auto& child : view.children) {
    writer.message(Describe::kPendingChildrenFieldNumber,
                   [&](Writer& info) { write_child(info, child); });
  }
  if (run.workflow_task().scheduled_id() != 0) {
    writer.message(Describe::kPendingWorkflowTaskFieldNumber,
                   [&](Writer& info) { write_workflow_task(info, run.workflow_task()); });
  }
  for (const auto& callback : view.callbacks) {
    writer.message(Describe::kCallbacksFieldNumber,
                   [&](Writer& info) { write_callback(info, callback); });
  }
  writer.message(Describe::kWorkflowExtendedInfoFieldNumber,
                 [&](Writer& info) { write_extended_info(info, view); });
  return answer;
}

}  // namespace fairlead::api
