#include "simulate/plan.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fairlead::simulate {
namespace {

std::string message(const std::string& text) {
  const auto plan = Plan::parse("plan.toml", text);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(plan.status().message());
}

constexpr const char* kOneKey = "[[keys]]\nname = \"a\"\n";

TEST(Plan, AFileSaysItAll) {
  const auto plan = Plan::parse("plan.toml", R"(
title = "Three tiers"
duration_s = 30
workers = 4
seed = 7
random = true
[queue]
fairness = "off"
basis = "in-flight"
first_turn = "prompt"
transition = "immediate"
limit_per_second = 500
key_limit_per_second = 33.3
running_max = 9
running_max_per_key = 2
[[keys]]
name = "premium"
weight = 5
backlog = 100
service_ms = 200
[[keys]]
name = "tenant"
count = 2
priority = 99
arrivals_per_second = 2.5
arrivals_from_s = 1
arrivals_until_s = 10
limit_per_second = 4
running_max = 1
[[events]]
at_s = 20
fairness = "on"
limit_per_second = inf
[[events]]
at_s = 10
key = "premium"
weight = 9
pause = true
tasks = 10
)");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->title, "Three tiers");
  EXPECT_EQ(plan->duration, 30 * kSecond);
  EXPECT_EQ(plan->workers, 4);
  EXPECT_EQ(plan->seed, 7u);
  EXPECT_TRUE(plan->is_random);
  const auto& rules = plan->rules;
  EXPECT_EQ(rules.fairness(), model::QueueRules::OFF);
  EXPECT_EQ(rules.basis(), model::QueueRules::IN_FLIGHT);
  EXPECT_EQ(rules.first_turn(), model::QueueRules::PROMPT);
  EXPECT_EQ(rules.transition(), model::QueueRules::IMMEDIATE);
  EXPECT_EQ(rules.queue_limit().per_second(), 500);
  EXPECT_EQ(rules.key_limit().per_second(), 33.3);
  EXPECT_EQ(rules.running_max(), 9u);
  EXPECT_EQ(rules.running_max_per_key(), 2u);
  EXPECT_EQ(rules.keys().at("tenant-2").per_second(), 4);
  EXPECT_EQ(rules.keys().at("tenant-1").running_max(), 1u);
  ASSERT_EQ(plan->keys.size(), 2u);
  EXPECT_EQ(plan->keys[0].service, 200 * kMillisecond);
  EXPECT_EQ(plan->keys[1].level, 5u);
  EXPECT_EQ(plan->keys[1].arrivals_until, 10 * kSecond);
  ASSERT_EQ(plan->events.size(), 2u);
  EXPECT_EQ(plan->events[0].at, 10 * kSecond) << "in the order of time";
  EXPECT_EQ(plan->events[0].text(), "weight of premium 9, premium paused, 10 tasks of premium");
  EXPECT_EQ(plan->events[1].text(), "fairness on, queue limit off");
}

TEST(Plan, AMisspeltKeyIsNamedWithItsPlaceAndTheNearestKey) {
  EXPECT_EQ(message("wokers = 3\n"), "plan.toml:1:1: unknown key wokers; did you mean workers?");
  EXPECT_EQ(message("[[keys]]\nname = \"a\"\n  wieght = 3\n"),
            "plan.toml:3:3: unknown key keys.wieght; did you mean weight?");
  EXPECT_EQ(message("[queue]\ncolour = 1\n"), "plan.toml:2:1: unknown key queue.colour");
  EXPECT_EQ(message("[[events]]\nat = 1\n"),
            "plan.toml:2:1: unknown key events.at; did you mean at_s?");
}

TEST(Plan, AValueOutOfPlaceIsRefusedWithWhatIsWanted) {
  EXPECT_EQ(message("workers = 1.5\n"),
            "plan.toml:1:11: workers wants a whole number from 0 to 1000000");
  EXPECT_EQ(message("workers = \"many\"\n"),
            "plan.toml:1:11: workers wants a whole number from 0 to 1000000");
  EXPECT_EQ(message("[[keys]]\nname = \"a\"\nweight = nan\n"),
            "plan.toml:3:10: weight wants a number from 0.001 to 1000");
  EXPECT_EQ(message("[queue]\nfairness = \"maybe\"\n"),
            "plan.toml:2:12: fairness wants one of on, off");
  EXPECT_EQ(message("random = 1\n"), "plan.toml:1:10: random wants true or false");
  EXPECT_EQ(message("title = 1\n"), "plan.toml:1:9: title wants a text");
  EXPECT_EQ(message("keys = 1\n"), "plan.toml:1:8: keys wants tables, each begun by [[keys]]");
  EXPECT_EQ(message("queue = 1\n"), "plan.toml:1:9: queue wants a table, begun by [queue]");
  EXPECT_TRUE(message("workers = \n").starts_with("plan.toml:1:11: "));
}

TEST(Plan, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(message(""), "plan.toml:1:1: nobody sends tasks; add a table [[keys]]");
  EXPECT_EQ(message("[[keys]]\nweight = 2\n"),
            "plan.toml:1:1: keys want a name; \"\" for tasks without a key");
  EXPECT_EQ(message("[[keys]]\nname = \"a-1\"\n[[keys]]\nname = \"a\"\ncount = 2\n"),
            "plan.toml:3:1: two keys are called \"a-1\" at priority 3");
  const std::string one = kOneKey;
  EXPECT_EQ(message(one + "[[events]]\nat_s = 1\n"), "plan.toml:3:1: an event that does nothing");
  EXPECT_EQ(message(one + "[[events]]\npause = true\n"), "plan.toml:3:1: events want at_s, when");
  EXPECT_EQ(message(one + "[[events]]\nat_s = 1\nweight = 2\n"),
            "plan.toml:3:1: a weight or tasks of which key?");
  EXPECT_EQ(message(one + "[[events]]\nat_s = 1\nkey = \"b\"\nweight = 2\n"),
            "plan.toml:3:1: an event of \"b\", and no key is called that; did you mean a?");
  EXPECT_EQ(message("[[keys]]\nname = \"\"\ncount = 2\n"),
            "plan.toml:1:1: tasks without a key are one line; a count wants a name");
  EXPECT_EQ(
      message("duration_s = 100\n[[keys]]\nname = \"a\"\ncount = 2\narrivals_per_second = 1e5\n"),
      "plan.toml:1:1: 2 keys and 20000000 tasks; at most 100000 and 10000000 are simulated");
}

TEST(Plan, OneNameMayHaveTasksOfSeveralPriorities) {
  const auto plan = Plan::parse(
      "plan.toml", "[[keys]]\nname = \"a\"\npriority = 1\n[[keys]]\nname = \"a\"\npriority = 2\n");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->keys[0].level, 1u);
  EXPECT_EQ(plan->keys[1].level, 2u);
}

}  // namespace
}  // namespace fairlead::simulate
