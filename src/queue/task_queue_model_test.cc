// A whole queue beside a slow one that is written straight from its rules: every start of a random
// story is the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "queue/definition_testing.h"
#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

using Rules = model::QueueRules;

// Keeps one list of all tasks and looks through it for every question.
//
// Whenever the order is switched, an epoch ends. Tasks of the oldest epoch that has any go first;
// with `per_level` that is meant inside each level.
class SlowQueue {
 public:
  struct Task {
    uint32_t level;
    int key;
    float weight;
    size_t epoch;
  };
  struct Epoch {
    bool is_fair = true;
    bool per_level = false;
  };

  void add(uint64_t seq, uint32_t level, int key, float weight) {
    tasks_[seq] = {level, key, weight, epochs_.size() - 1};
    refresh(level, key);
  }
  void remove(uint64_t seq) {
    const Task task = tasks_.at(seq);
    tasks_.erase(seq);
    refresh(task.level, task.key);
    move_on();
  }
  std::optional<uint64_t> start() {
    for (uint32_t level = 1; level <= kLevels; ++level) {
      const auto key = next_key(level);
      if (!key.has_value()) continue;
      const uint64_t seq = *head(level, *key);
      tasks_.erase(seq);
      auto& members = levels_[level].members.members;
      if (is_fair(level)) {
        // It was charged by `next_key`; how does it go on?
        const auto now = head(level, *key);
        if (now.has_value() && takes_part(level, *key)) {
          members[*key].head = *now;
          levels_[level].members.reweigh(*key, weight_of(*key, tasks_.at(*now)));
        } else {
          levels_[level].active.erase(*key);
          levels_[level].members.rest(*key);
        }
      } else if (!takes_part(level, *key)) {
        levels_[level].active.erase(*key);
      }
      move_on();
      return seq;
    }
    return std::nullopt;
  }
  void set_weight(int key, float weight) {
    overrides_[key] = weight;
    refresh_key(key);
  }
  void set_paused(int key, bool is_paused) {
    is_paused ? paused_.insert(key), void() : (void)paused_.erase(key);
    refresh_key(key);
  }
  void switch_to(bool fair, Rules::Transition how) {
    if (epochs_.back().is_fair == fair) return;
    epochs_.push_back({fair, how == Rules::DRAIN_PER_LEVEL});
    if (how == Rules::IMMEDIATE) {
      for (auto& [seq, task] : tasks_) task.epoch = epochs_.size() - 1;
      for (uint32_t level = 1; level <= kLevels; ++level) begin(level, epochs_.size() - 1);
    }
    move_on();
  }
  std::vector<uint64_t> waiting() const {
    std::vector<uint64_t> all;
    for (const auto& [seq, task] : tasks_) all.push_back(seq);
    return all;
  }

 private:
  static constexpr uint32_t kLevels = 5;
  struct Level {
    size_t epoch = 0;
    Definition members;
    std::set<int> active;
  };

  bool is_fair(uint32_t level) { return epochs_[levels_[level].epoch].is_fair; }
  std::optional<uint64_t> head(uint32_t level, int key) const {
    for (const auto& [seq, task] : tasks_) {
      if (task.level == level && task.key == key) return seq;
    }
    return std::nullopt;
  }
  Weight weight_of(int key, const Task& task) const {
    const auto found = overrides_.find(key);
    return Weight::of(found == overrides_.end() ? task.weight : found->second);
  }
  bool takes_part(uint32_t level, int key) {
    const auto seq = head(level, key);
    return seq.has_value() && !paused_.contains(key) &&
           tasks_.at(*seq).epoch <= levels_[level].epoch;
  }
  void refresh(uint32_t level, int key) {
    auto& owner = levels_[level];
    const bool was_active = owner.active.contains(key);
    if (!takes_part(level, key)) {
      if (was_active && is_fair(level)) owner.members.rest(key);
      owner.active.erase(key);
      return;
    }
    owner.active.insert(key);
    if (!is_fair(level)) return;
    const uint64_t seq = *head(level, key);
    if (!was_active) {
      owner.members.activate(key, weight_of(key, tasks_.at(seq)), seq);
    } else {
      owner.members.settle();
      owner.members.members[key].head = seq;
      owner.members.reweigh(key, weight_of(key, tasks_.at(seq)));
    }
  }
  void refresh_key(int key) {
    for (uint32_t level = 1; level <= kLevels; ++level) refresh(level, key);
  }
  std::optional<int> next_key(uint32_t level) {
    auto& owner = levels_[level];
    if (owner.active.empty()) return std::nullopt;
    if (is_fair(level)) return owner.members.pick();
    return *std::min_element(owner.active.begin(), owner.active.end(),
                             [&](int a, int b) { return *head(level, a) < *head(level, b); });
  }
  bool has_tasks(size_t epoch, std::optional<uint32_t> level) const {
    return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& entry) {
      return entry.second.epoch == epoch && (!level.has_value() || entry.second.level == *level);
    });
  }
  // Brings each level to the oldest epoch that holds it up.
  void move_on() {
    for (uint32_t level = 1; level <= kLevels; ++level) {
      size_t at = levels_[level].epoch;
      while (at + 1 < epochs_.size()) {
        const auto whose = epochs_[at + 1].per_level ? std::optional(level) : std::nullopt;
        if (has_tasks(at, whose)) break;
        ++at;
      }
      if (at != levels_[level].epoch) begin(level, at);
    }
  }
  // Everybody comes anew, in the order in which they came.
  void begin(uint32_t level, size_t epoch) {
    levels_[level] = {epoch, {}, {}};
    std::vector<std::pair<uint64_t, int>> heads;
    for (int key = 0; key < 26; ++key) {
      if (const auto seq = head(level, key)) heads.push_back({*seq, key});
    }
    std::sort(heads.begin(), heads.end());
    for (const auto& [seq, key] : heads) refresh(level, key);
  }

  std::map<uint64_t, Task> tasks_;
  std::map<uint32_t, Level> levels_;
  std::vector<Epoch> epochs_{1};
  std::map<int, float> overrides_;
  std::set<int> paused_;
};

TEST(TaskQueueModel, EveryStartIsThatOfTheSlowQueue) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Settings settings;
    settings.tasks_in_memory_max = seed % 3 == 0 ? 4 : 1000;
    QueueBench bench(settings);
    SlowQueue slow;
    std::map<uint64_t, Place> places;
    const auto name = [](int key) { return std::string(1, static_cast<char>('a' + key)); };
    const auto keys = 1 + random.below(10);
    const auto start = [&] {
      const auto expected = slow.start();
      const auto started = bench.start();
      if (!started.has_value()) return !expected.has_value();
      places.erase(started->place.seq.value());
      return expected == started->place.seq.value();
    };
    for (int step = 0; step < 500; ++step) {
      const auto key = static_cast<int>(random.below(keys));
      const auto choice = random.below(40);
      const auto weight = static_cast<float>(1 + random.below(200)) / 10;
      if (choice < 16) {
        const auto level = static_cast<uint32_t>(1 + random.below(random.chance(0.5) ? 1 : 5));
        const Place place = bench.add(name(key), weight, level);
        places[place.seq.value()] = place;
        slow.add(place.seq.value(), level, key, weight);
      } else if (choice < 32) {
        ASSERT_TRUE(start()) << "seed " << seed << " step " << step;
      } else if (choice < 34) {
        const auto waiting = slow.waiting();
        if (waiting.empty()) continue;
        const uint64_t seq = waiting[random.below(waiting.size())];
        bench.remove(places.at(seq));
        places.erase(seq);
        slow.remove(seq);
      } else if (choice < 36) {
        bench.change_rules([&](Rules& rules) { (*rules.mutable_weights())[name(key)] = weight; });
        slow.set_weight(key, weight);
      } else if (choice < 39) {
        const bool is_paused = random.chance(0.3);
        bench.change_rules([&](Rules& rules) {
          is_paused ? (void)(*rules.mutable_keys())[name(key)].mutable_pause()
                    : (void)rules.mutable_keys()->erase(name(key));
        });
        slow.set_paused(key, is_paused);
      } else {
        const bool is_fair = random.chance(0.5);
        const auto how = static_cast<Rules::Transition>(Rules::DRAIN + random.below(3));
        bench.change_rules([&](Rules& rules) {
          rules.set_fairness(is_fair ? Rules::ON : Rules::OFF);
          rules.set_transition(how);
        });
        slow.switch_to(is_fair, how);
      }
      if (random.chance(0.02)) bench.reopen();
    }
    bench.change_rules([](Rules& rules) { rules.clear_keys(); });
    for (size_t key = 0; key < keys; ++key) slow.set_paused(static_cast<int>(key), false);
    while (!slow.waiting().empty()) ASSERT_TRUE(start()) << "seed " << seed << ", at the end";
    EXPECT_EQ(bench.queue->size(), 0);
  }
}

}  // namespace
}  // namespace fairlead::queue
