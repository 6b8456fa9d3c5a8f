#include "history/durable.h"

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "history/durable_testing.h"

namespace fairlead::history {
namespace {

using ::testing::ElementsAre;

TEST(DurableTask, LeavesNoEvents) {
  DurableBench bench;
  EXPECT_THAT(bench.kinds(), ElementsAre(model::START_ACCEPTED, model::WORKFLOW_STARTED));
  bench.take_task();
  EXPECT_EQ(bench.events.size(), 2u);
  ASSERT_TRUE(bench.complete({schedule("a")}).ok());
  EXPECT_THAT(bench.kinds(2), ElementsAre(model::ACTIVITY_SCHEDULED));
  EXPECT_FALSE(bench.has_task());
}

TEST(DurableTask, KeepsItsNumberAndCountsAttemptsWhenItsLeaseEnds) {
  DurableBench bench;
  bench.take_task();
  const auto first = bench.claim();
  bench.wait(60 * kSecond);
  ASSERT_EQ(bench.offers.size(), 1u) << "somebody else may have it";
  EXPECT_EQ(error_detail(check_lease(bench.run, first, bench.now)).fields[0], "task_not_leased");
  bench.take_task();
  EXPECT_EQ(bench.claim().number, first.number);
  EXPECT_EQ(bench.claim().attempt, 2);
  EXPECT_EQ(error_detail(check_lease(bench.run, first, bench.now)).fields[0],
            "workflow_task_attempt_mismatch");
  EXPECT_TRUE(check_lease(bench.run, bench.claim(), bench.now).ok());
}

TEST(DurableTask, LivesOnWhileItIsRenewed) {
  DurableBench bench;
  bench.take_task();
  for (int i = 0; i < 5; ++i) {
    bench.wait(40 * kSecond);
    bench.step([](Transaction& tx) { renew_durable_task(tx); });
  }
  EXPECT_EQ(bench.claim().attempt, 1);
  EXPECT_TRUE(bench.complete({complete_workflow()}).ok());
}

TEST(DurableTask, TellsInWhichWayALeaseIsNotTheCallers) {
  DurableBench bench;
  auto claim = bench.claim();
  const auto reason = [&](const LeaseClaim& each) {
    return error_detail(check_lease(bench.run, each, bench.now)).fields[0];
  };
  EXPECT_EQ(reason(claim), "task_not_leased");
  EXPECT_EQ(reason({claim.number + 1, 1, "worker"}), "task_not_found");
  EXPECT_EQ(reason({0, 1, "worker"}), "task_not_found");
  bench.take_task();
  EXPECT_EQ(reason({claim.number, 1, "thief"}), "lease_owner_mismatch");
  EXPECT_EQ(reason({claim.number, 2, "worker"}), "workflow_task_attempt_mismatch");
  bench.now += 60 * kSecond;
  EXPECT_EQ(reason(claim), "lease_expired");
  bench.now -= 60 * kSecond;
  ASSERT_TRUE(bench.complete({complete_workflow()}).ok());
  EXPECT_EQ(reason(claim), "run_closed");
}

TEST(DurableTask, IsTriedAgainAfterAPauseThatGrows) {
  DurableBench bench;
  DurationNs pause = kSecond;
  for (int attempt = 1; attempt <= 8; ++attempt) {
    bench.take_task();
    bench.step([](Transaction& tx) { fail_durable_task(tx); });
    EXPECT_TRUE(bench.offers.empty());
    bench.wait(pause - 1);
    EXPECT_TRUE(bench.offers.empty()) << "attempt " << attempt;
    bench.wait(1);
    EXPECT_EQ(bench.offers.size(), 1u) << "attempt " << attempt;
    pause = std::min(2 * pause, kMinute);
  }
}

TEST(DurableTask, IsNotMadeForAParkedRunUntilItIsRepaired) {
  DurableBench bench;
  bench.take_task();
  bench.step([](Transaction& tx) { park_durable_task(tx, "replay failed"); });
  EXPECT_FALSE(bench.has_task());
  bench.send("s1");
  bench.wait(kHour);
  EXPECT_FALSE(bench.has_task());
  bench.step([](Transaction& tx) { EXPECT_TRUE(repair_run(tx)); });
  EXPECT_TRUE(bench.has_task());
  bench.step([](Transaction& tx) { EXPECT_FALSE(repair_run(tx)); });
}

TEST(DurableWake, OneActivityWakesTheWorkflowWhenItEnds) {
  DurableBench bench;
  bench.take_and_complete({schedule("a")});
  bench.finish_activity("a");
  EXPECT_TRUE(bench.has_task());
  EXPECT_THAT(bench.kinds(3), ElementsAre(model::ACTIVITY_STARTED, model::ACTIVITY_COMPLETED));
  EXPECT_EQ(bench.events.back().activity_ended().step().sequence(), 1);
}

// Waking the SDK while a part of a group is open makes it schedule the whole group once more.
TEST(DurableWake, AGroupWakesTheWorkflowOnlyWhenAllOfItHasEnded) {
  DurableBench bench;
  bench.take_and_complete({in_group(schedule("a"), 1, 0), in_group(schedule("b"), 1, 1),
                           in_group(start_timer("t", 5 * kSecond), 1, 2)});
  bench.finish_activity("a");
  EXPECT_FALSE(bench.has_task());
  bench.take_activity("b");
  bench.step([&](Transaction& tx) {
    model::Failure failure;
    failure.set_kind(model::Failure::APPLICATION);
    failure.set_non_retryable(true);
    fail_activity(tx, *bench.run.find_activity("b"), "worker", failure);
  });
  EXPECT_FALSE(bench.has_task()) << "not even because a member failed";
  bench.wait(5 * kSecond);
  EXPECT_TRUE(bench.has_task());
}

TEST(DurableWake, WhatHappensWhileATaskIsOutMakesTheNextOne) {
  DurableBench bench;
  bench.take_and_complete({schedule("a"), schedule("b")});
  bench.finish_activity("a");
  bench.take_task();
  const auto shown = bench.run.state.workflow_task().shown_until();
  bench.finish_activity("b");
  EXPECT_GT(bench.run.state.next_event_id(), shown) << "it is written at once";
  ASSERT_TRUE(bench.complete().ok());
  EXPECT_TRUE(bench.has_task()) << "for what the worker was not shown";
  bench.take_and_complete({complete_workflow()});
  EXPECT_FALSE(bench.run.is_open());
}

TEST(DurableWake, ATaskThatWaitsShowsAllThatHappensMeanwhile) {
  DurableBench bench;
  bench.take_and_complete({schedule("a"), schedule("b")});
  bench.finish_activity("a");
  bench.finish_activity("b");
  bench.take_and_complete();
  EXPECT_FALSE(bench.has_task()) << "one task was for both";
}

TEST(DurableSignal, WaitsUntilTheWorkflowWaitsForACondition) {
  DurableBench bench;
  bench.take_and_complete({schedule("a")});
  bench.send("s1");
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_SIGNALED);
  EXPECT_FALSE(bench.has_task());
  bench.finish_activity("a");
  bench.take_and_complete({open_wait_command("w1")});
  ASSERT_TRUE(bench.has_task()) << "the signal that came before the wait";
  EXPECT_EQ(bench.run.state.workflow_task().message().id(), "s1");
  bench.take_and_complete({open_wait_command("w2")});
  EXPECT_FALSE(bench.has_task()) << "it was applied, and nothing else has come";
  EXPECT_EQ(bench.run.state.durable().waits_size(), 1);
  EXPECT_EQ(bench.run.state.durable().waits(0).wait_id(), "w2");
}

TEST(DurableSignal, EachOneHasATaskAndEndsTheWaitBeforeTheCommands) {
  DurableBench bench;
  bench.take_and_complete({open_wait_command("w1")});
  bench.send("s1");
  bench.send("s2");
  const size_t before = bench.events.size();
  bench.take_and_complete({open_wait_command("w2")});
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::WAIT_SATISFIED, model::WAIT_OPENED));
  EXPECT_EQ(bench.events[before].wait().wait_id(), "w1");
  ASSERT_TRUE(bench.has_task());
  EXPECT_EQ(bench.run.state.workflow_task().message().id(), "s2");
  bench.take_and_complete({complete_workflow()});
  EXPECT_FALSE(bench.run.is_open());
}

// The worker has not seen the later signals and decides without them; a replay, which sees all,
// must come to the same decision. So they stand behind what it decided.
TEST(DurableSignal, ThatComesWhileATaskIsOutStandsBehindWhatTheWorkerDecides) {
  DurableBench bench;
  bench.take_and_complete({open_wait_command("w1")});
  bench.send("s1");
  bench.take_task();
  const size_t before = bench.events.size();
  bench.send("s2");
  bench.send("s3");
  EXPECT_EQ(bench.events.size(), before) << "not yet";
  ASSERT_TRUE(bench.complete({open_wait_command("w2")}).ok());
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::WAIT_SATISFIED, model::WAIT_OPENED,
                                               model::WORKFLOW_SIGNALED, model::WORKFLOW_SIGNALED));
  EXPECT_EQ(bench.run.state.workflow_task().message().id(), "s2");
}

TEST(DurableSignal, IsWrittenWhenTheTaskIsLostOrTheRunIsStopped) {
  for (const bool is_lost : {true, false}) {
    DurableBench bench;
    bench.take_task();
    bench.send("s1");
    if (is_lost) {
      bench.wait(60 * kSecond);
    } else {
      bench.step([](Transaction& tx) {
        model::Event closing;
        closing.set_kind(model::WORKFLOW_CANCELED);
        closing.mutable_workflow_closed();
        terminate_run(tx, std::move(closing));
      });
    }
    EXPECT_EQ(bench.events[2].kind(), model::WORKFLOW_SIGNALED);
  }
}

TEST(DurableWait, DoesNotTimeOutUnderAWorkerThatDecidesAboutIt) {
  DurableBench bench;
  bench.take_and_complete({open_wait_command("w1", 10 * kSecond)});
  bench.send("s1");
  bench.take_task();
  bench.wait(20 * kSecond);
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_SIGNALED);
  EXPECT_GT(next_deadline(bench.run), bench.now) << "time does not knock again and again";
  ASSERT_TRUE(bench.complete({complete_workflow()}).ok());
  EXPECT_THAT(bench.kinds(5),
              ElementsAre(model::WAIT_SATISFIED, model::TIMER_CANCELED, model::WORKFLOW_COMPLETED));
}

TEST(DurableWait, ThatIsStillOpenTimesOutWhenTheTaskEnds) {
  DurableBench bench;
  bench.take_and_complete({open_wait_command("w1", 10 * kSecond)});
  bench.send("s1");
  bench.take_task();
  bench.wait(20 * kSecond);
  ASSERT_TRUE(bench.complete().ok());
  bench.wait(0);
  EXPECT_EQ(bench.events.back().kind(), model::TIMER_FIRED);
}

TEST(DurableWait, TimesOutAndWakesTheWorkflow) {
  DurableBench bench;
  bench.take_and_complete({open_wait_command("w1", 10 * kSecond)});
  bench.wait(10 * kSecond);
  EXPECT_EQ(bench.events.back().kind(), model::TIMER_FIRED);
  EXPECT_EQ(bench.events.back().timer_ended().wait_id(), "w1");
  EXPECT_EQ(bench.events.back().timer_ended().step().sequence(), 1);
  EXPECT_TRUE(bench.has_task());
  EXPECT_EQ(bench.run.state.durable().waits_size(), 0);
}

// A signal that does not meet the condition makes the worker open the same wait anew; its time goes
// on from where it was.
TEST(DurableWait, OpenedAgainKeepsItsDeadline) {
  DurableBench bench;
  bench.take_and_complete({open_wait_command("w1", 10 * kSecond)});
  bench.wait(6 * kSecond);
  bench.send("s1");
  bench.take_and_complete({open_wait_command("w2", 10 * kSecond)});
  ASSERT_EQ(bench.run.timers.size(), 1u);
  bench.wait(4 * kSecond);
  EXPECT_EQ(bench.events.back().kind(), model::TIMER_FIRED);
  EXPECT_EQ(bench.events.back().timer_ended().wait_id(), "w2");
}

TEST(DurableSteps, AreNumberedWithoutGaps) {
  DurableBench bench;
  bench.take_and_complete({schedule("a"), open_wait_command("w1")});
  bench.finish_activity("a");
  bench.take_and_complete({schedule("b")});
  EXPECT_EQ(bench.events.back().activity_scheduled().step().sequence(), 3);
  EXPECT_EQ(bench.run.state.durable().steps(), 3);
}

TEST(DurableSteps, AnExpectationThatIsWrongRefusesTheWholeCompletion) {
  DurableBench bench;
  bench.take_task();
  const auto before = bench.events.size();
  EXPECT_FALSE(bench.complete({in_group(schedule("a"), 2, 0), in_group(schedule("b"), 2, 1)}).ok());
  EXPECT_EQ(bench.events.size(), before);
  EXPECT_TRUE(bench.complete({in_group(schedule("a"), 1, 0), in_group(schedule("b"), 1, 1)}).ok());
}

TEST(DurableActivity, NeedsNoTimeoutAndHasOneAttempt) {
  DurableBench bench;
  auto command = schedule("a", 0);
  command.mutable_activity_scheduled()->mutable_retry_policy()->set_maximum_attempts(1);
  bench.take_and_complete({command});
  bench.wait(365 * kDay);
  EXPECT_TRUE(bench.run.find_activity("a") != nullptr);
}

TEST(DurableActivity, IsTriedAgainAfterTheListedPauses) {
  DurableBench bench;
  auto command = schedule("a", 0);
  auto* policy = command.mutable_activity_scheduled()->mutable_retry_policy();
  policy->set_maximum_attempts(4);
  policy->add_pauses_ns(0);
  policy->add_pauses_ns(3 * kSecond);
  bench.take_and_complete({command});
  const auto fail = [&] {
    bench.take_activity("a");
    bench.step([&](Transaction& tx) {
      model::Failure failure;
      failure.set_kind(model::Failure::APPLICATION);
      fail_activity(tx, *bench.run.find_activity("a"), "worker", failure);
    });
  };
  fail();
  EXPECT_EQ(bench.offers.size(), 1u) << "no pause";
  for (int i = 0; i < 2; ++i) {
    fail();
    EXPECT_TRUE(bench.offers.empty());
    bench.wait(3 * kSecond);
    EXPECT_EQ(bench.offers.size(), 1u) << "the last pause goes on";
  }
  fail();
  EXPECT_EQ(bench.events.back().kind(), model::ACTIVITY_FAILED);
  EXPECT_EQ(bench.events.back().activity_ended().attempt(), 4);
}

// Losing a worker is no failure: it costs none of the attempts that the policy allows.
TEST(DurableActivity, GoesToSomebodyElseWhenItsLeaseEnds) {
  DurableBench bench;
  auto command = schedule("a", 0);
  command.mutable_activity_scheduled()->mutable_retry_policy()->set_maximum_attempts(1);
  command.mutable_activity_scheduled()->set_lease_ns(300 * kSecond);
  bench.take_and_complete({command});
  for (int lost = 1; lost <= 3; ++lost) {
    bench.take_activity("a");
    bench.wait(200 * kSecond);
    bench.step([&](Transaction& tx) { heartbeat_activity(tx, *bench.run.find_activity("a"), ""); });
    bench.wait(200 * kSecond);
    EXPECT_TRUE(bench.offers.empty()) << "a heartbeat renews the lease";
    bench.wait(100 * kSecond);
    ASSERT_EQ(bench.offers.size(), 1u);
    EXPECT_EQ(bench.run.find_activity("a")->attempt(), lost + 1);
  }
  bench.finish_activity("a");
  EXPECT_TRUE(bench.has_task());
}

TEST(DurableUpdate, IsAcceptedAtOnceAndHasATaskOfItsOwn) {
  DurableBench bench;
  bench.take_and_complete({open_wait_command("w1")});
  bench.step([](Transaction& tx) { accept_update(tx, "u1", "deposit", "arguments"); });
  EXPECT_EQ(bench.events.back().kind(), model::UPDATE_ACCEPTED);
  ASSERT_TRUE(bench.has_task());
  EXPECT_TRUE(bench.run.state.workflow_task().message().is_update());
  model::Event applied;
  applied.set_kind(model::UPDATE_APPLIED);
  applied.mutable_update_event()->set_update_id("u1");
  model::Event completed = applied;
  completed.set_kind(model::UPDATE_COMPLETED);
  const size_t before = bench.events.size();
  bench.take_and_complete({applied, completed});
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::UPDATE_APPLIED, model::UPDATE_COMPLETED));
  EXPECT_EQ(bench.run.state.durable().waits(0).wait_id(), "w1") << "the wait goes on";
  ASSERT_TRUE(bench.has_task()) << "the condition may be met now";
  EXPECT_FALSE(bench.run.state.workflow_task().has_message());
  bench.take_and_complete({complete_workflow()});
  EXPECT_FALSE(bench.run.is_open());
}

}  // namespace
}  // namespace fairlead::history
