#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/history_testing.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;

model::Event answer(model::EventKind kind, const std::string& id) {
  model::Event command;
  command.set_kind(kind);
  command.mutable_update_event()->set_update_id(id);
  return command;
}
model::Event accept(const std::string& id) { return answer(model::UPDATE_ACCEPTED, id); }
model::Event complete(const std::string& id) { return answer(model::UPDATE_COMPLETED, id); }
model::Event reject(const std::string& id) { return answer(model::UPDATE_REJECTED, id); }

// A run that has done its first task and waits, with a task for an update on its way.
struct Visited : Bench {
  size_t before = 0;

  Visited() {
    start();
    take_task();
    EXPECT_TRUE(complete_task({start_timer("t", kHour)}));
    before = events.size();
    step([](Transaction& tx) { schedule_speculative_task(tx); });
  }

  std::vector<int> news() const { return kinds(before); }
};

// Validation is cheap only if it costs nothing when it says no.
TEST(Update, ATaskForARejectedUpdateLeavesNoTrace) {
  Visited bench;
  EXPECT_EQ(bench.offers.size(), 1u);
  bench.take_task();
  EXPECT_TRUE(bench.run.has_started_task());
  EXPECT_FALSE(may_discard_task(bench.run, false)) << "a timer was written since the last task";
  ASSERT_TRUE(may_discard_task(bench.run, true));
  bench.step([](Transaction& tx) { discard_speculative_task(tx); });
  EXPECT_THAT(bench.news(), ElementsAre());
  EXPECT_FALSE(bench.run.state.has_workflow_task());
  bench.signal();
  EXPECT_THAT(bench.news(), ElementsAre(model::WORKFLOW_SIGNALED, model::WORKFLOW_TASK_SCHEDULED));
}

// A run that waits for its time, and an update that comes before it.
struct Delayed : Bench {
  Delayed() {
    start({.start_delay = kHour});
    step([](Transaction& tx) { schedule_speculative_task(tx); });
    take_task();
  }
};

TEST(Update, ARejectedUpdateLeavesADelayAsItWas) {
  Delayed bench;
  ASSERT_TRUE(may_discard_task(bench.run, false));
  bench.step([](Transaction& tx) { discard_speculative_task(tx); });
  EXPECT_THAT(bench.kinds(), ElementsAre(model::WORKFLOW_STARTED));
  bench.signal();
  EXPECT_FALSE(bench.run.state.has_workflow_task()) << "the delay still holds";
  bench.wait(kHour);
  EXPECT_TRUE(bench.run.state.has_workflow_task());
}

TEST(Update, AnAcceptedUpdateEndsADelay) {
  Delayed bench;
  ASSERT_TRUE(bench.complete_task({accept("u"), complete("u")}));
  EXPECT_FALSE(bench.run.state.has_workflow_task());
  bench.signal();
  EXPECT_TRUE(bench.run.state.has_workflow_task());
}

TEST(Update, ATaskThatIsOutWhenADelayEndsIsTheFirstOne) {
  Bench bench;
  bench.start({.start_delay = kSecond});
  bench.step([](Transaction& tx) { schedule_speculative_task(tx); });
  bench.take_task();
  bench.wait(kSecond);
  EXPECT_THAT(bench.kinds(), ElementsAre(model::WORKFLOW_STARTED, model::WORKFLOW_TASK_SCHEDULED,
                                         model::WORKFLOW_TASK_STARTED));
  EXPECT_FALSE(may_discard_task(bench.run, true));
}

TEST(Update, AnAcceptedUpdateIsWrittenWithItsTask) {
  Visited bench;
  bench.take_task();
  const int64_t promised = bench.run.state.workflow_task().started_id();
  ASSERT_TRUE(bench.complete_task({accept("u"), complete("u")}));
  EXPECT_THAT(
      bench.news(),
      ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_TASK_STARTED,
                  model::WORKFLOW_TASK_COMPLETED, model::UPDATE_ACCEPTED, model::UPDATE_COMPLETED));
  EXPECT_EQ(bench.events[bench.before + 1].id(), promised);
  const auto& update = bench.run.updates.at("u");
  EXPECT_EQ(update.accepted_id(), bench.events[bench.before + 3].id());
  EXPECT_EQ(update.completed_id(), bench.events[bench.before + 4].id());
  EXPECT_EQ(bench.events[bench.before + 4].update_event().accepted_id(), update.accepted_id());
}

TEST(Update, ARejectedOneAmongCommandsLeavesNoEvent) {
  Visited bench;
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({reject("u"), accept("v")}));
  EXPECT_THAT(bench.news(),
              ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_TASK_STARTED,
                          model::WORKFLOW_TASK_COMPLETED, model::UPDATE_ACCEPTED));
  EXPECT_FALSE(bench.run.updates.contains("u"));
}

// The history's order is the order in which things became visible to workers.
TEST(Update, AnythingElseThatHappensMakesTheTaskAnOrdinaryOne) {
  Visited bench;
  bench.signal();
  EXPECT_THAT(bench.news(), ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_SIGNALED));
  bench.take_task();
  EXPECT_FALSE(may_discard_task(bench.run, true));
  ASSERT_TRUE(bench.complete_task());
  EXPECT_THAT(bench.news(),
              ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_SIGNALED,
                          model::WORKFLOW_TASK_STARTED, model::WORKFLOW_TASK_COMPLETED));
}

TEST(Update, ASignalWhileAWorkerHoldsTheTaskIsWrittenAfterIt) {
  Visited bench;
  bench.take_task();
  bench.signal();
  EXPECT_FALSE(may_discard_task(bench.run, true));
  ASSERT_TRUE(bench.complete_task({reject("u")}));
  EXPECT_THAT(bench.news(),
              ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_TASK_STARTED,
                          model::WORKFLOW_TASK_COMPLETED, model::WORKFLOW_SIGNALED,
                          model::WORKFLOW_TASK_SCHEDULED));
}

TEST(Update, ATaskThatFailsIsWrittenAndItsUpdatesAreSentAgain) {
  Visited bench;
  bench.take_task();
  bench.step([](Transaction& tx) {
    fail_workflow_task(tx, {14});
    EXPECT_TRUE(tx.lost_task());
  });
  EXPECT_THAT(bench.news(), ElementsAre(model::WORKFLOW_TASK_SCHEDULED,
                                        model::WORKFLOW_TASK_STARTED, model::WORKFLOW_TASK_FAILED));
  EXPECT_EQ(bench.run.state.workflow_task().attempt(), 2);
}

TEST(Update, AStickyTaskThatNobodyFetchesIsWrittenToo) {
  Bench bench;
  bench.start();
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({start_timer("t", kHour)}, "sticky-1"));
  bench.step([](Transaction& tx) { schedule_speculative_task(tx); });
  const size_t before = bench.events.size();
  bench.wait(5 * kSecond);
  EXPECT_THAT(bench.kinds(before),
              ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_TASK_TIMED_OUT,
                          model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(bench.events[before + 1].workflow_task_ended().scheduled_id(),
            bench.events[before].id());
}

TEST(Update, ARunThatIsTerminatedMeanwhileWritesWhatAWorkerSaw) {
  Visited bench;
  bench.take_task();
  bench.step([](Transaction& tx) { terminate_by_server(tx, "enough"); });
  EXPECT_THAT(bench.news(),
              ElementsAre(model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_TASK_STARTED,
                          model::WORKFLOW_TASK_FAILED, model::WORKFLOW_TERMINATED));
}

TEST(Update, AcceptanceAndCloseFitInOneTask) {
  Visited bench;
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({accept("u"), complete("u"), complete_workflow()}));
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_COMPLETED);
  EXPECT_TRUE(bench.run.updates.contains("u")) << "it can be asked for as long as the run is kept";
}

TEST(Update, AnswersOutOfOrderAreRefused) {
  Visited bench;
  bench.take_task();
  const auto refused = [&](std::vector<model::Event> commands) {
    const auto refusal = check_commands(bench.run, bench.limits, &commands);
    return refusal.has_value() && refusal->cause == FailedCause::kBadUpdateMessage;
  };
  EXPECT_TRUE(refused({complete("u")}));
  EXPECT_TRUE(refused({accept("u"), accept("u")}));
  EXPECT_TRUE(refused({accept("u"), reject("u")}));
  EXPECT_TRUE(refused({accept("u"), complete("u"), complete("u")}));
  EXPECT_FALSE(refused({accept("u"), complete("u"), accept("v")}));
  ASSERT_TRUE(bench.complete_task({accept("u"), complete("u")}));
  bench.signal();
  bench.take_task();
  EXPECT_TRUE(refused({accept("u")}));
  EXPECT_TRUE(refused({complete("u")}));
}

TEST(Update, ManyUpdatesSuggestToContinueAsNew) {
  Bench bench;
  bench.limits.updates = 10;
  bench.start();
  for (int i = 0; i < 9; ++i) {
    bench.take_task();
    EXPECT_FALSE(bench.events.back().workflow_task_started().suggest_continue_as_new());
    ASSERT_TRUE(bench.complete_task({accept(std::to_string(i))}));
    bench.signal();
  }
  bench.take_task();
  EXPECT_TRUE(bench.events.back().workflow_task_started().too_many_updates());
  EXPECT_TRUE(bench.events.back().workflow_task_started().suggest_continue_as_new());
}

}  // namespace
}  // namespace fairlead::history
