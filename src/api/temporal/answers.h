#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "api/temporal/call.h"
#include "shard/requests.h"

namespace fairlead::api {

// Engine answers as serialised API messages.
std::string encode_poll_workflow_task(const shard::WorkflowTask& task);
std::string encode_poll_activity_task(const shard::ActivityTask& task, std::string_view namespace_name);
// DescribeWorkflowExecutionResponse.
std::string encode_describe(const shard::RunView& view);

// Task tokens: self-contained, so that they outlive the process. A decoded token of the wrong kind or
// with broken bytes is InvalidArgument.
std::string encode_token(const shard::TaskToken& token);
absl::StatusOr<shard::TaskToken> decode_token(std::string_view bytes);
std::string encode_query_token(std::string_view namespace_id, std::string_view query_id);
struct QueryToken {
  std::string namespace_id;
  std::string query_id;
};
absl::StatusOr<QueryToken> decode_query_token(std::string_view bytes);

// The gRPC status with the errordetails message that SDKs turn into exceptions.
RpcStatus to_rpc_status(const absl::Status& status);

}  // namespace fairlead::api
