#include <algorithm>
#include <string>

#include "api/temporal/answers.h"
#include "api/temporal/codec.h"
#include "api/temporal/pieces.h"
#include "temporal/api/activity/v1/message.pb.h"
#include "temporal/api/history/v1/message.pb.h"

// What is told of an activity without a workflow: how it stands, and how it ended.
namespace fairlead::api {

namespace {

namespace activity_api = temporal::api::activity::v1;
namespace common = temporal::api::common::v1;
namespace enums = temporal::api::enums::v1;
namespace history_api = temporal::api::history::v1;
using temporal::api::failure::v1::Failure;
using wire::Writer;
using Info = activity_api::ActivityExecutionInfo;

enums::ActivityExecutionStatus status_of(const model::RunState& run,
                                         const model::ActivityState& activity) {
  switch (run.status()) {
    case model::COMPLETED:
      return enums::ACTIVITY_EXECUTION_STATUS_COMPLETED;
    case model::FAILED:
      return enums::ACTIVITY_EXECUTION_STATUS_FAILED;
    case model::CANCELED:
      return enums::ACTIVITY_EXECUTION_STATUS_CANCELED;
    case model::TERMINATED:
      return enums::ACTIVITY_EXECUTION_STATUS_TERMINATED;
    case model::TIMED_OUT:
      return enums::ACTIVITY_EXECUTION_STATUS_TIMED_OUT;
    default:
      return pending_state(activity) == enums::PENDING_ACTIVITY_STATE_PAUSED
                 ? enums::ACTIVITY_EXECUTION_STATUS_PAUSED
                 : enums::ACTIVITY_EXECUTION_STATUS_RUNNING;
  }
}

history_api::HistoryEvent read_event(const std::string& framed) {
  history_api::History history;
  if (!history.ParseFromString(framed) || history.events_size() != 1) return {};
  return std::move(*history.mutable_events(0));
}

// What the server says of such an activity names no source.
void drop_source(Failure* failure) {
  if (failure->has_timeout_failure_info() || failure->has_terminated_failure_info()) {
    failure->clear_source();
  }
}

void write_last_failure(Writer& writer, const model::Failure& failure) {
  Failure shown;
  shown.ParseFromString(encode_failure(failure));
  drop_source(&shown);
  writer.bytes(Info::kLastFailureFieldNumber, shown.SerializeAsString());
}

void write_options(Writer& writer, const model::ActivityScheduled& scheduled) {
  writer.string(Info::kTaskQueueFieldNumber, scheduled.task_queue());
  writer.duration(Info::kScheduleToCloseTimeoutFieldNumber, scheduled.schedule_to_close_ns());
  writer.duration(Info::kScheduleToStartTimeoutFieldNumber, scheduled.schedule_to_start_ns());
  writer.duration(Info::kStartToCloseTimeoutFieldNumber, scheduled.start_to_close_ns());
  writer.duration(Info::kHeartbeatTimeoutFieldNumber, scheduled.heartbeat_ns());
  write_retry_policy(writer, Info::kRetryPolicyFieldNumber, scheduled.retry_policy());
  write_priority(writer, Info::kPriorityFieldNumber, scheduled.priority());
}

void write_times(Writer& writer, const model::RunState& run, const model::ActivityState& activity) {
  const auto& standalone = run.standalone();
  const bool is_open = run.status() == model::RUNNING;
  write_time(writer, Info::kLastHeartbeatTimeFieldNumber, standalone.last_heartbeat_ns());
  write_time(writer, Info::kLastStartedTimeFieldNumber, standalone.last_started_ns());
  write_time(writer, Info::kScheduleTimeFieldNumber, run.start_ns());
  write_time(writer, Info::kExecutionTimeFieldNumber, run.execution_ns());
  write_time(writer, Info::kLastAttemptCompleteTimeFieldNumber,
             activity.last_attempt_complete_ns());
  if (const DurationNs limit = activity.scheduled().schedule_to_close_ns(); limit != 0) {
    write_time(writer, Info::kExpirationTimeFieldNumber,
               add_saturated(activity.first_scheduled_ns(), limit));
  }
  if (standalone.start_delay_ns() != 0) {
    writer.duration(Info::kStartDelayFieldNumber, standalone.start_delay_ns());
  }
  if (!is_open) {
    write_time(writer, Info::kCloseTimeFieldNumber, run.close_ns());
    writer.duration(Info::kExecutionDurationFieldNumber,
                    std::max<DurationNs>(run.close_ns() - run.execution_ns(), 0));
  } else if (activity.backing_off() && !activity.has_pause()) {
    write_time(writer, Info::kNextAttemptScheduleTimeFieldNumber, activity.scheduled_ns());
    if (activity.attempt() > 1) {
      writer.duration(
          Info::kCurrentRetryIntervalFieldNumber,
          std::max<DurationNs>(activity.scheduled_ns() - activity.last_attempt_complete_ns(), 0));
    }
  }
}

void write_start(Writer& writer, const model::RunState& run,
                 const history_api::HistoryEvent& scheduled) {
  write_payload_map(writer, Info::kSearchAttributesFieldNumber,
                    common::SearchAttributes::kIndexedFieldsFieldNumber, run.search_attributes());
  const auto& attributes = scheduled.activity_task_scheduled_event_attributes();
  if (attributes.has_header()) {
    writer.bytes(Info::kHeaderFieldNumber, attributes.header().SerializeAsString());
  }
  writer.string(Info::kUserMetadataFieldNumber, run.user_metadata());
  for (const auto& link : scheduled.links()) {
    writer.bytes(Info::kLinksFieldNumber, link.SerializeAsString());
  }
}

}  // namespace

std::string encode_activity_info(const shard::RunView& view, InfoParts parts) {
  const auto& run = view.run;
  const bool is_open = run.status() == model::RUNNING;
  const auto& activity = is_open ? view.activities.front() : run.ended_activity();
  std::string info;
  Writer writer(&info);
  writer.string(Info::kActivityIdFieldNumber, run.workflow_id());
  writer.string(Info::kRunIdFieldNumber, run.run_id());
  write_type(writer, Info::kActivityTypeFieldNumber, activity.scheduled().activity_type());
  writer.integer(Info::kStatusFieldNumber, status_of(run, activity));
  if (is_open) writer.integer(Info::kRunStateFieldNumber, pending_state(activity));
  write_options(writer, activity.scheduled());
  writer.integer(Info::kAttemptFieldNumber, activity.attempt());
  write_times(writer, run, activity);
  if (parts.heartbeat_details) {
    writer.string(Info::kHeartbeatDetailsFieldNumber, activity.heartbeat_details());
  }
  if (parts.last_failure && activity.has_last_failure()) {
    write_last_failure(writer, activity.last_failure());
  }
  writer.string(Info::kLastWorkerIdentityFieldNumber, activity.last_worker_identity());
  writer.integer(Info::kStateTransitionCountFieldNumber, run.state_transitions());
  writer.integer(Info::kStateSizeBytesFieldNumber,
                 static_cast<int64_t>(run.ByteSizeLong() + view.scheduled_event.size()));
  write_start(writer, run, read_event(view.scheduled_event));
  writer.string(Info::kCanceledReasonFieldNumber, run.standalone().cancel_reason());
  writer.integer(Info::kTotalHeartbeatCountFieldNumber, run.standalone().heartbeats());
  return info;
}

std::string scheduled_input(const std::string& scheduled_event) {
  return read_event(scheduled_event)
      .activity_task_scheduled_event_attributes()
      .input()
      .SerializeAsString();
}

std::string encode_outcome(const std::string& ended_event) {
  auto event = read_event(ended_event);
  activity_api::ActivityExecutionOutcome outcome;
  using Event = history_api::HistoryEvent;
  switch (event.attributes_case()) {
    case Event::kActivityTaskCompletedEventAttributes:
      *outcome.mutable_result() =
          std::move(*event.mutable_activity_task_completed_event_attributes()->mutable_result());
      break;
    case Event::kActivityTaskFailedEventAttributes: {
      auto& ended = *event.mutable_activity_task_failed_event_attributes();
      *outcome.mutable_failure() = std::move(*ended.mutable_failure());
      if (outcome.failure().has_terminated_failure_info()) {
        outcome.mutable_failure()->mutable_terminated_failure_info()->set_identity(
            ended.identity());
      }
      outcome.set_retry_state(ended.retry_state());
      break;
    }
    case Event::kActivityTaskTimedOutEventAttributes: {
      auto& ended = *event.mutable_activity_task_timed_out_event_attributes();
      *outcome.mutable_failure() = std::move(*ended.mutable_failure());
      outcome.set_retry_state(ended.retry_state());
      break;
    }
    default: {
      auto& ended = *event.mutable_activity_task_canceled_event_attributes();
      outcome.mutable_failure()->set_message("Activity canceled");
      auto& info = *outcome.mutable_failure()->mutable_canceled_failure_info();
      info.set_identity(ended.identity());
      if (ended.has_details()) *info.mutable_details() = std::move(*ended.mutable_details());
    }
  }
  if (outcome.has_failure()) drop_source(outcome.mutable_failure());
  return outcome.SerializeAsString();
}

}  // namespace fairlead::api
