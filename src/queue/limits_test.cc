#include "queue/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

using Rules = model::QueueRules;

// In every window of t seconds: at most rate * (t + 1) + 1 starts.
void expect_within(const std::vector<TimeNs>& starts, double rate) {
  for (size_t from = 0; from < starts.size(); ++from) {
    for (size_t to = from; to < starts.size(); ++to) {
      const double seconds = static_cast<double>(starts[to] - starts[from]) / kSecond;
      ASSERT_LE(static_cast<double>(to - from + 1), rate * (seconds + 1) + 1 + 1e-9)
          << "from " << from << " to " << to;
    }
  }
}

// Everything that may start at this moment starts; then time goes to the next release.
template <typename Each>
void run_for(QueueBench& bench, DurationNs duration, Each each) {
  const TimeNs end = bench.now + duration;
  while (true) {
    while (const auto started = bench.start()) each(started->place.key);
    const TimeNs next = bench.queue->next_release(bench.now);
    if (next > end) break;
    ASSERT_GT(next, bench.now) << "time would stand still";
    bench.now = next;
  }
  bench.now = end;
}

TEST(Limits, AQueueLimitHoldsAlsoAcrossRestarts) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) { rules.mutable_queue_limit()->set_per_second(7); });
  bench.add_many("a", 400);
  std::vector<TimeNs> starts;
  Random random(1);
  for (int i = 0; i < 40; ++i) {
    run_for(bench, static_cast<DurationNs>(random.below(kSecond)),
            [&](const std::string&) { starts.push_back(bench.now); });
    if (random.chance(0.5)) bench.reopen();
  }
  expect_within(starts, 7);
  EXPECT_GT(starts.size(), 100u);
}

TEST(Limits, AfterARestTheRatePlusOneGoesAtOnce) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) { rules.mutable_queue_limit()->set_per_second(5); });
  bench.add_many("a", 50);
  EXPECT_EQ(bench.start_keys(50).size(), 6u);
  bench.now += 200 * kMillisecond;
  EXPECT_EQ(bench.start_keys(50).size(), 1u);
}

// A weight of 2.5 under a limit of 10 per key is 25 a second; both limits together: the tighter
// one.
TEST(Limits, AKeysLimitIsTheBaseTimesItsWeight) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) {
    rules.mutable_key_limit()->set_per_second(10);
    (*rules.mutable_weights())["heavy"] = 2.5;
  });
  bench.add_many("heavy", 1000);
  bench.add_many("light", 1000);
  std::map<std::string, std::vector<TimeNs>> starts;
  run_for(bench, 10 * kSecond, [&](const std::string& key) { starts[key].push_back(bench.now); });
  expect_within(starts["heavy"], 25);
  expect_within(starts["light"], 10);
  EXPECT_NEAR(static_cast<double>(starts["heavy"].size()), 25 * 11 + 1, 2);
  EXPECT_NEAR(static_cast<double>(starts["light"].size()), 10 * 11 + 1, 2);
  starts.clear();
  bench.change_rules([](Rules& rules) { rules.mutable_queue_limit()->set_per_second(12); });
  run_for(bench, 10 * kSecond, [&](const std::string& key) { starts[""].push_back(bench.now); });
  expect_within(starts[""], 12);
}

TEST(Limits, AKeysLimitHoldsAcrossRestartsAndChanges) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    QueueBench bench;
    double rate = 20;
    bench.change_rules([&](Rules& rules) { rules.mutable_key_limit()->set_per_second(rate); });
    const std::vector<std::string> keys{"a", "b", "c", ""};
    for (const auto& key : keys) bench.add_many(key, 600);
    std::map<std::string, std::vector<TimeNs>> starts;
    for (int i = 0; i < 40; ++i) {
      run_for(bench, static_cast<DurationNs>(random.below(kSecond)),
              [&](const std::string& key) { starts[key].push_back(bench.now); });
      if (random.chance(0.3)) bench.reopen();
      if (random.chance(0.2)) {
        // Never above the first one, by which the windows are judged.
        rate = 1 + static_cast<double>(random.below(20));
        bench.change_rules([&](Rules& rules) { rules.mutable_key_limit()->set_per_second(rate); });
      }
    }
    for (const auto& key : keys) expect_within(starts[key], 20);
  }
}

TEST(Limits, ZeroStopsAbsenceFreesAndAChangeActsAtOnce) {
  QueueBench bench;
  bench.add_many("a", 100);
  bench.change_rules([](Rules& rules) { rules.mutable_queue_limit()->set_per_second(0); });
  EXPECT_FALSE(bench.start().has_value());
  EXPECT_EQ(bench.queue->next_release(bench.now), kNever);
  bench.change_rules([](Rules& rules) { rules.clear_queue_limit(); });
  EXPECT_EQ(bench.start_keys(10).size(), 10u);
  bench.change_rules([](Rules& rules) { rules.mutable_key_limit()->set_per_second(0); });
  EXPECT_FALSE(bench.start().has_value());
  bench.reopen();
  EXPECT_FALSE(bench.start().has_value());
  bench.change_rules([](Rules& rules) { rules.mutable_key_limit()->set_per_second(0.001); });
  EXPECT_EQ(bench.start_keys(10).size(), 1u);
  bench.change_rules([](Rules& rules) { rules.mutable_key_limit()->set_per_second(1000); });
  bench.now += 10 * kMillisecond;
  EXPECT_GE(bench.start_keys(20).size(), 10u);
  bench.change_rules([](Rules& rules) { rules.clear_key_limit(); });
  EXPECT_EQ(bench.start_keys(20).size(), 20u);
}

// A key that may not go delays nobody: 2,500 throttled tasks in front of another key's fifty.
TEST(Limits, AThrottledKeyDelaysNobody) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) {
    rules.mutable_key_limit()->set_per_second(1);
    (*rules.mutable_weights())["quick"] = 1000;
  });
  bench.add_many("slow", 2500);
  bench.add_many("quick", 50);
  int quick = 0;
  while (const auto started = bench.start()) quick += started->place.key == "quick" ? 1 : 0;
  EXPECT_EQ(quick, 50);
  EXPECT_GT(bench.queue->next_release(bench.now), bench.now);
  bench.now = bench.queue->next_release(bench.now);
  EXPECT_EQ(bench.start()->place.key, "slow");
}

TEST(Limits, AThrottledUrgentKeyDoesNotHoldBackLessUrgentWork) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) { (*rules.mutable_keys())["slow"].set_per_second(1); });
  bench.add_many("slow", 5, 0, 1);
  bench.add_many("other", 3, 0, 5);
  EXPECT_EQ(bench.start_keys(10),
            (std::vector<std::string>{"slow", "slow", "other", "other", "other"}));
}

TEST(Limits, AKeysOwnLimitHoldsAcrossRestarts) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) { (*rules.mutable_keys())["a"].set_per_second(3); });
  bench.add_many("a", 300);
  std::vector<TimeNs> starts;
  Random random(5);
  for (int i = 0; i < 30; ++i) {
    run_for(bench, static_cast<DurationNs>(random.below(kSecond)),
            [&](const std::string&) { starts.push_back(bench.now); });
    if (random.chance(0.5)) bench.reopen();
  }
  expect_within(starts, 3);
  EXPECT_GT(starts.size(), 30u);
}

// A start that was not committed takes no token.
TEST(Limits, AnUncommittedPickGivesItsTokensBack) {
  QueueBench bench;
  bench.change_rules([](Rules& rules) {
    rules.mutable_queue_limit()->set_per_second(1);
    rules.mutable_key_limit()->set_per_second(1);
  });
  bench.add_many("a", 10);
  for (int i = 0; i < 20; ++i) {
    const auto picked = bench.queue->pick(bench.now);
    ASSERT_TRUE(picked.has_value()) << i;
    bench.queue->put_back(picked->place, bench.now);
  }
  EXPECT_EQ(bench.start_keys(10).size(), 2u);
}

TEST(Limits, TheLastWordOfTheWorkersCountsUntilTheApiSpeaks) {
  QueueBench bench;
  bench.add_many("a", 100);
  bench.queue->set_worker_limit(2, bench.now);
  EXPECT_EQ(bench.start_keys(100).size(), 3u);
  bench.change_rules([](Rules& rules) { rules.mutable_queue_limit()->set_per_second(1000); });
  bench.now += kSecond;
  EXPECT_EQ(bench.start_keys(50).size(), 50u);
  bench.change_rules([](Rules& rules) { rules.clear_queue_limit(); });
  EXPECT_EQ(bench.queue->limit(), 2);
}

}  // namespace
}  // namespace fairlead::queue
