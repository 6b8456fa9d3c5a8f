#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/strong.h"
#include "base/time.h"
#include "queue/priority.h"

namespace fairlead::queue {

// What the queue keeps of a waiting task: enough to find the run that it belongs to.
struct Task {
  std::array<char, 16> run{};
  int64_t scheduled_id = 0;
  uint64_t stamp = 0;
  TimeNs created_ns = 0;
  float weight = 0;  // as its sender asked; 0: nothing said
  ShardId shard;
};

// Where a task stands: its line (level and fairness key) and its number; also the tail of its row's
// key. Numbers are given out once and never again.
struct Place {
  uint32_t level = kDefaultLevel;
  std::string key;
  TaskSeq seq;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Waiting {
  Place place;
  Task task;
  int64_t backlog = 0;  // of the whole queue, when it was picked
};

struct Numbered {
  TaskSeq seq;
  Task task;
};

// The rows of a queue's waiting tasks, which somebody else keeps.
class Backlog {
 public:
  virtual ~Backlog() = default;
  // Up to `max` tasks of a line in order, the first of them at or after `from`.
  virtual std::vector<Numbered> read(uint32_t level, const std::string& key, TaskSeq from,
                                     size_t max) = 0;
};

}  // namespace fairlead::queue
