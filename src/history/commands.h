#pragma once

#include <optional>
#include <string>
#include <vector>

#include "history/transaction.h"
#include "history/workflow_task.h"

namespace fairlead::history {

// Commands are drafts of the events that they ask for:
//
//   ACTIVITY_SCHEDULED, ACTIVITY_CANCEL_REQUESTED, TIMER_STARTED, TIMER_CANCELED, MARKER_RECORDED,
//   SEARCH_ATTRIBUTES_UPSERTED, PROPERTIES_MODIFIED, CHILD_INITIATED, SIGNAL_EXTERNAL_INITIATED,
//   CANCEL_EXTERNAL_INITIATED, UPDATE_ACCEPTED, UPDATE_COMPLETED, UPDATE_REJECTED, and as the last
//   one WORKFLOW_COMPLETED, WORKFLOW_FAILED, WORKFLOW_CANCELED or WORKFLOW_CONTINUED_AS_NEW.

struct CommandRefusal {
  FailedCause cause = FailedCause::kUnhandledCommand;
  std::string message;
};

// Whether all commands can be carried out, in order, given what the run has pending. Drafts are
// normalised on the way. Nothing is changed in the run, so a refusal leaves no trace of it.
std::optional<CommandRefusal> check_commands(const Run& run, const Limits& limits,
                                             std::vector<model::Event>* commands);

// Changes the memo or the search attributes as the event says.
void upsert(const model::Event& event, model::RunState* state);

// An update that was admitted again is refused.
void forget_update(Transaction& tx, const std::string& id);

// Carries out commands that were checked.
void apply_commands(Transaction& tx, std::vector<model::Event> commands,
                    int64_t workflow_task_completed_id);

}  // namespace fairlead::history
