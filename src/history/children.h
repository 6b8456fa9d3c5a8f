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
// What is kept of an initiated event while its outcome is not known.
model::ChildState new_child(const model::RunState& state, const model::Event& initiated);
model::ExternalState new_external(const model::RunState& state, const model::Event& initiated);
// Leave the letters that ask for it. `initiated` has all that the child begins with, `promised` is
// the child's run id if it was asked for before.
void ask_for_child(Transaction& tx, const model::ChildState& child, const model::Event& initiated,
                   const std::string& promised);
void ask_external(Transaction& tx, const model::ExternalState& external, std::string door);

// The outcomes. What is no longer pending is left alone: they may come more than once.
void child_started(Transaction& tx, int64_t initiated_id, const std::string& run_id);
void child_start_failed(Transaction& tx, int64_t initiated_id, int cause);
void child_closed(Transaction& tx, const model::Letter::ChildClosed& closed);
void external_done(Transaction& tx, int64_t initiated_id);
void external_failed(Transaction& tx, int64_t initiated_id, int cause);

// This run asks for the end of its child and will not hear of it.
void cancel_child(Transaction& tx, const model::ChildState& child);
// The child may clean up before it ends.
void ask_child_to_stop(Transaction& tx, const model::ChildState& child);
// This run closes before its child.
void tell_parent_closed(Transaction& tx, const model::ChildState& child);
// This run's chain ends with `closing`, the event with this id: its parent will hear of it.
void tell_child_closed(Transaction& tx, const model::Event& closing, int64_t event_id);
// The same for the schedule that has started it.
void tell_schedule(Transaction& tx, model::EventKind kind, int64_t event_id);

// Whether the run was started by this initiation (0: by any) of this parent, under one of its
// names.
bool is_child_of(const model::RunState& child, const model::RunName& parent,
                 const google::protobuf::RepeatedPtrField<std::string>& former_run_ids,
                 int64_t initiated_id);
// The run in which this event was first written.
const std::string& author_of(const model::RunState& state, int64_t event_id);

}  // namespace fairlead::history
