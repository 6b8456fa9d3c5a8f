#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "gtest/gtest.h"
#include "history/history_testing.h"
#include "shard/node.h"

namespace fairlead::shard {

// A thread and a clock that move when they are told to.
class HandCranked final : public Executor, public Clock {
 public:
  void post(Job job) override { jobs_.push_back(std::move(job)); }
  void post_at(TimeNs at, Job job) override { timers_.emplace(at, std::move(job)); }
  bool is_current() const override { return is_running_; }
  TimeNs now() override { return now_; }

  void run() {
    while (!jobs_.empty()) {
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      is_running_ = true;
      job();
      is_running_ = false;
    }
  }
  void run_for(DurationNs length) {
    const TimeNs end = now_ + length;
    run();
    while (!timers_.empty() && timers_.begin()->first <= end) {
      now_ = std::max(now_, timers_.begin()->first);
      jobs_.push_back(std::move(timers_.begin()->second));
      timers_.erase(timers_.begin());
      run();
    }
    now_ = end;
  }

 private:
  TimeNs now_ = 1000 * kDay;
  bool is_running_ = false;
  std::deque<Job> jobs_;
  std::multimap<TimeNs, Job> timers_;
};

// A disk without delay.
class DirectCommits final : public CommitLog {
 public:
  explicit DirectCommits(store::Store* store) : store_(*store) {}
  void write(const store::WriteBatch& batch) override { ASSERT_TRUE(store_.write(batch).ok()); }
  void after_durable(Job effect) override { effect(); }

 private:
  store::Store& store_;
};

// A server from its start to its end on a store that stays.
struct Life {
  explicit Life(store::Store* store) : commits(store) {
    Node::Parts parts;
    parts.store = store;
    parts.commits = &commits;
    parts.clock = &thread;
    parts.codec = &codec;
    parts.executors = {&thread};
    NodeOptions options;
    options.shards = 2;
    node = std::make_unique<Node>(options, parts, Random(7));
    EXPECT_TRUE(node->open().ok());
    thread.run();
  }

  HandCranked thread;
  DirectCommits commits;
  history::PlainCodec codec;
  std::unique_ptr<Node> node;
};

}  // namespace fairlead::shard
