#include "history/reset.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "history/activity.h"
#include "history/callbacks.h"
#include "history/children.h"
#include "history/lifecycle.h"
#include "history/operate.h"
#include "history/workflow_task.h"

namespace fairlead::history {

namespace {

constexpr char kResetter[] = "history-resetter";
constexpr char kNoRequest[] = "emptyUuid";  // nobody has asked for the task that fails

model::Failure reset_failure(const std::string& reason) {
  model::Failure failure;
  failure.set_kind(model::Failure::RESET);
  failure.set_message(reason);
  return failure;
}

// Every row of the new run has to be written.
void touch_all(Run& run) {
  for (const auto& [id, activity] : run.activities) run.touched_activities.insert(id);
  for (const auto& [id, timer] : run.timers) run.touched_timers.insert(id);
  for (const auto& [id, child] : run.children) run.touched_children.insert(id);
  for (const auto& [id, external] : run.externals) run.touched_externals.insert(id);
  for (const auto& [id, update] : run.updates) run.touched_updates.insert(id);
  for (const auto& [number, callback] : run.callbacks) run.touched_callbacks.insert(number);
  for (const auto& [id, request] : run.requests) run.touched_requests.insert(id);
}

// The task that the shared events end with. It is given to nobody: it fails at once.
void fail_task(Transaction& tx, const Fork& fork) {
  auto& state = tx.state();
  if (!state.has_workflow_task()) {
    // The last one had failed and would be tried again.
    state.set_task_attempt(1);
    schedule_workflow_task(tx);
    tx.offers().clear();
  }
  auto* task = state.mutable_workflow_task();
  if (task->started_id() == 0) {
    start_workflow_task(tx, task->stamp(), {kServerIdentity, kNoRequest, false});
  }
  TaskFailure failure;
  failure.cause = static_cast<int>(FailedCause::kResetWorkflow);
  failure.failure = reset_failure(fork.reason);
  failure.identity = kServerIdentity;
  failure.base_run_id = fork.base_run_id;
  failure.new_run_id = fork.run_id;
  fail_workflow_task(tx, std::move(failure));
}

// A worker that has been given an attempt reports to the base run. If the history tells of it, it
// has to tell how it ended; else the attempt never was.
void restart_activities(Transaction& tx, const Rebuild& rebuild, const std::string& reason) {
  std::vector<int64_t> ids;
  for (const auto& [id, activity] : tx.run().activities) ids.push_back(id);
  for (const int64_t id : ids) {
    auto& activity = tx.run().activities[id];
    const auto started = rebuild.started_activities().find(id);
    if (started == rebuild.started_activities().end()) {
      activity.set_first_scheduled_ns(tx.now);
      activity.set_scheduled_ns(tx.now);
      offer_activity(tx, activity);
      continue;
    }
    model::Event event;
    event.set_kind(model::ACTIVITY_FAILED);
    auto* ended = event.mutable_activity_ended();
    ended->set_scheduled_id(id);
    ended->set_started_id(started->second);
    ended->set_identity(activity.started_identity());
    ended->set_retry_state(model::RETRY_NON_RETRYABLE_FAILURE);
    *ended->mutable_failure() = reset_failure(reason);
    tx.erase_activity(id);
    tx.record(std::move(event));
  }
}

void admit_again(Transaction& tx, const model::UpdateEvent& update) {
  // An accepted update whose request is not there was admitted before: that event has it.
  if (update.request().empty() || tx.run().updates.contains(update.update_id())) return;
  model::Event event;
  event.set_kind(model::UPDATE_ADMITTED);
  event.mutable_update_event()->set_update_id(update.update_id());
  event.mutable_update_event()->set_request(update.request());
  auto& admitted = tx.run().updates[update.update_id()];
  admitted.set_update_id(update.update_id());
  admitted.set_request(update.request());
  admitted.set_admitted_id(tx.append(std::move(event)));
  tx.run().touched_updates.insert(update.update_id());
}

void change_options_again(Transaction& tx, const model::Event& event) {
  const auto& options = event.workflow_options_updated();
  if (options.has_priority()) {
    return change_priority(tx, options.priority(), event.door(), event.envelope());
  }
  const auto& callbacks = options.attached_callbacks();
  // More than a run may have were never attached.
  (void)attach(tx, {options.attached_request_id(),
                    {callbacks.begin(), callbacks.end()},
                    event.door(),
                    event.envelope()});
}

void reapply_child_closed(Transaction& tx, const model::Event& event) {
  const auto& about = event.child_event();
  const auto child = tx.run().children.find(about.initiated_id());
  if (child == tx.run().children.end()) return;
  model::Letter::ChildClosed closed;
  closed.set_kind(event.kind());
  closed.set_door(event.door());
  closed.set_retry_state(about.retry_state());
  *closed.mutable_child() = about.run();
  closed.set_first_run_id(child->second.run_id());
  closed.set_initiated_id(about.initiated_id());
  child_closed(tx, closed);
}

void reapply_answer(Transaction& tx, const model::Event& event, int64_t asked_below) {
  const auto& child = event.child_event();
  const auto& external = event.external_event();
  if (std::max(child.initiated_id(), external.initiated_id()) >= asked_below) return;
  switch (event.kind()) {
    case model::CHILD_STARTED:
      return child_started(tx, child.initiated_id(), child.run().run_id());
    case model::CHILD_START_FAILED:
      return child_start_failed(tx, child.initiated_id(), child.failed_cause());
    case model::CHILD_COMPLETED:
    case model::CHILD_FAILED:
    case model::CHILD_CANCELED:
    case model::CHILD_TIMED_OUT:
    case model::CHILD_TERMINATED:
      return reapply_child_closed(tx, event);
    case model::EXTERNAL_SIGNALED:
    case model::EXTERNAL_CANCEL_REQUESTED:
      return external_done(tx, external.initiated_id());
    case model::SIGNAL_EXTERNAL_FAILED:
    case model::CANCEL_EXTERNAL_FAILED:
      return external_failed(tx, external.initiated_id(), external.failed_cause());
    default:
      return;
  }
}

}  // namespace

bool may_begin_again(const Run& rebuilt) {
  return rebuilt.is_open() &&
         (rebuilt.state.has_workflow_task() || rebuilt.state.task_attempt() > 1);
}

model::RunState descendant(const model::RunState& base, int64_t event_id, const Fork& fork) {
  model::RunState state;
  state.set_namespace_num(base.namespace_num());
  state.set_namespace_id(base.namespace_id());
  state.set_workflow_id(base.workflow_id());
  state.set_run_id(fork.run_id);
  state.set_flavour(base.flavour());
  state.set_version(base.version());
  state.set_user_metadata(base.user_metadata());
  state.set_start_request_id(base.start_request_id());
  state.set_reset_request_id(fork.request_id);
  auto* nearest = state.add_ancestors();
  nearest->set_run_id(base.run_id());
  nearest->set_events_below(event_id);
  for (const auto& ancestor : base.ancestors()) {
    auto* farther = state.add_ancestors();
    farther->set_run_id(ancestor.run_id());
    farther->set_events_below(std::min(ancestor.events_below(), event_id));
  }
  return state;
}

void end_for_reset(Transaction& tx, const Fork& fork) {
  tx.state().set_reset_run_id(fork.run_id);
  model::Event event;
  event.set_kind(model::WORKFLOW_TERMINATED);
  event.mutable_workflow_closed()->set_reason(fork.reason);
  event.mutable_workflow_closed()->set_identity(kResetter);
  terminate_run(tx, std::move(event));
}

void begin_again(Transaction& tx, const Rebuild& rebuild, const Fork& fork) {
  auto& state = tx.state();
  FL_ASSERT(may_begin_again(tx.run()), "the place was checked");
  touch_all(tx.run());
  // An event that asks something of another run may leave the namespace out; its answer does not.
  for (auto& [id, external] : tx.run().externals) {
    external.mutable_event()->set_namespace_name(fork.namespace_name);
  }
  // Its time begins now, and so do its timeouts.
  const DurationNs backoff = state.execution_ns() - state.start_ns();
  state.set_original_start_ns(state.start_ns());
  state.set_start_ns(tx.now);
  state.set_execution_ns(add_saturated(tx.now, backoff));
  if (state.execution_timeout_ns() > 0) {
    state.set_execution_expiration_ns(add_saturated(tx.now, state.execution_timeout_ns()));
  }
  state.set_run_expiration_ns(run_expiration(state));
  fail_task(tx, fork);
  restart_activities(tx, rebuild, fork.reason);
}

void reapply(Transaction& tx, const model::Event& event, const Reapply& wanted) {
  switch (event.kind()) {
    case model::WORKFLOW_SIGNALED:
      if (wanted.signals) (void)signal_run(tx, event.door(), event.envelope());
      return;
    case model::UPDATE_ADMITTED:
    case model::UPDATE_ACCEPTED:
      if (wanted.updates) admit_again(tx, event.update_event());
      return;
    case model::WORKFLOW_OPTIONS_UPDATED:
      if (wanted.options) change_options_again(tx, event);
      return;
    default:
      return reapply_answer(tx, event, wanted.answers_below);
  }
}

void ask_again(Transaction& tx, const Rebuild& rebuild,
               const absl::btree_map<int64_t, std::string>& promised) {
  for (const auto& [id, event] : rebuild.unanswered()) {
    const auto child = tx.run().children.find(id);
    if (child != tx.run().children.end() && !child->second.is_started()) {
      const auto found = promised.find(id);
      ask_for_child(tx, child->second, event, found == promised.end() ? "" : found->second);
    }
    const auto external = tx.run().externals.find(id);
    if (external != tx.run().externals.end()) {
      ask_external(tx, external->second, event.external_event().target_door());
    }
  }
}

}  // namespace fairlead::history
