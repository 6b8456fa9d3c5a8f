#include "history/callbacks.h"

#include "gtest/gtest.h"
#include "history/history_testing.h"
#include "history/rebuild_testing.h"
#include "history/reset.h"

namespace fairlead::history {
namespace {

using model::CallbackState;
using Kind = CallbackOutcome::Kind;

class Callbacks : public ::testing::Test {
 protected:
  void start(std::vector<std::string> callbacks) {
    bench.run.state.set_start_request_id("start");
    Beginning beginning;
    beginning.callbacks = std::move(callbacks);
    bench.start(beginning);
  }
  void close(const model::Event& command = complete_workflow()) {
    bench.take_task();
    ASSERT_TRUE(bench.complete_task({command}));
  }
  absl::Status attach_one(const std::string& request_id, std::vector<std::string> callbacks) {
    absl::Status status;
    bench.step([&](Transaction& tx) {
      status = attach(tx, {request_id, std::move(callbacks), "", ""});
    });
    return status;
  }
  void end(int64_t number, const CallbackOutcome& outcome) {
    bench.step([&](Transaction& tx) { end_callback(tx, number, outcome); });
  }
  const CallbackState& callback(int64_t number = 1) { return bench.run.callbacks.at(number); }

  Bench bench;
};

// Nobody is called before there is something to tell, and then everybody is, once.
TEST_F(Callbacks, WaitForTheEndOfTheRun) {
  start({"a", "b"});
  EXPECT_EQ(bench.events[0].workflow_started().callbacks_size(), 2);
  EXPECT_EQ(callback(2).stage(), CallbackState::STANDBY);
  EXPECT_EQ(callback(2).request_id(), "start");
  bench.wait(kDay);
  EXPECT_TRUE(bench.calls.empty());
  close();
  EXPECT_EQ(bench.calls, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(callback(1).stage(), CallbackState::SCHEDULED);
  end(1, {});
  EXPECT_EQ(callback(1).stage(), CallbackState::SUCCEEDED);
  EXPECT_EQ(callback(1).attempts(), 1);
  bench.wait(kSecond);
  EXPECT_TRUE(bench.calls.empty());
}

// A server that died while it was calling does not know what became of it: it calls again.
TEST_F(Callbacks, AreMadeAgainWhenNobodyTellsOfTheirEnd) {
  start({"a"});
  close();
  const TimeNs due = next_deadline(bench.run);
  EXPECT_EQ(due, callback().due_ns());
  EXPECT_GT(due, bench.now + bench.limits.callback_timeout);
  bench.wait(due - bench.now - 1);
  EXPECT_TRUE(bench.calls.empty());
  bench.wait(1);
  EXPECT_EQ(bench.calls, std::vector<int64_t>{1});
  EXPECT_EQ(callback().attempts(), 0);
  EXPECT_TRUE(awaits_callback(bench.run, 1, 0));
}

TEST_F(Callbacks, BackOffLongerAfterEveryFailureUpToALimit) {
  start({"a"});
  close();
  DurationNs expected = bench.limits.callback_retry_first;
  for (int attempt = 1; attempt < 20; ++attempt) {
    end(1, {Kind::kFailed, "busy"});
    EXPECT_EQ(callback().stage(), CallbackState::BACKING_OFF);
    EXPECT_EQ(callback().attempts(), attempt);
    EXPECT_EQ(callback().failure(), "busy");
    EXPECT_FALSE(awaits_callback(bench.run, 1, attempt));
    ASSERT_EQ(next_deadline(bench.run),
              std::min(bench.now + expected, bench.run.state.delete_at_ns()));
    bench.wait(expected);
    ASSERT_EQ(bench.calls, std::vector<int64_t>{1});
    expected = std::min(2 * expected, bench.limits.callback_retry_longest);
  }
  end(1, {});
  EXPECT_EQ(callback().stage(), CallbackState::SUCCEEDED);
  EXPECT_EQ(callback().failure(), "");
}

TEST_F(Callbacks, ThatAreRefusedAreNotMadeAgain) {
  start({"a"});
  close();
  end(1, {Kind::kRefused, "no such operation"});
  EXPECT_EQ(callback().stage(), CallbackState::FAILED);
  EXPECT_EQ(next_deadline(bench.run), bench.run.state.delete_at_ns());
}

// To those who wait, a chain of runs is one: they hear how it ended and not how it went on.
TEST_F(Callbacks, GoOnWithTheRunThatContinues) {
  start({"a"});
  model::Event command;
  command.set_kind(model::WORKFLOW_CONTINUED_AS_NEW);
  command.mutable_workflow_closed();
  close(command);
  EXPECT_TRUE(bench.calls.empty());
  EXPECT_EQ(callback().stage(), CallbackState::STANDBY);
  EXPECT_EQ(inherited_callbacks(bench.run, model::BY_WORKFLOW), std::vector<std::string>{"a"});
  EXPECT_EQ(inherited_callbacks(bench.run, model::BY_RETRY), std::vector<std::string>{"a"});
}

// The next run of a schedule is another one.
TEST_F(Callbacks, HearOfTheFirstRunOfASchedule) {
  bench.run.state.set_cron_schedule("@every 10s");
  start({"a"});
  bench.wait(10 * kSecond);
  close();
  ASSERT_TRUE(bench.successor.has_value());
  EXPECT_EQ(bench.calls, std::vector<int64_t>{1});
  EXPECT_TRUE(inherited_callbacks(bench.run, model::BY_CRON).empty());
}

TEST_F(Callbacks, OfARunThatAResetEndsWaitForTheNewOne) {
  start({"a"});
  bench.step([&](Transaction& tx) {
    end_for_reset(tx, {"run-1", "run-9", "request", "why", "ns"});
  });
  EXPECT_TRUE(bench.calls.empty());
  EXPECT_EQ(callback().stage(), CallbackState::STANDBY);
}

TEST_F(Callbacks, CanBeAttachedToARunThatIsOpen) {
  start({});
  EXPECT_TRUE(attach_one("later", {"b"}).ok());
  const auto& event = bench.events.back();
  EXPECT_EQ(event.kind(), model::WORKFLOW_OPTIONS_UPDATED);
  EXPECT_EQ(event.workflow_options_updated().attached_request_id(), "later");
  EXPECT_EQ(event.workflow_options_updated().attached_callbacks(0), "b");
  EXPECT_EQ(bench.run.requests.at("later").event_id(), event.id());
  EXPECT_TRUE(callback().attached());
  // The same request changes nothing.
  const size_t events = bench.events.size();
  EXPECT_TRUE(attach_one("later", {"b"}).ok());
  EXPECT_EQ(bench.events.size(), events);
  EXPECT_EQ(bench.run.callbacks.size(), 1u);
  close();
  EXPECT_EQ(bench.calls, std::vector<int64_t>{1});
}

// While a worker has the workflow task nothing may come between its start and its end.
TEST_F(Callbacks, AttachedWhileATaskIsUnderWayGetTheirEventLater) {
  start({});
  bench.take_task();
  EXPECT_TRUE(attach_one("later", {}).ok());
  EXPECT_EQ(bench.run.requests.at("later").event_id(), 0);
  ASSERT_TRUE(bench.complete_task());
  EXPECT_EQ(bench.run.requests.at("later").event_id(), bench.events.end()[-2].id());
  EXPECT_EQ(bench.events.back().kind(), model::WORKFLOW_TASK_SCHEDULED);
}

TEST_F(Callbacks, HaveALimit) {
  bench.limits.callbacks = 2;
  start({"a", "b"});
  EXPECT_EQ(attach_one("later", {"c"}).message(),
            "cannot attach more than 2 callbacks to a workflow (2 callbacks already attached)");
  EXPECT_EQ(bench.run.callbacks.size(), 2u);
  EXPECT_TRUE(bench.run.requests.empty());
}

TEST_F(Callbacks, AreToldByTheHistory) {
  start({"a"});
  EXPECT_TRUE(attach_one("later", {"b"}).ok());
  Rebuild rebuild(identity_of(bench.run.state));
  PlainCodec codec;
  for (const auto& event : bench.events) {
    std::string framed;
    codec.append_event(event, &framed);
    rebuild.apply(codec.read_event(framed), static_cast<int64_t>(framed.size()));
  }
  EXPECT_EQ(told_by_history(rebuild.run()), told_by_history(bench.run));
}

// What was pending at the end is kept for who describes the run.
TEST_F(Callbacks, LeaveAloneWhatWasOpenAtTheEnd) {
  start({});
  bench.take_task();
  ASSERT_TRUE(bench.complete_task({schedule("one")}));
  bench.step([](Transaction& tx) { terminate_by_server(tx, "enough"); });
  ASSERT_EQ(bench.left_open.activities_size(), 1);
  EXPECT_EQ(bench.left_open.activities(0).scheduled().activity_id(), "one");
  EXPECT_TRUE(bench.run.activities.empty());
}

}  // namespace
}  // namespace fairlead::history
