// What operators allow of everything that can grow.

#include "absl/strings/str_cat.h"
#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

json::object activity(const char* type = "count") {
  return {{"type", "schedule_activity"}, {"activity_type", type}, {"queue", "q"}};
}

json::object timer() { return {{"type", "start_timer"}, {"delay_seconds", 60}}; }

json::object child() {
  return {{"type", "start_child_workflow"}, {"workflow_type", "greeter"}, {"queue", "elsewhere"}};
}

json::object wait(int64_t seconds) {
  json::object command{{"type", "open_condition_wait"}, {"condition_key", "k"}};
  if (seconds > 0) command["timeout_seconds"] = seconds;
  return command;
}

void expect_exceeded(const Answer& answer, const char* kind, int64_t current, int64_t limit) {
  EXPECT_EQ(answer.status(), 422) << answer.response->body;
  EXPECT_EQ(answer.text("reason"), "structural_limit_exceeded");
  EXPECT_EQ(answer.text("outcome"), "rejected");
  EXPECT_EQ(answer.text("limit_kind"), kind);
  EXPECT_EQ(answer.body.at("current_value"), current);
  EXPECT_EQ(answer.body.at("configured_limit"), limit);
}

// A completion is refused as a whole: nothing of it may be found in the history, and the worker can
// still answer otherwise.
TEST(Limits, WhatARunMayHaveOpenIsCountedOverItsCompletions) {
  Options options = open_door();
  options.run_limits.pending_activities = 2;
  options.run_limits.pending_timers = 3;
  options.run_limits.pending_children = 1;
  World world(options);
  world.register_worker();
  const std::string run = world.start("order-1")->text("run_id");
  const auto polled = world.poll();
  const auto before = world.event_types("order-1", run);
  expect_exceeded(*world.complete(*polled, {activity(), activity(), activity()}),
                  "pending_activity_count", 3, 2);
  expect_exceeded(*world.complete(*polled, {timer(), timer(), timer(), wait(9)}),
                  "pending_timer_count", 4, 3);
  expect_exceeded(*world.complete(*polled, {child(), child()}), "pending_child_count", 2, 1);
  EXPECT_EQ(world.event_types("order-1", run), before);

  ASSERT_EQ(world.complete(*polled, {activity(), activity(), timer(), child(), wait(0)})->status(),
            200);
  world.ask("POST", "/api/workflows/order-1/signal/go");
  const auto again = world.poll();
  ASSERT_TRUE(again->has_task());
  expect_exceeded(*world.complete(*again, {activity()}), "pending_activity_count", 3, 2);
  expect_exceeded(*world.complete(*again, {child()}), "pending_child_count", 2, 1);
  // What ends makes room.
  const auto work = world.poll("activity");
  ASSERT_EQ(world.answer_activity(*work, "complete", {{"result", payload(1)}})->status(), 200);
  EXPECT_EQ(world.complete(*again, {activity(), wait(0)})->status(), 200);
}

TEST(Limits, ACompletionHasSoManyCommands) {
  Options options = open_door();
  options.command_batch_max = 2;
  World world(options);
  world.register_worker();
  world.start();
  const auto polled = world.poll();
  expect_exceeded(*world.complete(*polled, {timer(), timer(), timer()}), "command_batch_size", 3,
                  2);
  EXPECT_EQ(world.complete(*polled, {timer(), timer()})->status(), 200);
}

TEST(Limits, SignalsAndUpdatesWaitUpToANumber) {
  Options options = open_door();
  options.run_limits.pending_signals = 2;
  options.run_limits.pending_updates = 1;
  World world(options);
  world.register_worker();
  world.start();
  const auto signal = [&] { return world.ask("POST", "/api/workflows/order-1/signal/go"); };
  const auto update = [&] { return world.ask("POST", "/api/workflows/order-1/update/set"); };
  EXPECT_EQ(signal()->status(), 202);
  EXPECT_EQ(update()->status(), 202);
  EXPECT_EQ(signal()->status(), 202) << "an update is not a signal";
  expect_exceeded(*signal(), "pending_signal_count", 3, 2);
  expect_exceeded(*update(), "pending_update_count", 2, 1);
}

// A run that may not grow can still come to an end.
TEST(Limits, AHistoryThatIsFullTakesOnlyItsEnd) {
  Options options = open_door();
  options.run_limits.history_events = 4;
  World world(options);
  world.register_worker();
  world.start();
  const auto polled = world.poll();  // two events are there
  expect_exceeded(*world.complete(*polled, {timer(), timer(), timer()}), "history_event_count", 5,
                  4);
  ASSERT_EQ(world.complete(*polled, {wait(0), timer()})->status(), 200);
  world.ask("POST", "/api/workflows/order-1/signal/go");
  const auto again = world.poll();
  ASSERT_TRUE(again->has_task());
  EXPECT_EQ(world.complete(*again, {timer()})->text("limit_kind"), "history_event_count");
  EXPECT_EQ(world.complete(*again, {json::object{{"type", "complete_workflow"}}})->status(), 200);
}

TEST(Limits, NamesAndValuesHaveTheirLengths) {
  Options options = open_door();
  options.memo_bytes_max = 20;
  options.operation_name_bytes_max = 4;
  options.search_attribute_key_bytes_max = 3;
  options.search_attribute_value_bytes_max = 5;
  options.search_attributes_max = 1;
  World world(options);
  world.register_worker();
  EXPECT_EQ(world.start("a", {{"memo", json::object{{"a", "twenty bytes and more"}}}})->status(),
            422);
  EXPECT_EQ(world.start("a", {{"search_attributes", {{"long", "v"}}}})->status(), 422);
  EXPECT_EQ(world.start("a", {{"search_attributes", {{"key", "longer"}}}})->status(), 422);
  EXPECT_EQ(world.start("a", {{"search_attributes", {{"key", "value"}}}})->status(), 201);
  const auto polled = world.poll();
  const auto upsert = [](const char* key, const char* value) {
    return json::object{{"type", "upsert_search_attributes"}, {"attributes", {{key, value}}}};
  };
  EXPECT_EQ(world.complete(*polled, {upsert("long", "v")})->status(), 422);
  EXPECT_EQ(world.complete(*polled, {upsert("key", "longer")})->status(), 422);
  EXPECT_EQ(world.complete(*polled, {upsert("key", "other"), wait(0)})->status(), 200);
  for (const char* kind : {"signal", "query", "update"}) {
    EXPECT_EQ(world.ask("POST", absl::StrCat("/api/workflows/a/", kind, "/fiver"))->status(), 422)
        << kind;
  }
  EXPECT_EQ(world.ask("POST", "/api/workflows/a/signal/four")->status(), 202);
  const auto define = [&](const char* name) {
    return world.ask("POST", "/api/search-attributes", {{"name", name}, {"type", "keyword"}});
  };
  EXPECT_EQ(define("long")->status(), 422);
  EXPECT_EQ(define("one")->status(), 201);
  EXPECT_EQ(define("two")->text("reason"), "search_attribute_limit_reached");
}

TEST(Limits, WorkersAreToldWhenToContinueAsNew) {
  Options options = open_door();
  options.continue_as_new_events = 4;
  options.poll_timeout = 7 * kSecond;
  options.history_page_default = 50;
  options.history_page_max = 60;
  World world(options);
  world.register_worker();
  world.start();
  const auto polled = world.poll();
  const auto& budget = polled->task().at("history_budget");
  EXPECT_EQ(budget.at("event_count"), 2);
  EXPECT_EQ(budget.at("continue_as_new_recommended"), false);
  EXPECT_GT(budget.at("approximate_size_bytes").as_int64(), 0);
  world.complete(*polled, {wait(0)});
  world.ask("POST", "/api/workflows/order-1/signal/go");
  EXPECT_EQ(world.poll()->task().at("history_budget").at("continue_as_new_recommended"), true);

  const auto& can = polled->body.at("server_capabilities");
  EXPECT_EQ(can.at("long_poll_timeout"), 7);
  EXPECT_EQ(can.at("history_page_size_default"), 50);
  EXPECT_EQ(can.at("history_page_size_max"), 60);
  const auto info = world.ask("GET", "/api/cluster/info");
  auto told = info->body.at("worker_protocol").at("server_capabilities").as_object();
  EXPECT_EQ(told.erase("worker_sessions"), 1U) << "too long for every answer";
  EXPECT_EQ(json::value(told), can);
}

TEST(Limits, ANamespaceThatDoesNotSayKeepsRunsAsLongAsTheServerSays) {
  Options options = open_door();
  options.retention_days = 9;
  World world(options);
  EXPECT_EQ(world.ask("POST", "/api/namespaces", {{"name", "a"}})->body.at("retention_days"), 9);
  EXPECT_EQ(world.ask("POST", "/api/namespaces", {{"name", "b"}, {"retention_days", 2}})
                ->body.at("retention_days"),
            2);
}

}  // namespace
}  // namespace fairlead::durable::testing
