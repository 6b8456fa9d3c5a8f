// How schedules are written, shown, listed and refused.

#include "api/durable/door_schedules_testing.h"
#include "api/durable/schedules.h"

namespace fairlead::durable::testing {
namespace {

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

TEST_F(Schedules, AreOfTheirNamespace) {
  world.ask("POST", "/api/namespaces", {{"name", "other"}});
  create("mine", every("PT1H"));
  EXPECT_EQ(world.ask("GET", "/api/schedules/mine", {}, {{"X-Namespace", "other"}})->status(), 404);
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
