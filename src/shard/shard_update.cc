// Updates: requests that workflow code may refuse, and whose answer somebody waits for.
//
// Until a worker accepts one it lives in memory only. It travels with the run's workflow task, or
// with one that is made for it and of which nothing is left if the update is rejected. From then on
// it is in the history, and what became of it can be asked as long as the run is kept.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/workflow_task.h"
#include "shard/shard.h"

namespace fairlead::shard {

namespace {

constexpr int32_t kFailingAttempt = 3;
constexpr char kCutOff[] = "workflow update was aborted by closing workflow";

const LiveUpdate* find_live(const RunEntry& entry, const std::string& id) {
  const auto found = std::find_if(entry.updates.begin(), entry.updates.end(),
                                  [&](const LiveUpdate& update) { return update.id == id; });
  return found == entry.updates.end() ? nullptr : &*found;
}

void erase_live(RunEntry& entry, const std::string& id) {
  std::erase_if(entry.updates, [&](const LiveUpdate& update) { return update.id == id; });
}

}  // namespace

absl::Status Shard::check_update(const RunEntry& entry, const UpdateRequest& request) const {
  const auto& state = entry.run.state;
  const auto& limits = *world_.limits;
  if (state.has_workflow_task() && state.workflow_task().attempt() >= kFailingAttempt) {
    return errors::workflow_not_ready(
        "Unable to perform workflow execution update due to Workflow Task in failed state.");
  }
  if (state.close_refused() && entry.run.has_started_task()) {
    return errors::busy_workflow(
        "workflow operation can not be applied because workflow is closing");
  }
  size_t bytes = request.request.size();
  for (const auto& update : entry.updates) bytes += update.request.size();
  const auto accepted =
      std::count_if(entry.run.updates.begin(), entry.run.updates.end(), [](const auto& update) {
        return update.second.accepted_id() != 0 && update.second.completed_id() == 0;
      });
  if (static_cast<int64_t>(entry.updates.size()) + accepted >= limits.updates_in_flight ||
      static_cast<int64_t>(bytes) > limits.updates_in_flight_bytes) {
    return errors::concurrent_limit(
        absl::StrCat("limit on number of concurrent in-flight updates has been reached (",
                     limits.updates_in_flight, ")"));
  }
  if (static_cast<int64_t>(entry.run.updates.size() + entry.updates.size()) >= limits.updates) {
    return errors::failed_precondition(
        absl::StrCat("The limit on the total number of distinct updates in this workflow has been "
                     "reached (",
                     limits.updates, ")."));
  }
  return absl::OkStatus();
}

void Shard::update_workflow(UpdateRequest request, Reply<UpdateResult> reply) {
  const auto run = request.run;
  const auto first_run_id = request.first_run_id;
  with_chain_run(
      run, first_run_id, std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<UpdateResult> answer) mutable {
        if (knows_update(entry, request.update_id))
          return wait_for_update(entry, std::move(request), std::move(answer));
        if (request.request.empty()) {
          answer(errors::not_found(absl::StrCat("update \"", request.update_id, "\" not found")));
          return;
        }
        if (!entry.run.is_open()) {
          answer(errors::workflow_completed());
          return;
        }
        if (const auto status = check_update(entry, request); !status.ok()) {
          answer(status);
          return;
        }
        admit_update(entry, std::move(request), std::move(answer));
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        if (!wants_update_task(entry, tx)) {
          unlock(entry);
          return;
        }
        history::schedule_speculative_task(tx);
        finish(std::move(step));
      });
}

void Shard::admit_update(RunEntry& entry, UpdateRequest request, Reply<UpdateResult> reply) {
  if (request.update_id.empty()) {
    request.update_id = make_uuid(random_, now());
    request.request = codec_of(entry).name_update(request.request, request.update_id);
  }
  entry.updates.push_back({request.update_id, std::move(request.request)});
  wait_for_update(entry, std::move(request), std::move(reply));
}

void Shard::update_with_start(UpdateWithStart request, Reply<UpdateWithStartResult> reply) {
  try_update_with_start(std::move(request), std::move(reply), false);
}

// A run that closes while the update waits for it makes room for a new one, which is tried once.
void Shard::try_update_with_start(UpdateWithStart request, Reply<UpdateWithStartResult> reply,
                                  bool is_last_try) {
  const auto current = current_run(request.start.ns, request.start.workflow_id);
  auto* entry = current.ok() ? runs_.find(*current) : nullptr;
  if (entry != nullptr && entry->is_locked) {
    entry->waiting.push_back(
        [this, request = std::move(request), reply = std::move(reply), is_last_try]() mutable {
          try_update_with_start(std::move(request), std::move(reply), is_last_try);
        });
    return;
  }
  const bool is_retry = entry != nullptr && !request.start.request_id.empty() &&
                        entry->run.state.start_request_id() == request.start.request_id;
  const auto is_about = [&](const RunEntry& found) {
    const auto& id = request.update.update_id;
    const auto update = found.run.updates.find(id);
    // What a run has left unfinished it will not finish: then a new run gets the update.
    if (is_retry || (update != found.run.updates.end() && update->second.completed_id() != 0)) {
      return true;
    }
    return found.run.is_open() &&
           (knows_update(found, id) || request.start.conflict == ConflictPolicy::kUseExisting);
  };
  const bool only_updates = entry != nullptr && is_about(*entry);
  if (only_updates) {
    const auto& state = entry->run.state;
    StartResult found{state.run_id(), state.first_run_id(), is_retry, state.status()};
    auto update = request.update;
    update.run.run_id = state.run_id();
    update_workflow(
        std::move(update), [this, request = std::move(request), reply = std::move(reply), found,
                            is_last_try](absl::StatusOr<UpdateResult> result) mutable {
          if (is_last_try || result.status().message() != kCutOff) {
            reply(UpdateWithStartResult{found, std::move(result)});
            return;
          }
          executor_->post([this, request = std::move(request), reply = std::move(reply)]() mutable {
            try_update_with_start(std::move(request), std::move(reply), true);
          });
        });
    return;
  }
  // The start is answered when it is durable, the update when a worker has dealt with it: the
  // caller hears of both at once, whichever comes first.
  struct Both {
    Reply<UpdateWithStartResult> reply;
    std::optional<StartResult> start;
    std::optional<absl::StatusOr<UpdateResult>> update;
    void tell() {
      if (start.has_value() && update.has_value()) reply(UpdateWithStartResult{*start, *update});
    }
  };
  auto both = std::make_shared<Both>();
  both->reply = std::move(reply);
  request.start.first_update = std::make_shared<FirstUpdate>(
      FirstUpdate{std::move(request.update), [this, both](absl::StatusOr<UpdateResult> result) {
                    executor_->post([both, result = std::move(result)]() mutable {
                      both->update = std::move(result);
                      both->tell();
                    });
                  }});
  start_workflow(std::move(request.start), [this, both](absl::StatusOr<StartResult> result) {
    executor_->post([both, result = std::move(result)]() mutable {
      if (!result.ok()) {
        both->reply(result.status());
        return;
      }
      both->start = *std::move(result);
      both->tell();
    });
  });
}

// Whether updates wait that no task will take along.
bool Shard::wants_update_task(const RunEntry& entry, history::Transaction& tx) const {
  const auto& state = tx.state();
  return tx.run().is_open() && !state.has_workflow_task() && has_new_updates(entry);
}

// Whether updates have come in that no worker was given yet.
bool Shard::has_new_updates(const RunEntry& entry) const {
  return std::any_of(entry.updates.begin(), entry.updates.end(),
                     [](const LiveUpdate& update) { return !update.is_delivered; });
}

bool Shard::knows_update(const RunEntry& entry, const std::string& id) const {
  return entry.run.updates.contains(id) || find_live(entry, id) != nullptr;
}

// Gives a worker's answers the requests that they answer. One that is not known any more, because
// the server was started anew meanwhile, must have come along with the answer.
std::optional<history::CommandRefusal> Shard::attach_updates(
    const RunEntry& entry, std::vector<model::Event>* commands) const {
  for (auto& command : *commands) {
    if (command.kind() != model::UPDATE_ACCEPTED && command.kind() != model::UPDATE_REJECTED) {
      continue;
    }
    auto* answer = command.mutable_update_event();
    if (const auto* live = find_live(entry, answer->update_id()); live != nullptr) {
      answer->set_request(live->request);
    } else if (answer->request().empty() && !entry.run.updates.contains(answer->update_id())) {
      return history::CommandRefusal{history::FailedCause::kBadUpdateMessage,
                                     absl::StrCat("BadUpdateWorkflowExecutionMessage: update ",
                                                  answer->update_id(), " wasn't found")};
    }
  }
  return std::nullopt;
}

UpdateResult Shard::look_at_update(const RunEntry& entry, const std::string& id) {
  UpdateResult result;
  result.run_id = entry.run.state.run_id();
  result.update_id = id;
  const auto accepted = entry.run.updates.find(id);
  if (accepted == entry.run.updates.end() || accepted->second.accepted_id() == 0) {
    result.stage = UpdateStage::kAdmitted;
  } else if (accepted->second.completed_id() != 0) {
    result.stage = UpdateStage::kCompleted;
    result.outcome =
        codec_of(entry).update_outcome(event_bytes(entry, accepted->second.completed_id()));
  } else if (!entry.run.is_open()) {
    result.stage = UpdateStage::kCompleted;
    result.lost = UpdateResult::Lost::kRunClosed;
  } else {
    result.stage = UpdateStage::kAccepted;
  }
  return result;
}

void Shard::wait_for_update(RunEntry& entry, UpdateRequest request, Reply<UpdateResult> reply) {
  auto result = look_at_update(entry, request.update_id);
  if (result.stage >= request.wait_for || request.wait_until <= now() || is_closed_) {
    world_.commits->after_durable([reply = std::move(reply), result = std::move(result)]() mutable {
      reply(std::move(result));
    });
    return;
  }
  const auto number = ++last_waiter_;
  const auto alarm = alarms_.set(request.wait_until, [this, key = entry.key, number] {
    with_entry(
        key, [this, number](RunEntry& waited) { end_update_wait(waited, number); }, [] {});
  });
  entry.update_waiters.push_back(
      {number, request.update_id, request.wait_for, std::move(reply), alarm});
  schedule_tick();
}

void Shard::end_update_wait(RunEntry& entry, uint64_t number) {
  auto& waiters = entry.update_waiters;
  const auto found = std::find_if(waiters.begin(), waiters.end(), [&](const UpdateWaiter& waiter) {
    return waiter.number == number;
  });
  if (found == waiters.end()) return;
  auto waiter = std::move(*found);
  waiters.erase(found);
  world_.commits->after_durable(
      [reply = std::move(waiter.reply),
       result = look_at_update(entry, waiter.update_id)]() mutable { reply(std::move(result)); });
}

void Shard::tell_update_waiters(Step& step, RunEntry& entry, const std::string& id,
                                const absl::StatusOr<UpdateResult>& result) {
  for (size_t i = 0; i < entry.update_waiters.size();) {
    auto& waiter = entry.update_waiters[i];
    const bool is_told = waiter.update_id == id && (!result.ok() || result->stage >= waiter.stage);
    if (!is_told) {
      ++i;
      continue;
    }
    alarms_.cancel(waiter.alarm);
    reply_after(step, [reply = std::move(waiter.reply), result]() mutable { reply(result); });
    entry.update_waiters.erase(entry.update_waiters.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// What a worker has answered is told to those who wait, and what it has ignored is refused.
void Shard::settle_updates(Step& step, RunEntry& entry,
                           const std::vector<history::UpdateChange>& changes,
                           bool rejects_ignored) {
  for (const auto& change : changes) {
    erase_live(entry, change.update_id);
    UpdateResult result;
    result.run_id = entry.run.state.run_id();
    result.update_id = change.update_id;
    result.stage =
        change.kind == model::UPDATE_ACCEPTED ? UpdateStage::kAccepted : UpdateStage::kCompleted;
    result.outcome = change.outcome;
    tell_update_waiters(step, entry, change.update_id, result);
  }
  if (!rejects_ignored || !entry.run.is_open()) return;
  std::vector<std::string> ignored;
  for (const auto& update : entry.updates) {
    if (update.is_delivered) ignored.push_back(update.id);
  }
  for (const auto& id : ignored) {
    erase_live(entry, id);
    UpdateResult result;
    result.run_id = entry.run.state.run_id();
    result.update_id = id;
    result.stage = UpdateStage::kCompleted;
    result.lost = UpdateResult::Lost::kUnprocessed;
    tell_update_waiters(step, entry, id, result);
  }
}

// What was admitted again and is now refused because the worker ignored it is not kept.
void Shard::forget_ignored_updates(const RunEntry& entry, history::Transaction& tx) const {
  if (!tx.run().is_open()) return;
  for (const auto& update : entry.updates) {
    const auto found = tx.run().updates.find(update.id);
    const bool is_ignored = update.is_delivered && update.is_durable &&
                            found != tx.run().updates.end() && found->second.accepted_id() == 0;
    if (is_ignored) history::forget_update(tx, update.id);
  }
}

// The task that carried them came to nothing: the next one takes them along.
void Shard::redeliver_updates(RunEntry& entry) {
  for (auto& update : entry.updates) update.is_delivered = false;
}

// The run has closed. Those who wait for an accepted update hear that it will not be completed; the
// others may try again if the chain goes on.
void Shard::abort_updates(Step& step, RunEntry& entry) {
  const absl::Status status = entry.run.state.next_run_id().empty()
                                  ? errors::not_found(kCutOff)
                                  : errors::busy_workflow(kCutOff);
  const auto live = std::move(entry.updates);
  entry.updates.clear();
  for (const auto& update : live) tell_update_waiters(step, entry, update.id, status);
  while (!entry.update_waiters.empty()) {
    const std::string id = entry.update_waiters.front().update_id;
    const auto result = look_at_update(entry, id);
    FL_ASSERT(result.stage == UpdateStage::kCompleted, "no update outlives its run");
    tell_update_waiters(step, entry, id, result);
  }
}

// The worker's whole answer was refused.
void Shard::refuse_updates(Step& step, RunEntry& entry) {
  auto live = std::move(entry.updates);
  entry.updates.clear();
  for (auto& update : live) {
    const bool was_delivered = std::exchange(update.is_delivered, false);
    tell_update_waiters(step, entry, update.id,
                        was_delivered ? errors::workflow_not_ready(
                                            "Unable to perform workflow execution update due to "
                                            "unexpected workflow task failure.")
                                      : errors::unavailable("workflow update was aborted"));
    if (update.is_durable) entry.updates.push_back(std::move(update));
  }
}

}  // namespace fairlead::shard
