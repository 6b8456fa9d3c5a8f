#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "shard/dispatch_counts.h"

namespace fairlead::server {

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

}  // namespace fairlead::server
