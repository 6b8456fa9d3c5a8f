// What the command line tool asks beyond what the SDK does.

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

std::vector<std::string> codes_of(const Answer& answer) {
  std::vector<std::string> codes;
  for (const auto& each : answer.body.at("findings").as_array()) {
    codes.push_back(text_of(each.as_object(), "code"));
  }
  return codes;
}

TEST(Debug, ARunTellsWhatItWaitsForAndWhatIsInItsWay) {
  using ::testing::ElementsAre;
  World world(open_door());
  const std::string run = world.start()->text("run_id");
  auto shown = world.ask("GET", "/api/workflows/order-1/debug");
  ASSERT_EQ(shown->status(), 200);
  EXPECT_EQ(shown->text("run_id"), run);
  EXPECT_EQ(shown->text("diagnostic_status"), "attention");
  EXPECT_THAT(codes_of(*shown), ElementsAre("no_active_workers"));
  EXPECT_EQ(shown->body.at("pending_workflow_tasks").as_array().at(0).at("task_status"), "ready");
  EXPECT_EQ(shown->body.at("control_plane").at("diagnostic_status"), "attention");

  world.register_worker();
  const auto polled = world.poll();
  shown = world.ask("GET", "/api/workflows/order-1/runs/" + run + "/debug");
  EXPECT_EQ(shown->text("diagnostic_status"), "healthy");
  const auto& task = shown->body.at("pending_workflow_tasks").as_array().at(0);
  EXPECT_EQ(task.at("task_id"), polled->task().at("task_id"));
  EXPECT_EQ(task.at("lease_owner"), "w1");
  world.complete(*polled,
                 {json::object{{"type", "schedule_activity"}, {"activity_type", "count"}}});
  shown = world.ask("GET", "/api/workflows/order-1/debug");
  EXPECT_EQ(shown->body.at("pending_activities").as_array().at(0).at("activity_type"), "count");
  EXPECT_EQ(shown->body.at("task_queue").at("stats").at("activity_tasks").at("ready_count"), 1);

  world.ask("POST", "/api/workflows/order-1/terminate");
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1/debug")->text("diagnostic_status"), "closed");
  EXPECT_EQ(world.ask("GET", "/api/workflows/none/debug")->text("reason"), "instance_not_found");
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1/runs/none/debug")->text("reason"),
            "run_not_found");
}

TEST(Debug, ABlockedRunSaysSo) {
  World world(open_door());
  world.register_worker();
  world.start();
  world.answer_task(*world.poll(), "fail",
                    {{"failure", {{"message", "nondeterministic: no such step"}}}});
  const auto shown = world.ask("GET", "/api/workflows/order-1/debug");
  EXPECT_EQ(codes_of(*shown), std::vector<std::string>{"run_blocked"});
}

// People who answer a task by hand send the value itself. What looks like an envelope must be one.
TEST(Results, WhatIsNoEnvelopeIsTheValueItself) {
  World world(open_door());
  world.register_worker();
  world.start();
  world.turn(
      {json::object{{"type", "schedule_activity"}, {"activity_type", "count"}, {"queue", "q"}}});
  const auto work = world.poll("activity");
  EXPECT_EQ(world.answer_activity(*work, "complete", {{"result", {{"codec", "avro"}}}})->status(),
            422);
  EXPECT_EQ(world.answer_activity(*work, "complete", {{"result", {{"sum", 3}}}})->status(), 200);
  world.turn({json::object{{"type", "complete_workflow"}, {"result", "done"}}});
  const auto closed = world.ask("GET", "/api/workflows/order-1");
  EXPECT_EQ(closed->body.at("output_envelope"), payload("done"));
}

}  // namespace
}  // namespace fairlead::durable::testing
