#include "queue/window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"

namespace fairlead::queue {
namespace {

bool is_same(const Numbered& a, const Numbered& b) {
  return a.seq == b.seq && a.task.run == b.task.run && a.task.scheduled_id == b.task.scheduled_id &&
         a.task.stamp == b.task.stamp && a.task.created_ns == b.task.created_ns &&
         a.task.weight == b.task.weight && a.task.shard == b.task.shard &&
         a.task.is_pinned == b.task.is_pinned && a.task.type == b.task.type;
}

uint64_t number(Random& random) { return random.next() >> random.below(64); }

Numbered task_at(Random& random, uint64_t seq) {
  Numbered task;
  task.seq = TaskSeq(seq);
  for (char& byte : task.task.run) byte = static_cast<char>(random.next());
  task.task.scheduled_id = static_cast<int64_t>(number(random));
  task.task.stamp = number(random);
  task.task.created_ns = static_cast<TimeNs>(number(random));
  if (random.chance(0.3)) task.task.created_ns = -task.task.created_ns;
  if (random.chance(0.3)) task.task.weight = static_cast<float>(random.below(1000)) / 7;
  task.task.shard = ShardId(static_cast<uint16_t>(random.next()));
  task.task.is_pinned = random.chance(0.3);
  if (random.chance(0.3)) task.task.type = TaskType(random.next());
  return task;
}

// Packing loses nothing, whatever the numbers: a window does what a sorted list of tasks does.
TEST(Window, IsASortedListOfTasks) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Window window;
    std::vector<Numbered> list;
    const auto by_seq = [](const Numbered& a, const Numbered& b) { return a.seq < b.seq; };
    const uint64_t step_bits = random.below(40);
    uint64_t last = number(random) / 2;
    for (int i = 0; i < 400; ++i) {
      const auto choice = random.below(10);
      if (choice < 5) {
        last += 1 + (random.next() & ((uint64_t{1} << step_bits) - 1));
        list.push_back(task_at(random, last));
        window.push_back(list.back());
      } else if (choice == 5 && !list.empty()) {
        // One that comes back to the front, or between others.
        const uint64_t near = list[random.below(list.size())].seq.value();
        const auto task = task_at(random, near == 0 ? 0 : near - 1);
        const auto at = std::lower_bound(list.begin(), list.end(), task, by_seq);
        if (at != list.end() && at->seq == task.seq) continue;
        list.insert(at, task);
        window.insert(task);
      } else if (choice < 8 && !list.empty()) {
        const auto first = window.front();
        window.pop_front();
        list.erase(list.begin());
        if (random.chance(0.3)) {
          window.insert(first);
          list.insert(list.begin(), first);
        }
      } else if (choice == 8 && !list.empty()) {
        const size_t at = random.below(list.size());
        const TaskSeq seq = list[at].seq;
        ASSERT_EQ(window.before(seq), at);
        ASSERT_TRUE(window.erase(seq));
        ASSERT_FALSE(window.erase(seq));
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (random.chance(0.1) && !list.empty()) {
        list.resize(std::min<size_t>(list.size(), 1 + random.below(20)));
        ASSERT_EQ(window.trim(list.size()), list.back().seq);
      }
      ASSERT_EQ(window.size(), list.size()) << "seed " << seed << ", step " << i;
      ASSERT_EQ(window.empty(), list.empty());
      if (!list.empty()) {
        ASSERT_TRUE(is_same(window.front(), list.front())) << "seed " << seed << ", step " << i;
      }
    }
    for (const auto& task : list) {
      ASSERT_TRUE(is_same(window.front(), task)) << "seed " << seed;
      window.pop_front();
    }
    ASSERT_TRUE(window.empty());
  }
}

TEST(Window, TheLargestNumbersFit) {
  Window window;
  Numbered small;
  Numbered large{TaskSeq(std::numeric_limits<uint64_t>::max()), {}};
  large.task.scheduled_id = std::numeric_limits<int64_t>::min();
  large.task.stamp = std::numeric_limits<uint64_t>::max();
  large.task.created_ns = std::numeric_limits<TimeNs>::min();
  large.task.weight = 0.5F;
  large.task.shard = ShardId(std::numeric_limits<uint16_t>::max());
  small.seq = TaskSeq(std::numeric_limits<uint64_t>::max() / 2);
  window.push_back(small);
  window.push_back(large);
  EXPECT_TRUE(is_same(window.front(), small));
  window.pop_front();
  EXPECT_TRUE(is_same(window.front(), large));
}

}  // namespace
}  // namespace fairlead::queue
