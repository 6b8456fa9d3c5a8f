#include "history/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/history_testing.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;

TEST(Lifecycle, TheRunsTimeoutsAreTheShorterOnes) {
  Bench bench;
  bench.run.state.set_execution_timeout_ns(kHour);
  bench.run.state.set_task_timeout_ns(kHour);
  bench.start();
  const auto& started = bench.events[0].workflow_started();
  EXPECT_EQ(started.run_timeout_ns(), kHour);
  EXPECT_EQ(started.task_timeout_ns(), 120 * kSecond);
  EXPECT_EQ(bench.run.state.run_expiration_ns(), bench.now + kHour);
}

TEST(Lifecycle, ADelayedStartHasNoTaskUntilItsTime) {
  Bench bench;
  bench.start({.start_delay = kMinute});
  EXPECT_THAT(bench.kinds(), ElementsAre(model::WORKFLOW_STARTED));
  bench.signal();
  EXPECT_FALSE(bench.run.state.has_workflow_task()) << "a signal does not end the delay";
  bench.wait(kMinute);
  EXPECT_TRUE(bench.run.state.has_workflow_task());
}

TEST(Lifecycle, ACancelRequestEndsTheDelay) {
  Bench bench;
  bench.start({.start_delay = kMinute});
  bench.step([](Transaction& tx) { request_cancel(tx, "", ""); });
  EXPECT_TRUE(bench.run.state.has_workflow_task());
}

TEST(Lifecycle, ARepeatedCancelRequestHasNoEffect) {
  Bench bench;
  bench.start();
  bench.step([](Transaction& tx) { request_cancel(tx, "", ""); });
  const size_t before = bench.events.size();
  bench.step([](Transaction& tx) { request_cancel(tx, "", ""); });
  EXPECT_EQ(bench.events.size(), before);
}

TEST(Lifecycle, TerminationEndsTheTaskThatIsOutAndKeepsWhatWasBuffered) {
  Bench bench;
  bench.start();
  bench.take_task();
  bench.signal();
  const size_t before = bench.events.size();
  bench.step([](Transaction& tx) { terminate_by_server(tx, "enough"); });
  EXPECT_THAT(bench.kinds(before),
              ElementsAre(model::WORKFLOW_TASK_FAILED, model::WORKFLOW_SIGNALED,
                          model::WORKFLOW_TERMINATED));
  EXPECT_EQ(bench.events[before].workflow_task_ended().identity(), "history-service");
  EXPECT_TRUE(bench.closed_now);
  EXPECT_EQ(bench.run.state.status(), model::TERMINATED);
  EXPECT_EQ(next_deadline(bench.run), bench.now + kDay) << "only its deletion is left";
}

TEST(Lifecycle, ClosingTakesEverythingPendingOutOfTheQueues) {
  Bench bench;
  bench.start();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({schedule("a"), start_timer("t", kHour)}));
  bench.run.find_activity("a")->mutable_place()->set_seq(3);
  bench.signal();
  bench.run.state.mutable_workflow_task()->mutable_place()->set_seq(4);
  bench.step([](Transaction& tx) { terminate_by_server(tx, "enough"); });
  EXPECT_EQ(bench.drops.size(), 2u);
  EXPECT_TRUE(bench.offers.empty());
  EXPECT_TRUE(bench.run.activities.empty());
  EXPECT_TRUE(bench.run.timers.empty());
}

TEST(Lifecycle, ARunTimesOutAtItsExpirationAndNotBefore) {
  Bench bench;
  bench.run.state.set_run_timeout_ns(kMinute);
  bench.start();
  bench.wait(kMinute - 1);
  EXPECT_TRUE(bench.run.is_open());
  bench.wait(1);
  EXPECT_EQ(bench.run.state.status(), model::TIMED_OUT);
  EXPECT_EQ(bench.events.back().workflow_closed().retry_state(), model::RETRY_POLICY_NOT_SET);
}

// The end of the chain is rounded to a millisecond. A run that has all of the chain's time must not
// end a moment earlier, as if only its own time were over.
TEST(Lifecycle, ARunThatHasAllTheTimeEndsForLackOfIt) {
  Bench bench;
  bench.now += 1;
  bench.run.state.set_execution_timeout_ns(kMinute);
  bench.start();
  bench.wait(kMinute + kMillisecond);
  EXPECT_EQ(bench.run.state.status(), model::TIMED_OUT);
  EXPECT_EQ(bench.events.back().workflow_closed().retry_state(), model::RETRY_TIMEOUT);
  EXPECT_EQ(bench.run.state.run_expiration_ns(), bench.run.state.execution_expiration_ns());
}

TEST(Lifecycle, TimersFireInTheOrderOfTheirTimes) {
  Bench bench;
  bench.start();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({start_timer("late", 3 * kSecond), start_timer("soon", kSecond),
                                   start_timer("mid", 2 * kSecond)}));
  const size_t before = bench.events.size();
  bench.wait(kHour);
  ASSERT_THAT(bench.kinds(before), ElementsAre(model::TIMER_FIRED, model::TIMER_FIRED,
                                               model::TIMER_FIRED, model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(bench.events[before].timer_ended().timer_id(), "soon");
  EXPECT_EQ(bench.events[before + 1].timer_ended().timer_id(), "mid");
  EXPECT_EQ(bench.events[before + 2].timer_ended().timer_id(), "late");
}

TEST(Lifecycle, TooLongAHistoryEndsTheRun) {
  Bench bench;
  bench.limits.history_events = 10;
  bench.start();
  for (int i = 0; i < 20 && bench.run.is_open(); ++i) bench.signal();
  EXPECT_EQ(bench.run.state.status(), model::TERMINATED);
  EXPECT_EQ(bench.events.back().workflow_closed().reason(),
            "Workflow history count exceeds limit.");
}

TEST(Lifecycle, TooMuchInOneStepEndsTheRun) {
  Bench bench;
  bench.limits.transaction_bytes = 1000;
  bench.start();
  bench.signal(std::string(2000, 's'));
  EXPECT_EQ(bench.run.state.status(), model::TERMINATED);
  EXPECT_EQ(bench.events.back().workflow_closed().reason(), "Transaction size exceeds limit.");
}

TEST(Lifecycle, TooMuchToRememberEndsTheRun) {
  Bench bench;
  bench.limits.state_bytes = 20'000;
  bench.start();
  bench.take_task();
  bench.complete_task({schedule("a"), schedule("b")});
  bench.take_activity("a");
  bench.take_activity("b");
  for (const char* id : {"a", "b"}) {
    EXPECT_TRUE(bench.run.is_open());
    bench.step([&](Transaction& tx) {
      heartbeat_activity(tx, *bench.run.find_activity(std::string(id)), std::string(12'000, 'h'));
    });
  }
  EXPECT_EQ(bench.run.state.status(), model::TERMINATED);
  EXPECT_EQ(bench.events.back().workflow_closed().reason(),
            "Workflow mutable state size exceeds limit.");
}

// Each field by itself: what is said wins, what is not said is inherited.
TEST(Lifecycle, PrioritiesAreInheritedFieldByField) {
  model::Priority parent;
  parent.set_priority_key(1);
  parent.set_fairness_key("tenant");
  parent.set_fairness_weight(2.5);
  model::Priority own;
  EXPECT_EQ(merge_priority(parent, own).SerializeAsString(), parent.SerializeAsString());
  own.set_fairness_key("other");
  auto merged = merge_priority(parent, own);
  EXPECT_EQ(merged.priority_key(), 1);
  EXPECT_EQ(merged.fairness_key(), "other");
  EXPECT_EQ(merged.fairness_weight(), 2.5F);
  own.set_priority_key(5);
  own.set_fairness_weight(0.5);
  EXPECT_EQ(merge_priority(parent, own).SerializeAsString(), own.SerializeAsString());
  EXPECT_EQ(merge_priority({}, own).SerializeAsString(), own.SerializeAsString());
}

TEST(Lifecycle, SignalsHaveALimit) {
  Bench bench;
  bench.limits.signals = 2;
  bench.start();
  bench.signal();
  bench.signal();
  bench.step([](Transaction& tx) {
    EXPECT_EQ(signal_run(tx, "one too many", "").code(), absl::StatusCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace fairlead::history
