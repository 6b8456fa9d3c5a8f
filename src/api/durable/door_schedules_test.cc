// What schedules do as time passes.

#include <set>

#include "api/durable/door_schedules_testing.h"
#include "store/keys.h"

namespace fairlead::durable::testing {
namespace {

TEST_F(Schedules, StartRunsAtTheirTimes) {
  world.register_worker();
  const auto made = create("nightly", {{"cron_expressions", json::array{"30 22 * * *"}}},
                           {{"action", action({{"input", json::array{"Ada"}},
                                               {"execution_timeout_seconds", 600},
                                               {"priority", {{"priority_key", 2}}}})},
                            {"memo", {{"team", "ops"}}},
                            {"search_attributes", {{"tenant", "acme"}}}});
  ASSERT_EQ(made->status(), 201) << made->response->body;
  EXPECT_EQ(made->text("outcome"), "created");
  EXPECT_EQ(text_of(describe("nightly"), "next_fire_at"), "2023-11-14T22:30:00.000000Z");
  world.advance(10 * kMinute);
  EXPECT_TRUE(workflows().empty());
  world.advance(10 * kMinute);
  ASSERT_THAT(workflows(), ElementsAre("schedule:nightly:20231114T223000Z"));

  const auto run = world.ask("GET", "/api/workflows/schedule:nightly:20231114T223000Z");
  EXPECT_EQ(run->text("task_queue"), "q");
  EXPECT_EQ(run->body.at("execution_timeout_seconds"), 600);
  EXPECT_EQ(run->body.at("priority").at("priority_key"), 2);
  EXPECT_EQ(run->body.at("memo").at("team"), "ops");
  EXPECT_EQ(run->body.at("search_attributes").at("tenant"), "acme");
  EXPECT_EQ(run->body.at("input_envelope").as_object(), payload(json::array{"Ada"}));
  const auto history = world.history("schedule:nightly:20231114T223000Z", run->text("run_id"));
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(text_of(history[0].at("payload").as_object(), "workflow_instance_id"),
            "schedule:nightly:20231114T223000Z");
  EXPECT_EQ(text_of(history[1].at("payload").as_object(), "schedule_id"), "nightly");
  finish_one();

  const auto now = describe("nightly");
  EXPECT_EQ(now.at("fires_count"), 1);
  EXPECT_EQ(text_of(now, "last_fired_at"), "2023-11-14T22:30:00.000000Z");
  EXPECT_EQ(text_of(now, "next_fire_at"), "2023-11-15T22:30:00.000000Z");
  EXPECT_EQ(text_of(now, "latest_workflow_instance_id"), "schedule:nightly:20231114T223000Z");
  EXPECT_THAT(events("nightly"), ElementsAre("ScheduleCreated", "ScheduleTriggered"));
}

TEST_F(Schedules, ASecondOneOfTheSameIdIsRefusedUntilTheFirstIsDeleted) {
  EXPECT_EQ(create("one", every("PT1H"))->status(), 201);
  const auto again = create("one", every("PT1H"));
  EXPECT_EQ(again->status(), 409);
  EXPECT_EQ(again->text("reason"), "schedule_already_exists");
  EXPECT_EQ(world.ask("DELETE", "/api/schedules/one")->text("outcome"), "deleted");
  EXPECT_THAT(events("one"), ElementsAre("ScheduleCreated", "ScheduleDeleted deleted"));
  EXPECT_EQ(world.ask("GET", "/api/schedules/one")->text("reason"), "schedule_not_found");
  for (const char* verb : {"pause", "resume", "trigger"}) {
    EXPECT_EQ(post("one", verb)->status(), 404) << verb;
  }
  EXPECT_EQ(world.ask("DELETE", "/api/schedules/one")->status(), 404);
  world.advance(3 * kHour);
  EXPECT_TRUE(workflows().empty());
  EXPECT_EQ(create("one", every("PT1H"))->status(), 201);
  EXPECT_THAT(events("one"), ElementsAre("ScheduleCreated"));
}

TEST_F(Schedules, TheHistoryOfADeletedOneStaysAsLongAsAClosedRun) {
  create("gone", every("PT1H"));
  world.ask("DELETE", "/api/schedules/gone");
  world.advance(2 * kDay);
  EXPECT_EQ(events("gone").size(), 2u);
  world.advance(2 * kDay);
  EXPECT_EQ(world.ask("GET", "/api/schedules/gone/history")->status(), 404);
  size_t rows = 0;
  for (uint16_t shard = 0; shard < 4; ++shard) {
    for (const char table : {'I', 'J', 'H', 'W'}) {
      auto range = store::keys::schedules(ShardId(shard));
      range.begin[0] = table;
      range.end[0] = table;
      EXPECT_TRUE(world.store()
                      .scan(range.begin, range.end,
                            [&](std::string_view, std::string_view) { return ++rows > 0; })
                      .ok());
    }
  }
  EXPECT_EQ(rows, 0u);
}

TEST_F(Schedules, APausedOneStartsNothing) {
  create("paused", every("PT1H"), {{"paused", true}, {"note", "not yet"}});
  EXPECT_THAT(events("paused"), ElementsAre("ScheduleCreated", "SchedulePaused"));
  const auto shown = describe("paused");
  EXPECT_EQ(text_of(shown, "status"), "paused");
  EXPECT_EQ(shown.at("next_fire_at"), nullptr);
  EXPECT_NE(shown.at("paused_at"), nullptr);
  world.advance(5 * kHour);
  const auto skipped = post("paused", "trigger");
  EXPECT_EQ(skipped->status(), 200);
  EXPECT_EQ(skipped->text("outcome"), "skipped");
  EXPECT_EQ(skipped->text("reason"), "status_not_triggerable");
  EXPECT_TRUE(workflows().empty());
  EXPECT_EQ(post("paused", "resume", {{"note", "now"}})->text("outcome"), "resumed");
  EXPECT_EQ(text_of(describe("paused"), "note"), "now");
  world.advance(kHour);
  EXPECT_EQ(workflows().size(), 1u);
  EXPECT_EQ(post("paused", "pause")->text("outcome"), "paused");
  EXPECT_EQ(post("paused", "pause")->text("outcome"), "paused") << "it may be said again";
}

TEST_F(Schedules, ATriggerIsAnsweredWithItsRun) {
  create("handy", every("P1D"));
  const auto first = post("handy", "trigger");
  ASSERT_EQ(first->status(), 200);
  EXPECT_EQ(first->text("outcome"), "triggered");
  const auto run = world.ask("GET", "/api/workflows/" + first->text("workflow_id"));
  EXPECT_EQ(run->text("run_id"), first->text("run_id"));
  const auto second = post("handy", "trigger");
  EXPECT_EQ(second->text("outcome"), "skipped");
  EXPECT_EQ(second->text("reason"), "overlap_policy_skip");
  EXPECT_EQ(post("handy", "trigger", {{"overlap_policy", "buffer_one"}})->body.at("buffer_depth"),
            1);
  EXPECT_EQ(post("handy", "trigger", {{"overlap_policy", "buffer_one"}})->text("outcome"),
            "buffer_full");
  EXPECT_EQ(post("handy", "trigger", {{"overlap_policy", "allow_all"}})->text("outcome"),
            "triggered");
  EXPECT_EQ(post("handy", "trigger", {{"overlap_policy", "sometimes"}})->status(), 422);
  EXPECT_EQ(workflows("running").size(), 2u);
  const auto shown = describe("handy");
  EXPECT_EQ(shown.at("info").at("buffered_actions").as_array().size(), 1u);
  EXPECT_EQ(shown.at("info").at("running_actions").as_array().size(), 2u);
  EXPECT_EQ(shown.at("info").at("recent_actions").as_array().size(), 2u);
  EXPECT_EQ(shown.at("info").at("last_skip_reason"), "buffer_full");
}

TEST_F(Schedules, WhatWasBufferedBeginsWhenTheRunBeforeItEnds) {
  world.register_worker();
  create("queueing", every("PT1H"), {{"overlap_policy", "buffer_all"}});
  world.advance(3 * kHour);
  EXPECT_EQ(workflows().size(), 1u);
  for (size_t started = 2; started <= 3; ++started) {
    finish_one();
    EXPECT_EQ(workflows().size(), started);
  }
  EXPECT_EQ(workflows("running").size(), 1u);
  EXPECT_EQ(describe("queueing").at("fires_count"), 3);
}

// The run's chain is what the schedule waits for.
TEST_F(Schedules, AContinuedRunIsStillTheSame) {
  world.register_worker();
  create("long", every("PT1H"));
  world.advance(kHour);
  world.turn({json::object{{"type", "continue_as_new"}}});
  EXPECT_EQ(post("long", "trigger")->text("reason"), "overlap_policy_skip");
  world.advance(kSecond);
  finish_one();
  EXPECT_EQ(post("long", "trigger")->text("outcome"), "triggered");
}

TEST_F(Schedules, TheOtherRunCanBeStopped) {
  for (const std::string policy : {"cancel_other", "terminate_other"}) {
    create(policy, every("PT1H"), {{"overlap_policy", policy}});
    const auto first = post(policy, "trigger");
    const auto second = post(policy, "trigger");
    EXPECT_EQ(second->text("outcome"), "triggered");
    EXPECT_EQ(world.ask("GET", "/api/workflows/" + first->text("workflow_id"))->text("status"),
              policy == "cancel_other" ? "cancelled" : "terminated");
    EXPECT_EQ(world.ask("GET", "/api/workflows/" + second->text("workflow_id"))->text("status"),
              "pending");
  }
}

TEST_F(Schedules, EndAfterTheirLastRun) {
  create("twice", every("PT1H"), {{"max_runs", 2}, {"overlap_policy", "allow_all"}});
  world.advance(kHour);
  EXPECT_EQ(describe("twice").at("remaining_actions"), 1);
  world.advance(5 * kHour);
  EXPECT_EQ(workflows().size(), 2u);
  EXPECT_EQ(world.ask("GET", "/api/schedules/twice")->status(), 404);
  EXPECT_THAT(events("twice"),
              ElementsAre("ScheduleCreated", "ScheduleTriggered", "ScheduleTriggered",
                          "ScheduleDeleted max_runs_exhausted"));
}

TEST_F(Schedules, ABackfillStartsWhatWouldHaveBeen) {
  create("late", every("PT1H"));
  const json::object range{{"start_time", "2023-11-14T10:00:00Z"},
                           {"end_time", "2023-11-14T13:00:00+00:00"},
                           {"overlap_policy", "allow_all"}};
  const auto done = post("late", "backfill", range);
  ASSERT_EQ(done->status(), 200) << done->response->body;
  EXPECT_EQ(done->text("outcome"), "backfill_started");
  EXPECT_EQ(done->body.at("fires_attempted"), 3);
  const auto& results = done->body.at("results").as_array();
  EXPECT_EQ(text_of(results[2].as_object(), "fire_time"), "2023-11-14T12:00:00.000000Z");
  EXPECT_EQ(text_of(results[2].as_object(), "outcome"), "started");
  EXPECT_EQ(text_of(results[2].as_object(), "workflow_id"),
            "schedule:late:backfill:20231114T120000Z");
  EXPECT_EQ(workflows().size(), 3u);

  const auto again = post("late", "backfill", range);
  for (const auto& each : again->body.at("results").as_array()) {
    EXPECT_EQ(text_of(each.as_object(), "outcome"), "skipped");
    EXPECT_EQ(text_of(each.as_object(), "reason"), "already_started");
  }
  EXPECT_EQ(workflows().size(), 3u) << "whoever asks again gets no second run";
  EXPECT_EQ(describe("late").at("fires_count"), 3);

  const auto skipping =
      post("late", "backfill",
           {{"start_time", "2023-11-14T06:00:00Z"}, {"end_time", "2023-11-14T08:00:00Z"}});
  EXPECT_EQ(text_of(skipping->body.at("results").as_array()[0].as_object(), "reason"),
            "overlap_policy_skip");
}

TEST_F(Schedules, GoWithTheirNamespace) {
  world.ask("POST", "/api/namespaces", {{"name", "doomed"}});
  const std::vector<std::pair<std::string, std::string>> there{{"X-Namespace", "doomed"}};
  for (int i = 0; i < 8; ++i) {
    world.ask("POST", "/api/schedules", {{"spec", every("PT1M")}, {"action", action()}}, there);
  }
  create("mine", every("PT1H"));
  const auto deleted = world.ask("DELETE", "/api/namespaces/doomed");
  EXPECT_EQ(deleted->body.at("deleted").at("schedules"), 8);
  world.advance(10 * kMinute);
  std::set<std::string> left;
  for (uint16_t shard = 0; shard < 4; ++shard) {
    const auto range = store::keys::schedules(ShardId(shard));
    EXPECT_TRUE(world.store()
                    .scan(range.begin, range.end,
                          [&](std::string_view, std::string_view value) {
                            model::Schedule schedule;
                            schedule.ParseFromArray(value.data(), static_cast<int>(value.size()));
                            left.insert(schedule.schedule_id());
                            return true;
                          })
                    .ok());
  }
  EXPECT_THAT(left, ElementsAre("mine"));
}

TEST_F(Schedules, FireOnceOverARestart) {
  world.register_worker();
  create("steady", every("PT1H"), {{"overlap_policy", "buffer_all"}});
  world.advance(kHour);
  world.restart();
  EXPECT_EQ(workflows().size(), 1u);
  world.advance(kHour);
  EXPECT_EQ(workflows().size(), 1u) << "the first still runs";
  world.restart();
  finish_one();
  EXPECT_EQ(workflows().size(), 2u);
}

TEST_F(Schedules, WhatWentByWhileTheServerWasAwayIsCounted) {
  create("away", every("PT1H"), {{"overlap_policy", "allow_all"}});
  world.clock.time += 5 * kHour;  // nobody was there
  world.restart();
  world.advance(kSecond);
  EXPECT_THAT(workflows(), ElementsAre("schedule:away:20231114T230000Z"));
  EXPECT_EQ(describe("away").at("info").at("skipped_trigger_count"), 4);
  EXPECT_THAT(events("away"),
              ElementsAre("ScheduleCreated", "ScheduleTriggerSkipped missed", "ScheduleTriggered"));
}

// The server dies after each number of jobs between the time and the news of the run's start.
TEST_F(Schedules, ACrashAtAnyMomentNeitherLosesNorRepeatsAFire) {
  bool was_asked = false;  // and not answered, at least once
  for (int jobs = 0; jobs < 12; ++jobs) {
    World fresh(open_door());
    fresh.ask("POST", "/api/schedules",
              {{"schedule_id", "s"}, {"spec", every("PT1H")}, {"action", action()}});
    fresh.clock.time += kHour;
    fresh.executor->run_some(jobs);
    for (uint16_t shard = 0; shard < 4; ++shard) {
      const auto range = store::keys::letters(ShardId(shard));
      const auto visit = [&](std::string_view, std::string_view) { return was_asked = true; };
      EXPECT_TRUE(fresh.store().scan(range.begin, range.end, visit).ok());
    }
    fresh.restart();
    fresh.advance(kMinute);
    const auto page = fresh.ask("GET", "/api/workflows");
    EXPECT_EQ(page->body.at("workflows").as_array().size(), 1u) << jobs;
    const auto shown = fresh.ask("GET", "/api/schedules/s");
    EXPECT_EQ(shown->body.at("fires_count"), 1) << jobs;
    EXPECT_EQ(shown->body.at("failures_count"), 0) << jobs;
    EXPECT_EQ(fresh.ask("GET", "/api/schedules/s/history")->body.at("events").as_array().size(), 2u)
        << jobs;
  }
  EXPECT_TRUE(was_asked);
}

}  // namespace
}  // namespace fairlead::durable::testing
