#include "api/temporal/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace fairlead::api {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

AttributeType type_of(std::string_view name) {
  if (name == "Queue" || name == "Host" || name == "Missing") return AttributeType::kKeyword;
  if (name == "Tags") return AttributeType::kKeywordList;
  if (name == "Count") return AttributeType::kInt;
  if (name == "Share") return AttributeType::kDouble;
  if (name == "IsOpen") return AttributeType::kBool;
  if (name == "StartTime") return AttributeType::kTime;
  return AttributeType::kNone;
}

AttributeValue value_of(std::string_view name) {
  if (name == "Queue") return "orders";
  if (name == "Host") return "it's \"here\"";
  if (name == "Tags") return std::vector<std::string>{"a", "b"};
  if (name == "Count") return int64_t{7};
  if (name == "Share") return 0.5;
  if (name == "IsOpen") return true;
  if (name == "StartTime") return int64_t{1'700'000'000'000'000'000};  // 2023-11-14T22:13:20Z
  return {};
}

bool matches(std::string_view text) {
  const auto filter = Filter::parse(text, type_of);
  EXPECT_TRUE(filter.ok()) << text << ": " << filter.status();
  return filter.ok() && filter->matches(value_of);
}

std::string refusal(std::string_view text) {
  const auto filter = Filter::parse(text, type_of);
  EXPECT_EQ(filter.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(filter.status().message());
}

TEST(Filter, NothingAskedLetsAllPass) {
  EXPECT_TRUE(matches(""));
  EXPECT_TRUE(matches("  \n"));
}

TEST(Filter, ComparesByType) {
  EXPECT_TRUE(matches("Queue = 'orders'"));
  EXPECT_TRUE(matches("Queue=\"orders\""));
  EXPECT_TRUE(matches("`Queue` = 'orders'"));
  EXPECT_FALSE(matches("Queue = 'order'"));
  EXPECT_TRUE(matches("Queue != 'order'"));
  EXPECT_TRUE(matches("Queue <> 'order'"));
  EXPECT_TRUE(matches("Queue > 'order'"));
  EXPECT_TRUE(matches(R"(Host = 'it\'s "here"')"));
  EXPECT_TRUE(matches("Count = 7 and Count >= 7 and Count <= 7 and not Count < 7 and Count > -3"));
  EXPECT_TRUE(matches("Share < 1 AND Share >= 5e-1"));
  EXPECT_TRUE(matches("IsOpen = true AND IsOpen != FALSE"));
  EXPECT_TRUE(matches("StartTime > '2023-11-14T00:00:00Z'"));
  EXPECT_TRUE(matches("StartTime = '2023-11-14T23:13:20+01:00'"));
  EXPECT_TRUE(matches("StartTime = 1700000000000000000"));
}

TEST(Filter, AListContains) {
  EXPECT_TRUE(matches("Tags = 'a' AND Tags = 'b' AND Tags != 'c'"));
  EXPECT_FALSE(matches("Tags != 'a'"));
  EXPECT_TRUE(matches("Tags IN ('c', 'b')"));
}

TEST(Filter, KnowsRangesPrefixesAndSets) {
  EXPECT_TRUE(matches("Count BETWEEN 7 AND 9"));
  EXPECT_TRUE(matches("Count NOT BETWEEN 8 AND 9"));
  EXPECT_TRUE(matches("Queue IN ('mails', 'orders')"));
  EXPECT_FALSE(matches("Queue NOT IN ('mails', 'orders')"));
  EXPECT_TRUE(matches("Queue STARTS_WITH 'ord'"));
  EXPECT_TRUE(matches("Queue NOT STARTS_WITH 'mail'"));
}

TEST(Filter, WhatIsNotThereIsNeitherTrueNorFalse) {
  EXPECT_TRUE(matches("Missing IS NULL"));
  EXPECT_FALSE(matches("Missing IS NOT NULL"));
  EXPECT_TRUE(matches("Queue IS NOT NULL"));
  EXPECT_FALSE(matches("Missing = 'a'"));
  EXPECT_FALSE(matches("Missing != 'a'"));
  EXPECT_FALSE(matches("NOT Missing = 'a'"));
  EXPECT_TRUE(matches("Missing = 'a' OR Queue = 'orders'"));
  EXPECT_FALSE(matches("Missing = 'a' AND Queue = 'orders'"));
  EXPECT_FALSE(matches("NOT (Missing = 'a' AND Queue = 'orders')"));
  EXPECT_TRUE(matches("NOT (Missing = 'a' AND Queue = 'mails')"));
}

TEST(Filter, AndBindsTighterThanOr) {
  EXPECT_TRUE(matches("Queue = 'orders' OR Queue = 'x' AND Count = 0"));
  EXPECT_FALSE(matches("(Queue = 'orders' OR Queue = 'x') AND Count = 0"));
  EXPECT_TRUE(matches("NOT Queue = 'x' AND Count = 7"));
}

TEST(Filter, SaysWhatIsWrong) {
  EXPECT_EQ(refusal("Color = 'red'"), "invalid query: invalid search attribute: Color");
  EXPECT_THAT(refusal("Queue = orders"), HasSubstr("text wants quotes"));
  EXPECT_THAT(refusal("Queue = 7"), HasSubstr("'7' is no value of Queue"));
  EXPECT_THAT(refusal("Count = '7'"), HasSubstr("no value of Count"));
  EXPECT_THAT(refusal("StartTime > '2023-11-14'"), HasSubstr("no value of StartTime"));
  for (const char* text :
       {"Queue", "Queue =", "= 'a'", "Queue = 'a", "Queue = 'a' AND", "Queue = 'a' ORDER BY Count",
        "Queue LIKE 'a'", "(Queue = 'a'", "Queue = 'a')", "Queue IN ()", "Queue IN ('a'",
        "Count BETWEEN 1", "Count STARTS_WITH '1'", "Tags > 'a'", "Queue IS 'a'", "Queue NOT = 'a'",
        "Queue = 'a'; DROP", "'a' = 'a'", "Count = 99999999999999999999"}) {
    EXPECT_THAT(refusal(text), StartsWith("invalid query: ")) << text;
  }
  EXPECT_THAT(refusal(std::string(1000, '(')), HasSubstr("inside each other"));
}

// Whatever comes is answered or refused.
TEST(Filter, SurvivesNonsense) {
  const std::vector<std::string> words = {"Queue", "Count",   "AND",  "OR",   "NOT", "(",    ")",
                                          "=",     "!=",      "<",    "'a'",  "7",   "IN",   ",",
                                          "IS",    "NULL",    "'",    "\\",   "`",   "true", "-",
                                          "1e",    "BETWEEN", "\xff", "Tags", ">="};
  Random random(1);
  int valid = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (uint64_t left = random.below(12); left > 0; --left) {
      text += words[random.below(words.size())];
      if (random.chance(0.8)) text += ' ';
    }
    const auto filter = Filter::parse(text, type_of);
    if (!filter.ok()) continue;
    filter->matches(value_of);
    ++valid;
  }
  EXPECT_GT(valid, 100);
}

}  // namespace
}  // namespace fairlead::api
