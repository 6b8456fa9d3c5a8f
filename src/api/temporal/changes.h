#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/field_mask.pb.h"
#include "history/options.h"
#include "shard/requests.h"
#include "temporal/api/activity/v1/message.pb.h"
#include "temporal/api/workflow/v1/message.pb.h"

// Partial updates: a mask names the fields of a message that are to be applied, in the spelling of
// the protos or in that of JSON. A field that is named and not set goes back to its default.
namespace fairlead::api {

// A name that no option has is InvalidArgument: who misspells one would otherwise believe that it
// was changed.
absl::StatusOr<history::ActivityChange> read_activity_change(
    const temporal::api::activity::v1::ActivityOptions& options,
    const google::protobuf::FieldMask& mask, int64_t id_bytes);

// Of a workflow only the priority can be changed so far. The run is left open.
absl::StatusOr<shard::ChangeRunOptions> read_workflow_change(
    const temporal::api::workflow::v1::WorkflowExecutionOptions& options,
    const google::protobuf::FieldMask& mask, const std::string& identity);

}  // namespace fairlead::api
