#include "admission/fields.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/spelling.h"

namespace fairlead::admission {

namespace {

constexpr std::string_view kSpanFields[] = {"dispatch_window", "dispatch_window_per_namespace",
                                            "dispatch_window_per_budget_group"};
constexpr std::string_view kAlias = "max_active_leases";
constexpr std::string_view kGroup = "dispatch_budget_group";
constexpr std::string_view kGroupAlias = "budget_group";

std::optional<Budget> budget_of_max(std::string_view name) {
  for (const Budget budget : kAllBudgets) {
    if (field_of(budget) == name) return budget;
  }
  return std::nullopt;
}

std::optional<Budget> budget_of_span(std::string_view name) {
  for (size_t i = 0; i < std::size(kSpanFields); ++i) {
    if (kSpanFields[i] == name) return kAllBudgets[at(Budget::kQueueRate) + i];
  }
  return std::nullopt;
}

bool is_null(const Written& value) { return std::holds_alternative<std::monostate>(value); }

std::string text_of(const Written& value) {
  if (const auto* number = std::get_if<double>(&value)) return absl::StrCat(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return absl::StrCat("\"", *text, "\"");
  if (const auto* unfit = std::get_if<Unfit>(&value)) return unfit->what;
  return "null";
}

absl::Status wants(const Written& value, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(text_of(value), " is not ", std::string(what)));
}

absl::StatusOr<Span> read_span(const Written& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (*text == "fixed") return Span::kFixed;
    if (*text == "sliding") return Span::kSliding;
  }
  return wants(value, "one of \"fixed\", \"sliding\"");
}

absl::StatusOr<std::string> read_group(const Written& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return wants(value, "the name of a budget group");
  return std::string(absl::StripAsciiWhitespace(*text));
}

template <typename Value, typename Read>
absl::Status say(const Written& value, Read read, Said<Value>* said) {
  if (is_null(value)) {
    said->emplace(std::nullopt);
    return absl::OkStatus();
  }
  auto result = read(value);
  if (!result.ok()) return result.status();
  said->emplace(*std::move(result));
  return absl::OkStatus();
}

std::vector<std::string_view> override_fields() {
  std::vector<std::string_view> names{kAlias, kGroup, kGroupAlias};
  for (const Budget budget : kAllBudgets) names.push_back(field_of(budget));
  names.insert(names.end(), std::begin(kSpanFields), std::end(kSpanFields));
  return names;
}

// A budget group is a choice of some queues; it has no default.
std::vector<std::string_view> default_fields() {
  std::vector<std::string_view> names;
  for (const Budget budget : kAllBudgets) {
    if (budget != Budget::kGroupRate) names.push_back(field_of(budget));
  }
  names.push_back(kSpanFields[0]);
  names.push_back(kSpanFields[1]);
  return names;
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

absl::StatusOr<int64_t> read_cap(const Written& value) {
  constexpr std::string_view kWanted = "a number; 0 is no cap";
  double number = 0;
  if (const auto* text = std::get_if<std::string>(&value)) {
    const auto stripped = absl::StripAsciiWhitespace(*text);
    if (stripped.empty()) return 0;
    if (!absl::SimpleAtod(stripped, &number)) return wants(value, kWanted);
  } else if (const auto* plain = std::get_if<double>(&value)) {
    number = *plain;
  } else {
    return wants(value, kWanted);
  }
  if (!std::isfinite(number)) return wants(value, kWanted);
  if (number > static_cast<double>(kCapMax)) {
    return absl::InvalidArgumentError(absl::StrCat(text_of(value), " is more than ", kCapMax,
                                                   "; leave the cap out, or say 0, for none"));
  }
  return number < 1 ? 0 : static_cast<int64_t>(number);
}

absl::Status set_field(std::string_view name, const Written& value, KindOverrides* overrides) {
  if (const auto budget = budget_of_max(name)) {
    return say(value, read_cap, &overrides->max[at(*budget)]);
  }
  if (const auto budget = budget_of_span(name)) {
    return say(value, read_span, &overrides->span[at(*budget)]);
  }
  if (name == kAlias) return say(value, read_cap, &overrides->max_active_leases);
  if (name == kGroup) return say(value, read_group, &overrides->dispatch_budget_group);
  if (name == kGroupAlias) return say(value, read_group, &overrides->budget_group);
  return absl::InvalidArgumentError(unknown_override_field(name));
}

absl::Status set_field(std::string_view name, const Written& value, Settings::Defaults* defaults) {
  if (!is_default_field(name)) return absl::InvalidArgumentError(unknown_default_field(name));
  if (const auto budget = budget_of_max(name)) {
    const auto cap = read_cap(value);
    if (cap.ok()) defaults->max[at(*budget)] = *cap;
    return cap.status();
  }
  const auto span = read_span(value);
  if (span.ok()) defaults->span[at(*budget_of_span(name))] = *span;
  return span.status();
}

bool is_override_field(std::string_view name) { return contains(override_fields(), name); }
bool is_default_field(std::string_view name) { return contains(default_fields(), name); }

std::string unknown(std::string_view what, std::string_view name,
                    const std::vector<std::string_view>& names) {
  const std::string meant(nearest(name, names));
  return absl::StrCat("unknown ", std::string(what), " ", std::string(name),
                      meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?"));
}

std::string unknown_override_field(std::string_view name) {
  return unknown("field", name, override_fields());
}

std::string unknown_default_field(std::string_view name) {
  if (name == field_of(Budget::kGroupRate) || is_override_field(name)) {
    return absl::StrCat(std::string(name), " belongs into queue_overrides");
  }
  return unknown("field", name, default_fields());
}

std::string unknown_kind(std::string_view name) {
  return unknown("kind of task", name,
                 {name_of(TaskKind::kWorkflow), name_of(TaskKind::kActivity)});
}

}  // namespace fairlead::admission
