#pragma once

#include <string>

#include "absl/container/btree_map.h"
#include "history/rebuild.h"
#include "history/transaction.h"

// A reset begins a run again from the middle: a new run shares the events up to a workflow task,
// fails that task, and is given once more what came in from outside since.
//
//   base     1 2 3 4 | 5 6 7 signal 9 update ...
//   new run  1 2 3 4 | task failed, signal, update admitted, task scheduled
namespace fairlead::history {

// Whether a run can begin again where its history was rebuilt to: it has a workflow task there, or
// would have one at once.
bool may_begin_again(const Run& rebuilt);

struct Fork {
  std::string base_run_id;
  std::string run_id;  // of the new run
  std::string request_id;
  std::string reason;
  std::string namespace_name;
};
// Who the new run is, before its history is rebuilt.
model::RunState descendant(const model::RunState& base, int64_t event_id, const Fork& fork);

// Ends the run because a reset goes on from it, or from an earlier one of its chain. Neither its
// parent nor its children hear of it: they go on with the new run.
void end_for_reset(Transaction& tx, const Fork& fork);

// Makes the rebuilt run the new one: it begins now, its workflow task fails, and what was under way
// elsewhere begins anew.
void begin_again(Transaction& tx, const Rebuild& rebuild, const Fork& fork);

// Gives the new run an event of the base run, or of one that followed it, once more. Most kinds are
// not.
struct Reapply {
  bool signals = true;
  bool updates = true;
  bool options = true;
  // Answers of other runs to what was asked before this event: only they are the new run's.
  int64_t answers_below = 0;
};
void reapply(Transaction& tx, const model::Event& event, const Reapply& wanted);

// Asks other runs once more for what they have not answered. `promised` are the run ids that were
// promised to children, as far as they are known.
void ask_again(Transaction& tx, const Rebuild& rebuild,
               const absl::btree_map<int64_t, std::string>& promised);

}  // namespace fairlead::history
