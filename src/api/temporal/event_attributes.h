#pragma once

#include "base/wire.h"
#include "model/model.pb.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {

// Writes the fields of an event's attributes message that the engine knows; the door's own fields
// of the same message are not its matter.
void write_known_attributes(wire::Writer& writer, const model::Event& event);
// Those of events that have to do with other runs.
void write_other_run_attributes(wire::Writer& writer, const model::Event& event);

// The other way round: what the engine has to know of an event that was written, to go on from it.
// What is not read stays with the door's fields. `event.kind` is set.
void read_known_attributes(const temporal::api::history::v1::HistoryEvent& written,
                           model::Event& event);
// The code of the worker that has completed a workflow task.
model::Build read_build(
    const temporal::api::history::v1::WorkflowTaskCompletedEventAttributes& completed);
void read_other_run_attributes(const temporal::api::history::v1::HistoryEvent& written,
                               model::Event& event);

}  // namespace fairlead::api
