#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "api/temporal/handler.h"
#include "base/wire.h"
#include "model/model.pb.h"
#include "shard/requests.h"
#include "temporal/api/protocol/v1/message.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// Updates travel as messages of a protocol: the server sends a request with a workflow task, the
// worker answers in the completion of one.
namespace fairlead::api {

// What a worker says of an update, as a draft; see history/commands.h. InvalidArgument if it cannot
// be understood.
absl::StatusOr<model::Event> read_update_answer(
    const temporal::api::protocol::v1::Message& message);

// The request as a worker gets it. `event_id` is the last one that comes before it.
void write_update(wire::Writer& writer, uint32_t field, const shard::AttachedUpdate& update,
                  int64_t event_id);

// Checks a client's update and turns it into the engine's words.
absl::StatusOr<shard::UpdateRequest> read_update(
    const Service& service, const shard::NamespacePtr& ns,
    const temporal::api::workflowservice::v1::UpdateWorkflowExecutionRequest& request);

// UpdateWorkflowExecutionResponse.
std::string encode_updated(const shard::UpdateResult& result, const std::string& namespace_name,
                           const std::string& workflow_id);

}  // namespace fairlead::api
