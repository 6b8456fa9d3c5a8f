#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scenarios/statements.h"

namespace fairlead::scenarios {

namespace {

// "premium x5 basic x3..4": so many of each named key, and none of any other.
struct Range {
  int64_t least = 0;
  int64_t most = 0;
};
using Ranges = std::map<std::string, Range>;

Ranges parse_tally(const std::vector<std::string>& words) {
  Ranges ranges;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size() || !words[i + 1].starts_with('x')) {
      throw Wrong(absl::StrCat("after ", words[i], " comes how many, like x5 or x5..6"));
    }
    const std::string text = words[i + 1].substr(1);
    const auto dots = text.find("..");
    Range range;
    range.least = parse_count(text.substr(0, dots));
    range.most = dots == std::string::npos ? range.least : parse_count(text.substr(dots + 2));
    ranges[words[i] == "unkeyed" ? "" : words[i]] = range;
  }
  return ranges;
}

// As much as a reader can take in.
std::string text_of(std::vector<std::string> parts) {
  constexpr size_t kShown = 20;
  if (parts.empty()) return "nothing";
  const size_t count = parts.size();
  if (count > kShown) parts.resize(kShown);
  return absl::StrCat(absl::StrJoin(parts, " "),
                      count > kShown ? absl::StrCat(" and ", count - kShown, " more") : "");
}

std::string text_of(const Tally& tally) {
  std::vector<std::string> parts;
  for (const auto& [key, count] : tally) {
    if (count > 0) parts.push_back(absl::StrCat(shown(key), " x", count));
  }
  return text_of(std::move(parts));
}

std::vector<std::string> names_of(const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(shown(key));
  return names;
}

bool fits(const Ranges& ranges, const Tally& tally) {
  const bool has_stranger = std::any_of(tally.begin(), tally.end(), [&](const auto& counted) {
    return counted.second > 0 && !ranges.contains(counted.first);
  });
  return !has_stranger && std::all_of(ranges.begin(), ranges.end(), [&](const auto& wanted) {
    const auto found = tally.find(wanted.first);
    const int64_t count = found == tally.end() ? 0 : found->second;
    return wanted.second.least <= count && count <= wanted.second.most;
  });
}

std::vector<std::string> start_many(Stage& stage, int64_t count) {
  std::vector<std::string> keys;
  while (static_cast<int64_t>(keys.size()) < count) {
    const auto started = stage.start();
    if (!started.has_value()) break;
    keys.push_back(*started);
  }
  return keys;
}

Tally count(const std::vector<std::string>& keys) {
  Tally tally;
  for (const auto& key : keys) ++tally[key];
  return tally;
}

}  // namespace

void expect_order(Stage& stage, const std::vector<std::string>& keys) {
  const auto got = names_of(start_many(stage, static_cast<int64_t>(keys.size())));
  if (got != keys) {
    throw Wrong(absl::StrCat("expected ", text_of(keys), ", got ", text_of(got)));
  }
}

void expect_tally(Stage& stage, int64_t starts, const std::vector<std::string>& tally) {
  const auto ranges = parse_tally(tally);
  const auto got = count(start_many(stage, starts));
  if (fits(ranges, got)) return;
  throw Wrong(absl::StrCat("expected ", absl::StrJoin(tally, " "), ", got ", text_of(got)));
}

void expect_every(Stage& stage, int64_t window, int64_t starts,
                  const std::vector<std::string>& tally) {
  const auto ranges = parse_tally(tally);
  std::deque<std::string> last;
  Tally got;
  for (int64_t i = 1; i <= starts; ++i) {
    const auto started = stage.start();
    if (!started.has_value()) {
      throw Wrong(absl::StrCat("expected ", starts, " starts, got ", i - 1));
    }
    last.push_back(*started);
    ++got[*started];
    if (static_cast<int64_t>(last.size()) > window) {
      --got[last.front()];
      last.pop_front();
    }
    if (static_cast<int64_t>(last.size()) == window && !fits(ranges, got)) {
      throw Wrong(absl::StrCat("expected ", absl::StrJoin(tally, " "), ", got ", text_of(got),
                               " in starts ", i - window + 1, " to ", i));
    }
  }
}

void expect_within(Stage& stage, const std::string& key, int64_t starts) {
  std::vector<std::string> got;
  while (static_cast<int64_t>(got.size()) < starts) {
    const auto started = stage.start();
    if (started == key) return;
    if (!started.has_value()) break;
    got.push_back(*started);
  }
  throw Wrong(absl::StrCat("expected ", shown(key), ", got ", text_of(names_of(got))));
}

void expect_nothing(Stage& stage) {
  if (const auto started = stage.start()) {
    throw Wrong(absl::StrCat("expected nothing, got ", shown(*started)));
  }
}

void expect_in_time(Stage& stage, DurationNs time, const std::vector<std::string>& tally) {
  const auto ranges = parse_tally(tally);
  const auto got = stage.run(time);
  if (fits(ranges, got)) return;
  throw Wrong(absl::StrCat("expected ", absl::StrJoin(tally, " "), ", got ", text_of(got)));
}

void expect_at_most(Stage& stage, int64_t starts, const std::optional<std::string>& key,
                    DurationNs time) {
  int64_t got = 0;
  for (const auto& [name, count] : stage.run(time)) {
    if (!key.has_value() || *key == name) got += count;
  }
  if (got > starts) throw Wrong(absl::StrCat("expected at most ", starts, ", got ", got));
}

void expect_never_above(Stage& stage, const std::optional<std::string>& key, double per_second) {
  if (!stage.exceeded(key, per_second)) return;
  throw Wrong(absl::StrCat("expected never more than ", per_second,
                           " a second after a burst of one second, got more"));
}

void expect_near_ideal(Stage& stage, double tasks) {
  const auto [distance, key] = stage.distance_max();
  if (distance <= tasks + 1e-6) return;
  throw Wrong(absl::StrFormat("expected at most %g, got %.2f for %s", tasks, distance, shown(key)));
}

void expect_count(int64_t expected, int64_t got, std::string_view what) {
  if (expected == got) return;
  throw Wrong(absl::StrCat("expected ", expected, " ", std::string(what), ", got ", got));
}

}  // namespace fairlead::scenarios
