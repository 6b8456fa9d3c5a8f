// What only runs of the Durable Workflow door do: leased tasks, signals that may have to wait,
// updates that are accepted at once, and stops that ask nobody.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/cancellation.h"
#include "history/commands.h"
#include "history/durable.h"
#include "history/hosted.h"
#include "history/lifecycle.h"
#include "shard/shard.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

Receipt receipt_of(const RunEntry& entry, const model::CommandReceipt& row, bool retained) {
  return {entry.run.state.run_id(), row.command_id(), row.sequence(), retained};
}

TaskCompleted result_of(const RunEntry& entry) {
  TaskCompleted result;
  result.run = entry.run.state;
  if (result.run.has_workflow_task()) result.next_task = result.run.workflow_task().scheduled_id();
  return result;
}

absl::Status exceeds(const char* kind, int64_t current, int64_t limit) {
  return errors::lease_refused("structural_limit_exceeded", kind,
                               absl::StrCat(current, " ", limit));
}

// Whether the run may have what these commands begin besides what it has open.
absl::Status check_limits(const history::Run& run, const RunLimits& limits,
                          const std::vector<model::Event>& commands) {
  const auto count = [&](auto is_one) {
    return static_cast<int64_t>(std::count_if(commands.begin(), commands.end(), is_one));
  };
  const auto of_kind = [&](model::EventKind kind) {
    return count([kind](const model::Event& command) { return command.kind() == kind; });
  };
  const int64_t timeouts = count([](const model::Event& command) {
    return command.kind() == model::WAIT_OPENED && command.wait().has_timeout_ns();
  });
  const bool closes = !commands.empty() && commands.back().has_workflow_closed();
  const int64_t events = run.state.next_event_id() - 1;
  struct Line {
    const char* kind;
    int64_t more;
    int64_t there;
    int64_t limit;
  };
  const Line lines[] = {
      {"history_event_count", closes ? 0 : static_cast<int64_t>(commands.size()), events,
       limits.history_events},
      {"pending_activity_count", of_kind(model::ACTIVITY_SCHEDULED),
       static_cast<int64_t>(run.activities.size()), limits.pending_activities},
      {"pending_child_count", of_kind(model::CHILD_INITIATED),
       static_cast<int64_t>(run.children.size()), limits.pending_children},
      {"pending_timer_count", of_kind(model::TIMER_STARTED) + timeouts,
       static_cast<int64_t>(run.timers.size()), limits.pending_timers},
  };
  for (const auto& line : lines) {
    // A limit that was lowered meanwhile does not stop a run that begins nothing.
    if (line.more == 0 || line.there + line.more <= line.limit) continue;
    return exceeds(line.kind, line.there + line.more, line.limit);
  }
  return absl::OkStatus();
}

int64_t waiting_messages(const model::RunState& state, bool updates) {
  const auto& messages = state.durable().messages();
  return std::count_if(messages.begin(), messages.end(),
                       [updates](const auto& each) { return each.is_update() == updates; });
}

}  // namespace

void Shard::complete_task(CompleteTask request, Reply<TaskCompleted> reply) {
  const auto token = request.token;
  with_lease<TaskCompleted>(
      token, std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<TaskCompleted> answer) mutable {
        complete_leased(entry, std::move(request), std::move(answer));
      });
}

void Shard::complete_leased(RunEntry& entry, CompleteTask request, Reply<TaskCompleted> answer) {
  auto& commands = request.commands;
  if (history::repeats_open_group(entry.run.state, commands)) commands.clear();
  if (const auto status = history::number_steps(entry.run.state, &commands); !status.ok()) {
    answer(status);
    return;
  }
  if (const auto status = check_limits(entry.run, request.limits, commands); !status.ok()) {
    answer(status);
    return;
  }
  if (const auto refusal = history::check_commands(entry.run, *world_.limits, &commands)) {
    answer(errors::failed_precondition(refusal->message));
    return;
  }
  for (auto& command : commands) {
    if (command.kind() != model::UPDATE_APPLIED && command.kind() != model::UPDATE_COMPLETED) {
      continue;
    }
    const auto found = entry.run.updates.find(command.update_event().update_id());
    if (found == entry.run.updates.end() || found->second.completed_id() != 0) {
      answer(errors::failed_precondition(absl::StrCat(
          "no update ", command.update_event().update_id(), " of this run waits for an answer")));
      return;
    }
    if (command.kind() == model::UPDATE_APPLIED) {
      command.set_door(
          codec_of(entry).applied_update(event_bytes(entry, found->second.accepted_id())));
    }
  }
  auto step = begin(entry);
  auto& tx = step->parts[0]->tx;
  if (!commands.empty() && commands.back().kind() == model::WORKFLOW_CONTINUED_AS_NEW) {
    tx.successor_run_id = make_uuid(random_, tx.now);
  }
  history::complete_durable_task(tx, std::move(commands));
  tx.schedule_wanted_task();
  step->after_write.push_back(
      [this, held = step.get(), &entry, changes = std::move(tx.update_changes())] {
        settle_updates(*held, entry, changes, false);
      });
  reply_after(*step, [answer = std::move(answer), result = result_of(entry)]() mutable {
    answer(std::move(result));
  });
  finish(std::move(step));
}

void Shard::fail_task(FailTask request, Reply<TaskCompleted> reply) {
  const auto token = request.token;
  with_lease<TaskCompleted>(
      token, std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<TaskCompleted> answer) mutable {
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        if (request.parks) {
          history::park_durable_task(tx, request.reason);
        } else if (request.passes_on > 0) {
          history::pass_on_durable_task(tx, request.passes_on);
        } else {
          history::fail_durable_task(tx);
        }
        reply_after(*step, [answer = std::move(answer), result = result_of(entry)]() mutable {
          answer(std::move(result));
        });
        finish(std::move(step));
      });
}

void Shard::renew_task(RenewTask request, Reply<TaskLease> reply) {
  with_lease<TaskLease>(
      request.token, std::move(reply),
      [this, shows = request.shows_request](RunEntry& entry, Reply<TaskLease> answer) mutable {
        auto step = begin(entry);
        history::renew_durable_task(step->parts[0]->tx);
        if (shows) history::show_request(step->parts[0]->tx);
        const auto& task = entry.run.state.workflow_task();
        TaskLease lease{entry.run.state.run_id(), history::durable_task_deadline(task),
                        task.shown_until(), entry.run.state.durable().cancellation()};
        reply_after(*step, [answer = std::move(answer), lease = std::move(lease)]() mutable {
          answer(std::move(lease));
        });
        finish(std::move(step));
      });
}

// Whether the run may be told something now, and whether it was told so before.
absl::StatusOr<std::optional<model::CommandReceipt>> Shard::look_for_receipt(
    const RunEntry& entry, const RunRef& run, const std::string& request_id,
    const std::string& intent, bool needs_code) {
  if (!request_id.empty()) {
    const auto row = world_.store->get(store::keys::request_id(id_, entry.key, request_id));
    if (!row.ok()) return errors::unavailable(row.status().ToString());
    if (row->has_value()) {
      model::CommandReceipt receipt;
      FL_ASSERT(receipt.ParseFromString(**row), "a receipt's row is a receipt");
      if (receipt.intent() != intent) {
        return errors::lease_refused("request_id_conflict", receipt.command_id());
      }
      return receipt;
    }
  }
  const auto current = current_run(run.ns, run.workflow_id);
  if (current.ok() && *current != entry.key) {
    return errors::lease_refused("historical_run_command_rejected");
  }
  if (!entry.run.is_open()) return errors::lease_refused("run_not_active");
  if (needs_code && history::hosts_activity(entry.run.state)) {
    return errors::lease_refused("no_workflow_code");
  }
  return std::nullopt;
}

// Remembers, in the step that carries out a client's command, what the client is told.
Receipt Shard::note_command(Step& step, RunEntry& entry, const std::string& request_id,
                            const std::string& intent) {
  auto* durable = entry.run.state.mutable_durable();
  durable->set_commands(durable->commands() + 1);
  model::CommandReceipt row;
  row.set_command_id(make_uuid(random_, now()));
  row.set_sequence(durable->commands());
  row.set_intent(intent);
  if (!request_id.empty()) {
    step.batch.put(store::keys::request_id(id_, entry.key, request_id), row.SerializeAsString());
  }
  return receipt_of(entry, row, false);
}

void Shard::signal_run(SignalRun request, Reply<Receipt> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<Receipt> answer) mutable {
        const auto seen =
            look_for_receipt(entry, request.run, request.request_id, request.intent, true);
        if (!seen.ok() || seen->has_value()) {
          auto result = seen.ok() ? absl::StatusOr<Receipt>(receipt_of(entry, **seen, true))
                                  : absl::StatusOr<Receipt>(seen.status());
          world_.commits->after_durable(
              [answer = std::move(answer), result = std::move(result)]() mutable {
                answer(std::move(result));
              });
          return;
        }
        const auto& state = entry.run.state;
        const int64_t waiting = waiting_messages(state, false);
        if (waiting >= request.limits.pending_signals) {
          answer(exceeds("pending_signal_count", waiting + 1, request.limits.pending_signals));
          return;
        }
        if (state.signals() >= world_.limits->signals ||
            state.buffered_bytes() >= world_.limits->buffered_bytes) {
          answer(errors::concurrent_limit(
              absl::StrCat("the run has taken ", state.signals(), " signals, of which ",
                           state.durable().messages_size(), " wait; it takes no more")));
          return;
        }
        auto step = begin(entry);
        const auto receipt = note_command(*step, entry, request.request_id, request.intent);
        auto& tx = step->parts[0]->tx;
        if (request.make_door) request.door = request.make_door(receipt.sequence);
        history::signal_durable(tx, receipt.command_id, request.name, std::move(request.door));
        reply_after(*step, [answer = std::move(answer), receipt]() mutable { answer(receipt); });
        finish(std::move(step));
      });
}

void Shard::update_run(UpdateRun request, Reply<UpdateResult> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<UpdateResult> answer) mutable {
        const auto seen =
            look_for_receipt(entry, request.run, request.request_id, request.intent, true);
        if (!seen.ok()) {
          answer(seen.status());
          return;
        }
        UpdateRequest wait;
        wait.run = request.run;
        wait.wait_for = request.wait_for;
        wait.wait_until = request.wait_until;
        if (seen->has_value()) {
          wait.update_id = (**seen).command_id();
          wait_for_update(
              entry, std::move(wait),
              [answer = std::move(answer)](absl::StatusOr<UpdateResult> result) mutable {
                if (result.ok()) result->retained = true;
                answer(std::move(result));
              });
          return;
        }
        if (request.attaches) {
          answer(errors::lease_refused("request_not_seen"));
          return;
        }
        const int64_t waiting = waiting_messages(entry.run.state, true);
        if (waiting >= request.limits.pending_updates) {
          answer(exceeds("pending_update_count", waiting + 1, request.limits.pending_updates));
          return;
        }
        auto step = begin(entry);
        const auto receipt = note_command(*step, entry, request.request_id, request.intent);
        wait.update_id = receipt.command_id;
        history::accept_update(step->parts[0]->tx, receipt.command_id, request.name,
                               std::move(request.door));
        step->after_write.push_back(
            [this, &entry, wait = std::move(wait), answer = std::move(answer)]() mutable {
              wait_for_update(entry, std::move(wait), std::move(answer));
            });
        finish(std::move(step));
      });
}

void Shard::stop_run(StopRun request, Reply<Receipt> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<Receipt> answer) mutable {
        const std::string intent = absl::StrCat("stop ", request.kind);
        const auto seen = look_for_receipt(entry, request.run, request.request_id, intent, false);
        if (!seen.ok()) {
          answer(seen.status());
          return;
        }
        if (seen->has_value()) {
          answer(receipt_of(entry, **seen, true));
          return;
        }
        auto step = begin(entry);
        const auto receipt = note_command(*step, entry, request.request_id, intent);
        model::Event closing;
        closing.set_kind(request.kind);
        closing.set_door(std::move(request.door));
        closing.mutable_workflow_closed();
        history::terminate_run(step->parts[0]->tx, std::move(closing));
        reply_after(*step, [answer = std::move(answer), receipt]() mutable { answer(receipt); });
        finish(std::move(step));
      });
}

void Shard::repair_run(RunRef run, Reply<Repaired> reply) {
  with_chain_run(run, "", std::move(reply), [this](RunEntry& entry, Reply<Repaired> answer) {
    if (!entry.run.is_open()) {
      answer(errors::lease_refused("run_not_active"));
      return;
    }
    auto step = begin(entry);
    const Repaired repaired{entry.run.state.run_id(), history::repair_run(step->parts[0]->tx)};
    reply_after(*step, [answer = std::move(answer), repaired]() mutable { answer(repaired); });
    finish(std::move(step));
  });
}

void Shard::archive_run(ArchiveRun request, Reply<Archived> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, reason = std::move(request.reason)](RunEntry& entry, Reply<Archived> answer) mutable {
        if (entry.run.is_open()) {
          answer(errors::lease_refused("run_not_closed"));
          return;
        }
        auto step = begin(entry);
        auto* durable = step->parts[0]->tx.state().mutable_durable();
        const bool is_new = durable->archived_ns() == 0;
        if (is_new) {
          durable->set_archived_ns(step->parts[0]->tx.now);
          durable->set_archive_reason(std::move(reason));
        }
        const Archived archived{entry.run.state.run_id(), is_new, durable->archived_ns()};
        reply_after(*step, [answer = std::move(answer), archived]() mutable { answer(archived); });
        finish(std::move(step));
      });
}

}  // namespace fairlead::shard
