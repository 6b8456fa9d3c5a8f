#pragma once

#include <prometheus/collectable.h>

#include <memory>
#include <vector>

#include "shard/commit_log.h"
#include "shard/node.h"

namespace fairlead::server {

// What the server counts, read off its parts whenever someone asks. Nothing is kept twice, and a
// server that nobody watches pays nothing. `node` and `commits` must outlive it.
class ServerMetrics final : public prometheus::Collectable {
 public:
  ServerMetrics(shard::Node* node, const shard::ThreadedCommitLog* commits, Clock* clock)
      : node_(node), commits_(commits), clock_(clock) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  void collect_queues(std::vector<prometheus::MetricFamily>* families) const;

  shard::Node* const node_;
  const shard::ThreadedCommitLog* const commits_;
  Clock* const clock_;
};

}  // namespace fairlead::server
