#include "schedule/calendar.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/hash.h"

namespace fairlead::schedule {

namespace {

absl::Status wrong(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", why));
}

TimeNs next_of(const model::ScheduleSpec::Interval& interval, TimeNs after) {
  // Rounded down, also of a time before the offset.
  TimeNs since = 0;
  if (__builtin_sub_overflow(after, interval.offset_ns(), &since)) return kNever;
  TimeNs steps = since / interval.every_ns();
  if (since % interval.every_ns() < 0) --steps;
  TimeNs next = 0;
  if (__builtin_mul_overflow(steps + 1, interval.every_ns(), &next)) return kNever;
  return add_saturated(next, interval.offset_ns());
}

}  // namespace

absl::StatusOr<Calendar> Calendar::make(const model::ScheduleSpec& spec) {
  Calendar calendar;
  if (spec.cron_expressions().empty() && spec.intervals().empty()) {
    return wrong("spec", "needs a cron expression or an interval");
  }
  if (spec.cron_expressions_size() + spec.intervals_size() > kTimesMax) {
    return wrong("spec", absl::StrCat("has more than ", kTimesMax, " expressions and intervals"));
  }
  absl::TimeZone zone;
  if (!spec.timezone().empty() && !absl::LoadTimeZone(spec.timezone(), &zone)) {
    return wrong("timezone", absl::StrCat("unknown time zone \"", spec.timezone(), "\""));
  }
  for (const auto& line : spec.cron_expressions()) {
    // Where such an interval begins nobody could say; ours begin in 1970.
    if (absl::StrContains(line, "@every")) {
      return wrong("cron_expressions", "@every is not a time of day; use an interval");
    }
    const bool has_zone = absl::StrContains(line, "TZ=");
    auto cron = Cron::parse(has_zone || spec.timezone().empty()
                                ? line
                                : absl::StrCat("CRON_TZ=", spec.timezone(), " ", line));
    if (!cron.ok()) return wrong("cron_expressions", cron.status().message());
    calendar.crons_.push_back(*std::move(cron));
  }
  for (const auto& interval : spec.intervals()) {
    if (interval.every_ns() < kIntervalMin) return wrong("intervals", "every is below a second");
    if (interval.offset_ns() < 0 || interval.offset_ns() >= interval.every_ns()) {
      return wrong("intervals", "offset must be shorter than every");
    }
    calendar.intervals_.push_back(interval);
  }
  calendar.jitter_ = spec.jitter_ns();
  return calendar;
}

TimeNs Calendar::next(TimeNs after) const {
  TimeNs next = kNever;
  for (const auto& cron : crons_) next = std::min(next, cron.next(after));
  for (const auto& interval : intervals_) next = std::min(next, next_of(interval, after));
  return next;
}

TimeNs Calendar::fire_time(TimeNs nominal, std::string_view seed) const {
  if (jitter_ <= 0 || nominal == kNever) return nominal;
  const TimeNs following = next(nominal);
  const DurationNs room = following == kNever ? kNever : following - nominal - 1;
  const auto choices = static_cast<uint64_t>(std::min(jitter_, room)) + 1;
  const uint64_t drawn = stable_hash(absl::StrCat(nominal), stable_hash(seed));
  return add_saturated(nominal, static_cast<DurationNs>(drawn % choices));
}

}  // namespace fairlead::schedule
