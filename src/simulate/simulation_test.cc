#include "simulate/simulation.h"

#include <gtest/gtest.h>

#include "simulate/plot.h"

namespace fairlead::simulate {
namespace {

Plan plan_of(const std::string& text) {
  auto plan = Plan::parse("plan.toml", text);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

Result run(const std::string& text) { return simulate(plan_of(text)); }

constexpr const char* kTiers = R"(
duration_s = 100
workers = 10
[[keys]]
name = "premium"
weight = 5
backlog = 10000
[[keys]]
name = "basic"
weight = 3
backlog = 10000
[[keys]]
name = "free"
weight = 2
backlog = 10000
)";

TEST(Simulation, FiveThreeTwoIsHalfThreeTenthsAndAFifth) {
  const auto result = run(kTiers);
  EXPECT_EQ(result.dispatched, 1000);
  EXPECT_EQ(result.keys[0].dispatched, 500);
  EXPECT_EQ(result.keys[1].dispatched, 300);
  EXPECT_EQ(result.keys[2].dispatched, 200);
  EXPECT_NEAR(result.keys[0].due, 500, 1e-6);
  for (const auto& key : result.keys) EXPECT_LE(key.distance_max, 1 + 1e-6) << key.key;
  EXPECT_NEAR(result.busy, 1, 1e-9);
}

// More than a queue keeps of a line in memory.
TEST(Simulation, ALongLineComesToItsEnd) {
  const auto result = run(R"(
duration_s = 700
workers = 10
[[keys]]
name = "big"
backlog = 5000
)");
  EXPECT_EQ(result.keys[0].dispatched, 5000);
}

// The ideal is the fair one whatever the order: it shows what first come, first served costs.
TEST(Simulation, WithoutFairnessTheFirstInLineTakesItAll) {
  const auto result = run(std::string("queue.fairness = \"off\"\n") + kTiers);
  EXPECT_EQ(result.keys[0].dispatched, 1000);
  EXPECT_NEAR(result.keys[0].distance_max, 500, 1);
  EXPECT_NEAR(result.keys[2].distance_max, 200, 1);
  EXPECT_EQ(result.keys[2].wait_max, 100 * kSecond) << "and it still waits";
}

TEST(Simulation, WaitsAndWorkAreWhatOneCountsByHand) {
  const auto result = run(R"(
duration_s = 10
workers = 1
[[keys]]
name = "a"
backlog = 2
service_ms = 1500
[[keys]]
name = "b"
arrivals_per_second = 1
arrivals_from_s = 4
arrivals_until_s = 6
service_ms = 1000
)");
  const auto& a = result.keys[0];
  EXPECT_EQ(a.arrived, 2);
  EXPECT_EQ(a.dispatched, 2);
  EXPECT_EQ(a.wait_max, 1500 * kMillisecond);
  EXPECT_EQ(a.wait_mean(), 750.0 * kMillisecond);
  const auto& b = result.keys[1];
  EXPECT_EQ(b.arrived, 2) << "at 4 s and at 5 s";
  EXPECT_EQ(b.wait_max, 0);
  EXPECT_NEAR(result.busy, 0.5, 1e-9);
}

TEST(Simulation, AWeightChangedMeanwhileActsOnWhatWaits) {
  const auto result = run(R"(
duration_s = 200
workers = 1
[[keys]]
name = "a"
backlog = 1000
[[keys]]
name = "b"
backlog = 1000
[[events]]
at_s = 100
key = "a"
weight = 9
)");
  EXPECT_NEAR(static_cast<double>(result.keys[0].dispatched), 50 + 90, 1);
  EXPECT_NEAR(static_cast<double>(result.keys[1].dispatched), 50 + 10, 1);
  EXPECT_EQ(result.keys[0].weight, 9);
  EXPECT_LE(result.keys[0].distance_max, 1.01);
}

TEST(Simulation, WhoIsPausedThrottledOrCappedDelaysNobody) {
  const auto result = run(R"(
duration_s = 100
workers = 2000
[[keys]]
name = "paused"
backlog = 1000
[[keys]]
name = "throttled"
backlog = 1000
limit_per_second = 2
[[keys]]
name = "serial"
backlog = 1000
running_max = 1
[[keys]]
name = "free"
arrivals_per_second = 10
[[events]]
at_s = 0
key = "paused"
pause = true
[[events]]
at_s = 90
key = "paused"
pause = false
)");
  EXPECT_EQ(result.keys[0].dispatched, 1000);
  EXPECT_EQ(result.keys[0].wait_max, 90 * kSecond);
  EXPECT_NEAR(static_cast<double>(result.keys[1].dispatched), 202, 1);
  EXPECT_EQ(result.keys[2].dispatched, 100);
  EXPECT_EQ(result.keys[3].dispatched, 1000);
  EXPECT_EQ(result.keys[3].wait_max, 0);
}

TEST(Simulation, PrioritiesAreStrict) {
  const auto result = run(R"(
duration_s = 10
workers = 1
[[keys]]
name = "a"
priority = 2
backlog = 100
[[keys]]
name = "b"
priority = 1
backlog = 4
[[events]]
at_s = 6.5
key = "b"
tasks = 2
)");
  EXPECT_EQ(result.keys[1].dispatched, 6);
  EXPECT_EQ(result.keys[0].dispatched, 4);
}

TEST(Simulation, ManyKeysAlikeAreSpreadOut) {
  const auto result = run(R"(
duration_s = 10
workers = 1000
[[keys]]
name = "t"
count = 100
arrivals_per_second = 1
)");
  ASSERT_EQ(result.keys.size(), 100u);
  EXPECT_EQ(result.keys[99].key, "t-100");
  EXPECT_EQ(result.dispatched, 1000);
  ASSERT_EQ(result.samples.size(), 241u);
  EXPECT_NEAR(static_cast<double>(result.samples[120].dispatched[0]), 500, 1);
  EXPECT_EQ(result.samples[240].at, 10 * kSecond);
}

TEST(Simulation, ASeedDecidesEverythingThatIsLeftToChance) {
  const std::string text = R"(
random = true
duration_s = 60
workers = 3
[[keys]]
name = "a"
arrivals_per_second = 2
[[keys]]
name = "b"
arrivals_per_second = 2
)";
  auto plan = plan_of(text);
  const auto first = simulate(plan);
  const auto again = simulate(plan);
  EXPECT_EQ(plot(plan, first), plot(plan, again));
  plan.seed = 2;
  EXPECT_NE(plot(plan, first), plot(plan, simulate(plan)));
  EXPECT_NEAR(static_cast<double>(first.keys[0].arrived), 120, 40);
}

TEST(Simulation, LimitsAndWorkersMayChangeMeanwhile) {
  const auto result = run(R"(
duration_s = 30
workers = 1000
queue.limit_per_second = 10
[[keys]]
name = "a"
backlog = 100000
[[events]]
at_s = 10
limit_per_second = 0
[[events]]
at_s = 20
limit_per_second = inf
workers = 1
)");
  // A second's worth ahead, ten seconds, nothing for ten seconds; then one worker, when those who
  // still work are done.
  EXPECT_NEAR(static_cast<double>(result.dispatched), 110 + 10, 1);
}

// A rate may be so low that the gap between two tasks fits no integer.
TEST(Simulation, AVeryLowRateIsNoTaskOrOne) {
  for (const char* random : {"", "random = true\n"}) {
    const auto result = run(std::string(random) + R"(
duration_s = 10
[[keys]]
name = "t"
count = 3
arrivals_per_second = 1e-300
)");
    EXPECT_LE(result.dispatched, 1);
  }
}

// What holds a key holds it at each of its levels, and the ideal has to know.
TEST(Simulation, AThrottledKeyOfTwoLevelsIsHeldAtBoth) {
  const auto result = run(R"(
duration_s = 100
workers = 1000
[[keys]]
name = "a"
priority = 1
backlog = 50
limit_per_second = 1
[[keys]]
name = "a"
priority = 2
backlog = 1000
limit_per_second = 1
[[keys]]
name = "b"
priority = 2
arrivals_per_second = 5
)");
  EXPECT_EQ(result.keys[0].dispatched, 50);
  EXPECT_NEAR(static_cast<double>(result.keys[1].dispatched), 52, 1);
  EXPECT_EQ(result.keys[2].dispatched, 500);
  EXPECT_LE(result.keys[1].distance_max, 1.01);
  EXPECT_LE(result.keys[2].distance_max, 1.01);
}

TEST(Plot, NamesEveryGroupAndEscapesWhatPeopleWrite) {
  const auto plan = plan_of(R"(
title = "A < B & \"C\"\u0007"
duration_s = 10
workers = 1
[[keys]]
name = "<b>"
backlog = 5
[[keys]]
name = ""
backlog = 5
[[keys]]
name = "t"
count = 3
backlog = 1
[[events]]
at_s = 5
workers = 2
)");
  const auto picture = plot(plan, simulate(plan));
  for (const char* part : {"A &lt; B &amp; &quot;C&quot;", ">&lt;b&gt;<", ">(no key)<",
                           ">t (3 keys)<", ">2 workers<", ">seconds<", ">ideal share<"}) {
    EXPECT_NE(picture.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  EXPECT_EQ(picture.find('\a'), std::string::npos) << "XML cannot hold it";
  EXPECT_TRUE(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
}

TEST(Plot, NothingThatHappensIsAPicture) {
  const auto plan = plan_of("duration_s = 1\nworkers = 0\n[[keys]]\nname = \"a\"\n");
  const auto picture = plot(plan, simulate(plan));
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  EXPECT_EQ(picture.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::simulate
