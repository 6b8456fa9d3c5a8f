#include "history/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/history_testing.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;

model::Event fail_workflow(bool non_retryable = false) {
  model::Event command;
  command.set_kind(model::WORKFLOW_FAILED);
  auto* failure = command.mutable_workflow_closed()->mutable_failure();
  failure->set_kind(model::Failure::APPLICATION);
  failure->set_non_retryable(non_retryable);
  return command;
}

model::Event continue_as_new() {
  model::Event command;
  command.set_kind(model::WORKFLOW_CONTINUED_AS_NEW);
  auto* next = command.mutable_workflow_closed()->mutable_next();
  next->set_workflow_type("order-v2");
  next->set_start_door("input");
  (*next->mutable_memo())["note"] = "kept";
  return command;
}

void retry_twice(Bench& bench) {
  auto* policy = bench.run.state.mutable_retry_policy();
  policy->set_initial_interval_ns(kSecond);
  policy->set_backoff_coefficient(2);
  policy->set_maximum_attempts(3);
}

// A run in the middle of its first workflow task.
Bench at_work(Bench bench = {}) {
  bench.start();
  bench.take_task();
  return bench;
}

const model::WorkflowClosed& closing(const Bench& bench) {
  return bench.events.back().workflow_closed();
}

// A schedule waits for the whole chain.
TEST(Chain, ItsLastRunTellsTheScheduleThatStartedIt) {
  Bench first;
  first.run.state.mutable_schedule()->set_schedule_id("nightly");
  first.run.state.mutable_schedule()->set_fire(7);
  first = at_work(std::move(first));
  ASSERT_TRUE(first.complete_task({continue_as_new()}));
  EXPECT_TRUE(first.posted.empty());

  Bench last;
  last.run.state.Clear();
  continue_chain(first.run.state, *first.successor,
                 first.successor->closing.workflow_closed().next(), &last.run.state);
  last.start({0, "input", ""});
  last.step([](Transaction& tx) { terminate_by_server(tx, "enough"); });
  ASSERT_EQ(last.posted.size(), 1U);
  const auto& told = last.posted[0].letter->scheduled_closed();
  EXPECT_EQ(told.schedule().schedule_id(), "nightly");
  EXPECT_EQ(told.schedule().fire(), 7);
  EXPECT_EQ(told.kind(), model::WORKFLOW_TERMINATED);
}

TEST(Chain, ContinuesAsNewWithTheCommandsWords) {
  auto bench = at_work();
  bench.run.state.set_user_metadata("about the first run");
  bench.now += 2 * kSecond;
  ASSERT_TRUE(bench.complete_task({continue_as_new()}));
  EXPECT_EQ(bench.run.state.status(), model::CONTINUED_AS_NEW);
  EXPECT_EQ(bench.run.state.next_run_id(), "run-2");
  EXPECT_EQ(closing(bench).new_run_id(), "run-2");
  ASSERT_TRUE(bench.successor.has_value());
  EXPECT_EQ(bench.successor->initiator, model::BY_WORKFLOW);
  EXPECT_EQ(bench.successor->backoff, 0);

  Bench next;
  next.run.state.Clear();
  continue_chain(bench.run.state, *bench.successor,
                 bench.successor->closing.workflow_closed().next(), &next.run.state);
  next.start({bench.successor->backoff, "input", ""});
  const auto& state = next.run.state;
  EXPECT_EQ(state.workflow_id(), "order-1");
  EXPECT_EQ(state.first_run_id(), "run-1");
  EXPECT_EQ(state.workflow_type(), "order-v2");
  EXPECT_EQ(state.task_queue(), "orders");
  EXPECT_EQ(state.memo().at("note"), "kept");
  EXPECT_EQ(state.user_metadata(), "") << "that was the start's";
  const auto& started = next.events[0].workflow_started();
  EXPECT_EQ(started.continued_run_id(), "run-1");
  EXPECT_EQ(started.first_run_id(), "run-1");
  EXPECT_EQ(started.original_run_id(), "run-2");
  EXPECT_EQ(started.attempt(), 1);
}

TEST(Chain, KeepsTheStartsOfItsRunsApart) {
  auto bench = at_work();
  bench.now += 300 * kMillisecond;
  ASSERT_TRUE(bench.complete_task({continue_as_new()}));
  EXPECT_EQ(bench.successor->backoff, 700 * kMillisecond);
}

TEST(Chain, KeepsRetriesApartToo) {
  Bench fresh;
  retry_twice(fresh);
  fresh.run.state.mutable_retry_policy()->set_initial_interval_ns(50 * kMillisecond);
  auto bench = at_work(std::move(fresh));
  bench.now += 300 * kMillisecond;
  ASSERT_TRUE(bench.complete_task({fail_workflow()}));
  EXPECT_EQ(bench.successor->backoff, 700 * kMillisecond);
}

TEST(Chain, RetriesAFailedRunUntilItsAttemptsAreUsedUp) {
  Bench fresh;
  retry_twice(fresh);
  auto bench = at_work(std::move(fresh));
  ASSERT_TRUE(bench.complete_task({fail_workflow()}));
  EXPECT_EQ(bench.run.state.status(), model::FAILED);
  EXPECT_EQ(closing(bench).retry_state(), model::RETRY_IN_PROGRESS);
  ASSERT_TRUE(bench.successor.has_value());
  EXPECT_EQ(bench.successor->attempt, 2);
  EXPECT_EQ(bench.successor->backoff, kSecond);
  EXPECT_EQ(bench.successor->initiator, model::BY_RETRY);

  Bench last;
  retry_twice(last);
  last.run.state.set_attempt(3);
  last = at_work(std::move(last));
  ASSERT_TRUE(last.complete_task({fail_workflow()}));
  EXPECT_EQ(closing(last).retry_state(), model::RETRY_MAXIMUM_ATTEMPTS_REACHED);
  EXPECT_FALSE(last.successor.has_value());
}

TEST(Chain, DoesNotRetryWhatSaysSo) {
  Bench fresh;
  retry_twice(fresh);
  auto bench = at_work(std::move(fresh));
  ASSERT_TRUE(bench.complete_task({fail_workflow(true)}));
  EXPECT_EQ(closing(bench).retry_state(), model::RETRY_NON_RETRYABLE_FAILURE);
  EXPECT_FALSE(bench.successor.has_value());
}

TEST(Chain, RetriesARunThatRanOutOfTimeButNotAnExecution) {
  Bench fresh;
  retry_twice(fresh);
  fresh.run.state.set_run_timeout_ns(10 * kSecond);
  fresh.run.state.set_execution_timeout_ns(25 * kSecond);
  auto bench = at_work(std::move(fresh));
  bench.wait(10 * kSecond);
  EXPECT_EQ(bench.run.state.status(), model::TIMED_OUT);
  EXPECT_EQ(closing(bench).retry_state(), model::RETRY_IN_PROGRESS);
  ASSERT_TRUE(bench.successor.has_value());

  Bench next;
  next.run.state.Clear();
  next.now = bench.now;
  continue_chain(bench.run.state, *bench.successor, {}, &next.run.state);
  EXPECT_EQ(next.run.state.execution_expiration_ns(), bench.run.state.execution_expiration_ns());
  next.start({bench.successor->backoff});
  next.wait(15 * kSecond);
  EXPECT_EQ(next.run.state.status(), model::TIMED_OUT);
  EXPECT_EQ(closing(next).retry_state(), model::RETRY_TIMEOUT);
  EXPECT_FALSE(next.successor.has_value());
}

TEST(Chain, FollowsItsSchedule) {
  Bench fresh;
  fresh.run.state.set_cron_schedule("@every 10s");
  fresh.start();
  EXPECT_EQ(fresh.events[0].workflow_started().first_task_backoff_ns(), 10 * kSecond);
  EXPECT_EQ(fresh.events[0].workflow_started().initiator(), model::BY_CRON);
  EXPECT_THAT(fresh.kinds(), ElementsAre(model::WORKFLOW_STARTED));
  fresh.wait(10 * kSecond);
  fresh.take_task();
  fresh.now += 13 * kSecond;  // longer than the interval: one time is skipped
  ASSERT_TRUE(fresh.complete_task({complete_workflow()}));
  EXPECT_EQ(fresh.run.state.status(), model::COMPLETED);
  ASSERT_TRUE(fresh.successor.has_value());
  EXPECT_EQ(fresh.successor->backoff, 7 * kSecond);
  EXPECT_EQ(fresh.successor->initiator, model::BY_CRON);
  EXPECT_EQ(fresh.successor->attempt, 1);
}

TEST(Chain, EndsWhenItIsTerminated) {
  Bench fresh;
  retry_twice(fresh);
  fresh.run.state.set_cron_schedule("* * * * *");
  fresh.start();
  fresh.step([](Transaction& tx) { terminate_by_server(tx, "enough"); });
  EXPECT_EQ(fresh.run.state.status(), model::TERMINATED);
  EXPECT_FALSE(fresh.successor.has_value());
}

}  // namespace
}  // namespace fairlead::history
