// Namespaces come and go.

#include "absl/strings/str_cat.h"
#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

// Its workers must not go on polling a namespace of the same name that somebody makes later.
TEST(Namespaces, DeletingOneEndsItsWorkersAndFreesItsName) {
  World world(open_door());
  const Headers there{{"X-Namespace", "shop"}};
  const auto join = [&](const char* id, const Headers& where) {
    return world.ask("POST", "/api/worker/register",
                     {{"worker_id", id}, {"task_queue", "q"}, {"runtime", "x"}, {"build_id", "v1"}},
                     where);
  };
  ASSERT_EQ(world.ask("POST", "/api/namespaces", {{"name", "Shop"}})->status(), 201);
  ASSERT_EQ(join("w1", there)->status(), 201);
  ASSERT_EQ(join("w1", {})->status(), 201);
  for (int i = 0; i < 7; ++i) {
    ASSERT_EQ(
        world
            .ask("POST", "/api/workflows",
                 {{"workflow_type", "greeter"}, {"workflow_id", absl::StrCat("order-", i)}}, there)
            ->status(),
        201);
  }
  ASSERT_EQ(
      world
          .ask("POST", "/api/activities",
               {{"activity_type", "count"}, {"task_queue", "q"}, {"activity_id", "a1"}}, there)
          ->status(),
      201);
  ASSERT_EQ(
      world.ask("POST", "/api/task-queues/other/build-ids/drain", {{"build_id", "v0"}}, there)
          ->status(),
      200);
  const auto waiting = world.ask("POST", "/api/worker/workflow-tasks/poll",
                                 {{"worker_id", "w1"}, {"task_queue", "q"}}, there);

  const auto deleted = world.ask("DELETE", "/api/namespaces/SHOP");
  ASSERT_EQ(deleted->status(), 200);
  EXPECT_EQ(deleted->text("name"), "shop");
  EXPECT_EQ(deleted->text("status"), "deleted");
  EXPECT_EQ(deleted->body.at("deleted"), (json::object{{"workflows", 7},
                                                       {"activities", 1},
                                                       {"schedules", 0},
                                                       {"workers", 1},
                                                       {"drained_builds", 1}}));
  EXPECT_EQ(deleted->body.at("deleted_is_complete"), true);
  EXPECT_EQ(waiting->text("poll_status"), "draining");
  EXPECT_EQ(world.ask("GET", "/api/namespaces/shop")->text("reason"), "namespace_not_found");
  EXPECT_EQ(world.ask("DELETE", "/api/namespaces/shop")->text("reason"), "namespace_not_found");
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-0", {}, there)->text("reason"),
            "namespace_not_found");

  ASSERT_EQ(world.ask("POST", "/api/namespaces", {{"name", "shop"}})->status(), 201);
  world.restart();
  EXPECT_EQ(world.ask("GET", "/api/workers/w1", {}, there)->status(), 404);
  EXPECT_EQ(world.ask("GET", "/api/workers/w1")->status(), 200);
  EXPECT_EQ(world.ask("GET", "/api/workflows", {}, there)->body.at("workflow_count"), 0);
  EXPECT_TRUE(world.ask("GET", "/api/task-queues/other/build-ids", {}, there)
                  ->body.at("build_ids")
                  .as_array()
                  .empty());
}

}  // namespace
}  // namespace fairlead::durable::testing
