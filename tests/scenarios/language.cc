#include "scenarios/language.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fairlead::scenarios {

namespace {

constexpr std::string_view kUnkeyed = "unkeyed";

double parse_number(const std::string& word, const std::string& what) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) {
    throw Wrong(absl::StrCat("\"", word, "\" is not ", what));
  }
  return value;
}

bool is_hole(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(),
                                      [](char c) { return (c >= 'A' && c <= 'Z') || c == '.'; });
}

bool is_choice(const std::string& part, const std::string& word) {
  const std::vector<std::string> choices = absl::StrSplit(part, '|');
  return std::find(choices.begin(), choices.end(), word) != choices.end();
}

}  // namespace

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) {
    if (word.starts_with('#')) break;
    const bool has_colon = word.size() > 1 && word.ends_with(':');
    if (has_colon) word.pop_back();
    words.push_back(word);
    if (has_colon) words.emplace_back(":");
  }
  return words;
}

std::vector<Scenario> read_scenarios(const std::string& file, std::string_view text) {
  std::vector<Scenario> scenarios;
  std::istringstream stream{std::string(text)};
  std::string raw;
  for (int number = 1; std::getline(stream, raw); ++number) {
    const std::string line(absl::StripAsciiWhitespace(raw));
    if (line.starts_with("#!")) {
      if (scenarios.empty() || scenarios.back().lines.empty()) {
        throw Wrong(absl::StrCat(file, ":", number, ": a complaint about no line"));
      }
      const std::string complaint = line.substr(2);
      scenarios.back().lines.back().complaint = std::string(absl::StripAsciiWhitespace(complaint));
      continue;
    }
    const auto words = split(line);
    if (words.empty()) continue;
    if (words[0] == "scenario") {
      const std::string rest = line.substr(words[0].size());
      scenarios.push_back({file, number, std::string(absl::StripAsciiWhitespace(rest)), {}});
      continue;
    }
    if (scenarios.empty()) {
      throw Wrong(absl::StrCat(file, ":", number, ": a file begins with \"scenario TITLE\""));
    }
    scenarios.back().lines.push_back({number, line, words, ""});
  }
  return scenarios;
}

int64_t parse_count(const std::string& word) {
  const std::string digits = absl::StrReplaceAll(word, {{",", ""}});  // 100,000
  const double value = parse_number(digits, "a number of tasks");
  if (value < 0 || value > 1e9 || value != static_cast<double>(static_cast<int64_t>(value))) {
    throw Wrong(absl::StrCat("\"", word, "\" is not a number of tasks"));
  }
  return static_cast<int64_t>(value);
}

std::string shown(const std::string& key) { return key.empty() ? std::string(kUnkeyed) : key; }

std::string Arguments::key(const std::string& hole) const {
  return word(hole) == kUnkeyed ? "" : word(hole);
}

int64_t Arguments::count(const std::string& hole) const { return parse_count(word(hole)); }

double Arguments::number(const std::string& hole) const {
  return parse_number(word(hole), "a number");
}

double Arguments::per_second(const std::string& hole) const {
  const std::string& text = word(hole);
  if (!text.ends_with("/s")) throw Wrong(absl::StrCat("\"", text, "\" is no rate, like 12.5/s"));
  return parse_number(text.substr(0, text.size() - 2), "a rate, like 12.5/s");
}

DurationNs Arguments::time(const std::string& hole) const {
  constexpr const char* kWanted = "a time, like 200ms, 10s or 2m";
  const std::string& text = word(hole);
  const auto unit = text.find_first_not_of("0123456789.");
  const double value = parse_number(text.substr(0, unit), kWanted);
  const std::string name = unit == std::string::npos ? "" : text.substr(unit);
  for (const auto& [known, length] :
       {std::pair("ms", kMillisecond), std::pair("s", kSecond), std::pair("m", kMinute)}) {
    if (name == known) return static_cast<DurationNs>(value * static_cast<double>(length));
  }
  throw Wrong(absl::StrCat("\"", text, "\" is not ", kWanted));
}

Pattern::Pattern(std::string_view text)
    : parts_(split(absl::StrReplaceAll(std::string(text), {{"[", " [ "}, {"]", " ] "}}))) {}

bool Pattern::match(const std::vector<std::string>& words, Arguments* arguments) const {
  return match(0, words, 0, arguments);
}

bool Pattern::match(size_t at, const std::vector<std::string>& words, size_t from,
                    Arguments* arguments) const {
  if (at == parts_.size()) return from == words.size();
  const auto& part = parts_[at];
  if (part == "[") {
    // With it, or else without.
    Arguments with = *arguments;
    if (match(at + 1, words, from, &with)) {
      *arguments = with;
      return true;
    }
    const auto close =
        std::find(parts_.begin() + static_cast<std::ptrdiff_t>(at), parts_.end(), "]");
    return match(static_cast<size_t>(close - parts_.begin()) + 1, words, from, arguments);
  }
  if (part == "]") return match(at + 1, words, from, arguments);
  if (part.ends_with("...")) {
    if (from == words.size()) return false;
    arguments->holes_[part.substr(0, part.size() - 3)] = {
        words.begin() + static_cast<std::ptrdiff_t>(from), words.end()};
    return true;
  }
  if (from == words.size()) return false;
  if (is_hole(part)) {
    if (words[from] == ":") return false;
    arguments->holes_[part] = {words[from]};
  } else if (!is_choice(part, words[from])) {
    return false;
  }
  return match(at + 1, words, from + 1, arguments);
}

}  // namespace fairlead::scenarios
