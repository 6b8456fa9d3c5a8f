// Promoted builds: whose workers get the tasks of which runs.

#include "api/durable/door_testing.h"

namespace fairlead::durable::testing {
namespace {

void register_worker(World& world, const std::string& id, const json::value& build) {
  const auto answer = world.ask("POST", "/api/worker/register",
                                {{"worker_id", id},
                                 {"task_queue", "q"},
                                 {"runtime", "python"},
                                 {"build_id", build},
                                 {"capabilities", json::array{"query_tasks"}}});
  ASSERT_EQ(answer->status(), 201);
}

AnswerPtr promote(World& world, const json::value& build) {
  return world.ask("POST", "/api/task-queues/q/build-ids/promote", {{"build_id", build}});
}

json::object build_of(World& world, const json::value& id) {
  const auto answer = world.ask("GET", "/api/task-queues/q/build-ids");
  for (const auto& each : answer->body.at("build_ids").as_array()) {
    if (each.at("build_id") == id) return each.as_object();
  }
  return {};
}

// The workflow whose task a poll was given; empty if it waits.
std::string got(const AnswerPtr& polled) {
  if (!polled->is_there() || !polled->has_task()) return "";
  return text_of(polled->task(), "workflow_id");
}

json::array one_activity() {
  return {json::object{{"type", "schedule_activity"},
                       {"activity_type", "charge"},
                       {"queue", "q"},
                       {"arguments", payload(json::array{1})}}};
}

TEST(Promotion, RunsStartedAfterItAreForThatBuildOnly) {
  World world(open_door());
  register_worker(world, "old", "v1");
  register_worker(world, "new", "v2");
  register_worker(world, "plain", nullptr);
  world.start("before");
  const auto promoted = promote(world, "v2");
  ASSERT_EQ(promoted->status(), 200) << promoted->response->body;
  EXPECT_EQ(promoted->body.at("new_start_selected"), true);
  EXPECT_EQ(promoted->text("drain_intent"), "active");
  EXPECT_NE(promoted->text("promoted_at"), "");
  EXPECT_EQ(promoted->text("build_id"), "v2");
  world.start("after");
  world.start("after-2");
  EXPECT_EQ(world.ask("GET", "/api/workflows/before")->body.at("compatibility"), nullptr);
  EXPECT_EQ(world.ask("GET", "/api/workflows/after")->text("compatibility"), "v2");

  EXPECT_EQ(got(world.poll("workflow", "p1", "old")), "before") << "it has no marker";
  const auto waits = world.poll("workflow", "p2", "old");
  const auto plain = world.poll("workflow", "p3", "plain");
  EXPECT_EQ(got(waits), "");
  EXPECT_EQ(got(plain), "");
  const auto first = world.poll("workflow", "p4", "new");
  EXPECT_EQ(got(first), "after");
  EXPECT_EQ(text_of(first->task(), "compatibility"), "v2");
  EXPECT_EQ(got(world.poll("workflow", "p5", "new")), "after-2");
}

TEST(Promotion, ATaskWithoutAMarkerGoesToAnyWorkflowPoll) {
  World world(open_door());
  register_worker(world, "new", "v2");
  register_worker(world, "plain", nullptr);
  world.start("a");
  world.start("b");
  EXPECT_EQ(got(world.poll("workflow", "p1", "new")), "a");
  EXPECT_EQ(got(world.poll("workflow", "p2", "plain")), "b");
  // Parked polls, too: the one that came first.
  const auto third = world.poll("workflow", "p3", "new");
  const auto fourth = world.poll("workflow", "p4", "plain");
  world.start("c");
  EXPECT_EQ(got(third), "c");
  world.start("d");
  EXPECT_EQ(got(fourth), "d");
}

// One whose worker has both kinds to do does both.
TEST(Promotion, OldRunsAndNewRunsTakeTurnsAtAWorkerOfTheBuild) {
  World world(open_door());
  register_worker(world, "new", "v2");
  for (const char* id : {"o1", "o2", "o3"}) world.start(id);
  promote(world, "v2");
  for (const char* id : {"n1", "n2", "n3"}) world.start(id);
  std::vector<std::string> order;
  for (int i = 0; i < 6; ++i) order.push_back(got(world.poll("workflow", "", "new")));
  EXPECT_EQ(order, (std::vector<std::string>{"n1", "o1", "n2", "o2", "n3", "o3"}));
}

TEST(Promotion, ActivitiesCarryTheMarkerOfTheirRun) {
  World world(open_door());
  register_worker(world, "w1", "v2");
  register_worker(world, "plain", nullptr);
  const auto begin = [&](const std::string& id) {
    world.start(id);
    const auto task = world.poll("workflow", "", "w1");
    ASSERT_EQ(got(task), id);
    ASSERT_EQ(world.complete(*task, one_activity())->status(), 200);
  };
  begin("unmarked");
  promote(world, "v2");
  begin("marked");
  EXPECT_EQ(got(world.poll("activity", "p1", "plain")), "unmarked");
  EXPECT_EQ(got(world.poll("activity", "p2", "w1")), "marked");
  begin("marked-2");
  EXPECT_EQ(got(world.poll("activity", "p3", "plain")), "");
  EXPECT_EQ(got(world.poll("activity", "p4", "w1")), "marked-2");
}

TEST(Promotion, AnUnmarkedActivityIsNotForAWorkerWithABuild) {
  World world(open_door());
  register_worker(world, "w1", "v1");
  register_worker(world, "plain", nullptr);
  world.start("a");
  ASSERT_EQ(world.complete(*world.poll("workflow", "", "w1"), one_activity())->status(), 200);
  EXPECT_EQ(got(world.poll("activity", "p1", "w1")), "");
  EXPECT_EQ(got(world.poll("activity", "p2", "plain")), "a");
}

TEST(Promotion, IsDurableAndTheLastOneCounts) {
  World world(open_door());
  register_worker(world, "old", "v1");
  register_worker(world, "new", "v2");
  promote(world, "v1");
  promote(world, "v2");
  world.start("a");
  world.restart();
  EXPECT_EQ(build_of(world, "v1").at("new_start_selected"), false);
  EXPECT_NE(text_of(build_of(world, "v1"), "promoted_at"), "");
  EXPECT_EQ(build_of(world, "v2").at("new_start_selected"), true);
  EXPECT_EQ(got(world.poll("workflow", "p1", "old")), "");
  EXPECT_EQ(got(world.poll("workflow", "p2", "new")), "a");
  world.start("b");
  EXPECT_EQ(got(world.poll("workflow", "p3", "new")), "b");
  // Back to anybody.
  EXPECT_EQ(promote(world, nullptr)->body.at("new_start_selected"), true);
  EXPECT_EQ(build_of(world, "v2").at("new_start_selected"), false);
  world.start("c");
  EXPECT_EQ(world.ask("GET", "/api/workflows/c")->body.at("compatibility"), nullptr);
}

TEST(Promotion, AStartMayNameABuildItself) {
  World world(open_door());
  register_worker(world, "w1", "v1");
  promote(world, "v2");
  world.start("a", {{"build_id", "v1"}, {"compatibility", "v3"}});
  world.start("b", {{"compatibility", "v1"}});
  EXPECT_EQ(got(world.poll("workflow", "p1", "w1")), "a");
  EXPECT_EQ(got(world.poll("workflow", "p2", "w1")), "b");
  EXPECT_EQ(world.start("c", {{"build_id", std::string(256, 'v')}})->status(), 422);
}

// The run that continues one has its marker, and so has a child on the same queue.
TEST(Promotion, TheMarkerIsHandedOn) {
  World world(open_door());
  register_worker(world, "w1", "v2");
  promote(world, "v2");
  world.start("a");
  promote(world, "v3");
  world.turn({json::object{{"type", "continue_as_new"}, {"arguments", payload(json::array{})}}});
  EXPECT_EQ(world.ask("GET", "/api/workflows/a")->text("compatibility"), "v2");
  world.advance(2 * kSecond);
  world.turn({json::object{{"type", "start_child_workflow"},
                           {"workflow_type", "greeter"},
                           {"queue", "q"},
                           {"arguments", payload(json::array{})}}});
  const auto child = world.poll("workflow", "p1", "w1");
  ASSERT_TRUE(child->is_there() && child->has_task());
  EXPECT_EQ(text_of(child->task(), "compatibility"), "v2");
}

TEST(Promotion, ABuildThatDrainsGetsNoNewRuns) {
  World world(open_door());
  promote(world, "v2");
  world.ask("POST", "/api/task-queues/q/build-ids/drain", {{"build_id", "v2"}});
  EXPECT_EQ(build_of(world, "v2").at("new_start_selected"), false);
  world.start("a");
  EXPECT_EQ(world.ask("GET", "/api/workflows/a")->body.at("compatibility"), nullptr);
  EXPECT_EQ(promote(world, "v2")->text("drain_intent"), "active");
  world.start("b");
  EXPECT_EQ(world.ask("GET", "/api/workflows/b")->text("compatibility"), "v2");
  EXPECT_EQ(promote(world, 7)->status(), 422);
}

}  // namespace
}  // namespace fairlead::durable::testing
