#include <set>

#include "api/durable/door_testing.h"
#include "api/durable/schedules.h"
#include "gmock/gmock.h"
#include "store/keys.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::ElementsAre;

// Schedules on a clock that the test moves. It begins at 2023-11-14T22:13:20Z.
class Schedules : public ::testing::Test {
 protected:
  static json::object action(json::object more = {}) {
    more["workflow_type"] = "greeter";
    more["task_queue"] = "q";
    return more;
  }
  AnswerPtr create(const std::string& id, json::object spec, json::object more = {}) {
    more["schedule_id"] = id;
    more["spec"] = std::move(spec);
    if (!more.contains("action")) more["action"] = action();
    return world.ask("POST", "/api/schedules", std::move(more));
  }
  static json::object every(const char* duration) {
    return {{"intervals", json::array{json::object{{"every", duration}}}}};
  }
  AnswerPtr post(const std::string& id, const std::string& verb, json::object body = {}) {
    return world.ask("POST", "/api/schedules/" + id + "/" + verb, std::move(body));
  }
  json::object describe(const std::string& id) {
    const auto answer = world.ask("GET", "/api/schedules/" + id);
    EXPECT_EQ(answer->status(), 200) << answer->response->body;
    return answer->body;
  }
  std::vector<std::string> events(const std::string& id) {
    std::vector<std::string> types;
    const auto page = world.ask("GET", "/api/schedules/" + id + "/history?limit=500");
    EXPECT_EQ(page->status(), 200) << page->response->body;
    for (const auto& event : page->body.at("events").as_array()) {
      types.push_back(text_of(event.as_object(), "event_type"));
      const auto reason = text_of(event.at("payload").as_object(), "reason");
      if (!reason.empty()) types.back() += " " + reason;
    }
    return types;
  }
  // The workflows that are there, oldest first.
  std::vector<std::string> workflows(const std::string& status = "") {
    std::vector<std::string> ids;
    const auto page = world.ask(
        "GET", "/api/workflows?page_size=200" + (status.empty() ? "" : "&status=" + status));
    for (const auto& each : page->body.at("workflows").as_array()) {
      ids.insert(ids.begin(), text_of(each.as_object(), "workflow_id"));
    }
    return ids;
  }
  void finish_one() { world.turn({json::object{{"type", "complete_workflow"}}}); }

  World world{open_door()};
};

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

TEST_F(Schedules, FollowTheClocksOfTheirTimeZone) {
  create("berlin", {{"cron_expressions", json::array{"0 9 * * *"}}, {"timezone", "Europe/Berlin"}});
  EXPECT_EQ(text_of(describe("berlin"), "next_fire_at"), "2023-11-15T08:00:00.000000Z");
}

TEST_F(Schedules, AreDescribedInTheWordsInWhichTheyWereMade) {
  create("mine", every("PT30M"),
         {{"overlap_policy", "buffer_one"},
          {"jitter_seconds", 60},
          {"max_runs", 3},
          {"note", "by hand"},
          {"memo", {{"a", 1}}}});
  const auto shown = describe("mine");
  EXPECT_EQ(shown.at("spec"), json::value(every("PT30M")));
  EXPECT_EQ(shown.at("action"), json::value(action()));
  EXPECT_EQ(text_of(shown, "overlap_policy"), "buffer_one");
  EXPECT_EQ(shown.at("jitter_seconds"), 60);
  EXPECT_EQ(shown.at("max_runs"), 3);
  EXPECT_EQ(shown.at("remaining_actions"), 3);
  EXPECT_EQ(text_of(shown, "note"), "by hand");
  EXPECT_EQ(shown.at("memo").at("a"), 1);
  EXPECT_EQ(shown.at("state").at("status"), "active");
  EXPECT_EQ(shown.at("info").at("skipped_trigger_count"), 0);
  EXPECT_EQ(text_of(shown, "namespace"), "default");
  const auto jittered = *read_iso_time(text_of(shown, "next_fire_at"));
  const auto nominal = *read_iso_time("2023-11-14T22:30:00Z");
  EXPECT_GE(jittered, nominal);
  EXPECT_LE(jittered, nominal + 60 * kSecond);
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

TEST_F(Schedules, AreChangedInPartAndTheirActionMemberByMember) {
  create("changing", every("PT1H"), {{"action", action({{"input", json::array{1}}})}});
  const auto change = [&](json::object body) {
    return world.ask("PUT", "/api/schedules/changing", std::move(body));
  };
  EXPECT_EQ(change({{"action", {{"workflow_type", "other"}, {"workflow_run_timeout", 5}}}})
                ->text("outcome"),
            "updated");
  auto shown = describe("changing");
  EXPECT_EQ(shown.at("action").at("workflow_type"), "other");
  EXPECT_EQ(shown.at("action").at("task_queue"), "q");
  EXPECT_EQ(shown.at("action").at("run_timeout_seconds"), 5);
  EXPECT_EQ(shown.at("action").at("input").as_object(), payload(json::array{1}));
  EXPECT_EQ(text_of(shown, "workflow_type"), "other");
  change({{"spec", every("PT10M")}, {"overlap_policy", "allow_all"}, {"note", "faster"}});
  shown = describe("changing");
  EXPECT_EQ(text_of(shown, "next_fire_at"), "2023-11-14T22:20:00.000000Z");
  EXPECT_EQ(text_of(shown, "overlap_policy"), "allow_all");
  world.advance(10 * kMinute);
  const auto run = world.ask("GET", "/api/workflows/schedule:changing:20231114T222000Z");
  EXPECT_EQ(run->text("workflow_type"), "other");
  EXPECT_EQ(run->body.at("run_timeout_seconds"), 5);

  const auto wrong = change({{"spec", {{"cron_expressions", json::array{"61 * * * *"}}}}});
  EXPECT_EQ(wrong->status(), 422);
  EXPECT_EQ(wrong->text("reason"), "invalid_cron_expression");
  EXPECT_EQ(text_of(describe("changing"), "next_fire_at"), "2023-11-14T22:30:00.000000Z")
      << "a refused change changes nothing";
  EXPECT_EQ(world.ask("PUT", "/api/schedules/none", {{"jitter_seconds", -1}})->status(), 404);
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

TEST_F(Schedules, ABackfillNeedsARangeThatMakesSense) {
  create("late", every("PT1S"));
  const auto reason = [&](const char* from, const char* to) {
    const auto answer = post("late", "backfill", {{"start_time", from}, {"end_time", to}});
    EXPECT_EQ(answer->status(), 422);
    return answer->text("reason");
  };
  EXPECT_EQ(reason("2023-11-14T10:00:00Z", "2023-11-14T10:00:00Z"), "invalid_time_range");
  EXPECT_EQ(reason("2023-11-14T10:00:00Z", "2023-11-14T09:00:00Z"), "invalid_time_range");
  EXPECT_EQ(reason("2023-11-14T10:00:00Z", "2023-11-14T11:00:00Z"), "invalid_time_range");
  EXPECT_EQ(reason("soon", "2023-11-14T11:00:00Z"), "validation_failed");
  EXPECT_EQ(reason("2023-11-14T10:00:00Z", "-999999999-01-01T00:00:00Z"), "validation_failed");
  EXPECT_TRUE(workflows().empty());
}

TEST_F(Schedules, AreListedNewestFirstInPages) {
  for (int i = 0; i < 5; ++i) {
    create("s" + std::to_string(i), every("PT1H"),
           {{"paused", i % 2 == 1}, {"action", action({{"workflow_type", "greeter"}})}});
    world.advance(kMillisecond);
  }
  const auto ids = [&](const std::string& query) {
    std::vector<std::string> found;
    std::string token;
    do {
      const auto page = world.ask("GET", "/api/schedules?page_size=2" + query +
                                             (token.empty() ? "" : "&next_page_token=" + token));
      EXPECT_EQ(page->status(), 200) << page->response->body;
      for (const auto& each : page->body.at("schedules").as_array()) {
        found.push_back(text_of(each.as_object(), "schedule_id"));
      }
      token = page->text("next_page_token");
      EXPECT_TRUE(page->body.contains("next_page_token"));
    } while (!token.empty());
    return found;
  };
  EXPECT_THAT(ids(""), ElementsAre("s4", "s3", "s2", "s1", "s0"));
  EXPECT_THAT(ids("&status=paused"), ElementsAre("s3", "s1"));
  EXPECT_THAT(ids("&status=active&query=4"), ElementsAre("s4"));
  EXPECT_THAT(ids("&workflow_type=other"), ElementsAre());
  world.ask("DELETE", "/api/schedules/s2");
  EXPECT_THAT(ids("&workflow_type=greeter"), ElementsAre("s4", "s3", "s1", "s0"));
}

TEST_F(Schedules, AListThatIsRefusedSaysWhichField) {
  const struct {
    const char* query;
    int status;
    const char* reason;
    const char* field;
  } kCases[] = {
      {"status=broken", 422, "validation_failed", "status"},
      {"page_size=0", 422, "validation_failed", "page_size"},
      {"page_size=201", 422, "validation_failed", "page_size"},
      {"next_page_token=!", 400, "malformed_schedule_page_token", "next_page_token"},
  };
  for (const auto& each : kCases) {
    const auto answer = world.ask("GET", std::string("/api/schedules?") + each.query);
    EXPECT_EQ(answer->status(), each.status) << each.query;
    EXPECT_EQ(answer->text("reason"), each.reason) << each.query;
    EXPECT_EQ(answer->text("field"), each.field) << each.query;
    EXPECT_TRUE(answer->body.at("errors").as_object().contains(each.field)) << each.query;
  }
}

TEST_F(Schedules, SayWhatIsWrongWithThem) {
  const struct {
    json::object body;
    const char* field;
    const char* reason;
  } kCases[] = {
      {{{"action", action()}}, "spec", "validation_failed"},
      {{{"spec", every("PT1H")}}, "action", "validation_failed"},
      {{{"spec", json::object()}, {"action", action()}}, "spec", "invalid_schedule_spec"},
      {{{"spec", every("P1M")}, {"action", action()}},
       "spec.intervals.0.every",
       "validation_failed"},
      {{{"spec", every("PT0S")}, {"action", action()}}, "spec.intervals", "invalid_schedule_spec"},
      {{{"spec", {{"cron_expressions", json::array{"hourly"}}}}, {"action", action()}},
       "spec.cron_expressions",
       "invalid_cron_expression"},
      {{{"spec", {{"cron_expressions", json::array{"0 9 * * *"}}, {"timezone", "Atlantis"}}},
        {"action", action()}},
       "spec.timezone",
       "invalid_schedule_spec"},
      {{{"spec", {{"cron_expressions", json::array{1}}}}, {"action", action()}},
       "spec.cron_expressions",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", json::object()}},
       "action.workflow_type",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action({{"input", "text"}})}},
       "action.input",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action({{"run_timeout_seconds", 0}})}},
       "action.run_timeout_seconds",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action({{"priority", {{"priority_key", 9}}}})}},
       "action.priority.priority_key",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action()}, {"overlap_policy", "maybe"}},
       "overlap_policy",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action()}, {"jitter_seconds", 3601}},
       "jitter_seconds",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action()}, {"max_runs", 0}},
       "max_runs",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action()}, {"note", std::string(1001, 'x')}},
       "note",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action()}, {"memo", 1}}, "memo", "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action()}, {"paused", "yes"}},
       "paused",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action()}, {"schedule_id", std::string(129, 'x')}},
       "schedule_id",
       "validation_failed"},
      {{{"spec", every("PT1H")}, {"action", action()}, {"schedule_id", "a/b"}},
       "schedule_id",
       "validation_failed"},
  };
  for (const auto& each : kCases) {
    const auto answer = world.ask("POST", "/api/schedules", each.body);
    EXPECT_EQ(answer->status(), 422) << json::serialize(each.body);
    EXPECT_EQ(answer->text("reason"), each.reason) << answer->response->body;
    EXPECT_TRUE(answer->body.at("errors").as_object().contains(each.field))
        << answer->response->body;
  }
}

TEST_F(Schedules, AnIdIsMadeForWhoGivesNone) {
  const auto made =
      world.ask("POST", "/api/schedules", {{"spec", every("PT1H")}, {"action", action()}});
  EXPECT_EQ(made->status(), 201);
  EXPECT_EQ(text_of(describe(made->text("schedule_id")), "status"), "active");
}

TEST_F(Schedules, TheirHistoryComesInPages) {
  create("busy", every("PT1H"), {{"overlap_policy", "allow_all"}});
  world.advance(4 * kHour);
  const auto first = world.ask("GET", "/api/schedules/busy/history?limit=3");
  EXPECT_EQ(first->body.at("events").as_array().size(), 3u);
  EXPECT_EQ(first->body.at("has_more"), true);
  EXPECT_EQ(first->body.at("next_cursor"), 3);
  const auto rest = world.ask("GET", "/api/schedules/busy/history?after_sequence=3");
  EXPECT_EQ(rest->body.at("events").as_array().size(), 2u);
  EXPECT_EQ(rest->body.at("has_more"), false);
  EXPECT_EQ(rest->body.at("next_cursor"), nullptr);
  const auto& event = rest->body.at("events").as_array()[0].as_object();
  EXPECT_EQ(event.at("sequence"), 4);
  EXPECT_EQ(text_of(event, "workflow_instance_id"), "schedule:busy:20231115T010000Z");
  EXPECT_EQ(event.at("payload").at("trigger_number"), 3);
  for (const char* wrong : {"-1", "x", "9223372036854775807"}) {
    const auto answer =
        world.ask("GET", std::string("/api/schedules/busy/history?after_sequence=") + wrong);
    EXPECT_EQ(answer->status(), 422);
    EXPECT_EQ(answer->text("reason"), "invalid_after_sequence");
  }
}

TEST_F(Schedules, OldLinesOfHistoryGo) {
  create("chatty", every("PT1H"));
  for (int i = 0; i < 600; ++i) {
    post("chatty", "pause");
    post("chatty", "resume");
  }
  const auto page = world.ask("GET", "/api/schedules/chatty/history?limit=1");
  EXPECT_EQ(page->body.at("events").as_array()[0].at("sequence"), 202);
}

TEST_F(Schedules, OfANamespaceAreLimited) {
  auto options = open_door();
  options.schedules_max = 2;
  World small(options);
  const json::object body{{"spec", every("PT1H")}, {"action", action()}};
  EXPECT_EQ(small.ask("POST", "/api/schedules", body)->status(), 201);
  const auto second = small.ask("POST", "/api/schedules", body);
  EXPECT_EQ(second->status(), 201);
  EXPECT_EQ(small.ask("POST", "/api/schedules", body)->text("reason"), "schedule_limit_reached");
  small.ask("DELETE", "/api/schedules/" + second->text("schedule_id"));
  EXPECT_EQ(small.ask("POST", "/api/schedules", body)->status(), 201);
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

TEST_F(Schedules, AreOfTheirNamespace) {
  world.ask("POST", "/api/namespaces", {{"name", "other"}});
  create("mine", every("PT1H"));
  EXPECT_EQ(world.ask("GET", "/api/schedules/mine", {}, {{"X-Namespace", "other"}})->status(), 404);
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

TEST(IsoDurations, AreReadWithoutMonths) {
  EXPECT_EQ(read_iso_duration("PT30M"), 30 * kMinute);
  EXPECT_EQ(read_iso_duration("P1DT2H3M4S"), kDay + 2 * kHour + 3 * kMinute + 4 * kSecond);
  EXPECT_EQ(read_iso_duration("P2W"), 14 * kDay);
  for (const char* wrong : {"", "P", "PT", "P1M", "P1Y", "PT1.5S", "1H", "PT1H1H", "PT1S1M", "P1H",
                            "P1DT", "PT-1S", "P99999999999999999999D", "P9223372036854775807W"}) {
    EXPECT_FALSE(read_iso_duration(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace fairlead::durable::testing
