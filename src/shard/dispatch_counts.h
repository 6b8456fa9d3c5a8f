#pragma once

#include <cstdint>

#include "absl/container/btree_map.h"
#include "shard/queue_requests.h"

namespace fairlead::shard {

// How tasks of a queue got to workers since it was loaded, and how many did not.
struct DispatchCounts {
  // From a task's birth to its start, by level: of those that went at once, and of those that
  // waited.
  absl::btree_map<uint32_t, WaitHistogram> fresh;
  absl::btree_map<uint32_t, WaitHistogram> waited;
  uint64_t expired = 0;  // nobody took them within their schedule-to-start timeout
};

// All that is measured of a queue.
struct MeasuredQueue {
  QueueMetrics figures;
  DispatchCounts dispatches;
};

}  // namespace fairlead::shard
