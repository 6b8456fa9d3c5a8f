#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cron.h"
#include "base/time.h"
#include "model/schedules.pb.h"

namespace fairlead::schedule {

// Shorter intervals would be a load test.
inline constexpr DurationNs kIntervalMin = kSecond;
// Lines and intervals of one calendar, each of which is asked at every step.
inline constexpr int kTimesMax = 100;

// The times of a schedule: those of all its cron lines and intervals together.
class Calendar {
 public:
  // One that never comes.
  Calendar() = default;
  // The message of an error begins with what it is about: "cron_expressions", "intervals",
  // "timezone", or "spec" as a whole.
  static absl::StatusOr<Calendar> make(const model::ScheduleSpec& spec);

  // The first time later than `after`; kNever if there is none in the next years.
  TimeNs next(TimeNs after) const;
  // When the fire of that time happens: put off by as much as `seed` and the time decide, always
  // the same, and never to or beyond the next time, so that fires keep their order.
  TimeNs fire_time(TimeNs nominal, std::string_view seed) const;

 private:
  std::vector<Cron> crons_;
  std::vector<model::ScheduleSpec::Interval> intervals_;
  DurationNs jitter_ = 0;
};

}  // namespace fairlead::schedule
