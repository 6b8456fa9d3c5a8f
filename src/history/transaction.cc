#include "history/transaction.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "history/callbacks.h"
#include "history/children.h"
#include "history/durable.h"
#include "history/hosted.h"
#include "history/lifecycle.h"
#include "history/standalone.h"
#include "history/workflow_task.h"

namespace fairlead::history {

bool is_buffered_kind(model::EventKind kind) {
  switch (kind) {
    case model::ACTIVITY_STARTED:
    case model::ACTIVITY_COMPLETED:
    case model::ACTIVITY_FAILED:
    case model::ACTIVITY_TIMED_OUT:
    case model::ACTIVITY_CANCELED:
    case model::TIMER_FIRED:
    case model::WORKFLOW_CANCEL_REQUESTED:
    case model::WORKFLOW_SIGNALED:
    case model::CHILD_START_FAILED:
    case model::CHILD_STARTED:
    case model::CHILD_COMPLETED:
    case model::CHILD_FAILED:
    case model::CHILD_CANCELED:
    case model::CHILD_TIMED_OUT:
    case model::CHILD_TERMINATED:
    case model::CANCEL_EXTERNAL_FAILED:
    case model::EXTERNAL_CANCEL_REQUESTED:
    case model::SIGNAL_EXTERNAL_FAILED:
    case model::EXTERNAL_SIGNALED:
    case model::WORKFLOW_OPTIONS_UPDATED:
      return true;
    default:
      return false;
  }
}

bool wakes_workflow(model::Flavour flavour, model::EventKind kind) {
  FL_ASSERT(flavour == model::TEMPORAL, "the other flavour's rule is in history/durable.h");
  return is_buffered_kind(kind) && kind != model::ACTIVITY_STARTED &&
         kind != model::WORKFLOW_OPTIONS_UPDATED;
}

namespace {

bool ends_activity(model::EventKind kind) {
  return kind == model::ACTIVITY_COMPLETED || kind == model::ACTIVITY_FAILED ||
         kind == model::ACTIVITY_TIMED_OUT || kind == model::ACTIVITY_CANCELED;
}

bool ends_child(model::EventKind kind) {
  return kind == model::CHILD_COMPLETED || kind == model::CHILD_FAILED ||
         kind == model::CHILD_CANCELED || kind == model::CHILD_TIMED_OUT ||
         kind == model::CHILD_TERMINATED;
}

// Ends of activities and children are written after everything else that was buffered: their
// started events have to come first, and a worker sees signals before the results that arrived with
// them.
bool is_finish_kind(model::EventKind kind) { return ends_activity(kind) || ends_child(kind); }

}  // namespace

int64_t Transaction::append(model::Event event) {
  FL_ASSERT(!closed_now_, "nothing follows the closing event");
  auto& state = run_.state;
  // Whatever is written while a task exists that has only promised its events comes after them.
  if (state.workflow_task().speculative()) write_virtual_events(*this);
  const int64_t id = state.next_event_id();
  event.set_id(id);
  if (event.time_ns() == 0) event.set_time_ns(now);
  if (first_event_id_ == 0) first_event_id_ = id;
  const size_t before = events_.size();
  codec_.append_event(event, &events_);
  if (event.kind() == model::WORKFLOW_OPTIONS_UPDATED) note_attached(*this, event);
  state.set_next_event_id(id + 1);
  state.set_history_bytes(state.history_bytes() + static_cast<int64_t>(events_.size() - before));
  return id;
}

int64_t Transaction::record(model::Event event) {
  if (is_standalone(run_.state)) return record_standalone(*this, std::move(event));
  if (is_durable(run_.state)) return record_durable(*this, std::move(event));
  const bool wakes = wakes_workflow(run_.state.flavour(), event.kind());
  if ((run_.has_started_task() || in_commands_) && is_buffered_kind(event.kind())) {
    auto& state = run_.state;
    if (event.time_ns() == 0) event.set_time_ns(now);
    state.set_buffered_bytes(state.buffered_bytes() + static_cast<int64_t>(event.ByteSizeLong()));
    *state.add_buffered() = std::move(event);
    return 0;
  }
  const int64_t id = append(std::move(event));
  if (wakes) want_task();
  return id;
}

void Transaction::flush_buffered() {
  auto& state = run_.state;
  if (state.buffered_size() == 0) return;
  std::vector<model::Event> buffered(std::make_move_iterator(state.mutable_buffered()->begin()),
                                     std::make_move_iterator(state.mutable_buffered()->end()));
  state.clear_buffered();
  state.set_buffered_bytes(0);
  std::stable_partition(buffered.begin(), buffered.end(),
                        [](const model::Event& event) { return !is_finish_kind(event.kind()); });

  absl::btree_map<int64_t, int64_t> started;  // scheduled or initiated id -> id of the start
  const auto fill_in = [&](int64_t of, auto* ended) {
    const auto found = started.find(of);
    if (ended->started_id() == 0 && found != started.end()) ended->set_started_id(found->second);
  };
  for (auto& event : buffered) {
    const auto kind = event.kind();
    if (ends_activity(kind)) {
      fill_in(event.activity_ended().scheduled_id(), event.mutable_activity_ended());
    } else if (ends_child(kind)) {
      fill_in(event.child_event().initiated_id(), event.mutable_child_event());
    }
    const int64_t starts = kind == model::ACTIVITY_STARTED ? event.activity_started().scheduled_id()
                           : kind == model::CHILD_STARTED  ? event.child_event().initiated_id()
                                                           : 0;
    const int64_t id = append(std::move(event));
    if (starts != 0) started[starts] = id;
    if (const auto child = run_.children.find(starts);
        kind == model::CHILD_STARTED && child != run_.children.end()) {
      touch(child->second).set_started_id(id);
    }
    // Whatever had to wait for the task brings another one, as clients expect.
    if (wakes_workflow(state.flavour(), kind) || kind == model::WORKFLOW_OPTIONS_UPDATED) {
      want_task();
    }
  }
}

void Transaction::end_commands() {
  in_commands_ = false;
  if (run_.is_open() && !is_durable(run_.state)) flush_buffered();
}

model::ActivityState& Transaction::touch(model::ActivityState& activity) {
  run_.touched_activities.insert(activity.scheduled_id());
  return activity;
}

void Transaction::erase_activity(int64_t scheduled_id) {
  const auto found = run_.activities.find(scheduled_id);
  FL_ASSERT(found != run_.activities.end(), "an activity ends once");
  drop(model::ACTIVITY_TASK, found->second.mutable_place());
  std::erase_if(offers_, [&](const TaskOffer& offer) {
    return offer.kind == model::ACTIVITY_TASK && offer.scheduled_id == scheduled_id;
  });
  if (is_standalone(run_.state) || hosts_activity(run_.state))
    keep_ended_activity(*this, found->second);
  give_back(found->second);
  run_.activity_ids.erase(found->second.scheduled().activity_id());
  run_.activities.erase(found);
  run_.touched_activities.insert(scheduled_id);
}

void Transaction::add_timer(model::TimerState timer) {
  run_.touched_timers.insert(timer.started_id());
  run_.add_loaded(std::move(timer));
}

void Transaction::erase_timer(int64_t started_id) {
  const auto found = run_.timers.find(started_id);
  FL_ASSERT(found != run_.timers.end(), "a timer ends once");
  run_.timer_ids.erase(found->second.timer_id());
  run_.timers.erase(found);
  run_.touched_timers.insert(started_id);
}

model::ChildState& Transaction::touch(model::ChildState& child) {
  run_.touched_children.insert(child.initiated_id());
  return child;
}

void Transaction::add_child(model::ChildState child) {
  run_.touched_children.insert(child.initiated_id());
  run_.add_loaded(std::move(child));
}

void Transaction::erase_child(int64_t initiated_id) {
  run_.children.erase(initiated_id);
  run_.touched_children.insert(initiated_id);
}

void Transaction::add_external(model::ExternalState external) {
  run_.touched_externals.insert(external.initiated_id());
  run_.add_loaded(std::move(external));
}

void Transaction::erase_external(int64_t initiated_id) {
  run_.externals.erase(initiated_id);
  run_.touched_externals.insert(initiated_id);
}

uint64_t Transaction::next_stamp() {
  run_.state.set_last_stamp(run_.state.last_stamp() + 1);
  return run_.state.last_stamp();
}

void Transaction::give_back(model::ActivityState& activity) {
  if (!activity.has_lease()) return;
  lease_ends_.push_back({activity.scheduled_id(), std::move(*activity.mutable_lease())});
  activity.clear_lease();
}

void Transaction::drop(model::TaskKind kind, model::TaskPlace* place) {
  if (place->seq() != 0) drops_.push_back({kind, *place});
  place->Clear();
}

void Transaction::close(model::Status status) {
  auto& state = run_.state;
  FL_ASSERT(run_.is_open(), "a run closes once");
  state.set_status(status);
  state.set_close_ns(now);
  state.set_delete_at_ns(add_saturated(now, retention_));
  keep_left_open();
  if (state.has_workflow_task()) {
    drop(model::WORKFLOW_TASK, state.mutable_workflow_task()->mutable_place());
    state.clear_workflow_task();
  }
  while (!run_.activities.empty()) erase_activity(run_.activities.begin()->first);
  while (!run_.timers.empty()) erase_timer(run_.timers.begin()->first);
  while (!run_.children.empty()) {
    const auto& child = run_.children.begin()->second;
    if (state.reset_run_id().empty()) {
      tell_parent_closed(*this, child);
    } else {
      settle_letter(child.initiated_id());  // the run that goes on asks for it again
    }
    erase_child(run_.children.begin()->first);
  }
  // Letters that are on their way arrive all the same; nobody is left who wants to know.
  while (!run_.externals.empty()) erase_external(run_.externals.begin()->first);
  // What was not accepted by now never is.
  for (auto at = run_.updates.begin(); at != run_.updates.end();) {
    const bool is_accepted = at->second.accepted_id() != 0;
    if (!is_accepted) run_.touched_updates.insert(at->first);
    at = is_accepted ? std::next(at) : run_.updates.erase(at);
  }
  state.clear_buffered();
  state.clear_sticky();
  state.set_buffered_bytes(0);
  state.set_first_task_at_ns(0);
  offers_.clear();
  task_wanted_ = false;
  closed_now_ = true;
}

void Transaction::keep_left_open() {
  const auto& state = run_.state;
  if (state.flavour() != model::TEMPORAL) return;
  if (state.has_workflow_task()) *left_open_.mutable_workflow_task() = state.workflow_task();
  for (const auto& [id, activity] : run_.activities) *left_open_.add_activities() = activity;
  for (const auto& [id, child] : run_.children) *left_open_.add_children() = child;
}

void Transaction::enforce_history_limits() {
  const auto& state = run_.state;
  if (state.next_event_id() - 1 > limits.history_events) {
    terminate_by_server(*this, "Workflow history count exceeds limit.");
  } else if (state.history_bytes() > limits.history_bytes) {
    terminate_by_server(*this, "Workflow history size exceeds limit.");
  } else if (static_cast<int64_t>(events_.size()) > limits.transaction_bytes) {
    terminate_by_server(*this, "Transaction size exceeds limit.");
  } else if (is_state_too_large()) {
    terminate_by_server(*this, "Workflow mutable state size exceeds limit.");
  }
}

// What is small cannot break the limit, so the sum is made only when something large has changed.
bool Transaction::is_state_too_large() const {
  constexpr size_t kSmall = 2 << 10;
  const size_t own = run_.state.ByteSizeLong();
  bool is_large = own > static_cast<size_t>(limits.state_bytes) / 4;
  for (const int64_t id : run_.touched_activities) {
    const auto found = run_.activities.find(id);
    if (found != run_.activities.end() && found->second.ByteSizeLong() > kSmall) is_large = true;
  }
  if (!is_large) return false;
  size_t sum = own;
  for (const auto& [id, activity] : run_.activities) sum += activity.ByteSizeLong();
  for (const auto& [id, timer] : run_.timers) sum += timer.ByteSizeLong();
  for (const auto& [id, child] : run_.children) sum += child.ByteSizeLong();
  for (const auto& [id, external] : run_.externals) sum += external.ByteSizeLong();
  return sum > static_cast<size_t>(limits.state_bytes);
}

void Transaction::schedule_wanted_task() {
  if (!run_.is_open() || run_.state.has_workflow_task() || run_.state.first_task_at_ns() != 0) {
    return;
  }
  if (is_durable(run_.state)) {
    schedule_durable_task(*this);
  } else if (task_wanted_) {
    schedule_workflow_task(*this);
  }
}

void Transaction::finish() {
  auto& state = run_.state;
  FL_ASSERT(!in_commands_, "the commands were applied to the end");
  if (run_.has_started_task() && !is_durable(state) &&
      (state.buffered_size() > limits.buffered_events ||
       state.buffered_bytes() > limits.buffered_bytes)) {
    force_fail_workflow_task(*this);
  }
  if (run_.is_open()) enforce_history_limits();
  schedule_wanted_task();
  if (!is_hidden_) state.set_state_transitions(state.state_transitions() + 1);
}

}  // namespace fairlead::history
