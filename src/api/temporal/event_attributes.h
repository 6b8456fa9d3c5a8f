#pragma once

#include "base/wire.h"
#include "model/model.pb.h"

namespace fairlead::api {

// Writes the fields of an event's attributes message that the engine knows; the door's own fields
// of the same message are not its matter.
void write_known_attributes(wire::Writer& writer, const model::Event& event);
// Those of events that have to do with other runs.
void write_other_run_attributes(wire::Writer& writer, const model::Event& event);

}  // namespace fairlead::api
