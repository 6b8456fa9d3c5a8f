#include "history/cancellation.h"

#include "base/error.h"
#include "gmock/gmock.h"
#include "history/children.h"
#include "history/durable_testing.h"

namespace fairlead::history {
namespace {

using ::testing::ElementsAre;

model::CancellationDelivery at_call(int64_t sequence, const std::string& kind, int64_t span = 1) {
  model::CancellationDelivery at;
  at.set_sequence(sequence);
  at.set_span(span);
  at.set_call_kind(kind);
  return at;
}

// A run that can be asked to stop.
struct StopBench : DurableBench {
  StopBench() { run.state.set_workflow_id("order-1"); }

  void ask(DurationNs cleanup = 30 * kSecond) {
    model::CancellationContext context;
    auto* link = context.add_lineage();
    link->set_request_id("request-1");
    link->set_workflow_id("order-1");
    link->set_run_id("run-1");
    context.set_requested_ns(now);
    context.set_deadline_ns(now + cleanup);
    step([&](Transaction& tx) { ask_to_stop(tx, context); });
  }

  absl::Status check(const model::CancellationDelivery& at) {
    return check_delivery(run, "request-1", at, now);
  }

  Delivery deliver(const model::CancellationDelivery& at) {
    EXPECT_TRUE(check(at).ok()) << check(at);
    auto outcome = Delivery::kDelivered;
    step([&](Transaction& tx) { outcome = deliver_cancellation(tx, at); });
    return outcome;
  }

  // A worker has begun the activity that the workflow waits for.
  void begin_activity(model::CancellationPolicy policy) {
    auto command = schedule("a");
    command.mutable_activity_scheduled()->set_cancellation_policy(policy);
    take_and_complete({command});
    take_activity("a");
  }
};

std::string reason_of(const absl::Status& status) { return error_detail(status).fields[0]; }

model::Event close_command(model::EventKind kind, const std::string& type = "") {
  model::Event command;
  command.set_kind(kind);
  command.mutable_workflow_closed()->mutable_failure()->set_type(type);
  return command;
}

TEST(Cancellation, WakesTheRunAndIsDeliveredAtTheCallThatItWaitsIn) {
  StopBench bench;
  bench.take_and_complete({start_timer("t", kHour)});
  EXPECT_FALSE(bench.has_task());
  const size_t before = bench.events.size();
  bench.ask();
  ASSERT_TRUE(bench.has_task());
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "timer")), Delivery::kDelivered);
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::CANCELLATION_REQUESTED, model::TIMER_CANCELED,
                                               model::CANCELLATION_DELIVERED));
  EXPECT_TRUE(bench.run.timers.empty());
  // The worker sees what it has caused, so nothing of it is a reason for another task.
  EXPECT_EQ(bench.run.state.workflow_task().shown_until(), bench.run.state.next_event_id());
  EXPECT_FALSE(bench.run.state.durable().wakes());
}

TEST(Cancellation, WhateverTheCodeEndsWithTheRunIsCanceled) {
  for (const auto& end :
       {close_command(model::WORKFLOW_COMPLETED), close_command(model::WORKFLOW_CONTINUED_AS_NEW),
        close_command(model::WORKFLOW_FAILED, "WorkflowCancelled")}) {
    StopBench bench;
    bench.take_and_complete({start_timer("t", kHour)});
    bench.ask();
    bench.take_task();
    bench.deliver(at_call(1, "timer"));
    ASSERT_TRUE(bench.complete({end}).ok());
    EXPECT_EQ(bench.run.state.status(), model::CANCELED) << end.kind();
    EXPECT_EQ(bench.events.back().workflow_closed().cancellation().request_id(), "request-1");
    EXPECT_FALSE(bench.successor.has_value());
  }
}

TEST(Cancellation, CleaningUpMayFail) {
  StopBench bench;
  bench.take_and_complete({start_timer("t", kHour)});
  bench.ask();
  bench.take_task();
  bench.deliver(at_call(1, "timer"));
  ASSERT_TRUE(bench.complete({close_command(model::WORKFLOW_FAILED, "OSError")}).ok());
  EXPECT_EQ(bench.run.state.status(), model::FAILED);
}

TEST(Cancellation, ARunThatEndsBeforeItIsToldEndsAsItsCodeSays) {
  StopBench bench;
  bench.take_task();
  bench.ask();
  ASSERT_TRUE(bench.complete({close_command(model::WORKFLOW_COMPLETED)}).ok());
  EXPECT_EQ(bench.run.state.status(), model::COMPLETED);
}

TEST(Cancellation, CleaningUpTakesTheStepsBehindTheCall) {
  StopBench bench;
  bench.ask();
  bench.take_task();
  // Nothing of the call was begun: it has its step all the same.
  bench.deliver(at_call(1, "parallel", 3));
  ASSERT_TRUE(bench.complete({schedule("cleanup")}).ok());
  EXPECT_EQ(bench.run.find_activity("cleanup")->scheduled().step().sequence(), 4);
  bench.finish_activity("cleanup");
  EXPECT_TRUE(bench.has_task());
}

TEST(Cancellation, EndsTheRunAtItsDeadlineWhoeverHasTheTask) {
  StopBench bench;
  bench.take_and_complete({start_timer("t", kHour)});
  bench.ask(30 * kSecond);
  bench.take_task();
  EXPECT_EQ(next_deadline(bench.run), bench.now + 30 * kSecond);
  bench.wait(29 * kSecond);
  EXPECT_TRUE(bench.run.is_open());
  bench.wait(kSecond);
  EXPECT_EQ(bench.run.state.status(), model::CANCELED);
  const auto& end = bench.events.back().workflow_closed().cancellation();
  EXPECT_TRUE(end.is_late());
  EXPECT_EQ(end.delivered_id(), 0);
}

TEST(Cancellation, IsRefusedWhereItCannotBe) {
  StopBench bench;
  bench.take_and_complete({schedule("a")});
  bench.finish_activity("a");
  bench.take_and_complete({start_timer("t", kHour)});
  bench.ask();
  bench.take_task();
  EXPECT_EQ(reason_of(check_delivery(bench.run, "other", at_call(2, "timer"), bench.now)),
            "cancellation_request_mismatch");
  EXPECT_EQ(reason_of(bench.check(at_call(4, "timer"))), "cancellation_delivery_sequence_mismatch");
  EXPECT_EQ(reason_of(bench.check(at_call(2, "parallel", 2))),
            "cancellation_delivery_sequence_mismatch");
  // What had ended before the request is the workflow's.
  EXPECT_EQ(reason_of(bench.check(at_call(1, "activity"))), "cancellation_delivery_not_eligible");
  EXPECT_EQ(reason_of(bench.check(at_call(2, "activity"))), "cancellation_delivery_shape_mismatch");
  EXPECT_EQ(reason_of(check_delivery(bench.run, "request-1", at_call(2, "timer"),
                                     bench.now + 30 * kSecond)),
            "cancellation_deadline_expired");
  EXPECT_TRUE(bench.check(at_call(3, "activity")).ok());
  EXPECT_TRUE(bench.check(at_call(2, "timer")).ok());
}

TEST(Cancellation, IsDeliveredOnce) {
  StopBench bench;
  bench.take_and_complete({start_timer("t", kHour)});
  bench.ask();
  bench.take_task();
  bench.deliver(at_call(1, "timer"));
  const size_t events = bench.events.size();
  EXPECT_EQ(bench.deliver(at_call(1, "timer")), Delivery::kDelivered);
  EXPECT_EQ(bench.events.size(), events);
  EXPECT_EQ(reason_of(bench.check(at_call(2, "timer"))), "cancellation_delivery_mismatch");
}

TEST(Cancellation, AResultThatComesBetweenTheRequestAndItsDeliveryIsLost) {
  StopBench bench;
  bench.take_and_complete({schedule("a")});
  bench.ask();
  bench.finish_activity("a");
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "activity")), Delivery::kDelivered);
}

TEST(Cancellation, TriesToStopAnActivityAndDoesNotWait) {
  StopBench bench;
  bench.begin_activity(model::CANCELLATION_UNSPECIFIED);
  const int64_t scheduled = bench.run.find_activity("a")->scheduled_id();
  bench.ask();
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "activity")), Delivery::kDelivered);
  EXPECT_TRUE(bench.run.activities.empty());
  EXPECT_EQ(reason_of(refuse_attempt(bench.run, scheduled, 1)), "attempt_stopped");
  const auto* stopped = find_stopped(bench.run.state, scheduled, 1);
  ASSERT_NE(stopped, nullptr);
  EXPECT_EQ(stopped->owner(), "worker");
  bench.step([&](Transaction& tx) { EXPECT_TRUE(acknowledge_stop(tx, scheduled, 1)); });
  EXPECT_EQ(bench.events.back().kind(), model::ACTIVITY_STOP_ACKNOWLEDGED);
  EXPECT_FALSE(bench.run.state.durable().wakes());
  bench.step([&](Transaction& tx) { EXPECT_FALSE(acknowledge_stop(tx, scheduled, 1)); });
}

TEST(Cancellation, WaitsUntilAnActivityHasStopped) {
  StopBench bench;
  bench.begin_activity(model::CANCELLATION_WAIT);
  const int64_t scheduled = bench.run.find_activity("a")->scheduled_id();
  bench.ask();
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "activity")), Delivery::kWaitsForActivity);
  EXPECT_FALSE(bench.has_task()) << "the worker has given its task back";
  bench.send("s1");
  EXPECT_FALSE(bench.has_task());
  bench.step([&](Transaction& tx) { acknowledge_stop(tx, scheduled, 1); });
  ASSERT_TRUE(bench.has_task());
  bench.take_task();
  EXPECT_EQ(reason_of(bench.check(at_call(2, "timer"))), "cancellation_delivery_mismatch");
  EXPECT_EQ(bench.deliver(at_call(1, "activity")), Delivery::kDelivered);
  EXPECT_EQ(bench.events.back().kind(), model::CANCELLATION_DELIVERED);
}

TEST(Cancellation, NobodyWaitsForAnActivityThatNobodyHasBegun) {
  StopBench bench;
  auto command = schedule("a");
  command.mutable_activity_scheduled()->set_cancellation_policy(model::CANCELLATION_WAIT);
  bench.take_and_complete({command});
  bench.ask();
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "activity")), Delivery::kDelivered);
  EXPECT_TRUE(bench.run.activities.empty());
}

TEST(Cancellation, LeavesAnAbandonedActivityAndIsNotWokenByItsEnd) {
  StopBench bench;
  bench.begin_activity(model::CANCELLATION_ABANDON);
  bench.ask();
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "activity")), Delivery::kDelivered);
  ASSERT_TRUE(
      bench.complete({in_group(schedule("c1"), 2, 0), in_group(schedule("c2"), 2, 1)}).ok());
  bench.step([&](Transaction& tx) {
    complete_activity(tx, *bench.run.find_activity("a"), "worker", "result");
  });
  EXPECT_FALSE(bench.has_task()) << "a worker would begin its group anew";
  bench.finish_activity("c1");
  bench.finish_activity("c2");
  EXPECT_TRUE(bench.has_task());
}

TEST(Cancellation, InterruptsAParallelGroup) {
  StopBench bench;
  bench.take_and_complete({in_group(schedule("a"), 1, 0), in_group(schedule("b"), 1, 1)});
  bench.finish_activity("a");
  bench.ask();
  ASSERT_TRUE(bench.has_task());
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "parallel", 2)), Delivery::kDelivered);
  EXPECT_TRUE(bench.run.activities.empty());
}

TEST(Cancellation, AGroupThatIsSentAgainIsNotBegunAgain) {
  StopBench bench;
  std::vector<model::Event> group = {in_group(schedule("a"), 1, 0), in_group(schedule("b"), 1, 1)};
  bench.take_and_complete(group);
  EXPECT_FALSE(repeats_open_group(bench.run.state, group)) << "nobody has asked";
  bench.ask();
  EXPECT_TRUE(repeats_open_group(bench.run.state, group));
  std::vector<model::Event> next = {in_group(schedule("c"), 3, 0)};
  EXPECT_FALSE(repeats_open_group(bench.run.state, next));
}

TEST(Cancellation, EndsAWaitWithItsTimer) {
  StopBench bench;
  bench.take_and_complete({open_wait_command("w", kHour)});
  bench.ask();
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "condition")), Delivery::kDelivered);
  EXPECT_TRUE(bench.run.timers.empty());
  EXPECT_EQ(bench.run.state.durable().waits_size(), 0);
}

TEST(Cancellation, AWorkerThatHasFirstToRecordSomethingIsWokenAgain) {
  StopBench bench;
  bench.ask();
  bench.take_task();
  model::Event marker;
  marker.set_kind(model::MARKER_RECORDED);
  marker.mutable_command_recorded()->set_name("SideEffectRecorded");
  ASSERT_TRUE(bench.complete({marker}).ok());
  ASSERT_TRUE(bench.has_task());
  bench.take_task();
  // Behind a shield it begins what it waits for, and is not asked again and again.
  ASSERT_TRUE(bench.complete({schedule("a")}).ok());
  EXPECT_FALSE(bench.has_task());
}

TEST(Cancellation, AWorkerOnItsWaySeesWhatItIsToldOf) {
  StopBench bench;
  bench.take_task();
  bench.ask();
  EXPECT_LT(bench.run.state.workflow_task().shown_until(), bench.run.state.next_event_id());
  bench.step([](Transaction& tx) { show_request(tx); });
  EXPECT_EQ(bench.run.state.workflow_task().shown_until(), bench.run.state.next_event_id());
  EXPECT_FALSE(bench.run.state.durable().wakes());
}

TEST(Cancellation, ARunThatContinuesIsStillAskedAndHasNoMoreTime) {
  StopBench bench;
  bench.take_task();
  bench.ask(30 * kSecond);
  ASSERT_TRUE(bench.complete({close_command(model::WORKFLOW_CONTINUED_AS_NEW)}).ok());
  ASSERT_TRUE(bench.successor.has_value());
  model::RunState next;
  next.set_run_id("run-2");
  inherit_request(bench.run.state, &next);
  const auto& context = next.durable().cancellation().context();
  EXPECT_EQ(context.deadline_ns(), bench.now + 30 * kSecond);
  EXPECT_EQ(context.lineage(0).run_id(), "run-2");
  EXPECT_EQ(context.lineage(0).request_id(), "request-1");
}

struct ChildBench : StopBench {
  explicit ChildBench(model::CancellationPolicy policy) {
    model::Event command;
    command.set_kind(model::CHILD_INITIATED);
    command.mutable_child_initiated()->set_workflow_id("child-1");
    command.mutable_child_initiated()->set_promised_run_id("child-run");
    command.mutable_child_initiated()->set_parent_close_policy(model::PARENT_CLOSE_ABANDON);
    command.mutable_child_initiated()->set_cancellation_policy(policy);
    take_and_complete({command});
    initiated = run.children.begin()->first;
    step([&](Transaction& tx) { child_started(tx, initiated, "child-run"); });
    ask();
    take_task();
  }
  int64_t initiated = 0;
};

TEST(Cancellation, LeavesAChildUnlessToldOtherwise) {
  ChildBench bench(model::CANCELLATION_UNSPECIFIED);
  EXPECT_EQ(bench.deliver(at_call(1, "child")), Delivery::kDelivered);
  EXPECT_TRUE(bench.posted.empty());
}

TEST(Cancellation, AsksAChildWithTheSameDeadlineAndMayWaitForIt) {
  ChildBench bench(model::CANCELLATION_WAIT);
  EXPECT_EQ(bench.deliver(at_call(1, "child")), Delivery::kWaitsForChild);
  ASSERT_EQ(bench.posted.size(), 1u);
  const auto& letter = bench.posted[0].letter->parent_closed();
  EXPECT_EQ(letter.policy(), model::PARENT_CLOSE_ASK_TO_STOP);
  EXPECT_EQ(letter.cancellation().deadline_ns(), bench.now + 30 * kSecond);
  EXPECT_FALSE(bench.has_task());
  model::Letter::ChildClosed closed;
  closed.set_kind(model::CHILD_CANCELED);
  closed.set_first_run_id("child-run");
  closed.set_initiated_id(bench.initiated);
  bench.step([&](Transaction& tx) { child_closed(tx, closed); });
  ASSERT_TRUE(bench.has_task());
  bench.take_task();
  EXPECT_EQ(bench.deliver(at_call(1, "child")), Delivery::kDelivered);
}

TEST(Cancellation, AParentThatClosesAsksItsChildOnce) {
  StopBench bench;
  model::Event command;
  command.set_kind(model::CHILD_INITIATED);
  command.mutable_child_initiated()->set_workflow_id("child-1");
  command.mutable_child_initiated()->set_parent_close_policy(model::PARENT_CLOSE_ASK_TO_STOP);
  bench.take_and_complete({command});
  bench.step([&](Transaction& tx) { time_out_run(tx); });
  ASSERT_EQ(bench.posted.size(), 1u);
  const auto& context = bench.posted[0].letter->parent_closed().cancellation();
  EXPECT_EQ(context.deadline_ns(), bench.now + kCleanupTime);
  EXPECT_EQ(context.lineage(0).run_id(), "run-1");
}

}  // namespace
}  // namespace fairlead::history
