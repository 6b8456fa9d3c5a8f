#include "queue/task_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"

namespace fairlead::queue {
namespace {

Task task(int64_t number) {
  Task task;
  task.scheduled_id = number;
  return task;
}

void push(TaskQueue& queue, uint32_t level, int64_t number) {
  queue.add(queue.reserve(level), task(number));
}

// Urgent before batch: a tenant's nightly job must not delay what a customer waits for.
TEST(TaskQueue, AnUrgentTaskGoesBeforeEverythingLessUrgent) {
  TaskQueue queue(TaskSeq(1));
  push(queue, 5, 50);
  push(queue, 3, 30);
  push(queue, 1, 10);
  push(queue, 3, 31);
  EXPECT_EQ(queue.pick()->task.scheduled_id, 10);
  EXPECT_EQ(queue.pick()->task.scheduled_id, 30);
  EXPECT_EQ(queue.pick()->task.scheduled_id, 31);
  EXPECT_EQ(queue.pick()->task.scheduled_id, 50);
  EXPECT_FALSE(queue.pick().has_value());
}

// A pick that came to nothing must not cost the task its place.
TEST(TaskQueue, ATaskPutBackIsWhereItWas) {
  TaskQueue queue(TaskSeq(1));
  push(queue, 3, 1);
  push(queue, 3, 2);
  const auto first = *queue.pick();
  queue.put_back(first);
  EXPECT_EQ(queue.pick()->task.scheduled_id, 1);
}

TEST(TaskQueue, ATaskRemovedWhileItWasOutDoesNotComeBack) {
  TaskQueue queue(TaskSeq(1));
  push(queue, 3, 1);
  const auto picked = *queue.pick();
  queue.remove(picked.place);
  queue.put_back(picked);
  EXPECT_FALSE(queue.pick().has_value());
  EXPECT_TRUE(queue.is_idle());
}

TEST(TaskQueue, KeysBeyondTheLevelsBelongToTheLastAndNoneToTheMiddle) {
  model::Priority priority;
  EXPECT_EQ(effective_level(priority), 3u);
  priority.set_priority_key(1);
  EXPECT_EQ(effective_level(priority), 1u);
  priority.set_priority_key(1'000'000);
  EXPECT_EQ(effective_level(priority), 5u);
}

TEST(TaskQueue, ImpossiblePrioritiesAreRefused) {
  model::Priority priority;
  EXPECT_TRUE(check_priority(priority).ok());
  priority.set_priority_key(-1);
  EXPECT_EQ(check_priority(priority).message(), "priority key can't be negative");
  priority.set_priority_key(1);
  priority.set_fairness_key(std::string(65, 'k'));
  EXPECT_EQ(check_priority(priority).message(), "fairness key length exceeds limit");
  priority.set_fairness_key("tenant");
  for (const float weight : {-1.0F, std::nanf(""), INFINITY}) {
    priority.set_fairness_weight(weight);
    EXPECT_EQ(check_priority(priority).message(), "must be greater than zero") << weight;
  }
}

// The whole queue against the plainest model of it: a sorted set. The model's rows play the disk.
TEST(TaskQueue, HandsOutEveryTaskOnceAndInOrderHoweverSmallItsWindow) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    TaskQueue queue(TaskSeq(1), 1 + random.below(8));
    std::map<Place, int64_t> rows;  // what is on disk
    std::map<Place, Waiting> out;   // picked and undecided
    int64_t number = 0;
    const auto page_in = [&] {
      while (const auto after = queue.page_needed()) {
        std::vector<Waiting> page;
        const size_t size = 1 + random.below(4);
        for (auto at = rows.upper_bound(*after); at != rows.end() && page.size() < size; ++at) {
          if (at->first.level != after->level) break;
          if (!out.contains(at->first)) page.push_back({at->first, task(at->second)});
        }
        const bool is_last = page.size() < size;
        queue.add_page(after->level, page, is_last);
      }
    };
    for (int step = 0; step < 400; ++step) {
      const auto choice = random.below(10);
      if (choice < 4) {
        const auto place = queue.reserve(static_cast<uint32_t>(1 + random.below(kLevels)));
        rows[place] = ++number;
        queue.add(place, task(number));
      } else if (choice < 7) {
        page_in();
        const auto picked = queue.pick();
        std::optional<Place> expected;
        for (const auto& [place, value] : rows) {
          if (!out.contains(place)) {
            expected = place;
            break;
          }
        }
        ASSERT_EQ(picked.has_value(), expected.has_value()) << "seed " << seed << " step " << step;
        if (!picked.has_value()) continue;
        ASSERT_TRUE(picked->place == *expected) << "seed " << seed << " step " << step;
        ASSERT_EQ(picked->task.scheduled_id, rows[*expected]);
        out[picked->place] = *picked;
      } else if (choice == 7 && !out.empty()) {
        queue.started(out.begin()->first);
        rows.erase(out.begin()->first);
        out.erase(out.begin());
      } else if (choice == 8 && !out.empty()) {
        queue.put_back(out.begin()->second);
        out.erase(out.begin());
      } else if (choice == 9 && !rows.empty()) {
        auto at = rows.begin();
        std::advance(at, random.below(rows.size()));
        queue.remove(at->first);
        out.erase(at->first);
        rows.erase(at);
      }
      ASSERT_EQ(queue.size(), static_cast<int64_t>(rows.size() - out.size())) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace fairlead::queue
