// Handing out tasks, and what workers answer to workflow tasks.

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "history/activity.h"
#include "history/commands.h"
#include "history/durable.h"
#include "history/lifecycle.h"
#include "shard/shard.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

constexpr int kFirstPageBatches = 256;

history::WorkflowTaskId task_id(const TaskToken& token) {
  return {token.scheduled_id, token.started_id, token.attempt, token.started_ns};
}

model::Failure server_failure(const std::string& message) {
  model::Failure failure;
  failure.set_kind(model::Failure::SERVER);
  failure.set_message(message);
  return failure;
}

}  // namespace

TaskToken Shard::make_token(const RunEntry& entry) const {
  TaskToken token;
  token.ns = NamespaceNum(entry.run.state.namespace_num());
  token.workflow_id = entry.run.state.workflow_id();
  token.run_id = entry.run.state.run_id();
  token.flavour = entry.run.state.flavour();
  return token;
}

WorkflowTask Shard::make_workflow_task(RunEntry& entry, bool from_sticky) {
  const auto& state = entry.run.state;
  const auto& task = state.workflow_task();
  WorkflowTask answer;
  answer.token = make_token(entry);
  answer.token.scheduled_id = task.scheduled_id();
  answer.token.started_id = task.started_id();
  answer.token.attempt = task.attempt();
  answer.token.started_ns = task.started_ns();
  answer.workflow_type = state.workflow_type();
  answer.previous_started_id = state.last_completed_task_started_id();
  answer.task_queue = state.task_queue();
  answer.version = state.version();
  answer.scheduled_ns = task.scheduled_ns();
  answer.started_ns = task.started_ns();
  // A sticky worker remembers everything up to the task that it completed last.
  const int64_t from = from_sticky ? state.last_completed_task_started_id() + 1 : 1;
  auto slice = collect(entry, from, kFirstPageBatches);
  answer.history = std::move(slice.history);
  if (slice.next_event < state.next_event_id()) {
    answer.next_history_event = slice.next_event;
  } else {
    answer.history.append(history::virtual_events(entry.run, codec_of(entry)));
  }
  for (const auto& id : entry.queries) answer.queries.push_back({id, queries_.at(id).query});
  for (auto& update : entry.updates) {
    if (std::exchange(update.is_delivered, true)) continue;
    // What a reset has admitted stands in the history, and workers take it from there.
    if (!update.is_durable) answer.updates.push_back({update.id, update.request});
  }
  if (history::is_durable(state)) {
    answer.message = task.message();
    answer.expires_ns = history::durable_task_deadline(task);
    answer.history_end = task.shown_until();
    answer.cancellation = state.durable().cancellation();
  }
  return answer;
}

ActivityTask Shard::make_activity_task(RunEntry& entry, int64_t scheduled_id) {
  const auto* activity = entry.run.find_activity(scheduled_id);
  FL_ASSERT(activity != nullptr, "the activity was started in this step");
  ActivityTask answer;
  answer.token = make_token(entry);
  answer.token.scheduled_id = scheduled_id;
  answer.token.attempt = activity->attempt();
  answer.token.started_ns = activity->started_ns();
  answer.token.activity_id = activity->scheduled().activity_id();
  answer.namespace_id = entry.run.state.namespace_id();
  answer.workflow_type = entry.run.state.workflow_type();
  answer.activity = *activity;
  answer.priority =
      history::merge_priority(entry.run.state.priority(), activity->scheduled().priority());
  answer.scheduled_event = event_bytes(entry, scheduled_id);
  return answer;
}

bool Shard::begin_taken_task(Step::Part& part, const std::string& identity, model::TaskKind kind,
                             int64_t scheduled_id, uint64_t stamp, bool from_sticky) {
  const history::Taker taker{identity, make_uuid(random_, part.tx.now), from_sticky};
  if (kind == model::WORKFLOW_TASK) {
    if (!history::start_workflow_task(part.tx, stamp, taker)) return false;
    ++part.task_starts;
    return true;
  }
  return history::start_activity(part.tx, scheduled_id, stamp, taker) != nullptr;
}

void Shard::answer_taken_task(Step& step, Step::Part& part, PollPtr poll, model::TaskKind kind,
                              int64_t scheduled_id, bool from_sticky, int64_t backlog) {
  auto* entry = part.entry;
  auto* owner = &step;
  step.after_write.push_back([this, owner, entry, poll = std::move(poll), kind, scheduled_id,
                              from_sticky, backlog]() mutable {
    if (kind == model::WORKFLOW_TASK) {
      ++stats_.workflow_tasks_started;
      auto answer = make_workflow_task(*entry, from_sticky);
      answer.backlog_hint = backlog;
      answer.poller_delta = poll->delta;
      reply_after(*owner, [poll = std::move(poll), answer = std::move(answer)]() mutable {
        std::get<Reply<WorkflowTask>>(poll->reply)(std::move(answer));
      });
    } else {
      ++stats_.activity_tasks_started;
      auto answer = make_activity_task(*entry, scheduled_id);
      answer.poller_delta = poll->delta;
      reply_after(*owner, [poll = std::move(poll), answer = std::move(answer)]() mutable {
        std::get<Reply<ActivityTask>>(poll->reply)(std::move(answer));
      });
    }
  });
}

void Shard::poll(PollPtr poll) {
  if (is_closed_) {
    poll->answer_empty();
    return;
  }
  queues_.poll(std::move(poll));
  schedule_tick();
}

void Shard::cancel_poll(uint64_t number) { queues_.cancel_poll(number); }

void Shard::shut_down_worker(const ShutdownWorkerRequest& request) {
  queues_.shut_down_worker(request);
  schedule_tick();
}

void Shard::start_task(PollPtr poll, QueueAddress queue, ShardId owner, queue::Waiting waiting) {
  const std::string key(waiting.task.run.begin(), waiting.task.run.end());
  // Both endings below need the poll, and only one of them runs.
  auto held = std::make_shared<PollPtr>(std::move(poll));
  const auto stale = [this, held, queue, owner, place = waiting.place] {
    ++stats_.stale_tasks;
    run_on(owner, [held, queue, owner, place, commits = world_.commits](Shard& shard) {
      store::WriteBatch batch;
      batch.erase(task_row(owner, queue.name, place));
      commits->write(batch);
      shard.queues_.stale(std::move(*held), queue, place);
    });
  };
  with_entry(
      key,
      [this, held, stale, queue, owner, waiting](RunEntry& entry) {
        auto step = begin(entry);
        auto& part = *step->parts[0];
        const auto kind = static_cast<model::TaskKind>(queue.name.type);
        if (!begin_taken_task(part, (*held)->request.identity, kind, waiting.task.scheduled_id,
                              waiting.task.stamp, queue.is_sticky())) {
          unlock(entry);
          stale();
          return;
        }
        step->batch.erase(task_row(owner, queue.name, waiting.place));
        lease(*step, part, queue, waiting.place.key, waiting.task.scheduled_id);
        step->permits.push_back(std::move(*(*held)->permit));
        (*held)->permit.reset();
        if ((*held)->hold.has_value()) step->holds.push_back(std::move(*(*held)->hold));
        (*held)->hold.reset();
        answer_taken_task(*step, part, std::move(*held), kind, waiting.task.scheduled_id,
                          queue.is_sticky(), waiting.backlog);
        step->start = Step::Start{owner, queue, waiting};
        step->start->waiting.place.stream.slot = ramp_slot(entry.run.state.workflow_id());
        finish(std::move(step));
      },
      stale);
}

void Shard::release_sticky_task(const queue::Task& task) {
  with_entry(
      std::string(task.run.begin(), task.run.end()),
      [this, stamp = task.stamp](RunEntry& entry) {
        const auto& state = entry.run.state;
        const bool is_waiting = entry.run.is_open() && state.has_workflow_task() &&
                                !entry.run.has_started_task() &&
                                state.workflow_task().stamp() == stamp;
        if (!is_waiting) return;
        auto step = begin(entry);
        history::release_sticky_task(step->parts[0]->tx);
        finish(std::move(step));
      },
      [] {});
}

void Shard::refuse_completion(RunEntry& entry, const CommandError& error,
                              const std::string& identity,
                              Reply<CompleteWorkflowTaskResult> reply) {
  const auto status = errors::invalid_argument(error.message);
  const bool is_unhandled =
      error.cause == static_cast<int>(history::FailedCause::kUnhandledCommand);
  if (entry.run.state.workflow_task().attempt() > 1 && !is_unhandled && !error.terminates) {
    // A retry that fails again the same way leaves no trace: it runs into its timeout.
    reply(status);
    return;
  }
  auto step = begin(entry);
  auto& tx = step->parts[0]->tx;
  history::TaskFailure failure;
  failure.cause = error.cause;
  failure.failure = server_failure(error.message);
  failure.identity = identity;
  history::fail_workflow_task(tx, std::move(failure));
  if (is_unhandled) tx.state().set_close_refused(true);
  if (!is_unhandled) refuse_updates(*step, entry);
  if (error.terminates) history::terminate_by_server(tx, error.message);
  reply_after(*step, [reply = std::move(reply), status]() mutable { reply(status); });
  finish(std::move(step));
}

// Whoever is answered by this step takes the run's new workflow task along.
void Shard::take_along(Step::Part& part, const history::Taker& taker, const std::string& key) {
  auto& task = *part.tx.state().mutable_workflow_task();
  history::start_workflow_task(part.tx, task.stamp(), taker);
  task.set_lease_key(key);
  ++part.task_starts;
  ++stats_.workflow_tasks_started;
}

void Shard::complete_workflow_task(CompleteWorkflowTask request,
                                   Reply<CompleteWorkflowTaskResult> reply) {
  const RunRef run{request.token.ns, request.token.workflow_id, request.token.run_id};
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry,
                                           Reply<CompleteWorkflowTaskResult> answer) mutable {
        if (!history::holds_workflow_task(entry.run, task_id(request.token))) {
          answer(errors::workflow_task_not_found());
          return;
        }
        if (!request.bad_command.has_value()) {
          auto refusal = attach_updates(entry, &request.commands);
          if (!refusal.has_value()) {
            refusal = history::check_commands(entry.run, *world_.limits, &request.commands);
          }
          if (refusal.has_value()) {
            request.bad_command = CommandError{static_cast<int>(refusal->cause), refusal->message};
          }
        }
        if (request.bad_command.has_value()) {
          refuse_completion(entry, *request.bad_command, request.identity, std::move(answer));
          return;
        }

        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        auto& state = tx.state();
        const TimeNs original = state.workflow_task().original_scheduled_ns();
        const bool is_heartbeat = request.force_new_task && request.commands.empty();
        if (is_heartbeat &&
            now() > add_saturated(original, world_.limits->workflow_task_heartbeat)) {
          history::time_out_workflow_task(tx);
          reply_after(*step, [answer = std::move(answer)]() mutable {
            answer(errors::not_found("workflow task heartbeat timeout"));
          });
          finish(std::move(step));
          return;
        }

        if (!request.commands.empty() &&
            request.commands.back().kind() == model::WORKFLOW_CONTINUED_AS_NEW) {
          tx.successor_run_id = make_uuid(random_, tx.now);
        }
        auto result = std::make_shared<CompleteWorkflowTaskResult>();
        step->eager = Step::Eager{
            request.identity,
            [result](ActivityTask task) { result->activities.push_back(std::move(task)); },
            [result](WorkflowTask task) { result->new_task = std::move(task); },
            request.force_new_task};
        const bool only_rejects =
            std::all_of(request.commands.begin(), request.commands.end(),
                        [](const auto& draft) { return draft.kind() == model::UPDATE_REJECTED; });
        const bool is_discarded = only_rejects && !request.force_new_task &&
                                  history::may_discard_task(entry.run, request.rereads);
        int64_t completed_id = 0;
        if (is_discarded) {
          history::discard_speculative_task(tx);
          result->reset_to_event = state.last_completed_task_started_id();
        } else {
          completed_id = history::complete_workflow_task(tx, request.door, request.build);
        }
        if (request.sticky.has_value()) {
          *state.mutable_sticky() = std::move(*request.sticky);
        } else {
          state.clear_sticky();
        }
        history::apply_commands(tx, std::move(request.commands), completed_id);
        if (!request.force_new_task) forget_ignored_updates(entry, tx);
        if (request.force_new_task && entry.run.is_open()) tx.want_task();
        tx.schedule_wanted_task();
        if (is_heartbeat && state.has_workflow_task()) {
          state.mutable_workflow_task()->set_original_scheduled_ns(original);
        }
        step->after_write.push_back([this, held = step.get(), &entry,
                                     rejects_ignored = !request.force_new_task,
                                     changes = std::move(tx.update_changes()),
                                     answers = std::move(request.query_answers)]() mutable {
          finish_queries(std::move(answers));
          settle_updates(*held, entry, changes, rejects_ignored);
        });
        if (wants_update_task(entry, tx)) history::schedule_speculative_task(tx);
        // The worker would like to take the next task along; its queue decides.
        for (auto& offer : tx.offers()) {
          if (offer.kind == model::WORKFLOW_TASK) offer.is_eager = request.return_new_task;
        }
        reply_after(*step,
                    [answer = std::move(answer), result]() mutable { answer(std::move(*result)); });
        finish(std::move(step));
      });
}

void Shard::fail_workflow_task(FailWorkflowTask request, Reply<Done> reply) {
  const RunRef run{request.token.ns, request.token.workflow_id, request.token.run_id};
  with_chain_run(run, "", std::move(reply),
                 [this, request = std::move(request)](RunEntry& entry, Reply<Done> answer) mutable {
                   if (!entry.run.is_open()) {
                     answer(errors::workflow_completed());
                     return;
                   }
                   if (!history::holds_workflow_task(entry.run, task_id(request.token))) {
                     answer(errors::workflow_task_not_found());
                     return;
                   }
                   auto step = begin(entry);
                   history::fail_workflow_task(
                       step->parts[0]->tx, {request.cause, std::move(request.failure),
                                            std::move(request.identity), std::move(request.door)});
                   reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
                   finish(std::move(step));
                 });
}

// The worker never got the task. Its start is in the history, so it ends there too: as if its time
// had run out, only without the wait.
void Shard::return_workflow_task(TaskToken token) {
  const RunRef run = token.run();
  with_run(
      run,
      [this, token](RunEntry& entry) {
        if (!history::holds_workflow_task(entry.run, task_id(token))) return;
        auto step = begin(entry);
        history::time_out_workflow_task(step->parts[0]->tx);
        finish(std::move(step));
      },
      [](const absl::Status&) {});
}

}  // namespace fairlead::shard
