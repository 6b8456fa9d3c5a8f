#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/schedule_testing.h"

namespace fairlead::schedule {
namespace {

using Outcome = Fired::Outcome;

TEST(Schedule, FiresAtItsTimesAndSaysSo) {
  Bench bench("PT1H");
  EXPECT_EQ(bench.next(), "01:00:00");
  bench.at("00:59:59").pass_time();
  EXPECT_EQ(bench.take_starts(), "");
  bench.at("01:00:00").pass_time();
  EXPECT_EQ(bench.take_starts(), "schedule:nightly:20260101T010000Z");
  EXPECT_EQ(bench.history(), "created") << "nobody knows yet whether it has started";
  bench.start_all();
  EXPECT_EQ(bench.history(), "created triggered");
  EXPECT_EQ(bench.schedule.fires(), 1);
  EXPECT_EQ(bench.next(), "02:00:00");
  bench.pass_time();
  EXPECT_EQ(bench.take_starts(), "") << "a time comes once";
}

// What runs when the next time comes, and what the policy makes of it.
TEST(Schedule, OverlapPoliciesDecideWhatARunningOneMeans) {
  const struct {
    model::OverlapPolicy policy;
    Outcome second;
    Outcome third;
    size_t stops;
    const char* after_the_end;  // what is started then
  } kCases[] = {
      {model::OVERLAP_SKIP, Outcome::kSkipped, Outcome::kSkipped, 0, ""},
      {model::OVERLAP_BUFFER_ONE, Outcome::kBuffered, Outcome::kBufferFull, 0, "one"},
      {model::OVERLAP_BUFFER_ALL, Outcome::kBuffered, Outcome::kBuffered, 0, "one"},
      {model::OVERLAP_CANCEL_OTHER, Outcome::kAsked, Outcome::kAsked, 2, ""},
      {model::OVERLAP_TERMINATE_OTHER, Outcome::kAsked, Outcome::kAsked, 2, ""},
      {model::OVERLAP_ALLOW_ALL, Outcome::kAsked, Outcome::kAsked, 0, ""},
  };
  for (const auto& each : kCases) {
    Bench bench("PT1H");
    const auto first = bench.trigger(each.policy);
    EXPECT_EQ(first.outcome, Outcome::kAsked);
    bench.start_all();
    bench.take_starts();
    EXPECT_EQ(bench.trigger(each.policy).outcome, each.second) << each.policy;
    bench.start_all();
    EXPECT_EQ(bench.trigger(each.policy).outcome, each.third) << each.policy;
    bench.start_all();
    EXPECT_EQ(bench.stops.size(), each.stops) << each.policy;
    for (const auto& stop : bench.stops) {
      EXPECT_EQ(stop.kind, each.policy == model::OVERLAP_CANCEL_OTHER ? model::WORKFLOW_CANCELED
                                                                      : model::WORKFLOW_TERMINATED);
    }
    bench.take_starts();
    bench.close(first.number);
    EXPECT_EQ(bench.take_starts().empty(), std::string(each.after_the_end).empty()) << each.policy;
  }
}

TEST(Schedule, EachIsStoppedOnce) {
  Bench bench("PT1H");
  const auto first = bench.trigger(model::OVERLAP_ALLOW_ALL);
  bench.start_all();
  bench.trigger(model::OVERLAP_CANCEL_OTHER);
  bench.trigger(model::OVERLAP_CANCEL_OTHER);
  ASSERT_EQ(bench.stops.size(), 1U) << "the second had not started when the third came";
  EXPECT_EQ(bench.stops[0].fire.run_id(), first.run_id);
  bench.start_all();
  EXPECT_EQ(bench.stops.size(), 2U) << "it is stopped as soon as it has";
}

TEST(Schedule, BufferedFiresRunOneAfterTheOther) {
  Bench bench("PT1H");
  bench.schedule.mutable_definition()->set_overlap(model::OVERLAP_BUFFER_ALL);
  for (const char* time : {"01:00:00", "02:00:00", "03:00:00"}) bench.at(time).pass_time();
  EXPECT_EQ(bench.take_starts(), "schedule:nightly:20260101T010000Z");
  bench.start_all();
  bench.close(1);
  EXPECT_EQ(bench.take_starts(), "schedule:nightly:20260101T020000Z");
  bench.start_all();
  bench.close(2);
  EXPECT_EQ(bench.take_starts(), "schedule:nightly:20260101T030000Z");
}

TEST(Schedule, ARefusedStartLetsTheNextBegin) {
  Bench bench("PT1H");
  bench.schedule.mutable_definition()->set_overlap(model::OVERLAP_BUFFER_ALL);
  bench.at("01:00:00").pass_time();
  bench.at("02:00:00").pass_time();
  bench.take_starts();
  const auto fired = bench.settle(1, absl::AlreadyExistsError("in use"));
  EXPECT_EQ(fired.outcome, Outcome::kFailed);
  EXPECT_EQ(bench.take_starts(), "schedule:nightly:20260101T020000Z");
  EXPECT_EQ(bench.schedule.failures(), 1);
  EXPECT_EQ(bench.history(), "created skipped(start_failed)");
}

TEST(Schedule, NothingFiresWhileItIsPaused) {
  Bench bench("PT1H");
  bench.schedule.mutable_definition()->set_overlap(model::OVERLAP_BUFFER_ALL);
  bench.at("01:00:00").pass_time();
  bench.at("02:00:00").pass_time();
  bench.start_all();
  EXPECT_TRUE(bench.pause("holidays"));
  EXPECT_FALSE(bench.pause("")) << "it is already";
  EXPECT_EQ(bench.next(), "never");
  bench.take_starts();
  bench.close(1);
  bench.at("03:00:00").pass_time();
  EXPECT_EQ(bench.trigger().reason, kNotTriggerable);
  EXPECT_EQ(bench.take_starts(), "") << "what was buffered waits as well";
  bench.at("03:30:00");
  EXPECT_TRUE(bench.resume(""));
  EXPECT_EQ(bench.take_starts(), "schedule:nightly:20260101T020000Z");
  EXPECT_EQ(bench.next(), "04:00:00") << "times of the pause are no times";
  EXPECT_EQ(bench.schedule.definition().note(), "holidays");
}

TEST(Schedule, CountsWhatWentByUnseen) {
  Bench bench("PT1H");
  bench.at("04:30:00").pass_time();
  EXPECT_EQ(bench.take_starts(), "schedule:nightly:20260101T010000Z");
  EXPECT_EQ(bench.schedule.skips(), 3);
  EXPECT_EQ(bench.history(), "created skipped(missed)");
  EXPECT_EQ(bench.events.back().missed(), 3);
  EXPECT_EQ(bench.next(), "05:00:00");
}

TEST(Schedule, AVeryLongSilenceCostsLittle) {
  Bench bench("PT1S");
  bench.now += 3650 * kDay;
  bench.pass_time();
  EXPECT_EQ(bench.schedule.skips(), kMissedMax);
  EXPECT_GT(bench.schedule.next_fire_ns(), bench.now);
}

TEST(Schedule, EndsAfterItsLastRun) {
  Bench bench("PT1H", 2);
  bench.schedule.mutable_definition()->set_overlap(model::OVERLAP_ALLOW_ALL);
  bench.at("01:00:00").pass_time();
  bench.start_all();
  EXPECT_EQ(bench.schedule.remaining_runs(), 1);
  EXPECT_EQ(bench.trigger().outcome, Outcome::kAsked);
  EXPECT_EQ(bench.next(), "never");
  EXPECT_EQ(bench.schedule.deleted_ns(), 0) << "the last may still be refused";
  bench.start_all();
  EXPECT_EQ(bench.history(), "created triggered triggered deleted(max_runs_exhausted)");
}

TEST(Schedule, ARefusedStartIsNotOneOfItsRuns) {
  Bench bench("PT1H", 1);
  bench.at("01:00:00").pass_time();
  bench.settle(1, absl::AlreadyExistsError("in use"));
  EXPECT_EQ(bench.schedule.remaining_runs(), 1);
  EXPECT_EQ(bench.next(), "02:00:00");
}

TEST(Schedule, TheLimitOfRunsCanBeMoved) {
  Bench bench("PT1H");
  bench.schedule.mutable_definition()->set_overlap(model::OVERLAP_ALLOW_ALL);
  for (int i = 0; i < 3; ++i) bench.trigger();
  bench.start_all();
  bench.update([](auto& definition) { definition.set_runs_max(5); });
  EXPECT_EQ(bench.schedule.remaining_runs(), 2);
  bench.update([](auto& definition) { definition.set_runs_max(2); });
  EXPECT_EQ(bench.next(), "never");
  EXPECT_EQ(bench.trigger().reason, kExhausted);
  bench.update([](auto& definition) { definition.set_runs_max(0); });
  EXPECT_EQ(bench.next(), "01:00:00");
}

TEST(Schedule, AnotherCalendarBeginsNowAndOtherChangesLeaveItAlone) {
  Bench bench("PT1H");
  bench.at("00:30:00");
  bench.update([](auto& definition) { definition.set_note("mine"); });
  EXPECT_EQ(bench.next(), "01:00:00");
  bench.update([](auto& definition) {
    definition.mutable_spec()->mutable_intervals(0)->set_every_ns(45 * kMinute);
  });
  EXPECT_EQ(bench.next(), "00:45:00");
  EXPECT_EQ(bench.history(), "created updated updated");
}

TEST(Schedule, BackfillsARangeWithoutItsEnd) {
  Bench bench("PT1H");
  bench.at("00:30:00");
  const auto fired = bench.backfill("01:00:00", "03:00:00", model::OVERLAP_ALLOW_ALL);
  ASSERT_TRUE(fired.ok());
  EXPECT_EQ(
      bench.take_starts(),
      "schedule:nightly:backfill:20260101T010000Z schedule:nightly:backfill:20260101T020000Z");
  EXPECT_EQ(bench.next(), "01:00:00") << "the times ahead stay as they are";
}

TEST(Schedule, ABackfillDoesNotBuffer) {
  Bench bench("PT1H");
  const auto fired = bench.backfill("01:00:00", "04:00:00", model::OVERLAP_BUFFER_ONE);
  ASSERT_EQ(fired->size(), 3U);
  for (const auto& each : *fired) EXPECT_EQ(each.outcome, Outcome::kAsked);
}

TEST(Schedule, ABackfillThatIsTooLargeDoesNothing) {
  Bench bench("PT1S");
  EXPECT_FALSE(bench.backfill("01:00:00", "03:00:00", model::OVERLAP_ALLOW_ALL).ok());
  EXPECT_EQ(bench.take_starts(), "");
}

// All of them are heard of, though not all of them are watched.
TEST(Schedule, ALargeBackfillForgetsNoStart) {
  Bench bench("PT1S");
  ASSERT_TRUE(bench.backfill("01:00:00", "01:15:00", model::OVERLAP_ALLOW_ALL).ok());
  bench.start_all();
  EXPECT_EQ(bench.schedule.fires(), 900);
  EXPECT_EQ(bench.schedule.open_size(), kOpenMax);
  EXPECT_EQ(bench.schedule.recent_size(), kRecentMax);
}

TEST(Schedule, WhatWasStartedByAnEarlierBackfillIsNotStartedTwice) {
  Bench bench("PT1H");
  bench.backfill("01:00:00", "02:00:00", model::OVERLAP_ALLOW_ALL).value();
  const auto fired = bench.settle(1, std::string("the run of before"));
  EXPECT_EQ(fired.outcome, Outcome::kSkipped);
  EXPECT_EQ(fired.reason, kAlreadyStarted);
  EXPECT_EQ(bench.schedule.open_size(), 0);
  EXPECT_EQ(bench.schedule.failures(), 0);
}

// The news of an end may overtake that of the start.
TEST(Schedule, ARunMayEndBeforeItsStartIsKnown) {
  Bench bench("PT1H");
  bench.schedule.mutable_definition()->set_overlap(model::OVERLAP_BUFFER_ONE);
  bench.at("01:00:00").pass_time();
  bench.at("02:00:00").pass_time();
  bench.take_starts();
  bench.close(1);
  EXPECT_EQ(bench.history(), "created triggered");
  EXPECT_EQ(bench.take_starts(), "schedule:nightly:20260101T020000Z");
  bench.settle(1, std::string("run-1"));
  EXPECT_EQ(bench.history(), "created triggered") << "it was told before";
}

TEST(Schedule, NewsThatComesTwiceCountsOnce) {
  Bench bench("PT1H");
  bench.at("01:00:00").pass_time();
  bench.start_all();
  bench.settle(1, std::string("run-1"));
  bench.settle(1, absl::InternalError("no"));
  EXPECT_EQ(bench.history(), "created triggered");
  bench.close(1);
  bench.close(1);
  EXPECT_EQ(bench.schedule.fires(), 1);
  EXPECT_EQ(bench.schedule.open_size(), 0);
}

TEST(Schedule, TriggersOfTheSameMomentAreDifferentRuns) {
  Bench bench("PT1H");
  const auto first = bench.trigger(model::OVERLAP_ALLOW_ALL);
  const auto second = bench.trigger(model::OVERLAP_ALLOW_ALL);
  EXPECT_EQ(first.workflow_id, "schedule:nightly:trigger:20260101T000000.000000Z");
  EXPECT_EQ(second.workflow_id, "schedule:nightly:trigger:20260101T000000.000001Z");
}

TEST(Schedule, ADeletedOneIsOver) {
  Bench bench("PT1H");
  bench.schedule.mutable_definition()->set_overlap(model::OVERLAP_BUFFER_ALL);
  bench.at("01:00:00").pass_time();
  bench.at("02:00:00").pass_time();
  bench.start_all();
  bench.take_starts();
  bench.remove();
  bench.close(1);
  bench.at("03:00:00").pass_time();
  EXPECT_EQ(bench.take_starts(), "");
  EXPECT_EQ(bench.history(), "created triggered skipped(status_not_triggerable) deleted(deleted)");
}

TEST(Schedule, EveryNameMakesAWorkflowId) {
  const TimeNs nominal = 0;
  EXPECT_EQ(workflow_id_of("a.b:c-d_1", model::FIRE_BY_TIME, nominal),
            "schedule:a.b:c-d_1:19700101T000000Z");
  const auto odd = workflow_id_of("caf\xc3\xa9 1", model::FIRE_BY_TIME, nominal);
  EXPECT_TRUE(odd.starts_with("schedule:caf---1-")) << odd;
  EXPECT_NE(odd, workflow_id_of("caf\xc3\xa8 1", model::FIRE_BY_TIME, nominal));
  EXPECT_LE(workflow_id_of(std::string(128, 'x'), model::FIRE_BY_HAND, nominal).size(), 128U);
  EXPECT_NE(workflow_id_of(std::string(127, 'x') + "a", model::FIRE_BY_TIME, nominal),
            workflow_id_of(std::string(127, 'x') + "b", model::FIRE_BY_TIME, nominal));
}

// A year of chance: times that come late or never looked at, runs that end or are refused, pauses,
// changes of policy. Every time of the calendar is started once, skipped or missed; starts that
// the history tells of are those that were asked for; nothing is asked for in a pause.
TEST(Schedule, EveryTimeIsAccountedForOnce) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Bench bench("PT1M", 0, static_cast<DurationNs>(random.below(90)) * kSecond);
    Ledger ledger(&bench);
    for (int i = 0; i < 400; ++i) {
      bench.now += static_cast<DurationNs>(random.below(random.chance(0.1) ? 600 : 70) * kSecond);
      switch (random.below(7)) {
        case 0:
          random.chance(0.5) ? bench.pause("") : bench.resume("");
          break;
        case 1:
          bench.update([&](auto& definition) {
            definition.set_overlap(static_cast<model::OverlapPolicy>(1 + random.below(6)));
          });
          break;
        case 2:
          if (auto number = ledger.any_open(random, true)) bench.close(*number);
          break;
        case 3:
          if (auto number = ledger.any_open(random, false)) {
            random.chance(0.2) ? bench.settle(*number, absl::InternalError("no"))
                               : bench.settle(*number, bench.promised(*number));
          }
          break;
        default:
          bench.pass_time();
      }
      ledger.check();
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << " step " << i;
    }
    ledger.settle();
  }
}

}  // namespace
}  // namespace fairlead::schedule
