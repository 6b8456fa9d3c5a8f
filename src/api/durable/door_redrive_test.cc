// Failed runs that go on in another one.

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::ElementsAre;

class Redrives : public ::testing::Test {
 protected:
  void SetUp() override { world.register_worker(); }
  AnswerPtr redrive() {
    return world.ask("POST", "/api/workflows/order-1/runs/" + run + "/redrive");
  }
  void run_activity(bool succeeds) {
    const auto work = world.poll("activity");
    ASSERT_TRUE(work->has_task());
    const auto done =
        succeeds ? world.answer_activity(*work, "complete", {{"result", payload(1)}})
                 : world.answer_activity(*work, "fail", {{"failure", {{"message", "no"}}}});
    ASSERT_EQ(done->status(), 200);
  }
  // Two steps, the second of which fails and the run with it.
  void fail_at_second() {
    run = world.start("order-1", {{"input", payload(json::array{"ada"})}})->text("run_id");
    world.turn({activity()});
    run_activity(true);
    world.turn({activity()});
    run_activity(false);
    world.turn({json::object{{"type", "fail_workflow"},
                             {"message", "no"},
                             {"failed_step_sequence", 2},
                             {"failed_activity_execution_id", "x"}}});
  }
  static json::object activity() {
    return {{"type", "schedule_activity"}, {"activity_type", "work"}};
  }

  World world{open_door()};
  std::string run;
};

TEST_F(Redrives, ARunGoesOnFromTheStepThatFailed) {
  fail_at_second();
  world.advance(kMinute);
  const auto answer = redrive();
  ASSERT_EQ(answer->status(), 200) << answer->response->body;
  const auto next = answer->text("run_id");
  EXPECT_NE(next, run);
  EXPECT_EQ(redrive()->text("run_id"), next) << "asked again";
  world.restart();
  world.register_worker();
  EXPECT_EQ(redrive()->text("run_id"), next);
  EXPECT_THAT(
      world.event_types("order-1", next),
      ElementsAre("WorkflowStarted", "ActivityScheduled", "ActivityStarted", "ActivityCompleted"));
  const auto old_events = world.history("order-1", run);
  const auto new_events = world.history("order-1", next);
  EXPECT_EQ(new_events[3].as_object().at("payload"), old_events[4].as_object().at("payload"));
  EXPECT_EQ(new_events[3].as_object().at("recorded_at"),
            old_events[4].as_object().at("recorded_at"));
  // The workflow's clock is that of the first run, and its input is there.
  const auto& started = new_events[0].as_object().at("payload").as_object();
  EXPECT_EQ(started.at("timestamp"), old_events[1].as_object().at("recorded_at"));
  EXPECT_EQ(started.at("input"), old_events[1].as_object().at("payload").as_object().at("input"));

  world.turn({activity()});
  const auto last = world.history("order-1", next).back().as_object();
  EXPECT_EQ(integer_of(last.at("payload").as_object(), "sequence"), 2) << "the step is tried again";
  run_activity(true);
  world.turn({json::object{{"type", "complete_workflow"}}});
  const auto described = world.ask("GET", "/api/workflows/order-1");
  EXPECT_EQ(described->text("status"), "completed");
  EXPECT_EQ(described->text("run_id"), next);
  EXPECT_EQ(integer_of(described->body, "run_number"), 2);
}

TEST_F(Redrives, OnlyAFailureOfAnActivityHasAStepToGoOnFrom) {
  run = world.start()->text("run_id");
  EXPECT_EQ(redrive()->text("reason"), "run_not_failed");
  world.turn({json::object{{"type", "fail_workflow"}, {"message", "no"}}});
  EXPECT_EQ(redrive()->text("reason"), "redrive_step_unknown");
  run = "00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(redrive()->status(), 404);
}

TEST_F(Redrives, AStepThatHasNotEndedCannotBeTakenOver) {
  run = world.start()->text("run_id");
  world.turn({json::object{{"type", "start_timer"}, {"delay_seconds", 300}}, activity()});
  run_activity(false);
  world.turn({json::object{{"type", "fail_workflow"},
                           {"message", "no"},
                           {"failed_step_sequence", 2},
                           {"failed_activity_execution_id", "x"}}});
  EXPECT_EQ(redrive()->text("reason"), "redrive_open_operations");
}

TEST_F(Redrives, AGroupIsDoneAgainAsAWhole) {
  run = world.start()->text("run_id");
  world.turn({activity()});
  run_activity(true);
  json::array group;
  for (int i = 0; i < 2; ++i) {
    auto command = activity();
    command["parallel_group_id"] = "parallel-activities:2:2";
    command["parallel_group_kind"] = "activity";
    command["parallel_group_base_sequence"] = 2;
    command["parallel_group_size"] = 2;
    command["parallel_group_index"] = i;
    group.push_back(std::move(command));
  }
  world.turn(group);
  run_activity(true);
  run_activity(false);
  world.turn({json::object{{"type", "fail_workflow"},
                           {"message", "no"},
                           {"failed_step_sequence", 3},
                           {"failed_activity_execution_id", "x"}}});
  const auto next = redrive()->text("run_id");
  EXPECT_THAT(
      world.event_types("order-1", next),
      ElementsAre("WorkflowStarted", "ActivityScheduled", "ActivityStarted", "ActivityCompleted"));
  world.turn(group);
}

}  // namespace
}  // namespace fairlead::durable::testing
