// What workers declare that their workflows take.

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

json::object parameter(const char* name, const char* type, bool required = true) {
  return {{"name", name},      {"position", 0},       {"required", required},
          {"variadic", false}, {"default", nullptr},  {"default_available", !required},
          {"type", type},      {"allows_null", false}};
}

json::object contract(const char* signal = "approve") {
  const json::object takes{
      {"name", signal},
      {"parameters", {parameter("who", "string"), parameter("times", "int|null", false)}}};
  return {{"signals", {signal}},
          {"signal_contracts", {takes}},
          {"queries", {"status"}},
          {"query_contracts", {json::object{{"name", "status"}, {"parameters", json::array{}}}}},
          {"updates", {"rename"}},
          {"update_contracts",
           {json::object{{"name", "rename"}, {"parameters", {parameter("to", "string")}}}}},
          {"update_validators", json::array{}}};
}

void join(World& world, const char* id, json::object takes) {
  const auto answer = world.ask("POST", "/api/worker/register",
                                {{"worker_id", id},
                                 {"task_queue", "q"},
                                 {"runtime", "python"},
                                 {"supported_workflow_types", json::array{"greeter"}},
                                 {"capabilities", json::array{"query_tasks"}},
                                 {"workflow_command_contracts", {{"greeter", std::move(takes)}}}});
  ASSERT_EQ(answer->status(), 201);
}

AnswerPtr tell(World& world, const std::string& what, json::array input = {},
               const std::string& workflow = "order-1") {
  json::object body;
  if (!input.empty()) body["input"] = std::move(input);
  return world.ask("POST", "/api/workflows/" + workflow + "/" + what, std::move(body));
}

TEST(Contracts, WhatNobodyDeclaredIsUnknown) {
  World world(open_door());
  join(world, "w1", contract());
  const std::string run = world.start()->text("run_id");
  const std::vector<std::pair<const char*, const char*>> unknown = {
      {"signal/stop", "unknown_signal"},
      {"query/total", "rejected_unknown_query"},
      {"update/erase", "unknown_update"}};
  for (const auto& [what, reason] : unknown) {
    const auto answer = tell(world, what);
    EXPECT_EQ(answer->status(), 404) << what;
    EXPECT_EQ(answer->text("reason"), reason);
    EXPECT_EQ(tell(world, std::string("runs/") + run + "/" + what)->text("reason"), reason);
  }
  EXPECT_EQ(world.event_types("order-1", run).size(), 2U) << "a refusal leaves no trace";
  EXPECT_EQ(tell(world, "signal/approve", {"Ada"})->status(), 202);
  EXPECT_EQ(tell(world, "update/rename", {"b"})->status(), 202);
}

TEST(Contracts, ArgumentsAreCountedAndOfTheirTypes) {
  World world(open_door());
  join(world, "w1", contract());
  world.start();
  const auto signal = [&](json::array input) {
    return tell(world, "signal/approve", std::move(input));
  };
  EXPECT_EQ(signal({})->text("reason"), "invalid_signal_arguments") << "one is required";
  EXPECT_EQ(signal({7})->status(), 422) << "a number is no text";
  EXPECT_EQ(signal({"Ada", "twice"})->status(), 422);
  EXPECT_EQ(signal({"Ada", 2, 3})->status(), 422) << "two are taken";
  EXPECT_EQ(signal({"Ada", 2})->status(), 202);
  EXPECT_EQ(signal({"Ada", nullptr})->status(), 202);
  const auto update = tell(world, "update/rename", {1});
  EXPECT_EQ(update->text("reason"), "invalid_update_arguments");
  EXPECT_TRUE(update->body.at("validation_errors").as_object().contains("input"));
  EXPECT_EQ(tell(world, "query/status", {1})->text("reason"), "invalid_query_arguments");
}

// The code that a run began with decides, not the one that came later; a run that began when nobody
// had declared anything takes everything.
TEST(Contracts, TheyHoldFromTheStartOfTheRun) {
  World world(open_door());
  world.register_worker("early");
  world.start("free");
  join(world, "w1", contract());
  world.start("old");
  world.advance(kSecond);
  join(world, "w2", contract("permit"));
  world.start("new");
  EXPECT_EQ(tell(world, "signal/anything", {}, "free")->status(), 202);
  EXPECT_EQ(tell(world, "signal/approve", {"Ada"}, "old")->status(), 202);
  EXPECT_EQ(tell(world, "signal/approve", {"Ada"}, "new")->status(), 404);
  EXPECT_EQ(tell(world, "signal/permit", {"Ada"}, "new")->status(), 202);
  world.restart();
  EXPECT_EQ(tell(world, "signal/permit", {"Ada"}, "old")->status(), 404);
  EXPECT_EQ(tell(world, "signal/permit", {"Ada"}, "new")->status(), 202);
  // A worker that is not heard of says nothing about runs that begin now.
  world.advance(2 * kMinute);
  world.start("late");
  EXPECT_EQ(tell(world, "signal/anything", {}, "late")->status(), 202);
}

TEST(Contracts, LaterRunsAndChildrenHaveTheirs) {
  World world(open_door());
  join(world, "w1", contract());
  world.start();
  world.turn({json::object{{"type", "start_child_workflow"},
                           {"workflow_type", "greeter"},
                           {"queue", "q"},
                           {"arguments", payload(json::array{})}},
              json::object{{"type", "continue_as_new"}, {"arguments", payload(json::array{})}}});
  EXPECT_EQ(tell(world, "signal/stop")->text("reason"), "unknown_signal");
  const auto listed = world.ask("GET", "/api/workflows");
  int children = 0;
  for (const auto& each : listed->body.at("workflows").as_array()) {
    const std::string id = text_of(each.as_object(), "workflow_id");
    if (id == "order-1") continue;
    ++children;
    EXPECT_EQ(tell(world, "signal/stop", {}, id)->text("reason"), "unknown_signal");
  }
  EXPECT_EQ(children, 1);
}

}  // namespace
}  // namespace fairlead::durable::testing
