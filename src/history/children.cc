#include "history/children.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "history/activity.h"
#include "history/cancellation.h"
#include "history/durable.h"
#include "history/lifecycle.h"

namespace fairlead::history {

namespace {

model::RunName name_of(const model::RunState& state) {
  model::RunName name;
  name.set_workflow_id(state.workflow_id());
  name.set_run_id(state.run_id());
  return name;
}

model::Letter letter_to(const model::RunState& from, const model::RunName& to, int64_t event_id) {
  model::Letter letter;
  letter.set_namespace_num(from.namespace_num());
  letter.set_flavour(from.flavour());
  *letter.mutable_to() = to;
  letter.set_request_id(letter_id(author_of(from, event_id), event_id));
  for (const auto& ancestor : from.ancestors()) letter.add_former_run_ids(ancestor.run_id());
  return letter;
}

model::Event child_event(model::EventKind kind, const model::ChildState& child) {
  model::Event event;
  event.set_kind(kind);
  auto* about = event.mutable_child_event();
  about->set_namespace_name(child.initiated().namespace_name());
  about->set_namespace_id(child.initiated().namespace_id());
  about->mutable_run()->set_workflow_id(child.initiated().workflow_id());
  about->mutable_run()->set_run_id(child.run_id());
  about->set_workflow_type(child.initiated().workflow_type());
  about->set_initiated_id(child.initiated_id());
  if (child.initiated().has_step()) *about->mutable_step() = child.initiated().step();
  return event;
}

model::ChildState* find_child(Transaction& tx, int64_t initiated_id) {
  const auto found = tx.run().children.find(initiated_id);
  return found == tx.run().children.end() ? nullptr : &found->second;
}

model::EventKind parents_kind(model::EventKind closing) {
  switch (closing) {
    case model::WORKFLOW_COMPLETED:
      return model::CHILD_COMPLETED;
    case model::WORKFLOW_FAILED:
      return model::CHILD_FAILED;
    case model::WORKFLOW_CANCELED:
      return model::CHILD_CANCELED;
    case model::WORKFLOW_TIMED_OUT:
      return model::CHILD_TIMED_OUT;
    default:
      FL_ASSERT(closing == model::WORKFLOW_TERMINATED, "a chain ends in one of five ways");
      return model::CHILD_TERMINATED;
  }
}

// Writes how a signal or a cancel request ended, and forgets it.
void end_external(Transaction& tx, int64_t initiated_id, model::EventKind if_signal,
                  model::EventKind if_cancel, int cause) {
  tx.settle_letter(initiated_id);
  const auto found = tx.run().externals.find(initiated_id);
  if (found == tx.run().externals.end()) return;
  model::Event event;
  event.set_kind(found->second.kind() == model::SIGNAL_EXTERNAL_INITIATED ? if_signal : if_cancel);
  *event.mutable_external_event() = std::move(*found->second.mutable_event());
  event.mutable_external_event()->set_initiated_id(initiated_id);
  event.mutable_external_event()->set_failed_cause(cause);
  tx.erase_external(initiated_id);
  tx.record(std::move(event));
}

model::ChildInitiated as_shown(model::ChildInitiated asked) {
  asked.clear_memo();
  asked.clear_search_attributes();
  asked.clear_start_door();
  asked.clear_start_envelope();
  asked.clear_user_metadata();
  return asked;
}

// The parent does not want its child any longer.
void end_child(Transaction& tx, const model::ChildState& child, model::ParentClosePolicy policy) {
  model::RunName to;
  to.set_workflow_id(child.initiated().workflow_id());
  auto letter = letter_to(tx.state(), to, child.initiated_id());
  auto* body = letter.mutable_parent_closed();
  body->set_policy(policy);
  *body->mutable_parent() = name_of(tx.state());
  body->set_initiated_id(child.initiated_id());
  body->set_first_run_id(child.run_id());
  if (policy == model::PARENT_CLOSE_ASK_TO_STOP) {
    *body->mutable_cancellation() = context_for_child(tx.state(), tx.now);
  }
  // It takes the place of the letter that asks for the start: what was not started never is.
  tx.post(child.initiated_id(), std::move(letter));
}

}  // namespace

std::string letter_id(const std::string& from_run_id, int64_t event_id) {
  return absl::StrCat(from_run_id, "/", event_id);
}

const std::string& author_of(const model::RunState& state, int64_t event_id) {
  // The farthest ancestor that has the event wrote it.
  for (auto at = state.ancestors().rbegin(); at != state.ancestors().rend(); ++at) {
    if (event_id < at->events_below()) return at->run_id();
  }
  return state.run_id();
}

model::ChildState new_child(const model::RunState& state, const model::Event& initiated) {
  model::ChildState child;
  child.set_initiated_id(initiated.id());
  *child.mutable_initiated() = as_shown(initiated.child_initiated());
  child.set_request_id(letter_id(author_of(state, initiated.id()), initiated.id()));
  return child;
}

model::ExternalState new_external(const model::RunState& state, const model::Event& initiated) {
  model::ExternalState external;
  external.set_initiated_id(initiated.id());
  external.set_kind(initiated.kind());
  *external.mutable_event() = initiated.external_event();
  external.mutable_event()->clear_target_door();
  external.set_request_id(letter_id(author_of(state, initiated.id()), initiated.id()));
  return external;
}

void initiate_child(Transaction& tx, model::Event draft, int64_t workflow_task_completed_id) {
  const auto& state = tx.state();
  auto asked = std::move(*draft.mutable_child_initiated());
  asked.set_workflow_task_completed_id(workflow_task_completed_id);
  asked.set_flavour(state.flavour());
  if (is_durable(state)) {
    *asked.mutable_memo() = state.memo();
    *asked.mutable_search_attributes() = state.search_attributes();
  }
  if (asked.task_queue().empty()) asked.set_task_queue(state.task_queue());
  asked.set_task_timeout_ns(effective_task_timeout(
      tx.limits, asked.task_timeout_ns(),
      asked.run_timeout_ns() != 0 ? asked.run_timeout_ns() : asked.execution_timeout_ns()));

  model::Event initiated;
  *initiated.mutable_child_initiated() = std::move(asked);
  *draft.mutable_child_initiated() = as_shown(initiated.child_initiated());
  initiated.set_id(tx.append(std::move(draft)));
  auto child = new_child(state, initiated);
  ask_for_child(tx, child, initiated, initiated.child_initiated().promised_run_id());
  tx.add_child(std::move(child));
}

void ask_for_child(Transaction& tx, const model::ChildState& child, const model::Event& initiated,
                   const std::string& promised) {
  const auto& state = tx.state();
  const int64_t id = child.initiated_id();
  auto asked = initiated.child_initiated();
  model::RunName to;
  to.set_workflow_id(asked.workflow_id());
  to.set_run_id(promised);
  auto letter = letter_to(state, to, id);
  auto* start = letter.mutable_start_child();
  auto* parent = start->mutable_parent();
  parent->set_namespace_name(asked.namespace_name());
  parent->set_namespace_id(asked.namespace_id());
  *parent->mutable_run() = name_of(state);
  parent->set_initiated_id(id);
  *start->mutable_root() = state.has_root() ? state.root() : name_of(state);
  if (author_of(state, id) != state.run_id()) start->set_author_run_id(author_of(state, id));
  *asked.mutable_priority() = merge_priority(state.priority(), asked.priority());
  // Another queue has other workers.
  if (asked.task_queue() == state.task_queue()) start->set_version(state.version());
  *start->mutable_child() = std::move(asked);
  tx.post(id, std::move(letter));
}

void initiate_external(Transaction& tx, model::Event draft, int64_t workflow_task_completed_id) {
  auto* asked = draft.mutable_external_event();
  asked->set_workflow_task_completed_id(workflow_task_completed_id);
  std::string door = std::move(*asked->mutable_target_door());
  asked->clear_target_door();
  model::Event initiated;
  initiated.set_kind(draft.kind());
  *initiated.mutable_external_event() = *asked;
  initiated.set_id(tx.append(std::move(draft)));
  auto external = new_external(tx.state(), initiated);
  ask_external(tx, external, std::move(door));
  tx.add_external(std::move(external));
}

void ask_external(Transaction& tx, const model::ExternalState& external, std::string door) {
  const int64_t id = external.initiated_id();
  auto letter = letter_to(tx.state(), external.event().run(), id);
  auto* body = letter.mutable_external();
  body->set_kind(external.kind());
  body->set_door(std::move(door));
  *body->mutable_from() = name_of(tx.state());
  body->set_initiated_id(id);
  body->set_children_only(external.event().children_only());
  tx.post(id, std::move(letter));
}

void child_started(Transaction& tx, int64_t initiated_id, const std::string& run_id) {
  auto* child = find_child(tx, initiated_id);
  if (child == nullptr || child->is_started()) return;
  tx.settle_letter(initiated_id);
  tx.touch(*child).set_is_started(true);
  child->set_run_id(run_id);
  auto event = child_event(model::CHILD_STARTED, *child);
  event.set_door(std::move(*child->mutable_initiated()->mutable_started_door()));
  child->mutable_initiated()->clear_started_door();
  child->set_started_id(tx.record(std::move(event)));
}

void child_start_failed(Transaction& tx, int64_t initiated_id, int cause) {
  auto* child = find_child(tx, initiated_id);
  if (child == nullptr || child->is_started()) return;
  tx.settle_letter(initiated_id);
  auto event = child_event(model::CHILD_START_FAILED, *child);
  event.mutable_child_event()->set_failed_cause(cause);
  tx.erase_child(initiated_id);
  tx.record(std::move(event));
}

void child_closed(Transaction& tx, const model::Letter::ChildClosed& closed) {
  auto* child = find_child(tx, closed.initiated_id());
  if (child == nullptr) return;
  // A short-lived child may have closed before the news of its start came back.
  if (!child->is_started()) child_started(tx, closed.initiated_id(), closed.first_run_id());
  if (child->run_id() != closed.first_run_id()) return;
  auto event = child_event(closed.kind(), *child);
  event.set_door(closed.door());
  auto* about = event.mutable_child_event();
  *about->mutable_run() = closed.child();
  // What is selected is known by one name, also if the child has gone on in another run.
  if (about->step().selects()) about->mutable_run()->set_run_id(closed.first_run_id());
  about->set_started_id(child->started_id());
  about->set_retry_state(closed.retry_state());
  tx.erase_child(closed.initiated_id());
  tx.record(std::move(event));
}

void external_done(Transaction& tx, int64_t initiated_id) {
  end_external(tx, initiated_id, model::EXTERNAL_SIGNALED, model::EXTERNAL_CANCEL_REQUESTED, 0);
}

void external_failed(Transaction& tx, int64_t initiated_id, int cause) {
  end_external(tx, initiated_id, model::SIGNAL_EXTERNAL_FAILED, model::CANCEL_EXTERNAL_FAILED,
               cause);
}

void tell_parent_closed(Transaction& tx, const model::ChildState& child) {
  const auto policy = child.initiated().parent_close_policy();
  // An abandoned child is started even now, if it was not yet.
  if (policy != model::PARENT_CLOSE_ABANDON) end_child(tx, child, policy);
}

void cancel_child(Transaction& tx, const model::ChildState& child) {
  end_child(tx, child, model::PARENT_CLOSE_REQUEST_CANCEL);
}

void ask_child_to_stop(Transaction& tx, const model::ChildState& child) {
  end_child(tx, child, model::PARENT_CLOSE_ASK_TO_STOP);
}

void tell_child_closed(Transaction& tx, const model::Event& closing, int64_t event_id) {
  const auto& state = tx.state();
  if (!state.has_parent()) return;
  auto letter = letter_to(state, state.parent().run(), event_id);
  auto* body = letter.mutable_child_closed();
  body->set_kind(parents_kind(closing.kind()));
  body->set_door(tx.codec().tell_parent(closing));
  body->set_retry_state(closing.workflow_closed().retry_state());
  *body->mutable_child() = name_of(state);
  body->set_first_run_id(state.first_run_id());
  body->set_parent_run_id(state.parent().run().run_id());
  body->set_initiated_id(state.parent().initiated_id());
  tx.post(event_id, std::move(letter));
}

void tell_schedule(Transaction& tx, model::EventKind kind, int64_t event_id) {
  const auto& state = tx.state();
  if (!state.has_schedule()) return;
  auto letter = letter_to(state, {}, event_id);
  *letter.mutable_scheduled_closed()->mutable_schedule() = state.schedule();
  letter.mutable_scheduled_closed()->set_kind(kind);
  tx.post(event_id, std::move(letter));
}

bool is_child_of(const model::RunState& child, const model::RunName& parent,
                 const google::protobuf::RepeatedPtrField<std::string>& former_run_ids,
                 int64_t initiated_id) {
  const auto& known = child.parent().run();
  return child.has_parent() && known.workflow_id() == parent.workflow_id() &&
         (known.run_id() == parent.run_id() ||
          std::find(former_run_ids.begin(), former_run_ids.end(), known.run_id()) !=
              former_run_ids.end()) &&
         (initiated_id == 0 || child.parent().initiated_id() == initiated_id);
}

}  // namespace fairlead::history
