#pragma once

#include <utility>

#include "absl/container/btree_map.h"
#include "base/executor.h"
#include "base/time.h"

namespace fairlead::shard {

// Deadlines of things that live in memory only: parked polls, waiting readers, queries. Setting and
// cancelling are cheap, so a poll that is answered leaves nothing behind.
class Alarms {
 public:
  using Handle = std::pair<TimeNs, uint64_t>;

  Handle set(TimeNs at, Job job) {
    const Handle handle{at, ++last_};
    jobs_.emplace(handle, std::move(job));
    return handle;
  }
  void cancel(const Handle& handle) { jobs_.erase(handle); }

  TimeNs next() const { return jobs_.empty() ? kNever : jobs_.begin()->first.first; }

  void run_due(TimeNs now) {
    while (!jobs_.empty() && jobs_.begin()->first.first <= now) {
      Job job = std::move(jobs_.begin()->second);
      jobs_.erase(jobs_.begin());
      job();
    }
  }

 private:
  absl::btree_map<Handle, Job> jobs_;
  uint64_t last_ = 0;
};

}  // namespace fairlead::shard
