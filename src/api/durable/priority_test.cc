#include "api/durable/priority.h"

#include <cstdlib>

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

json::object asked(const char* key, double weight) {
  return {{"priority", {{"fairness_key", key}, {"fairness_weight", weight}}}};
}

json::object schedule(const char* type, json::value priority = nullptr) {
  return {{"type", "schedule_activity"},
          {"activity_type", type},
          {"queue", "q"},
          {"priority", std::move(priority)}};
}

const json::object& priority_of(const json::object& record) {
  return record.at("priority").as_object();
}

// Three tenants share a queue 5 to 3 to 2 and all have work waiting: after each dispatch every one
// of them has had its share, give or take a task.
TEST(DoorPriority, TenantsAreServedByTheirWeights) {
  World world(open_door());
  world.register_worker();
  const std::vector<std::pair<std::string, int>> kTenants = {{"a", 5}, {"b", 3}, {"c", 2}};
  for (const auto& [key, weight] : kTenants) {
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(world.start(key + "-" + std::to_string(i), asked(key.c_str(), weight))->status(),
                201);
    }
  }
  std::map<char, int> served;
  for (int dispatched = 1; dispatched <= 60; ++dispatched) {
    const auto polled = world.poll();
    ASSERT_TRUE(polled->has_task());
    ++served[text_of(polled->task(), "workflow_id")[0]];
    for (const auto& [key, weight] : kTenants) {
      ASSERT_LE(std::abs(10 * served[key[0]] - weight * dispatched), 10)
          << key << " after " << dispatched;
    }
  }
  EXPECT_EQ(served['a'], 30);
  EXPECT_EQ(served['b'], 18);
  EXPECT_EQ(served['c'], 12);
}

TEST(DoorPriority, ASmallerKeyIsServedFirst) {
  World world(open_door());
  world.register_worker();
  world.start("last", {{"priority", {{"priority_key", 5}}}});
  world.start("middle");
  world.start("first", {{"priority", {{"priority_key", 1}}}});
  std::vector<std::string> order;
  for (int i = 0; i < 3; ++i) order.push_back(text_of(world.poll()->task(), "workflow_id"));
  EXPECT_THAT(order, ElementsAre("first", "middle", "last"));
}

TEST(DoorPriority, DescribeShowsWhatWasAskedFor) {
  World world(open_door());
  world.start("plain");
  world.start(
      "asked",
      {{"priority", {{"priority_key", 2}, {"fairness_key", "acme"}, {"fairness_weight", 0.1}}}});
  // How newer servers of the API take it.
  world.start("flat", {{"priority", 70}, {"fairness_key", "acme"}, {"fairness_weight", 3}});
  const auto shown = [&](const char* id) {
    return json::serialize(
        priority_of(world.ask("GET", std::string("/api/workflows/") + id)->body));
  };
  EXPECT_EQ(shown("plain"), R"({"priority_key":null,"fairness_key":null,"fairness_weight":null})");
  EXPECT_EQ(shown("asked"), R"({"priority_key":2,"fairness_key":"acme","fairness_weight":1E-1})");
  EXPECT_EQ(shown("flat"), R"({"priority_key":5,"fairness_key":"acme","fairness_weight":3E0})");
}

TEST(DoorPriority, ActivitiesInheritFieldByField) {
  World world(open_door());
  world.register_worker();
  world.start(
      "order-1",
      {{"priority", {{"priority_key", 4}, {"fairness_key", "acme"}, {"fairness_weight", 2}}}});
  world.turn({schedule("heir"), schedule("own", {{"priority_key", 1}}),
              schedule("guest", {{"fairness_key", "bolt"}, {"fairness_weight", 7}})});
  std::map<std::string, std::string> seen;
  std::vector<std::string> order;
  for (int i = 0; i < 3; ++i) {
    const auto polled = world.poll("activity");
    ASSERT_TRUE(polled->has_task());
    order.push_back(text_of(polled->task(), "activity_type"));
    seen[order.back()] = json::serialize(priority_of(polled->task()));
  }
  EXPECT_EQ(order[0], "own") << "the others wait in level 4";
  EXPECT_EQ(seen["heir"], R"({"priority_key":4,"fairness_key":"acme","fairness_weight":2E0})");
  EXPECT_EQ(seen["own"], R"({"priority_key":1,"fairness_key":"acme","fairness_weight":2E0})");
  EXPECT_EQ(seen["guest"], R"({"priority_key":4,"fairness_key":"bolt","fairness_weight":7E0})");
}

TEST(DoorPriority, ChildrenAndLaterRunsInherit) {
  World world(open_door());
  world.register_worker();
  world.start("order-1", {{"priority", {{"priority_key", 4}, {"fairness_key", "acme"}}}});
  world.turn({{{"type", "start_child_workflow"},
               {"workflow_type", "greeter"},
               {"queue", "q"},
               {"priority", {{"priority_key", 1}}}},
              {{"type", "continue_as_new"}, {"arguments", payload(json::array{})}}});
  const auto child = world.poll();
  ASSERT_TRUE(child->has_task());
  const auto about_child =
      world.ask("GET", "/api/workflows/" + text_of(child->task(), "workflow_id"));
  EXPECT_EQ(json::serialize(priority_of(about_child->body)),
            R"({"priority_key":1,"fairness_key":"acme","fairness_weight":null})");
  const auto next = world.ask("GET", "/api/workflows/order-1");
  EXPECT_EQ(next->body.at("run_number").to_number<int>(), 2);
  EXPECT_EQ(json::serialize(priority_of(next->body)),
            R"({"priority_key":4,"fairness_key":"acme","fairness_weight":null})");
}

TEST(DoorPriority, WhatCannotBeIsRefusedByField) {
  World world(open_door());
  struct Case {
    json::value priority;
    const char* field;
  };
  const Case kCases[] = {
      {"high", "priority"},
      {json::array{1}, "priority"},
      {1.5, "priority"},
      {{{"priority_key", 0}}, "priority.priority_key"},
      {{{"priority_key", 6}}, "priority.priority_key"},
      {{{"priority_key", "first"}}, "priority.priority_key"},
      {{{"fairness_key", 7}}, "priority.fairness_key"},
      {{{"fairness_key", std::string(65, 'x')}}, "priority.fairness_key"},
      {{{"fairness_weight", 0}}, "priority.fairness_weight"},
      {{{"fairness_weight", -1}}, "priority.fairness_weight"},
      {{{"fairness_weight", 1e300}}, "priority.fairness_weight"},
      {{{"fairness_weight", 1e-300}}, "priority.fairness_weight"},
      {{{"fairness_weight", "heavy"}}, "priority.fairness_weight"},
  };
  world.register_worker();
  world.start("open");
  const auto polled = world.poll();
  for (const auto& each : kCases) {
    const auto answer = world.start("order-1", {{"priority", each.priority}});
    EXPECT_EQ(answer->status(), 422) << json::serialize(each.priority);
    EXPECT_TRUE(answer->body.at("errors").as_object().contains(each.field))
        << answer->response->body;
    const auto refused = world.complete(*polled, {schedule("greet", each.priority)});
    EXPECT_EQ(refused->status(), 422);
    EXPECT_TRUE(
        refused->body.at("errors").as_object().contains(std::string("commands.0.") + each.field))
        << refused->response->body;
  }
  EXPECT_EQ(world.start("order-1")->status(), 201) << "nothing of the refused was begun";
  EXPECT_THAT(world.start("order-2", {{"fairness_weight", -2}})->text("message"),
              HasSubstr("above 0"));
}

}  // namespace
}  // namespace fairlead::durable::testing
