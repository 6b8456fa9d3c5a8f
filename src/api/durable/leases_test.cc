#include "api/durable/door_testing.h"
#include "store/keys.h"

namespace fairlead::durable::testing {
namespace {

int64_t running_activities(World& world) {
  int64_t running = 0;
  world.engine().list_queues({NamespaceNum(1)}, [&](const auto& queues) {
    ASSERT_TRUE(queues.ok());
    for (const auto& queue : *queues) {
      if (queue.queue.kind == model::ACTIVITY_TASK) running += queue.running;
    }
  });
  world.executor->run();
  return running;
}

// A task that ends takes its lease's row with it; the message that lets its queue count it off
// comes a moment later. A queue that nobody has looked at since the server started must not read
// its rows in between: it would find one lease less, hear of the end, and count one more off, so
// that one task more than its cap allows could run.
TEST(DoorLeases, AQueueHasCountedThemBeforeTheFirstCanEnd) {
  World world(open_door());
  world.register_worker();
  for (const char* id : {"order-1", "order-2"}) {
    world.start(id);
    world.turn({json::object{{"type", "schedule_activity"}, {"activity_type", "charge"}}});
    ASSERT_TRUE(world.poll("activity")->has_task());
  }
  ASSERT_EQ(running_activities(world), 2);

  world.restart();
  std::vector<std::string> rows;
  for (uint16_t shard = 0; shard < 4; ++shard) {
    const auto range = store::keys::leases(ShardId(shard));
    ASSERT_TRUE(world.store()
                    .scan(range.begin, range.end,
                          [&](std::string_view key, std::string_view) {
                            rows.emplace_back(key);
                            return true;
                          })
                    .ok());
  }
  ASSERT_EQ(rows.size(), 2);
  store::WriteBatch end;
  end.erase(rows[0]);
  ASSERT_TRUE(world.store().write(end).ok());
  world.register_worker();
  world.poll("activity");
  EXPECT_EQ(running_activities(world), 2) << "its end has not been told yet";
}

}  // namespace
}  // namespace fairlead::durable::testing
