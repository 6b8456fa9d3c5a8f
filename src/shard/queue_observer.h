#pragma once

#include <cstdint>
#include <string>

#include "base/queue_name.h"
#include "queue/task.h"

namespace fairlead::shard {

// Hears what the queues decide, in the order in which each decides it and before anybody else knows
// of it. What is written follows, and may follow in another order: whoever holds the written order
// against what was promised needs both. Nothing depends on it, and a server has none.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;

  // The queue knows of a task whose row is written, or no longer of one whose row is gone.
  virtual void waits(const QueueName& queue, const queue::Place& place) = 0;
  virtual void removed(const QueueName& queue, const queue::Place& place) = 0;
  // It is this task's turn. It starts, or turns out to be stale and is removed.
  virtual void picked(const QueueName& queue, bool is_sticky, const queue::Place& place) = 0;
  // A task goes out past the order, and its key pays. With `is_in_turn` the queue has made sure
  // that nothing which waits has a better claim; else it went out on a worker's own queue.
  struct Passing {
    uint32_t level = 0;
    std::string key;
    float weight = 0;
    queue::Stream stream;
  };
  virtual void passed(const QueueName& normal, const Passing& task, bool is_in_turn) = 0;
};

}  // namespace fairlead::shard
