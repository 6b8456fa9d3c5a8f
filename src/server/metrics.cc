#include "server/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <string>

namespace fairlead::server {

namespace {

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
  collect_queues(&families);
  return families;
}

}  // namespace fairlead::server
