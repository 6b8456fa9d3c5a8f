#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/executor.h"

namespace fairlead::shard {

// An executor that is a thread. Destruction runs what was posted and ends it.
class ExecutorThread final : public Executor {
 public:
  explicit ExecutorThread(Clock* clock);
  ~ExecutorThread() override;

  void post(Job job) override;
  void post_at(TimeNs at, Job job) override;
  bool is_current() const override { return std::this_thread::get_id() == thread_.get_id(); }

  // Jobs posted and not yet run: what a server under too much load sees growing.
  size_t waiting() const { return waiting_; }

 private:
  void run();
  void run_due();

  Clock* const clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job> inbox_;
  std::atomic<size_t> waiting_{0};
  bool stopping_ = false;
  absl::btree_multimap<TimeNs, Job> later_;  // touched by the thread only
  std::thread thread_;
};

}  // namespace fairlead::shard
