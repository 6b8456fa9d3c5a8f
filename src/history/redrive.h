#pragma once

#include <string>
#include <vector>

#include "history/transaction.h"

// A failed run of Durable Workflow goes on as another one, from the step that it failed at: what
// had ended before is in the new run's history as it was, with its times.
//
//   failed run  started, step 1 done, step 2 done, step 3 failed, failed
//   new run     started, step 1 done, step 2 done, and a task
namespace fairlead::history {

// What the new run begins with, in the door's words.
struct Redrive {
  std::string start_door;
  std::vector<model::Event> events;  // to be written as they are
  int64_t steps = 0;                 // that the workflow has taken with them
};

// Who the new run is. It has the times of a new one, and no parent: that was told of the failure.
model::RunState redriven_run(const model::RunState& failed, const std::string& run_id);
void redrive_run(Transaction& tx, Redrive redrive);

}  // namespace fairlead::history
