// Activities without workflow code.

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::ElementsAre;

AnswerPtr start(World& world, const std::string& id = "job-1", json::object more = {}) {
  more["activity_id"] = id;
  more["activity_type"] = "greet";
  more["task_queue"] = "q";
  return world.ask("POST", "/api/activities", std::move(more));
}

AnswerPtr describe(World& world, const std::string& id = "job-1") {
  return world.ask("GET", "/api/activities/" + id);
}

TEST(Standalone, RunsAndTellsItsResult) {
  World world(open_door());
  world.register_worker();
  const auto started =
      start(world, "job-1", {{"input", json::array{"Ada"}}, {"business_key", "k"}});
  ASSERT_EQ(started->status(), 201) << started->response->body;
  EXPECT_EQ(started->text("workflow_type"), "standalone-activity");
  EXPECT_EQ(describe(world)->text("activity_status"), "pending");
  EXPECT_EQ(describe(world)->body.at("attempt_count"), 0);
  // There is no workflow code, so there is no task for it.
  EXPECT_FALSE(world.poll("workflow", "", "w1", 0)->has_task());

  const auto task = world.poll("activity");
  ASSERT_TRUE(task->has_task());
  EXPECT_EQ(task->task().at("arguments"), json::value(payload(json::array{"Ada"})));
  EXPECT_EQ(text_of(task->task(), "activity_execution_id"), started->text("activity_execution_id"));
  EXPECT_EQ(describe(world)->text("activity_status"), "running");
  world.restart();
  ASSERT_EQ(world.answer_activity(*task, "complete", {{"result", payload("hi")}})->status(), 200);

  const auto ended = describe(world);
  EXPECT_EQ(ended->text("status"), "completed");
  EXPECT_EQ(ended->text("activity_status"), "completed");
  EXPECT_EQ(ended->text("business_key"), "k");
  EXPECT_EQ(ended->body.at("attempt_count"), 1);
  EXPECT_EQ(ended->body.at("result"), json::value(payload("hi")));
  EXPECT_THAT(world.event_types("job-1", started->text("workflow_run_id")),
              ElementsAre("StartAccepted", "WorkflowStarted", "ActivityScheduled",
                          "ActivityStarted", "ActivityCompleted", "WorkflowCompleted"));
}

TEST(Standalone, IsTriedAgainAndThenFails) {
  World world(open_door());
  world.register_worker();
  start(world, "job-1",
        {{"retry_policy", {{"max_attempts", 2}, {"backoff_seconds", json::array{5}}}}});
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const auto task = world.poll("activity");
    ASSERT_TRUE(task->has_task());
    EXPECT_EQ(task->task().at("attempt_number"), attempt);
    world.answer_activity(*task, "fail", {{"failure", {{"message", "no"}, {"type", "Oops"}}}});
    if (attempt == 1) {
      EXPECT_EQ(describe(world)->text("status"), "running");
      world.advance(5 * kSecond);
    }
  }
  const auto ended = describe(world);
  EXPECT_EQ(ended->text("status"), "failed");
  EXPECT_EQ(ended->text("activity_status"), "failed");
  EXPECT_EQ(ended->text("failure_message"), "no");
  EXPECT_EQ(ended->body.at("attempt_count"), 2);
}

TEST(Standalone, EndsWithItsTime) {
  World world(open_door());
  world.register_worker();
  const auto started = start(world, "job-1", {{"schedule_to_close_timeout_seconds", 60}});
  EXPECT_EQ(describe(world)->text("schedule_to_close_deadline_at"),
            format_time(world.clock.time + kMinute));
  world.advance(kMinute);
  EXPECT_EQ(describe(world)->text("status"), "failed");
  EXPECT_THAT(world.event_types("job-1", started->text("workflow_run_id")),
              ElementsAre("StartAccepted", "WorkflowStarted", "ActivityScheduled",
                          "ActivityTimedOut", "WorkflowFailed"));
}

TEST(Standalone, IsCanceledAsAWorkflowIs) {
  World world(open_door());
  world.register_worker();
  start(world);
  const auto task = world.poll("activity");
  ASSERT_EQ(world.ask("POST", "/api/workflows/job-1/cancel")->status(), 200);
  EXPECT_EQ(world.answer_activity(*task, "heartbeat", {})->body.at("cancel_requested"), true);
  EXPECT_EQ(describe(world)->text("status"), "cancelled");
  EXPECT_EQ(describe(world)->text("activity_status"), "cancelled");
}

TEST(Standalone, TakesItsPlaceByPriority) {
  World world(open_door());
  world.register_worker();
  start(world, "later", {{"priority", {{"priority_key", 5}}}});
  start(world, "sooner", {{"priority", {{"priority_key", 1}}}});
  EXPECT_EQ(text_of(world.poll("activity")->task(), "workflow_id"), "sooner");
}

TEST(Standalone, UsesAnIdOnce) {
  World world(open_door());
  world.start("job-1");
  const auto again = start(world, "job-1");
  EXPECT_EQ(again->status(), 409);
  EXPECT_EQ(again->text("reason"), "instance_already_started");
  start(world, "job-2");
  EXPECT_EQ(world.start("job-2")->status(), 409);
}

TEST(Standalone, IsNoWorkflow) {
  World world(open_door());
  world.register_worker();
  world.start("order-1");
  start(world);
  EXPECT_EQ(describe(world, "order-1")->status(), 404);
  EXPECT_EQ(describe(world, "nothing")->text("reason"), "activity_not_found");
  EXPECT_EQ(world.ask("POST", "/api/workflows/job-1/signal/x")->text("reason"), "unknown_signal");
  EXPECT_EQ(world.ask("POST", "/api/workflows/job-1/update/x")->text("reason"), "unknown_update");
  EXPECT_EQ(world.ask("POST", "/api/workflows/job-1/query/x")->text("reason"),
            "rejected_unknown_query");
  const auto workflows = world.ask("GET", "/api/workflows")->body.at("workflows").as_array();
  ASSERT_EQ(workflows.size(), 1u);
  EXPECT_EQ(text_of(workflows[0].as_object(), "workflow_id"), "order-1");
}

TEST(Standalone, IsListedByPages) {
  World world(open_door());
  world.register_worker();
  for (int i = 0; i < 5; ++i) {
    world.advance(kSecond);
    start(world, "job-" + std::to_string(i), {{"business_key", "k"}});
  }
  const auto task = world.poll("activity");
  world.answer_activity(*task, "complete", {});
  std::vector<std::string> seen;
  std::string token;
  do {
    const auto page = world.ask("GET", "/api/activities?page_size=2&next_page_token=" + token);
    ASSERT_EQ(page->status(), 200);
    for (const auto& each : page->body.at("activities").as_array()) {
      seen.push_back(text_of(each.as_object(), "activity_id"));
      EXPECT_EQ(text_of(each.as_object(), "business_key"), "k");
    }
    token = page->text("next_page_token");
  } while (!token.empty());
  EXPECT_THAT(seen, ElementsAre("job-4", "job-3", "job-2", "job-1", "job-0"));
  const auto done = world.ask("GET", "/api/activities?status=completed");
  EXPECT_EQ(done->body.at("activity_count"), 1);
  EXPECT_EQ(world.ask("GET", "/api/activities?status=x")->status(), 422);
}

TEST(Standalone, RefusesWhatIsNoActivity) {
  World world(open_door());
  const auto refused = [&](json::object more, const char* field) {
    const auto answer = start(world, "job-1", std::move(more));
    EXPECT_EQ(answer->status(), 422) << field;
    EXPECT_TRUE(object_member(answer->body, "errors").contains(field)) << answer->response->body;
  };
  refused({{"heartbeat_timeout_seconds", 0}}, "heartbeat_timeout_seconds");
  refused({{"start_to_close_timeout_seconds", 9}, {"schedule_to_close_timeout_seconds", 5}},
          "start_to_close_timeout_seconds");
  refused({{"retry_policy", {{"max_attempts", 0}}}}, "retry_policy");
  refused({{"input", "x"}}, "input");
  refused({{"priority", {{"priority_key", 9}}}}, "priority.priority_key");
  EXPECT_EQ(world.ask("POST", "/api/activities", {{"activity_type", "x"}})->status(), 422);
  EXPECT_EQ(start(world, "no id!")->status(), 422);
}

}  // namespace
}  // namespace fairlead::durable::testing
