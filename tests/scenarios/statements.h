#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "scenarios/language.h"
#include "scenarios/stage.h"

namespace fairlead::scenarios {

// A sentence of the language: its shape, what it means, and what it does. The table is the whole
// language, and README.md shows it word for word.
struct Statement {
  std::string_view pattern;
  std::string_view meaning;
  std::function<void(Stage&, const Arguments&)> act;
  bool is_expectation() const { return pattern.starts_with("expect"); }
};

std::span<const Statement> statements();
// The statement that a line is. Throws if it is none.
const Statement& find_statement(const std::vector<std::string>& words, Arguments* arguments);

// Things to expect, in expectations.cc.
void expect_order(Stage& stage, const std::vector<std::string>& keys);
void expect_tally(Stage& stage, int64_t starts, const std::vector<std::string>& tally);
void expect_every(Stage& stage, int64_t window, int64_t starts,
                  const std::vector<std::string>& tally);
void expect_within(Stage& stage, const std::string& key, int64_t starts);
void expect_nothing(Stage& stage);
void expect_in_time(Stage& stage, DurationNs time, const std::vector<std::string>& tally);
void expect_at_most(Stage& stage, int64_t starts, const std::optional<std::string>& key,
                    DurationNs time);
void expect_never_above(Stage& stage, const std::optional<std::string>& key, double per_second);
void expect_near_ideal(Stage& stage, double tasks);
void expect_count(int64_t expected, int64_t got, std::string_view what);

}  // namespace fairlead::scenarios
