#include "shard/executor_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "base/assert.h"

namespace fairlead::shard {

namespace {
// A sleeping thread looks at the clock at least this often: the clock may be set.
constexpr DurationNs kLongestSleep = 10 * kSecond;
}  // namespace

ExecutorThread::ExecutorThread(Clock* clock) : clock_(clock), thread_([this] { run(); }) {}

ExecutorThread::~ExecutorThread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ExecutorThread::post(Job job) {
  ++waiting_;
  {
    std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(job));
    // With more than one waiting, the thread is awake already.
    if (inbox_.size() > 1) return;
  }
  changed_.notify_one();
}

void ExecutorThread::post_at(TimeNs at, Job job) {
  FL_ASSERT(is_current(), "only the executor's own jobs may set its clockwork");
  later_.emplace(at, std::move(job));
}

void ExecutorThread::run_due() {
  const TimeNs now = clock_->now();
  while (!later_.empty() && later_.begin()->first <= now) {
    Job job = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    job();
  }
}

void ExecutorThread::run() {
  pthread_setname_np(pthread_self(), "fl-shards");
  std::vector<Job> jobs;
  while (true) {
    run_due();
    {
      std::unique_lock lock(mutex_);
      if (inbox_.empty() && !stopping_) {
        const TimeNs next = later_.empty() ? kNever : later_.begin()->first;
        const DurationNs sleep = std::clamp<DurationNs>(next - clock_->now(), 0, kLongestSleep);
        changed_.wait_for(lock, std::chrono::nanoseconds(sleep),
                          [&] { return stopping_ || !inbox_.empty(); });
      }
      if (inbox_.empty() && stopping_) return;
      jobs.swap(inbox_);
    }
    for (auto& job : jobs) {
      job();
      --waiting_;
    }
    jobs.clear();
  }
}

}  // namespace fairlead::shard
