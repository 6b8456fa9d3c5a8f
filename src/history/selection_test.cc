#include "history/selection.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "history/cancellation.h"
#include "history/durable_testing.h"

namespace fairlead::history {
namespace {

using ::testing::ElementsAre;

struct Place {
  int64_t index = 0;        // of the operation in the selection
  int64_t member = 0;       // of the member
  int64_t member_base = 0;  // 0: the operation is all of it
  int64_t member_size = 1;
};

// The command as a member of a selection that has its first operation at `base`.
model::Event selected(model::Event command, std::string_view kind, int64_t base, int64_t size,
                      Place place) {
  auto* step = mutable_step(&command);
  step->set_sequence(base + place.index);
  step->set_group_base(base);
  step->set_selects(true);
  auto* at = step->mutable_selection();
  at->set_group_id("select");
  at->set_size(size);
  at->set_member_key(std::to_string(place.member));
  at->set_member_index(place.member);
  at->set_member_base(place.member_base != 0 ? place.member_base : base + place.index);
  at->set_member_size(place.member_size);
  at->set_member_kind(std::string(place.member_base != 0 ? "group" : kind));
  return command;
}

model::Event cancel_member(int64_t base) {
  model::Event command;
  command.set_kind(model::SELECTION_CANCELED);
  command.mutable_selection()->set_group_id("select");
  command.mutable_selection()->mutable_member()->set_base(base);
  return command;
}

std::vector<model::Event> activity_or_timer() {
  return {selected(schedule("a"), "activity", 1, 2, {.index = 0, .member = 0}),
          selected(start_timer("t", 5 * kSecond), "timer", 1, 2, {.index = 1, .member = 1})};
}

TEST(Selection, TheFirstToEndWinsAndWakesTheWorkflowOnce) {
  DurableBench bench;
  bench.take_and_complete(activity_or_timer());
  bench.finish_activity("a");
  EXPECT_THAT(bench.kinds(4), ElementsAre(model::ACTIVITY_STARTED, model::ACTIVITY_COMPLETED,
                                          model::SELECTION_RESOLVED));
  const auto& resolved = bench.events.back().selection();
  EXPECT_EQ(resolved.member().identity(), "a");
  EXPECT_EQ(resolved.member().index(), 0);
  EXPECT_EQ(resolved.resolution_event_id(), bench.events[5].id());
  EXPECT_EQ(resolved.resolution_kind(), model::ACTIVITY_COMPLETED);
  EXPECT_FALSE(resolved.member().has_failed());
  EXPECT_TRUE(bench.has_task());

  bench.take_and_complete();
  bench.wait(5 * kSecond);
  EXPECT_EQ(bench.events.back().kind(), model::TIMER_FIRED) << "no second winner";
  EXPECT_TRUE(bench.has_task()) << "the workflow may wait for the other member now";
  EXPECT_EQ(bench.run.state.durable().selections_size(), 0);
}

TEST(Selection, AFailureWins) {
  DurableBench bench;
  bench.take_and_complete(activity_or_timer());
  bench.take_activity("a");
  bench.step([&](Transaction& tx) {
    model::Failure failure;
    failure.set_kind(model::Failure::APPLICATION);
    failure.set_non_retryable(true);
    fail_activity(tx, *bench.run.find_activity("a"), "worker", failure);
  });
  ASSERT_EQ(bench.events.back().kind(), model::SELECTION_RESOLVED);
  EXPECT_TRUE(bench.events.back().selection().member().has_failed());
}

TEST(Selection, AMemberOfManyOperationsEndsWithTheLastOfThem) {
  DurableBench bench;
  const Place first{.index = 0, .member = 0, .member_base = 1, .member_size = 2};
  const Place second{.index = 1, .member = 0, .member_base = 1, .member_size = 2};
  bench.take_and_complete(
      {selected(schedule("a"), "activity", 1, 3, first),
       selected(schedule("b"), "activity", 1, 3, second),
       selected(start_timer("t", kHour), "timer", 1, 3, {.index = 2, .member = 1})});
  bench.finish_activity("b");
  EXPECT_EQ(bench.events.back().kind(), model::ACTIVITY_COMPLETED);
  EXPECT_FALSE(bench.has_task());
  bench.finish_activity("a");
  ASSERT_EQ(bench.events.back().kind(), model::SELECTION_RESOLVED);
  EXPECT_EQ(bench.events.back().selection().member().identity(), "group:1:2");
  EXPECT_TRUE(bench.has_task());
}

// The worker cannot tell whether a condition in a selection is met, so whatever comes ends the
// wait.
TEST(Selection, ASignalEndsAConditionThatIsAMember) {
  for (const bool comes_first : {true, false}) {
    DurableBench bench;
    const std::vector<model::Event> commands = {
        selected(open_wait_command("w", 10 * kSecond), "condition", 1, 2,
                 {.index = 0, .member = 0}),
        selected(schedule("a"), "activity", 1, 2, {.index = 1, .member = 1})};
    if (comes_first) bench.send("s");
    bench.take_and_complete(commands);
    if (!comes_first) bench.send("s");
    const auto kinds = bench.kinds(bench.events.size() - 3);
    EXPECT_THAT(kinds, ElementsAre(model::WAIT_SATISFIED, model::TIMER_CANCELED,
                                   model::SELECTION_RESOLVED));
    EXPECT_EQ(bench.events.back().selection().member().identity(), "w");
    EXPECT_TRUE(bench.has_task());
    EXPECT_FALSE(bench.run.state.workflow_task().has_message()) << "it is no wait of the worker's";
    EXPECT_EQ(bench.run.state.durable().messages_size(), 0);
  }
}

TEST(Selection, AConditionThatTimesOutIsAnEndLikeOthers) {
  DurableBench bench;
  bench.take_and_complete(
      {selected(open_wait_command("w", 10 * kSecond), "condition", 1, 2, {.index = 0, .member = 0}),
       selected(schedule("a", kHour), "activity", 1, 2, {.index = 1, .member = 1})});
  bench.wait(10 * kSecond);
  EXPECT_THAT(bench.kinds(bench.events.size() - 2),
              ElementsAre(model::TIMER_FIRED, model::SELECTION_RESOLVED));
  EXPECT_EQ(bench.run.state.durable().waits_size(), 0);
}

TEST(Selection, AWaitThatIsLeftOverIsNotTheOneThatTheWorkflowStandsAt) {
  DurableBench bench;
  bench.take_and_complete(
      {selected(open_wait_command("left"), "condition", 1, 2, {.index = 0, .member = 0}),
       selected(schedule("a"), "activity", 1, 2, {.index = 1, .member = 1})});
  bench.finish_activity("a");
  bench.take_and_complete({open_wait_command("now")});
  bench.send("s");
  ASSERT_TRUE(bench.has_task());
  EXPECT_EQ(bench.run.state.workflow_task().message().id(), "s");
  const size_t before = bench.events.size();
  bench.take_and_complete({complete_workflow()});
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::WAIT_SATISFIED, model::WORKFLOW_COMPLETED));
  EXPECT_EQ(bench.events[before].wait().wait_id(), "now");
}

TEST(Selection, ACanceledMemberEndsAtOnceAndWakesNobody) {
  DurableBench bench;
  bench.take_and_complete(activity_or_timer());
  bench.wait(5 * kSecond);
  const size_t before = bench.events.size();
  bench.take_and_complete({cancel_member(1), schedule("b")});
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::ACTIVITY_CANCELED, model::SELECTION_CANCELED,
                                               model::ACTIVITY_SCHEDULED));
  EXPECT_EQ(bench.events[before + 1].selection().member().identity(), "a");
  EXPECT_EQ(bench.events.back().activity_scheduled().step().sequence(), 3);
  EXPECT_FALSE(bench.has_task());
  EXPECT_EQ(bench.run.state.durable().selections_size(), 0);
}

// The SDK sends the cancellation of a member that has ended with every completion.
TEST(Selection, CancelingWhatHasEndedDoesNothing) {
  DurableBench bench;
  bench.take_and_complete(activity_or_timer());
  bench.finish_activity("a");
  bench.take_and_complete({cancel_member(1), open_wait_command("w")});
  EXPECT_EQ(bench.events.back().kind(), model::WAIT_OPENED);
  const size_t before = bench.events.size();
  bench.wait(5 * kSecond);
  bench.take_and_complete({cancel_member(1)});
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::TIMER_FIRED)) << "the wait goes on";
}

// What the SDK predicts after a cancellation depends on whether that goes along in the same answer.
TEST(Selection, ACancellationMayBeCountedAsAStepOrNot) {
  for (const int64_t base : {3, 4}) {
    DurableBench bench;
    bench.take_and_complete(activity_or_timer());
    bench.wait(5 * kSecond);
    bench.take_task();
    EXPECT_TRUE(bench
                    .complete({cancel_member(1), in_group(schedule("b"), base, 0),
                               in_group(schedule("c"), base, 1)})
                    .ok());
    EXPECT_EQ(bench.run.state.durable().steps(), base + 1);
  }
}

TEST(Selection, DoesNotWakeAWorkflowThatWaitsForAGroup) {
  DurableBench bench;
  bench.take_and_complete(activity_or_timer());
  bench.finish_activity("a");
  bench.take_and_complete({in_group(schedule("b"), 3, 0), in_group(schedule("c"), 3, 1)});
  bench.wait(5 * kSecond);
  EXPECT_EQ(bench.events.back().kind(), model::TIMER_FIRED);
  EXPECT_FALSE(bench.has_task()) << "it would begin its group anew";
  bench.finish_activity("b");
  bench.finish_activity("c");
  EXPECT_TRUE(bench.has_task());
}

TEST(Selection, ThatIsNotDescribedInOneWayIsRefusedAsAWhole) {
  DurableBench bench;
  bench.take_task();
  const auto refuses = [&](std::vector<model::Event> commands) {
    const size_t before = bench.events.size();
    EXPECT_FALSE(bench.complete(std::move(commands)).ok());
    EXPECT_EQ(bench.events.size(), before);
  };
  refuses({activity_or_timer()[0]});
  auto commands = activity_or_timer();
  mutable_step(&commands[1])->mutable_selection()->set_member_kind("activity");
  refuses(commands);
  commands = activity_or_timer();
  mutable_step(&commands[1])->mutable_selection()->set_group_id("another");
  refuses(commands);
  commands = activity_or_timer();
  mutable_step(&commands[1])->mutable_selection()->set_member_base(3);
  refuses(commands);
  EXPECT_TRUE(bench.complete(activity_or_timer()).ok());
}

// Asked to stop while it waits for a selection, or for one of its members, the workflow goes on
// without it: nobody wins any more.
void stop_at(DurableBench& bench, const model::CancellationDelivery& at) {
  model::CancellationContext context;
  context.add_lineage()->set_request_id("request");
  context.set_deadline_ns(bench.now + kMinute);
  bench.step([&](Transaction& tx) { ask_to_stop(tx, context); });
  bench.take_task();
  ASSERT_TRUE(check_delivery(bench.run, "request", at, bench.now).ok());
  bench.step(
      [&](Transaction& tx) { EXPECT_EQ(deliver_cancellation(tx, at), Delivery::kDelivered); });
}

TEST(Selection, HasNoWinnerOnceItIsInterrupted) {
  DurableBench bench;
  auto commands = activity_or_timer();
  commands[0].mutable_activity_scheduled()->set_cancellation_policy(model::CANCELLATION_ABANDON);
  bench.take_and_complete(std::move(commands));
  model::CancellationDelivery at;
  at.set_sequence(1);
  at.set_span(2);
  at.set_call_kind("parallel");
  stop_at(bench, at);
  EXPECT_EQ(bench.run.state.durable().selections_size(), 0);
  ASSERT_TRUE(bench.complete({start_timer("cleanup", kHour)}).ok());
  const size_t before = bench.events.size();
  bench.finish_activity("a");
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::ACTIVITY_STARTED, model::ACTIVITY_COMPLETED));
  EXPECT_FALSE(bench.has_task());
}

TEST(Selection, AMemberIsInterruptedAlone) {
  DurableBench bench;
  bench.take_and_complete(activity_or_timer());
  bench.finish_activity("a");
  model::CancellationDelivery at;
  at.set_sequence(3);
  at.set_span(1);
  at.set_call_kind("selection_handle");
  at.set_operation_sequence(2);
  at.set_operation_span(1);
  stop_at(bench, at);
  EXPECT_TRUE(bench.run.timers.empty());
  EXPECT_EQ(bench.run.state.durable().selections_size(), 0) << "all of it is over";
  ASSERT_TRUE(bench.complete({schedule("cleanup")}).ok());
  EXPECT_EQ(bench.run.find_activity("cleanup")->scheduled().step().sequence(), 4);
}

}  // namespace
}  // namespace fairlead::history
