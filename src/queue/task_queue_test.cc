#include "queue/task_queue.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

using Rules = model::QueueRules;

std::string joined(const std::vector<std::string>& keys) {
  std::string text;
  for (const auto& key : keys) text += key;
  return text;
}

// Urgent before batch: a tenant's nightly job must not delay what a customer waits for.
TEST(TaskQueue, AnUrgentTaskGoesBeforeEverythingLessUrgent) {
  QueueBench bench;
  bench.add("batch", 0, 5);
  bench.add("b", 0, 3);
  bench.add("urgent", 0, 1);
  bench.add("c", 0, 3);
  EXPECT_EQ(bench.start_keys(9), (std::vector<std::string>{"urgent", "b", "c", "batch"}));
}

// A pick that came to nothing must not cost the task its place.
TEST(TaskQueue, ATaskPutBackIsWhereItWas) {
  QueueBench bench;
  bench.add("a");
  bench.add("a");
  const auto first = *bench.queue->pick(bench.now);
  bench.queue->put_back(first.place, bench.now);
  EXPECT_EQ(bench.queue->size(), 2);
  EXPECT_EQ(bench.start()->place, first.place);
}

TEST(TaskQueue, ATaskRemovedWhileItWasOutDoesNotComeBack) {
  QueueBench bench;
  bench.add("a");
  const auto picked = *bench.queue->pick(bench.now);
  bench.remove(picked.place);
  bench.queue->put_back(picked.place, bench.now);
  EXPECT_FALSE(bench.start().has_value());
  EXPECT_TRUE(bench.queue->is_idle());
}

TEST(TaskQueue, KeysBeyondTheLevelsBelongToTheLastAndNoneToTheMiddle) {
  model::Priority priority;
  EXPECT_EQ(effective_level(priority, kLevelsDefault), 3u);
  priority.set_priority_key(1);
  EXPECT_EQ(effective_level(priority, kLevelsDefault), 1u);
  priority.set_priority_key(1'000'000);
  EXPECT_EQ(effective_level(priority, kLevelsDefault), 5u);
}

TEST(TaskQueue, ImpossiblePrioritiesAreRefused) {
  model::Priority priority;
  EXPECT_TRUE(check_priority(priority).ok());
  priority.set_priority_key(-1);
  EXPECT_EQ(check_priority(priority).message(), "priority key can't be negative");
  priority.set_priority_key(1);
  priority.set_fairness_key(std::string(65, 'x'));
  EXPECT_EQ(check_priority(priority).message(), "fairness key length exceeds limit");
  priority.set_fairness_key("x");
  for (const float weight : {-1.0F, std::nanf(""), INFINITY}) {
    priority.set_fairness_weight(weight);
    EXPECT_EQ(check_priority(priority).message(), "must be greater than zero");
  }
}

// The whole queue against the plainest model of it: with one key per level it is a sorted set,
// however few tasks it may keep in memory.
TEST(TaskQueue, HandsOutEveryTaskOnceAndInOrderHoweverSmallItsMemory) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    Settings settings;
    settings.tasks_in_memory_max = random.below(8);
    QueueBench bench(settings);
    std::set<Place> waiting;
    std::set<Place> out;
    for (int step = 0; step < 400; ++step) {
      const auto choice = random.below(10);
      if (choice < 4) {
        waiting.insert(bench.add("k", 0, static_cast<uint32_t>(1 + random.below(kLevelsDefault))));
      } else if (choice < 7) {
        const auto picked = bench.queue->pick(bench.now);
        ASSERT_EQ(picked.has_value(), !waiting.empty()) << "seed " << seed << " step " << step;
        if (!picked.has_value()) continue;
        ASSERT_EQ(picked->place, *waiting.begin()) << "seed " << seed << " step " << step;
        ASSERT_EQ(picked->task.scheduled_id, static_cast<int64_t>(picked->place.seq.value()));
        out.insert(picked->place);
        waiting.erase(picked->place);
      } else if (choice == 7 && !out.empty()) {
        bench.commit(*out.begin());
        out.erase(out.begin());
      } else if (choice == 8 && !out.empty()) {
        bench.queue->put_back(*out.begin(), bench.now);
        waiting.insert(*out.begin());
        out.erase(out.begin());
      } else if (choice == 9 && !waiting.empty()) {
        auto at = waiting.begin();
        std::advance(at, random.below(waiting.size()));
        bench.remove(*at);
        waiting.erase(at);
      }
      ASSERT_EQ(bench.queue->size(), static_cast<int64_t>(waiting.size())) << "seed " << seed;
    }
  }
}

TEST(TaskQueue, WeightsFiveThreeTwoGiveThatManyOfEveryTen) {
  QueueBench bench;
  bench.add_many("p", 100, 5);
  bench.add_many("b", 100, 3);
  bench.add_many("f", 100, 2);
  for (int window = 0; window < 10; ++window) {
    const auto keys = bench.start_keys(10);
    EXPECT_EQ(std::count(keys.begin(), keys.end(), "p"), 5);
    EXPECT_EQ(std::count(keys.begin(), keys.end(), "b"), 3);
    EXPECT_EQ(std::count(keys.begin(), keys.end(), "f"), 2);
  }
}

// One kind of everything that can happen, decided by the seed alone, so that it can be lived
// through again after a crash.
struct Story {
  struct Step {
    enum class Kind { kAdd, kStart, kRemove, kReweigh, kPause, kResume } kind;
    std::string key;
    float weight = 0;
    uint32_t level = 3;
    uint64_t choice = 0;
  };
  std::vector<Step> steps;

  explicit Story(uint64_t seed, int length) {
    Random random(seed);
    const uint64_t keys = 1 + random.below(12);
    std::map<std::string, float> weights;
    for (int i = 0; i < length; ++i) {
      Step step{};
      step.key = std::string(1, static_cast<char>('a' + random.below(keys)));
      step.level = random.chance(0.8) ? 3 : 2;
      step.choice = random.next();
      step.weight =
          static_cast<float>(std::pow(10.0, static_cast<double>(random.below(4000)) / 1000 - 2));
      const auto choice = random.below(20);
      if (choice < 9) {
        step.kind = Step::Kind::kAdd;
        if (random.chance(0.5)) step.weight = 0;
      } else if (choice < 17) {
        step.kind = Step::Kind::kStart;
      } else if (choice == 17) {
        step.kind = Step::Kind::kRemove;
      } else if (choice == 18) {
        step.kind = Step::Kind::kReweigh;
      } else {
        step.kind = random.chance(0.4) ? Step::Kind::kPause : Step::Kind::kResume;
      }
      steps.push_back(step);
    }
  }

  // Lives from `from` on; gives what was started.
  static std::vector<int64_t> live(QueueBench& bench, const std::vector<Step>& steps, size_t from) {
    std::vector<int64_t> started;
    for (size_t i = from; i < steps.size(); ++i) {
      if (const auto id = take(bench, steps, i)) started.push_back(*id);
    }
    while (const auto next = bench.start()) started.push_back(next->task.scheduled_id);
    return started;
  }

  static std::optional<int64_t> take(QueueBench& bench, const std::vector<Step>& steps, size_t i) {
    const auto& step = steps[i];
    bench.next_id = static_cast<int64_t>(i + 1);
    switch (step.kind) {
      case Step::Kind::kAdd:
        bench.add(step.key, step.weight, step.level);
        break;
      case Step::Kind::kStart:
        if (const auto started = bench.start()) return started->task.scheduled_id;
        break;
      case Step::Kind::kRemove:
        if (!bench.disk.tasks.empty()) {
          auto at = bench.disk.tasks.begin();
          std::advance(at, step.choice % bench.disk.tasks.size());
          bench.remove({std::get<0>(at->first), std::get<1>(at->first), std::get<2>(at->first)});
        }
        break;
      case Step::Kind::kReweigh:
        bench.change_rules(
            [&](Rules& rules) { (*rules.mutable_weights())[step.key] = step.weight; });
        break;
      case Step::Kind::kPause:
        bench.change_rules(
            [&](Rules& rules) { (*rules.mutable_keys())[step.key].mutable_pause(); });
        break;
      case Step::Kind::kResume:
        bench.change_rules([&](Rules& rules) { rules.mutable_keys()->erase(step.key); });
        break;
    }
    return std::nullopt;
  }
};

// The order after a crash is the order without it, wherever the crash falls.
TEST(TaskQueue, ACrashAtAnyPointChangesNothing) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Settings settings;
    settings.tasks_in_memory_max = seed % 3 == 0 ? 0 : 1000;
    settings.is_prompt = seed % 4 == 1;
    const Story story(seed, 160);
    QueueBench bench(settings);
    std::vector<QueueBench::Disk> disks;
    std::vector<size_t> started_by;
    std::vector<int64_t> order;
    for (size_t i = 0; i < story.steps.size(); ++i) {
      disks.push_back(bench.disk);
      started_by.push_back(order.size());
      if (const auto id = Story::take(bench, story.steps, i)) order.push_back(*id);
    }
    while (const auto next = bench.start()) order.push_back(next->task.scheduled_id);
    for (size_t crash = 0; crash < disks.size(); ++crash) {
      QueueBench again(settings, disks[crash]);
      const auto rest = Story::live(again, story.steps, crash);
      const std::vector<int64_t> expected(
          order.begin() + static_cast<std::ptrdiff_t>(started_by[crash]), order.end());
      ASSERT_EQ(rest, expected) << "seed " << seed << ", crash before step " << crash
                                << ", after one of kind "
                                << (crash == 0 ? -1
                                               : static_cast<int>(story.steps[crash - 1].kind));
      ASSERT_EQ(again.queue->size(), static_cast<int64_t>(again.disk.tasks.size()));
    }
  }
}

TEST(TaskQueue, AQueueThatRanDryLeavesNoRows) {
  QueueBench bench;
  for (int i = 0; i < 30; ++i)
    bench.add_many("key" + std::to_string(i), 3, static_cast<float>(i + 1));
  while (bench.start().has_value()) {
  }
  // The debts of the last ones are written off by the next start.
  bench.add("x");
  bench.add("y");
  bench.start();
  bench.start();
  bench.write();
  EXPECT_TRUE(bench.disk.accounts.empty()) << bench.disk.accounts.size();
  EXPECT_TRUE(bench.disk.limiters.empty());
}

TEST(TaskQueue, AnUnkeyedBacklogWritesNoAccounts) {
  QueueBench bench;
  bench.add_many("", 50);
  for (int i = 0; i < 50; ++i) {
    bench.start();
    EXPECT_TRUE(bench.disk.accounts.empty());
  }
}

TEST(TaskQueue, AWeightChangedUnderABacklogActsOnTheNextStart) {
  QueueBench bench;
  bench.add_many("a", 200);
  bench.add_many("b", 200);
  auto keys = bench.start_keys(20);
  EXPECT_EQ(std::count(keys.begin(), keys.end(), "a"), 10);
  bench.change_rules([](Rules& rules) { (*rules.mutable_weights())["a"] = 9; });
  keys = bench.start_keys(100);
  EXPECT_NEAR(static_cast<double>(std::count(keys.begin(), keys.end(), "a")), 90, 1);
  bench.change_rules([](Rules& rules) { rules.mutable_weights()->erase("a"); });
  keys = bench.start_keys(50);
  EXPECT_NEAR(static_cast<double>(std::count(keys.begin(), keys.end(), "a")), 25, 1);
}

TEST(TaskQueue, APausedKeyDelaysNobodyAndComesBackWithoutCredit) {
  QueueBench bench;
  bench.add_many("a", 50);
  bench.add_many("b", 50);
  bench.change_rules([](Rules& rules) { (*rules.mutable_keys())["a"].mutable_pause(); });
  EXPECT_EQ(joined(bench.start_keys(10)), "bbbbbbbbbb");
  bench.change_rules([](Rules& rules) { rules.mutable_keys()->erase("a"); });
  const auto keys = bench.start_keys(10);
  EXPECT_EQ(std::count(keys.begin(), keys.end(), "a"), 5);
}

TEST(TaskQueue, APausedQueueStandsStill) {
  QueueBench bench;
  bench.add("a");
  bench.change_rules([](Rules& rules) { rules.mutable_pause(); });
  EXPECT_FALSE(bench.start().has_value());
  EXPECT_FALSE(bench.queue->may_hand_over(1, "z", bench.now));
  bench.reopen();
  EXPECT_FALSE(bench.start().has_value());
  bench.change_rules([](Rules& rules) { rules.clear_pause(); });
  EXPECT_TRUE(bench.start().has_value());
}

TEST(TaskQueue, ADrainedKeyLetsGoWhatItHadAndHoldsWhatComes) {
  QueueBench bench;
  bench.add_many("a", 2);
  bench.change_rules([](Rules& rules) {
    (*rules.mutable_keys())["a"].set_drain_below(std::numeric_limits<uint64_t>::max());
  });
  bench.add_many("a", 2);
  EXPECT_EQ(joined(bench.start_keys(9)), "aa");
  EXPECT_FALSE(bench.queue->may_hand_over(3, "a", bench.now));
  bench.reopen();
  EXPECT_EQ(joined(bench.start_keys(9)), "");
  bench.change_rules([](Rules& rules) { rules.mutable_keys()->erase("a"); });
  EXPECT_EQ(joined(bench.start_keys(9)), "aa");
}

TEST(TaskQueue, CapsHoldAcrossRestarts) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) {
    rules.set_running_max(5);
    rules.set_running_max_per_key(2);
    (*rules.mutable_keys())["c"].set_running_max(1);
  });
  bench.add_many("a", 5);
  bench.add_many("b", 5);
  bench.add_many("c", 5);
  EXPECT_EQ(bench.start_keys(20).size(), 5u);
  EXPECT_EQ(bench.disk.leases, (std::map<std::string, int>{{"a", 2}, {"b", 2}, {"c", 1}}));
  bench.reopen();
  EXPECT_FALSE(bench.start().has_value());
  bench.finish("b");
  EXPECT_EQ(joined(bench.start_keys(20)), "b");
  bench.finish("a");
  bench.finish("c");
  EXPECT_EQ(bench.start_keys(20).size(), 2u);
  EXPECT_EQ(bench.queue->running(), 5);
}

// Old tasks first, in their old order, and before any new one however urgent: what the documents
// promise for switching fairness on and off.
// Another thread erases a row and tells of it a moment later; meanwhile the line may be read.
TEST(TaskQueue, ANewOrderBeginsWhenTheOldBacklogWasFoundMissing) {
  Settings settings;
  settings.tasks_in_memory_max = 1;
  QueueBench bench(settings);
  std::vector<Place> old;
  for (int i = 0; i < 6; ++i) old.push_back(bench.add("a"));
  bench.change_rules([](Rules& rules) { rules.set_fairness(Rules::OFF); });
  ASSERT_EQ(bench.queue->rules().epochs_size(), 2);
  for (const auto& place : old) bench.disk.tasks.erase({place.level, place.key, place.seq});
  while (bench.start().has_value()) {
  }
  for (const auto& place : old) bench.queue->remove(place, bench.now);
  bench.add("b");
  EXPECT_TRUE(bench.start().has_value());
  EXPECT_EQ(bench.queue->rules().epochs_size(), 1) << "the old order has nothing left";
}

TEST(TaskQueue, ANewOrderBeginsWhenTheOldBacklogIsGone) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) { rules.set_fairness(Rules::OFF); });
  bench.add_many("a", 3);
  bench.add_many("b", 2);
  bench.change_rules([](Rules& rules) { rules.set_fairness(Rules::ON); });
  bench.add_many("a", 2);
  bench.add_many("b", 2);
  bench.add("u", 0, 1);
  bench.reopen();
  EXPECT_EQ(joined(bench.start_keys(3)), "aaa");
  bench.reopen();
  EXPECT_EQ(joined(bench.start_keys(2)), "bb");
  EXPECT_EQ(joined(bench.start_keys(9)), "uabab");

  bench.add_many("a", 3);
  bench.add_many("b", 3);
  bench.change_rules([](Rules& rules) { rules.set_fairness(Rules::OFF); });
  bench.add("c");
  bench.add("d");
  bench.add("c");
  EXPECT_EQ(joined(bench.start_keys(9)), "abababcdc");
}

TEST(TaskQueue, ATransitionPerLevelDoesNotHoldBackUrgentWork) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) {
    rules.set_fairness(Rules::OFF);
    rules.set_transition(Rules::DRAIN_PER_LEVEL);
  });
  bench.add_many("a", 3);
  bench.add_many("b", 1);
  bench.change_rules([](Rules& rules) { rules.set_fairness(Rules::ON); });
  bench.add_many("b", 1);
  bench.add("u", 0, 1);
  EXPECT_EQ(joined(bench.start_keys(9)), "uaaabb");
}

TEST(TaskQueue, AnImmediateTransitionAppliesToWhatWaits) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) {
    rules.set_fairness(Rules::OFF);
    rules.set_transition(Rules::IMMEDIATE);
  });
  bench.add_many("a", 3);
  bench.add_many("b", 3);
  EXPECT_EQ(joined(bench.start_keys(1)), "a");
  bench.change_rules([](Rules& rules) { rules.set_fairness(Rules::ON); });
  EXPECT_EQ(joined(bench.start_keys(9)),
            "abab"
            "b");
}

TEST(TaskQueue, ATaskHandedOverPaysItsKey) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) { (*rules.mutable_keys())["held"].mutable_pause(); });
  // A key that has had more than its share, and nothing else waits.
  bench.add_many("a", 4);
  bench.add_many("b", 4);
  bench.start_keys(8);
  EXPECT_TRUE(bench.queue->may_hand_over(3, "a", bench.now));
  EXPECT_FALSE(bench.queue->may_hand_over(3, "held", bench.now));
  bench.add("z");
  EXPECT_FALSE(bench.queue->may_hand_over(3, "a", bench.now)) << "z has a better claim";
  EXPECT_TRUE(bench.queue->may_hand_over(2, "a", bench.now)) << "z is less urgent";
}

TEST(TaskQueue, WhatAKeyGetsElsewhereIsCounted) {
  QueueBench bench;
  bench.add_many("a", 40);
  bench.add_many("b", 40);
  for (int i = 0; i < 10; ++i) bench.queue->charge(3, "a", 0, bench.now);
  const auto keys = bench.start_keys(20);
  EXPECT_NEAR(static_cast<double>(std::count(keys.begin(), keys.end(), "a")), 5, 1);
}

TEST(TaskQueue, ExplainsWhereATaskStands) {
  QueueBench bench;
  bench.add_many("a", 3);
  const Place last = bench.add("a");
  bench.add("b");
  bench.add("u", 0, 1);
  auto standing = bench.queue->standing(last, bench.now);
  EXPECT_EQ(standing.tasks_before_in_line, 3);
  EXPECT_EQ(standing.keys_before, 1u) << "only the urgent one: a came before b";
  bench.change_rules([](Rules& rules) { (*rules.mutable_keys())["a"].mutable_pause(); });
  standing = bench.queue->standing(last, bench.now);
  EXPECT_EQ(standing.holds, kPaused);
}

// An operator who wonders about a drained key must see which of its tasks the drain holds.
TEST(TaskQueue, ADrainIsToldOfTheTasksThatItHolds) {
  QueueBench bench;
  const Place before = bench.add("a");
  bench.change_rules([](Rules& rules) {
    (*rules.mutable_keys())["a"].set_drain_below(std::numeric_limits<uint64_t>::max());
  });
  const Place after = bench.add("a");
  EXPECT_EQ(bench.queue->standing(before, bench.now).holds, 0);
  EXPECT_EQ(bench.queue->standing(after, bench.now).holds, kDrained);
  EXPECT_EQ(bench.queue->key_view("a", bench.now)->holds, 0);
  bench.start_keys(1);
  EXPECT_EQ(bench.queue->key_view("a", bench.now)->holds, kDrained);
  EXPECT_EQ(bench.queue->standing(after, bench.now).holds, kDrained);
}

}  // namespace
}  // namespace fairlead::queue
