#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "base/wire.h"
#include "model/model.pb.h"
#include "temporal/api/enums/v1/workflow.pb.h"

// Small messages of the API that appear inside many others. Retry policies and priorities, which
// other parts of the door write too, are declared in codec.h.
namespace fairlead::api {

// A queue that everyone polls.
void write_task_queue(wire::Writer& writer, uint32_t field, std::string_view name);
// A queue that may belong to one worker.
void write_task_queue(wire::Writer& writer, uint32_t field, const model::QueueTarget& queue);
void write_execution(wire::Writer& writer, uint32_t field, std::string_view workflow_id,
                     std::string_view run_id);
// WorkflowType and ActivityType, which look the same.
void write_type(wire::Writer& writer, uint32_t field, std::string_view name);
void write_failure(wire::Writer& writer, uint32_t field, const model::Failure& failure);
// Payloads with a single one: `text` as a JSON string, which every SDK can read.
void write_json_text(wire::Writer& writer, uint32_t field, std::string_view text);
// ActivityOptions as they are in force.
void write_activity_options(wire::Writer& writer, uint32_t field,
                            const model::ActivityScheduled& scheduled);
// Memo and SearchAttributes: one map from a name to a payload, in the order of the names so that
// equal runs have equal answers.
void write_payload_map(wire::Writer& writer, uint32_t field, uint32_t map_field,
                       const google::protobuf::Map<std::string, std::string>& payloads);
// `run_id` is that of the points which do not name another.
using ResetPoints = google::protobuf::RepeatedPtrField<model::ResetPoint>;
void write_reset_points(wire::Writer& writer, uint32_t field, const ResetPoints& points,
                        std::string_view run_id = "");
temporal::api::enums::v1::PendingActivityState pending_state(const model::ActivityState& activity);
// Left out when not set.
void write_time(wire::Writer& writer, uint32_t field, TimeNs time);

}  // namespace fairlead::api
