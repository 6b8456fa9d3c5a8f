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
  std::optional<Order> order;
  std::optional<uint32_t> levels;

  bool covers(std::string_view ns_name, const QueueName& name) const {
    return (ns.empty() || ns == ns_name) && (queue.empty() || queue == name.name) &&
           (!kind.has_value() || *kind == static_cast<model::TaskKind>(name.type));
  }
  int constraints() const {
    return static_cast<int>(!ns.empty()) + static_cast<int>(!queue.empty()) +
           static_cast<int>(kind.has_value());
  }
};

// Each setting is taken from the exception that says most about the queue; among equals the first.
inline void apply_exceptions(std::span<const Exception> exceptions, std::string_view ns,
                             const QueueName& name, Settings* settings) {
  const Exception* order = nullptr;
  const Exception* levels = nullptr;
  for (const auto& one : exceptions) {
    if (!one.covers(ns, name)) continue;
    const auto says_more_than = [&](const Exception* known) {
      return known == nullptr || one.constraints() > known->constraints();
    };
    if (one.order.has_value() && says_more_than(order)) order = &one;
    if (one.levels.has_value() && says_more_than(levels)) levels = &one;
  }
  if (order != nullptr) settings->order = *order->order;
  if (levels != nullptr) settings->levels = *levels->levels;
}

}  // namespace fairlead::queue
