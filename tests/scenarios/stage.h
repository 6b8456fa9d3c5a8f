#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "queue/ideal.h"
#include "queue/queue_testing.h"
#include "scenarios/language.h"

namespace fairlead::scenarios {

// How many of each key.
using Tally = std::map<std::string, int64_t>;

// A queue of its own with rows, workers and a clock, which only scenarios move.
class Stage {
 public:
  // `restarts_always`: the server dies after every single start; nothing may be different.
  explicit Stage(bool restarts_always) : restarts_always_(restarts_always) {}

  // Tasks come and go. No weight: as their sender says nothing; priority 0: the same.
  void arrive(const std::string& key, double weight, int32_t priority, int64_t tasks);
  void cancel(const std::string& key, int64_t tasks);
  void finish(const std::string& key, int64_t tasks);

  // Changes the queue's rules, as an operator would.
  template <typename Change>
  void change(Change change) {
    bench_.change_rules(change);
    look_at_all_keys();
  }
  void set_worker_limit(double per_second);
  void set_workers(int64_t workers) { workers_ = workers; }
  void set_task_time(DurationNs time) { task_time_ = time; }

  // One start at this moment; the key, or nothing if nothing may go.
  std::optional<std::string> start();
  // A worker asked, and its answer got lost before it was written.
  void fail_start();
  void restart();
  // Time passes: without starts, or with workers that take whatever may go.
  void wait(DurationNs duration);
  Tally run(DurationNs duration);

  int64_t waiting() const { return bench_.queue->size(); }
  int64_t waiting(const std::string& key) const;
  int64_t running() const { return bench_.queue->running(); }
  int64_t running_max(const std::string& key) const;
  // The largest distance from its ideal share that any key ever had, and which key that was.
  std::pair<double, std::string> distance_max() const { return distance_max_; }
  // More starts in some window than rate * (seconds + 1) + 1. No key: of the whole queue.
  bool exceeded(const std::optional<std::string>& key, double per_second) const;

 private:
  struct Started {
    TimeNs at;
    std::string key;
  };
  using IdealKey = std::pair<uint32_t, std::string>;  // level, key

  void end_tasks();
  void restart_if_always();
  queue::Ideal::Key ideal_key(uint32_t level, const std::string& key, double weight);
  void look_at(uint32_t level, const std::string& key);
  void look_at_held_keys();
  void look_at_all_keys();
  double weight_of(const std::string& key, double asked) const;
  void measure(const std::string& key, double lag);

  const bool restarts_always_;
  queue::QueueBench bench_;
  std::vector<Started> started_;
  std::multimap<TimeNs, std::string> ends_;  // of the tasks that run, if they end by themselves
  Tally running_;
  Tally running_max_;
  std::optional<DurationNs> task_time_;
  std::optional<int64_t> workers_;
  std::optional<double> worker_limit_;
  std::map<uint32_t, queue::Ideal> ideals_;
  std::map<IdealKey, queue::Ideal::Key> ideal_keys_;
  std::set<IdealKey> held_;
  std::map<IdealKey, double> asked_;  // weights, as the senders of the tasks said
  std::pair<double, std::string> distance_max_{0, ""};
};

}  // namespace fairlead::scenarios
