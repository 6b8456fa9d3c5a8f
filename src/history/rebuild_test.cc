#include "history/rebuild.h"

#include <gtest/gtest.h>

#include <random>

#include "history/children.h"
#include "history/history_testing.h"
#include "history/rebuild_testing.h"

namespace fairlead::history {
namespace {

Rebuild rebuilt(const Bench& bench, size_t events) {
  Rebuild rebuild(identity_of(bench.run.state));
  for (size_t i = 0; i < events; ++i) {
    std::string framed;
    PlainCodec().append_event(bench.events[i], &framed);
    rebuild.apply(PlainCodec().read_event(framed), static_cast<int64_t>(framed.size()));
  }
  return rebuild;
}

model::Event child(const std::string& id) {
  model::Event command;
  command.set_kind(model::CHILD_INITIATED);
  command.mutable_child_initiated()->set_workflow_id(id);
  command.mutable_child_initiated()->set_workflow_type("ship");
  return command;
}

model::Event signal_other(const std::string& id) {
  model::Event command;
  command.set_kind(model::SIGNAL_EXTERNAL_INITIATED);
  command.mutable_external_event()->mutable_run()->set_workflow_id(id);
  return command;
}

model::Event modify_memo(const std::string& key, const std::string& value) {
  model::Event command;
  command.set_kind(model::PROPERTIES_MODIFIED);
  (*command.mutable_command_recorded()->mutable_upserts())[key] = value;
  return command;
}

model::Event update(model::EventKind kind, const std::string& id) {
  model::Event command;
  command.set_kind(kind);
  command.mutable_update_event()->set_update_id(id);
  command.mutable_update_event()->set_request("please");
  return command;
}

// A reset goes on from the middle of a history, so the state must be in it and nowhere else. Any
// run that workers, clients and time make of a random life has to come back from its events.
class Life {
 public:
  explicit Life(uint32_t seed) : chance_(seed) { bench.start(); }

  void live() {
    for (int i = 0; i < 60 && bench.run.is_open(); ++i) {
      act();
      if (!is_told_completely(bench.run)) continue;
      ASSERT_EQ(told_by_history(rebuilt(bench, bench.events.size()).run()),
                told_by_history(bench.run))
          << "after event " << bench.events.size();
    }
  }

  Bench bench;

 private:
  int pick(int below) { return static_cast<int>(chance_() % static_cast<uint32_t>(below)); }
  std::string name() { return std::string(1, static_cast<char>('a' + ++names_ % 26)); }

  template <typename Rows>
  int64_t one_of(const Rows& rows) {
    return rows.empty() ? 0 : std::next(rows.begin(), pick(static_cast<int>(rows.size())))->first;
  }

  model::Event command() {
    auto& run = bench.run;
    switch (pick(9)) {
      case 0:
        return start_timer(name(), pick(20) * kSecond);
      case 1:
        return run.timers.empty() ? modify_memo("m", "")
                                  : cancel_timer(run.timer_ids.begin()->first);
      case 2:
        return child(name());
      case 3:
        return signal_other(name());
      case 4:
        return modify_memo(name(), "value");
      case 5:
        return run.activities.empty() ? schedule(name())
                                      : cancel_activity_command(run.activities.begin()->first);
      case 6:
        return update(model::UPDATE_ACCEPTED, name());
      case 7:
        for (const auto& [id, known] : run.updates) {
          if (known.completed_id() == 0) return update(model::UPDATE_COMPLETED, id);
        }
        [[fallthrough]];
      default:
        return schedule(name());
    }
  }

  void work() {
    auto& run = bench.run;
    if (!run.state.has_workflow_task()) return;
    if (!run.has_started_task()) return bench.take_task();
    if (pick(5) == 0) return bench.step([](Transaction& tx) { time_out_workflow_task(tx); });
    std::vector<model::Event> commands;
    for (int i = pick(3); i > 0; --i) commands.push_back(command());
    if (pick(40) == 0) commands.push_back(complete_workflow());
    if (!bench.complete_task(std::move(commands), pick(2) == 0 ? "sticky" : "")) {
      bench.step([](Transaction& tx) { fail_workflow_task(tx, {1, {}, "worker"}); });
    }
  }

  void run_activity() {
    const int64_t id = one_of(bench.run.activities);
    if (id == 0) return;
    auto& activity = bench.run.activities[id];
    if (activity.started_ns() == 0) {
      bench.step([&](Transaction& tx) {
        start_activity(tx, id, activity.stamp(), {"worker", "request"});
      });
    } else {
      bench.step([&](Transaction& tx) { complete_activity(tx, activity, "worker", "done"); });
    }
  }

  void answer_child() {
    const int64_t id = one_of(bench.run.children);
    if (id == 0) return;
    bench.step([&](Transaction& tx) {
      if (!bench.run.children[id].is_started()) {
        if (pick(4) == 0) return child_start_failed(tx, id, 1);
        return child_started(tx, id, "child-run");
      }
      model::Letter::ChildClosed closed;
      closed.set_kind(model::CHILD_COMPLETED);
      closed.set_first_run_id("child-run");
      closed.set_initiated_id(id);
      child_closed(tx, closed);
    });
  }

  void act() {
    switch (pick(10)) {
      case 0:
        return bench.signal();
      case 1:
        return bench.wait(pick(12) * kSecond);
      case 2:
        return run_activity();
      case 3:
        return answer_child();
      case 4:
        if (const int64_t id = one_of(bench.run.externals)) {
          bench.step([&](Transaction& tx) { external_done(tx, id); });
        }
        return;
      case 5:
        if (pick(10) == 0) bench.step([](Transaction& tx) { request_cancel(tx, "", ""); });
        return;
      default:
        return work();
    }
  }

  std::mt19937 chance_;
  int names_ = 0;
};

TEST(Rebuild, WhatTheHistoryTellsIsWhatTheRunIs) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Life life(seed);
    life.live();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Rebuild, AnActivityThatTheHistoryHasStartedIsKnownAsSuch) {
  Bench bench;
  bench.start();
  bench.take_task();
  bench.complete_task({schedule("a")});
  bench.take_activity("a");
  bench.signal();  // the task waits, so the activity's end is written at once
  bench.step([&](Transaction& tx) {
    complete_activity(tx, *bench.run.find_activity("a"), "worker", "done");
  });
  const auto started =
      std::find_if(bench.events.begin(), bench.events.end(),
                   [](const auto& event) { return event.kind() == model::ACTIVITY_STARTED; });
  ASSERT_NE(started, bench.events.end());
  const auto rebuild = rebuilt(bench, static_cast<size_t>(started->id()));
  ASSERT_EQ(rebuild.started_activities().size(), 1u);
  EXPECT_EQ(rebuild.started_activities().begin()->second, started->id());
  EXPECT_TRUE(rebuilt(bench, bench.events.size()).started_activities().empty());
}

TEST(Rebuild, WhatOtherRunsHaveNotAnsweredIsKeptWithAllThatTheyNeed) {
  Bench bench;
  bench.start();
  bench.take_task();
  bench.complete_task({child("c"), signal_other("s")});
  auto rebuild = rebuilt(bench, bench.events.size());
  EXPECT_EQ(rebuild.unanswered().size(), 2u);
  bench.step([](Transaction& tx) { child_started(tx, 5, "child-run"); });
  bench.step([](Transaction& tx) { external_done(tx, 6); });
  rebuild = rebuilt(bench, bench.events.size());
  EXPECT_TRUE(rebuild.unanswered().empty());
  EXPECT_EQ(rebuild.run().children.at(5).run_id(), "child-run");
  EXPECT_TRUE(rebuild.run().externals.empty());
}

}  // namespace
}  // namespace fairlead::history
