#include "history/children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/history_testing.h"

namespace fairlead::history {
namespace {

using testing::ElementsAre;

model::Event start_child(const std::string& id = "child-1",
                         model::ParentClosePolicy policy = model::PARENT_CLOSE_TERMINATE) {
  model::Event command;
  command.set_kind(model::CHILD_INITIATED);
  command.set_door("input");
  auto* child = command.mutable_child_initiated();
  child->set_workflow_id(id);
  child->set_workflow_type("ship");
  child->set_parent_close_policy(policy);
  child->set_start_door("the child's input");
  return command;
}

model::Event signal_external(const std::string& id = "other") {
  model::Event command;
  command.set_kind(model::SIGNAL_EXTERNAL_INITIATED);
  command.mutable_external_event()->mutable_run()->set_workflow_id(id);
  command.mutable_external_event()->set_target_door("hello");
  return command;
}

model::Letter::ChildClosed completed(int64_t initiated_id) {
  model::Letter::ChildClosed closed;
  closed.set_kind(model::CHILD_COMPLETED);
  closed.set_door("result");
  closed.mutable_child()->set_workflow_id("child-1");
  closed.mutable_child()->set_run_id("child-run-2");
  closed.set_first_run_id("child-run-1");
  closed.set_initiated_id(initiated_id);
  return closed;
}

// A run whose first task has started a child; the letter is in `posted`.
Bench with_child(model::Event command = start_child()) {
  Bench bench;
  bench.run.state.mutable_priority()->set_fairness_key("tenant");
  bench.start();
  bench.take_task();
  EXPECT_TRUE(bench.complete_task({std::move(command)}));
  return bench;
}

constexpr int64_t kInitiated = 5;

TEST(Children, AreAskedToStartByLetter) {
  auto command = start_child();
  command.mutable_child_initiated()->mutable_priority()->set_priority_key(2);
  auto bench = with_child(command);
  EXPECT_EQ(bench.events.back().kind(), model::CHILD_INITIATED);
  EXPECT_EQ(bench.events.back().id(), kInitiated);
  EXPECT_EQ(bench.events.back().child_initiated().start_door(), "") << "it is in the letter";
  ASSERT_EQ(bench.posted.size(), 1u);
  EXPECT_EQ(bench.posted[0].event_id, kInitiated);
  const auto& letter = *bench.posted[0].letter;
  EXPECT_EQ(letter.to().workflow_id(), "child-1");
  const auto& start = letter.start_child();
  EXPECT_EQ(start.child().start_door(), "the child's input");
  EXPECT_EQ(start.child().task_queue(), "orders");
  EXPECT_EQ(bench.events.back().child_initiated().task_timeout_ns(), 10 * kSecond);
  EXPECT_EQ(start.child().priority().priority_key(), 2);
  EXPECT_EQ(start.child().priority().fairness_key(), "tenant") << "each field on its own";
  EXPECT_EQ(start.parent().run().run_id(), "run-1");
  EXPECT_EQ(start.root().workflow_id(), "order-1");
}

TEST(Children, TellWhenTheyStartAndClose) {
  auto bench = with_child();
  bench.step([](Transaction& tx) { child_started(tx, kInitiated, "child-run-1"); });
  EXPECT_EQ(bench.events[kInitiated].kind(), model::CHILD_STARTED);
  EXPECT_FALSE(bench.posted[0].letter.has_value()) << "the letter is settled";
  EXPECT_EQ(bench.offers.size(), 1u) << "the workflow hears of it";
  bench.take_task();
  ASSERT_TRUE(bench.complete_task());
  const size_t before = bench.events.size();
  bench.step([](Transaction& tx) { child_closed(tx, completed(kInitiated)); });
  ASSERT_THAT(bench.kinds(before),
              ElementsAre(model::CHILD_COMPLETED, model::WORKFLOW_TASK_SCHEDULED));
  const auto& about = bench.events[before].child_event();
  EXPECT_EQ(about.run().run_id(), "child-run-2") << "the last run of its chain";
  EXPECT_EQ(about.started_id(), kInitiated + 1);
  EXPECT_TRUE(bench.run.children.empty());
  // Letters may come twice.
  bench.step([](Transaction& tx) { child_closed(tx, completed(kInitiated)); });
  EXPECT_EQ(bench.events.size(), before + 2);
}

TEST(Children, MayCloseBeforeTheNewsOfTheirStart) {
  auto bench = with_child();
  bench.step([](Transaction& tx) { child_closed(tx, completed(kInitiated)); });
  EXPECT_THAT(bench.kinds(kInitiated), ElementsAre(model::CHILD_STARTED, model::CHILD_COMPLETED,
                                                   model::WORKFLOW_TASK_SCHEDULED));
  const size_t before = bench.events.size();
  bench.step([](Transaction& tx) { child_started(tx, kInitiated, "child-run-1"); });
  EXPECT_EQ(bench.events.size(), before);
}

TEST(Children, FindTheirStartWhenBothWereBuffered) {
  auto bench = with_child();
  bench.signal();
  bench.take_task();
  bench.step([](Transaction& tx) { child_started(tx, kInitiated, "child-run-1"); });
  bench.step([](Transaction& tx) { child_closed(tx, completed(kInitiated)); });
  const size_t before = bench.events.size();
  ASSERT_TRUE(bench.complete_task());
  ASSERT_THAT(bench.kinds(before + 1), ElementsAre(model::CHILD_STARTED, model::CHILD_COMPLETED,
                                                   model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(bench.events[before + 2].child_event().started_id(), bench.events[before + 1].id());
}

TEST(Children, KnowTheirStartThatWasBufferedBefore) {
  auto bench = with_child();
  bench.signal();
  bench.take_task();
  bench.step([](Transaction& tx) { child_started(tx, kInitiated, "child-run-1"); });
  ASSERT_TRUE(bench.complete_task());
  const int64_t started = bench.run.children.at(kInitiated).started_id();
  EXPECT_EQ(bench.events[static_cast<size_t>(started) - 1].kind(), model::CHILD_STARTED);
}

TEST(Children, ThatCannotStartAreForgotten) {
  auto bench = with_child();
  bench.step([](Transaction& tx) { child_start_failed(tx, kInitiated, 1); });
  EXPECT_EQ(bench.events[kInitiated].kind(), model::CHILD_START_FAILED);
  EXPECT_EQ(bench.events[kInitiated].child_event().failed_cause(), 1);
  EXPECT_TRUE(bench.run.children.empty());
}

TEST(Children, HearOfTheirParentsEnd) {
  auto bench = with_child();
  bench.step([](Transaction& tx) { child_started(tx, kInitiated, "child-run-1"); });
  bench.step([](Transaction& tx) { terminate_by_server(tx, "enough"); });
  ASSERT_EQ(bench.posted.size(), 1u);
  const auto& body = bench.posted[0].letter->parent_closed();
  EXPECT_EQ(body.policy(), model::PARENT_CLOSE_TERMINATE);
  EXPECT_EQ(body.first_run_id(), "child-run-1");
  EXPECT_TRUE(bench.run.children.empty());
}

TEST(Children, ThatAreAbandonedHearNothing) {
  auto bench = with_child(start_child("child-1", model::PARENT_CLOSE_ABANDON));
  bench.step([](Transaction& tx) { terminate_by_server(tx, "enough"); });
  EXPECT_TRUE(bench.posted.empty()) << "its letter stays: it is still to be started";
}

TEST(Children, TellTheirParentOnlyWhenTheirChainEnds) {
  Bench bench;
  bench.run.state.mutable_parent()->mutable_run()->set_workflow_id("parent");
  bench.run.state.mutable_parent()->mutable_run()->set_run_id("parent-run");
  bench.run.state.mutable_parent()->set_initiated_id(7);
  bench.run.state.set_cron_schedule("@every 1s");
  bench.start();
  bench.wait(kSecond);
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({complete_workflow()}));
  EXPECT_TRUE(bench.posted.empty());

  Bench last;
  *last.run.state.mutable_parent() = bench.run.state.parent();
  last.start();
  last.take_task();
  ASSERT_TRUE(last.complete_task({complete_workflow()}));
  ASSERT_EQ(last.posted.size(), 1u);
  EXPECT_EQ(last.posted[0].event_id, last.events.back().id());
  const auto& body = last.posted[0].letter->child_closed();
  EXPECT_EQ(body.kind(), model::CHILD_COMPLETED);
  EXPECT_EQ(body.initiated_id(), 7);
  EXPECT_EQ(last.posted[0].letter->to().run_id(), "parent-run");
}

TEST(Externals, EndOnce) {
  auto bench = with_child(signal_external());
  EXPECT_EQ(bench.posted[0].letter->external().door(), "hello");
  EXPECT_EQ(bench.posted[0].letter->external().from().run_id(), "run-1");
  const size_t before = bench.events.size();
  bench.step([](Transaction& tx) { external_done(tx, kInitiated); });
  bench.step([](Transaction& tx) { external_failed(tx, kInitiated, 1); });
  EXPECT_THAT(bench.kinds(before),
              ElementsAre(model::EXTERNAL_SIGNALED, model::WORKFLOW_TASK_SCHEDULED));
  EXPECT_EQ(bench.events[before].external_event().initiated_id(), kInitiated);
}

TEST(Externals, SayWhyTheyFailed) {
  auto bench = with_child(signal_external());
  const size_t before = bench.events.size();
  bench.step([](Transaction& tx) { external_failed(tx, kInitiated, 1); });
  ASSERT_EQ(bench.events[before].kind(), model::SIGNAL_EXTERNAL_FAILED);
  EXPECT_EQ(bench.events[before].external_event().failed_cause(), 1);
}

TEST(Externals, MayNotCancelAChildOfTheSameTask) {
  Bench bench;
  bench.start();
  bench.take_task();
  model::Event cancel;
  cancel.set_kind(model::CANCEL_EXTERNAL_INITIATED);
  cancel.mutable_external_event()->mutable_run()->set_workflow_id("child-1");
  std::vector<model::Event> commands{start_child(), cancel};
  const auto refusal = check_commands(bench.run, bench.limits, &commands);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->cause, FailedCause::kBadRequestCancelExternal);
}

TEST(Children, TheirStartIsToldWithWhatTheDoorShowsOfIt) {
  auto command = start_child();
  command.mutable_child_initiated()->set_started_door("header");
  auto bench = with_child(command);
  bench.step([](Transaction& tx) { child_started(tx, kInitiated, "child-run-1"); });
  ASSERT_GE(bench.events.size(), 6u);
  EXPECT_EQ(bench.events[5].kind(), model::CHILD_STARTED);
  EXPECT_EQ(bench.events[5].door(), "header");
}

}  // namespace
}  // namespace fairlead::history
