#pragma once

#include <cstdint>

#include "base/time.h"
#include "history/run.h"

// Points to which an operator may want to reset a run because of the code that went on from there:
// the first workflow task that each build of a worker has completed, in the run itself or in those
// before it in its chain.
namespace fairlead::history {

// A build has completed a workflow task. It leaves a point if it is new to the chain.
void add_reset_point(Run& run, const model::Build& build, int64_t completed_id, TimeNs at);

// Gives the points of a run that has closed to the one that follows it, but for those whose runs
// are gone.
void hand_on_reset_points(const model::RunState& last, model::RunState* next);

}  // namespace fairlead::history
