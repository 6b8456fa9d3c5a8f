// How many tasks are in memory, and that nobody can tell from the order.

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

Settings with_bound(size_t tasks_max) {
  Settings settings;
  settings.tasks_in_memory_max = tasks_max;
  return settings;
}

std::string name_of(uint64_t key) { return "k" + std::to_string(key); }

// Eight times as many keys as tasks that may be in memory, and all of them are served in turn.
TEST(Memory, TheBoundHoldsWithMoreKeysThanTasksInMemory) {
  for (const size_t bound : {0U, 1U, 50U}) {
    QueueBench bounded(with_bound(bound));
    QueueBench free(with_bound(1'000'000));
    for (int round = 0; round < 4; ++round) {
      for (uint64_t key = 0; key < 400; ++key) {
        for (auto* bench : {&bounded, &free}) {
          bench->add(name_of(key), static_cast<float>(1 + key % 3));
        }
      }
    }
    EXPECT_LE(bounded.queue->tasks_in_memory(), bound);
    for (int i = 0; i < 1600; ++i) {
      const auto expected = free.start();
      const auto started = bounded.start();
      ASSERT_TRUE(expected.has_value() && started.has_value());
      ASSERT_EQ(started->place, expected->place) << "start " << i;
      ASSERT_LE(bounded.queue->tasks_in_memory(), bound) << "start " << i;
    }
    EXPECT_EQ(bounded.queue->size(), 0);
    EXPECT_FALSE(bounded.start().has_value());
  }
}

// Everything that may happen to a queue, with a few picks out at a time: each of them may have
// brought two tasks into memory beside the bound, its own and the next of its line.
TEST(Memory, TheBoundHoldsInEveryStoryAndTheOrderIsTheSame) {
  constexpr size_t kOutMax = 5;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const size_t bound = random.below(12);
    QueueBench bounded(with_bound(bound));
    QueueBench free(with_bound(1'000'000));
    std::vector<Place> out;
    std::vector<Place> waiting;
    for (int step = 0; step < 1500; ++step) {
      const uint64_t what = random.below(100);
      if (what < 45) {
        const auto key = name_of(random.below(40));
        const auto level = static_cast<uint32_t>(1 + random.below(2));
        free.add(key, 0, level);
        waiting.push_back(bounded.add(key, 0, level));
      } else if (what < 75 && out.size() < kOutMax) {
        const auto expected = free.queue->pick(free.now);
        const auto picked = bounded.queue->pick(bounded.now);
        ASSERT_EQ(picked.has_value(), expected.has_value());
        if (!picked.has_value()) continue;
        ASSERT_EQ(picked->place, expected->place) << "seed " << seed << " step " << step;
        out.push_back(picked->place);
        std::erase(waiting, picked->place);
      } else if (what < 95 && !out.empty()) {
        const size_t at = random.below(out.size());
        const auto place = out[at];
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(at));
        if (what < 88) {
          free.commit(place);
          bounded.commit(place);
        } else {
          free.queue->put_back(place, free.now);
          bounded.queue->put_back(place, bounded.now);
          waiting.push_back(place);
        }
      } else if (!waiting.empty()) {
        const size_t at = random.below(waiting.size());
        free.remove(waiting[at]);
        bounded.remove(waiting[at]);
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
      }
      ASSERT_EQ(bounded.queue->size(), static_cast<int64_t>(waiting.size()));
      ASSERT_LE(bounded.queue->tasks_in_memory(), bound + 2 * kOutMax)
          << "seed " << seed << " step " << step;
    }
  }
}

// A client that makes up a new key for every task must not cost a line for each of them.
TEST(Memory, KeysBeyondTheBoundShareLines) {
  Settings settings;
  settings.keys_max = 100;
  QueueBench bench(settings);
  const auto add = [&](const std::string& key) {
    const auto line = bench.queue->line_of(key);
    bench.add(line);
    return line;
  };
  for (uint64_t key = 0; key < 100; ++key) EXPECT_EQ(add(name_of(key)), name_of(key));
  bench.change_rules([](auto& rules) { (*rules.mutable_weights())["paying"] = 5; });
  std::map<std::string, std::string> lines;
  for (uint64_t key = 100; key < 3000; ++key) {
    const auto line = lines[name_of(key)] = add(name_of(key));
    ASSERT_TRUE(is_shared_line(line)) << line;
  }
  EXPECT_EQ(add(name_of(7)), name_of(7)) << "who is there keeps a line of its own";
  EXPECT_EQ(add("paying"), "paying") << "somebody has made a rule for this one";
  EXPECT_LE(bench.queue->keys(), 101 + kSharedLines);

  bench.reopen();
  for (const auto& [key, line] : lines) ASSERT_EQ(bench.queue->line_of(key), line);
  int started = 0;
  while (bench.start().has_value()) ++started;
  EXPECT_EQ(started, 3002);
  for (const auto& [key, count] : std::map<std::string, int>(bench.disk.leases)) {
    for (int i = 0; i < count; ++i) bench.finish(key);
  }
  // Those that were served last are remembered for a while.
  while (bench.queue->keys() >= settings.keys_max) {
    bench.add(name_of(0));
    bench.start();
    bench.finish(name_of(0));
  }
  EXPECT_EQ(add("newcomer"), "newcomer") << "there is room again";
}

// Rows are found by it: it must be the same in every build.
TEST(Memory, WhichLineAKeySharesIsDecidedForEver) {
  EXPECT_EQ(shared_line("acme"), "/_sys/shared/60540");
}

}  // namespace
}  // namespace fairlead::queue
