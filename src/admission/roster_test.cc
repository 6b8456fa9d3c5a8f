#include "admission/roster.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

constexpr TimeNs kStart = 28'333'333 * kMinute;
constexpr DurationNs kStaleAfter = 60 * kSecond;
const Roster::Place kPayments{"production", "payments"};

Slots workflow_slots(const Roster& roster, TimeNs now) {
  return roster.slots(kPayments, TaskKind::kWorkflow, kStaleAfter, now);
}

TEST(Roster, AddsUpTheSlotsOfActiveWorkers) {
  Roster roster;
  ASSERT_TRUE(roster.put(kPayments, "one", {8, 12}, kStart).ok());
  ASSERT_TRUE(roster.put(kPayments, "two", {8, std::nullopt}, kStart).ok());
  ASSERT_TRUE(roster.put({"production", "email"}, "three", {50, 50}, kStart).ok());
  EXPECT_EQ(workflow_slots(roster, kStart).active_workers, 2);
  EXPECT_EQ(workflow_slots(roster, kStart).configured, 16);
  EXPECT_EQ(roster.slots(kPayments, TaskKind::kActivity, kStaleAfter, kStart).configured,
            12 + Roster::kSlotsUnsaid);
  // Registering again replaces.
  ASSERT_TRUE(roster.put(kPayments, "one", {1, 1}, kStart).ok());
  EXPECT_EQ(workflow_slots(roster, kStart).configured, 9);
  EXPECT_TRUE(roster.remove(kPayments, "one"));
  EXPECT_FALSE(roster.remove(kPayments, "one"));
  EXPECT_EQ(workflow_slots(roster, kStart).configured, 8);
}

// A worker may say any number; two of them must not add up to fewer than none.
TEST(Roster, SlotsAddUpToTheMostThereCanBe) {
  Roster roster;
  ASSERT_TRUE(roster.put(kPayments, "one", {100, 1}, kStart).ok());
  ASSERT_TRUE(roster.put(kPayments, "two", {kNever, 1}, kStart).ok());
  EXPECT_EQ(workflow_slots(roster, kStart).configured, kNever);
}

TEST(Roster, AWorkerThatIsNotHeardOfIsStaleUntilItsNextHeartbeat) {
  Roster roster;
  ASSERT_TRUE(roster.put(kPayments, "one", {8, 8}, kStart).ok());
  EXPECT_EQ(workflow_slots(roster, kStart + kStaleAfter - 1).active_workers, 1);
  EXPECT_EQ(workflow_slots(roster, kStart + kStaleAfter).active_workers, 0);
  EXPECT_EQ(workflow_slots(roster, kStart + kStaleAfter).stale_workers, 1);
  EXPECT_EQ(workflow_slots(roster, kStart + kStaleAfter).configured, 0);
  EXPECT_TRUE(roster.heartbeat(kPayments, "one", kStart + kStaleAfter));
  EXPECT_EQ(workflow_slots(roster, kStart + kStaleAfter).active_workers, 1);
  EXPECT_FALSE(roster.heartbeat(kPayments, "nobody", kStart));
}

TEST(Roster, ADrainingWorkerDoesNotCount) {
  Roster roster;
  ASSERT_TRUE(roster.put(kPayments, "one", {8, 8}, kStart).ok());
  EXPECT_TRUE(roster.set_draining(kPayments, "one", true));
  EXPECT_EQ(workflow_slots(roster, kStart).active_workers, 0);
  EXPECT_TRUE(roster.set_draining(kPayments, "one", false));
  EXPECT_EQ(workflow_slots(roster, kStart).active_workers, 1);
}

// A poll says what a worker takes, and nothing of how much.
TEST(Roster, AWorkerThatOnlyPollsCountsForTheKindThatItPolls) {
  Roster roster;
  roster.seen(kPayments, "sdk", TaskKind::kWorkflow, kStart);
  EXPECT_EQ(workflow_slots(roster, kStart).configured, Roster::kSlotsUnsaid);
  EXPECT_EQ(roster.slots(kPayments, TaskKind::kActivity, kStaleAfter, kStart).configured, 0);
  EXPECT_FALSE(roster.heartbeat(kPayments, "sdk", kStart));
  // A registered worker's polls are no heartbeats.
  ASSERT_TRUE(roster.put(kPayments, "one", {8, 8}, kStart).ok());
  roster.seen(kPayments, "one", TaskKind::kWorkflow, kStart + kStaleAfter);
  EXPECT_EQ(workflow_slots(roster, kStart + kStaleAfter).active_workers, 0);
}

TEST(Roster, IsBoundedAndForgets) {
  Roster roster;
  for (size_t i = 0; i < Roster::kWorkersPerQueueMax; ++i) {
    ASSERT_TRUE(roster.put(kPayments, absl::StrCat("w", i), {1, 1}, kStart).ok());
  }
  EXPECT_EQ(roster.put(kPayments, "more", {1, 1}, kStart).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(roster.put(kPayments, "w0", {1, 1}, kStart + kDay).ok());
  roster.forget(kStart + kHour);
  EXPECT_EQ(workflow_slots(roster, kStart + kDay).active_workers, 1);
  roster.forget(kStart + 2 * kDay);
  EXPECT_EQ(roster.queues(), 0U);
}

}  // namespace
}  // namespace fairlead::admission
