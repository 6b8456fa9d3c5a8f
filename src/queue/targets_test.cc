// Versions: who may take a task, what is common to all workers, and what a change of the routing
// does to tasks that wait.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

using Rules = model::QueueRules;

constexpr uint32_t kLevel = kDefaultLevel;

Stream pinned(const std::string& version) { return {version, 0}; }
Stream slot(uint8_t number) { return {"", number}; }

void route(QueueBench& bench, const std::string& current, const std::string& ramping = "",
           uint32_t percent = 0) {
  bench.change_rules([&](Rules& rules) {
    rules.mutable_routing()->set_current(current);
    rules.mutable_routing()->set_ramping(ramping);
    rules.mutable_routing()->set_percent(percent);
  });
}

std::vector<std::string> start_keys(QueueBench& bench, const std::string& version, int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) {
    const auto started = bench.start(version);
    if (!started.has_value()) break;
    keys.push_back(started->place.key);
  }
  return keys;
}

TEST(Targets, APinnedTaskGoesToItsVersionOnly) {
  QueueBench bench;
  bench.add("a", 0, kLevel, pinned("v1"));
  bench.add("b");
  EXPECT_FALSE(bench.start("v2").has_value());
  const auto first = bench.start("v1");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->place.key, "a");
  EXPECT_EQ(first->place.stream.version, "v1");
  EXPECT_FALSE(bench.start("v1").has_value());
  EXPECT_EQ(bench.start()->place.key, "b");
}

TEST(Targets, TheDefaultStreamGoesWhereTheRoutingSays) {
  QueueBench bench;
  for (const uint8_t number : {10, 30, 60, 100}) bench.add("a", 0, kLevel, slot(number));
  bench.add("a");  // of a store that knew no slots: the last to move
  const auto waiting = [&](const std::string& version) {
    for (const auto& view : bench.queue->target_views()) {
      if (view.version == version) return view.waiting;
    }
    return int64_t{0};
  };
  EXPECT_EQ(waiting(""), 5);
  route(bench, "v1");
  EXPECT_EQ(waiting("v1"), 5);
  route(bench, "v1", "v2", 30);
  EXPECT_EQ(waiting("v1"), 3);
  EXPECT_EQ(waiting("v2"), 2);
  route(bench, "v1", "v2", 99);
  EXPECT_EQ(waiting("v2"), 3);
  route(bench, "v1", "v2", 100);
  EXPECT_EQ(waiting("v2"), 5);
  bench.reopen();
  EXPECT_EQ(waiting("v2"), 5);
  route(bench, "");
  EXPECT_EQ(waiting(""), 5);
  EXPECT_EQ(bench.queue->size(), 5);
  EXPECT_EQ(bench.start_keys(10).size(), 5U);
}

// Whatever waits for others, and whoever polls for them: the order of a target is the one that it
// would have alone.
TEST(Targets, NeverDelayOneAnother) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    QueueBench all;
    QueueBench alone;
    for (int step = 0; step < 600; ++step) {
      const std::string version = random.chance(0.4) ? "v1" : random.chance(0.5) ? "v2" : "";
      const bool is_mine = version == "v1";
      if (random.chance(0.55)) {
        const std::string key(1, static_cast<char>('a' + random.below(6)));
        const auto level = static_cast<uint32_t>(1 + random.below(3));
        const auto weight = static_cast<float>(1 + random.below(40)) / 10;
        all.add(key, weight, level, pinned(version));
        // Ties go by who came first: what is missing here keeps its number.
        const auto place = alone.queue->reserve(level, key, pinned(version));
        if (!is_mine) continue;
        Task task;
        task.weight = weight;
        alone.disk.pinned[{version, level, key, place.seq}] = task;
        alone.queue->add(place, task, alone.now);
      } else {
        const auto started = all.start(version);
        if (!is_mine) continue;
        const auto expected = alone.start(version);
        ASSERT_EQ(started.has_value(), expected.has_value());
        if (started.has_value()) ASSERT_EQ(started->place, expected->place) << "seed " << seed;
      }
    }
  }
}

// Keys that wait all the time have had their share of what a version's workers were given, to
// within one task, whether their tasks were pinned to it or came to it by the routing.
TEST(Targets, ShareWithinOneTaskBetweenChangesOfTheRouting) {
  const std::map<std::string, float> weights{{"a", 1}, {"b", 2}, {"c", 3.5}, {"d", 0.5}};
  double sum = 0;
  for (const auto& [key, weight] : weights) sum += weight;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Settings settings;
    settings.tasks_in_memory_max = seed % 2 == 0 ? 20 : 100'000;
    QueueBench bench(settings);
    for (int i = 0; i < 500; ++i) {
      for (const auto& [key, weight] : weights) {
        bench.add(key, weight, kLevel, slot(static_cast<uint8_t>(1 + random.below(100))));
        for (const auto* version : {"v1", "v2"}) {
          if (random.chance(0.3)) bench.add(key, weight, kLevel, pinned(version));
        }
      }
    }
    for (const auto& [current, percent] : std::vector<std::pair<std::string, uint32_t>>{
             {"v1", 0}, {"v1", 40}, {"", 40}, {"v2", 0}, {"v1", 70}}) {
      // Nobody is owed, or owes, anything from before: a fresh target for every round.
      const std::string polled = current.empty() ? "v2" : current;
      route(bench, current, "v2", percent);
      std::map<std::string, int> had;
      std::map<std::string, double> lag_before;
      for (int n = 1; n <= 60; ++n) {
        const auto started = bench.start(polled);
        ASSERT_TRUE(started.has_value());
        ++had[started->place.key];
        for (const auto& [key, weight] : weights) {
          const double ideal = n * weight / sum;
          // One task, and one that was owed when the round began.
          ASSERT_LE(std::abs(had[key] - ideal), 2) << "seed " << seed << " key " << key;
        }
      }
      ASSERT_LE(bench.queue->lag_max(), 1.0) << "seed " << seed;
      if (random.chance(0.3)) bench.reopen();
    }
  }
}

// From a common beginning the bound is one task.
TEST(Targets, ShareWithinOneTaskFromTheChangeOfTheRoutingOn) {
  const std::map<std::string, float> weights{{"a", 1}, {"b", 2}, {"c", 3.5}, {"d", 0.5}};
  double sum = 0;
  QueueBench bench;
  for (const auto& [key, weight] : weights) {
    sum += weight;
    bench.add_many(key, 200, weight);
  }
  for (int i = 0; i < 37; ++i) bench.start();
  route(bench, "v1");
  std::map<std::string, int> had;
  for (int n = 1; n <= 150; ++n) {
    ++had[bench.start("v1")->place.key];
    for (const auto& [key, weight] : weights) {
      ASSERT_LE(std::abs(had[key] - n * weight / sum), 1) << "start " << n << " key " << key;
    }
  }
}

TEST(Targets, LimitsOfAKeyAreCommonToAllVersions) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) { rules.set_running_max_per_key(2); });
  for (const auto* version : {"v1", "v2", ""}) {
    bench.add("a", 0, kLevel, pinned(version));
    bench.add("b", 0, kLevel, pinned(version));
  }
  EXPECT_EQ(start_keys(bench, "v1", 5).size(), 2U);
  EXPECT_EQ(start_keys(bench, "v2", 5).size(), 2U);
  EXPECT_TRUE(start_keys(bench, "", 5).empty()) << "each key has two tasks running";
  bench.finish("b");
  EXPECT_EQ(start_keys(bench, "", 5), std::vector<std::string>{"b"});
  bench.change_rules([](Rules& rules) {
    rules.clear_running_max_per_key();
    rules.mutable_pause();
  });
  EXPECT_FALSE(bench.start().has_value());
}

TEST(Targets, LevelsAreStrictInEachOfThem) {
  QueueBench bench;
  bench.add("a", 0, 3, pinned("v1"));
  bench.add("a", 0, 1, pinned("v2"));
  bench.add("b", 0, 2, pinned("v1"));
  EXPECT_EQ(bench.queue->next_level(bench.now, "v1"), 2U);
  EXPECT_EQ(bench.queue->next_level(bench.now, "v2"), 1U);
  EXPECT_GT(bench.queue->next_level(bench.now), kLevelsMax);
  EXPECT_TRUE(bench.queue->may_hand_over(1, "c", bench.now, pinned("v1")));
  EXPECT_FALSE(bench.queue->may_hand_over(2, "c", bench.now, pinned("v1")));
  EXPECT_FALSE(bench.queue->may_hand_over(3, "c", bench.now, pinned("v2")));
  EXPECT_TRUE(bench.queue->may_hand_over(3, "c", bench.now));
}

// A task that is out for a start belongs to nobody's line. If it comes back, it stands where the
// routing wants it now.
TEST(Targets, WhatComesBackGoesWhereTheRoutingSaysNow) {
  for (const uint32_t percent : {0U, 50U}) {
    QueueBench bench;
    const auto first = bench.add("a", 0, kLevel, slot(20));
    const auto second = bench.add("a", 0, kLevel, slot(80));
    const auto picked = bench.queue->pick(bench.now);
    const auto other = bench.queue->pick(bench.now);
    ASSERT_EQ(picked->place.seq, first.seq);
    route(bench, percent == 0 ? "v1" : "", "v1", percent);
    EXPECT_EQ(bench.queue->size(), 0);
    bench.queue->put_back(picked->place, bench.now);
    EXPECT_FALSE(bench.start().has_value());
    const auto started = bench.start("v1");
    ASSERT_TRUE(started.has_value());
    EXPECT_EQ(started->place.seq, first.seq);
    bench.commit(other->place);
    EXPECT_EQ(bench.queue->size(), 0);
    EXPECT_TRUE(bench.disk.tasks.empty());
  }
}

// The row of a task is gone a moment before its queue is told. If the routing changes in between,
// nothing that is still there may be forgotten.
TEST(Targets, ARowThatIsGoneButNotToldOfCostsNobodyElseATask) {
  for (const size_t bound : {1000U, 0U}) {
    Settings settings;
    settings.tasks_in_memory_max = bound;
    QueueBench bench(settings);
    std::vector<Place> places;
    for (uint8_t i = 1; i <= 20; ++i) places.push_back(bench.add("a", 0, kLevel, slot(i * 5)));
    bench.erase(places[3]);
    bench.erase(places[15]);
    route(bench, "", "v1", 50);
    bench.queue->remove(places[15], bench.now);
    bench.queue->remove(places[3], bench.now);
    EXPECT_EQ(start_keys(bench, "", 100).size(), 9U);
    EXPECT_EQ(start_keys(bench, "v1", 100).size(), 9U);
    EXPECT_EQ(bench.queue->size(), 0);
  }
}

// The same without versions: a line that was read to its end and has got new tasks since.
TEST(Targets, ALateWordOfARemovedTaskCostsNobodyElseATask) {
  Settings settings;
  settings.tasks_in_memory_max = 2;
  QueueBench bench(settings);
  bench.add_many("a", 2);
  const auto place = bench.add("a");
  bench.add("a");
  bench.erase(place);
  for (int i = 0; i < 3; ++i) bench.start();  // reads to the end
  for (int i = 0; i < 5; ++i) bench.add("a");
  bench.queue->remove(place, bench.now);
  EXPECT_EQ(bench.start_keys(100).size(), 5U);
}

// Who comes alone leaves no row, and nothing else either.
TEST(Targets, AKeyThatWaitedAloneIsForgotten) {
  QueueBench bench;
  for (int i = 0; i < 3000; ++i) {
    const auto key = "k" + std::to_string(i);
    bench.add(key);
    bench.start();
    bench.finish(key);
  }
  EXPECT_LE(bench.queue->keys(), TaskQueue::kRecent + 1)
      << "those of the last dispatches are shown";
}

// Versions come and go for ever.
TEST(Targets, AVersionThatNothingIsLeftOfCostsNothing) {
  QueueBench bench;
  for (int i = 0; i < 300; ++i) {
    const auto version = "v" + std::to_string(i);
    bench.add("a", 0, kLevel, pinned(version));
    if (i % 2 == 0) bench.add("b", 0, kLevel, pinned(version));
    ASSERT_EQ(start_keys(bench, version, 5).size(), i % 2 == 0 ? 2U : 1U);
    bench.finish("a");
    if (i % 2 == 0) bench.finish("b");
    bench.write();
  }
  EXPECT_LE(bench.queue->targets(), 3U);
  EXPECT_TRUE(bench.disk.version_accounts.empty());
}

}  // namespace
}  // namespace fairlead::queue
