#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/strong.h"

namespace fairlead {

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
