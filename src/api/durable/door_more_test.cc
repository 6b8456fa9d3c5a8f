// Selections, exports and definitions of search attributes, through the door.

#include "api/durable/canonical.h"
#include "api/durable/door_testing.h"
#include "base/sha256.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::ElementsAre;

// Member `index` of a selection of two operations that begins with the run's first step.
json::object selected(json::object command, int64_t index, const json::value& key,
                      const char* kind) {
  const json::object place{{"parallel_group_id", "select-calls:1:2"},
                           {"parallel_group_kind", "mixed"},
                           {"parallel_group_mode", "select"},
                           {"parallel_group_base_sequence", 1},
                           {"parallel_group_size", 2},
                           {"parallel_group_index", index},
                           {"selection_member_key", key},
                           {"selection_member_index", index},
                           {"selection_member_base_sequence", 1 + index},
                           {"selection_member_size", 1},
                           {"selection_member_kind", kind}};
  for (const auto& each : place) command[each.key()] = each.value();
  command["parallel_group_path"] = json::array{place};
  return command;
}

json::array activity_or_timer() {
  return {selected({{"type", "schedule_activity"}, {"activity_type", "greet"}, {"queue", "q"}}, 0,
                   "work", "activity"),
          selected({{"type", "start_timer"}, {"delay_seconds", 5}}, 1, 7, "timer")};
}

TEST(DoorSelection, TellsTheWinnerInTheWordsOfItsCommand) {
  World world(open_door());
  world.register_worker();
  const auto started = world.start();
  world.turn(activity_or_timer());
  world.advance(5 * kSecond);
  const auto events = world.history("order-1", started->text("run_id"));
  ASSERT_EQ(text_of(events[5].as_object(), "event_type"), "SelectionResolved");
  const auto& winner = events[5].at("payload").as_object();
  const auto& fired = events[4].as_object();
  EXPECT_EQ(text_of(winner, "selection_group_id"), "select-calls:1:2");
  EXPECT_EQ(winner.at("selection_group_base_sequence").to_number<int>(), 1);
  EXPECT_EQ(winner.at("selection_group_size").to_number<int>(), 2);
  EXPECT_EQ(winner.at("member_key").to_number<int>(), 7);
  EXPECT_EQ(winner.at("member_index").to_number<int>(), 1);
  EXPECT_EQ(winner.at("member_base_sequence").to_number<int>(), 2);
  EXPECT_EQ(winner.at("member_size").to_number<int>(), 1);
  EXPECT_EQ(text_of(winner, "operation_kind"), "timer");
  EXPECT_EQ(text_of(winner, "operation_identity"),
            text_of(fired.at("payload").as_object(), "timer_id"));
  EXPECT_EQ(text_of(winner, "outcome"), "completed");
  EXPECT_EQ(text_of(winner, "resolution_event_id"), text_of(fired, "id"));
  EXPECT_EQ(text_of(winner, "resolution_event_type"), "TimerFired");
  EXPECT_TRUE(fired.at("payload").as_object().contains("parallel_group_path"));

  const auto task = world.poll();
  ASSERT_TRUE(task->has_task());
  world.restart();
  world.register_worker();
  EXPECT_EQ(world
                .complete(*task, {json::object{{"type", "cancel_selection_operation"},
                                               {"selection_group_id", "select-calls:1:2"},
                                               {"member_base_sequence", 1}},
                                  json::object{{"type", "complete_workflow"}}})
                ->status(),
            200);
  const auto types = world.event_types("order-1", started->text("run_id"));
  EXPECT_THAT(std::vector(types.begin() + 6, types.end()),
              ElementsAre("ActivityCancelled", "SelectionOperationCancelled", "WorkflowCompleted"));
}

TEST(DoorSelection, RefusesOneThatIsNotWhole) {
  World world(open_door());
  world.register_worker();
  world.start();
  const auto task = world.poll();
  auto half = activity_or_timer();
  half.pop_back();
  EXPECT_EQ(world.complete(*task, half)->text("reason"), "invalid_commands");
  auto unnamed = activity_or_timer();
  unnamed[0].as_object()["parallel_group_path"].as_array()[0].as_object()["selection_member_key"] =
      "";
  EXPECT_EQ(world.complete(*task, unnamed)->text("reason"), "invalid_commands");
  EXPECT_EQ(world.complete(*task, activity_or_timer())->status(), 200);
}

TEST(DoorExport, IsTheWholeHistoryWithAChecksum) {
  World world(open_door());
  world.register_worker();
  const auto started =
      world.start("order-1", {{"search_attributes", {{"price", 1.5}, {"city", "K\xc3\xb6ln"}}}});
  world.turn({json::object{{"type", "complete_workflow"}}});
  const std::string path = "/api/workflows/order-1/runs/" + started->text("run_id");
  auto bundle = world.ask("GET", path + "/history/export")->body;
  EXPECT_EQ(text_of(bundle, "schema"), "durable-workflow.v2.history-export");
  EXPECT_EQ(text_of(bundle.at("workflow").as_object(), "instance_id"), "order-1");
  std::vector<std::string> types;
  for (const auto& event : bundle.at("history_events").as_array()) {
    types.push_back(text_of(event.as_object(), "type"));
  }
  EXPECT_EQ(types, world.event_types("order-1", started->text("run_id")));
  const auto integrity = bundle.at("integrity").as_object();
  bundle.erase("integrity");
  const auto digest = sha256(canonical_json(bundle));
  std::string hex;
  for (const uint8_t byte : digest) hex += absl::StrCat(absl::Hex(byte, absl::kZeroPad2));
  EXPECT_EQ(text_of(integrity, "checksum"), hex);
  EXPECT_EQ(world.ask("GET", "/api/workflows/nobody/runs/x/history/export")->status(), 404);
}

TEST(DoorAttributes, AreDefinedPerNamespaceAndOutliveARestart) {
  World world(open_door());
  const auto define = [&](const char* name, const char* type) {
    return world.ask("POST", "/api/search-attributes", {{"name", name}, {"type", type}});
  };
  EXPECT_EQ(define("tenant", "keyword")->status(), 201);
  EXPECT_EQ(define("rank", "int")->status(), 201);
  EXPECT_EQ(define("tenant", "text")->text("reason"), "attribute_already_exists");
  EXPECT_EQ(define("WorkflowId", "keyword")->text("reason"), "name_reserved");
  EXPECT_EQ(define("9lives", "int")->status(), 422);
  EXPECT_EQ(define("other", "blob")->status(), 422);
  world.restart();
  const auto custom = [&](const char* ns) {
    return world.ask("GET", "/api/search-attributes", {}, {{"X-Namespace", ns}})
        ->body.at("custom_attributes")
        .as_object();
  };
  EXPECT_EQ(json::value(custom("default")), (json::value{{"rank", "int"}, {"tenant", "keyword"}}));
  world.ask("POST", "/api/namespaces", {{"name", "other"}});
  EXPECT_TRUE(custom("other").empty());
  EXPECT_EQ(world.ask("DELETE", "/api/search-attributes/tenant")->text("outcome"), "deleted");
  EXPECT_EQ(world.ask("DELETE", "/api/search-attributes/tenant")->text("reason"),
            "attribute_not_found");
  EXPECT_EQ(world.ask("DELETE", "/api/search-attributes/RunId")->text("reason"),
            "system_attribute");
  EXPECT_EQ(custom("default").size(), 1u);
}

TEST(DoorAttributes, HaveALimit) {
  World world(open_door());
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(world
                  .ask("POST", "/api/search-attributes",
                       {{"name", absl::StrCat("a", i)}, {"type", "int"}})
                  ->status(),
              201);
  }
  EXPECT_EQ(world.ask("POST", "/api/search-attributes", {{"name", "more"}, {"type", "int"}})
                ->text("reason"),
            "search_attribute_limit_reached");
}

// A change builds on the one before it, also while that is on its way to the disk.
TEST(DoorAttributes, AreNotLostWhenManyAreDefinedAtOnce) {
  World world(open_door());
  for (int i = 0; i < 10; ++i) {
    world.post(world.request("POST", "/api/search-attributes",
                             {{"name", absl::StrCat("a", i)}, {"type", "int"}}));
  }
  world.advance(0);
  EXPECT_EQ(
      world.ask("GET", "/api/search-attributes")->body.at("custom_attributes").as_object().size(),
      10u);
}

}  // namespace
}  // namespace fairlead::durable::testing
