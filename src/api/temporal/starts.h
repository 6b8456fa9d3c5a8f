#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "api/temporal/handler.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// The start of a workflow, alone or as a part of another call.
namespace fairlead::api {

// Checks a start and turns it into the engine's words. Empties the request.
absl::StatusOr<shard::StartRequest> read_start(
    const Service& service, const shard::NamespacePtr& ns,
    temporal::api::workflowservice::v1::StartWorkflowExecutionRequest& request);

// StartWorkflowExecutionResponse.
std::string encode_started(const shard::StartResult& result, const std::string& namespace_name,
                           const std::string& workflow_id, const std::string& request_id);

}  // namespace fairlead::api
