#include "schedule/calendar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace fairlead::schedule {
namespace {

TimeNs at(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << error;
  return absl::ToUnixNanos(time);
}

std::string shown(TimeNs time) {
  if (time == kNever) return "never";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(time), absl::UTCTimeZone());
}

model::ScheduleSpec spec(const std::vector<std::string>& crons,
                         const std::vector<std::pair<DurationNs, DurationNs>>& intervals = {},
                         const std::string& zone = "") {
  model::ScheduleSpec made;
  for (const auto& line : crons) made.add_cron_expressions(line);
  for (const auto& [every, offset] : intervals) {
    auto* interval = made.add_intervals();
    interval->set_every_ns(every);
    interval->set_offset_ns(offset);
  }
  made.set_timezone(zone);
  return made;
}

std::string next(const model::ScheduleSpec& of, const std::string& after) {
  const auto calendar = Calendar::make(of);
  return calendar.ok() ? shown(calendar->next(at(after)))
                       : std::string(calendar.status().message());
}

TEST(Calendar, TakesTheEarliestOfAllItsTimes) {
  const struct {
    model::ScheduleSpec spec;
    const char* after;
    const char* next;
  } kCases[] = {
      {spec({"*/15 * * * *"}), "2026-07-10T10:45:00Z", "2026-07-10 11:00:00"},
      {spec({"0 12 * * *", "30 11 * * *"}), "2026-07-10T10:45:00Z", "2026-07-10 11:30:00"},
      {spec({"0 12 * * *"}, {{6 * kHour, 0}}), "2026-07-10T10:45:00Z", "2026-07-10 12:00:00"},
      {spec({"0 12 * * *"}, {{6 * kHour, 0}}), "2026-07-10T12:00:00Z", "2026-07-10 18:00:00"},
      {spec({}, {{kHour, 5 * kMinute}}), "2026-07-10T10:45:00Z", "2026-07-10 11:05:00"},
      {spec({}, {{kHour, 5 * kMinute}}), "2026-07-10T11:05:00Z", "2026-07-10 12:05:00"},
      {spec({}, {{kHour, 5 * kMinute}}), "2026-07-10T11:04:59Z", "2026-07-10 11:05:00"},
      {spec({"0 9 * * *"}, {}, "Europe/Berlin"), "2026-07-10T10:00:00Z", "2026-07-11 07:00:00"},
      {spec({"TZ=UTC 0 9 * * *"}, {}, "Europe/Berlin"), "2026-07-10T10:00:00Z",
       "2026-07-11 09:00:00"},
      // The hour that does not exist, and the one that comes twice.
      {spec({"30 2 * * *"}, {}, "Europe/Berlin"), "2026-03-28T10:00:00Z", "2026-03-30 00:30:00"},
      {spec({"30 2 * * *"}, {}, "Europe/Berlin"), "2026-10-25T00:30:00Z", "2026-10-26 01:30:00"},
      {spec({"0 0 31 2 *"}), "2026-07-10T10:00:00Z", "never"},
  };
  for (const auto& each : kCases) {
    EXPECT_EQ(next(each.spec, each.after), each.next) << each.spec.ShortDebugString();
  }
}

TEST(Calendar, SaysWhatIsWrong) {
  const std::string now = "2026-07-10T10:00:00Z";
  EXPECT_EQ(next(spec({}), now), "spec: needs a cron expression or an interval");
  EXPECT_EQ(next(spec({"* * * *"}), now), "cron_expressions: expected exactly 5 fields, found 4");
  EXPECT_EQ(next(spec({"@every 1h"}), now),
            "cron_expressions: @every is not a time of day; use an interval");
  EXPECT_EQ(next(spec({"0 9 * * *"}, {}, "Atlantis"), now),
            "timezone: unknown time zone \"Atlantis\"");
  EXPECT_EQ(next(spec({}, {{kMillisecond, 0}}), now), "intervals: every is below a second");
  EXPECT_EQ(next(spec({}, {{kHour, kHour}}), now), "intervals: offset must be shorter than every");
  EXPECT_EQ(next(spec(std::vector<std::string>(101, "* * * * *")), now),
            "spec: has more than 100 expressions and intervals");
}

TEST(Calendar, AnEmptyOneNeverComes) { EXPECT_EQ(Calendar().next(0), kNever); }

model::ScheduleSpec any_spec(Random& random) {
  model::ScheduleSpec made;
  const uint64_t crons = random.below(3);
  for (uint64_t i = 0; i < crons; ++i) {
    made.add_cron_expressions(absl::StrCat(random.below(60), " ", random.below(24), " * * *"));
  }
  const uint64_t intervals = random.below(3) + (crons == 0 ? 1 : 0);
  for (uint64_t i = 0; i < intervals; ++i) {
    auto* interval = made.add_intervals();
    interval->set_every_ns(static_cast<DurationNs>(1 + random.below(10'000)) * kSecond);
    interval->set_offset_ns(static_cast<DurationNs>(
        random.below(static_cast<uint64_t>(interval->every_ns() / kSecond)) * kSecond));
  }
  if (random.chance(0.5)) made.set_timezone("America/New_York");
  made.set_jitter_ns(static_cast<DurationNs>(random.below(4000)) * kSecond);
  return made;
}

// Whatever the calendar: its times go up, none is left out by looking from another moment, and
// fires with jitter are the same every time, never early, never late, and never out of order.
TEST(Calendar, KeepsItsLaws) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const auto made = any_spec(random);
    const auto calendar = Calendar::make(made);
    ASSERT_TRUE(calendar.ok()) << made.ShortDebugString();
    const std::string seed = absl::StrCat("schedule-", i);
    TimeNs time = at("2026-03-01T00:00:00Z") + static_cast<TimeNs>(random.below(400 * kDay));
    TimeNs last_fire = 0;
    for (int step = 0; step < 20; ++step) {
      const TimeNs following = calendar->next(time);
      ASSERT_GT(following, time) << made.ShortDebugString();
      const TimeNs between =
          time + static_cast<TimeNs>(random.below(static_cast<uint64_t>(following - time)));
      ASSERT_EQ(calendar->next(between), following) << made.ShortDebugString();
      const TimeNs fire = calendar->fire_time(following, seed);
      ASSERT_EQ(fire, calendar->fire_time(following, seed));
      ASSERT_GE(fire, following);
      ASSERT_LE(fire, following + made.jitter_ns());
      ASSERT_LT(fire, calendar->next(following));
      ASSERT_GT(fire, last_fire);
      last_fire = fire;
      time = following;
    }
  }
}

TEST(Calendar, JitterSpreadsSchedulesOfTheSameTime) {
  auto made = spec({"0 * * * *"});
  made.set_jitter_ns(300 * kSecond);
  const auto calendar = Calendar::make(made);
  std::set<TimeNs> fires;
  const TimeNs nominal = at("2026-07-10T11:00:00Z");
  for (int i = 0; i < 100; ++i) {
    fires.insert((calendar->fire_time(nominal, absl::StrCat("schedule-", i)) - nominal) / kMinute);
  }
  EXPECT_EQ(fires, (std::set<TimeNs>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace fairlead::schedule
