// Figures of task queues, under the names that operators of Temporal have their alerts on, and a
// few that only Fairlead has. Their number is bounded: so many queues, so many keys of each.

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <limits>
#include <map>
#include <string>

#include "server/metrics.h"

namespace fairlead::server {

namespace {

constexpr size_t kQueuesMax = 1000;
constexpr size_t kKeysMax = 10;

using Labels = std::vector<prometheus::ClientMetric::Label>;

// Families in the order in which they are first named.
class Families {
 public:
  explicit Families(std::vector<prometheus::MetricFamily>* families) : families_(*families) {}

  void counter(const std::string& name, const std::string& help, const Labels& labels,
               double value) {
    add(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
  }
  void gauge(const std::string& name, const std::string& help, const Labels& labels, double value) {
    add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
  }
  void histogram(const std::string& name, const std::string& help, const Labels& labels,
                 const shard::WaitHistogram& waited) {
    auto& histogram = add(name, help, prometheus::MetricType::Histogram, labels).histogram;
    uint64_t sum = 0;
    for (size_t i = 0; i < waited.counts.size(); ++i) {
      sum += waited.counts[i];
      const bool is_last = i + 1 == waited.counts.size();
      histogram.bucket.push_back({sum, is_last ? std::numeric_limits<double>::infinity()
                                               : shard::WaitHistogram::bound(i)});
    }
    histogram.sample_count = sum;
    histogram.sample_sum = waited.sum;
  }

 private:
  prometheus::ClientMetric& add(const std::string& name, const std::string& help,
                                prometheus::MetricType type, const Labels& labels) {
    const auto [found, is_new] = places_.try_emplace(name, families_.size());
    if (is_new) {
      families_.emplace_back();
      families_.back().name = name;
      families_.back().help = help;
      families_.back().type = type;
    }
    auto& metric = families_[found->second].metric.emplace_back();
    metric.label = labels;
    return metric;
  }

  std::vector<prometheus::MetricFamily>& families_;
  std::map<std::string, size_t> places_;
};

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

void add_queue(Families& families, const shard::QueueMetrics& queue, const Labels& labels,
               TimeNs now) {
  TimeNs oldest = 0;
  for (uint32_t level = 1; level <= queue::kLevels; ++level) {
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
  families.gauge("fairlead_fair_lag_tasks",
                 "Largest distance of a waiting key from its exact share, in tasks.", labels,
                 queue.lag_max);
  families.gauge("fairlead_active_keys", "Fairness keys that wait, run or are owed something.",
                 labels, static_cast<double>(queue.active_keys));
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

void ServerMetrics::collect_queues(std::vector<prometheus::MetricFamily>* collected) const {
  Families families(collected);
  const TimeNs now = clock_->now();
  for (const auto& queue : node_->queue_metrics(kQueuesMax, kKeysMax)) {
    const auto ns = node_->namespaces().find_by_num(queue.queue.ns.value());
    if (ns == nullptr) continue;
    add_queue(families, queue,
              {{"namespace", ns->name()},
               {"taskqueue", label_text(queue.queue.name)},
               {"task_type", type_name(queue.queue.kind)},
               {"partition", "0"}},
              now);
  }
}

}  // namespace fairlead::server
