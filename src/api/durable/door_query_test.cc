// How many queries wait, whoever asks and through whichever door.

#include <algorithm>

#include "api/durable/door_testing.h"
#include "shard/admission_desk.h"

namespace fairlead::durable::testing {
namespace {

admission::Settings at_most(int64_t queries) {
  admission::Settings settings;
  settings.queries_pending_max = queries;
  return settings;
}

admission::QuerySection queries_shown(World& world) {
  admission::QuerySection shown;
  const auto ns = *world.engine().namespaces().find("default");
  world.engine().describe_admission(
      {NamespaceNum(ns->num()), "q"},
      [&](absl::StatusOr<admission::Payload> payload) { shown = payload->query_tasks; });
  world.executor->run();
  return shown;
}

TEST(Door, BoundsTheQueriesThatWait) {
  World world(open_door(), at_most(2));
  world.start();
  world.register_worker();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(world.ask("POST", "/api/workflows/order-1/query/status")->is_there());
  }
  const auto refused = world.ask("POST", "/api/workflows/order-1/query/status");
  EXPECT_EQ(refused->status(), 429);
  EXPECT_EQ(refused->text("reason"), "query_task_queue_full");
  EXPECT_EQ(queries_shown(world).status, admission::Status::kFull);

  // The engine's own operators see them, and see them go.
  EXPECT_EQ(queries_shown(world).pending, 2);
  ASSERT_TRUE(world.poll("query")->has_task());
  EXPECT_EQ(queries_shown(world).pending, 1);
  EXPECT_FALSE(world.ask("POST", "/api/workflows/order-1/query/status")->is_there());
  world.hang_up();
  EXPECT_EQ(queries_shown(world).pending, 1);
  world.advance(30 * kSecond);
  EXPECT_EQ(queries_shown(world).pending, 0);
}

// Each looked before any of them waited.
TEST(Door, BoundsQueriesThatComeAtOnce) {
  World world(open_door(), at_most(2));
  world.start();
  world.register_worker();
  EXPECT_FALSE(world.ask("POST", "/api/workflows/order-1/query/status")->is_there());
  const auto request = world.last_request();
  std::vector<AnswerPtr> asked;
  for (int i = 0; i < 5; ++i) asked.push_back(world.post(std::make_shared<Request>(*request)));
  world.executor->run();
  EXPECT_EQ(std::count_if(asked.begin(), asked.end(),
                          [](const auto& answer) { return answer->status() == 429; }),
            4);
  EXPECT_EQ(queries_shown(world).pending, 2);
}

TEST(Door, AQueryThatIsAwaitedNeedsNoPlace) {
  World world(open_door(), at_most(1));
  world.start();
  world.register_worker();
  const auto ns = *world.engine().namespaces().find("default");
  // One of the other door has the only place.
  const auto other = world.engine().admission().place_query(NamespaceNum(ns->num()), "q");
  ASSERT_TRUE(other.has_value());
  const auto polled = world.poll("query");
  EXPECT_FALSE(world.ask("POST", "/api/workflows/order-1/query/status")->is_there());
  EXPECT_TRUE(polled->has_task());
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/query/status")->status(), 429);
}

TEST(Door, AQueryComesBackFromASilentWorkerIfThereIsRoom) {
  auto options = open_door();
  options.query_lease = 5 * kSecond;
  World world(options, at_most(1));
  world.start();
  world.register_worker();
  const auto asked = world.ask("POST", "/api/workflows/order-1/query/status");
  ASSERT_TRUE(world.poll("query")->has_task());
  world.advance(5 * kSecond);
  EXPECT_EQ(queries_shown(world).pending, 1);
  ASSERT_TRUE(world.poll("query")->has_task());
  EXPECT_FALSE(world.ask("POST", "/api/workflows/order-1/query/status")->is_there());
  world.advance(5 * kSecond);
  EXPECT_EQ(asked->status(), 429);
  EXPECT_EQ(queries_shown(world).pending, 1);
}

}  // namespace
}  // namespace fairlead::durable::testing
