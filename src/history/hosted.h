#pragma once

#include "history/lifecycle.h"
#include "history/transaction.h"

// Activities without workflow code, as the Durable Workflow door has them: each stands in a run of
// that door which is listed, read, cancelled and terminated like any other. The run has no workflow
// tasks, nobody to tell anything to, and ends with its one activity.
//
// (Temporal's have no such run around them: standalone.h.)
namespace fairlead::history {

inline bool hosts_activity(const model::RunState& state) {
  return state.durable().hosts_activity();
}

// Begins the run and its activity, whose scheduled event `draft` is.
void start_hosted(Transaction& tx, const Beginning& beginning, model::Event draft);

// Writes the event that ends the activity, and the end of the run that follows from it.
int64_t end_hosted(Transaction& tx, model::Event event);

}  // namespace fairlead::history
