#pragma once

#include <prometheus/collectable.h>

#include <functional>
#include <string>
#include <vector>

#include "api/temporal/refusals.h"
#include "shard/commit_log.h"
#include "shard/node.h"

namespace fairlead::server {

// A namespace's name, or nothing if it is gone.
using NamespaceNames = std::function<std::string(NamespaceNum)>;

// Adds what is told of task queues.
void add_queue_families(const std::vector<shard::MeasuredQueue>& queues,
                        const NamespaceNames& names, TimeNs now,
                        std::vector<prometheus::MetricFamily>* families);
// Adds what is told of calls that were turned away.
void add_refusal_families(const api::RefusalCounts& refusals,
                          std::vector<prometheus::MetricFamily>* families);

// What the server counts, read off its parts whenever someone asks. Nothing is kept twice, and a
// server that nobody watches pays nothing. Its parts must outlive it.
class ServerMetrics final : public prometheus::Collectable {
 public:
  ServerMetrics(shard::Node* node, const shard::ThreadedCommitLog* commits,
                const api::RefusalCounts* refusals, Clock* clock)
      : node_(node), commits_(commits), refusals_(refusals), clock_(clock) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  shard::Node* const node_;
  const shard::ThreadedCommitLog* const commits_;
  const api::RefusalCounts* const refusals_;
  Clock* const clock_;
};

}  // namespace fairlead::server
