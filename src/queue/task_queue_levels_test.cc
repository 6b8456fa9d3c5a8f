// How many levels there are, and what less urgent ones get.

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

Settings levels_and_share(uint32_t levels, uint32_t share) {
  Settings settings;
  settings.levels = levels;
  settings.lower_level_share = share;
  return settings;
}

model::Priority asked(int32_t key) {
  model::Priority priority;
  priority.set_priority_key(key);
  return priority;
}

TEST(Levels, TheMiddleOneIsTheDefaultAndTheLastTakesWhatIsBeyond) {
  EXPECT_EQ(effective_level(asked(0), 5), 3U);
  EXPECT_EQ(effective_level(asked(99), 5), 5U);
  EXPECT_EQ(effective_level(asked(0), 1), 1U);
  EXPECT_EQ(effective_level(asked(7), 1), 1U);
  EXPECT_EQ(effective_level(asked(0), 2), 1U);
  EXPECT_EQ(effective_level(asked(0), 64), 32U);
  EXPECT_EQ(effective_level(asked(1'000'000), 64), 64U);
}

// However many there are, no task goes while a more urgent one waits; and inside a level the oldest
// goes first. Restarts in the middle change nothing.
TEST(Levels, AreStrictHoweverManyThereAre) {
  for (const uint32_t levels : {1U, 2U, 7U, 64U}) {
    Random random(levels);
    QueueBench bench(levels_and_share(levels, 0));
    std::multimap<uint32_t, uint64_t> waiting;
    for (int step = 0; step < 1500; ++step) {
      if (random.chance(0.5)) {
        const auto place = bench.add("k", 0, static_cast<uint32_t>(1 + random.below(levels)));
        waiting.emplace(place.level, place.seq.value());
      } else if (random.chance(0.02)) {
        bench.reopen();
      } else {
        const auto started = bench.start();
        ASSERT_EQ(started.has_value(), !waiting.empty());
        if (!started.has_value()) continue;
        ASSERT_EQ(started->place.level, waiting.begin()->first);
        ASSERT_EQ(started->place.seq.value(), waiting.begin()->second);
        waiting.erase(waiting.begin());
      }
    }
    EXPECT_EQ(bench.queue->size(), static_cast<int64_t>(waiting.size()));
  }
}

// With fewer levels than before, those who wait keep the place that they were given.
TEST(Levels, FewerOrMoreOfThemLeaveWaitingTasksWhereTheyAre) {
  QueueBench bench(levels_and_share(10, 0));
  for (const uint32_t level : {10U, 2U, 7U}) bench.add("k", 0, level);
  bench.queue->set_settings(levels_and_share(3, 0), bench.now);
  bench.add("k", 0, 3);
  QueueBench after(levels_and_share(3, 0), bench.disk);
  for (auto* queue : {&bench, &after}) {
    EXPECT_EQ(queue->queue->levels(), 10U) << "as long as tasks wait there";
    std::vector<uint32_t> levels;
    while (const auto started = queue->start()) levels.push_back(started->place.level);
    EXPECT_EQ(levels, (std::vector<uint32_t>{2, 3, 7, 10}));
  }
  QueueBench empty(levels_and_share(3, 0), after.disk);
  EXPECT_EQ(empty.queue->levels(), 3U);
  empty.queue->set_settings(levels_and_share(12, 0), empty.now);
  EXPECT_EQ(empty.queue->levels(), 12U);
  EXPECT_EQ(empty.queue->key_view("k", empty.now)->waiting_by_level.size(), 12U);
}

// A mode that is being drained looks at each level; the last one is the one that is easily
// forgotten.
TEST(Levels, TheLastOfAllIsDrainedAndToggledLikeTheOthers) {
  auto settings = levels_and_share(kLevelsMax, 0);
  settings.is_prompt = true;
  QueueBench bench(settings);
  bench.add_many("a", 2, 0, kLevelsMax);
  bench.change_rules([](auto& rules) { rules.set_fairness(model::QueueRules::OFF); });
  bench.add("b", 0, 1);
  EXPECT_TRUE(bench.queue->is_draining());
  bench.reopen();
  EXPECT_EQ(bench.start_keys(3), (std::vector<std::string>{"a", "a", "b"}));
  EXPECT_FALSE(bench.queue->is_draining());
  bench.reopen();
  EXPECT_EQ(bench.queue->size(), 0);
}

// Two levels that always have something to do: after any number of turns the lower one has had its
// share of them, to within one.
TEST(LowerLevels, GetTheirShareOfEveryPrefix) {
  for (const uint32_t share : {1U, 7U, 10U, 33U, 50U}) {
    QueueBench bench(levels_and_share(5, share));
    for (int i = 0; i < 10; ++i) bench.add("k", 0, i % 2 == 0 ? 1 : 4);
    int64_t lower = 0;
    for (int64_t turns = 1; turns <= 700; ++turns) {
      const auto started = bench.start();
      ASSERT_TRUE(started.has_value());
      bench.add("k", 0, started->place.level);
      if (started->place.level == 4) ++lower;
      // |lower - share * turns| < 1, without leaving the integers.
      ASSERT_LT(std::abs(100 * lower - static_cast<int64_t>(share) * turns), 100)
          << share << " after " << turns;
    }
  }
}

// What a level is given it shares in the same way, so that not even the last one starves.
TEST(LowerLevels, PassAPartOfWhatTheyAreGivenOn) {
  QueueBench bench(levels_and_share(5, 20));
  for (uint32_t level = 1; level <= 3; ++level) bench.add_many("k", 4, 0, level);
  std::map<uint32_t, int> had;
  for (int i = 0; i < 500; ++i) {
    const auto level = bench.start()->place.level;
    bench.add("k", 0, level);
    ++had[level];
  }
  EXPECT_EQ(had[1], 400);
  EXPECT_EQ(had[2], 80);
  EXPECT_EQ(had[3], 20);
}

// A level alone has every turn, and owes nothing for them when another comes.
TEST(LowerLevels, AreOwedNothingForTheTimeInWhichTheyWereEmpty) {
  QueueBench bench(levels_and_share(5, 50));
  bench.add_many("k", 100, 0, 1);
  EXPECT_EQ(bench.start_keys(50).size(), 50U);
  bench.add_many("late", 10, 0, 2);
  int lower = 0;
  for (int i = 0; i < 10; ++i) lower += bench.start()->place.level == 2 ? 1 : 0;
  EXPECT_EQ(lower, 5);
}

// A start that did not happen was nobody's turn: the order of those that do is the one without it.
TEST(LowerLevels, ATurnThatIsPutBackDoesNotCount) {
  QueueBench plain(levels_and_share(5, 30));
  QueueBench shaky(levels_and_share(5, 30));
  Random random(4);
  for (auto* bench : {&plain, &shaky}) {
    bench->add_many("k", 300, 0, 1);
    bench->add_many("k", 300, 0, 3);
  }
  for (int i = 0; i < 200; ++i) {
    std::vector<Place> out;
    for (uint64_t held = random.below(4); held > 0; --held) {
      out.push_back(shaky.queue->pick(shaky.now)->place);
    }
    while (!out.empty()) {
      shaky.queue->put_back(out.back(), shaky.now);
      out.pop_back();
    }
    ASSERT_EQ(plain.start()->place, shaky.start()->place) << i;
  }
}

// Many picks may be out before the first of them is committed, and a crash forgets those that are
// not: what was committed before it counts, and the rest goes on as if the crash had not been.
TEST(LowerLevels, TheOrderAfterARestartIsTheOneWithoutIt) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    const auto settings = levels_and_share(6, static_cast<uint32_t>(1 + random.below(50)));
    QueueBench plain(settings);
    QueueBench crashed(settings);
    for (int step = 0; step < 400; ++step) {
      if (random.chance(0.5)) {
        const auto level = static_cast<uint32_t>(1 + random.below(6));
        const std::string key = random.chance(0.5) ? "a" : "b";
        plain.next_id = crashed.next_id = step + 1;  // numbers may be given out again after a crash
        plain.add(key, 0, level);
        crashed.add(key, 0, level);
        continue;
      }
      if (random.chance(0.2)) {
        (void)crashed.queue->pick(crashed.now);
        crashed.reopen();
      }
      const auto a = plain.start();
      const auto b = crashed.start();
      ASSERT_EQ(a.has_value(), b.has_value());
      if (!a.has_value()) continue;
      ASSERT_EQ(a->task.scheduled_id, b->task.scheduled_id) << "seed " << seed << " step " << step;
    }
  }
}

// Inside a level nothing changes: its tasks go in the order in which they would go without others.
TEST(LowerLevels, TheShareOfALevelIsDividedAsEver) {
  QueueBench both(levels_and_share(5, 25));
  QueueBench alone(levels_and_share(5, 0));
  for (int i = 0; i < 40; ++i) {
    both.add("urgent", 0, 1);
    for (auto* bench : {&both, &alone}) {
      bench->add("big", 3, 2);
      bench->add("small", 1, 2);
    }
  }
  std::vector<std::string> lower;
  while (lower.size() < 10) {
    const auto started = both.start();
    if (started->place.level == 2) lower.push_back(started->place.key);
  }
  EXPECT_EQ(lower, alone.start_keys(10));
}

// A lower level whose keys are all held back has nothing to do: its turn is used by the others.
TEST(LowerLevels, ThoseWhoAreHeldBackCostNobodyATurn) {
  QueueBench bench(levels_and_share(5, 50));
  bench.add_many("a", 20, 0, 1);
  bench.add_many("paused", 20, 0, 2);
  bench.change_rules([](auto& rules) { (*rules.mutable_keys())["paused"].mutable_pause(); });
  EXPECT_EQ(bench.start_keys(20), std::vector<std::string>(20, "a"));
  EXPECT_FALSE(bench.start().has_value());
}

}  // namespace
}  // namespace fairlead::queue
