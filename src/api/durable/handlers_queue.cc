// What operators see of task queues. Queues of both doors that share a name are one here, because
// they share their budgets.

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admission/payload.h"
#include "api/durable/desk.h"

namespace fairlead::durable {

namespace {

constexpr size_t kLeasesShown = 50;

// "42s", "3m05s", "1h02m03s"
std::string age_text(int64_t seconds) {
  if (seconds < 60) return absl::StrFormat("%ds", seconds);
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  return absl::StrFormat("%dh%02dm%02ds", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// Of one kind of tasks, in the queues of both doors.
struct KindFigures {
  TimeNs oldest_ns = 0;
  double added_per_second = 0;
  double dispatched_per_second = 0;
  std::optional<shard::OldestTask> oldest;

  void add(const shard::QueueView& view) {
    if (view.oldest && (!oldest || view.oldest->created_ns < oldest->created_ns)) {
      oldest = view.oldest;
    }
    for (const auto& level : view.levels) {
      if (level.oldest_ns != 0) {
        oldest_ns = oldest_ns == 0 ? level.oldest_ns : std::min(oldest_ns, level.oldest_ns);
      }
      added_per_second += level.added_per_second;
      dispatched_per_second += level.dispatched_per_second;
    }
  }
  int64_t added() const { return std::llround(added_per_second * 60); }
  int64_t dispatched() const { return std::llround(dispatched_per_second * 60); }
};

json::value oldest_task(const KindFigures& workflow, const KindFigures& activity, TimeNs now) {
  const bool is_workflow =
      workflow.oldest.has_value() &&
      (!activity.oldest || workflow.oldest->created_ns <= activity.oldest->created_ns);
  const auto& task = is_workflow ? workflow.oldest : activity.oldest;
  if (!task.has_value()) return nullptr;
  const TaskName name{is_workflow ? 'w' : 'a', task->number, task->run_id, task->workflow_id};
  return json::object{{"task_id", name.text()},
                      {"task_type", is_workflow ? "workflow" : "activity"},
                      {"workflow_id", task->workflow_id},
                      {"run_id", task->run_id},
                      {"available_at", format_time(task->created_ns)},
                      {"age_seconds", std::max<int64_t>(0, (now - task->created_ns) / kSecond)}};
}

json::object counts_of(const admission::TaskSection& tasks, const KindFigures& figures) {
  // Whoever is late has lost the task: no lease outlives its time here.
  return {{"ready_count", tasks.ready},
          {"leased_count", tasks.leased},
          {"expired_lease_count", 0},
          {"added_last_minute", figures.added()},
          {"dispatched_last_minute", figures.dispatched()}};
}

}  // namespace

struct Door::Impl::QueueFigures {
  admission::Payload payload;
  KindFigures kinds[2];  // workflow, activity
};

// The queue's record without what only a closer look shows.
json::object Door::Impl::queue_record(const std::string& ns, const std::string& queue,
                                      const QueueFigures& figures) {
  const admission::Payload& payload = figures.payload;
  int64_t active = 0;
  int64_t stale = 0;
  for (const auto& [key, worker] : workers_) {
    if (worker.queue != queue || !key.starts_with(ns + "\n")) continue;
    ++(worker.is_stale(now(), options_.stale_after()) ? stale : active);
  }
  const auto& workflow = figures.kinds[0];
  const auto& activity = figures.kinds[1];
  const int64_t backlog = payload.workflow_tasks.ready + payload.activity_tasks.ready;
  TimeNs oldest = workflow.oldest_ns;
  if (activity.oldest_ns != 0 && (oldest == 0 || activity.oldest_ns < oldest)) {
    oldest = activity.oldest_ns;
  }
  json::object stats{
      {"approximate_backlog_count", backlog},
      {"approximate_backlog_age", nullptr},
      {"approximate_backlog_age_seconds", nullptr},
      {"oldest_ready_task", oldest_task(workflow, activity, now())},
      {"workflow_tasks", counts_of(payload.workflow_tasks, workflow)},
      {"activity_tasks", counts_of(payload.activity_tasks, activity)},
      {"pollers",
       {{"active_count", active},
        {"stale_count", stale},
        {"stale_after_seconds", options_.stale_after() / kSecond}}},
      {"tasks_added_last_minute", workflow.added() + activity.added()},
      {"tasks_dispatched_last_minute", workflow.dispatched() + activity.dispatched()}};
  if (backlog > 0 && oldest != 0) {
    const int64_t age = std::max<int64_t>(0, (now() - oldest) / kSecond);
    stats["approximate_backlog_age"] = age_text(age);
    stats["approximate_backlog_age_seconds"] = age;
  }
  // Nothing here is ever lost between the store and a queue, so there is nothing to repair.
  return {{"name", queue},
          {"stats", std::move(stats)},
          {"repair",
           {{"candidates", 0},
            {"dispatch_failed", 0},
            {"expired_leases", 0},
            {"dispatch_overdue", 0},
            {"needs_attention", false}}},
          {"admission", *parse_json(admission::to_json(payload))}};
}

// Asks all shards that know something of the queue. One that nobody uses is not made by asking.
void Door::Impl::gather_queue(NamespaceNum ns, const std::string& ns_name, const std::string& queue,
                              std::function<void(absl::StatusOr<json::object>)> then) {
  engine_.describe_admission(
      {ns, queue}, here<admission::Payload>([this, ns, ns_name, queue, then = std::move(then)](
                                                absl::StatusOr<admission::Payload> payload) {
        if (!payload.ok()) return then(payload.status());
        struct Gathering {
          QueueFigures figures;
          size_t left = 0;
        };
        auto gathering = std::make_shared<Gathering>();
        gathering->figures.payload = *std::move(payload);
        std::vector<shard::QueueRef> parts;
        for (const auto kind : {model::WORKFLOW_TASK, model::ACTIVITY_TASK}) {
          const auto& tasks = kind == model::WORKFLOW_TASK
                                  ? gathering->figures.payload.workflow_tasks
                                  : gathering->figures.payload.activity_tasks;
          if (tasks.ready == 0 && tasks.leased == 0 && tasks.active_workers == 0) continue;
          parts.push_back({ns, kind, queue});
          parts.push_back({ns, kind, engine_queue(queue)});
        }
        gathering->left = parts.size();
        if (parts.empty()) return then(queue_record(ns_name, queue, gathering->figures));
        for (const auto& part : parts) {
          const size_t index = part.kind == model::WORKFLOW_TASK ? 0 : 1;
          engine_.describe_queue(
              part, here<shard::QueueView>([this, ns_name, queue, then, gathering,
                                            index](absl::StatusOr<shard::QueueView> view) {
                if (view.ok()) gathering->figures.kinds[index].add(*view);
                if (--gathering->left > 0) return;
                then(queue_record(ns_name, queue, gathering->figures));
              }));
        }
      }));
}

// Leases that this process gave. Those that it found on its disk are counted, but not shown.
json::array Door::Impl::current_leases(const std::string& ns, const std::string& queue) {
  std::map<std::string, json::object> leases;
  for (const auto& [name, task] : handed_out_) {
    const auto worker = workers_.find(task.worker);
    const auto receipt = receipts_.find(task.receipt);
    if (worker == workers_.end() || receipt == receipts_.end()) continue;
    if (worker->second.queue != queue || !task.worker.starts_with(ns + "\n")) continue;
    // Whoever is late has lost the task.
    if (receipt->second.expires <= now()) continue;
    json::object lease{{"task_id", name},
                       {"task_type", task.is_workflow ? "workflow" : "activity"},
                       {"workflow_id", task.token.workflow_id},
                       {"run_id", task.token.run_id},
                       {"lease_owner", worker->second.id},
                       {"lease_expires_at", format_time(receipt->second.expires)},
                       {"is_expired", false}};
    if (task.is_workflow) {
      lease["workflow_task_attempt"] = task.token.attempt;
    } else {
      lease["activity_attempt_id"] = attempt_name(task.token.activity_id, task.token.attempt);
      lease["attempt_number"] = task.token.attempt;
    }
    leases.emplace(name, std::move(lease));
  }
  json::array shown;
  for (auto& [name, lease] : leases) {
    if (shown.size() < kLeasesShown) shown.emplace_back(std::move(lease));
  }
  return shown;
}

void Door::Impl::describe_queue(CallPtr call) {
  const std::string queue = call->arg(0);
  gather_queue(call->ns_num(), call->ns->name(), queue,
               [this, call, queue](absl::StatusOr<json::object> gathered) {
                 if (!gathered.ok()) return call->refuse(gathered.status());
                 const std::string& ns = call->ns->name();
                 auto record = *std::move(gathered);
                 record["namespace"] = ns;
                 record["current_leases"] = current_leases(ns, queue);
                 std::vector<std::tuple<bool, std::string, json::object>> pollers;
                 for (const auto& [key, worker] : workers_) {
                   if (worker.queue != queue || !key.starts_with(ns + "\n")) continue;
                   const bool is_stale = worker.is_stale(now(), options_.stale_after());
                   auto poller = worker_record(ns, worker);
                   poller["is_stale"] = is_stale;
                   poller["heartbeat_expires_at"] =
                       format_time(add_saturated(worker.heard_ns, options_.stale_after()));
                   pollers.emplace_back(is_stale, worker.id, std::move(poller));
                 }
                 std::sort(pollers.begin(), pollers.end(), [](const auto& a, const auto& b) {
                   return std::tie(std::get<0>(a), std::get<1>(a)) <
                          std::tie(std::get<0>(b), std::get<1>(b));
                 });
                 json::array shown;
                 for (auto& poller : pollers) shown.emplace_back(std::move(std::get<2>(poller)));
                 record["pollers"] = std::move(shown);
                 call->answer(200, std::move(record));
               });
}

void Door::Impl::list_queues(CallPtr call) {
  struct Gathering {
    std::map<std::string, json::object> queues;
    size_t left = 0;
  };
  auto shown = std::make_shared<Gathering>();
  engine_.list_queues(
      {call->ns_num()},
      here<std::vector<shard::QueueSummary>>(
          [this, call, shown](absl::StatusOr<std::vector<shard::QueueSummary>> found) {
            if (!found.ok()) return call->refuse(found.status());
            const std::string& ns = call->ns->name();
            std::set<std::string> names;
            for (const auto& summary : *found) names.insert(known_queue(summary.queue.name));
            for (const auto& [key, worker] : workers_) {
              if (key.starts_with(ns + "\n")) names.insert(worker.queue);
            }
            const auto finish = [call, shown, ns] {
              json::array queues;
              for (auto& [name, record] : shown->queues) queues.emplace_back(std::move(record));
              call->answer(200, {{"namespace", ns}, {"task_queues", std::move(queues)}});
            };
            shown->left = names.size();
            if (names.empty()) return finish();
            for (const auto& name : names) {
              gather_queue(call->ns_num(), ns, name,
                           [name, shown, finish](absl::StatusOr<json::object> record) {
                             if (record.ok()) shown->queues[name] = *std::move(record);
                             if (--shown->left == 0) finish();
                           });
            }
          }));
}

}  // namespace fairlead::durable
