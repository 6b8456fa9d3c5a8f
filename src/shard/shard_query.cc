// Questions to workflow code. They live in memory only and change nothing.

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "shard/shard.h"

namespace fairlead::shard {

namespace {

constexpr size_t kAttachedQueriesMax = 100;
constexpr int32_t kFailingAttempt = 3;
// So long before the deadline whoever asks is told that nobody is there, and still hears it.
constexpr DurationNs kLastCall = kSecond;

bool is_rejected(const model::RunState& run, QueryReject condition) {
  if (run.status() == model::RUNNING) return false;
  if (condition == QueryReject::kNotOpen) return true;
  return condition == QueryReject::kNotCompletedCleanly && run.status() != model::COMPLETED;
}

absl::Status check_ready(const model::RunState& run, TimeNs deadline) {
  const bool is_open = run.status() == model::RUNNING;
  if (!is_open && run.last_completed_task_started_id() == 0) {
    return errors::workflow_not_ready("Workflow execution closed before WorkflowTaskStarted event");
  }
  if (is_open && !run.has_workflow_task() && run.first_task_at_ns() > deadline) {
    return errors::workflow_not_ready("Workflow task is not scheduled yet.");
  }
  if (run.has_workflow_task() && run.workflow_task().attempt() >= kFailingAttempt) {
    return errors::workflow_not_ready(
        "Unable to query workflow due to Workflow Task in failed state.");
  }
  return absl::OkStatus();
}

absl::StatusOr<QueryResult> result_of(QueryAnswer answer) {
  if (!answer.answered) return errors::query_failed(answer.error_message, answer.failure);
  return QueryResult{std::move(answer.result)};
}

}  // namespace

void Shard::query_workflow(QueryRequest request, Reply<QueryResult> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<QueryResult> answer) mutable {
        const auto& state = entry.run.state;
        if (is_rejected(state, request.reject)) {
          world_.commits->after_durable(
              [answer = std::move(answer), status = state.status()]() mutable {
                answer(QueryResult{"", status});
              });
          return;
        }
        if (const auto status = check_ready(state, request.deadline); !status.ok()) {
          answer(status);
          return;
        }
        const bool is_direct =
            !entry.run.is_open() ||
            (state.last_completed_task_started_id() > 0 && !state.has_workflow_task());
        if (!is_direct && entry.queries.size() >= kAttachedQueriesMax) {
          answer(
              errors::busy_workflow("consistent query buffer is full, this may be caused by too "
                                    "many queries and workflow "
                                    "not able to process query fast enough"));
          return;
        }
        const std::string id = absl::StrCat(id_.value(), "-", ++last_query_, "-", random_.next());
        auto& query = queries_[id];
        query.id = id;
        query.run = entry.key;
        query.query = std::move(request.query);
        query.reply = std::move(answer);
        query.deadline = alarms_.set(request.deadline, [this, id] {
          finish_query(
              id, absl::DeadlineExceededError("no worker answered the query before its deadline"));
        });
        query.last_call = alarms_.set(request.deadline - kLastCall, [this, id] { last_call(id); });
        if (is_direct) {
          route_query(entry, id, true);
        } else {
          entry.queries.push_back(id);
        }
        schedule_tick();
      });
}

// Sends the query to a worker on its own: first to the one that has the run in its cache.
void Shard::route_query(RunEntry& entry, const std::string& id, bool may_use_sticky) {
  const auto found = queries_.find(id);
  if (found == queries_.end()) return;
  auto& query = found->second;
  alarms_.cancel(query.sticky_deadline);
  const auto& state = entry.run.state;
  model::QueueTarget target;
  target.set_name(state.task_queue());
  const bool use_sticky = may_use_sticky && state.has_sticky();
  if (use_sticky) {
    target.set_name(state.sticky().name());
    target.set_sticky(true);
    target.set_normal_name(state.task_queue());
    query.sticky_deadline = alarms_.set(
        add_saturated(now(), state.sticky().schedule_to_start_ns()), [this, id, key = entry.key] {
          const auto late = queries_.find(id);
          if (late == queries_.end() || !late->second.waits_in.has_value()) return;
          const auto queue = *late->second.waits_in;
          run_on(owner_of(queue),
                 [queue, id](Shard& shard) { shard.queues_.withdraw_query(queue, id); });
          with_entry(
              key,
              [this, id](RunEntry& again) {
                drop_sticky(again);
                route_query(again, id, false);
              },
              [] {});
        });
  }
  const auto queue = address_of(NamespaceNum(state.namespace_num()), model::WORKFLOW_TASK, target);
  query.waits_in = queue;
  run_on(owner_of(queue), [queue, id, home = id_, key = entry.key](Shard& owner) {
    const auto offer = owner.queues_.offer_query(queue, {home, id});
    if (offer == QueueHost::QueryOffer::kTaken) {
      owner.schedule_tick();
      return;
    }
    if (offer == QueueHost::QueryOffer::kFull) {
      owner.run_on(home, [id](Shard& shard) {
        shard.finish_query(
            id, errors::concurrent_limit("too many queries wait for a worker of this task queue"));
      });
      return;
    }
    owner.run_on(home, [id, key](Shard& shard) {
      shard.with_entry(
          key, [&shard, id](RunEntry& again) { shard.route_query(again, id, false); }, [] {});
    });
  });
}

void Shard::last_call(const std::string& id) {
  const auto found = queries_.find(id);
  if (found == queries_.end() || !found->second.waits_in.has_value()) return;
  const auto queue = found->second.waits_in->normal_queue();
  run_on(owner_of(queue), [queue, id, home = id_](Shard& owner) {
    if (owner.queues_.was_polled_lately(queue)) return;
    owner.run_on(home, [id](Shard& shard) {
      shard.finish_query(id, errors::failed_precondition(
                                 "no poller seen for task queue recently, worker may be down"));
    });
  });
}

void Shard::start_query(PollPtr poll, QueueAddress queue, DirectQuery direct) {
  const auto found = queries_.find(direct.id);
  if (found == queries_.end()) {
    // It was answered or given up meanwhile: the poll goes on waiting.
    const ShardId owner = owner_of(queue);
    run_on(owner, [poll = std::move(poll)](Shard& shard) mutable { shard.poll(std::move(poll)); });
    return;
  }
  found->second.waits_in.reset();
  alarms_.cancel(found->second.sticky_deadline);
  auto held = std::make_shared<PollPtr>(std::move(poll));
  with_entry(
      found->second.run,
      [this, held, queue, id = direct.id](RunEntry& entry) {
        const auto query = queries_.find(id);
        if (query == queries_.end()) {
          (*held)->answer_empty();
          return;
        }
        const auto& state = entry.run.state;
        WorkflowTask answer;
        answer.token = make_token(entry);
        answer.token.attempt = 1;
        answer.workflow_type = state.workflow_type();
        answer.previous_started_id = state.last_completed_task_started_id();
        answer.task_queue = state.task_queue();
        answer.query = AttachedQuery{id, query->second.query};
        if (!queue.is_sticky()) {
          auto slice = collect(entry, 1, 256);
          answer.history = std::move(slice.history);
          if (slice.next_event < state.next_event_id()) {
            answer.next_history_event = slice.next_event;
          }
        }
        world_.commits->after_durable([held, answer = std::move(answer)]() mutable {
          std::get<Reply<WorkflowTask>>((*held)->reply)(std::move(answer));
        });
      },
      [held] { (*held)->answer_empty(); });
}

// The worker that was to answer has gone: another one may.
void Shard::return_query(const std::string& query_id) {
  const auto found = queries_.find(query_id);
  if (found == queries_.end() || found->second.waits_in.has_value()) return;
  with_entry(
      found->second.run, [this, query_id](RunEntry& entry) { route_query(entry, query_id, false); },
      [] {});
  schedule_tick();
}

void Shard::answer_query(const std::string& query_id, QueryAnswer answer, Reply<Done> reply) {
  if (!queries_.contains(query_id)) {
    reply(errors::not_found("query task not found, or already expired"));
    return;
  }
  finish_query(query_id, result_of(std::move(answer)));
  reply(Done{});
}

void Shard::finish_query(const std::string& id, absl::StatusOr<QueryResult> result) {
  const auto found = queries_.find(id);
  if (found == queries_.end()) return;
  auto query = std::move(found->second);
  queries_.erase(found);
  alarms_.cancel(query.deadline);
  alarms_.cancel(query.sticky_deadline);
  alarms_.cancel(query.last_call);
  if (query.waits_in.has_value()) {
    run_on(owner_of(*query.waits_in), [queue = *query.waits_in, id](Shard& shard) {
      shard.queues_.withdraw_query(queue, id);
    });
  }
  if (auto* entry = runs_.find(query.run)) {
    auto& attached = entry->queries;
    attached.erase(std::remove(attached.begin(), attached.end(), id), attached.end());
  }
  world_.commits->after_durable(
      [reply = std::move(query.reply), result = std::move(result)]() mutable {
        reply(std::move(result));
      });
}

void Shard::finish_queries(std::vector<std::pair<std::string, QueryAnswer>> answers) {
  for (auto& [id, answer] : answers) finish_query(id, result_of(std::move(answer)));
}

// Queries wait for the run's workflow task; when it has none, they go their own way.
void Shard::reroute_queries(RunEntry& entry) {
  const auto& state = entry.run.state;
  const bool may_come = entry.run.is_open() && state.last_completed_task_started_id() == 0;
  if (entry.queries.empty() || state.has_workflow_task() || may_come) return;
  const auto orphans = std::move(entry.queries);
  entry.queries.clear();
  for (const auto& id : orphans) {
    if (const auto status = check_ready(state, kNever); !status.ok()) {
      finish_query(id, status);
    } else {
      route_query(entry, id, true);
    }
  }
}

void Shard::drop_sticky(RunEntry& entry) {
  if (!entry.run.is_open() || !entry.run.is_sticky()) return;
  auto step = begin(entry);
  step->parts[0]->tx.state().clear_sticky();
  finish(std::move(step));
}

}  // namespace fairlead::shard
