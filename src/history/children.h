#pragma once

#include <string>

#include "history/transaction.h"

// What a run has to do with other runs: its children, and those that it signals or cancels. It
// tells them by letter and hears of the outcome later; see model::Letter.
namespace fairlead::history {

// Carries out the command. `draft` is the initiated event.
void initiate_child(Transaction& tx, model::Event draft, int64_t workflow_task_completed_id);
void initiate_external(Transaction& tx, model::Event draft, int64_t workflow_task_completed_id);

// The same for every delivery of a letter, so that the other side does once what it hears twice.
std::string letter_id(const std::string& from_run_id, int64_t event_id);

// The outcomes. What is no longer pending is left alone: they may come more than once.
void child_started(Transaction& tx, int64_t initiated_id, const std::string& run_id);
void child_start_failed(Transaction& tx, int64_t initiated_id, int cause);
void child_closed(Transaction& tx, const model::Letter::ChildClosed& closed);
void external_done(Transaction& tx, int64_t initiated_id);
void external_failed(Transaction& tx, int64_t initiated_id, int cause);

// This run closes before its child.
void tell_parent_closed(Transaction& tx, const model::ChildState& child);
// This run's chain ends with `closing`, the event with this id: its parent will hear of it.
void tell_child_closed(Transaction& tx, const model::Event& closing, int64_t event_id);

// Whether the run was started by this initiation of this parent.
bool is_child_of(const model::RunState& child, const model::RunName& parent, int64_t initiated_id);

}  // namespace fairlead::history
