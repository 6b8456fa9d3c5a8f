#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/executor.h"
#include "store/store.h"

namespace fairlead::shard {

// Makes writes durable, many at a time, and then tells whoever waits for it.
//
//   executors   write A   write B        write C   write D ...
//   this                  sync(A,B) ───► tell A, B; sync(C,D) ───► tell C, D
//
// While one sync runs the next group gathers, so the group grows with the load and an idle server
// syncs a single write at once.
class CommitLog {
 public:
  virtual ~CommitLog() = default;
  // Makes the batch visible to reads at once. A store that cannot write is the end of the process.
  virtual void write(const store::WriteBatch& batch) = 0;
  // Runs `effect` once everything written before this call is durable. It may run on another
  // thread, or before this returns if nothing is waiting to become durable.
  virtual void after_durable(Job effect) = 0;
};

// A thread that syncs. `failed` is told once, with what the store said; no effect runs after that.
class ThreadedCommitLog final : public CommitLog {
 public:
  using Failed = std::function<void(const absl::Status&)>;
  ThreadedCommitLog(store::Store* store, Failed failed);
  // Syncs what is left and tells everyone.
  ~ThreadedCommitLog() override;

  void write(const store::WriteBatch& batch) override;
  void after_durable(Job effect) override;

  struct Stats {
    std::atomic<uint64_t> writes{0};
    std::atomic<uint64_t> syncs{0};
    std::atomic<uint64_t> sync_ns{0};
  };
  const Stats& stats() const { return stats_; }

 private:
  void run();
  void fail(const absl::Status& status);

  store::Store* const store_;
  const Failed failed_;
  Stats stats_;
  // Writes that are visible, and those of them that are durable.
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> durable_{0};
  std::atomic<bool> has_failed_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job> effects_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace fairlead::shard
