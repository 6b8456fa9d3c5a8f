#include "schedule/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/assert.h"
#include "base/hash.h"

namespace fairlead::schedule {

namespace {

constexpr size_t kNameBytesMax = 64;
constexpr DurationNs kMicrosecond = 1'000;

bool is_safe(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == ':' ||
         c == '-';
}

// A name that may stand in a workflow id: as it is if it can, else with a mark of what it was.
std::string safe_name(const std::string& name) {
  std::string safe = name.substr(0, kNameBytesMax);
  for (char& c : safe) {
    if (!is_safe(c)) c = '-';
  }
  return safe == name ? safe : absl::StrFormat("%s-%08x", safe, stable_hash(name) >> 32);
}

// As history tells it: what the runs begin with is in the door's words already.
model::ScheduleDefinition told(model::ScheduleDefinition definition) {
  definition.clear_start();
  return definition;
}

bool stops_others(model::OverlapPolicy policy) {
  return policy == model::OVERLAP_CANCEL_OTHER || policy == model::OVERLAP_TERMINATE_OTHER;
}

bool buffers(model::OverlapPolicy policy) {
  return policy == model::OVERLAP_BUFFER_ONE || policy == model::OVERLAP_BUFFER_ALL;
}

}  // namespace

std::string workflow_id_of(const std::string& schedule_id, model::FireCause cause, TimeNs nominal) {
  const bool by_hand = cause == model::FIRE_BY_HAND;
  const char* word = by_hand ? "trigger:" : cause == model::FIRE_BY_BACKFILL ? "backfill:" : "";
  const char* format = by_hand ? "%Y%m%dT%H%M%E6SZ" : "%Y%m%dT%H%M%SZ";
  return absl::StrCat("schedule:", safe_name(schedule_id), ":", word,
                      absl::FormatTime(format, absl::FromUnixNanos(nominal), absl::UTCTimeZone()));
}

model::ScheduleEvent& Step::note(model::ScheduleEventKind kind) {
  schedule_.set_last_event(schedule_.last_event() + 1);
  if (schedule_.first_event() == 0) schedule_.set_first_event(1);
  auto& event = events.emplace_back();
  event.set_sequence(schedule_.last_event());
  event.set_kind(kind);
  event.set_time_ns(now);
  event.set_fires(schedule_.fires());
  event.set_skips(schedule_.skips());
  event.set_next_fire_ns(schedule_.next_fire_ns());
  return event;
}

bool Step::is_exhausted() const {
  return schedule_.definition().runs_max() > 0 && schedule_.remaining_runs() <= 0;
}

model::OverlapPolicy Step::policy_or_own(model::OverlapPolicy policy) const {
  return policy == model::OVERLAP_UNSPECIFIED ? schedule_.definition().overlap() : policy;
}

void Step::plan_at(TimeNs nominal) {
  const TimeNs next = is_active() && !is_exhausted() ? nominal : kNever;
  schedule_.set_next_nominal_ns(next == kNever ? 0 : next);
  schedule_.set_next_fire_ns(next == kNever ? 0 : calendar_->fire_time(next, schedule_.key()));
}

TimeNs Step::next_look(const model::Schedule& schedule) {
  if (schedule.deleted_ns() != 0) return schedule.delete_at_ns();
  return schedule.next_fire_ns() == 0 ? kNever : schedule.next_fire_ns();
}

// --- What people do -----------------------------------------------------------------------------

void Step::create(bool is_paused) {
  schedule_.set_created_ns(now);
  schedule_.set_updated_ns(now);
  schedule_.set_remaining_runs(schedule_.definition().runs_max());
  plan(now);
  *note(model::SCHEDULE_CREATED).mutable_definition() = told(schedule_.definition());
  if (is_paused) pause("");
}

void Step::update(const model::ScheduleDefinition& definition, const Calendar* calendar,
                  const std::vector<std::string>& changed) {
  pass_time();
  const auto before = schedule_.definition();
  *schedule_.mutable_definition() = definition;
  calendar_ = calendar;
  const auto& after = schedule_.definition();
  schedule_.set_updated_ns(now);
  if (after.runs_max() != before.runs_max()) {
    const auto asked = std::count_if(schedule_.open().begin(), schedule_.open().end(),
                                     [](const auto& fire) { return !fire.is_started(); });
    schedule_.set_remaining_runs(
        std::max<int64_t>(0, after.runs_max() - schedule_.fires() - asked));
  }
  const auto changes = [&](const auto& a, const auto& b) {
    return a.SerializeAsString() != b.SerializeAsString();
  };
  // A time that is waited for stays unless the calendar is another one.
  if (changes(after.spec(), before.spec()) || is_exhausted() || schedule_.next_fire_ns() == 0) {
    plan(now);
  }
  auto& event = note(model::SCHEDULE_UPDATED);
  *event.mutable_definition() = told(after);
  for (const auto& field : changed) event.add_changed(field);
}

bool Step::pause(const std::string& text) {
  if (!text.empty()) schedule_.mutable_definition()->set_note(text);
  if (schedule_.paused_ns() != 0) return false;
  pass_time();
  schedule_.set_paused_ns(now);
  schedule_.set_updated_ns(now);
  plan(now);
  note(model::SCHEDULE_PAUSED).set_reason(text);
  return true;
}

bool Step::resume(const std::string& text) {
  if (!text.empty()) schedule_.mutable_definition()->set_note(text);
  if (schedule_.paused_ns() == 0) return false;
  schedule_.set_paused_ns(0);
  schedule_.set_updated_ns(now);
  plan(now);
  note(model::SCHEDULE_RESUMED).set_reason(text);
  drain();
  return true;
}

void Step::remove(const std::string& reason) {
  if (schedule_.deleted_ns() != 0) return;
  pass_time();
  for (const auto& fire : schedule_.buffered()) skip(fire, kNotTriggerable);
  schedule_.clear_buffered();
  schedule_.set_deleted_ns(now);
  schedule_.set_updated_ns(now);
  plan(now);
  note(model::SCHEDULE_DELETED).set_reason(reason);
}

// --- Fires --------------------------------------------------------------------------------------

Fired Step::skip(const model::ScheduleFire& fire, const char* reason, std::string message) {
  schedule_.set_skips(schedule_.skips() + 1);
  schedule_.set_last_skip_reason(reason);
  schedule_.set_last_skip_ns(now);
  auto& event = note(model::SCHEDULE_TRIGGER_SKIPPED);
  event.set_reason(reason);
  event.set_message(message);
  *event.mutable_fire() = fire;
  Fired fired;
  fired.nominal = fire.nominal_ns();
  fired.reason = reason;
  fired.message = std::move(message);
  return fired;
}

Fired Step::fire(model::ScheduleFire fire) {
  if (!is_active()) return skip(fire, kNotTriggerable);
  if (is_exhausted()) return skip(fire, kExhausted);
  const bool waits = !schedule_.open().empty() || !schedule_.buffered().empty();
  if (!waits || fire.policy() == model::OVERLAP_ALLOW_ALL) return ask(std::move(fire));
  // What should have happened long ago is not made to wait even longer.
  if (buffers(fire.policy()) && fire.cause() == model::FIRE_BY_BACKFILL)
    return ask(std::move(fire));
  if (buffers(fire.policy())) {
    const int room = fire.policy() == model::OVERLAP_BUFFER_ONE ? 1 : kBufferedMax;
    if (schedule_.buffered_size() >= room) {
      auto fired = skip(fire, kBufferFull);
      fired.outcome = Fired::Outcome::kBufferFull;
      return fired;
    }
    Fired fired;
    fired.outcome = Fired::Outcome::kBuffered;
    fired.nominal = fire.nominal_ns();
    *schedule_.add_buffered() = std::move(fire);
    fired.buffered = schedule_.buffered_size();
    return fired;
  }
  if (!stops_others(fire.policy())) return skip(fire, kOverlaps);
  const auto kind = fire.policy() == model::OVERLAP_CANCEL_OTHER ? model::WORKFLOW_CANCELED
                                                                 : model::WORKFLOW_TERMINATED;
  for (auto& other : *schedule_.mutable_open()) stop(&other, kind);
  return ask(std::move(fire));
}

// A run that may not have started yet could not be found: it is stopped when it has.
void Step::stop(model::ScheduleFire* fire, model::EventKind kind) {
  if (fire->stop() != model::EVENT_UNSPECIFIED && fire->is_started()) return;  // it was asked to
  fire->set_stop(kind);
  if (!fire->is_started()) return;
  schedule_.set_last_number(schedule_.last_number() + 1);
  stops.push_back({schedule_.last_number(), *fire, kind});
}

Fired Step::ask(model::ScheduleFire fire) {
  schedule_.set_last_number(schedule_.last_number() + 1);
  fire.set_number(schedule_.last_number());
  fire.set_fired_ns(now);
  fire.set_workflow_id(workflow_id_of(schedule_.schedule_id(), fire.cause(), fire.nominal_ns()));
  fire.set_run_id(make_run_id_());
  if (schedule_.definition().runs_max() > 0) {
    schedule_.set_remaining_runs(schedule_.remaining_runs() - 1);
  }
  *schedule_.add_open() = fire;
  bound_open();
  starts.push_back(fire);
  Fired fired;
  fired.outcome = Fired::Outcome::kAsked;
  fired.nominal = fire.nominal_ns();
  fired.number = fire.number();
  fired.workflow_id = fire.workflow_id();
  fired.run_id = fire.run_id();
  return fired;
}

// Those whose start is not known yet are waited for, however many they are.
void Step::bound_open() {
  auto* open = schedule_.mutable_open();
  for (int i = 0; i < open->size() && open->size() > kOpenMax;) {
    if (open->Get(i).is_started()) {
      open->DeleteSubrange(i, 1);
    } else {
      ++i;
    }
  }
}

void Step::drain() {
  while (is_active() && schedule_.open().empty() && !schedule_.buffered().empty()) {
    model::ScheduleFire fire = std::move(*schedule_.mutable_buffered(0));
    schedule_.mutable_buffered()->DeleteSubrange(0, 1);
    if (is_exhausted()) {
      skip(fire, kExhausted);
    } else {
      ask(std::move(fire));
    }
  }
}

void Step::pass_time() {
  if (!is_active() || schedule_.next_fire_ns() == 0 || schedule_.next_fire_ns() > now) return;
  const TimeNs nominal = schedule_.next_nominal_ns();
  model::ScheduleFire due;
  due.set_nominal_ns(nominal);
  due.set_cause(model::FIRE_BY_TIME);
  due.set_policy(schedule_.definition().overlap());
  // What has gone by besides while nobody looked is not made up for, and not hidden either.
  TimeNs next = calendar_->next(nominal);
  int64_t missed = 0;
  const TimeNs missed_from = next;
  TimeNs missed_to = next;
  while (next != kNever && calendar_->fire_time(next, schedule_.key()) <= now) {
    missed_to = next;
    if (++missed >= kMissedMax) {
      next = calendar_->next(now);
      break;
    }
    next = calendar_->next(next);
  }
  fire(std::move(due));
  plan_at(next);
  if (missed == 0) return;
  schedule_.set_skips(schedule_.skips() + missed);
  schedule_.set_last_skip_reason(kMissed);
  schedule_.set_last_skip_ns(now);
  auto& event = note(model::SCHEDULE_TRIGGER_SKIPPED);
  event.set_reason(kMissed);
  event.set_missed(missed);
  event.set_missed_from_ns(missed_from);
  event.set_missed_to_ns(missed_to);
}

Fired Step::trigger(model::OverlapPolicy policy) {
  pass_time();
  model::ScheduleFire by_hand;
  // Two that come at once are two runs, whose ids differ.
  const TimeNs asked = std::max(now, schedule_.last_asked_ns() + kMicrosecond);
  by_hand.set_nominal_ns(asked);
  by_hand.set_cause(model::FIRE_BY_HAND);
  by_hand.set_policy(policy_or_own(policy));
  schedule_.set_last_asked_ns(asked);
  auto fired = fire(std::move(by_hand));
  if (is_exhausted()) plan(now);
  return fired;
}

absl::StatusOr<std::vector<Fired>> Step::backfill(TimeNs from, TimeNs to,
                                                  model::OverlapPolicy policy) {
  std::vector<TimeNs> times;
  for (TimeNs time = calendar_->next(from - 1); time < to; time = calendar_->next(time)) {
    times.push_back(time);
    if (times.size() > kBackfillMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("the schedule has more than ", kBackfillMax, " times in that range"));
    }
  }
  pass_time();
  std::vector<Fired> fired;
  for (const TimeNs time : times) {
    model::ScheduleFire late;
    late.set_nominal_ns(time);
    late.set_cause(model::FIRE_BY_BACKFILL);
    late.set_policy(policy_or_own(policy));
    fired.push_back(fire(std::move(late)));
  }
  if (is_exhausted()) plan(now);
  return fired;
}

// --- What became of them ------------------------------------------------------------------------

model::ScheduleFire* Step::find_open(int64_t number) {
  for (auto& fire : *schedule_.mutable_open()) {
    if (fire.number() == number) return &fire;
  }
  return nullptr;
}

void Step::forget_open(int64_t number) {
  auto* open = schedule_.mutable_open();
  open->erase(std::remove_if(open->begin(), open->end(),
                             [&](const auto& fire) { return fire.number() == number; }),
              open->end());
}

Fired Step::settle(int64_t number, const absl::StatusOr<std::string>& run_id) {
  Fired fired;
  auto* fire = find_open(number);
  if (fire == nullptr || fire->is_started()) return fired;  // it was told before
  fired.nominal = fire->nominal_ns();
  fired.workflow_id = fire->workflow_id();
  if (run_id.ok() && *run_id == fire->run_id()) {
    fire->set_is_started(true);
    schedule_.set_fires(schedule_.fires() + 1);
    schedule_.set_last_fire_ns(fire->fired_ns());
    *schedule_.add_recent() = *fire;
    if (schedule_.recent_size() > kRecentMax) schedule_.mutable_recent()->DeleteSubrange(0, 1);
    *note(model::SCHEDULE_TRIGGERED).mutable_fire() = *fire;
    fired.outcome = Fired::Outcome::kStarted;
    fired.run_id = fire->run_id();
    if (fire->stop() != model::EVENT_UNSPECIFIED) {
      const auto kind = fire->stop();
      fire->set_stop(model::EVENT_UNSPECIFIED);
      stop(fire, kind);
    }
    bound_open();
  } else {
    // It does not count among the runs that the schedule may start.
    const auto refused = *fire;
    forget_open(number);
    if (schedule_.definition().runs_max() > 0) {
      schedule_.set_remaining_runs(schedule_.remaining_runs() + 1);
    }
    const bool is_known = run_id.ok();
    if (!is_known) schedule_.set_failures(schedule_.failures() + 1);
    fired = skip(refused, is_known ? kAlreadyStarted : kStartFailed,
                 std::string(run_id.status().message()));
    fired.workflow_id = refused.workflow_id();
    if (is_known) fired.run_id = *run_id;
    fired.outcome = is_known ? Fired::Outcome::kSkipped : Fired::Outcome::kFailed;
    if (schedule_.next_fire_ns() == 0) plan(now);
    drain();
  }
  end_if_exhausted();
  return fired;
}

std::optional<Fired> Step::close(int64_t number) {
  const auto* fire = find_open(number);
  if (fire == nullptr) return std::nullopt;
  // A short-lived run may have ended before the news of its start came back.
  std::optional<Fired> fired;
  if (!fire->is_started()) fired = settle(number, std::string(fire->run_id()));
  forget_open(number);
  // Nobody is stopped who is not there.
  std::erase_if(stops, [&](const Stop& stop) { return stop.fire.number() == number; });
  drain();
  end_if_exhausted();
  return fired;
}

void Step::end_if_exhausted() {
  const bool is_waiting = std::any_of(schedule_.open().begin(), schedule_.open().end(),
                                      [](const auto& fire) { return !fire.is_started(); });
  if (schedule_.deleted_ns() != 0 || !is_exhausted() || is_waiting) return;
  remove(kMaxRuns);
}

}  // namespace fairlead::schedule
