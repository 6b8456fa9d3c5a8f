#include "history/activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/history_testing.h"
#include "history/retry.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;

model::Failure application_failure(const std::string& type = "Oops") {
  model::Failure failure;
  failure.set_kind(model::Failure::APPLICATION);
  failure.set_type(type);
  return failure;
}

// A run whose first task has scheduled activity "a".
Bench with_activity(model::Event command = schedule("a")) {
  Bench bench;
  bench.start();
  bench.take_task();
  EXPECT_TRUE(bench.complete_task({std::move(command)}));
  return bench;
}

void fail(Bench& bench, model::Failure failure = application_failure()) {
  bench.step([&](Transaction& tx) {
    fail_activity(tx, *tx.run().find_activity("a"), "worker", std::move(failure));
  });
}

// Users read histories. A retried activity shows as one start and one end.
TEST(Activity, RetriesLeaveNoTraceButTheAttemptNumber) {
  auto bench = with_activity();
  const size_t before = bench.events.size();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    bench.take_activity("a");
    fail(bench);
    EXPECT_EQ(bench.events.size(), before);
    bench.wait(100 * kSecond);
    ASSERT_EQ(bench.offers.size(), 1u) << "the next attempt is offered after the back-off";
  }
  bench.take_activity("a");
  bench.step(
      [&](Transaction& tx) { complete_activity(tx, *tx.run().find_activity("a"), "worker", ""); });
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::ACTIVITY_STARTED, model::ACTIVITY_COMPLETED,
                                               model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(bench.events[before].activity_started().attempt(), 4);
  EXPECT_EQ(bench.events[before].activity_started().last_failure().type(), "Oops");
  EXPECT_EQ(bench.events[before + 1].activity_ended().started_id(), bench.events[before].id());
  EXPECT_TRUE(bench.run.activities.empty());
}

// Workers refuse to replay the failure of an activity that never started.
TEST(Activity, WhoFailsAWaitingAttemptIsShownAsItsStarter) {
  auto bench = with_activity();
  const size_t before = bench.events.size();
  auto failure = application_failure();
  failure.set_non_retryable(true);
  fail(bench, std::move(failure));
  ASSERT_THAT(bench.kinds(before), ElementsAre(model::ACTIVITY_STARTED, model::ACTIVITY_FAILED,
                                               model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(bench.events[before].activity_started().identity(), "worker");
  EXPECT_EQ(bench.events[before].time_ns(), bench.now);
  EXPECT_EQ(bench.events[before + 1].activity_ended().started_id(), bench.events[before].id());
}

TEST(Activity, TheBackOffIsNeverCutShort) {
  auto bench = with_activity();
  bench.take_activity("a");
  fail(bench);
  EXPECT_EQ(next_deadline(bench.run), bench.now + kSecond);
  bench.wait(kSecond - 1);
  EXPECT_TRUE(bench.offers.empty());
  bench.wait(1);
  EXPECT_EQ(bench.offers.size(), 1u);
}

TEST(Activity, AListedErrorTypeIsNotRetried) {
  auto command = schedule("a");
  command.mutable_activity_scheduled()->mutable_retry_policy()->add_non_retryable_error_types(
      "Bad");
  auto bench = with_activity(command);
  bench.take_activity("a");
  fail(bench, application_failure("Bad"));
  const auto& failed = bench.events[bench.events.size() - 2];
  EXPECT_EQ(failed.kind(), model::ACTIVITY_FAILED);
  EXPECT_EQ(failed.activity_ended().retry_state(), model::RETRY_NON_RETRYABLE_FAILURE);
}

TEST(Activity, TheLastAttemptEndsIt) {
  auto command = schedule("a");
  command.mutable_activity_scheduled()->mutable_retry_policy()->set_maximum_attempts(2);
  auto bench = with_activity(command);
  bench.take_activity("a");
  fail(bench);
  bench.wait(2 * kSecond);
  bench.take_activity("a");
  fail(bench);
  const auto& failed = bench.events[bench.events.size() - 2];
  EXPECT_EQ(failed.activity_ended().retry_state(), model::RETRY_MAXIMUM_ATTEMPTS_REACHED);
}

TEST(Activity, AHeartbeatPutsItsTimeoutOff) {
  auto command = schedule("a", kMinute);
  command.mutable_activity_scheduled()->set_heartbeat_ns(10 * kSecond);
  auto bench = with_activity(command);
  bench.take_activity("a");
  bench.wait(9 * kSecond);
  bench.step(
      [&](Transaction& tx) { heartbeat_activity(tx, *tx.run().find_activity("a"), "half-way"); });
  bench.wait(9 * kSecond);
  EXPECT_NE(bench.run.find_activity("a")->started_ns(), 0);
  bench.wait(kSecond);
  EXPECT_EQ(bench.run.find_activity("a")->attempt(), 2);
  EXPECT_EQ(bench.run.find_activity("a")->heartbeat_details(), "half-way") << "kept for the retry";
  EXPECT_EQ(bench.run.find_activity("a")->last_failure().timeout_type(), model::HEARTBEAT);
}

// Who looks at an activity between two attempts is told when it was last heard of.
TEST(Activity, TheTimeOfAHeartbeatOutlivesItsAttempt) {
  auto command = schedule("a", kMinute);
  command.mutable_activity_scheduled()->set_heartbeat_ns(10 * kSecond);
  auto bench = with_activity(command);
  bench.take_activity("a");
  const TimeNs heard_of = bench.now;
  bench.step(
      [&](Transaction& tx) { heartbeat_activity(tx, *tx.run().find_activity("a"), "half-way"); });
  bench.wait(10 * kSecond);
  ASSERT_EQ(bench.run.find_activity("a")->attempt(), 2);
  EXPECT_EQ(bench.run.find_activity("a")->heartbeat_ns(), heard_of);
  bench.wait(5 * kSecond);
  bench.take_activity("a");
  EXPECT_EQ(next_deadline(bench.run), bench.now + 10 * kSecond) << "a new attempt, a new time";
}

TEST(Activity, OneThatNobodyTakesTimesOutAndLeavesItsQueue) {
  auto command = schedule("a");
  command.mutable_activity_scheduled()->set_schedule_to_start_ns(kSecond);
  auto bench = with_activity(command);
  bench.run.find_activity("a")->mutable_place()->set_seq(7);
  const size_t before = bench.events.size();
  EXPECT_TRUE(expiring_tasks(bench.run, bench.now + kSecond - 1).empty());
  const auto expiring = expiring_tasks(bench.run, bench.now + kSecond);
  ASSERT_EQ(expiring.size(), 1u);
  EXPECT_EQ(expiring[0].kind, model::ACTIVITY_TASK);
  bench.wait(kSecond);
  EXPECT_TRUE(expiring_tasks(bench.run, bench.now).empty());
  EXPECT_THAT(bench.kinds(before),
              ElementsAre(model::ACTIVITY_TIMED_OUT, model::WORKFLOW_TASK_SCHEDULED));
  const auto& ended = bench.events[before].activity_ended();
  EXPECT_EQ(ended.failure().message(), "activity ScheduleToStart timeout");
  EXPECT_EQ(ended.retry_state(), model::RETRY_TIMEOUT);
  ASSERT_EQ(bench.drops.size(), 1u);
  EXPECT_EQ(bench.drops[0].place.seq(), 7u);
}

// Another of its times is over, so it is not among those that nobody took in time.
TEST(Activity, OneThatLeavesItsQueueByAnotherTimeoutIsNotExpiring) {
  auto command = schedule("a");
  command.mutable_activity_scheduled()->set_schedule_to_close_ns(10 * kSecond);
  auto bench = with_activity(command);
  bench.take_activity("a");
  fail(bench);
  bench.wait(2 * kSecond);
  bench.run.find_activity("a")->mutable_place()->set_seq(7);
  EXPECT_TRUE(expiring_tasks(bench.run, bench.now + 8 * kSecond).empty());
  bench.wait(8 * kSecond);
  EXPECT_EQ(bench.drops.size(), 1u);
}

// Whoever reads the failure looks for workers, not for a slow activity.
TEST(Activity, OneThatNobodyTakesInAllItsTimeHasWaitedTooLong) {
  auto command = schedule("a", kMinute);
  command.mutable_activity_scheduled()->set_schedule_to_close_ns(kSecond);
  auto bench = with_activity(command);
  const size_t before = bench.events.size();
  bench.wait(kSecond);
  EXPECT_EQ(bench.events[before].activity_ended().failure().timeout_type(),
            model::SCHEDULE_TO_START);
}

// "Why did it stop retrying?" is answered by the reason, not by the last symptom.
TEST(Activity, AnAttemptThatTimesOutWithoutTimeForAnotherSaysSo) {
  auto command = schedule("a", 4 * kSecond);
  command.mutable_activity_scheduled()->set_schedule_to_close_ns(4500 * kMillisecond);
  auto bench = with_activity(command);
  bench.take_activity("a");
  const size_t before = bench.events.size();
  bench.wait(4 * kSecond);
  const auto& ended = bench.events[before + 1].activity_ended();
  EXPECT_EQ(ended.failure().timeout_type(), model::SCHEDULE_TO_CLOSE);
  EXPECT_FALSE(ended.failure().has_cause()) << "there was no attempt before it";
  EXPECT_EQ(ended.retry_state(), model::RETRY_TIMEOUT);
}

// The same words as above: whichever timer was first, there is no time for another attempt.
TEST(Activity, OneThatTakesTooLongInAllSaysSoAndNamesTheLastFailure) {
  auto command = schedule("a", kMinute);
  command.mutable_activity_scheduled()->set_schedule_to_close_ns(10 * kSecond);
  auto bench = with_activity(command);
  bench.take_activity("a");
  fail(bench);
  bench.wait(2 * kSecond);
  bench.take_activity("a");
  const size_t before = bench.events.size();
  bench.wait(8 * kSecond);
  const auto& ended = bench.events[before + 1].activity_ended();
  EXPECT_EQ(ended.failure().message(),
            "Not enough time to schedule next retry before activity ScheduleToClose timeout, "
            "giving up retrying");
  EXPECT_EQ(ended.failure().timeout_type(), model::SCHEDULE_TO_CLOSE);
  EXPECT_EQ(ended.failure().cause().kind(), model::Failure::APPLICATION);
}

TEST(Activity, CancellingOneThatWaitsEndsItAfterAllCommandEvents) {
  auto bench = with_activity();
  bench.signal();
  bench.take_task();
  const size_t before = bench.events.size();
  auto cancel = cancel_activity_command(5);
  cancel.mutable_activity_cancel_requested()->set_identity("worker");
  ASSERT_TRUE(bench.complete_task({cancel, start_timer("t", kSecond)}));
  EXPECT_THAT(
      bench.kinds(before),
      ElementsAre(model::WORKFLOW_TASK_COMPLETED, model::ACTIVITY_CANCEL_REQUESTED,
                  model::TIMER_STARTED, model::ACTIVITY_CANCELED, model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_TRUE(bench.events[before + 3].activity_ended().canceled_before_start());
  EXPECT_EQ(bench.events[before + 3].activity_ended().identity(), "worker");
}

// A workflow may change its mind within one task, even twice.
TEST(Activity, CancellingOneInTheTaskThatSchedulesItIsAllowed) {
  Bench bench;
  bench.start();
  bench.take_task();
  const size_t before = bench.events.size();
  ASSERT_TRUE(
      bench.complete_task({schedule("a"), cancel_activity_command(5), cancel_activity_command(5)}));
  EXPECT_THAT(bench.kinds(before),
              ElementsAre(model::WORKFLOW_TASK_COMPLETED, model::ACTIVITY_SCHEDULED,
                          model::ACTIVITY_CANCEL_REQUESTED, model::ACTIVITY_CANCEL_REQUESTED,
                          model::ACTIVITY_CANCELED, model::WORKFLOW_TASK_SCHEDULED));
  ASSERT_EQ(bench.offers.size(), 1u) << "no worker is offered what is over already";
  EXPECT_EQ(bench.offers[0].kind, model::WORKFLOW_TASK);
}

// A retried task writes its own two events first, so the ids are two further on.
TEST(Activity, CancellingOneInARetriedTaskFindsItToo) {
  Bench bench;
  bench.start();
  bench.take_task();
  bench.step([](Transaction& tx) { fail_workflow_task(tx, {14}); });
  bench.take_task();
  std::vector<model::Event> before_it{schedule("a"), cancel_activity_command(7)};
  EXPECT_TRUE(check_commands(bench.run, bench.limits, &before_it).has_value());
  ASSERT_TRUE(bench.complete_task({schedule("a"), cancel_activity_command(8)}));
  EXPECT_TRUE(bench.run.activities.empty());
}

TEST(Activity, CancellingARunningOneOnlyRaisesAFlag) {
  auto bench = with_activity();
  bench.take_activity("a");
  bench.signal();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({cancel_activity_command(5)}));
  ASSERT_NE(bench.run.find_activity("a"), nullptr);
  EXPECT_TRUE(bench.run.find_activity("a")->cancel_requested());
  fail(bench);
  EXPECT_TRUE(bench.run.activities.empty()) << "a canceled activity is not retried";
}

TEST(Activity, TheSameIdTwiceIsRefusedAndChangesNothing) {
  auto bench = with_activity();
  bench.signal();
  bench.take_task();
  const auto state = bench.run.state.SerializeAsString();
  std::vector<model::Event> commands{schedule("b"), schedule("a")};
  const auto refusal = check_commands(bench.run, bench.limits, &commands);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->cause, FailedCause::kScheduleActivityDuplicateId);
  EXPECT_EQ(bench.run.state.SerializeAsString(), state);
}

// A worker that vanished before it got the task cost the workflow nothing, not even an attempt.
TEST(Activity, AnUndeliveredAttemptWaitsAgainUnchanged) {
  auto bench = with_activity();
  bench.take_activity("a");
  bench.step([&](Transaction& tx) { return_activity(tx, *tx.run().find_activity("a")); });
  EXPECT_EQ(bench.offers.size(), 1u);
  EXPECT_EQ(bench.run.find_activity("a")->attempt(), 1);
  EXPECT_EQ(bench.run.find_activity("a")->started_ns(), 0);
}

TEST(Activity, TimeoutsAreFilledInAsTheApiPromises) {
  model::RunState run;
  run.set_task_queue("orders");
  model::ActivityScheduled none;
  EXPECT_FALSE(normalize_activity(&none, run));

  model::ActivityScheduled whole;
  whole.set_schedule_to_close_ns(10);
  whole.set_heartbeat_ns(99);
  EXPECT_TRUE(normalize_activity(&whole, run));
  EXPECT_EQ(whole.schedule_to_start_ns(), 10);
  EXPECT_EQ(whole.start_to_close_ns(), 10);
  EXPECT_EQ(whole.heartbeat_ns(), 10);
  EXPECT_EQ(whole.task_queue(), "orders");

  run.set_run_timeout_ns(5);
  model::ActivityScheduled attempt;
  attempt.set_start_to_close_ns(10);
  EXPECT_TRUE(normalize_activity(&attempt, run));
  EXPECT_EQ(attempt.schedule_to_close_ns(), 5);
  EXPECT_EQ(attempt.start_to_close_ns(), 5);
}

TEST(Retry, IntervalsGrowToTheMaximumAndNeverOverflow) {
  model::RetryPolicy policy;
  apply_retry_defaults(&policy);
  EXPECT_EQ(retry_interval(policy, 1), kSecond);
  EXPECT_EQ(retry_interval(policy, 2), 2 * kSecond);
  EXPECT_EQ(retry_interval(policy, 8), 100 * kSecond);
  EXPECT_EQ(retry_interval(policy, 100'000), 100 * kSecond);
}

TEST(Retry, ADelayGivenByTheFailureReplacesIntervalAndMaximum) {
  model::RetryPolicy policy;
  apply_retry_defaults(&policy);
  auto failure = application_failure();
  failure.set_next_retry_delay_ns(kHour);
  const auto decision = decide_retry(policy, 1, failure, 0, kNever);
  EXPECT_EQ(decision.state, model::RETRY_IN_PROGRESS);
  EXPECT_EQ(decision.interval, kHour);
}

}  // namespace
}  // namespace fairlead::history
