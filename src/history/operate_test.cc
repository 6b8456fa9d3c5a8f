#include "history/operate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/history_testing.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using By = ActivitySelector::By;

constexpr DurationNs kNoDelay = 0;

ActivitySelector by_id(const std::string& id = "a") { return {By::kId, id}; }

model::Failure oops(bool is_final = false) {
  model::Failure failure;
  failure.set_kind(model::Failure::APPLICATION);
  failure.set_type("Oops");
  failure.set_non_retryable(is_final);
  return failure;
}

// A run whose first task has scheduled these activities, each waiting at a place of its own.
class Desk : public Bench {
 public:
  explicit Desk(std::vector<model::Event> commands = {schedule("a")}) {
    start();
    take_task();
    EXPECT_TRUE(complete_task(std::move(commands)));
    settle();
  }

  model::ActivityState& activity(const std::string& id = "a") { return *run.find_activity(id); }

  // Gives places to what was offered, as the queues do.
  void settle() {
    for (const auto& offer : offers) {
      if (offer.kind != model::ACTIVITY_TASK) continue;
      auto* place = run.find_activity(offer.scheduled_id)->mutable_place();
      *place->mutable_queue() = offer.queue;
      place->set_seq(++last_seq_);
    }
  }

  absl::Status pause(const ActivitySelector& which = by_id(), const std::string& request = "") {
    model::ActivityPause wanted;
    wanted.set_identity("ada");
    wanted.set_reason("bad deploy");
    wanted.set_request_id(request);
    return act([&](Transaction& tx) { return pause_activities(tx, which, wanted); });
  }
  absl::Status unpause(Unpause how = {}, DurationNs delay = kNoDelay,
                       const ActivitySelector& which = by_id()) {
    return act(
        [&](Transaction& tx) { return unpause_activities(tx, which, how, [&] { return delay; }); });
  }
  absl::Status reset(Reset how = {}, DurationNs delay = kNoDelay,
                     const ActivitySelector& which = by_id()) {
    return act(
        [&](Transaction& tx) { return reset_activities(tx, which, how, [&] { return delay; }); });
  }
  absl::StatusOr<model::ActivityScheduled> change(const ActivityChange& wanted,
                                                  const ActivitySelector& which = by_id()) {
    absl::StatusOr<model::ActivityScheduled> result = absl::UnknownError("");
    (void)act([&](Transaction& tx) {
      result = change_activities(tx, which, wanted);
      return result.status();
    });
    return result;
  }
  absl::StatusOr<model::ActivityScheduled> restore() {
    absl::StatusOr<model::ActivityScheduled> result = absl::UnknownError("");
    (void)act([&](Transaction& tx) {
      result = restore_activities(tx, by_id());
      return result.status();
    });
    return result;
  }

  void fail(model::Failure failure = oops()) {
    step([&](Transaction& tx) { fail_activity(tx, activity(), "worker", std::move(failure)); });
    settle();
  }
  void wait_settled(DurationNs duration) {
    wait(duration);
    settle();
  }

 private:
  template <typename Act>
  absl::Status act(Act decide) {
    absl::Status status;
    step([&](Transaction& tx) { status = decide(tx); });
    settle();
    return status;
  }

  uint64_t last_seq_ = 0;
};

// --- Pause --------------------------------------------------------------------------------------

TEST(Pause, AWaitingTaskLeavesItsQueueAndIsNotHandedOut) {
  Desk desk;
  const size_t before = desk.events.size();
  const uint64_t stamp = desk.activity().stamp();
  ASSERT_TRUE(desk.pause().ok());
  ASSERT_EQ(desk.drops.size(), 1u);
  EXPECT_EQ(desk.drops[0].place.seq(), 1u);
  EXPECT_FALSE(desk.activity().has_place());
  EXPECT_EQ(desk.activity().pause().identity(), "ada");
  EXPECT_EQ(desk.activity().pause().reason(), "bad deploy");
  EXPECT_EQ(desk.activity().pause().since_ns(), desk.now);
  EXPECT_EQ(desk.events.size(), before) << "the workflow does not see it";
  // A poll that had picked the task just before finds that nobody wants it.
  desk.step([&](Transaction& tx) {
    EXPECT_EQ(start_activity(tx, desk.activity().scheduled_id(), stamp, {"w", "r"}), nullptr);
    EXPECT_EQ(
        start_activity(tx, desk.activity().scheduled_id(), desk.activity().stamp(), {"w", "r"}),
        nullptr);
  });
}

// Pausing for a day must not time the activity out: nobody could have worked on it.
TEST(Pause, NoTimeRunsOutWhileNothingIsTried) {
  auto command = schedule("a", kMinute);
  command.mutable_activity_scheduled()->set_schedule_to_close_ns(kHour);
  command.mutable_activity_scheduled()->set_schedule_to_start_ns(kMinute);
  Desk desk({command});
  ASSERT_TRUE(desk.pause().ok());
  EXPECT_EQ(next_deadline(desk.run), kNever);
  desk.wait(kDay);
  ASSERT_NE(desk.run.find_activity("a"), nullptr);
  // But once it is tried again, the time that it was given is over.
  const size_t before = desk.events.size();
  ASSERT_TRUE(desk.unpause().ok());
  EXPECT_THAT(desk.kinds(before),
              ElementsAre(model::ACTIVITY_TIMED_OUT, model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(desk.events[before].activity_ended().failure().timeout_type(),
            model::SCHEDULE_TO_CLOSE);
}

TEST(Pause, ABackOffIsNotFollowedByAnAttempt) {
  Desk desk;
  desk.take_activity("a");
  desk.fail();
  ASSERT_TRUE(desk.pause().ok());
  desk.wait(kHour);
  EXPECT_THAT(desk.offers, IsEmpty());
  EXPECT_EQ(desk.activity().attempt(), 2);
}

TEST(Pause, TheAttemptThatAWorkerHasGoesOn) {
  Desk desk;
  desk.take_activity("a");
  ASSERT_TRUE(desk.pause().ok());
  EXPECT_THAT(desk.drops, IsEmpty());
  EXPECT_NE(desk.activity().started_ns(), 0);
  const size_t before = desk.events.size();
  desk.step([&](Transaction& tx) { complete_activity(tx, desk.activity(), "worker", ""); });
  EXPECT_THAT(desk.kinds(before), ElementsAre(model::ACTIVITY_STARTED, model::ACTIVITY_COMPLETED,
                                              model::WORKFLOW_TASK_SCHEDULED));
}

// An SDK ends an attempt that hears of the pause. That must not be the end of the activity, not
// even on its last attempt.
TEST(Pause, AFailureWhilePausedIsCountedButNotRetried) {
  auto command = schedule("a");
  command.mutable_activity_scheduled()->mutable_retry_policy()->set_maximum_attempts(1);
  Desk desk({command});
  desk.take_activity("a");
  ASSERT_TRUE(desk.pause().ok());
  desk.fail();
  ASSERT_NE(desk.run.find_activity("a"), nullptr);
  EXPECT_EQ(desk.activity().attempt(), 2);
  EXPECT_EQ(desk.activity().started_ns(), 0);
  EXPECT_THAT(desk.offers, IsEmpty());
  EXPECT_EQ(next_deadline(desk.run), kNever);
  ASSERT_TRUE(desk.unpause().ok());
  EXPECT_EQ(desk.offers.size(), 1u);
}

TEST(Pause, AFailureThatIsFinalEndsAPausedActivity) {
  Desk desk;
  desk.take_activity("a");
  ASSERT_TRUE(desk.pause().ok());
  desk.fail(oops(true));
  EXPECT_TRUE(desk.run.activities.empty());
}

// A worker that died with a paused attempt would count as running for ever.
TEST(Pause, AnAttemptStillTimesOut) {
  Desk desk({schedule("a", 10 * kSecond)});
  desk.take_activity("a");
  ASSERT_TRUE(desk.pause().ok());
  desk.wait(10 * kSecond);
  EXPECT_EQ(desk.activity().started_ns(), 0);
  EXPECT_EQ(desk.activity().attempt(), 2);
  desk.wait(kHour);
  EXPECT_THAT(desk.offers, IsEmpty());
}

TEST(Pause, AnUndeliveredAttemptIsNotOfferedAgain) {
  Desk desk;
  desk.take_activity("a");
  ASSERT_TRUE(desk.pause().ok());
  desk.step([&](Transaction& tx) { return_activity(tx, desk.activity()); });
  EXPECT_THAT(desk.offers, IsEmpty());
  EXPECT_EQ(desk.activity().attempt(), 1);
  ASSERT_TRUE(desk.unpause().ok());
  EXPECT_EQ(desk.offers.size(), 1u);
}

TEST(Pause, TheSameRequestTwiceIsOneAndAnotherIsRefused) {
  Desk desk({schedule("a"), schedule("b")});
  ASSERT_TRUE(desk.pause(by_id(), "r1").ok());
  EXPECT_TRUE(desk.pause(by_id(), "r1").ok());
  EXPECT_EQ(desk.pause(by_id(), "r2").code(), absl::StatusCode::kFailedPrecondition);
  // All or none: "b" must not be paused by a command that was refused.
  EXPECT_EQ(desk.pause({By::kType, "charge"}, "r2").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(desk.activity("b").has_pause());
}

TEST(Pause, ActivitiesAreChosenByIdByTypeOrAll) {
  auto other = schedule("b");
  other.mutable_activity_scheduled()->set_activity_type("refund");
  Desk desk({schedule("a"), other, schedule("c")});
  ASSERT_TRUE(desk.pause({By::kType, "charge"}).ok());
  EXPECT_TRUE(desk.activity("a").has_pause());
  EXPECT_FALSE(desk.activity("b").has_pause());
  EXPECT_TRUE(desk.activity("c").has_pause());
  ASSERT_TRUE(desk.unpause({}, kNoDelay, {By::kAll, ""}).ok());
  EXPECT_EQ(desk.offers.size(), 2u) << "the one that was not paused is left alone";
  EXPECT_TRUE(absl::IsNotFound(desk.pause(by_id("z"))));
  EXPECT_TRUE(absl::IsNotFound(desk.pause({By::kType, "z"})));
}

TEST(Pause, ACanceledOneEndsAtOnce) {
  Desk desk;
  ASSERT_TRUE(desk.pause().ok());
  desk.signal();
  desk.take_task();
  ASSERT_TRUE(desk.complete_task({cancel_activity_command(5)}));
  EXPECT_TRUE(desk.run.activities.empty());
}

TEST(Pause, AClosedRunHasNoActivities) {
  Desk desk;
  desk.step([&](Transaction& tx) { terminate_by_server(tx, "enough"); });
  EXPECT_EQ(desk.pause().message(), "workflow execution already completed");
}

// --- Unpause ------------------------------------------------------------------------------------

TEST(Unpause, TheNextAttemptIsOfferedNowOrAfterItsJitter) {
  Desk desk;
  desk.take_activity("a");
  desk.fail();
  ASSERT_TRUE(desk.pause().ok());
  ASSERT_TRUE(desk.unpause({}, 7 * kSecond).ok());
  EXPECT_FALSE(desk.activity().has_pause());
  EXPECT_THAT(desk.offers, IsEmpty());
  desk.wait(7 * kSecond - 1);
  EXPECT_THAT(desk.offers, IsEmpty());
  desk.wait(1);
  EXPECT_EQ(desk.offers.size(), 1u);
  EXPECT_EQ(desk.activity().attempt(), 2);
}

TEST(Unpause, AttemptsAndHeartbeatAreResetOnRequest) {
  Desk desk;
  desk.take_activity("a");
  desk.step([&](Transaction& tx) { heartbeat_activity(tx, desk.activity(), "half-way"); });
  desk.fail();
  ASSERT_TRUE(desk.pause().ok());
  ASSERT_TRUE(desk.unpause().ok());
  EXPECT_EQ(desk.activity().attempt(), 2);
  EXPECT_EQ(desk.activity().heartbeat_details(), "half-way");
  ASSERT_TRUE(desk.pause().ok());
  ASSERT_TRUE(desk.unpause({.reset_attempts = true, .reset_heartbeat = true}).ok());
  EXPECT_EQ(desk.activity().attempt(), 1);
  EXPECT_EQ(desk.activity().heartbeat_details(), "");
}

// The worker may not even have heard of the pause: its attempt is as good as ever.
TEST(Unpause, ARunningAttemptIsNotDisturbed) {
  Desk desk;
  desk.take_activity("a");
  ASSERT_TRUE(desk.pause().ok());
  ASSERT_TRUE(desk.unpause({}, kSecond).ok());
  EXPECT_THAT(desk.offers, IsEmpty());
  EXPECT_NE(desk.activity().started_ns(), 0);
}

TEST(Unpause, OneThatIsNotPausedStaysWhereItIs) {
  Desk desk;
  ASSERT_TRUE(desk.unpause({.reset_attempts = true}).ok());
  EXPECT_THAT(desk.drops, IsEmpty());
  EXPECT_THAT(desk.offers, IsEmpty());
}

// Activities that end while others are unpaused move in memory.
TEST(Unpause, ManyAtOnceOfWhichSomeHaveRunOutOfTime) {
  std::vector<model::Event> commands;
  for (int i = 0; i < 300; ++i) {
    commands.push_back(schedule(std::to_string(i)));
    if (i % 3 == 0) {
      commands.back().mutable_activity_scheduled()->set_schedule_to_close_ns(kMinute);
    }
  }
  Desk desk(std::move(commands));
  ASSERT_TRUE(desk.pause({By::kAll, ""}).ok());
  desk.wait(kHour);
  ASSERT_TRUE(desk.unpause({}, kNoDelay, {By::kAll, ""}).ok());
  EXPECT_EQ(desk.run.activities.size(), 200u);
  EXPECT_EQ(std::count_if(desk.offers.begin(), desk.offers.end(),
                          [](const auto& offer) { return offer.kind == model::ACTIVITY_TASK; }),
            200);
}

// --- Reset --------------------------------------------------------------------------------------

TEST(Reset, ABackOffEndsAndTheFirstAttemptComesAgain) {
  Desk desk;
  desk.take_activity("a");
  desk.step([&](Transaction& tx) { heartbeat_activity(tx, desk.activity(), "half-way"); });
  desk.fail();
  ASSERT_TRUE(desk.reset().ok());
  EXPECT_EQ(desk.offers.size(), 1u);
  EXPECT_EQ(desk.activity().attempt(), 1);
  EXPECT_EQ(desk.activity().heartbeat_details(), "half-way");
  EXPECT_FALSE(desk.activity().has_last_failure());
}

TEST(Reset, WithJitterItWaitsAgain) {
  Desk desk;
  desk.take_activity("a");
  desk.fail();
  ASSERT_TRUE(desk.reset({}, 3 * kSecond).ok());
  EXPECT_THAT(desk.offers, IsEmpty());
  EXPECT_EQ(next_deadline(desk.run), desk.now + 3 * kSecond);
}

TEST(Reset, OneInItsQueueKeepsItsPlace) {
  Desk desk;
  ASSERT_TRUE(desk.reset({}, kSecond).ok());
  EXPECT_THAT(desk.drops, IsEmpty());
  EXPECT_EQ(desk.activity().place().seq(), 1u);
}

TEST(Reset, ARunningAttemptHearsOfItAndCountsAsTheFirst) {
  Desk desk;
  desk.take_activity("a");
  desk.fail();
  desk.wait_settled(kSecond);
  desk.take_activity("a");
  desk.step([&](Transaction& tx) { heartbeat_activity(tx, desk.activity(), "half-way"); });
  ASSERT_TRUE(desk.reset({.reset_heartbeat = true}).ok());
  EXPECT_TRUE(desk.activity().reset());
  EXPECT_EQ(desk.activity().attempt(), 1);
  EXPECT_EQ(desk.activity().started_attempt(), 2) << "the worker's token says so";
  EXPECT_EQ(desk.activity().heartbeat_details(), "half-way") << "until the next attempt";
  desk.fail();
  EXPECT_FALSE(desk.activity().reset());
  EXPECT_EQ(desk.activity().attempt(), 2);
  EXPECT_EQ(desk.activity().heartbeat_details(), "");
  EXPECT_EQ(desk.activity().heartbeat_ns(), 0);
  EXPECT_EQ(next_deadline(desk.run), desk.now + kSecond) << "the back-off of a first attempt";
}

TEST(Reset, APausedOneGoesOnUnlessItIsToStayPaused) {
  Desk desk;
  desk.take_activity("a");
  desk.step([&](Transaction& tx) { heartbeat_activity(tx, desk.activity(), "half-way"); });
  desk.fail();
  ASSERT_TRUE(desk.pause().ok());
  ASSERT_TRUE(desk.reset({.keep_paused = true, .reset_heartbeat = true}).ok());
  EXPECT_TRUE(desk.activity().has_pause());
  EXPECT_EQ(desk.activity().attempt(), 1);
  EXPECT_EQ(desk.activity().heartbeat_details(), "");
  EXPECT_TRUE(desk.activity().has_last_failure()) << "shown until it is tried again";
  EXPECT_THAT(desk.offers, IsEmpty());
  ASSERT_TRUE(desk.reset().ok());
  EXPECT_FALSE(desk.activity().has_pause());
  EXPECT_EQ(desk.offers.size(), 1u);
}

TEST(Reset, OptionsComeBackOnRequest) {
  Desk desk;
  ASSERT_TRUE(desk.change({.task_queue = "elsewhere"}).ok());
  ASSERT_TRUE(desk.pause().ok());
  ASSERT_TRUE(desk.reset({.restore_options = true}).ok());
  ASSERT_EQ(desk.offers.size(), 1u);
  EXPECT_EQ(desk.offers[0].queue.name(), "orders");
  EXPECT_FALSE(desk.activity().has_original());
}

// --- Options ------------------------------------------------------------------------------------

TEST(Options, AWaitingTaskMovesToItsNewQueue) {
  Desk desk;
  const auto options = desk.change({.task_queue = "elsewhere"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->task_queue(), "elsewhere");
  ASSERT_EQ(desk.drops.size(), 1u);
  EXPECT_EQ(desk.drops[0].place.queue().name(), "orders");
  ASSERT_EQ(desk.offers.size(), 1u);
  EXPECT_EQ(desk.offers[0].queue.name(), "elsewhere");
}

TEST(Options, AWaitingTaskMovesToItsNewLine) {
  Desk desk;
  ASSERT_TRUE(desk.change({.priority = {.priority_key = 1, .fairness_key = "acme"}}).ok());
  EXPECT_EQ(desk.drops.size(), 1u);
  ASSERT_EQ(desk.offers.size(), 1u);
  EXPECT_EQ(desk.offers[0].priority.priority_key(), 1);
  EXPECT_EQ(desk.offers[0].priority.fairness_key(), "acme");
}

// A place in a line is worth something: who only lengthens a timeout does not lose it.
TEST(Options, OthersLeaveItInItsPlace) {
  Desk desk;
  ASSERT_TRUE(desk.change({.start_to_close = kHour, .heartbeat = kMinute}).ok());
  EXPECT_THAT(desk.drops, IsEmpty());
  EXPECT_EQ(desk.activity().scheduled().start_to_close_ns(), kHour);
  EXPECT_EQ(desk.activity().scheduled().heartbeat_ns(), kMinute);
}

TEST(Options, TimeoutsOfARunningAttemptAreTheNewOnes) {
  Desk desk({schedule("a", 10 * kSecond)});
  desk.take_activity("a");
  ASSERT_TRUE(desk.change({.start_to_close = kMinute}).ok());
  EXPECT_EQ(next_deadline(desk.run), desk.now + kMinute);
  desk.wait(30 * kSecond);
  EXPECT_NE(desk.activity().started_ns(), 0);
}

TEST(Options, ABackOffGetsTheLengthOfTheNewPolicy) {
  Desk desk;
  desk.take_activity("a");
  desk.fail();
  desk.wait(kSecond / 2);
  ASSERT_TRUE(desk.change({.retry = {.initial_interval = kMinute}}).ok());
  EXPECT_EQ(next_deadline(desk.run), desk.now - kSecond / 2 + kMinute);
  ASSERT_TRUE(desk.change({.retry = {.initial_interval = kSecond / 4}}).ok());
  EXPECT_EQ(desk.offers.size(), 1u) << "it is due already";
}

TEST(Options, APausedOneTakesThemAlong) {
  Desk desk;
  ASSERT_TRUE(desk.pause().ok());
  ASSERT_TRUE(desk.change({.task_queue = "elsewhere"}).ok());
  EXPECT_THAT(desk.offers, IsEmpty());
  ASSERT_TRUE(desk.unpause().ok());
  ASSERT_EQ(desk.offers.size(), 1u);
  EXPECT_EQ(desk.offers[0].queue.name(), "elsewhere");
}

TEST(Options, TheyComeBackAsTheWorkflowAskedForThem) {
  Desk desk;
  const auto before = desk.activity().scheduled().SerializeAsString();
  ASSERT_TRUE(desk.change({.start_to_close = kHour}).ok());
  ASSERT_TRUE(desk.change({.task_queue = "elsewhere", .retry = {.maximum_attempts = 3}}).ok());
  const auto restored = desk.restore();
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(restored->SerializeAsString(), before);
  EXPECT_EQ(desk.offers.size(), 1u) << "it moves back to its queue";
  EXPECT_TRUE(desk.restore().ok());
  EXPECT_THAT(desk.offers, IsEmpty());
}

TEST(Options, WhatContradictsItselfIsRefusedForAll) {
  auto whole = schedule("b", 0);
  whole.mutable_activity_scheduled()->set_schedule_to_close_ns(kMinute);
  Desk desk({schedule("a"), whole});
  const auto refusal = desk.change({.start_to_close = 0}, {By::kAll, ""});
  EXPECT_EQ(refusal.status().message(),
            "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. "
            "ActivityId=a ActivityType=charge");
  EXPECT_FALSE(desk.activity("b").has_original());
  EXPECT_EQ(desk.change({.retry = {.maximum_interval = 1}}).status().message(),
            "MaximumInterval cannot be less than InitialInterval on retry policy.");
  EXPECT_EQ(desk.change({.retry = {.backoff_coefficient = 0.5}}).status().message(),
            "BackoffCoefficient cannot be less than 1 on retry policy.");
  EXPECT_TRUE(
      desk.change({.retry = {.non_retryable_error_types = std::vector<std::string>{"Bad"}}}).ok());
  EXPECT_EQ(desk.activity().scheduled().retry_policy().non_retryable_error_types(0), "Bad");
}

// --- The run's priority -------------------------------------------------------------------------

void give_priority(Bench& bench, const PriorityChange& change) {
  bench.step([&](Transaction& tx) {
    change_priority(tx, changed(tx.state().priority(), change), "door", "envelope");
  });
}

TEST(RunPriority, TheWaitingWorkflowTaskMovesAndNoOtherIsMade) {
  Bench bench;
  bench.start();
  bench.run.state.mutable_workflow_task()->mutable_place()->set_seq(7);
  const size_t before = bench.events.size();
  give_priority(bench, {.priority_key = 1, .fairness_key = "acme"});
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::WORKFLOW_OPTIONS_UPDATED));
  EXPECT_EQ(bench.events[before].workflow_options_updated().priority().fairness_key(), "acme");
  ASSERT_EQ(bench.drops.size(), 1u);
  EXPECT_EQ(bench.drops[0].place.seq(), 7u);
  ASSERT_EQ(bench.offers.size(), 1u);
  EXPECT_EQ(bench.offers[0].priority.priority_key(), 1);
}

TEST(RunPriority, ARunWithoutATaskIsNotWoken) {
  Bench bench;
  bench.start();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({schedule("a")}));
  const size_t before = bench.events.size();
  give_priority(bench, {.priority_key = 1});
  EXPECT_THAT(bench.kinds(before), ElementsAre(model::WORKFLOW_OPTIONS_UPDATED));
  EXPECT_FALSE(bench.run.state.has_workflow_task());
  // The next attempt has it.
  bench.take_activity("a");
  bench.step(
      [&](Transaction& tx) { fail_activity(tx, *bench.run.find_activity("a"), "worker", oops()); });
  bench.wait(kSecond);
  ASSERT_EQ(bench.offers.size(), 1u);
  EXPECT_EQ(bench.offers[0].priority.priority_key(), 1);
}

// Whoever makes a workflow urgent means the work that it waits for, too.
TEST(RunPriority, WaitingActivitiesThatInheritItMove) {
  auto own = schedule("own");
  own.mutable_activity_scheduled()->mutable_priority()->set_priority_key(4);
  Desk desk({schedule("heir"), std::move(own), schedule("taken")});
  desk.take_activity("taken");
  give_priority(desk, {.priority_key = 1});
  ASSERT_EQ(desk.drops.size(), 1u);
  EXPECT_EQ(desk.drops[0].place.seq(), 1u);
  ASSERT_EQ(desk.offers.size(), 1u);
  EXPECT_EQ(desk.offers[0].scheduled_id, desk.activity("heir").scheduled_id());
  EXPECT_EQ(desk.offers[0].stamp, desk.activity("heir").stamp());
  EXPECT_EQ(desk.offers[0].priority.priority_key(), 1);
  desk.settle();

  // A part that both do not say themselves moves both.
  give_priority(desk, {.fairness_key = "acme"});
  ASSERT_EQ(desk.offers.size(), 2u);
  EXPECT_EQ(desk.offers[0].priority.fairness_key(), "acme");
  EXPECT_EQ(desk.offers[1].priority.priority_key(), 4);
  EXPECT_EQ(desk.offers[1].priority.fairness_key(), "acme");
  desk.settle();
  give_priority(desk, {.fairness_key = "acme"});
  EXPECT_THAT(desk.offers, IsEmpty()) << "nothing changed: everyone keeps their place";
}

// Nothing may come between a task's start and its end, and what had to wait brings another task.
TEST(RunPriority, TheEventWaitsForTheTaskThatAWorkerHas) {
  Bench bench;
  bench.start();
  bench.take_task();
  const size_t before = bench.events.size();
  give_priority(bench, {.fairness_weight = 2.5F});
  EXPECT_EQ(bench.events.size(), before);
  EXPECT_EQ(bench.run.state.priority().fairness_weight(), 2.5F);
  ASSERT_TRUE(bench.complete_task());
  EXPECT_THAT(bench.kinds(before),
              ElementsAre(model::WORKFLOW_TASK_COMPLETED, model::WORKFLOW_OPTIONS_UPDATED,
                          model::WORKFLOW_TASK_SCHEDULED));
}

}  // namespace
}  // namespace fairlead::history
