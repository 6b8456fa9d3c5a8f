#include "api/temporal/changes.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using history::ActivityChange;
using history::PriorityChange;
using temporal::api::activity::v1::ActivityOptions;
using temporal::api::common::v1::Priority;
using temporal::api::common::v1::RetryPolicy;
using temporal::api::workflow::v1::WorkflowExecutionOptions;
namespace history_api = temporal::api::history::v1;

// "retryPolicy.maximumAttempts" as the protos spell it.
std::string snake_case(const std::string& path) {
  std::string result;
  for (const char letter : path) {
    if (absl::ascii_isupper(static_cast<unsigned char>(letter))) result.push_back('_');
    result.push_back(absl::ascii_tolower(static_cast<unsigned char>(letter)));
  }
  return result;
}

template <typename Source, typename Change>
struct Field {
  std::string_view path;
  absl::Status (*read)(const Source&, Change*);
};

template <typename Source, typename Change, size_t kSize>
const Field<Source, Change>* find(const Field<Source, Change> (&fields)[kSize],
                                  std::string_view path) {
  const auto* found = std::find_if(std::begin(fields), std::end(fields),
                                   [&](const auto& field) { return field.path == path; });
  return found == std::end(fields) ? nullptr : found;
}

// --- Priority, which activities and workflows have alike.

absl::Status read_priority_key(const Priority& priority, PriorityChange* change) {
  change->priority_key = priority.priority_key();
  return absl::OkStatus();
}
absl::Status read_fairness_key(const Priority& priority, PriorityChange* change) {
  change->fairness_key = priority.fairness_key();
  return absl::OkStatus();
}
absl::Status read_fairness_weight(const Priority& priority, PriorityChange* change) {
  change->fairness_weight = priority.fairness_weight();
  return absl::OkStatus();
}
absl::Status read_whole_priority(const Priority& priority, PriorityChange* change) {
  *change = {priority.priority_key(), priority.fairness_key(), priority.fairness_weight()};
  return absl::OkStatus();
}

constexpr Field<Priority, PriorityChange> kPriorityFields[] = {
    {"priority", read_whole_priority},
    {"priority.priority_key", read_priority_key},
    {"priority.fairness_key", read_fairness_key},
    {"priority.fairness_weight", read_fairness_weight},
};

// --- Retry policies.

absl::Status read_initial_interval(const RetryPolicy& policy, history::RetryChange* change) {
  FL_TRY_ASSIGN(change->initial_interval,
                check_duration(policy.initial_interval(), "InitialInterval"));
  return absl::OkStatus();
}
absl::Status read_coefficient(const RetryPolicy& policy, history::RetryChange* change) {
  change->backoff_coefficient = policy.backoff_coefficient();
  return absl::OkStatus();
}
absl::Status read_maximum_interval(const RetryPolicy& policy, history::RetryChange* change) {
  FL_TRY_ASSIGN(change->maximum_interval,
                check_duration(policy.maximum_interval(), "MaximumInterval"));
  return absl::OkStatus();
}
absl::Status read_maximum_attempts(const RetryPolicy& policy, history::RetryChange* change) {
  change->maximum_attempts = policy.maximum_attempts();
  return absl::OkStatus();
}
absl::Status read_error_types(const RetryPolicy& policy, history::RetryChange* change) {
  change->non_retryable_error_types.emplace(policy.non_retryable_error_types().begin(),
                                            policy.non_retryable_error_types().end());
  return absl::OkStatus();
}
absl::Status read_whole_policy(const RetryPolicy& policy, history::RetryChange* change) {
  FL_TRY(read_initial_interval(policy, change));
  FL_TRY(read_coefficient(policy, change));
  FL_TRY(read_maximum_interval(policy, change));
  FL_TRY(read_maximum_attempts(policy, change));
  return read_error_types(policy, change);
}

constexpr Field<RetryPolicy, history::RetryChange> kRetryFields[] = {
    {"retry_policy", read_whole_policy},
    {"retry_policy.initial_interval", read_initial_interval},
    {"retry_policy.backoff_coefficient", read_coefficient},
    {"retry_policy.maximum_interval", read_maximum_interval},
    {"retry_policy.maximum_attempts", read_maximum_attempts},
    {"retry_policy.non_retryable_error_types", read_error_types},
};

// --- The rest of an activity's options.

absl::Status read_queue(const ActivityOptions& options, ActivityChange* change) {
  if (!options.has_task_queue()) return invalid_argument("TaskQueue is not provided");
  change->task_queue = options.task_queue().name();
  return absl::OkStatus();
}
absl::Status read_schedule_to_close(const ActivityOptions& options, ActivityChange* change) {
  FL_TRY_ASSIGN(change->schedule_to_close,
                check_duration(options.schedule_to_close_timeout(), "ScheduleToCloseTimeout"));
  return absl::OkStatus();
}
absl::Status read_schedule_to_start(const ActivityOptions& options, ActivityChange* change) {
  FL_TRY_ASSIGN(change->schedule_to_start,
                check_duration(options.schedule_to_start_timeout(), "ScheduleToStartTimeout"));
  return absl::OkStatus();
}
absl::Status read_start_to_close(const ActivityOptions& options, ActivityChange* change) {
  FL_TRY_ASSIGN(change->start_to_close,
                check_duration(options.start_to_close_timeout(), "StartToCloseTimeout"));
  return absl::OkStatus();
}
absl::Status read_heartbeat(const ActivityOptions& options, ActivityChange* change) {
  FL_TRY_ASSIGN(change->heartbeat, check_duration(options.heartbeat_timeout(), "HeartbeatTimeout"));
  return absl::OkStatus();
}

constexpr Field<ActivityOptions, ActivityChange> kActivityFields[] = {
    {"task_queue", read_queue},
    {"task_queue.name", read_queue},
    {"schedule_to_close_timeout", read_schedule_to_close},
    {"schedule_to_start_timeout", read_schedule_to_start},
    {"start_to_close_timeout", read_start_to_close},
    {"heartbeat_timeout", read_heartbeat},
};

absl::Status read_activity_path(const ActivityOptions& options, std::string_view path,
                                ActivityChange* change) {
  if (const auto* field = find(kActivityFields, path)) return field->read(options, change);
  if (const auto* field = find(kRetryFields, path)) {
    if (!options.has_retry_policy()) return invalid_argument("RetryPolicy is not provided");
    return field->read(options.retry_policy(), &change->retry);
  }
  if (const auto* field = find(kPriorityFields, path)) {
    if (!options.has_priority() && path != "priority") {
      return invalid_argument("Priority is not provided");
    }
    return field->read(options.priority(), &change->priority);
  }
  return invalid_argument(absl::StrCat("UpdateMask names \"", std::string(path),
                                       "\", which is no option of an activity that can change"));
}

}  // namespace

absl::StatusOr<ActivityChange> read_activity_change(const ActivityOptions& options,
                                                    const google::protobuf::FieldMask& mask,
                                                    int64_t id_bytes) {
  FL_TRY(check_priority(options.priority()));
  ActivityChange change;
  for (const auto& path : mask.paths()) {
    FL_TRY(read_activity_path(options, snake_case(path), &change));
  }
  // Without a name the activity goes to its workflow's queue, as in a command.
  if (change.task_queue.has_value() && !change.task_queue->empty()) {
    FL_TRY(check_task_queue_name(*change.task_queue, id_bytes));
  }
  return change;
}

absl::StatusOr<shard::ChangeRunOptions> read_workflow_change(
    const WorkflowExecutionOptions& options, const google::protobuf::FieldMask& mask,
    const std::string& identity) {
  FL_TRY(check_priority(options.priority()));
  shard::ChangeRunOptions change;
  for (const auto& spelled : mask.paths()) {
    const std::string path = snake_case(spelled);
    const std::string option = path.substr(0, path.find('.'));
    if (const auto* field = find(kPriorityFields, path)) {
      FL_TRY(field->read(options.priority(), &change.priority));
    } else if (option == "versioning_override") {
      // To take one away is done: there is none.
      if (!options.has_versioning_override()) continue;
      return errors::unimplemented("versioning overrides are not implemented by this server");
    } else if (option == "time_skipping_config") {
      return errors::unimplemented("time skipping is not implemented by this server");
    } else {
      return invalid_argument(absl::StrCat("error parsing UpdateMask: proto: invalid path \"",
                                           spelled, "\" for message \"",
                                           options.GetDescriptor()->full_name(), "\""));
    }
  }
  history_api::WorkflowExecutionOptionsUpdatedEventAttributes door;
  door.set_identity(identity);
  // Said of every change by which the workflow has no override in the end.
  door.set_unset_versioning_override(true);
  change.door = door.SerializeAsString();
  history_api::HistoryEvent envelope;
  envelope.set_worker_may_ignore(true);
  change.envelope = envelope.SerializeAsString();
  return change;
}

}  // namespace fairlead::api
