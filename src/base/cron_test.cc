#include "base/cron.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TimeNs at(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << error;
  return absl::ToUnixNanos(time);
}

std::string next(const std::string& expression, const std::string& after) {
  const auto cron = Cron::parse(expression);
  if (!cron.ok()) return std::string(cron.status().message());
  const TimeNs time = cron->next(at(after));
  if (time == kNever) return "never";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(time), absl::UTCTimeZone());
}

TEST(Cron, FindsTheNextMinuteHourDayAndMonth) {
  EXPECT_EQ(next("* * * * *", "2026-07-10T10:00:30Z"), "2026-07-10 10:01:00");
  EXPECT_EQ(next("*/15 * * * *", "2026-07-10T10:45:00Z"), "2026-07-10 11:00:00");
  EXPECT_EQ(next("30 4 * * *", "2026-07-10T10:00:00Z"), "2026-07-11 04:30:00");
  EXPECT_EQ(next("0 0 1 1 *", "2026-07-10T10:00:00Z"), "2027-01-01 00:00:00");
  EXPECT_EQ(next("0 9-17/4 * * *", "2026-07-10T10:00:00Z"), "2026-07-10 13:00:00");
  EXPECT_EQ(next("5,35 * * * *", "2026-07-10T10:05:00Z"), "2026-07-10 10:35:00");
  EXPECT_EQ(next("0 0 29 2 *", "2026-07-10T10:00:00Z"), "2028-02-29 00:00:00");
}

TEST(Cron, KnowsNamesAndDescriptors) {
  EXPECT_EQ(next("0 12 * Dec MON", "2026-07-10T10:00:00Z"), "2026-12-07 12:00:00");
  EXPECT_EQ(next("@hourly", "2026-07-10T10:00:00Z"), "2026-07-10 11:00:00");
  EXPECT_EQ(next("@daily", "2026-07-10T10:00:00Z"), "2026-07-11 00:00:00");
  EXPECT_EQ(next("@weekly", "2026-07-10T10:00:00Z"), "2026-07-12 00:00:00");
  EXPECT_EQ(next("@monthly", "2026-07-10T10:00:00Z"), "2026-08-01 00:00:00");
  EXPECT_EQ(next("@yearly", "2026-07-10T10:00:00Z"), "2027-01-01 00:00:00");
}

TEST(Cron, TakesEitherKindOfDayWhenBothAreGiven) {
  EXPECT_EQ(next("0 0 13 * FRI", "2026-07-10T10:00:00Z"), "2026-07-13 00:00:00");
  EXPECT_EQ(next("0 0 13 * FRI", "2026-07-13T10:00:00Z"), "2026-07-17 00:00:00");
}

TEST(Cron, CountsIntervalsFromTheSecond) {
  EXPECT_EQ(next("@every 3s", "2026-07-10T10:00:00.7Z"), "2026-07-10 10:00:03");
  EXPECT_EQ(next("@every 1h30m", "2026-07-10T10:00:00Z"), "2026-07-10 11:30:00");
  EXPECT_EQ(next("@every 1ms", "2026-07-10T10:00:00Z"), "2026-07-10 10:00:01");
}

TEST(Cron, SkipsWhatIsPast) {
  const auto cron = Cron::parse("@every 3s");
  EXPECT_EQ(cron->next(at("2026-07-10T10:00:00Z"), at("2026-07-10T10:00:07Z")),
            at("2026-07-10T10:00:09Z"));
  EXPECT_EQ(cron->next(at("2026-07-10T10:00:00Z"), at("2026-07-10T10:00:09Z")),
            at("2026-07-10T10:00:09Z"));
  const auto minutes = Cron::parse("* * * * *");
  EXPECT_EQ(minutes->next(at("2026-07-10T10:00:00Z"), at("2026-07-10T10:05:30Z")),
            at("2026-07-10T10:06:00Z"));
}

// Berlin leaves out 02:00-03:00 on 29 March 2026 and has it twice on 25 October.
TEST(Cron, FollowsTheClocksOfItsTimeZone) {
  EXPECT_EQ(next("CRON_TZ=Europe/Berlin 0 9 * * *", "2026-07-10T10:00:00Z"), "2026-07-11 07:00:00");
  EXPECT_EQ(next("TZ=Europe/Berlin 30 2 * * *", "2026-03-28T10:00:00Z"), "2026-03-30 00:30:00");
  EXPECT_EQ(next("TZ=Europe/Berlin 30 2 * * *", "2026-10-24T10:00:00Z"), "2026-10-25 00:30:00");
  EXPECT_EQ(next("TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:30:00Z"), "2026-10-26 01:30:00");
}

TEST(Cron, SaysWhatIsWrong) {
  EXPECT_EQ(next("* * * *", "2026-07-10T10:00:00Z"), "expected exactly 5 fields, found 4");
  EXPECT_EQ(next("60 * * * *", "2026-07-10T10:00:00Z"), "not between 0 and 59: \"60\"");
  EXPECT_EQ(next("5-1 * * * *", "2026-07-10T10:00:00Z"),
            "the range ends before it begins: \"5-1\"");
  EXPECT_EQ(next("*/0 * * * *", "2026-07-10T10:00:00Z"), "not a step: \"*/0\"");
  EXPECT_EQ(next("@sometimes", "2026-07-10T10:00:00Z"), "unknown descriptor: \"@sometimes\"");
  EXPECT_EQ(next("TZ=Atlantis * * * * *", "2026-07-10T10:00:00Z"),
            "unknown time zone: \"Atlantis\"");
  EXPECT_EQ(next("0 0 31 2 *", "2026-07-10T10:00:00Z"), "never");
}

}  // namespace
}  // namespace fairlead
