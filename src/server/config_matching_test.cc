#include "server/config_matching.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<Config> load(std::string text) {
  ConfigSources sources;
  sources.file_name = "f.toml";
  sources.file_text = std::move(text);
  return Config::load(sources);
}

std::string refusal(std::string text) {
  const auto config = load(std::move(text));
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(ConfigMatching, AValueWithoutConstraintsIsTheServersOwnSetting) {
  const auto config = load(R"([matching]
enableFairness = false
priorityLevels = 9
maxFairnessKeyWeightOverrides = 1000
)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->queues.settings().order, queue::Order::kFifo);
  EXPECT_EQ(config->queues.settings().levels, 9U);
  EXPECT_TRUE(config->queues.exceptions.empty());
}

TEST(ConfigMatching, OurOwnNamesHaveTheLastWord) {
  const auto config = load("[queues]\nfairness = \"on\"\n[matching]\nenableFairness = false\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->queues.fairness, "on");
}

TEST(ConfigMatching, ConstraintsMakeExceptions) {
  const auto config = load(R"(
[[matching.enableFairness]]
value = true
constraints = { namespace = "prod" }
[[matching.enableFairness]]
value = true
constraints = { namespace = "prod", taskQueueName = "billing", taskType = "Activity" }
[[matching.enableFairness]]
value = false
[[matching.priorityLevels]]
value = 2
constraints = { taskType = 1 }
)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->queues.fairness, "off") << "the value without constraints";
  const auto& exceptions = config->queues.exceptions;
  ASSERT_EQ(exceptions.size(), 3U);
  EXPECT_EQ(exceptions[0].ns, "prod");
  EXPECT_EQ(exceptions[0].order, queue::Order::kFair);
  EXPECT_EQ(exceptions[0].constraints(), 1);
  EXPECT_EQ(exceptions[1].queue, "billing");
  EXPECT_EQ(exceptions[1].kind, model::ACTIVITY_TASK);
  EXPECT_EQ(exceptions[2].kind, model::WORKFLOW_TASK);
  EXPECT_EQ(exceptions[2].levels, 2U);
}

TEST(ConfigMatching, WhatHasNoCounterpartIsRefusedWithAReason) {
  EXPECT_THAT(refusal("[matching]\nuseNewMatcher = false\n"),
              StartsWith("f.toml:2:1: matching.useNewMatcher has no counterpart: priority levels"));
  EXPECT_THAT(refusal("[matching]\nnumTaskqueueReadPartitions = 4\n"), HasSubstr("no partitions"));
  EXPECT_THAT(refusal("[matching]\nenableFairnes = true\n"),
              HasSubstr("did you mean matching.enableFairness?"));
  EXPECT_THAT(refusal("[matching]\nwhatever = 1\n"), HasSubstr("known are enableFairness"));
  EXPECT_THAT(refusal("matching = 1\n"), HasSubstr("unknown key matching"));
}

TEST(ConfigMatching, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(refusal("[matching]\nenableFairness = \"on\"\n"),
              HasSubstr("f.toml:2:18: matching.enableFairness wants true or false"));
  EXPECT_THAT(refusal("[matching]\npriorityLevels = 65\n"), HasSubstr("from 1 to 64"));
  EXPECT_THAT(refusal("[matching]\nmaxFairnessKeyWeightOverrides = 50\n"),
              HasSubstr("is always 1000"));
  EXPECT_THAT(refusal("[[matching.enableFairness]]\nconstraints = { namespace = \"a\" }\n"),
              HasSubstr("wants a value"));
  EXPECT_THAT(refusal("[[matching.enableFairness]]\nvalue = true\nconstraint = 1\n"),
              HasSubstr("neither a value nor a table of constraints"));
  EXPECT_THAT(
      refusal("[[matching.enableFairness]]\nvalue = true\nconstraints = { queue = \"a\" }\n"),
      HasSubstr("queue is no constraint"));
  EXPECT_THAT(
      refusal(
          "[[matching.enableFairness]]\nvalue = true\nconstraints = { taskType = \"Nexus\" }\n"),
      HasSubstr("taskType is not one of"));
}

}  // namespace
}  // namespace fairlead::server
