#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "queue/priority.h"

// What operators may know of a queue at a moment.
namespace fairlead::queue {

// What holds a key back, as bits.
enum Hold : uint8_t {
  kPaused = 1,
  kCapped = 2,     // as many running as it may have
  kThrottled = 4,  // the limit of all keys
  kTimed = 8,      // a limit of its own
  kDrained = 16,   // its next task came after a drain began
};

// What is known of a key at a moment.
struct KeyView {
  std::string key;
  int64_t waiting = 0;
  std::vector<int64_t> waiting_by_level;  // from level 1
  TimeNs oldest_ns = 0;                   // 0: nothing waits
  uint64_t dispatched = 0;
  uint32_t running = 0;
  uint32_t recent = 0;  // of the last dispatches of the queue
  double weight = 1;
  bool is_weight_overridden = false;
  double ideal_share = 0;  // of its most urgent level, among those who wait there; 0: takes no part
  double lag = 0;          // in tasks, of its most urgent line
  uint8_t holds = 0;
  TimeNs throttled_until = 0;
  // Not empty: tasks of it wait in this line, with those of other keys. `waiting` counts its own.
  std::string shared_line;
};

// Why a waiting task has not been handed out.
struct Standing {
  std::string version;  // of the workers that may take it; empty: those without one
  int64_t tasks_before_in_line = 0;
  size_t keys_before = 0;              // that are served before this key's next task
  bool is_behind_older_order = false;  // the queue's order changed; what came before goes first
  uint8_t holds = 0;
  bool is_queue_paused = false;
  bool is_queue_capped = false;
  TimeNs queue_ready_ns = 0;  // later than now: the queue's limit
  TimeNs key_ready_ns = 0;    // later than now: the key's limit
};

// Who may take tasks: workers of a version, or those without one; of all types.
struct TargetView {
  std::string version;
  int64_t waiting = 0;
  std::vector<int64_t> waiting_by_level;  // from level 1
  TimeNs oldest_ns = 0;                   // to the second; 0: nothing waits
  uint32_t percent = 0;                   // of the default stream that goes there
};

struct LevelView {
  int64_t waiting = 0;
  TimeNs oldest_ns = 0;
  double added_per_second = 0;
  double dispatched_per_second = 0;
};

}  // namespace fairlead::queue
