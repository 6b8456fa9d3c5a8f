#pragma once

#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "base/strong.h"
#include "base/time.h"
#include "store/store.h"

namespace fairlead::shard {

// Durable time: which runs have to be looked at, and when.
//
// A run has at most one wake-up row, at or before the earliest thing that time will do to it; when
// it fires too early the run simply moves it. So the usual step, which only pushes deadlines
// further away, writes no timer at all.
//
//   rows on disk     t1 t2 t3 t4 t5 | t6 t7 t8 ...     by time
//   in memory        t1 t2 t3 t4 t5 |                  up to the horizon, a bounded number
class Wakeups {
 public:
  Wakeups(ShardId shard, const store::Store* store, size_t window_max = 4096)
      : shard_(shard), store_(store), window_max_(window_max) {}

  // Row changes go into the caller's batch; memory follows at once.
  void arm(TimeNs at, const std::string& run, store::WriteBatch* batch);
  void disarm(TimeNs at, const std::string& run, store::WriteBatch* batch);

  struct Due {
    TimeNs at = 0;
    std::string run;
  };
  // Runs whose time has come, earliest first, at most `count_max`. They stay armed until disarmed
  // or moved by the step that deals with them, but are given out once.
  std::vector<Due> take_due(TimeNs now, size_t count_max);
  // When to look again.
  TimeNs next() const;

 private:
  using Entry = std::pair<TimeNs, std::string>;
  void load(TimeNs now);

  const ShardId shard_;
  const store::Store* const store_;
  const size_t window_max_;
  absl::btree_set<Entry> window_;
  // Every row before this entry is in the window (or has been given out); none at or after it is.
  Entry horizon_{0, ""};
  TimeNs reload_at_ = 0;
};

}  // namespace fairlead::shard
