// A task that its maker takes along, charged before it is written: as if it had waited and been
// picked.

#include <gtest/gtest.h>

#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

using Rules = model::QueueRules;

// Keys a and b wait at level 3 but cannot go, and both owe something; at level 2 and 3 a new task
// of c may go past them.
void prepare(QueueBench& bench) {
  bench.add_many("a", 3, 2);
  bench.add_many("b", 3, 1);
  bench.start_keys(1);
  bench.change_rules([](Rules& rules) {
    rules.mutable_queue_limit()->set_per_second(1000);
    (*rules.mutable_keys())["a"].mutable_pause();
    (*rules.mutable_keys())["b"].mutable_pause();
  });
}

std::vector<std::string> rest_of(QueueBench& bench) {
  bench.change_rules([](Rules& rules) { rules.clear_keys(); });
  bench.add_many("c", 3);
  return bench.start_keys(99);
}

// Nobody may tell from the rows, or from the order after it, by which of the two ways a task went
// out.
TEST(Claim, IsRememberedAsAHandOverIs) {
  QueueBench handed;
  QueueBench claimed;
  prepare(handed);
  prepare(claimed);
  ASSERT_TRUE(handed.queue->may_hand_over(3, "c", handed.now));
  ASSERT_TRUE(handed.queue->hand_over_leaves_rows(3));
  handed.queue->hand_over(3, "c", 0, handed.now);
  handed.write();
  const auto place = claimed.queue->claim(3, "c", 0, claimed.now);
  claimed.queue->started(place, claimed.now);
  claimed.write();
  EXPECT_EQ(claimed.disk.accounts, handed.disk.accounts);
  EXPECT_EQ(claimed.disk.limiters, handed.disk.limiters);
  EXPECT_EQ(claimed.disk.state, handed.disk.state);
  EXPECT_EQ(claimed.queue->running(), handed.queue->running());
  EXPECT_EQ(rest_of(claimed), rest_of(handed));
}

// Until its step is written it has not happened, whatever else is written meanwhile.
TEST(Claim, ACrashBeforeItIsWrittenCostsItsKeyNothing) {
  QueueBench bench;
  QueueBench other;
  prepare(bench);
  prepare(other);
  (void)bench.queue->claim(3, "c", 0, bench.now);
  bench.write();
  bench.reopen();
  EXPECT_EQ(rest_of(bench), rest_of(other));
}

// Others of its key come and go while it is out; its end is charged to nobody else.
TEST(Claim, LeavesOtherPicksOfItsKeyAlone) {
  QueueBench bench;
  const auto claimed = bench.queue->claim(3, "c", 0, bench.now);
  bench.add_many("c", 2);
  bench.add_many("d", 2);
  const auto picked = bench.queue->pick(bench.now);
  ASSERT_EQ(picked->place.key, "c");
  bench.queue->started(claimed, bench.now);
  bench.write();
  bench.reopen();  // the pick was never written: c is as much due as d, and older
  EXPECT_EQ(bench.start()->place.key, "c");
  EXPECT_EQ(bench.start()->place.key, "d");
  EXPECT_TRUE(bench.queue->size() == 2);
}

}  // namespace
}  // namespace fairlead::queue
