#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/strong.h"

namespace fairlead {

// Queues of the Durable Workflow door have another name inside, which workers of the other door
// cannot say. DO NOT CHANGE: rows are found by it.
inline constexpr std::string_view kDurableQueuePrefix = "/_sys/dw/";

// The name that people know a queue by. Queues of both doors may share one.
inline std::string_view shown_queue(std::string_view name) {
  return name.starts_with(kDurableQueuePrefix) ? name.substr(kDurableQueuePrefix.size()) : name;
}

// Which task queue is meant: a name means nothing without its namespace and the type of its tasks.
struct QueueName {
  NamespaceNum ns;
  uint8_t type = 0;
  std::string name;

  friend bool operator==(const QueueName&, const QueueName&) = default;

  template <typename H>
  friend H AbslHashValue(H state, const QueueName& queue) {
    return H::combine(std::move(state), queue.ns, queue.type, queue.name);
  }
};

}  // namespace fairlead
