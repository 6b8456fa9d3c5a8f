#pragma once

#include <vector>

#include "absl/status/status.h"
#include "history/transaction.h"

// Durable selections: operations that are begun together and of which the first to end wins. The
// others go on; the workflow may wait for them later or cancel them.
//
//   begun        steps 4, 5, 6 of members a {4}, b {5, 6}
//   5 completes  b has an operation left
//   4 completes  a is the winner: SELECTION_RESOLVED, the workflow is woken
//   6 completes  b has ended; the workflow may have waited for it
//
// A member that is a list ends when all of it has succeeded or any of it has failed.
namespace fairlead::history {

// Checks the selections that numbered commands begin.
absl::Status check_selections(const model::RunState& state, std::vector<model::Event>* commands);
// Remembers the selections that the commands begin; the places leave the drafts.
void begin_selections(model::DurableState* durable, std::vector<model::Event>* commands);

// An operation of a selection has ended with the event of this id, which is written.
void end_selected(Transaction& tx, const model::Step& step, model::EventKind kind,
                  int64_t event_id);
// Whether a selection has no winner yet.
bool has_open_selection(const model::DurableState& durable);
// Carries out the command that ends a member which is still under way.
void cancel_selected(Transaction& tx, const model::SelectionEvent& asked);

// The code that waits for these steps goes on without them: members there will not be heard of.
void interrupt_selections(model::DurableState* durable, int64_t base, int64_t span);

// Something has come that conditions may depend on. The SDK judges only the wait that its code
// stands at, never one inside of a selection; so what comes ends the wait of a selection that was
// opened last, and the code looks for itself.
void meet_selected_wait(Transaction& tx);

}  // namespace fairlead::history
