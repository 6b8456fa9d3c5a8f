// Figures of task queues, under the names that operators of Temporal have their alerts on, and a
// few that only Fairlead has. Their number is bounded: so many queues, so many keys of each.

#include <string>

#include "server/metric_families.h"
#include "server/metrics.h"

namespace fairlead::server {

namespace {

std::string type_name(model::TaskKind kind) {
  return kind == model::WORKFLOW_TASK ? "Workflow" : "Activity";
}

// As Temporal writes queue names into labels.
std::string label_text(std::string text) {
  for (char& c : text) {
    if (isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') c = '_';
  }
  return text;
}

Labels with(Labels labels, const std::string& name, const std::string& value) {
  labels.push_back({name, value});
  return labels;
}

// As Temporal counts it: from a task's birth to the worker, whichever way it took.
void add_dispatches(Families& families, const shard::DispatchCounts& counts, const Labels& labels) {
  const auto add = [&](const absl::btree_map<uint32_t, shard::WaitHistogram>& by_level,
                       const char* source) {
    for (const auto& [level, waited] : by_level) {
      auto of_level = with(labels, "source", source);
      of_level.push_back({"forwarded", "false"});
      of_level.push_back({"task_priority", std::to_string(level)});
      families.histogram("task_dispatch_latency",
                         "From a task's birth to its start by a worker, in seconds.", of_level,
                         waited);
    }
  };
  add(counts.fresh, "History");
  add(counts.waited, "DbBacklog");
}

void add_queue(Families& families, const shard::MeasuredQueue& measured, const Labels& labels,
               TimeNs now) {
  const auto& queue = measured.figures;
  TimeNs oldest = 0;
  for (size_t level = 1; level <= queue.levels.size(); ++level) {
    const auto& view = queue.levels[level - 1];
    families.gauge("approximate_backlog_count", "Tasks that wait, exactly.",
                   with(labels, "task_priority", std::to_string(level)),
                   static_cast<double>(view.waiting));
    if (view.oldest_ns != 0 && (oldest == 0 || view.oldest_ns < oldest)) oldest = view.oldest_ns;
  }
  families.gauge("approximate_backlog_age_seconds", "How long the oldest task has waited.", labels,
                 oldest == 0 ? 0 : static_cast<double>(now - oldest) / kSecond);
  const auto& counts = queue.counts;
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    families.counter(name, help, labels, static_cast<double>(value));
  };
  counter("poll_success", "Polls that got a task.", counts.polls_with_task);
  counter("poll_success_sync", "Polls that got a task which had not waited.",
          counts.polls_with_new_task);
  counter("poll_timeouts", "Polls that ended without a task.", counts.polls_empty);
  counter("no_poller_tasks", "Tasks added while nobody polled.", counts.added_without_poller);
  families.counter("tasks_added", "Tasks added, by what became of them.",
                   with(labels, "task_add_result", "sync_match"),
                   static_cast<double>(counts.polls_with_new_task));
  families.counter("tasks_added", "Tasks added, by what became of them.",
                   with(labels, "task_add_result", "backlog"),
                   static_cast<double>(counts.added_to_backlog));
  families.counter("tasks_dropped", "Tasks that nobody wanted any more when their turn came.",
                   with(labels, "reason", "invalid"), static_cast<double>(counts.dropped));
  families.histogram("asyncmatch_latency", "How long tasks of the backlog waited, in seconds.",
                     labels, counts.waited);
  add_dispatches(families, measured.dispatches, labels);
  counter("schedule_to_start_timeout", "Tasks that no worker took in time.",
          measured.dispatches.expired);
  families.gauge("fairlead_fair_lag_tasks",
                 "Largest distance of a waiting key from its exact share, in tasks.", labels,
                 queue.lag_max);
  families.gauge("fairlead_active_keys", "Fairness keys that wait, run or are owed something.",
                 labels, static_cast<double>(queue.active_keys));
  counter("fairlead_tasks_sharing_lines",
          "Tasks of keys that came when their queue had as many keys as it may.",
          counts.sharing_lines);
  families.gauge("fairlead_throttled_keys", "Keys that a limit holds back.", labels,
                 static_cast<double>(queue.throttled_keys));
  for (const auto& key : queue.top_keys) {
    const auto of_key = with(labels, "fairness_key", key.key);
    families.gauge("fairlead_key_backlog_topk", "Waiting tasks of the keys with most of them.",
                   of_key, static_cast<double>(key.waiting));
    families.gauge("fairlead_key_inflight_topk", "Running tasks of the keys with most waiting.",
                   of_key, static_cast<double>(key.running));
  }
}

}  // namespace

void add_queue_families(const std::vector<shard::MeasuredQueue>& queues,
                        const NamespaceNames& names, TimeNs now,
                        std::vector<prometheus::MetricFamily>* collected) {
  Families families(collected);
  for (const auto& measured : queues) {
    const auto& queue = measured.figures.queue;
    const auto ns = names(queue.ns);
    if (ns.empty()) continue;
    add_queue(families, measured,
              {{"namespace", ns},
               {"taskqueue", label_text(queue.name)},
               {"task_type", type_name(queue.kind)},
               {"partition", "0"}},
              now);
  }
}

}  // namespace fairlead::server
