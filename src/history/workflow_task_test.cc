#include "history/workflow_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/history_testing.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;

// The shape every SDK's replay is built on.
TEST(WorkflowTask, AStartedRunHasItsFirstTaskInTheSameStep) {
  Bench bench;
  bench.start();
  EXPECT_THAT(bench.kinds(), ElementsAre(model::WORKFLOW_STARTED, model::WORKFLOW_TASK_SCHEDULED));
  ASSERT_EQ(bench.offers.size(), 1u);
  EXPECT_EQ(bench.offers[0].queue.name(), "orders");
  bench.take_task();
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_TASK_STARTED);
  EXPECT_EQ(bench.run.state.workflow_task().started_id(), 3);
}

// A bug in workflow code is retried for hours. Only the first failure may show, or the history
// would fill up with it.
TEST(WorkflowTask, ARetryWritesNothingUntilItSucceeds) {
  Bench bench;
  bench.start();
  bench.take_task();
  bench.step([](Transaction& tx) { fail_workflow_task(tx, {14}); });
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_TASK_FAILED);
  const size_t written = bench.events.size();

  for (int attempt = 2; attempt <= 5; ++attempt) {
    bench.take_task();
    EXPECT_EQ(bench.run.state.workflow_task().attempt(), attempt);
    EXPECT_EQ(bench.run.state.workflow_task().scheduled_id(), 5) << "the same ids each time";
    EXPECT_EQ(bench.run.state.workflow_task().started_id(), 6);
    bench.step([](Transaction& tx) { fail_workflow_task(tx, {14}); });
    EXPECT_EQ(bench.events.size(), written);
  }

  bench.take_task();
  ASSERT_TRUE(bench.complete_task({complete_workflow()}));
  EXPECT_THAT(bench.kinds(written),
              ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_TASK_STARTED,
                          model::WORKFLOW_TASK_COMPLETED, model::WORKFLOW_COMPLETED));
  EXPECT_EQ(bench.events[written].workflow_task_scheduled().attempt(), 6);
}

// A retry's ids are a promise made when it was scheduled. An event that arrives before a worker
// takes it breaks the promise, so the retry becomes an ordinary task.
TEST(WorkflowTask, ARetryOvertakenByASignalIsWrittenForReal) {
  Bench bench;
  bench.start();
  bench.take_task();
  bench.step([](Transaction& tx) { fail_workflow_task(tx, {14}); });
  bench.now += kSecond;
  bench.signal();
  const size_t written = bench.events.size();
  bench.take_task();
  EXPECT_THAT(bench.kinds(written),
              ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_TASK_STARTED));
  EXPECT_EQ(bench.events[written].time_ns(), bench.now) << "it is not older than the signal";
  EXPECT_EQ(bench.run.state.workflow_task().attempt(), 1);
}

// Nothing may come between a task's start and its end: replay would not know what the code had
// seen.
TEST(WorkflowTask, WhatArrivesWhileATaskIsOutIsWrittenAfterIt) {
  Bench bench;
  bench.start();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({schedule("a"), schedule("b")}));
  bench.signal();
  bench.take_task();
  bench.take_activity("a");
  bench.step(
      [&](Transaction& tx) { complete_activity(tx, *tx.run().find_activity("a"), "worker", ""); });
  bench.signal("first");
  bench.take_activity("b");
  bench.step(
      [&](Transaction& tx) { complete_activity(tx, *tx.run().find_activity("b"), "worker", ""); });
  bench.signal("second");
  const size_t before = bench.events.size();
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_TASK_STARTED);

  ASSERT_TRUE(bench.complete_task());
  // Starts and signals in the order of arrival, then the ends of activities.
  EXPECT_THAT(
      bench.kinds(before),
      ElementsAre(model::WORKFLOW_TASK_COMPLETED, model::ACTIVITY_STARTED, model::WORKFLOW_SIGNALED,
                  model::ACTIVITY_STARTED, model::WORKFLOW_SIGNALED, model::ACTIVITY_COMPLETED,
                  model::ACTIVITY_COMPLETED, model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(bench.events[before + 5].activity_ended().started_id(), bench.events[before + 1].id());
  EXPECT_EQ(bench.events[before + 6].activity_ended().started_id(), bench.events[before + 3].id());
}

// A workflow that completes while a signal it has not seen is waiting would lose that signal.
TEST(WorkflowTask, ClosingIsRefusedWhileEventsWait) {
  Bench bench;
  bench.start();
  bench.take_task();
  bench.signal();
  std::vector<model::Event> commands{complete_workflow()};
  const auto refusal = check_commands(bench.run, bench.limits, &commands);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->cause, FailedCause::kUnhandledCommand);
}

TEST(WorkflowTask, CancellingAFiredTimerTakesItsEventBackAndAllowsClosing) {
  Bench bench;
  bench.start();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({start_timer("t", kSecond)}));
  bench.signal();
  bench.take_task();
  bench.wait(2 * kSecond);
  ASSERT_EQ(bench.run.state.buffered_size(), 1);
  ASSERT_TRUE(bench.complete_task({cancel_timer("t"), complete_workflow()}));
  EXPECT_EQ(bench.run.state.status(), model::COMPLETED);
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_COMPLETED);
}

// Else a run that goes on would count towards the limit what it has long forgotten.
TEST(WorkflowTask, AnEventThatIsTakenBackIsNotCountedAnyMore) {
  Bench bench;
  bench.start();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({start_timer("t", kSecond)}));
  bench.signal();
  bench.take_task();
  bench.wait(2 * kSecond);
  ASSERT_GT(bench.run.state.buffered_bytes(), 0);
  ASSERT_TRUE(bench.complete_task({cancel_timer("t")}));
  EXPECT_EQ(bench.run.state.buffered_bytes(), 0);
}

TEST(WorkflowTask, AStickyTaskThatNobodyFetchesGoesToEveryone) {
  Bench bench;
  bench.start();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({start_timer("t", kHour)}, "sticky-1"));
  bench.signal();
  ASSERT_EQ(bench.offers.size(), 1u);
  EXPECT_EQ(bench.offers[0].queue.name(), "sticky-1");
  EXPECT_EQ(bench.offers[0].queue.normal_name(), "orders");
  const size_t before = bench.events.size();
  bench.run.state.mutable_workflow_task()->mutable_place()->set_seq(7);
  EXPECT_TRUE(expiring_tasks(bench.run, bench.now + 5 * kSecond - 1).empty());
  const auto expiring = expiring_tasks(bench.run, bench.now + 5 * kSecond);
  ASSERT_EQ(expiring.size(), 1u);
  EXPECT_EQ(expiring[0].kind, model::WORKFLOW_TASK);
  bench.wait(5 * kSecond);
  EXPECT_THAT(bench.kinds(before),
              ElementsAre(model::WORKFLOW_TASK_TIMED_OUT, model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(bench.events[before].workflow_task_ended().timeout_type(), model::SCHEDULE_TO_START);
  ASSERT_EQ(bench.offers.size(), 1u);
  EXPECT_EQ(bench.offers[0].queue.name(), "orders");
  EXPECT_EQ(bench.run.state.workflow_task().attempt(), 1);
}

TEST(WorkflowTask, ATaskTimesOutExactlyWhenItsTimeIsOver) {
  Bench bench;
  bench.start();
  bench.take_task();
  EXPECT_EQ(next_deadline(bench.run), bench.now + 10 * kSecond);
  bench.wait(10 * kSecond - 1);
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_TASK_STARTED) << "never early";
  bench.wait(1);
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_TASK_TIMED_OUT);
  EXPECT_EQ(bench.run.state.workflow_task().attempt(), 2);
}

TEST(WorkflowTask, AStaleStampStartsNothing) {
  Bench bench;
  bench.start();
  const uint64_t stamp = bench.run.state.workflow_task().stamp();
  bench.take_task();
  bench.step([&](Transaction& tx) { EXPECT_FALSE(start_workflow_task(tx, stamp, {"late", "r"})); });
}

// It would be too large for the next worker as well.
TEST(WorkflowTask, OneThatIsTooLargeToBeSentEndsTheRun) {
  Bench bench;
  bench.start();
  bench.take_task();
  const size_t before = bench.events.size();
  bench.step([](Transaction& tx) {
    fail_workflow_task(tx, {static_cast<int>(FailedCause::kGrpcMessageTooLarge), {}, "worker"});
  });
  ASSERT_THAT(bench.kinds(before),
              ElementsAre(model::WORKFLOW_TASK_FAILED, model::WORKFLOW_TERMINATED));
  const auto& failed = bench.events[before].workflow_task_ended();
  EXPECT_EQ(failed.failed_cause(), static_cast<int>(FailedCause::kForceCloseCommand));
  EXPECT_EQ(failed.identity(), "history-service");
  EXPECT_EQ(bench.events[before + 1].workflow_closed().reason(), "GrpcMessageTooLarge");
}

// A flood of signals behind one slow task must not grow the run's state without bound.
TEST(WorkflowTask, TooManyBufferedEventsEndTheTask) {
  Bench bench;
  bench.limits.buffered_events = 10;
  bench.start();
  bench.take_task();
  for (int i = 0; i < 11; ++i) bench.signal();
  EXPECT_EQ(bench.run.state.buffered_size(), 0);
  EXPECT_FALSE(bench.run.has_started_task());
  EXPECT_EQ(bench.run.state.workflow_task().attempt(), 1);
}

}  // namespace
}  // namespace fairlead::history
