#include "server/metrics.h"

#include <string>

#include "server/metric_families.h"

namespace fairlead::server {

namespace {

constexpr size_t kQueuesMax = 1000;
constexpr size_t kKeysMax = 10;

prometheus::MetricFamily family(const std::string& name, const std::string& help, double value,
                                prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  prometheus::ClientMetric metric;
  if (type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(metric);
  return family;
}

}  // namespace

std::vector<prometheus::MetricFamily> ServerMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  const auto counter = [&](const std::string& name, const std::string& help, double value) {
    families.push_back(family(name, help, value, prometheus::MetricType::Counter));
  };
  const auto sum = [&](std::atomic<uint64_t> shard::ShardStats::*field) {
    double total = 0;
    for (const auto& shard : node_->shards()) {
      total += static_cast<double>((shard->stats().*field).load());
    }
    return total;
  };
  using Stats = shard::ShardStats;
  counter("fairlead_runs_started_total", "Workflow runs started.", sum(&Stats::runs_started));
  counter("fairlead_runs_closed_total", "Workflow runs closed.", sum(&Stats::runs_closed));
  counter("fairlead_runs_deleted_total", "Workflow runs removed after their retention.",
          sum(&Stats::runs_deleted));
  counter("fairlead_steps_total", "Steps carried out, each one write batch.", sum(&Stats::steps));
  counter("fairlead_workflow_tasks_started_total", "Workflow tasks handed to workers.",
          sum(&Stats::workflow_tasks_started));
  counter("fairlead_activity_tasks_started_total", "Activity attempts handed to workers.",
          sum(&Stats::activity_tasks_started));
  counter("fairlead_tasks_matched_at_once_total",
          "Tasks that a waiting worker took in the step that made them.",
          sum(&Stats::tasks_matched_at_once));
  counter("fairlead_stale_tasks_total", "Waiting tasks that nobody wanted any more.",
          sum(&Stats::stale_tasks));
  const auto schedules = [&](std::atomic<uint64_t> shard::ScheduleStats::*field) {
    double total = 0;
    for (const auto& shard : node_->shards()) {
      total += static_cast<double>((shard->schedules().stats().*field).load());
    }
    return total;
  };
  counter("fairlead_schedule_fires_total", "Runs that schedules have started.",
          schedules(&shard::ScheduleStats::fires));
  counter("fairlead_schedule_skips_total", "Times of schedules at which nothing was started.",
          schedules(&shard::ScheduleStats::skips));
  const auto& commits = commits_->stats();
  counter("fairlead_store_writes_total", "Write batches.", static_cast<double>(commits.writes));
  counter("fairlead_store_syncs_total", "Syncs of the log, each for a group of batches.",
          static_cast<double>(commits.syncs));
  counter("fairlead_store_sync_seconds_total", "Time spent in those syncs.",
          static_cast<double>(commits.sync_ns) * 1e-9);
  families.push_back(family("fairlead_polls_parked", "Polls that wait for a task.",
                            sum(&Stats::polls_parked), prometheus::MetricType::Gauge));
  families.push_back(family("fairlead_requests_in_flight", "Requests that wait for their answer.",
                            static_cast<double>(node_->requests()), prometheus::MetricType::Gauge));
  add_refusal_families(*refusals_, &families);
  const auto names = [this](NamespaceNum num) {
    const auto ns = node_->namespaces().find_by_num(num.value());
    return ns == nullptr ? std::string() : ns->name();
  };
  add_queue_families(node_->queue_metrics(kQueuesMax, kKeysMax), names, clock_->now(), &families);
  return families;
}

void add_refusal_families(const api::RefusalCounts& refusals,
                          std::vector<prometheus::MetricFamily>* collected) {
  Families families(collected);
  for (const auto& entry : refusals.list()) {
    families.counter("service_errors_resource_exhausted",
                     "Calls that were answered RESOURCE_EXHAUSTED.",
                     {{"operation", entry.operation},
                      {"resource_exhausted_cause", entry.cause},
                      {"resource_exhausted_scope", entry.scope}},
                     static_cast<double>(entry.count));
  }
}

}  // namespace fairlead::server
