#include "api/temporal/validate.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/temporal/convert.h"
#include "api/temporal/try.h"
#include "base/cron.h"
#include "base/error.h"
#include "base/random.h"
#include "history/retry.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using temporal::api::common::v1::RetryPolicy;

constexpr std::string_view kReservedPrefix = "/_sys/";
constexpr size_t kFairnessKeyBytesMax = 64;
constexpr int kLinksMax = 10;
constexpr size_t kLinkBytesMax = 4'000;
constexpr size_t kSummaryBytesMax = 400;
constexpr size_t kDetailsBytesMax = 20'000;

absl::string_view to_absl(std::string_view text) { return {text.data(), text.size()}; }

bool is_too_long(std::string_view value, int64_t bytes_max) {
  return static_cast<int64_t>(value.size()) > bytes_max;
}

// Where a link leads has to be said in full. `parts` are what it names, each with its value.
absl::Status check_link_parts(
    std::string_view kind,
    std::initializer_list<std::pair<std::string_view, std::string_view>> parts) {
  for (const auto& [name, value] : parts) {
    if (!value.empty()) continue;
    return invalid_argument(
        absl::StrCat(to_absl(kind), " link must not have an empty ", to_absl(name)));
  }
  return absl::OkStatus();
}

absl::Status check_link(const temporal::api::common::v1::Link& link) {
  using temporal::api::common::v1::Link;
  switch (link.variant_case()) {
    case Link::kWorkflowEvent: {
      const auto& event = link.workflow_event();
      FL_TRY(check_link_parts("workflow event", {{"namespace field", event.namespace_()},
                                                 {"workflow ID field", event.workflow_id()},
                                                 {"run ID field", event.run_id()}}));
      if (event.event_ref().event_id() != 0 &&
          event.event_ref().event_type() == temporal::api::enums::v1::EVENT_TYPE_UNSPECIFIED) {
        return invalid_argument(
            "workflow event link ref cannot have an unspecified event type and a non-zero event "
            "ID");
      }
      return absl::OkStatus();
    }
    case Link::kBatchJob:
      return check_link_parts("batch job", {{"job ID", link.batch_job().job_id()}});
    case Link::kActivity:
      return check_link_parts("activity", {{"namespace field", link.activity().namespace_()},
                                           {"activity ID field", link.activity().activity_id()},
                                           {"run ID field", link.activity().run_id()}});
    case Link::kNexusOperation: {
      const auto& operation = link.nexus_operation();
      return check_link_parts("nexus operation", {{"namespace field", operation.namespace_()},
                                                  {"operation ID field", operation.operation_id()},
                                                  {"run ID field", operation.run_id()}});
    }
    default:
      return invalid_argument("unsupported link variant");
  }
}

}  // namespace

absl::Status check_length(std::string_view value, std::string_view field, int64_t bytes_max) {
  if (!is_too_long(value, bytes_max)) return absl::OkStatus();
  return invalid_argument(absl::StrCat(to_absl(field), " length exceeds limit."));
}

absl::Status check_workflow_id(const std::string& workflow_id, int64_t bytes_max) {
  if (workflow_id.empty()) return invalid_argument("WorkflowId is not set on request.");
  if (!is_too_long(workflow_id, bytes_max)) return absl::OkStatus();
  return invalid_argument(absl::StrCat("WorkflowId exceeds maximum allowed length (",
                                       workflow_id.size(), "/", bytes_max, ")"));
}

absl::Status check_run_id(const std::string& run_id) {
  if (run_id.empty() || !uuid_to_bytes(run_id).empty()) return absl::OkStatus();
  return invalid_argument("Invalid RunId.");
}

absl::Status check_execution(const temporal::api::common::v1::WorkflowExecution* execution,
                             int64_t bytes_max) {
  if (execution == nullptr) return invalid_argument("Execution is not set on request.");
  FL_TRY(check_workflow_id(execution->workflow_id(), bytes_max));
  return check_run_id(execution->run_id());
}

absl::Status check_activity_ids(const std::string& workflow_id, const std::string& run_id,
                                const std::string& activity_id, int64_t bytes_max) {
  if (!workflow_id.empty()) FL_TRY(check_workflow_id(workflow_id, bytes_max));
  FL_TRY(check_run_id(run_id));
  if (activity_id.empty()) return invalid_argument("ActivityId is not set on request.");
  return check_length(activity_id, "ActivityId", bytes_max);
}

absl::Status check_task_queue_name(const std::string& name, int64_t bytes_max) {
  if (name.empty()) return invalid_argument("missing task queue name");
  if (is_too_long(name, bytes_max)) return invalid_argument("taskQueue length exceeds limit");
  if (std::string_view(name).starts_with(kReservedPrefix)) {
    return invalid_argument("task queue name cannot start with reserved prefix /_sys/");
  }
  return absl::OkStatus();
}

absl::Status check_task_queue(const temporal::api::taskqueue::v1::TaskQueue* queue,
                              int64_t bytes_max) {
  if (queue == nullptr) return invalid_argument("taskQueue is not set");
  FL_TRY(check_task_queue_name(queue->name(), bytes_max));
  if (queue->normal_name().empty()) return absl::OkStatus();
  return check_task_queue_name(queue->normal_name(), bytes_max);
}

absl::Status check_priority(const temporal::api::common::v1::Priority& priority) {
  if (priority.priority_key() < 0) return invalid_argument("priority key can't be negative");
  if (priority.fairness_key().size() > kFairnessKeyBytesMax) {
    return invalid_argument("fairness key length exceeds limit");
  }
  if (!std::isfinite(priority.fairness_weight()) || priority.fairness_weight() < 0) {
    return invalid_argument("must be greater than zero");
  }
  return absl::OkStatus();
}

absl::Status check_retry_policy(const RetryPolicy& policy) {
  // With a single attempt nothing else of the policy matters.
  if (policy.maximum_attempts() == 1) return absl::OkStatus();
  if (!read_duration(policy.initial_interval()).ok()) {
    return invalid_argument("InitialInterval cannot be negative on retry policy.");
  }
  if (!read_duration(policy.maximum_interval()).ok()) {
    return invalid_argument("MaximumInterval cannot be negative on retry policy.");
  }
  return history::check_retry_policy(read_retry_policy(policy));
}

void complete_retry_policy(RetryPolicy& policy) {
  if (duration_or_zero(policy.initial_interval()) == 0) {
    policy.mutable_initial_interval()->set_seconds(1);
  }
  if (policy.backoff_coefficient() == 0) policy.set_backoff_coefficient(2.0);
  if (duration_or_zero(policy.maximum_interval()) == 0) {
    const DurationNs initial = duration_or_zero(policy.initial_interval());
    const DurationNs maximum = std::min(initial, kDurationMax / 100) * 100;
    policy.mutable_maximum_interval()->set_seconds(maximum / kSecond);
    policy.mutable_maximum_interval()->set_nanos(static_cast<int32_t>(maximum % kSecond));
  }
}

absl::Status check_cron(const std::string& schedule) {
  if (schedule.empty()) return absl::OkStatus();
  const auto cron = Cron::parse(schedule);
  if (!cron.ok()) {
    return invalid_argument(absl::StrCat("invalid CronSchedule. ", cron.status().message()));
  }
  // Whether there is a next time does not depend on when it is asked.
  if (cron->next(0) == kNever) return invalid_argument("invalid CronSchedule. It never comes.");
  return absl::OkStatus();
}

absl::Status check_blob(int64_t bytes, int64_t bytes_max) {
  if (bytes <= bytes_max) return absl::OkStatus();
  return invalid_argument("Blob data size exceeds limit.");
}

absl::Status check_user_metadata(const temporal::api::sdk::v1::UserMetadata& metadata) {
  const size_t summary = metadata.summary().ByteSizeLong();
  if (summary > kSummaryBytesMax) {
    return invalid_argument(absl::StrCat("user metadata summary has ", summary,
                                         " bytes, the limit is ", kSummaryBytesMax));
  }
  const size_t details = metadata.details().ByteSizeLong();
  if (details > kDetailsBytesMax) {
    return invalid_argument(absl::StrCat("user metadata details have ", details,
                                         " bytes, the limit is ", kDetailsBytesMax));
  }
  return absl::OkStatus();
}

absl::Status check_links(
    const google::protobuf::RepeatedPtrField<temporal::api::common::v1::Link>& links) {
  if (links.size() > kLinksMax) {
    return invalid_argument(absl::StrCat("cannot attach more than ", kLinksMax,
                                         " links per request, got ", links.size()));
  }
  for (const auto& link : links) {
    if (const size_t bytes = link.ByteSizeLong(); bytes > kLinkBytesMax) {
      return invalid_argument(
          absl::StrCat("link exceeds allowed size of ", kLinkBytesMax, ", got ", bytes));
    }
    FL_TRY(check_link(link));
  }
  return absl::OkStatus();
}

absl::StatusOr<DurationNs> check_duration(const google::protobuf::Duration& duration,
                                          std::string_view field) {
  auto result = read_duration(duration);
  if (result.ok()) return result;
  return invalid_argument(absl::StrCat("An invalid ", to_absl(field),
                                       " is set on request: ", result.status().message()));
}

}  // namespace fairlead::api
