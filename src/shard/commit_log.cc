#include "shard/commit_log.h"

#include <pthread.h>

#include "base/time.h"

namespace fairlead::shard {

ThreadedCommitLog::ThreadedCommitLog(store::Store* store, Failed failed)
    : store_(store), failed_(std::move(failed)), thread_([this] { run(); }) {}

ThreadedCommitLog::~ThreadedCommitLog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ThreadedCommitLog::write(const store::WriteBatch& batch) {
  if (has_failed_) return;
  const auto status = store_->write(batch);
  ++stats_.writes;
  ++written_;
  if (!status.ok()) fail(status);
}

void ThreadedCommitLog::after_durable(Job effect) {
  if (has_failed_) return;
  if (durable_ == written_) {
    effect();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    effects_.push_back(std::move(effect));
    // With more than one waiting, the thread is awake already.
    if (effects_.size() > 1) return;
  }
  changed_.notify_one();
}

void ThreadedCommitLog::fail(const absl::Status& status) {
  if (!has_failed_.exchange(true)) failed_(status);
}

void ThreadedCommitLog::run() {
  pthread_setname_np(pthread_self(), "fl-commit");
  SystemClock clock;
  std::vector<Job> effects;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !effects_.empty(); });
      if (effects_.empty()) return;
      effects.swap(effects_);
    }
    // Counted after it was written, so the sync below covers every write up to here.
    const uint64_t target = written_;
    const TimeNs start = clock.now();
    const auto status = store_->sync();
    ++stats_.syncs;
    stats_.sync_ns += static_cast<uint64_t>(clock.now() - start);
    if (!status.ok()) {
      fail(status);
      return;
    }
    durable_ = target;
    for (auto& effect : effects) effect();
    effects.clear();
  }
}

}  // namespace fairlead::shard
