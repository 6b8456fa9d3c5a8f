// How many tasks are in memory, and that nobody can tell from the order.

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fairlead::queue
