#include "history/standalone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "history/history_testing.h"
#include "history/operate.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

model::Failure oops(bool is_final = false) {
  model::Failure failure;
  failure.set_kind(model::Failure::APPLICATION);
  failure.set_type("Oops");
  failure.set_non_retryable(is_final);
  return failure;
}

// An activity without a workflow on the table top.
class Lone : public Bench {
 public:
  explicit Lone(model::Event draft = schedule("pay"), DurationNs delay = 0) {
    auto& state = run.state;
    state.set_flavour(model::STANDALONE);
    state.set_workflow_id("pay");
    EXPECT_TRUE(normalize_activity(draft.mutable_activity_scheduled(), state));
    step([&](Transaction& tx) { start_standalone(tx, draft, delay); });
  }

  model::ActivityState& activity() { return *run.find_activity(kStandaloneScheduledId); }
  const model::StandaloneState& standalone() const { return run.state.standalone(); }
  void take() { take_activity("pay"); }
  void fail(bool is_final = false) {
    step([&](Transaction& tx) { fail_activity(tx, activity(), "worker", oops(is_final)); });
  }
  void complete() {
    step([&](Transaction& tx) { complete_activity(tx, activity(), "worker", "result"); });
  }
  void cancel(const std::string& request = "c-1") {
    step([&](Transaction& tx) { cancel_standalone(tx, {"ada", "enough", request, "details"}); });
  }
};

TEST(Standalone, OneActivityIsOfferedAndNoWorkflowTask) {
  Lone lone;
  ASSERT_EQ(lone.offers.size(), 1u);
  EXPECT_EQ(lone.offers[0].kind, model::ACTIVITY_TASK);
  EXPECT_EQ(lone.offers[0].scheduled_id, kStandaloneScheduledId);
  EXPECT_FALSE(lone.run.state.has_workflow_task());
  EXPECT_TRUE(lone.run.is_open());
}

TEST(Standalone, ItsEndIsTheEndOfItsRun) {
  Lone lone;
  lone.take();
  lone.complete();
  EXPECT_EQ(lone.run.state.status(), model::COMPLETED);
  EXPECT_TRUE(lone.closed_now);
  EXPECT_THAT(lone.kinds(), ElementsAre(model::ACTIVITY_SCHEDULED, model::ACTIVITY_COMPLETED));
  EXPECT_EQ(lone.events.back().door(), "result");
  EXPECT_EQ(next_deadline(lone.run), lone.now + kDay) << "its retention";
  EXPECT_EQ(lone.run.state.ended_activity().last_worker_identity(), "worker");
}

TEST(Standalone, AFailedAttemptIsTriedAgainAndCountsOnce) {
  Lone lone;
  lone.take();
  const auto started = lone.now;
  lone.fail();
  EXPECT_TRUE(lone.run.is_open());
  EXPECT_EQ(lone.activity().attempt(), 2);
  EXPECT_EQ(lone.standalone().last_started_ns(), started) << "told while nobody has it, too";
  const auto transitions = lone.run.state.state_transitions();
  lone.wait(kSecond);
  ASSERT_EQ(lone.offers.size(), 1u);
  EXPECT_EQ(lone.run.state.state_transitions(), transitions) << "no news for its owner";
  lone.take();
  lone.fail(true);
  EXPECT_EQ(lone.run.state.status(), model::FAILED);
  EXPECT_EQ(lone.run.state.ended_activity().attempt(), 2);
  EXPECT_EQ(lone.run.state.ended_activity().last_failure().type(), "Oops");
}

// Both are steps of the server in which nothing happens to the activity.
TEST(Standalone, AWakeUpForNothingIsNoChange) {
  auto draft = schedule("pay");
  draft.mutable_activity_scheduled()->set_heartbeat_ns(2 * kSecond);
  Lone lone(draft);
  lone.take();
  lone.now += kSecond;
  lone.step([&](Transaction& tx) { heartbeat_activity(tx, lone.activity(), "half"); });
  const auto transitions = lone.run.state.state_transitions();
  lone.wait(kSecond);
  EXPECT_TRUE(lone.run.is_open());
  EXPECT_EQ(lone.run.state.state_transitions(), transitions);
}

// Offered and taken in one step, for its owner it has changed twice.
TEST(Standalone, ATaskThatAPollWaitsForCountsAsOfferedAndTaken) {
  Lone lone;
  lone.run.state.set_state_transitions(0);
  lone.step([&](Transaction& tx) {
    offer_activity(tx, lone.activity());
    start_activity(tx, kStandaloneScheduledId, lone.activity().stamp(), {"worker", "request"});
  });
  EXPECT_EQ(lone.run.state.state_transitions(), 2);
}

TEST(Standalone, ADelayHoldsTheFirstAttemptAndItsTimeouts) {
  auto draft = schedule("pay");
  draft.mutable_activity_scheduled()->set_schedule_to_close_ns(10 * kSecond);
  Lone lone(draft, 5 * kSecond);
  EXPECT_THAT(lone.offers, IsEmpty());
  EXPECT_EQ(next_deadline(lone.run), lone.now + 5 * kSecond);
  lone.wait(5 * kSecond);
  EXPECT_EQ(lone.offers.size(), 1u);
  lone.wait(9 * kSecond);
  EXPECT_TRUE(lone.run.is_open());
  lone.wait(kSecond);
  EXPECT_EQ(lone.run.state.status(), model::TIMED_OUT);
}

TEST(Standalone, TimeoutsOfAnAttemptAreItsLastFailureAndOthersAreNot) {
  auto draft = schedule("pay", kSecond);
  draft.mutable_activity_scheduled()->mutable_retry_policy()->set_maximum_attempts(1);
  Lone lone(draft);
  lone.take();
  lone.wait(kSecond);
  EXPECT_EQ(lone.run.state.status(), model::TIMED_OUT);
  EXPECT_EQ(lone.run.state.ended_activity().last_failure().timeout_type(), model::START_TO_CLOSE);

  auto hurried = schedule("pay");
  hurried.mutable_activity_scheduled()->set_schedule_to_close_ns(kSecond);
  Lone late(hurried);
  late.take();
  late.wait(kSecond);
  EXPECT_EQ(late.events.back().activity_ended().failure().message(),
            "activity ScheduleToClose timeout");

  draft.mutable_activity_scheduled()->set_schedule_to_start_ns(kSecond);
  Lone idle(draft);
  idle.wait(kSecond);
  EXPECT_EQ(idle.run.state.status(), model::TIMED_OUT);
  EXPECT_FALSE(idle.run.state.ended_activity().has_last_failure());
}

TEST(Standalone, ACancelEndsAnAttemptThatNobodyHas) {
  Lone lone;
  lone.cancel();
  EXPECT_EQ(lone.run.state.status(), model::CANCELED);
  EXPECT_EQ(lone.events.back().kind(), model::ACTIVITY_CANCELED);
  EXPECT_EQ(lone.events.back().door(), "details");
  EXPECT_THAT(lone.offers, IsEmpty());
}

TEST(Standalone, ACancelWaitsForTheWorker) {
  Lone lone;
  lone.take();
  lone.cancel();
  EXPECT_TRUE(lone.run.is_open());
  EXPECT_TRUE(lone.activity().cancel_requested());
  EXPECT_FALSE(*may_cancel(lone.run, {"", "", "c-1"})) << "done already";
  EXPECT_EQ(may_cancel(lone.run, {"", "", "c-2"}).status().message(),
            "cancellation already requested with request ID c-1");
  lone.fail();
  EXPECT_EQ(lone.run.state.status(), model::FAILED) << "no retry of what is to stop";
  EXPECT_FALSE(*may_cancel(lone.run, {"", "", "c-1"}));
  EXPECT_EQ(may_cancel(lone.run, {"", "", "c-2"}).status().message(),
            "activity is in terminal state Failed");
}

TEST(Standalone, ATerminationAsksNobody) {
  Lone lone;
  lone.take();
  lone.step([&](Transaction& tx) { terminate_standalone(tx, {"ada", "enough", "t-1"}); });
  EXPECT_EQ(lone.run.state.status(), model::TERMINATED);
  EXPECT_EQ(lone.events.back().activity_ended().failure().kind(), model::Failure::TERMINATED);
  EXPECT_EQ(lone.events.back().activity_ended().identity(), "ada");
  EXPECT_FALSE(*may_terminate(lone.run, {"", "", "t-1"}));
  EXPECT_EQ(may_terminate(lone.run, {"", "", "t-2"}).status().message(),
            "already terminated with request ID t-1");
  Lone done;
  done.take();
  done.complete();
  EXPECT_EQ(may_terminate(done.run, {"", "", "t-1"}).status().message(),
            "invalid transition from Completed");
}

TEST(Standalone, HeartbeatsAreCountedOverAllAttempts) {
  Lone lone;
  for (int attempt = 0; attempt < 2; ++attempt) {
    lone.take();
    lone.step([&](Transaction& tx) { heartbeat_activity(tx, lone.activity(), "half"); });
    lone.fail();
    lone.wait(10 * kSecond);
  }
  EXPECT_EQ(lone.standalone().heartbeats(), 2);
  EXPECT_NE(lone.standalone().last_heartbeat_ns(), 0);
}

TEST(Standalone, AnOperatorPausesIt) {
  Lone lone;
  model::ActivityPause pause;
  lone.step([&](Transaction& tx) {
    EXPECT_TRUE(pause_activities(tx, {ActivitySelector::By::kId, "pay"}, pause).ok());
  });
  EXPECT_EQ(next_deadline(lone.run), kNever);
  lone.cancel();
  EXPECT_EQ(lone.run.state.status(), model::CANCELED);
  lone.step([&](Transaction& tx) {
    EXPECT_EQ(pause_activities(tx, {ActivitySelector::By::kId, "pay"}, pause).message(),
              "activity execution is not running");
  });
}

// What breaks a limit ends like any other, with a termination that its owner can read.
TEST(Standalone, TheServerTerminatesWhatGrowsTooLarge) {
  Lone lone;
  lone.limits.state_bytes = 4 << 10;
  lone.take();
  lone.step(
      [&](Transaction& tx) { heartbeat_activity(tx, lone.activity(), std::string(8 << 10, 'x')); });
  EXPECT_EQ(lone.run.state.status(), model::TERMINATED);
  EXPECT_EQ(lone.events.back().kind(), model::ACTIVITY_FAILED);
}

// Nobody else remembers why there was another attempt.
TEST(Standalone, AResetKeepsItsLastFailure) {
  Lone lone;
  lone.take();
  lone.fail();
  const ActivitySelector it{ActivitySelector::By::kId, "pay"};
  lone.step([&](Transaction& tx) {
    EXPECT_TRUE(reset_activities(tx, it, {}, [] { return DurationNs{0}; }).ok());
  });
  EXPECT_EQ(lone.activity().attempt(), 1);
  EXPECT_EQ(lone.activity().last_failure().type(), "Oops");
}

TEST(Standalone, OneThatHasEndedIsThereAndCannotBeOperatedOn) {
  Lone lone;
  lone.take();
  lone.complete();
  const ActivitySelector it{ActivitySelector::By::kId, "pay"};
  lone.step([&](Transaction& tx) {
    EXPECT_TRUE(absl::IsFailedPrecondition(pause_activities(tx, it, {})));
  });
}

// A pause must not make an activity earlier than it would have been without one.
TEST(Standalone, UnpausedBeforeItsTimeItWaitsForTheRestOfItsDelay) {
  Lone lone(schedule("pay"), kMinute);
  const ActivitySelector it{ActivitySelector::By::kId, "pay"};
  lone.step([&](Transaction& tx) { EXPECT_TRUE(pause_activities(tx, it, {}).ok()); });
  lone.now += 20 * kSecond;
  lone.step([&](Transaction& tx) {
    EXPECT_TRUE(unpause_activities(tx, it, {}, [] { return DurationNs{0}; }).ok());
  });
  EXPECT_THAT(lone.offers, IsEmpty());
  lone.wait(39 * kSecond);
  EXPECT_THAT(lone.offers, IsEmpty());
  lone.wait(kSecond);
  EXPECT_EQ(lone.offers.size(), 1u);
}

}  // namespace
}  // namespace fairlead::history
