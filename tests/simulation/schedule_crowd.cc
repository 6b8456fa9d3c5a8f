#include "simulation/schedule_crowd.h"

#include "absl/strings/str_cat.h"
#include "api/durable/schedules.h"

namespace fairlead::sim {

using durable::integer_of;
using durable::text_of;

namespace {

constexpr const char* kPolicies[] = {"skip",         "buffer_one",      "buffer_all",
                                     "cancel_other", "terminate_other", "allow_all"};
constexpr int kNotFoundHttp = 404;
constexpr int kConflictHttp = 409;

TimeNs time_of(const json::object& object, const char* name) {
  return durable::read_iso_time(text_of(object, name)).value_or(0);
}

}  // namespace

ScheduleCrowd::ScheduleCrowd(const World* world)
    : world_(*world), client_(std::make_shared<Process>(Process{"scheduler"})) {}

void ScheduleCrowd::fail(const Schedule& schedule, const std::string& what) {
  world_.auditor->fail(absl::StrCat("schedule ", schedule.id, " ", what));
}

void ScheduleCrowd::insist(const char* method, const std::string& path, const json::object& body,
                           Then then) {
  world_.ask_http(
      client_, method, path, body, 10 * kSecond,
      [this, method, path, body, then](const Outcome& outcome, const json::object& answer) {
        if (!outcome.is_unknown()) return then(outcome, answer);
        world_.later(client_, world_.scheduler->between(kMillisecond, kSecond),
                     [this, method, path, body, then] { insist(method, path, body, then); });
      });
}

void ScheduleCrowd::start(int schedules, DurationNs spread) {
  for (int i = 0; i < schedules; ++i) {
    auto schedule = std::make_shared<Schedule>();
    schedule->id = absl::StrCat("s", i);
    schedule->every = static_cast<int64_t>(3 + world_.random().below(12));
    if (world_.chance(0.4)) schedule->jitter = static_cast<int64_t>(world_.random().below(20));
    schedules_.push_back(schedule);
    world_.later(client_, world_.scheduler->between(0, spread / 2),
                 [this, schedule] { make(schedule); });
  }
}

void ScheduleCrowd::make(const SchedulePtr& schedule) {
  const json::object interval{{"every", absl::StrCat("PT", schedule->every, "S")}};
  insist("POST", "schedules",
         {{"schedule_id", schedule->id},
          {"spec", {{"intervals", json::array{interval}}}},
          {"action", {{"workflow_type", "any"}, {"task_queue", kFlowQueue}}},
          {"jitter_seconds", schedule->jitter},
          {"overlap_policy", kPolicies[world_.random().below(6)]}},
         [this, schedule](const Outcome& outcome, const json::object&) {
           // Its first attempt may have been heard.
           if (!outcome.ok() && outcome.code != kConflictHttp) {
             return fail(*schedule, "cannot be made: " + outcome.message);
           }
           schedule->is_made = true;
           if (schedule->is_over) return remove(schedule);
           meddle(schedule);
         });
}

void ScheduleCrowd::ask(const SchedulePtr& schedule, const char* method, const std::string& verb,
                        json::object body, std::function<void(const json::object&)> then) {
  const std::string path = absl::StrCat("schedules/", schedule->id, verb.empty() ? "" : "/", verb);
  insist(method, path, body,
         [this, schedule, path, then](const Outcome& outcome, const json::object& answer) {
           if (outcome.ok()) {
             then(answer);
           } else if (!schedule->is_over || outcome.code != kNotFoundHttp) {
             fail(*schedule, absl::StrCat("refuses ", path, ": ", outcome.message));
           }
           meddle(schedule);
         });
}

void ScheduleCrowd::meddle(const SchedulePtr& schedule) {
  world_.later(client_, world_.scheduler->between(0, 8 * kSecond), [this, schedule] {
    if (!is_stormy_) return;
    const json::object policy{{"overlap_policy", kPolicies[world_.random().below(6)]}};
    const auto nothing = [](const json::object&) {};
    switch (world_.random().below(6)) {
      case 0:
        return ask(schedule, "POST", "pause", {}, nothing);
      case 1:
      case 2:
        return ask(schedule, "POST", "resume", {}, nothing);
      case 3:
        return ask(schedule, "PUT", "", policy, nothing);
      case 4: {
        const TimeNs now = world_.scheduler->now();
        json::object range = policy;
        range["start_time"] = durable::format_time(now - 60 * kSecond);
        range["end_time"] = durable::format_time(now - 40 * kSecond);
        return ask(schedule, "POST", "backfill", range, [this](const json::object& answer) {
          for (const auto& each : answer.at("results").as_array()) {
            if (text_of(each.as_object(), "outcome") == "started") {
              world_.probes->hit(Probe::kScheduleBackfilled);
            }
          }
        });
      }
      default:
        return ask(schedule, "POST", "trigger", policy, [this, schedule](const auto& answer) {
          if (text_of(answer, "outcome") != "triggered") return;
          schedule->told[text_of(answer, "workflow_id")] = text_of(answer, "run_id");
          world_.probes->hit(Probe::kScheduleTriggered);
        });
    }
  });
}

// What was sent in the storm may still arrive.
void ScheduleCrowd::calm_down() {
  is_stormy_ = false;
  world_.later(client_, 5 * kSecond, [this] {
    for (const auto& schedule : schedules_) {
      schedule->is_over = true;
      if (schedule->is_made) remove(schedule);
    }
  });
}

void ScheduleCrowd::remove(const SchedulePtr& schedule) {
  insist("DELETE", absl::StrCat("schedules/", schedule->id), {},
         [this, schedule](const Outcome& outcome, const json::object&) {
           if (!outcome.ok() && outcome.code != kNotFoundHttp) {
             fail(*schedule, "cannot be deleted: " + outcome.message);
           }
         });
}

void ScheduleCrowd::settle(Started started) {
  started_ = std::move(started);
  for (const auto& schedule : schedules_) read_events(schedule, "0");
}

void ScheduleCrowd::read_events(const SchedulePtr& schedule, const std::string& after) {
  insist("GET",
         absl::StrCat("schedules/", schedule->id, "/history?limit=50&after_sequence=", after), {},
         [this, schedule](const Outcome& outcome, const json::object& page) {
           if (!outcome.ok()) return fail(*schedule, "is lost: " + outcome.message);
           for (const auto& event : page.at("events").as_array()) {
             schedule->events.push_back(event);
           }
           const auto next = integer_of(page, "next_cursor");
           if (next.has_value()) return read_events(schedule, absl::StrCat(*next));
           read_runs(schedule, "");
         });
}

void ScheduleCrowd::read_runs(const SchedulePtr& schedule, const std::string& token) {
  insist("GET",
         absl::StrCat("workflows?page_size=50&query=schedule:", schedule->id, ":",
                      token.empty() ? "" : "&next_page_token=", token),
         {}, [this, schedule](const Outcome& outcome, const json::object& page) {
           if (!outcome.ok()) return fail(*schedule, "has no runs: " + outcome.message);
           for (const auto& value : page.at("workflows").as_array()) {
             const auto& run = value.as_object();
             schedule->runs[text_of(run, "workflow_id")] = text_of(run, "run_id");
             const auto status = text_of(run, "status");
             if (status == "cancelled" || status == "terminated") {
               world_.probes->hit(Probe::kScheduleStopped);
             }
           }
           const auto next = text_of(page, "next_page_token");
           if (!next.empty()) return read_runs(schedule, next);
           check(*schedule);
           ++settled_;
         });
}

void ScheduleCrowd::check(const Schedule& schedule) {
  const DurationNs every = schedule.every * kSecond;
  const DurationNs jitter = schedule.jitter * kSecond;
  std::map<TimeNs, int> dealt_with;
  std::map<TimeNs, int> expected;  // 1: must be, 2: may be
  std::map<std::string, std::string> started;
  std::vector<std::pair<TimeNs, TimeNs>> pauses;
  TimeNs active_from = 0;  // 0: it is paused
  int64_t sequence = 0;
  const auto expect_until = [&](TimeNs end) {
    if (active_from == 0) return;
    for (TimeNs time = (active_from / every + 1) * every; time <= end; time += every) {
      expected[time] = time + jitter <= end ? 1 : 2;
    }
    active_from = 0;
  };
  for (const auto& value : schedule.events) {
    const auto& event = value.as_object();
    const auto type = text_of(event, "event_type");
    const auto& payload = event.at("payload").as_object();
    const TimeNs at = time_of(event, "recorded_at");
    const TimeNs nominal = time_of(payload, "occurrence_time");
    const bool is_by_time = text_of(payload, "cause") == "schedule";
    if (integer_of(event, "sequence") != ++sequence) return fail(schedule, "has lost a line");
    if (type == "ScheduleCreated" || type == "ScheduleResumed") active_from = at;
    if (type == "ScheduleResumed") pauses.back().second = at;
    if (type == "SchedulePaused" || type == "ScheduleDeleted") expect_until(at);
    if (type == "SchedulePaused") pauses.emplace_back(at, kNever);
    if (type == "SchedulePaused") world_.probes->hit(Probe::kSchedulePaused);
    if (type == "ScheduleTriggered") {
      const auto workflow = text_of(payload, "workflow_instance_id");
      if (!started.emplace(workflow, text_of(payload, "workflow_run_id")).second) {
        fail(schedule, absl::StrCat("has started ", workflow, " twice"));
      }
      const TimeNs fired = time_of(payload, "fired_at");
      for (const auto& [from, to] : pauses) {
        if (fired > from && fired < to) fail(schedule, "fired in a pause: " + workflow);
      }
      if (is_by_time) ++dealt_with[nominal];
      world_.probes->hit(Probe::kScheduleFired);
    }
    if (type == "ScheduleTriggerSkipped" && text_of(payload, "reason") == "missed") {
      world_.probes->hit(Probe::kScheduleMissed);
      const TimeNs to = time_of(payload, "missed_to");
      for (TimeNs time = time_of(payload, "missed_from"); time <= to; time += every) {
        ++dealt_with[time];
      }
    } else if (type == "ScheduleTriggerSkipped" && is_by_time) {
      ++dealt_with[nominal];
      world_.probes->hit(Probe::kScheduleSkipped);
    }
  }
  for (const auto& [time, count] : dealt_with) {
    if (count != 1) fail(schedule, absl::StrCat("dealt with ", time, " ", count, " times"));
    if (!expected.contains(time))
      fail(schedule, absl::StrCat("fired at ", time, ", no time of it"));
  }
  for (const auto& [time, kind] : expected) {
    if (kind == 1 && !dealt_with.contains(time)) fail(schedule, absl::StrCat("forgot ", time));
  }
  for (const auto& [workflow, run] : schedule.told) {
    if (started[workflow] != run) fail(schedule, absl::StrCat("never started ", workflow));
  }
  if (started != schedule.runs) {
    fail(schedule, absl::StrCat("tells of ", started.size(), " runs, and ", schedule.runs.size(),
                                " are there"));
  }
  for (const auto& [workflow, run] : schedule.runs) started_(workflow, run);
}

}  // namespace fairlead::sim
