#include "history/durable.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/cancellation.h"
#include "history/commands.h"
#include "history/hosted.h"
#include "history/selection.h"

namespace fairlead::history {

namespace {

constexpr DurationNs kRetryPause = kSecond;
constexpr DurationNs kRetryPauseMax = kMinute;

// The step of what an event ends; null if it ends nothing.
const model::Step* ended_step(const model::Event& event) {
  switch (event.kind()) {
    case model::ACTIVITY_COMPLETED:
    case model::ACTIVITY_FAILED:
    case model::ACTIVITY_TIMED_OUT:
    case model::ACTIVITY_CANCELED:
      return &event.activity_ended().step();
    case model::TIMER_FIRED:
      return &event.timer_ended().step();
    case model::CHILD_START_FAILED:
    case model::CHILD_COMPLETED:
    case model::CHILD_FAILED:
    case model::CHILD_CANCELED:
    case model::CHILD_TIMED_OUT:
    case model::CHILD_TERMINATED:
      return &event.child_event().step();
    default:
      return nullptr;
  }
}

bool is_group_open(const Run& run, int64_t base) {
  const auto is_in = [base](const model::Step& step) { return step.group_base() == base; };
  for (const auto& [id, activity] : run.activities) {
    if (is_in(activity.scheduled().step())) return true;
  }
  for (const auto& [id, timer] : run.timers) {
    if (timer.wait_id().empty() && is_in(timer.step())) return true;
  }
  for (const auto& [id, child] : run.children) {
    if (is_in(child.initiated().step())) return true;
  }
  const auto& waits = run.state.durable().waits();
  return std::any_of(waits.begin(), waits.end(),
                     [&](const model::Wait& wait) { return is_in(wait.step()); });
}

// The wait that the workflow stands at, which is not one of a selection; -1: none.
int latest_wait(const model::DurableState& durable) {
  for (int i = durable.waits_size() - 1; i >= 0; --i) {
    if (!durable.waits(i).step().selects()) return i;
  }
  return -1;
}

bool has_signals(const model::DurableState& durable) {
  return std::any_of(durable.messages().begin(), durable.messages().end(),
                     [](const auto& message) { return !message.is_update(); });
}

// The message that the next task is for: updates always have one, signals only while the workflow
// waits for a condition.
const model::QueuedMessage* next_message(const model::DurableState& durable) {
  const bool waits = latest_wait(durable) >= 0;
  for (const auto& message : durable.messages()) {
    if (message.is_update() || waits) return &message;
  }
  return nullptr;
}

void forget_message(model::DurableState* durable, const std::string& id) {
  auto* messages = durable->mutable_messages();
  messages->erase(std::remove_if(messages->begin(), messages->end(),
                                 [&](const auto& message) { return message.id() == id; }),
                  messages->end());
}

void offer(Transaction& tx) {
  auto& state = tx.state();
  auto* task = state.mutable_workflow_task();
  task->set_available_ns(0);
  task->set_stamp(tx.next_stamp());
  tx.offer(
      {model::WORKFLOW_TASK, task->queue(), task->scheduled_id(), task->stamp(), state.priority()});
}

// The deadline of the wait that this completion has ended, for the same wait opened again: a signal
// that does not meet the condition must not make it wait longer.
struct EndedWait {
  model::Wait wait;
  TimeNs fire_ns = 0;
};

EndedWait satisfy_wait(Transaction& tx, int index) {
  auto* waits = tx.state().mutable_durable()->mutable_waits();
  EndedWait ended;
  ended.wait = waits->at(index);
  waits->DeleteSubrange(index, 1);
  model::Event event;
  event.set_kind(model::WAIT_SATISFIED);
  *event.mutable_wait() = ended.wait;
  tx.append(std::move(event));
  const auto timer = tx.run().timers.find(ended.wait.timer_event_id());
  if (timer != tx.run().timers.end()) {
    ended.fire_ns = timer->second.fire_ns();
    cancel_durable_timer(tx, ended.wait.timer_event_id());
  }
  return ended;
}

bool is_same_wait(const model::Wait& a, const model::Wait& b) {
  return a.key() == b.key() && a.fingerprint() == b.fingerprint() &&
         a.has_timeout_ns() == b.has_timeout_ns() && a.timeout_ns() == b.timeout_ns();
}

}  // namespace

model::Step* mutable_step(model::Event* command) {
  switch (command->kind()) {
    case model::ACTIVITY_SCHEDULED:
      return command->mutable_activity_scheduled()->mutable_step();
    case model::TIMER_STARTED:
      return command->mutable_timer_started()->mutable_step();
    case model::CHILD_INITIATED:
      return command->mutable_child_initiated()->mutable_step();
    case model::WAIT_OPENED:
      return command->mutable_wait()->mutable_step();
    case model::MARKER_RECORDED:
    case model::SEARCH_ATTRIBUTES_UPSERTED:
    case model::PROPERTIES_MODIFIED:
      return command->mutable_command_recorded()->mutable_step();
    default:
      return nullptr;
  }
}

int64_t record_durable(Transaction& tx, model::Event event) {
  auto* durable = tx.state().mutable_durable();
  if (wakes_durable(tx.run(), event)) durable->set_wakes(true);
  const auto kind = event.kind();
  const auto* ended = ended_step(event);
  if (ended != nullptr && hosts_activity(tx.state())) return end_hosted(tx, std::move(event));
  if (ended == nullptr || !ended->selects()) return tx.append(std::move(event));
  const auto step = *ended;
  const int64_t id = tx.append(std::move(event));
  end_selected(tx, step, kind, id);
  return id;
}

bool wakes_durable(const Run& run, const model::Event& event) {
  const auto* step = ended_step(event);
  if (step == nullptr || step->selects()) return false;
  if (const auto wakes = wakes_stopping(run, *step)) return *wakes;
  return step->group_base() == 0 || !is_group_open(run, step->group_base());
}

void schedule_durable_task(Transaction& tx) {
  auto& state = tx.state();
  auto* durable = state.mutable_durable();
  if (durable->is_parked() || durable->hosts_activity()) return;
  const auto* message = durable->wakes() ? nullptr : next_message(*durable);
  if (!durable->wakes() && message == nullptr) return;
  auto* task = state.mutable_workflow_task();
  if (message != nullptr) *task->mutable_message() = *message;
  durable->set_task_number(durable->task_number() + 1);
  task->set_scheduled_id(durable->task_number());
  task->set_attempt(1);
  task->set_scheduled_ns(tx.now);
  task->set_original_scheduled_ns(tx.now);
  task->set_start_to_close_ns(state.task_timeout_ns());
  task->mutable_queue()->set_name(state.task_queue());
  offer(tx);
}

bool start_durable_task(Transaction& tx, uint64_t stamp, const Taker& taker) {
  auto& state = tx.state();
  if (!tx.run().is_open() || !state.has_workflow_task()) return false;
  auto* task = state.mutable_workflow_task();
  if (task->started_id() != 0 || task->stamp() != stamp) return false;
  task->clear_place();
  task->set_started_id(task->scheduled_id());
  task->set_started_ns(tx.now);
  task->set_renewed_ns(tx.now);
  task->set_identity(taker.identity);
  task->set_request_id(taker.request_id);
  task->set_shown_until(state.next_event_id());
  state.mutable_durable()->set_wakes(false);
  return true;
}

bool is_held_back(const Run& run, const model::TimerState& timer) {
  return !timer.wait_id().empty() && !timer.step().selects() && run.has_started_task();
}

bool flush_signals(Transaction& tx) {
  auto& state = tx.state();
  if (state.buffered_size() == 0) return false;
  std::vector<model::Event> buffered(std::make_move_iterator(state.mutable_buffered()->begin()),
                                     std::make_move_iterator(state.mutable_buffered()->end()));
  state.clear_buffered();
  state.set_buffered_bytes(0);
  for (auto& event : buffered) tx.append(std::move(event));
  return true;
}

void retry_durable_task(Transaction& tx, TimeNs available) {
  if (flush_signals(tx)) meet_selected_wait(tx);
  auto* task = tx.state().mutable_workflow_task();
  task->set_attempt(task->attempt() + 1);
  task->set_started_id(0);
  task->set_started_ns(0);
  task->set_renewed_ns(0);
  task->clear_identity();
  if (available > tx.now) {
    task->set_available_ns(available);
  } else {
    offer(tx);
  }
}

void fail_durable_task(Transaction& tx) {
  const int32_t doublings = std::min(tx.state().workflow_task().attempt() - 1, 20);
  retry_durable_task(tx, add_saturated(tx.now, std::min(kRetryPause << doublings, kRetryPauseMax)));
}

void pass_on_durable_task(Transaction& tx, DurationNs pause) {
  retry_durable_task(tx, add_saturated(tx.now, pause));
}

void cancel_durable_timer(Transaction& tx, int64_t started_id) {
  const auto timer = tx.run().timers.at(started_id);
  model::Event event;
  event.set_kind(model::TIMER_CANCELED);
  event.mutable_timer_ended()->set_timer_id(timer.timer_id());
  event.mutable_timer_ended()->set_started_id(started_id);
  *event.mutable_timer_ended()->mutable_step() = timer.step();
  event.mutable_timer_ended()->set_wait_id(timer.wait_id());
  tx.erase_timer(started_id);
  tx.append(std::move(event));
}

TimeNs durable_task_deadline(const model::WorkflowTaskState& task) {
  if (task.started_id() != 0) return add_saturated(task.renewed_ns(), task.start_to_close_ns());
  return task.available_ns() != 0 ? task.available_ns() : kNever;
}

void pass_durable_task_time(Transaction& tx) {
  if (tx.run().has_started_task()) {
    retry_durable_task(tx, 0);
  } else {
    offer(tx);
  }
}

absl::Status check_lease(const Run& run, const LeaseClaim& claim, TimeNs now) {
  const auto& state = run.state;
  if (claim.number < 1 || claim.number > state.durable().task_number()) {
    return errors::lease_refused("task_not_found");
  }
  if (!run.is_open()) {
    return errors::lease_refused("run_closed", absl::StrCat(state.status()),
                                 absl::StrCat(state.close_ns()));
  }
  const auto& task = state.workflow_task();
  if (task.scheduled_id() != claim.number || task.started_id() == 0) {
    return errors::lease_refused("task_not_leased");
  }
  if (task.identity() != claim.owner) {
    return errors::lease_refused("lease_owner_mismatch", task.identity());
  }
  if (task.attempt() != claim.attempt) {
    return errors::lease_refused("workflow_task_attempt_mismatch", absl::StrCat(task.attempt()));
  }
  const TimeNs expires = durable_task_deadline(task);
  if (expires <= now) {
    return errors::lease_refused("lease_expired", task.identity(), absl::StrCat(expires));
  }
  return absl::OkStatus();
}

absl::Status refuse_attempt(const Run& run, int64_t scheduled_id, int32_t attempt) {
  const auto& state = run.state;
  if (scheduled_id < 1 || scheduled_id >= state.next_event_id()) {
    return errors::lease_refused("task_not_found");
  }
  if (!run.is_open()) {
    return errors::lease_refused("run_closed", absl::StrCat(state.status()),
                                 absl::StrCat(state.close_ns()));
  }
  if (find_stopped(state, scheduled_id, attempt) != nullptr) {
    return errors::lease_refused("attempt_stopped");
  }
  const auto activity = run.activities.find(scheduled_id);
  if (activity == run.activities.end()) return errors::lease_refused("task_not_leased");
  const int32_t last = activity->second.started_attempt();
  if (attempt > last) return errors::lease_refused("attempt_not_found");
  return errors::lease_refused(attempt < last ? "stale_attempt" : "task_not_leased");
}

void renew_durable_task(Transaction& tx) {
  tx.state().mutable_workflow_task()->set_renewed_ns(tx.now);
}

void park_durable_task(Transaction& tx, const std::string& reason) {
  auto& state = tx.state();
  if (flush_signals(tx)) meet_selected_wait(tx);
  state.clear_workflow_task();
  auto* durable = state.mutable_durable();
  durable->set_is_parked(true);
  durable->set_parked_reason(reason);
  durable->set_wakes(true);
}

bool repair_run(Transaction& tx) {
  auto* durable = tx.state().mutable_durable();
  if (!durable->is_parked()) return false;
  durable->set_is_parked(false);
  durable->clear_parked_reason();
  return true;
}

absl::Status number_steps(const model::RunState& state, std::vector<model::Event>* commands) {
  int64_t steps = state.durable().steps();
  int64_t cancels = 0;
  for (auto& command : *commands) {
    if (command.kind() == model::SELECTION_CANCELED) ++cancels;
    auto* step = mutable_step(&command);
    if (step == nullptr) continue;
    const int64_t expected = step->sequence();
    if (!step->continues()) ++steps;
    // Cancellations take no step, but the SDK counts those that it sends along.
    if (expected > steps && expected <= steps + cancels) steps = expected;
    cancels = 0;
    if (expected != 0 && expected != steps) {
      return errors::failed_precondition(absl::StrCat("a command expects to be step ", expected,
                                                      " of the run, but its turn is ", steps));
    }
    step->set_sequence(steps);
    step->set_continues(false);
  }
  return check_selections(state, commands);
}

void complete_durable_task(Transaction& tx, std::vector<model::Event> commands) {
  auto& state = tx.state();
  auto* durable = state.mutable_durable();
  const auto task = state.workflow_task();
  state.clear_workflow_task();
  state.set_last_completed_task_started_id(task.scheduled_id());
  const bool is_update = task.message().is_update();
  if (task.has_message()) forget_message(durable, task.message().id());

  // Whatever the worker asks for comes after the wait that it was in: it has gone on, or it waits
  // anew. An update is applied beside the workflow's own code, which has not moved.
  EndedWait ended;
  const bool goes_on = std::any_of(commands.begin(), commands.end(), [](const auto& command) {
    return command.kind() != model::SELECTION_CANCELED;
  });
  if (const int at = latest_wait(*durable); !is_update && at >= 0 && goes_on) {
    ended = satisfy_wait(tx, at);
  }
  // Signals stand behind what the worker decided without them. Nothing stands behind the end.
  const bool closes = !commands.empty() && commands.back().has_workflow_closed();
  if (closes) flush_signals(tx);
  if (closes) close_as_canceled(state, &commands.back());
  const bool delivers_next = goes_on_to_deliver(state, commands);
  for (auto& command : commands) {
    if (auto* step = mutable_step(&command)) {
      durable->set_steps(std::max(durable->steps(), step->sequence()));
    }
  }
  begin_selections(durable, &commands);
  const bool is_applied =
      is_update && !commands.empty() && commands.front().kind() == model::UPDATE_APPLIED;
  apply_commands(tx, std::move(commands), 0);
  if (!tx.run().is_open()) return;
  const bool has_more = flush_signals(tx) || is_applied;
  if (has_more || (has_open_selection(*durable) && has_signals(*durable))) meet_selected_wait(tx);
  const int last = latest_wait(*durable);
  if (delivers_next || (is_update && last >= 0)) durable->set_wakes(true);
  if (ended.fire_ns == 0 || last < 0) return;
  const auto& again = durable->waits(last);
  const auto timer = tx.run().timers.find(again.timer_event_id());
  if (!is_same_wait(again, ended.wait) || timer == tx.run().timers.end()) return;
  timer->second.set_fire_ns(std::min(timer->second.fire_ns(), ended.fire_ns));
  tx.run().touched_timers.insert(timer->first);
}

void signal_durable(Transaction& tx, const std::string& id, const std::string& name,
                    std::string door) {
  auto& state = tx.state();
  state.set_signals(state.signals() + 1);
  auto* message = state.mutable_durable()->add_messages();
  message->set_id(id);
  message->set_name(name);
  model::Event event;
  event.set_kind(model::WORKFLOW_SIGNALED);
  event.set_door(std::move(door));
  if (!tx.run().has_started_task()) {
    tx.append(std::move(event));
    meet_selected_wait(tx);
    return;
  }
  event.set_time_ns(tx.now);
  state.set_buffered_bytes(state.buffered_bytes() + static_cast<int64_t>(event.ByteSizeLong()));
  *state.add_buffered() = std::move(event);
}

void accept_update(Transaction& tx, const std::string& id, const std::string& name,
                   std::string door) {
  auto* message = tx.state().mutable_durable()->add_messages();
  message->set_id(id);
  message->set_name(name);
  message->set_is_update(true);
  model::Event event;
  event.set_kind(model::UPDATE_ACCEPTED);
  event.set_door(std::move(door));
  event.mutable_update_event()->set_update_id(id);
  auto& update = tx.run().updates[id];
  update.set_update_id(id);
  update.set_accepted_id(tx.append(std::move(event)));
  tx.run().touched_updates.insert(id);
}

void open_wait(Transaction& tx, model::Event draft) {
  model::Wait wait = draft.wait();
  tx.append(std::move(draft));
  if (wait.has_timeout_ns()) {
    model::Event started;
    started.set_kind(model::TIMER_STARTED);
    started.mutable_timer_started()->set_timer_id(absl::StrCat(wait.wait_id(), ":timeout"));
    started.mutable_timer_started()->set_start_to_fire_ns(wait.timeout_ns());
    auto* step = started.mutable_timer_started()->mutable_step();
    *step = wait.step();
    model::TimerState timer;
    timer.set_timer_id(started.timer_started().timer_id());
    timer.set_fire_ns(add_saturated(tx.now, wait.timeout_ns()));
    timer.set_wait_id(wait.wait_id());
    *timer.mutable_step() = *step;
    started.mutable_timer_started()->set_wait_id(wait.wait_id());
    timer.set_started_id(tx.append(std::move(started)));
    wait.set_timer_event_id(timer.started_id());
    tx.add_timer(std::move(timer));
  }
  *tx.state().mutable_durable()->add_waits() = std::move(wait);
}

void time_out_wait(Transaction& tx, const std::string& wait_id) {
  auto* waits = tx.state().mutable_durable()->mutable_waits();
  waits->erase(std::remove_if(waits->begin(), waits->end(),
                              [&](const auto& wait) { return wait.wait_id() == wait_id; }),
               waits->end());
}

void end_update(Transaction& tx, model::Event draft) {
  const std::string id = draft.update_event().update_id();
  const auto kind = draft.kind();
  auto& update = tx.run().updates.at(id);
  draft.mutable_update_event()->set_accepted_id(update.accepted_id());
  std::string outcome = std::move(*draft.mutable_update_event()->mutable_outcome());
  draft.mutable_update_event()->clear_outcome();
  const int64_t event_id = tx.append(std::move(draft));
  if (kind != model::UPDATE_COMPLETED) return;
  tx.update_changes().push_back({id, kind, std::move(outcome)});
  update.set_completed_id(event_id);
  tx.run().touched_updates.insert(id);
}

}  // namespace fairlead::history
