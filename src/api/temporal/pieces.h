#pragma once

#include <string_view>

#include "base/time.h"
#include "base/wire.h"
#include "model/model.pb.h"

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
// Left out when not set.
void write_time(wire::Writer& writer, uint32_t field, TimeNs time);

}  // namespace fairlead::api
