#include "admission/ledger.h"

#include "admission/policy_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimeNs kStart = 28'333'333 * kMinute;
constexpr auto kActivity = TaskKind::kActivity;

std::shared_ptr<const Policies> overrides(const std::string& text) {
  return std::make_shared<const Policies>(policies_of(text));
}

// {"*": {"activity_tasks": {…}}}
std::shared_ptr<const Policies> everywhere(const std::string& fields) {
  return overrides(R"({"*": {"activity_tasks": {)" + fields + "}}}");
}

class LedgerTest : public ::testing::Test {
 protected:
  Ledger& make(std::shared_ptr<const Policies> policies) {
    ledger_ = std::make_unique<Ledger>(std::move(policies));
    ledger_->restored(now_);
    a_ = ledger_->open({"ns", "a", kActivity});
    b_ = ledger_->open({"ns", "b", kActivity});
    return *ledger_;
  }

  bool admit(Ledger::Queue* queue) {
    const auto decision = ledger_->admit(queue, now_);
    if (const auto* grant = std::get_if<Ledger::Grant>(&decision)) {
      last_ = *grant;
      return true;
    }
    refusal_ = std::get<Refusal>(decision);
    return false;
  }
  std::string why(Ledger::Queue* queue) {
    const auto& refusal = ledger_->refusal_of(queue);
    if (!refusal.has_value()) return "";
    return to_text(*refusal, ledger_->id_of(queue), ledger_->caps_of(queue).group, now_);
  }

  TimeNs now_ = kStart;
  std::unique_ptr<Ledger> ledger_;
  Ledger::Queue* a_ = nullptr;
  Ledger::Queue* b_ = nullptr;
  Ledger::Grant last_;
  Refusal refusal_;
};

TEST_F(LedgerTest, WithoutCapsEverythingGoesAndLeasesAreCountedAllTheSame) {
  auto& ledger = make(std::make_shared<const Policies>());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(admit(a_));
  EXPECT_FALSE(ledger_->start(last_).has_value());
  EXPECT_EQ(ledger.usage(a_, now_).leases, 100);
  EXPECT_EQ(ledger.usage(b_, now_).namespace_leases, 100);
  // A cap that comes later knows of them.
  ledger.set_policies(everywhere(R"("max_active_leases_per_namespace": 100)"));
  EXPECT_FALSE(admit(b_));
}

TEST_F(LedgerTest, AQueuesLeaseCapHoldsUntilOneComesBack) {
  auto& ledger = make(everywhere(R"("max_active_leases_per_queue": 2)"));
  EXPECT_TRUE(admit(a_));
  EXPECT_TRUE(admit(a_));
  EXPECT_FALSE(admit(a_));
  EXPECT_EQ(refusal_.budget, Budget::kQueueLeases);
  EXPECT_EQ(refusal_.retry_at, kNever);
  EXPECT_EQ(why(a_),
            "queue a: 2 of 2 activity tasks are leased; it has room when one of them ends");
  EXPECT_TRUE(admit(b_));
  ledger.release(a_, now_);
  EXPECT_TRUE(admit(a_));
  EXPECT_EQ(why(a_), "");
}

TEST_F(LedgerTest, KindsAndNamespacesHaveBudgetsOfTheirOwn) {
  auto& ledger = make(overrides(R"({"*": {
    "activity_tasks": {"max_active_leases_per_namespace": 1},
    "workflow_tasks": {"max_active_leases_per_namespace": 1}}})"));
  EXPECT_TRUE(admit(a_));
  EXPECT_FALSE(admit(b_));
  EXPECT_TRUE(admit(ledger.open({"ns", "a", TaskKind::kWorkflow})));
  EXPECT_TRUE(admit(ledger.open({"other", "a", kActivity})));
}

TEST_F(LedgerTest, ANamespacesCapSpansItsQueuesAndCallsWhoeverWaits) {
  auto& ledger = make(everywhere(R"("max_active_leases_per_namespace": 1)"));
  EXPECT_TRUE(admit(a_));
  EXPECT_FALSE(admit(b_));
  EXPECT_THAT(why(b_), ::testing::StartsWith("namespace ns: 1 of 1"));
  EXPECT_THAT(ledger.take_called(), IsEmpty());
  ledger.release(a_, now_);
  EXPECT_THAT(ledger.take_called(), ElementsAre(b_));
  EXPECT_TRUE(admit(b_));
}

// Whoever ends a task is the first to ask for the place that it left. It would win for ever.
TEST_F(LedgerTest, QueuesThatShareABudgetTakeTurns) {
  auto& ledger = make(everywhere(R"("max_active_leases_per_namespace": 1)"));
  ASSERT_TRUE(admit(a_));
  ASSERT_FALSE(admit(b_));
  for (int round = 0; round < 10; ++round) {
    ledger.release(a_, now_);
    EXPECT_FALSE(admit(a_));
    EXPECT_EQ(refusal_.cause, Refusal::Cause::kTurn);
    ASSERT_TRUE(admit(b_));
    EXPECT_FALSE(admit(b_));
    ledger.release(b_, now_);
    EXPECT_FALSE(admit(b_));
    ASSERT_TRUE(admit(a_));
  }
}

TEST_F(LedgerTest, AQueueThatIsCalledAndDoesNotComeLosesItsTurn) {
  auto& ledger = make(everywhere(R"("max_active_leases_per_namespace": 1)"));
  ASSERT_TRUE(admit(a_));
  ASSERT_FALSE(admit(b_));
  ledger.release(a_, now_);
  ASSERT_FALSE(admit(a_));
  EXPECT_EQ(refusal_.retry_at, now_ + SharedBudget::kClaim);
  now_ = refusal_.retry_at;
  EXPECT_TRUE(admit(a_));
}

TEST_F(LedgerTest, AQueueThatLeavesPassesItsTurnOn) {
  auto& ledger = make(everywhere(R"("max_active_leases_per_namespace": 1)"));
  auto* const c = ledger.open({"ns", "c", kActivity});
  ASSERT_TRUE(admit(a_));
  ASSERT_FALSE(admit(b_));
  ASSERT_FALSE(admit(c));
  ledger.release(a_, now_);
  EXPECT_THAT(ledger.take_called(), ElementsAre(b_));
  ledger.leave(b_, now_);
  EXPECT_THAT(ledger.take_called(), ElementsAre(c));
  EXPECT_TRUE(admit(c));
}

TEST_F(LedgerTest, ALowerBudgetOfOneQueueHoldsUpNobodyElse) {
  auto& ledger = make(overrides(R"({
    "ns:b": {"activity_tasks": {"max_active_leases_per_namespace": 1}},
    "ns:*": {"activity_tasks": {"max_active_leases_per_namespace": 3}}})"));
  auto* const c = ledger.open({"ns", "c", kActivity});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(admit(a_));
  ASSERT_FALSE(admit(b_));
  ASSERT_FALSE(admit(c));
  ledger.release(a_, now_);
  EXPECT_THAT(ledger.take_called(), ElementsAre(c));
  EXPECT_TRUE(admit(c));
}

TEST_F(LedgerTest, TheFirstBudgetThatIsFullIsTheCause) {
  make(everywhere(R"("max_active_leases": 1, "max_active_leases_per_namespace": 1,
                     "max_dispatches_per_minute": 1)"));
  ASSERT_TRUE(admit(a_));
  ASSERT_FALSE(admit(a_));
  EXPECT_EQ(refusal_.budget, Budget::kQueueLeases);
  ASSERT_FALSE(admit(b_));
  EXPECT_EQ(refusal_.budget, Budget::kNamespaceLeases);
  ledger_->release(a_, now_);
  // b gives its place up for as long as it holds nothing; a has had its one for this minute.
  ledger_->leave(b_, now_);
  ASSERT_FALSE(admit(a_));
  EXPECT_EQ(refusal_.budget, Budget::kQueueRate);
  EXPECT_EQ(refusal_.retry_at, kStart + kMinute);
}

TEST_F(LedgerTest, AMinuteRollsOverWithTheWallClock) {
  now_ = kStart + 50 * kSecond;
  auto& ledger = make(everywhere(R"("max_dispatches_per_minute": 2)"));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(admit(a_));
    ledger.release(a_, now_);
  }
  ASSERT_FALSE(admit(a_));
  EXPECT_EQ(why(a_),
            "queue a: 2 of 2 activity tasks were dispatched in this minute; it has room in 10.0 s");
  EXPECT_EQ(ledger.usage(a_, now_).dispatches, 2);
  now_ = refusal_.retry_at;
  EXPECT_EQ(ledger.usage(a_, now_).dispatches, 0);
  EXPECT_TRUE(admit(a_));
  EXPECT_TRUE(admit(a_));
  EXPECT_FALSE(admit(a_));
}

TEST_F(LedgerTest, ASlidingWindowLetsNoBoundaryDoubleIt) {
  now_ = kStart + 50 * kSecond;
  make(everywhere(R"("max_dispatches_per_minute": 2, "dispatch_window": "sliding")"));
  ASSERT_TRUE(admit(a_));
  now_ += 5 * kSecond;
  ASSERT_TRUE(admit(a_));
  now_ = kStart + kMinute;
  ASSERT_FALSE(admit(a_));
  EXPECT_EQ(refusal_.retry_at, kStart + 110 * kSecond);
  now_ = refusal_.retry_at;
  EXPECT_TRUE(admit(a_));
  EXPECT_FALSE(admit(a_));
}

TEST_F(LedgerTest, AGroupSpansOnlyItsQueues) {
  auto& ledger = make(overrides(R"({
    "a": {"activity_tasks": {"budget_group": "mail",
                             "max_dispatches_per_minute_per_budget_group": 2}},
    "b": {"activity_tasks": {"dispatch_budget_group": "mail",
                             "max_dispatches_per_minute_per_budget_group": 2}}})"));
  auto* const c = ledger.open({"ns", "c", kActivity});
  ASSERT_TRUE(admit(a_));
  ASSERT_TRUE(admit(b_));
  const auto record = ledger_->start(last_);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->group, "mail");
  EXPECT_FALSE(record->is_in_namespace);
  ASSERT_FALSE(admit(a_));
  EXPECT_THAT(why(a_), ::testing::StartsWith("budget group mail: 2 of 2 activity tasks"));
  EXPECT_TRUE(admit(c));
  EXPECT_EQ(ledger.usage(a_, now_).group_dispatches, 2);
  EXPECT_EQ(ledger.usage(c, now_).group_dispatches, 0);
}

TEST_F(LedgerTest, ANamespacesRateCountsOnlyQueuesThatItAppliesTo) {
  auto& ledger = make(overrides(R"({
    "ns:a": {"activity_tasks": {"max_dispatches_per_minute_per_namespace": 1}}})"));
  ASSERT_TRUE(admit(b_));
  ASSERT_TRUE(admit(b_));
  EXPECT_FALSE(ledger_->start(last_).has_value());
  EXPECT_TRUE(admit(a_));
  EXPECT_FALSE(admit(a_));
  EXPECT_EQ(ledger.usage(b_, now_).namespace_dispatches, 1);
}

TEST_F(LedgerTest, ACancelledGrantCostsNothing) {
  auto& ledger = make(everywhere(R"("max_active_leases_per_namespace": 1,
      "max_dispatches_per_minute": 1, "max_dispatches_per_minute_per_namespace": 1,
      "budget_group": "g", "max_dispatches_per_minute_per_budget_group": 1)"));
  ASSERT_TRUE(admit(a_));
  ASSERT_FALSE(admit(b_));
  ledger.cancel(last_, now_);
  EXPECT_THAT(ledger.take_called(), ElementsAre(b_));
  const auto usage = ledger.usage(a_, now_);
  EXPECT_EQ(usage.leases + usage.namespace_leases + usage.dispatches + usage.namespace_dispatches +
                usage.group_dispatches,
            0);
  EXPECT_TRUE(admit(b_));
}

TEST_F(LedgerTest, SlotsAreUsedAgainAMinuteLater) {
  auto& ledger = make(everywhere(R"("max_dispatches_per_minute": 100)"));
  for (uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(admit(a_));
    EXPECT_EQ(ledger.start(last_)->slot, i);
  }
  now_ += kMinute;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(admit(a_));
    EXPECT_LT(ledger.start(last_)->slot, 10U);
  }
  ASSERT_TRUE(admit(a_));
  EXPECT_EQ(ledger.start(last_)->slot, 10U);
}

// Two rows in one slot: the one that is written last wins, and it could be the older one.
TEST_F(LedgerTest, ASlotIsNotUsedAgainWhileItsRowIsStillToBeWritten) {
  auto& ledger = make(everywhere(R"("max_dispatches_per_minute": 100)"));
  ASSERT_TRUE(admit(a_));
  const auto slow = last_;
  now_ += kMinute;
  ASSERT_TRUE(admit(a_));
  EXPECT_NE(last_.slot, slow.slot);
  // By now its minute is over, and a row would tell nobody anything.
  EXPECT_FALSE(ledger.start(slow).has_value());
  EXPECT_TRUE(ledger.start(last_).has_value());
  ASSERT_TRUE(admit(a_));
  EXPECT_EQ(last_.slot, slow.slot);
}

TEST_F(LedgerTest, BeforeItsRowsAreReadACappedQueueIsRefusedAndAnotherIsNot) {
  Ledger ledger(overrides(R"({"a": {"activity_tasks": {"max_active_leases": 1}}})"));
  auto* const a = ledger.open({"ns", "a", kActivity});
  auto* const b = ledger.open({"ns", "b", kActivity});
  const auto decision = ledger.admit(a, now_);
  ASSERT_TRUE(std::holds_alternative<Refusal>(decision));
  EXPECT_EQ(std::get<Refusal>(decision).cause, Refusal::Cause::kUnavailable);
  EXPECT_EQ(std::get<Refusal>(decision).look_again_at(now_), now_ + kSecond);
  EXPECT_TRUE(std::holds_alternative<Ledger::Grant>(ledger.admit(b, now_)));
  ledger.restore_lease({"ns", "a", kActivity});
  ledger.restored(now_);
  EXPECT_TRUE(std::holds_alternative<Refusal>(ledger.admit(a, now_)));
  ledger.release(a, now_);
  EXPECT_TRUE(std::holds_alternative<Ledger::Grant>(ledger.admit(a, now_)));
}

TEST_F(LedgerTest, AReloadKeepsCountsAndCallsWhoeverWaits) {
  auto& ledger = make(everywhere(R"("max_active_leases": 1, "max_dispatches_per_minute": 5)"));
  ASSERT_TRUE(admit(a_));
  ASSERT_FALSE(admit(a_));
  ledger.set_policies(everywhere(R"("max_active_leases": 2, "max_dispatches_per_minute": 2,
                                    "dispatch_window": "sliding")"));
  EXPECT_THAT(ledger.take_called(), ElementsAre(a_));
  EXPECT_TRUE(admit(a_));
  EXPECT_EQ(ledger.usage(a_, now_).dispatches, 2);
  // Lowered below what is out: nothing is revoked.
  ledger.set_policies(everywhere(R"("max_active_leases": 1)"));
  ledger.release(a_, now_);
  EXPECT_FALSE(admit(a_));
  ledger.release(a_, now_);
  EXPECT_TRUE(admit(a_));
}

TEST_F(LedgerTest, ClosedQueuesAreForgottenOnceNothingOfThemCounts) {
  auto& ledger = make(everywhere(R"("max_dispatches_per_minute": 5)"));
  ASSERT_TRUE(admit(a_));
  ledger.close(a_, now_);
  ledger.close(b_, now_);
  ledger.sweep(now_);
  EXPECT_EQ(ledger.queues(), 1U);
  ledger.release(a_, now_);
  ledger.sweep(now_);
  EXPECT_EQ(ledger.queues(), 1U);
  ledger.sweep(now_ + kMinute);
  EXPECT_EQ(ledger.queues(), 0U);
}

}  // namespace
}  // namespace fairlead::admission
