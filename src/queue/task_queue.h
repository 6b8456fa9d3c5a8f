#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
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
  ShardId shard;
};

// A task's place in its queue's order; also the tail of its row's key.
struct Place {
  uint32_t level = kDefaultLevel;
  TaskSeq seq;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Waiting {
  Place place;
  Task task;
};

// The waiting tasks of one queue, in the order in which they will be handed out.
//
//   level 1   [seq 4][seq 9]                          heads in memory, the rest in rows
//   level 2   empty
//   level 3   [seq 1][seq 2] … [seq 1024] | 1025 …    `|`: everything beyond is only on disk
//
// A pick is a proposal: the task stays counted until its owner says that the start was committed
// (`started`), that nobody wants the task any more (`remove`) or that it goes back (`put_back`).
// Places are never reused, and a task put back is where it was.
class TaskQueue {
 public:
  // `next_seq` is beyond every row that the queue has on disk.
  explicit TaskQueue(TaskSeq next_seq, size_t window_tasks_max = 1024)
      : next_seq_(next_seq), window_tasks_max_(window_tasks_max) {}

  // Gives out the next place of a level, for the row that is about to be written there.
  Place reserve(uint32_t level);
  // The row at a reserved place is written: the task waits from now on.
  void add(Place place, const Task& task);

  // The next task for a worker; none if all that waits is on disk (see `page_needed`) or nothing
  // does.
  std::optional<Waiting> pick();
  // The level that `pick` would take from; kLevels + 1 if nothing waits.
  uint32_t next_level() const;

  void started(Place place);
  void put_back(const Waiting& waiting);
  // Takes the task out wherever it is: waiting, picked, or only on disk.
  void remove(Place place);

  // A level whose next tasks are on disk, and after which place they begin.
  std::optional<Place> page_needed() const;
  // The next rows of that level, in order. Fewer than asked for means that there are no more.
  void add_page(uint32_t level, const std::vector<Waiting>& rows, bool is_last);
  // Says at load time that a level has rows on disk.
  void set_on_disk(uint32_t level, int64_t tasks);

  int64_t size() const;
  // Waiting and not picked.
  bool has_waiting(uint32_t most_urgent_to) const { return next_level() <= most_urgent_to; }
  bool is_idle() const { return size() == 0 && picked_.empty() && reserved_.empty(); }

 private:
  struct Level {
    absl::btree_map<TaskSeq, Task> window;
    TaskSeq loaded_to;    // every waiting task up to here is in the window
    int64_t on_disk = 0;  // waiting tasks beyond it
  };

  Level& level(uint32_t number) { return levels_[number - 1]; }

  std::array<Level, kLevels> levels_;
  absl::btree_map<Place, Task> picked_;
  absl::btree_set<TaskSeq> reserved_;  // places given out whose rows are still being written
  TaskSeq next_seq_;
  size_t window_tasks_max_;
};

}  // namespace fairlead::queue
