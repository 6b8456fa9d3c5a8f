// A queue whose tasks are for workers of versions, beside a slow one that is written straight from
// the rules: every start of a random story is the same.

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

// Keeps one list of all tasks and looks through it for every question. A target sees, of each key,
// the tasks that a poll of it could be given now. It is the workers of a version, and of these the
// ones that are told apart by the types that they take.
//
// Whenever the order is switched, an epoch ends. In each target tasks of the oldest epoch that has
// any go first; with `per_level` that is meant inside each level.
class SlowQueue {
 public:
  static constexpr uint32_t kLevels = 5;

  struct Task {
    uint32_t level;
    int key;
    float weight;
    Stream stream;
    size_t epoch;
  };
  struct Routing {
    std::string current;
    std::string ramping;
    uint32_t percent = 0;
  };

  using Target = std::pair<std::string, uint32_t>;  // version, and lists that refuse the type

  std::string version_of(const Task& task) const {
    if (task.stream.is_pinned()) return task.stream.version;
    const uint32_t slot = task.stream.slot == 0 ? 100 : task.stream.slot;
    return slot <= routing_.percent ? routing_.ramping : routing_.current;
  }
  Target target_of(const Task& task) const {
    uint32_t group = 0;
    for (const auto& [slot, list] : lists_) {
      if (task.stream.type != TaskType() && !list.contains(task.stream.type)) group |= 1U << slot;
    }
    return {version_of(task), group};
  }

  void add(uint64_t seq, uint32_t level, int key, float weight, const Stream& stream) {
    tasks_[seq] = {level, key, weight, stream, epochs_.size() - 1};
    refresh(lane(tasks_[seq]), key);
  }
  void remove(uint64_t seq) {
    const Task task = tasks_.at(seq);
    const auto where = lane(task);
    tasks_.erase(seq);
    refresh(where, task.key);
    move_on();
  }
  std::optional<uint64_t> start(const Target& target) {
    for (uint32_t level = 1; level <= kLevels; ++level) {
      const LaneName where{level, target};
      const auto key = next_key(where);
      if (!key.has_value()) continue;
      const uint64_t seq = *head(where, *key);
      tasks_.erase(seq);
      if (is_fair(where)) {
        // It was charged by `next_key`; how does it go on?
        const auto now = head(where, *key);
        if (now.has_value() && takes_part(where, *key)) {
          lanes_[where].members.members[*key].head = *now;
          lanes_[where].members.reweigh(*key, weight_of(*key, tasks_.at(*now)));
        } else {
          lanes_[where].active.erase(*key);
          lanes_[where].members.rest(*key);
        }
      } else if (!takes_part(where, *key)) {
        lanes_[where].active.erase(*key);
      }
      move_on();
      return seq;
    }
    return std::nullopt;
  }
  // Those that lose everything go first; then everyone comes, or goes on, by what is first in line.
  void route(const Routing& routing) {
    routing_ = routing;
    move_all();
  }
  void set_list(uint32_t slot, const std::optional<TypeList>& list) {
    lists_.erase(slot);
    if (list.has_value()) lists_.emplace(slot, *list);
    move_all();
  }
  void move_all() {
    std::set<Target> targets{{"", 0}};
    for (const auto& [where, lane] : lanes_) targets.insert(where.second);
    for (const auto& [seq, task] : tasks_) targets.insert(target_of(task));
    for (uint32_t level = 1; level <= kLevels; ++level) {
      for (const auto& target : targets) refresh_all({level, target});
    }
    move_on();
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
      for (const auto& where : all_lanes()) begin(where, epochs_.size() - 1);
    }
    move_on();
  }
  std::vector<uint64_t> waiting() const {
    std::vector<uint64_t> all;
    for (const auto& [seq, task] : tasks_) all.push_back(seq);
    return all;
  }
  int64_t waiting_for(const std::string& version) const {
    return std::count_if(tasks_.begin(), tasks_.end(),
                         [&](const auto& entry) { return version_of(entry.second) == version; });
  }
  std::vector<Target> targets() const {
    std::set<Target> targets{{"", 0}};
    for (const auto& [seq, task] : tasks_) targets.insert(target_of(task));
    return {targets.begin(), targets.end()};
  }

 private:
  using LaneName = std::pair<uint32_t, Target>;
  struct Epoch {
    bool is_fair = true;
    bool per_level = false;
  };
  struct Lane {
    size_t epoch = 0;
    Definition members;
    std::set<int> active;
  };

  LaneName lane(const Task& task) const { return {task.level, target_of(task)}; }
  Lane& at(const LaneName& where) {
    const auto [found, is_new] = lanes_.try_emplace(where);
    if (is_new) found->second.epoch = first_epoch(where);
    return found->second;
  }
  std::vector<LaneName> all_lanes() {
    for (const auto& [seq, task] : tasks_) at(lane(task));
    std::vector<LaneName> names;
    for (const auto& [where, lane] : lanes_) names.push_back(where);
    return names;
  }
  bool is_fair(const LaneName& where) { return epochs_[at(where).epoch].is_fair; }
  std::optional<uint64_t> head(const LaneName& where, int key) const {
    for (const auto& [seq, task] : tasks_) {
      if (task.key == key && lane(task) == where) return seq;
    }
    return std::nullopt;
  }
  Weight weight_of(int key, const Task& task) const {
    const auto found = overrides_.find(key);
    return Weight::of(found == overrides_.end() ? task.weight : found->second);
  }
  bool takes_part(const LaneName& where, int key) {
    const auto seq = head(where, key);
    return seq.has_value() && !paused_.contains(key) && tasks_.at(*seq).epoch <= at(where).epoch;
  }
  void refresh(const LaneName& where, int key) {
    auto& owner = at(where);
    const bool was_active = owner.active.contains(key);
    if (!takes_part(where, key)) {
      if (was_active && is_fair(where)) owner.members.rest(key);
      owner.active.erase(key);
      return;
    }
    owner.active.insert(key);
    if (!is_fair(where)) return;
    const uint64_t seq = *head(where, key);
    if (!was_active) {
      owner.members.activate(key, weight_of(key, tasks_.at(seq)), seq);
    } else {
      owner.members.settle();
      owner.members.members[key].head = seq;
      owner.members.reweigh(key, weight_of(key, tasks_.at(seq)));
    }
  }
  void refresh_key(int key) {
    for (const auto& where : all_lanes()) refresh(where, key);
  }
  void refresh_all(const LaneName& where) {
    std::vector<std::pair<uint64_t, int>> heads;
    for (int key = 0; key < 26; ++key) heads.push_back({head(where, key).value_or(0), key});
    std::sort(heads.begin(), heads.end());
    for (const auto& [seq, key] : heads) refresh(where, key);
  }
  std::optional<int> next_key(const LaneName& where) {
    auto& owner = at(where);
    if (owner.active.empty()) return std::nullopt;
    if (is_fair(where)) return owner.members.pick();
    return *std::min_element(owner.active.begin(), owner.active.end(),
                             [&](int a, int b) { return *head(where, a) < *head(where, b); });
  }
  bool has_tasks(size_t epoch, const LaneName& where, bool in_level) const {
    return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& entry) {
      return entry.second.epoch == epoch && target_of(entry.second) == where.second &&
             (!in_level || entry.second.level == where.first);
    });
  }
  size_t first_epoch(const LaneName& where) const {
    size_t epoch = 0;
    while (epoch + 1 < epochs_.size() && !has_tasks(epoch, where, epochs_[epoch + 1].per_level)) {
      ++epoch;
    }
    return epoch;
  }
  // Brings each lane to the oldest epoch that holds it up. What comes from elsewhere may bring it
  // back to one that it had behind it.
  void move_on() {
    for (const auto& where : all_lanes()) {
      const size_t epoch = first_epoch(where);
      if (epoch != at(where).epoch) begin(where, epoch);
    }
  }
  // Everybody comes anew, in the order in which they came.
  void begin(const LaneName& where, size_t epoch) {
    lanes_[where] = {epoch, {}, {}};
    refresh_all(where);
  }

  std::map<uint64_t, Task> tasks_;
  std::map<LaneName, Lane> lanes_;
  std::vector<Epoch> epochs_{1};
  std::map<int, float> overrides_;
  std::set<int> paused_;
  Routing routing_;
  std::map<uint32_t, TypeList> lists_;
};

std::string name_of(int key) { return std::string(1, static_cast<char>('a' + key)); }

const std::vector<std::string> kVersions{"", "v1", "v2", "v3"};

struct Mix {
  bool has_orders = false;
  bool has_ramps = true;
  bool has_types = false;
};

// What a story may do, to the real queue and the slow one alike.
class Story {
 public:
  Story(uint64_t seed, Mix mix) : random_(seed), mix_(mix), keys_(1 + random_.below(10)) {
    settings_.tasks_in_memory_max = seed % 3 == 0 ? 4 : 1000;
    bench_ = std::make_unique<QueueBench>(settings_);
  }

  // False: the two went different ways.
  bool step() {
    const auto key = static_cast<int>(random_.below(keys_));
    const auto weight = static_cast<float>(1 + random_.below(200)) / 10;
    const auto choice = random_.below(42);
    if (choice < 17) {
      add(key, weight);
    } else if (choice < 33) {
      return start(some_target());
    } else if (choice < 35) {
      remove();
    } else if (choice < 37) {
      bench_->change_rules(
          [&](Rules& rules) { (*rules.mutable_weights())[name_of(key)] = weight; });
      slow_.set_weight(key, weight);
    } else if (choice < 39) {
      pause(key, random_.chance(0.3));
    } else if (mix_.has_types && random_.chance(0.6)) {
      set_list();
    } else if (choice < 41 || !mix_.has_orders) {
      route();
    } else {
      switch_order();
    }
    return true;
  }
  bool start(const SlowQueue::Target& target) {
    const auto expected = slow_.start(target);
    const auto started = bench_->start(target.first, target.second);
    if (!started.has_value()) return !expected.has_value();
    const auto& stream = started->place.stream;
    const bool is_same = expected == started->place.seq.value() &&
                         places_.at(*expected).stream.version == stream.version &&
                         places_.at(*expected).stream.type == stream.type;
    places_.erase(started->place.seq.value());
    return is_same;
  }
  void reopen() { bench_->reopen(); }
  bool counts_agree() const {
    int64_t total = 0;
    for (const auto& version : kVersions) {
      int64_t counted = 0;
      for (const auto& view : bench_->queue->target_views()) {
        if (view.version == version) counted = view.waiting;
      }
      if (counted != slow_.waiting_for(version)) return false;
      total += counted;
    }
    return total == bench_->queue->size();
  }
  bool drain() {
    bench_->change_rules([](Rules& rules) { rules.clear_keys(); });
    for (int key = 0; key < 26; ++key) slow_.set_paused(key, false);
    while (!slow_.waiting().empty()) {
      if (!start(some_target())) return false;
    }
    return bench_->queue->size() == 0;
  }
  QueueBench& bench() { return *bench_; }
  Random& random() { return random_; }

 private:
  std::string some_version() { return kVersions[random_.below(kVersions.size())]; }
  SlowQueue::Target some_target() {
    if (!mix_.has_types) return {some_version(), 0};
    const auto targets = slow_.targets();
    return targets[random_.below(targets.size())];
  }
  static TaskType type_of(uint64_t number) { return task_type("t" + std::to_string(number)); }
  void set_list() {
    std::optional<TypeList> list;
    if (random_.chance(0.7)) {
      std::vector<TaskType> types;
      for (uint64_t type = 0; type < kTypes; ++type) {
        if (random_.chance(0.6)) types.push_back(type_of(type));
      }
      list.emplace(std::move(types));
    }
    const auto slot = static_cast<uint32_t>(random_.below(3));
    bench_->set_type_list(slot, list);
    slow_.set_list(slot, list);
  }
  void add(int key, float weight) {
    const auto level = static_cast<uint32_t>(1 + random_.below(random_.chance(0.5) ? 1 : 5));
    Stream stream;
    if (random_.chance(0.4)) stream.version = kVersions[1 + random_.below(3)];
    if (!stream.is_pinned()) stream.slot = static_cast<uint8_t>(random_.below(101));
    if (mix_.has_types && random_.chance(0.9)) stream.type = type_of(random_.below(kTypes));
    const Place place = bench_->add(name_of(key), weight, level, stream);
    places_[place.seq.value()] = place;
    slow_.add(place.seq.value(), level, key, weight, stream);
  }
  void remove() {
    const auto waiting = slow_.waiting();
    if (waiting.empty()) return;
    const uint64_t seq = waiting[random_.below(waiting.size())];
    bench_->remove(places_.at(seq));
    places_.erase(seq);
    slow_.remove(seq);
  }
  void pause(int key, bool is_paused) {
    bench_->change_rules([&](Rules& rules) {
      is_paused ? (void)(*rules.mutable_keys())[name_of(key)].mutable_pause()
                : (void)rules.mutable_keys()->erase(name_of(key));
    });
    slow_.set_paused(key, is_paused);
  }
  void route() {
    SlowQueue::Routing routing;
    routing.current = some_version();
    routing.ramping = some_version();
    if (mix_.has_ramps && random_.chance(0.6)) {
      routing.percent = static_cast<uint32_t>(random_.below(101));
    }
    bench_->change_rules([&](Rules& rules) {
      rules.mutable_routing()->set_current(routing.current);
      rules.mutable_routing()->set_ramping(routing.ramping);
      rules.mutable_routing()->set_percent(routing.percent);
    });
    slow_.route(routing);
  }
  void switch_order() {
    const bool is_fair = random_.chance(0.5);
    const auto how = static_cast<Rules::Transition>(Rules::DRAIN + random_.below(3));
    bench_->change_rules([&](Rules& rules) {
      rules.set_fairness(is_fair ? Rules::ON : Rules::OFF);
      rules.set_transition(how);
    });
    slow_.switch_to(is_fair, how);
  }

  static constexpr uint64_t kTypes = 5;

  Random random_;
  Mix mix_;
  uint64_t keys_;
  Settings settings_;
  std::unique_ptr<QueueBench> bench_;
  SlowQueue slow_;
  std::map<uint64_t, Place> places_;
};

void tell(uint64_t seed, Mix mix) {
  Story story(seed, mix);
  for (int step = 0; step < 500; ++step) {
    ASSERT_TRUE(story.step()) << "seed " << seed << " step " << step;
    ASSERT_TRUE(story.counts_agree()) << "seed " << seed << " step " << step;
    if (story.random().chance(0.02)) story.reopen();
  }
  ASSERT_TRUE(story.drain()) << "seed " << seed << ", at the end";
}

TEST(TargetsModel, EveryStartIsThatOfTheSlowQueue) {
  for (uint64_t seed = 1; seed <= 100; ++seed) tell(seed, {});
}

// Whole lines move then, unread.
TEST(TargetsModel, EveryStartIsThatOfTheSlowQueueWithoutRamps) {
  for (uint64_t seed = 1; seed <= 100; ++seed) tell(seed, {.has_ramps = false});
}

TEST(TargetsModel, EveryStartIsThatOfTheSlowQueueWhileOrdersChange) {
  for (uint64_t seed = 1; seed <= 100; ++seed) tell(seed, {.has_orders = true});
}

// Lists of types get a slot, lose it and change places while tasks wait and are out.
TEST(TargetsModel, EveryStartIsThatOfTheSlowQueueWhileTypesAreToldApart) {
  for (uint64_t seed = 1; seed <= 100; ++seed) tell(seed, {.has_types = true});
  for (uint64_t seed = 1; seed <= 100; ++seed) tell(seed, {.has_orders = true, .has_types = true});
}

// A restart after every single write is nothing that anybody could tell from the order.
TEST(TargetsModel, ARestartAfterAnyWriteChangesNothing) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Story story(seed, {.has_orders = seed % 2 == 0, .has_types = seed % 3 == 0});
    for (int step = 0; step < 300; ++step) {
      ASSERT_TRUE(story.step()) << "seed " << seed << " step " << step;
      story.reopen();
      ASSERT_TRUE(story.counts_agree()) << "seed " << seed << " step " << step;
    }
    ASSERT_TRUE(story.drain()) << "seed " << seed << ", at the end";
  }
}

}  // namespace
}  // namespace fairlead::queue
