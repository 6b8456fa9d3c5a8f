// What operators see of task queues. Queues of both doors that share a name are one here, because
// they share their budgets.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "admission/payload.h"
#include "api/durable/desk.h"

namespace fairlead::durable {

namespace {

json::object counts_of(const admission::TaskSection& tasks) {
  return {{"ready_count", tasks.ready}, {"leased_count", tasks.leased}};
}

}  // namespace

// The queue's record without what only a closer look shows.
json::object Door::Impl::queue_record(const std::string& ns, const std::string& queue,
                                      const admission::Payload& payload) {
  int64_t active = 0;
  int64_t stale = 0;
  for (const auto& [key, worker] : workers_) {
    if (worker.queue != queue || !key.starts_with(ns + "\n")) continue;
    ++(worker.is_stale(now(), options_.stale_after()) ? stale : active);
  }
  return {
      {"name", queue},
      {"stats",
       {{"approximate_backlog_count", payload.workflow_tasks.ready + payload.activity_tasks.ready},
        {"workflow_tasks", counts_of(payload.workflow_tasks)},
        {"activity_tasks", counts_of(payload.activity_tasks)},
        {"pollers",
         {{"active_count", active},
          {"stale_count", stale},
          {"stale_after_seconds", options_.stale_after() / kSecond}}}}},
      {"admission", *parse_json(admission::to_json(payload))}};
}

void Door::Impl::describe_queue(CallPtr call) {
  const std::string queue = call->arg(0);
  engine_.describe_admission(
      {call->ns_num(), queue},
      here<admission::Payload>([this, call, queue](absl::StatusOr<admission::Payload> payload) {
        if (!payload.ok()) return call->refuse(payload.status());
        const std::string& ns = call->ns->name();
        auto record = queue_record(ns, queue, *payload);
        record["namespace"] = ns;
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
      }));
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
              engine_.describe_admission(
                  {call->ns_num(), name},
                  here<admission::Payload>(
                      [this, ns, name, shown, finish](absl::StatusOr<admission::Payload> payload) {
                        if (payload.ok()) {
                          shown->queues[name] = queue_record(ns, name, *payload);
                        }
                        if (--shown->left == 0) finish();
                      }));
            }
          }));
}

}  // namespace fairlead::durable
