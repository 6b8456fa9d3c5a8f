#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/strong.h"
#include "base/time.h"
#include "queue/priority.h"
#include "queue/task_type.h"

namespace fairlead::queue {

// Ramps are counted in hundredths of all workflows.
inline constexpr uint32_t kSlots = 100;

// Whom a task is for: the workers of one version, to which it is pinned, or whoever the queue's
// routing says at the moment when it goes out; and of these, those that take its type.
struct Stream {
  std::string version;  // empty: the default stream
  uint8_t slot = 0;     // of its workflow in a ramp, 1 to kSlots; 0: not known, the last to move
  TaskType type = {};
  bool is_pinned() const { return !version.empty(); }
  friend auto operator<=>(const Stream&, const Stream&) = default;
};

// What the queue keeps of a waiting task: enough to find the run that it belongs to.
struct Task {
  std::array<char, 16> run{};
  int64_t scheduled_id = 0;
  uint64_t stamp = 0;
  TimeNs created_ns = 0;
  float weight = 0;  // as its sender asked; 0: nothing said
  TaskType type;
  ShardId shard;
  uint8_t slot = 0;  // of a row that was just read; the place has it otherwise
  bool is_pinned = false;
};

// Where a task stands: its line (level, fairness key and version) and its number; also the tail of
// its row's key, in which slot and type have no part. Numbers are given out once and never again.
struct Place {
  uint32_t level = kDefaultLevel;
  std::string key;
  TaskSeq seq;
  Stream stream = {};
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
  // Up to `max` tasks of a line in order, the first of them at or after `from`. No version: the
  // line of the default stream.
  virtual std::vector<Numbered> read(const std::string& version, uint32_t level,
                                     const std::string& key, TaskSeq from, size_t max) = 0;
};

}  // namespace fairlead::queue
