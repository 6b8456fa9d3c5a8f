#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "model/model.pb.h"
#include "temporal/api/common/v1/message.pb.h"
#include "temporal/api/sdk/v1/user_metadata.pb.h"
#include "temporal/api/taskqueue/v1/message.pb.h"

// Checks of a request's form. Every refusal is InvalidArgument; clients match some of the texts, so
// they are the reference's where it has one.
namespace fairlead::api {

// "<field> length exceeds limit."
absl::Status check_length(std::string_view value, std::string_view field, int64_t bytes_max);
absl::Status check_workflow_id(const std::string& workflow_id, int64_t bytes_max);
// Empty, which means the current run, or a UUID.
absl::Status check_run_id(const std::string& run_id);
// `execution` may be null.
absl::Status check_execution(const temporal::api::common::v1::WorkflowExecution* execution,
                             int64_t bytes_max);

// An activity of a workflow, or, without a workflow id, one that stands alone.
absl::Status check_activity_ids(const std::string& workflow_id, const std::string& run_id,
                                const std::string& activity_id, int64_t bytes_max);

absl::Status check_task_queue_name(const std::string& name, int64_t bytes_max);
// `queue` may be null.
absl::Status check_task_queue(const temporal::api::taskqueue::v1::TaskQueue* queue,
                              int64_t bytes_max);

absl::Status check_priority(const temporal::api::common::v1::Priority& priority);
// Zeros stand for the defaults, and it is those that are compared then.
absl::Status check_retry_policy(const temporal::api::common::v1::RetryPolicy& policy);
// Fills in what a policy leaves open.
void complete_retry_policy(temporal::api::common::v1::RetryPolicy& policy);

// Empty, or an expression that has a next time.
absl::Status check_cron(const std::string& schedule);

absl::Status check_blob(int64_t bytes, int64_t bytes_max);
absl::Status check_user_metadata(const temporal::api::sdk::v1::UserMetadata& metadata);
absl::Status check_links(
    const google::protobuf::RepeatedPtrField<temporal::api::common::v1::Link>& links);

// "An invalid <field> is set on request: …"
absl::StatusOr<DurationNs> check_duration(const google::protobuf::Duration& duration,
                                          std::string_view field);

}  // namespace fairlead::api
