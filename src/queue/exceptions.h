#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/queue_name.h"
#include "queue/task_queue.h"

namespace fairlead::queue {

// A setting for some queues only.
struct Exception {
  // What it is for. Nothing said: for every one.
  std::string ns;
  std::string queue;
  std::optional<model::TaskKind> kind;
  // What it sets.
  Order order = Order::kFair;

  bool covers(std::string_view ns_name, const QueueName& name) const {
    return (ns.empty() || ns == ns_name) && (queue.empty() || queue == name.name) &&
           (!kind.has_value() || *kind == static_cast<model::TaskKind>(name.type));
  }
  int constraints() const {
    return static_cast<int>(!ns.empty()) + static_cast<int>(!queue.empty()) +
           static_cast<int>(kind.has_value());
  }
};

// The one that says most about a queue counts; among equals the first.
inline void apply_exceptions(std::span<const Exception> exceptions, std::string_view ns,
                             const QueueName& name, Settings* settings) {
  const Exception* best = nullptr;
  for (const auto& one : exceptions) {
    if (!one.covers(ns, name)) continue;
    if (best == nullptr || one.constraints() > best->constraints()) best = &one;
  }
  if (best != nullptr) settings->order = best->order;
}

}  // namespace fairlead::queue
