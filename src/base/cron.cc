#include "base/cron.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fairlead {

namespace {

constexpr int kYearsMax = 5;

struct Bounds {
  int low;
  int high;
  std::vector<std::string_view> names;  // of the values from `low` on
};

const Bounds kMinutes{0, 59, {}};
const Bounds kHours{0, 23, {}};
const Bounds kDays{1, 31, {}};
const Bounds kMonths{
    1, 12, {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}};
const Bounds kWeekdays{0, 6, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}};

absl::Status wrong(absl::string_view what, absl::string_view part) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": \"", part, "\""));
}

absl::StatusOr<int> read_value(absl::string_view text, const Bounds& bounds) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (size_t i = 0; i < bounds.names.size(); ++i) {
    if (lower == bounds.names[i]) return bounds.low + static_cast<int>(i);
  }
  int value = 0;
  if (!absl::SimpleAtoi(text, &value)) return wrong("not a number", text);
  if (value < bounds.low || value > bounds.high) {
    return wrong(absl::StrCat("not between ", bounds.low, " and ", bounds.high), text);
  }
  return value;
}

// One element of a list: `*`, `7`, `1-5`, each with an optional `/step`.
template <typename Field>
absl::Status read_range(absl::string_view text, const Bounds& bounds, Field* field, bool* is_any) {
  const std::vector<absl::string_view> stepped = absl::StrSplit(text, '/');
  if (stepped.size() > 2) return wrong("too many slashes", text);
  const std::vector<absl::string_view> ends = absl::StrSplit(stepped[0], '-');
  if (ends.size() > 2) return wrong("too many hyphens", text);
  int low = bounds.low;
  int high = bounds.high;
  int step = 1;
  const bool is_star = ends[0] == "*" || ends[0] == "?";
  if (is_star) {
    if (ends.size() > 1) return wrong("a range of a star", text);
  } else {
    auto first = read_value(ends[0], bounds);
    if (!first.ok()) return first.status();
    low = *first;
    high = stepped.size() == 2 ? bounds.high : low;
    if (ends.size() == 2) {
      auto last = read_value(ends[1], bounds);
      if (!last.ok()) return last.status();
      high = *last;
    }
    if (low > high) return wrong("the range ends before it begins", text);
  }
  if (stepped.size() == 2 && (!absl::SimpleAtoi(stepped[1], &step) || step <= 0)) {
    return wrong("not a step", text);
  }
  if (is_star && step == 1) *is_any = true;
  for (int value = low; value <= high; value += step) field->set(static_cast<size_t>(value));
  return absl::OkStatus();
}

template <typename Field>
absl::Status read_field(absl::string_view text, const Bounds& bounds, Field* field, bool* is_any) {
  for (const auto part : absl::StrSplit(text, ',')) {
    if (auto status = read_range(part, bounds, field, is_any); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::string_view expand(absl::string_view name) {
  if (name == "@yearly" || name == "@annually") return "0 0 1 1 *";
  if (name == "@monthly") return "0 0 1 * *";
  if (name == "@weekly") return "0 0 * * 0";
  if (name == "@daily" || name == "@midnight") return "0 0 * * *";
  if (name == "@hourly") return "0 * * * *";
  return "";
}

}  // namespace

absl::StatusOr<Cron> Cron::parse(std::string_view expression) {
  Cron cron;
  absl::string_view text =
      absl::StripAsciiWhitespace(absl::string_view(expression.data(), expression.size()));
  if (absl::ConsumePrefix(&text, "CRON_TZ=") || absl::ConsumePrefix(&text, "TZ=")) {
    const auto end = std::min(text.find(' '), text.size());
    const std::string name(text.substr(0, end));
    if (!absl::LoadTimeZone(name, &cron.zone_)) return wrong("unknown time zone", name);
    text = absl::StripLeadingAsciiWhitespace(text.substr(end));
  }
  if (absl::ConsumePrefix(&text, "@every ")) {
    absl::Duration every;
    if (!absl::ParseDuration(absl::StripAsciiWhitespace(text), &every)) {
      return wrong("not a duration", text);
    }
    every = absl::Trunc(every, absl::Seconds(1));
    cron.every_ = std::max<DurationNs>(absl::ToInt64Nanoseconds(every), kSecond);
    return cron;
  }
  if (absl::StartsWith(text, "@")) {
    const auto expanded = expand(text);
    if (expanded.empty()) return wrong("unknown descriptor", text);
    text = expanded;
  }
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected exactly 5 fields, found ", fields.size()));
  }
  bool ignored = false;
  for (const auto& status :
       {read_field(fields[0], kMinutes, &cron.minutes_, &ignored),
        read_field(fields[1], kHours, &cron.hours_, &ignored),
        read_field(fields[2], kDays, &cron.days_, &cron.any_day_),
        read_field(fields[3], kMonths, &cron.months_, &ignored),
        read_field(fields[4], kWeekdays, &cron.weekdays_, &cron.any_weekday_)}) {
    if (!status.ok()) return status;
  }
  return cron;
}

TimeNs Cron::next(TimeNs after, TimeNs not_before) const {
  if (every_ == 0) return next_in_calendar(std::max(after, not_before - 1));
  const TimeNs base = after - after % kSecond;
  TimeNs steps = 1;
  if (not_before > base) steps = std::max<TimeNs>(1, (not_before - base + every_ - 1) / every_);
  TimeNs next = 0;
  if (__builtin_mul_overflow(every_, steps, &next)) return kNever;
  return add_saturated(base, next);
}

// As in every cron: when both the day of the month and the day of the week are given, either will
// do.
bool Cron::is_day(absl::CivilDay day) const {
  const auto weekday = (static_cast<size_t>(absl::GetWeekday(day)) + 1) % 7;
  const bool day_fits = days_.test(static_cast<size_t>(day.day()));
  const bool weekday_fits = weekdays_.test(weekday);
  return any_day_ || any_weekday_ ? day_fits && weekday_fits : day_fits || weekday_fits;
}

TimeNs Cron::next_in_calendar(TimeNs after) const {
  const auto civil = zone_.At(absl::FromUnixNanos(after)).cs;
  const auto year_max = civil.year() + kYearsMax;
  absl::CivilMinute at(civil);
  while (at.year() <= year_max) {
    if (!months_.test(static_cast<size_t>(at.month()))) {
      at = absl::CivilMinute(absl::CivilMonth(at) + 1);
    } else if (!is_day(absl::CivilDay(at))) {
      at = absl::CivilMinute(absl::CivilDay(at) + 1);
    } else if (!hours_.test(static_cast<size_t>(at.hour()))) {
      at = absl::CivilMinute(absl::CivilHour(at) + 1);
    } else if (!minutes_.test(static_cast<size_t>(at.minute()))) {
      ++at;
    } else {
      const auto found = zone_.At(absl::CivilSecond(at));
      const TimeNs time = absl::ToUnixNanos(found.pre);
      if (found.kind != absl::TimeZone::TimeInfo::SKIPPED && time > after) return time;
      ++at;
    }
  }
  return kNever;
}

}  // namespace fairlead
