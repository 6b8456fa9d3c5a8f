#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "api/temporal/call.h"
#include "shard/requests.h"

namespace fairlead::api {

// Engine answers as serialised API messages.
//
// A task without a workflow id is a poll that ended with nothing, and its answer has no bytes. The
// namespace's id goes into the token of a direct query and nowhere else.
std::string encode_poll_workflow_task(const shard::WorkflowTask& task,
                                      std::string_view namespace_id = {});
std::string encode_poll_activity_task(const shard::ActivityTask& task,
                                      std::string_view namespace_name);
// DescribeWorkflowExecutionResponse.
std::string encode_describe(const shard::RunView& view);

// Task tokens: self-contained, so that they outlive the process. A decoded token of the wrong kind
// or with broken bytes is InvalidArgument.
std::string encode_token(const shard::TaskToken& token);
absl::StatusOr<shard::TaskToken> decode_token(std::string_view bytes);
std::string encode_query_token(std::string_view namespace_id, std::string_view query_id);
struct QueryToken {
  std::string namespace_id;
  std::string query_id;
};
absl::StatusOr<QueryToken> decode_query_token(std::string_view bytes);

// Where a reader of a history goes on: the run is fixed by the first page.
struct HistoryToken {
  std::string run_id;
  int64_t next_event = 1;
  bool is_open = false;  // the run had not closed, so the reader may wait for more
};
std::string encode_history_token(const HistoryToken& token);
absl::StatusOr<HistoryToken> decode_history_token(std::string_view bytes);

// What someone knows of an activity without a workflow who waits for it to change.
struct ChangeToken {
  std::string run_id;
  int64_t transitions = 0;
};
std::string encode_change_token(const ChangeToken& token);
absl::StatusOr<ChangeToken> decode_change_token(std::string_view bytes);

// Of an activity without a workflow: its ActivityExecutionInfo and, once it has ended, its
// ActivityExecutionOutcome, made of the event that ended it.
struct InfoParts {
  bool heartbeat_details = false;
  bool last_failure = false;
};
std::string encode_activity_info(const shard::RunView& view, InfoParts parts);
std::string encode_outcome(const std::string& ended_event);
// The input out of the event that scheduled an activity; empty: there is none.
std::string scheduled_input(const std::string& scheduled_event);

// The gRPC status with the errordetails message that SDKs turn into exceptions.
RpcStatus to_rpc_status(const absl::Status& status);

}  // namespace fairlead::api
