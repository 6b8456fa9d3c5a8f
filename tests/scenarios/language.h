#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace fairlead::scenarios {

// What a scenario gets wrong: its words or its expectation. Thrown where it is noticed; whoever
// runs the line adds the place.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Line {
  int number = 0;
  std::string text;
  std::vector<std::string> words;
  std::string complaint;  // of a line `#! …` after it: what has to be wrong with this one
};

// A story with a fresh queue of its own.
struct Scenario {
  std::string file;
  int number = 0;  // of its first line
  std::string title;
  std::vector<Line> lines;
};

// Words of a line; a colon at the end of a word is a word, a comment is none.
std::vector<std::string> split(std::string_view text);
std::vector<Scenario> read_scenarios(const std::string& file, std::string_view text);

// What stands in the holes of a pattern.
class Arguments {
 public:
  bool has(const std::string& hole) const { return holes_.contains(hole); }
  const std::string& word(const std::string& hole) const { return holes_.at(hole).front(); }
  const std::vector<std::string>& words(const std::string& hole) const { return holes_.at(hole); }
  // Empty for the word `unkeyed`: tasks without a key are a group like any other.
  std::string key(const std::string& hole) const;
  int64_t count(const std::string& hole) const;
  double number(const std::string& hole) const;
  double per_second(const std::string& hole) const;  // "33.3/s"
  DurationNs time(const std::string& hole) const;    // "200ms", "10s", "2m"

 private:
  friend class Pattern;
  std::map<std::string, std::vector<std::string>> holes_;
};

// The shape of a statement. Words in capitals are holes, [ ] may be left out, a|b is a choice, and
// a hole with three dots takes all that is left.
class Pattern {
 public:
  explicit Pattern(std::string_view text);
  bool match(const std::vector<std::string>& words, Arguments* arguments) const;

 private:
  bool match(size_t at, const std::vector<std::string>& words, size_t from,
             Arguments* arguments) const;
  std::vector<std::string> parts_;
};

int64_t parse_count(const std::string& word);
// The name of a key for people.
std::string shown(const std::string& key);

}  // namespace fairlead::scenarios
