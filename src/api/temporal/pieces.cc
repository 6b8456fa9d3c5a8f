#include "api/temporal/pieces.h"

#include <algorithm>
#include <string>
#include <vector>

#include "api/temporal/codec.h"
#include "temporal/api/activity/v1/message.pb.h"
#include "temporal/api/common/v1/message.pb.h"
#include "temporal/api/failure/v1/message.pb.h"
#include "temporal/api/taskqueue/v1/message.pb.h"
#include "temporal/api/workflow/v1/message.pb.h"

// Workers in the field still send what the API has since deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fairlead::api {

namespace {

namespace common = temporal::api::common::v1;
namespace enums = temporal::api::enums::v1;
using temporal::api::taskqueue::v1::TaskQueue;
using wire::Writer;

std::string json_string(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json.push_back('\\');
      json.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json.append("\\u00");
      json.push_back(kHex[c >> 4]);
      json.push_back(kHex[c & 0xf]);
    } else {
      json.push_back(c);
    }
  }
  json.push_back('"');
  return json;
}

void write_application_info(Writer& writer, uint32_t field, const model::Failure& failure) {
  using Info = temporal::api::failure::v1::ApplicationFailureInfo;
  writer.message(field, [&](Writer& info) {
    info.string(Info::kTypeFieldNumber, failure.type());
    info.boolean(Info::kNonRetryableFieldNumber, failure.non_retryable());
    if (failure.has_next_retry_delay_ns()) {
      info.duration(Info::kNextRetryDelayFieldNumber, failure.next_retry_delay_ns());
    }
  });
}

void write_timeout_info(Writer& writer, uint32_t field, const model::Failure& failure) {
  using Info = temporal::api::failure::v1::TimeoutFailureInfo;
  writer.message(field, [&](Writer& info) {
    info.integer(Info::kTimeoutTypeFieldNumber, failure.timeout_type());
    info.string(Info::kLastHeartbeatDetailsFieldNumber, failure.heartbeat_details());
  });
}

void write_server_info(Writer& writer, uint32_t field, const model::Failure& failure) {
  using Info = temporal::api::failure::v1::ServerFailureInfo;
  writer.message(field, [&](Writer& info) {
    info.boolean(Info::kNonRetryableFieldNumber, failure.non_retryable());
  });
}

void write_failure_info(Writer& writer, const model::Failure& failure) {
  using Failure = temporal::api::failure::v1::Failure;
  switch (failure.kind()) {
    case model::Failure::APPLICATION:
      return write_application_info(writer, Failure::kApplicationFailureInfoFieldNumber, failure);
    case model::Failure::CANCELED:
      return writer.bytes(Failure::kCanceledFailureInfoFieldNumber, {});
    case model::Failure::TERMINATED:
      return writer.bytes(Failure::kTerminatedFailureInfoFieldNumber, {});
    case model::Failure::TIMEOUT:
      return write_timeout_info(writer, Failure::kTimeoutFailureInfoFieldNumber, failure);
    case model::Failure::SERVER:
      return write_server_info(writer, Failure::kServerFailureInfoFieldNumber, failure);
    case model::Failure::RESET:
      return writer.bytes(Failure::kResetWorkflowFailureInfoFieldNumber, {});
    default:
      return;
  }
}

// A worker may report a failure that says nothing at all. Its bytes are empty, and it must not come
// back as something that the server said.
bool says_nothing(const model::Failure& failure) {
  return failure.kind() == model::Failure::OTHER && failure.message().empty() &&
         !failure.has_cause();
}

void fill_failure(Writer& writer, const model::Failure& failure) {
  using Failure = temporal::api::failure::v1::Failure;
  if (!failure.door().empty()) return writer.raw(failure.door());
  if (says_nothing(failure)) return;
  writer.string(Failure::kMessageFieldNumber, failure.message());
  // What the server says about itself needs no source, and Temporal gives none.
  if (failure.kind() != model::Failure::SERVER && failure.kind() != model::Failure::RESET) {
    writer.string(Failure::kSourceFieldNumber, "Server");
  }
  write_failure_info(writer, failure);
  if (failure.has_cause()) write_failure(writer, Failure::kCauseFieldNumber, failure.cause());
}

}  // namespace

std::string encode_failure(const model::Failure& failure) {
  std::string bytes;
  Writer writer(&bytes);
  fill_failure(writer, failure);
  return bytes;
}

void write_failure(Writer& writer, uint32_t field, const model::Failure& failure) {
  writer.message(field, [&](Writer& message) { fill_failure(message, failure); });
}

void write_retry_policy(Writer& writer, uint32_t field, const model::RetryPolicy& policy) {
  using common::RetryPolicy;
  writer.message(field, [&](Writer& message) {
    if (policy.initial_interval_ns() != 0) {
      message.duration(RetryPolicy::kInitialIntervalFieldNumber, policy.initial_interval_ns());
    }
    message.float64(RetryPolicy::kBackoffCoefficientFieldNumber, policy.backoff_coefficient());
    if (policy.maximum_interval_ns() != 0) {
      message.duration(RetryPolicy::kMaximumIntervalFieldNumber, policy.maximum_interval_ns());
    }
    message.integer(RetryPolicy::kMaximumAttemptsFieldNumber, policy.maximum_attempts());
    for (const auto& type : policy.non_retryable_error_types()) {
      message.bytes(RetryPolicy::kNonRetryableErrorTypesFieldNumber, type);
    }
  });
}

void write_priority(Writer& writer, uint32_t field, const model::Priority& priority) {
  using common::Priority;
  if (priority.priority_key() == 0 && priority.fairness_key().empty() &&
      priority.fairness_weight() == 0) {
    return;
  }
  writer.message(field, [&](Writer& message) {
    message.integer(Priority::kPriorityKeyFieldNumber, priority.priority_key());
    message.string(Priority::kFairnessKeyFieldNumber, priority.fairness_key());
    message.float32(Priority::kFairnessWeightFieldNumber, priority.fairness_weight());
  });
}

void write_reset_points(Writer& writer, uint32_t field, const ResetPoints& points,
                        std::string_view run_id) {
  using temporal::api::workflow::v1::ResetPointInfo;
  writer.message(field, [&](Writer& list) {
    for (const auto& point : points) {
      list.message(temporal::api::workflow::v1::ResetPoints::kPointsFieldNumber, [&](Writer& info) {
        info.string(ResetPointInfo::kBinaryChecksumFieldNumber, point.build().binary_checksum());
        info.string(ResetPointInfo::kRunIdFieldNumber,
                    point.run_id().empty() ? run_id : point.run_id());
        info.integer(ResetPointInfo::kFirstWorkflowTaskCompletedIdFieldNumber,
                     point.completed_id());
        write_time(info, ResetPointInfo::kCreateTimeFieldNumber, point.created_ns());
        write_time(info, ResetPointInfo::kExpireTimeFieldNumber, point.expires_ns());
        info.boolean(ResetPointInfo::kResettableFieldNumber, point.is_resettable());
        info.string(ResetPointInfo::kBuildIdFieldNumber, point.build().build_id());
      });
    }
  });
}

void write_task_queue(Writer& writer, uint32_t field, std::string_view name) {
  writer.message(field, [&](Writer& message) {
    message.string(TaskQueue::kNameFieldNumber, name);
    message.integer(TaskQueue::kKindFieldNumber, enums::TASK_QUEUE_KIND_NORMAL);
  });
}

void write_task_queue(Writer& writer, uint32_t field, const model::QueueTarget& queue) {
  if (!queue.sticky()) return write_task_queue(writer, field, queue.name());
  writer.message(field, [&](Writer& message) {
    message.string(TaskQueue::kNameFieldNumber, queue.name());
    message.integer(TaskQueue::kKindFieldNumber, enums::TASK_QUEUE_KIND_STICKY);
    message.string(TaskQueue::kNormalNameFieldNumber, queue.normal_name());
  });
}

void write_execution(Writer& writer, uint32_t field, std::string_view workflow_id,
                     std::string_view run_id) {
  using common::WorkflowExecution;
  writer.message(field, [&](Writer& message) {
    message.string(WorkflowExecution::kWorkflowIdFieldNumber, workflow_id);
    message.string(WorkflowExecution::kRunIdFieldNumber, run_id);
  });
}

void write_type(Writer& writer, uint32_t field, std::string_view name) {
  constexpr int kName = common::WorkflowType::kNameFieldNumber;
  static_assert(kName == int{common::ActivityType::kNameFieldNumber});
  writer.message(field, [&](Writer& message) { message.string(kName, name); });
}

void write_json_text(Writer& writer, uint32_t field, std::string_view text) {
  using common::Payload;
  writer.message(field, [&](Writer& payloads) {
    payloads.message(common::Payloads::kPayloadsFieldNumber, [&](Writer& payload) {
      payload.message(Payload::kMetadataFieldNumber, [](Writer& entry) {
        entry.string(1, "encoding");
        entry.string(2, "json/plain");
      });
      payload.bytes(Payload::kDataFieldNumber, json_string(text));
    });
  });
}

void write_activity_options(Writer& writer, uint32_t field,
                            const model::ActivityScheduled& scheduled) {
  using Options = temporal::api::activity::v1::ActivityOptions;
  writer.message(field, [&](Writer& message) {
    write_task_queue(message, Options::kTaskQueueFieldNumber, scheduled.task_queue());
    message.duration(Options::kScheduleToCloseTimeoutFieldNumber, scheduled.schedule_to_close_ns());
    message.duration(Options::kScheduleToStartTimeoutFieldNumber, scheduled.schedule_to_start_ns());
    message.duration(Options::kStartToCloseTimeoutFieldNumber, scheduled.start_to_close_ns());
    message.duration(Options::kHeartbeatTimeoutFieldNumber, scheduled.heartbeat_ns());
    write_retry_policy(message, Options::kRetryPolicyFieldNumber, scheduled.retry_policy());
    write_priority(message, Options::kPriorityFieldNumber, scheduled.priority());
  });
}

void write_payload_map(Writer& writer, uint32_t field, uint32_t map_field,
                       const google::protobuf::Map<std::string, std::string>& payloads) {
  std::vector<std::string_view> names;
  for (const auto& [name, payload] : payloads) names.push_back(name);
  std::sort(names.begin(), names.end());
  writer.message(field, [&](Writer& message) {
    for (const auto name : names) {
      message.message(map_field, [&](Writer& entry) {
        entry.string(1, name);
        entry.bytes(2, payloads.at(std::string(name)));
      });
    }
  });
}

enums::PendingActivityState pending_state(const model::ActivityState& activity) {
  if (activity.cancel_requested()) return enums::PENDING_ACTIVITY_STATE_CANCEL_REQUESTED;
  if (activity.started_ns() != 0) {
    return activity.has_pause() ? enums::PENDING_ACTIVITY_STATE_PAUSE_REQUESTED
                                : enums::PENDING_ACTIVITY_STATE_STARTED;
  }
  return activity.has_pause() ? enums::PENDING_ACTIVITY_STATE_PAUSED
                              : enums::PENDING_ACTIVITY_STATE_SCHEDULED;
}

void write_time(Writer& writer, uint32_t field, TimeNs time) {
  if (time != 0) writer.timestamp(field, time);
}

}  // namespace fairlead::api
