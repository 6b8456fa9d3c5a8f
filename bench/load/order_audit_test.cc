#include "load/order_audit.h"

#include <gtest/gtest.h>

namespace fairlead::load {
namespace {

TEST(KeyGroup, IsWrittenAsNumbersWithAnXBetween) {
  KeyGroup group;
  ASSERT_TRUE(KeyGroup::parse("300x10", &group));
  EXPECT_EQ(group.keys, 300);
  EXPECT_EQ(group.tasks, 10);
  EXPECT_EQ(group.weight, 1);
  EXPECT_EQ(group.priority, 0);
  ASSERT_TRUE(KeyGroup::parse("1x500x0.25x4", &group));
  EXPECT_EQ(group.tasks, 500);
  EXPECT_EQ(group.weight, 0.25);
  EXPECT_EQ(group.priority, 4);
}

TEST(KeyGroup, RefusesWhatIsNotOne) {
  KeyGroup group;
  for (const char* text : {"", "300", "300x", "x10", "0x10", "3x0", "3x-1", "3x1x0", "3x1xnan",
                           "3x1x1x", "3x1x1x1x1", "3x1,5", " 3x1", "3x1x1x2.5"}) {
    EXPECT_FALSE(KeyGroup::parse(text, &group)) << text;
  }
}

TEST(OrderAudit, NumbersTasksKeyByKey) {
  const OrderAudit audit({{.keys = 2, .tasks = 3}, {.keys = 1, .tasks = 1, .weight = 5}});
  EXPECT_EQ(audit.arrived(), 7);
  EXPECT_EQ(audit.keys(), 3);
  EXPECT_EQ(audit.key_of(2), 0);
  EXPECT_EQ(audit.key_of(3), 1);
  EXPECT_EQ(audit.key_of(6), 2);
  EXPECT_EQ(audit.weight(2), 5);
}

TEST(OrderAudit, SeesFirstComeFirstServed) {
  OrderAudit audit({{.keys = 10, .tasks = 100}});
  for (int64_t task = 0; task < 1000; ++task) ASSERT_TRUE(audit.dispatch(task));
  // The first key is served whole when it should have had a tenth, the last one waits for 900.
  EXPECT_NEAR(audit.distance().ahead, 90, 1e-9);
  EXPECT_NEAR(audit.distance().behind, 90, 1e-9);
  EXPECT_EQ(audit.dispatched(), 1000);
  EXPECT_EQ(audit.dispatched(9), 100);
}

TEST(OrderAudit, ATaskThatComesTwiceCountsOnce) {
  OrderAudit audit({{.keys = 1, .tasks = 2}});
  EXPECT_TRUE(audit.dispatch(1));
  EXPECT_FALSE(audit.dispatch(1));
  EXPECT_EQ(audit.dispatched(), 1);
}

TEST(OrderAudit, SharesAreMeasuredWithinALevel) {
  OrderAudit audit({{.keys = 2, .tasks = 2, .weight = 1, .priority = 1},
                    {.keys = 2, .tasks = 2, .weight = 1, .priority = 2}});
  for (const int64_t task : {0, 2, 1, 3, 4, 6, 5, 7}) audit.dispatch(task);
  EXPECT_NEAR(audit.distance().worst(), 0.5, 1e-9);
  EXPECT_EQ(audit.inversions(), 0);
}

TEST(OrderAudit, CountsTasksThatLeftWhileAMoreUrgentOneWaited) {
  OrderAudit audit({{.keys = 1, .tasks = 2, .weight = 1, .priority = 1},
                    {.keys = 1, .tasks = 2},
                    {.keys = 1, .tasks = 1, .weight = 1, .priority = 5}});
  audit.dispatch(2);  // The middle, while level 1 waits.
  audit.dispatch(0);
  audit.dispatch(4);  // Level 5, while both others wait.
  audit.dispatch(1);
  audit.dispatch(3);
  EXPECT_EQ(audit.inversions(), 2);
}

TEST(OrderAudit, CountsTasksThatOvertookAnOlderBatchOfTheirKey) {
  OrderAudit audit({{.keys = 2, .tasks = 2}});
  audit.arrive(1);
  EXPECT_EQ(audit.arrived(), 6);
  audit.dispatch(1);  // Within a batch there is no order.
  audit.dispatch(4);  // Key 0 of the new batch, and task 0 still waits.
  audit.dispatch(0);
  audit.dispatch(2);
  audit.dispatch(3);
  audit.dispatch(5);  // Key 1 of the new batch, in its turn.
  EXPECT_EQ(audit.overtakes(), 1);
}

TEST(OrderAudit, NewWeightsCountForWhatWaits) {
  OrderAudit audit({{.keys = 2, .tasks = 10}});
  audit.reweight({9, 1});
  for (int64_t task = 0; task < 5; ++task) audit.dispatch(task);
  EXPECT_NEAR(audit.distance().behind, 0.5, 1e-9);
  EXPECT_NEAR(audit.distance().ahead, 0.5, 1e-9);
}

}  // namespace
}  // namespace fairlead::load
