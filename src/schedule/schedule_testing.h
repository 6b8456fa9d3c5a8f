#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "schedule/schedule.h"

namespace fairlead::schedule {

inline constexpr TimeNs kNewYear = 1'767'225'600 * kSecond;  // 2026-01-01T00:00:00Z

// One schedule and a clock that the test moves.
class Bench {
 public:
  // `every` is PT1H, PT1M or PT1S.
  explicit Bench(const std::string& every, int64_t runs_max = 0, DurationNs jitter = 0) {
    schedule.set_schedule_id("nightly");
    schedule.set_key("0123456789abcdef");
    auto* definition = schedule.mutable_definition();
    definition->set_overlap(model::OVERLAP_SKIP);
    definition->set_runs_max(runs_max);
    definition->mutable_spec()->set_jitter_ns(jitter);
    definition->mutable_spec()->add_intervals()->set_every_ns(every == "PT1H"   ? kHour
                                                              : every == "PT1M" ? kMinute
                                                                                : kSecond);
    step([](Step& step) { step.create(false); });
  }

  // A time of the first day.
  Bench& at(const std::string& clock) {
    now = time_of(clock);
    return *this;
  }
  static TimeNs time_of(const std::string& clock) {
    const std::vector<std::string> parts = absl::StrSplit(clock, ':');
    return kNewYear + std::stoi(parts[0]) * kHour + std::stoi(parts[1]) * kMinute +
           std::stoi(parts[2]) * kSecond;
  }

  void pass_time() {
    step([](Step& step) { step.pass_time(); });
  }
  Fired trigger(model::OverlapPolicy policy = model::OVERLAP_UNSPECIFIED) {
    Fired fired;
    step([&](Step& step) { fired = step.trigger(policy); });
    return fired;
  }
  absl::StatusOr<std::vector<Fired>> backfill(const std::string& from, const std::string& to,
                                              model::OverlapPolicy policy) {
    absl::StatusOr<std::vector<Fired>> fired;
    step([&](Step& step) { fired = step.backfill(time_of(from), time_of(to), policy); });
    return fired;
  }
  bool pause(const std::string& note) {
    bool is_new = false;
    step([&](Step& step) { is_new = step.pause(note); });
    return is_new;
  }
  bool resume(const std::string& note) {
    bool is_new = false;
    step([&](Step& step) { is_new = step.resume(note); });
    return is_new;
  }
  void remove() {
    step([](Step& step) { step.remove(kDeleted); });
  }
  template <typename Change>
  void update(Change change) {
    auto definition = schedule.definition();
    change(definition);
    const auto calendar = Calendar::make(definition.spec());
    ASSERT_TRUE(calendar.ok()) << calendar.status();
    step([&](Step& step) { step.update(definition, &*calendar, {"something"}); });
  }
  Fired settle(int64_t number, const absl::StatusOr<std::string>& run_id) {
    Fired fired;
    step([&](Step& step) { fired = step.settle(number, run_id); });
    return fired;
  }
  void close(int64_t number) {
    step([&](Step& step) { step.close(number); });
  }
  std::string promised(int64_t number) const { return asked.at(number).run_id(); }
  // Every start that was asked for has happened.
  void start_all() {
    std::vector<int64_t> waiting;
    for (const auto& fire : schedule.open()) {
      if (!fire.is_started()) waiting.push_back(fire.number());
    }
    for (const int64_t number : waiting) settle(number, promised(number));
  }

  std::string take_starts() {
    return absl::StrJoin(std::exchange(starts, {}), " ", [](std::string* out, const auto& fire) {
      out->append(fire.workflow_id());
    });
  }
  std::string next() const {
    const TimeNs next = Step::next_look(schedule);
    if (next == kNever) return "never";
    return absl::FormatTime("%H:%M:%S", absl::FromUnixNanos(next), absl::UTCTimeZone());
  }
  std::string history() const {
    static const char* const kWords[] = {"",        "created",   "paused",  "resumed",
                                         "updated", "triggered", "skipped", "deleted"};
    return absl::StrJoin(events, " ", [](std::string* out, const model::ScheduleEvent& event) {
      out->append(kWords[event.kind()]);
      if (!event.reason().empty()) absl::StrAppend(out, "(", event.reason(), ")");
    });
  }

  model::Schedule schedule;
  TimeNs now = kNewYear;
  std::vector<model::ScheduleEvent> events;
  std::vector<model::ScheduleFire> starts;
  std::map<int64_t, model::ScheduleFire> asked;
  std::vector<Stop> stops;

 private:
  template <typename Act>
  void step(Act act) {
    const auto calendar = Calendar::make(schedule.definition().spec());
    ASSERT_TRUE(calendar.ok()) << calendar.status();
    const bool was_paused = schedule.paused_ns() != 0;
    const auto make_id = [this] { return absl::StrCat("run-", ++ids_); };
    Step step(&schedule, &*calendar, now, make_id);
    act(step);
    if (was_paused && schedule.paused_ns() != 0) {
      ASSERT_TRUE(step.starts.empty());
    }
    for (auto& event : step.events) {
      ASSERT_EQ(event.sequence(), static_cast<int64_t>(events.size()) + 1);
      events.push_back(std::move(event));
    }
    for (auto& fire : step.starts) {
      ASSERT_TRUE(asked.emplace(fire.number(), fire).second) << "a number is used once";
      starts.push_back(std::move(fire));
    }
    for (auto& stop : step.stops) stops.push_back(std::move(stop));
  }

  int ids_ = 0;
};

// Every time of the calendar that came while the schedule was not paused, and what became of it.
class Ledger {
 public:
  explicit Ledger(Bench* bench) : bench_(*bench) {}

  std::optional<int64_t> any_open(Random& random, bool is_started) const {
    std::vector<int64_t> found;
    for (const auto& fire : bench_.schedule.open()) {
      if (fire.is_started() == is_started) found.push_back(fire.number());
    }
    if (found.empty()) return std::nullopt;
    return found[random.below(found.size())];
  }

  void check() {
    std::map<std::string, int> started;
    std::set<TimeNs> times;
    for (const auto& [number, fire] : bench_.asked) {
      EXPECT_EQ(++started[fire.workflow_id()], 1) << fire.workflow_id() << " was asked for twice";
      EXPECT_GE(fire.fired_ns(), fire.nominal_ns());
    }
    EXPECT_EQ(bench_.schedule.next_fire_ns() == 0, bench_.schedule.paused_ns() != 0);
  }

  // At the end: asked, skipped, buffered or missed, each time once and none left out.
  void settle() {
    bench_.pass_time();
    std::map<TimeNs, int> times;
    for (const auto& [number, fire] : bench_.asked) ++times[fire.nominal_ns()];
    for (const auto& fire : bench_.schedule.buffered()) ++times[fire.nominal_ns()];
    TimeNs from = kNewYear;
    std::map<TimeNs, int> expected;
    for (const auto& event : bench_.events) {
      const bool is_refusal = event.reason() == kStartFailed;
      if (event.kind() == model::SCHEDULE_TRIGGER_SKIPPED && event.missed() > 0) {
        for (TimeNs t = event.missed_from_ns(); t <= event.missed_to_ns(); t += kMinute) ++times[t];
      } else if (event.kind() == model::SCHEDULE_TRIGGER_SKIPPED && !is_refusal) {
        ++times[event.fire().nominal_ns()];
      }
      if (event.kind() == model::SCHEDULE_RESUMED) from = event.time_ns();
      if (event.kind() == model::SCHEDULE_PAUSED) expect(from, event.time_ns(), &expected);
    }
    if (bench_.schedule.paused_ns() == 0) expect(from, bench_.now, &expected);
    EXPECT_EQ(times, expected);
  }

 private:
  // The times after `from` whose fires are due at `to`.
  void expect(TimeNs from, TimeNs to, std::map<TimeNs, int>* expected) const {
    const auto calendar = Calendar::make(bench_.schedule.definition().spec());
    for (TimeNs time = calendar->next(from); calendar->fire_time(time, bench_.schedule.key()) <= to;
         time = calendar->next(time)) {
      (*expected)[time] = 1;
    }
  }

  Bench& bench_;
};

}  // namespace fairlead::schedule
