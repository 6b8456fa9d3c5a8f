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
  ServerMetrics(const shard::Node* node, const shard::ThreadedCommitLog* commits)
      : node_(node), commits_(commits) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const shard::Node* const node_;
  const shard::ThreadedCommitLog* const commits_;
};

}  // namespace fairlead::server
