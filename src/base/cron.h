#pragma once

#include <array>
#include <bitset>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/time.h"

namespace fairlead {

// A cron expression: when something recurs.
//
//   minute hour day-of-month month day-of-week     lists, ranges, steps, names of months and days
//   @hourly @daily @midnight @weekly @monthly @yearly @annually
//   @every 1h30m
//
// A prefix `CRON_TZ=Europe/Berlin ` (or `TZ=`) names the time zone; without it it is UTC. A local
// time that a change of the clocks skips does not occur; one that it repeats occurs once.
class Cron {
 public:
  static absl::StatusOr<Cron> parse(std::string_view expression);

  // The first occurrence later than `after` and not before `not_before`; kNever if there is none
  // within five years.
  TimeNs next(TimeNs after, TimeNs not_before = 0) const;

 private:
  using Field = std::bitset<60>;

  TimeNs next_in_calendar(TimeNs after) const;
  bool is_day(absl::CivilDay day) const;

  DurationNs every_ = 0;  // not 0: the fields below say nothing
  Field minutes_, hours_, days_, months_, weekdays_;
  bool any_day_ = false;
  bool any_weekday_ = false;
  absl::TimeZone zone_ = absl::UTCTimeZone();
};

}  // namespace fairlead
