// Budgets per minute, through the whole door, on a clock that the test moves.

#include "api/durable/door_testing.h"

namespace fairlead::durable::testing {
namespace {

using admission::Budget;
using admission::Span;

admission::Settings two_a_minute(Span span) {
  admission::Settings settings;
  auto& workflow = settings.defaults[admission::at(admission::TaskKind::kWorkflow)];
  workflow.max[admission::at(Budget::kQueueRate)] = 2;
  workflow.span[admission::at(Budget::kQueueRate)] = span;
  return settings;
}

json::object shown(World& world) {
  const auto queue = world.ask("GET", "/api/task-queues/q");
  return queue->body.at("admission").at("workflow_tasks").as_object();
}

// Three runs wait; the clock stands `before` the end of a minute.
void set_up(World& world, DurationNs before) {
  world.advance(kMinute - world.clock.time % kMinute + kMinute - before);
  world.register_worker();
  for (const char* id : {"a", "b", "c"}) world.start(id);
}

TEST(Budgets, TheNextMinuteServesWhoWaited) {
  World world(open_door(), two_a_minute(Span::kFixed));
  set_up(world, 20 * kSecond);
  EXPECT_TRUE(world.poll()->has_task());
  EXPECT_TRUE(world.poll()->has_task());
  EXPECT_EQ(text_of(shown(world), "status"), "throttled");
  EXPECT_EQ(shown(world).at("server_dispatch_count_this_minute"), 2);
  EXPECT_EQ(shown(world).at("ready_count"), 1);

  // A poll that ends earlier says why it got nothing.
  const auto early = world.poll("workflow", "", "w1", 10);
  world.advance(10 * kSecond);
  EXPECT_EQ(early->text("poll_status"), "throttled");
  // Nothing but time wakes this one.
  const auto waiting = world.poll("workflow", "", "w1", 30);
  world.advance(10 * kSecond - kMillisecond);
  EXPECT_FALSE(waiting->is_there());
  world.advance(kMillisecond);
  ASSERT_TRUE(waiting->is_there());
  EXPECT_TRUE(waiting->has_task());
  EXPECT_EQ(shown(world).at("server_dispatch_count_this_minute"), 1);
  EXPECT_EQ(text_of(shown(world), "status"), "accepting");
}

TEST(Budgets, ASlidingMinuteKnowsNoBoundary) {
  World world(open_door(), two_a_minute(Span::kSliding));
  set_up(world, 20 * kSecond);
  EXPECT_TRUE(world.poll()->has_task());
  EXPECT_TRUE(world.poll()->has_task());
  world.advance(5 * kSecond);
  const auto waiting = world.poll("workflow", "", "w1", 60);
  world.advance(54 * kSecond);
  EXPECT_FALSE(waiting->is_there());
  world.advance(kSecond);
  ASSERT_TRUE(waiting->is_there());
  EXPECT_TRUE(waiting->has_task());
}

// Asking again with the same id is no second dispatch.
TEST(Budgets, ARepeatedPollCostsNothing) {
  World world(open_door(), two_a_minute(Span::kFixed));
  set_up(world, 20 * kSecond);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.poll("workflow", "same")->has_task());
  EXPECT_EQ(shown(world).at("server_dispatch_count_this_minute"), 1);
}

}  // namespace
}  // namespace fairlead::durable::testing
