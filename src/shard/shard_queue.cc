// Questions and orders about task queues.

#include "base/error.h"
#include "history/activity.h"
#include "history/lifecycle.h"
#include "history/retry.h"
#include "shard/shard.h"

namespace fairlead::shard {

namespace {

QueueAddress address_of(const QueueRef& queue) {
  return {{queue.ns, static_cast<uint8_t>(queue.kind), queue.name}, queue.name};
}

}  // namespace

void Shard::describe_queue(QueueRef queue, Reply<QueueView> reply) {
  auto view = queues_.describe(address_of(queue));
  const auto oldest = view.oldest;
  world_.commits->after_durable([this, oldest, reply = std::move(reply),
                                 view = std::move(view)]() mutable {
    if (!oldest.has_value()) return reply(std::move(view));
    // Only its run knows what the task that has waited longest is called.
    auto shared =
        std::make_shared<std::pair<QueueView, Reply<QueueView>>>(std::move(view), std::move(reply));
    run_on(oldest->shard, [key = oldest->run, shared](Shard& owner) {
      owner.with_entry(
          key,
          [shared](RunEntry& entry) {
            shared->first.oldest->workflow_id = entry.run.state.workflow_id();
            shared->first.oldest->run_id = entry.run.state.run_id();
            shared->second(std::move(shared->first));
          },
          [shared] {
            shared->first.oldest.reset();  // gone in the meantime
            shared->second(std::move(shared->first));
          });
    });
  });
}

void Shard::change_rules(ChangeRules request, Reply<model::QueueRules> reply) {
  auto changed = queues_.change_rules(address_of(request.queue), request);
  schedule_tick();
  world_.commits->after_durable([reply = std::move(reply), changed = std::move(changed)]() mutable {
    reply(std::move(changed));
  });
}

void Shard::count_ready(QueueRef queue, Reply<int64_t> reply) {
  reply(queues_.ready(address_of(queue)));
}

void Shard::look_again(const QueueName& queue) {
  queues_.look_again(queue);
  schedule_tick();
}

void Shard::list_keys(KeysRequest request, Reply<KeysView> reply) {
  reply(queues_.list_keys(address_of(request.queue), request));
}

void Shard::list_queues(ListQueuesRequest request, Reply<std::vector<QueueSummary>> reply) {
  std::vector<QueueSummary> summaries;
  for (const auto& queue : queues_.queues(request.ns)) {
    summaries.push_back(queues_.summarize(queue));
  }
  reply(std::move(summaries));
}

void Shard::purge_key(PurgeKey request, Reply<Purged> reply) {
  const auto waiting = queues_.tasks_of(address_of(request.queue), request.key);
  if (waiting.empty()) {
    reply(Purged{});
    return;
  }
  struct Count {
    std::atomic<size_t> left{0};
    std::atomic<int64_t> purged{0};
    Reply<Purged> reply;
  };
  auto count = std::make_shared<Count>();
  count->left = waiting.size();
  count->reply = std::move(reply);
  for (const auto& one : waiting) {
    run_on(one.task.shard, [task = one.task, request, count](Shard& shard) {
      shard.purge_task(task, request.queue.kind, request, [count](bool is_purged) {
        if (is_purged) ++count->purged;
        if (--count->left == 0) count->reply(Purged{count->purged});
      });
    });
  }
}

// Ends what the task is for: an activity fails for good, a workflow is terminated.
void Shard::purge_task(const queue::Task& task, model::TaskKind kind, const PurgeKey& request,
                       absl::AnyInvocable<void(bool)> done) {
  auto shared = std::make_shared<absl::AnyInvocable<void(bool)>>(std::move(done));
  with_entry(
      std::string(task.run.begin(), task.run.end()),
      [this, task, kind, request, shared](RunEntry& entry) {
        auto& state = entry.run.state;
        auto* activity =
            kind == model::ACTIVITY_TASK ? entry.run.find_activity(task.scheduled_id) : nullptr;
        const bool is_waiting = entry.run.is_open() &&
                                (kind == model::ACTIVITY_TASK
                                     ? activity != nullptr && activity->stamp() == task.stamp &&
                                           activity->started_ns() == 0
                                     : state.has_workflow_task() && !entry.run.has_started_task() &&
                                           state.workflow_task().stamp() == task.stamp);
        if (!is_waiting) {
          (*shared)(false);
          return;
        }
        const std::string reason =
            "purged from its task queue" + (request.reason.empty() ? "" : ": " + request.reason);
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        if (kind == model::ACTIVITY_TASK) {
          model::Failure failure;
          failure.set_kind(model::Failure::SERVER);
          failure.set_message(reason);
          failure.set_non_retryable(true);
          history::fail_activity(tx, *activity, request.identity, std::move(failure));
        } else {
          history::terminate_by_server(tx, reason);
        }
        reply_after(*step, [shared] { (*shared)(true); });
        finish(std::move(step));
      },
      [shared] { (*shared)(false); });
}

void Shard::explain(ExplainRequest request, Reply<Explanation> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<Explanation> answer) mutable {
        const auto& state = entry.run.state;
        Explanation explanation;
        explanation.priority = state.priority();
        const model::TaskPlace* place = nullptr;
        auto kind = model::WORKFLOW_TASK;
        if (!request.activity_id.empty()) {
          const auto* activity = entry.run.find_activity(request.activity_id);
          if (activity == nullptr) {
            answer(errors::activity_not_found());
            return;
          }
          kind = model::ACTIVITY_TASK;
          explanation.queue = {NamespaceNum(state.namespace_num()), kind,
                               activity->scheduled().task_queue()};
          explanation.priority =
              history::merge_priority(state.priority(), activity->scheduled().priority());
          explanation.worker_identity = activity->started_identity();
          if (activity->has_pause()) explanation.pause = activity->pause();
          if (activity->has_place()) {
            explanation.state = Explanation::State::kWaiting;
            explanation.since_ns = activity->scheduled_ns();
            place = &activity->place();
          } else if (activity->started_ns() != 0) {
            explanation.state = Explanation::State::kRunning;
            explanation.since_ns = activity->started_ns();
          } else if (activity->has_pause()) {
            explanation.state = Explanation::State::kPaused;
            explanation.since_ns = activity->pause().since_ns();
          } else {
            explanation.state = Explanation::State::kBackingOff;
            explanation.next_attempt_ns = activity->scheduled_ns();
          }
        } else if (state.has_workflow_task()) {
          const auto& task = state.workflow_task();
          explanation.queue = {NamespaceNum(state.namespace_num()), kind, state.task_queue()};
          explanation.worker_identity = task.identity();
          if (task.has_place()) {
            explanation.state = Explanation::State::kWaiting;
            explanation.since_ns = task.scheduled_ns();
            place = &task.place();
          } else if (task.started_id() != 0) {
            explanation.state = Explanation::State::kRunning;
            explanation.since_ns = task.started_ns();
          }
        } else if (state.first_task_at_ns() != 0) {
          explanation.state = Explanation::State::kBackingOff;
          explanation.next_attempt_ns = state.first_task_at_ns();
        }
        const QueueName name{explanation.queue.ns, static_cast<uint8_t>(kind),
                             explanation.queue.name};
        explanation.level = queue::effective_level(explanation.priority, settings_of(name).levels);
        if (place == nullptr) {
          answer(std::move(explanation));
          return;
        }
        const auto queue =
            shard::address_of(NamespaceNum(state.namespace_num()), kind, place->queue());
        const queue::Place spot = place_from(*place);
        run_on(owner_of(queue), [queue, spot, explanation = std::move(explanation),
                                 answer = std::move(answer)](Shard& owner) mutable {
          owner.queues_.explain(queue, spot, &explanation);
          answer(std::move(explanation));
        });
      });
}

}  // namespace fairlead::shard
