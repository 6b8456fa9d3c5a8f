#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "load/fair_share.h"

namespace fairlead::load {

// Keys that are alike: `keys` of them with `tasks` waiting tasks each.
struct KeyGroup {
  int64_t keys = 1;
  int64_t tasks = 1;
  double weight = 1;
  // 1 is the most urgent; 0 leaves it to the server, which takes the middle of five.
  int priority = 0;

  // Reads KEYSxTASKS[xWEIGHT[xPRIORITY]], as in 300x10 or 1x500x5. False when it is not that.
  static bool parse(const std::string& text, KeyGroup* group);
};

// What the order of dispatches of one queue says about its server.
//
// Shares are measured within each level. An inversion is a task that left while a more urgent one
// waited. A task overtakes when it leaves before one of its own key from an earlier batch; tasks of
// one batch were scheduled in one answer and have no order among themselves.
class OrderAudit {
 public:
  // The first batch. The groups' keys are numbered one after the other.
  explicit OrderAudit(const std::vector<KeyGroup>& groups);

  // A later batch: so many more tasks of every key.
  void arrive(int64_t tasks_per_key);
  // Weights of the keys 0, 1, … from the next dispatch on.
  void reweight(const std::vector<double>& weights);

  // Tasks are numbered as they arrived, key by key. False: it has left before.
  bool dispatch(int64_t task);

  int64_t arrived() const { return static_cast<int64_t>(tasks_.size()); }
  int key_of(int64_t task) const { return tasks_[static_cast<size_t>(task)].key; }
  int keys() const { return static_cast<int>(keys_.size()); }
  int priority(int key) const { return keys_[static_cast<size_t>(key)].priority; }
  double weight(int key) const { return keys_[static_cast<size_t>(key)].weight; }

  Distance distance() const;
  int64_t dispatched() const { return dispatched_; }
  int64_t dispatched(int key) const { return keys_[static_cast<size_t>(key)].dispatched; }
  int64_t inversions() const { return inversions_; }
  int64_t overtakes() const { return overtakes_; }

 private:
  struct Task {
    int key;
    int batch;
    bool is_gone = false;
  };
  struct Level {
    FairShare shares;
    int64_t waiting = 0;
  };

  struct Key {
    int priority;
    double weight;
    // How many of each batch wait.
    std::vector<int64_t> waiting;
    int64_t dispatched = 0;
  };

  Level& level_of(const Key& key);
  void add(int key, int64_t tasks);

  std::vector<Task> tasks_;
  std::vector<Key> keys_;
  std::map<int, Level> levels_;
  int batch_ = 0;
  int64_t dispatched_ = 0;
  int64_t inversions_ = 0;
  int64_t overtakes_ = 0;
};

}  // namespace fairlead::load
