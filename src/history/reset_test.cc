#include "history/reset.h"

#include <gtest/gtest.h>

#include "history/children.h"
#include "history/history_testing.h"
#include "history/operate.h"
#include "history/rebuild_testing.h"

namespace fairlead::history {
namespace {

using model::EventKind;

model::Event child(const std::string& id) {
  model::Event command;
  command.set_kind(model::CHILD_INITIATED);
  command.mutable_child_initiated()->set_workflow_id(id);
  command.mutable_child_initiated()->set_parent_close_policy(model::PARENT_CLOSE_TERMINATE);
  return command;
}

model::Event accept(const std::string& id, const std::string& request) {
  model::Event command;
  command.set_kind(model::UPDATE_ACCEPTED);
  command.mutable_update_event()->set_update_id(id);
  command.mutable_update_event()->set_request(request);
  return command;
}

// A base run and the run that a reset makes of it.
struct Pair {
  Bench base;
  Bench next;
  const Fork fork{"run-1", "run-2", "request", "try again"};

  Rebuild rebuild_to(int64_t event_id) const {
    Rebuild rebuild(descendant(base.run.state, event_id, fork));
    for (const auto& event : base.events) {
      if (event.id() < event_id) rebuild.apply(event, 1);
    }
    return rebuild;
  }

  // Resets the base to `event_id`; `next.events` are those that the new run has of its own.
  void reset(int64_t event_id, Reapply wanted = {}) {
    wanted.answers_below = event_id;
    auto rebuild = rebuild_to(event_id);
    ASSERT_TRUE(may_begin_again(rebuild.run()));
    if (base.run.is_open()) base.step([&](Transaction& tx) { end_for_reset(tx, fork); });
    next.run = std::move(rebuild.run());
    next.now = base.now + kMinute;
    next.step([&](Transaction& tx) {
      begin_again(tx, rebuild, fork);
      for (const auto& event : base.events) {
        if (event.id() >= event_id) reapply(tx, event, wanted);
      }
      ask_again(tx, rebuild, {});
    });
  }

  const model::Event& event(EventKind kind) const {
    for (const auto& found : next.events) {
      if (found.kind() == kind) return found;
    }
    ADD_FAILURE() << "no event of kind " << kind;
    return model::Event::default_instance();
  }
};

TEST(Reset, TheTaskFailsAndAnotherOneIsScheduled) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task();
  pair.reset(4);
  EXPECT_EQ(pair.next.kinds(),
            (std::vector<int>{model::WORKFLOW_TASK_FAILED, model::WORKFLOW_TASK_SCHEDULED}));
  const auto& failed = pair.event(model::WORKFLOW_TASK_FAILED);
  EXPECT_EQ(failed.id(), 4);
  EXPECT_EQ(failed.workflow_task_ended().failed_cause(), 20);
  EXPECT_EQ(failed.workflow_task_ended().started_id(), 3);
  EXPECT_EQ(failed.workflow_task_ended().base_run_id(), "run-1");
  EXPECT_EQ(failed.workflow_task_ended().new_run_id(), "run-2");
  EXPECT_EQ(failed.workflow_task_ended().failure().kind(), model::Failure::RESET);
  EXPECT_EQ(failed.workflow_task_ended().failure().message(), "try again");
  EXPECT_EQ(pair.next.run.state.workflow_task().attempt(), 1);
  ASSERT_EQ(pair.next.offers.size(), 1u);
  EXPECT_EQ(pair.base.run.state.status(), model::TERMINATED);
  EXPECT_EQ(pair.base.run.state.reset_run_id(), "run-2");
}

TEST(Reset, ATaskThatNobodyHadIsStartedFirst) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.reset(3);
  EXPECT_EQ(pair.next.kinds(),
            (std::vector<int>{model::WORKFLOW_TASK_STARTED, model::WORKFLOW_TASK_FAILED,
                              model::WORKFLOW_TASK_SCHEDULED}));
  EXPECT_EQ(pair.event(model::WORKFLOW_TASK_STARTED).workflow_task_started().identity(),
            "history-service");
}

// After a failed task the next attempt has only promised its events. They are written now, so that
// there is a task that fails.
TEST(Reset, ATaskThatWouldBeTriedAgainIsWritten) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.step([](Transaction& tx) { fail_workflow_task(tx, {1, {}, "worker"}); });
  pair.base.signal();
  pair.reset(5);
  EXPECT_EQ(pair.next.kinds(),
            (std::vector<int>{model::WORKFLOW_TASK_SCHEDULED, model::WORKFLOW_TASK_STARTED,
                              model::WORKFLOW_TASK_FAILED, model::WORKFLOW_SIGNALED,
                              model::WORKFLOW_TASK_SCHEDULED}));
  EXPECT_EQ(pair.next.offers.size(), 1u);
}

TEST(Reset, OnlyAPlaceWithATaskWillDo) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({schedule("a")});
  EXPECT_FALSE(may_begin_again(pair.rebuild_to(2).run()));
  EXPECT_TRUE(may_begin_again(pair.rebuild_to(3).run()));
  EXPECT_TRUE(may_begin_again(pair.rebuild_to(4).run()));
  EXPECT_FALSE(may_begin_again(pair.rebuild_to(5).run()));
}

TEST(Reset, WhatCameInSinceComesInAgain) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task();
  pair.base.signal("one");
  pair.base.take_task();
  pair.base.signal("two");  // buffered until the reset ends the run
  pair.reset(4);
  EXPECT_EQ(pair.next.kinds(),
            (std::vector<int>{model::WORKFLOW_TASK_FAILED, model::WORKFLOW_SIGNALED,
                              model::WORKFLOW_SIGNALED, model::WORKFLOW_TASK_SCHEDULED}));
  EXPECT_EQ(pair.next.events[1].door(), "one");
  EXPECT_EQ(pair.next.events[2].door(), "two");
  EXPECT_EQ(pair.next.run.state.signals(), 2);
}

TEST(Reset, AnAcceptedUpdateIsAdmittedAgain) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({accept("u", "please")});
  pair.reset(4);
  EXPECT_EQ(pair.next.kinds(),
            (std::vector<int>{model::WORKFLOW_TASK_FAILED, model::UPDATE_ADMITTED,
                              model::WORKFLOW_TASK_SCHEDULED}));
  const auto& update = pair.next.run.updates.at("u");
  EXPECT_EQ(update.admitted_id(), 5);
  EXPECT_EQ(update.accepted_id(), 0);
  EXPECT_EQ(update.request(), "please");

  // The new run's history has the request already: it is not written with the acceptance.
  pair.next.take_task();
  ASSERT_TRUE(pair.next.complete_task({accept("u", "please")}));
  EXPECT_EQ(pair.next.events.back().kind(), model::UPDATE_ACCEPTED);
  EXPECT_EQ(pair.next.events.back().update_event().request(), "");
  EXPECT_NE(pair.next.run.updates.at("u").accepted_id(), 0);
}

TEST(Reset, WhatIsNotWantedIsLeftOut) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({accept("u", "please")});
  pair.base.signal("one");
  pair.reset(4, {.signals = false, .updates = false});
  EXPECT_EQ(pair.next.kinds(),
            (std::vector<int>{model::WORKFLOW_TASK_FAILED, model::WORKFLOW_TASK_SCHEDULED}));
}

TEST(Reset, ActivitiesBeginAnewAndTimersGoOn) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({schedule("a"), start_timer("t", kHour)});
  const TimeNs fires = pair.base.run.timers.begin()->second.fire_ns();
  pair.base.take_activity("a");
  pair.base.signal();
  pair.base.take_task();
  pair.base.complete_task();
  pair.reset(pair.base.events.back().id());
  auto* activity = pair.next.run.find_activity("a");
  ASSERT_NE(activity, nullptr);
  EXPECT_EQ(activity->started_ns(), 0);
  EXPECT_EQ(activity->first_scheduled_ns(), pair.next.now);
  EXPECT_EQ(pair.next.offers.size(), 2u) << "the activity and the workflow task";
  EXPECT_EQ(pair.next.run.timers.begin()->second.fire_ns(), fires);
}

TEST(Reset, AnActivityWhoseStartIsInTheHistoryFails) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({schedule("a")});
  pair.base.take_activity("a");
  pair.base.signal();  // a task waits: what happens now is written at once
  pair.base.step([&](Transaction& tx) {
    complete_activity(tx, *pair.base.run.find_activity("a"), "worker", "done");
  });
  const int64_t completed = pair.base.events.back().id();
  pair.base.take_task();
  pair.reset(completed);
  const auto& failed = pair.event(model::ACTIVITY_FAILED);
  EXPECT_EQ(failed.activity_ended().started_id(), completed - 1);
  EXPECT_EQ(failed.activity_ended().retry_state(), model::RETRY_NON_RETRYABLE_FAILURE);
  EXPECT_TRUE(pair.next.run.activities.empty());
}

// An operator's word about the workflow outlives the run.
TEST(Reset, OptionsAreChangedAgain) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task();
  model::Priority urgent;
  urgent.set_priority_key(1);
  pair.base.step([&](Transaction& tx) { change_priority(tx, urgent, "door", "envelope"); });
  pair.reset(4);
  EXPECT_EQ(pair.event(model::WORKFLOW_OPTIONS_UPDATED).door(), "door");
  EXPECT_EQ(pair.next.run.state.priority().priority_key(), 1);
  ASSERT_EQ(pair.next.offers.size(), 1u);
  EXPECT_EQ(pair.next.offers[0].priority.priority_key(), 1);
}

TEST(Reset, ActivitiesBeginAnewWithTheChangedOptions) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({schedule("a")});
  pair.base.signal();
  pair.base.take_task();
  pair.base.complete_task();
  const int64_t completed = pair.base.events.back().id();
  model::Priority urgent;
  urgent.set_priority_key(1);
  pair.base.step([&](Transaction& tx) { change_priority(tx, urgent, "door", "envelope"); });
  pair.reset(completed);
  ASSERT_EQ(pair.next.offers.size(), 2u);
  for (const auto& offer : pair.next.offers) EXPECT_EQ(offer.priority.priority_key(), 1);
}

// A child belongs to the workflow, not to the run that a reset ends.
TEST(Reset, ChildrenAreKept) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({child("c"), child("d")});
  pair.base.step([](Transaction& tx) { child_started(tx, 5, "c-run"); });
  pair.base.take_task();
  pair.base.complete_task();
  pair.reset(pair.base.events.back().id());
  for (const auto& posted : pair.base.posted) EXPECT_FALSE(posted.letter.has_value());
  EXPECT_EQ(pair.next.run.children.at(5).run_id(), "c-run");
  // The one that was only asked for is asked for again, as the same request.
  ASSERT_EQ(pair.next.posted.size(), 1u);
  EXPECT_EQ(pair.next.posted[0].event_id, 6);
  EXPECT_EQ(pair.next.posted[0].letter->request_id(), "run-1/6");
  EXPECT_EQ(pair.next.posted[0].letter->start_child().author_run_id(), "run-1");
  EXPECT_EQ(pair.next.posted[0].letter->former_run_ids(0), "run-1");
}

TEST(Reset, TheEndOfAChildIsToldOnceMore) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({child("c")});
  pair.base.step([](Transaction& tx) { child_started(tx, 5, "c-run"); });
  pair.base.take_task();
  pair.base.complete_task();
  const int64_t fork = pair.base.events.back().id();
  pair.base.step([](Transaction& tx) {
    model::Letter::ChildClosed closed;
    closed.set_kind(model::CHILD_COMPLETED);
    closed.set_door("result");
    closed.set_first_run_id("c-run");
    closed.set_initiated_id(5);
    child_closed(tx, closed);
  });
  pair.reset(fork);
  const auto& completed = pair.event(model::CHILD_COMPLETED);
  EXPECT_EQ(completed.door(), "result");
  EXPECT_EQ(completed.child_event().started_id(), 6);
  EXPECT_TRUE(pair.next.run.children.empty());
  EXPECT_TRUE(pair.next.posted.empty());
}

// A run that shares only some events with the new one has asked for other things under later ids.
TEST(Reset, AnswersToWhatAnotherRunHasAskedAreNotTaken) {
  Pair pair;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task({child("c")});
  pair.base.step([](Transaction& tx) { child_started(tx, 5, "c-run"); });
  pair.base.take_task();
  pair.base.complete_task();
  pair.reset(pair.base.events.back().id());
  model::Event closed;
  closed.set_kind(model::CHILD_COMPLETED);
  closed.mutable_child_event()->set_initiated_id(5);
  const Reapply elsewhere{.signals = false, .updates = false, .options = false, .answers_below = 5};
  pair.next.step([&](Transaction& tx) { reapply(tx, closed, elsewhere); });
  EXPECT_EQ(pair.next.run.children.size(), 1u);
  const Reapply shared{.signals = false, .updates = false, .options = false, .answers_below = 6};
  pair.next.step([&](Transaction& tx) { reapply(tx, closed, shared); });
  EXPECT_TRUE(pair.next.run.children.empty());
}

TEST(Reset, TimeBeginsAnew) {
  Pair pair;
  pair.base.run.state.set_execution_timeout_ns(kDay);
  pair.base.run.state.set_run_timeout_ns(kHour);
  const TimeNs started = pair.base.now;
  pair.base.start();
  pair.base.take_task();
  pair.base.complete_task();
  pair.reset(4);
  const auto& state = pair.next.run.state;
  EXPECT_EQ(state.start_ns(), pair.next.now);
  EXPECT_EQ(state.original_start_ns(), started);
  EXPECT_EQ(state.run_expiration_ns(), pair.next.now + kHour);
  EXPECT_EQ(state.execution_expiration_ns(), pair.next.now + kDay);
}

// A reset of a reset: events keep the name of the run that first wrote them.
TEST(Reset, EveryEventHasOneAuthor) {
  model::RunState base;
  base.set_run_id("b");
  auto* ancestor = base.add_ancestors();
  ancestor->set_run_id("a");
  ancestor->set_events_below(10);
  const auto state = descendant(base, 20, {"b", "c", "request", ""});
  EXPECT_EQ(author_of(state, 9), "a");
  EXPECT_EQ(author_of(state, 10), "b");
  EXPECT_EQ(author_of(state, 20), "c");
  const auto earlier = descendant(base, 5, {"b", "c", "request", ""});
  EXPECT_EQ(author_of(earlier, 4), "a");
  EXPECT_EQ(author_of(earlier, 5), "c");
}

}  // namespace
}  // namespace fairlead::history
