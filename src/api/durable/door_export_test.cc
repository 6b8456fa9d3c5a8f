#include "api/durable/door_testing.h"

namespace fairlead::durable::testing {
namespace {

// In an exported history the events have other names for the same; they are renamed in place.
TEST(DoorExport, EventsKeepTheirTypes) {
  World world(open_door());
  world.register_worker();
  const std::string run = world.start()->text("run_id");
  world.turn({json::object{{"type", "schedule_activity"}, {"activity_type", "charge"}}});
  const auto exported = world.ask("GET", "/api/workflows/order-1/runs/" + run + "/history/export");
  ASSERT_EQ(exported->status(), 200);
  std::vector<std::string> types;
  const auto* events = exported->body.if_contains("history_events");
  ASSERT_NE(events, nullptr) << json::serialize(exported->body);
  for (const auto& event : events->as_array()) {
    types.push_back(text_of(event.as_object(), "type"));
  }
  EXPECT_EQ(types, world.event_types("order-1", run));
}

}  // namespace
}  // namespace fairlead::durable::testing
