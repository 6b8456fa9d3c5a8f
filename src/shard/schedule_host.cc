#include "shard/schedule_host.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

namespace keys = store::keys;

absl::Status not_found(const ScheduleRef& ref) {
  return errors::not_found(absl::StrCat("there is no schedule ", ref.schedule_id));
}

// A calendar that was fine when it was kept, and is not now (a time zone that went out of the
// world), has no more times.
schedule::Calendar calendar_of(const model::ScheduleDefinition& definition) {
  auto calendar = schedule::Calendar::make(definition.spec());
  return calendar.ok() ? *std::move(calendar) : schedule::Calendar();
}

Job done(Reply<Done> reply) {
  return [reply = std::move(reply)]() mutable { reply(Done{}); };
}

}  // namespace

// --- Rows ---------------------------------------------------------------------------------------

std::optional<model::Schedule> ScheduleHost::load(const std::string& key) const {
  const auto row = env_.store->get(keys::schedule(env_.shard, key));
  FL_ASSERT(row.ok(), "the store can be read");
  if (!row->has_value()) return std::nullopt;
  model::Schedule schedule;
  FL_ASSERT(schedule.ParseFromString(**row), "a schedule's row is a schedule");
  return schedule;
}

std::optional<std::string> ScheduleHost::key_of(const ScheduleRef& ref) const {
  const auto row = env_.store->get(keys::schedule_name(env_.shard, ref.ns, ref.schedule_id));
  FL_ASSERT(row.ok(), "the store can be read");
  return *row;
}

absl::StatusOr<model::Schedule> ScheduleHost::find(const ScheduleRef& ref) const {
  const auto key = key_of(ref);
  auto schedule = key.has_value() ? load(*key) : std::nullopt;
  if (!schedule.has_value() || schedule->deleted_ns() != 0) return not_found(ref);
  return *std::move(schedule);
}

bool ScheduleHost::is_of_deleted_namespace(const model::Schedule& schedule) const {
  const auto ns = env_.namespaces->find_by_num(schedule.namespace_num());
  return ns == nullptr || ns->state() == model::NamespaceRow::DELETED;
}

void ScheduleHost::erase(const model::Schedule& schedule, store::WriteBatch* batch) {
  const std::string& key = schedule.key();
  const ScheduleRef ref{NamespaceNum(schedule.namespace_num()), schedule.schedule_id()};
  if (key_of(ref) == key) {
    batch->erase(keys::schedule_name(env_.shard, ref.ns, ref.schedule_id));
  }
  batch->erase(keys::schedule(env_.shard, key));
  const auto events = keys::schedule_events(env_.shard, key);
  batch->erase_range(events.begin, events.end);
  if (schedule.armed_ns() != 0) env_.wakeups->disarm(schedule.armed_ns(), key, batch);
}

// --- Steps --------------------------------------------------------------------------------------

template <typename Act>
void ScheduleHost::step(model::Schedule& schedule, Act act) {
  const auto calendar = calendar_of(schedule.definition());
  schedule::Step step(&schedule, &calendar, now(), env_.make_id);
  store::WriteBatch batch;
  Job then = act(step, batch);
  write(schedule, step, std::move(batch), std::move(then));
}

void ScheduleHost::write(model::Schedule& schedule, schedule::Step& step, store::WriteBatch batch,
                         Job then) {
  const std::string& key = schedule.key();
  if (schedule.deleted_ns() != 0 && schedule.delete_at_ns() == 0) {
    const auto ns = env_.namespaces->find_by_num(schedule.namespace_num());
    schedule.set_delete_at_ns(add_saturated(step.now, ns == nullptr ? 0 : ns->retention_ns()));
  }
  for (const auto& event : step.events) {
    batch.put(keys::schedule_event(env_.shard, key, event.sequence()), event.SerializeAsString());
    if (event.kind() == model::SCHEDULE_TRIGGERED) ++stats_.fires;
    if (event.kind() == model::SCHEDULE_TRIGGER_SKIPPED) {
      stats_.skips += static_cast<uint64_t>(std::max<int64_t>(1, event.missed()));
    }
  }
  const int64_t first = schedule.last_event() - schedule::kEventsMax + 1;
  for (int64_t old = schedule.first_event(); old < first; ++old) {
    batch.erase(keys::schedule_event(env_.shard, key, old));
  }
  schedule.set_first_event(std::max(schedule.first_event(), first));

  std::vector<std::pair<int64_t, model::Letter>> letters;
  for (const auto& fire : step.starts) {
    letters.emplace_back(fire.number(), start_letter(schedule, fire));
  }
  for (const auto& stop : step.stops)
    letters.emplace_back(stop.number, stop_letter(schedule, stop));
  for (const auto& [number, letter] : letters) {
    batch.put(keys::letter(env_.shard, key, number), letter.SerializeAsString());
  }
  arm(schedule, &batch);
  batch.put(keys::schedule(env_.shard, key), schedule.SerializeAsString());
  env_.commits->write(batch);
  for (auto& [number, letter] : letters) env_.deliver(key, number, std::move(letter));
  env_.commits->after_durable(std::move(then));
  env_.armed();
}

void ScheduleHost::arm(model::Schedule& schedule, store::WriteBatch* batch) {
  const TimeNs next = schedule::Step::next_look(schedule);
  const TimeNs armed = schedule.armed_ns();
  if (armed == (next == kNever ? 0 : next)) return;
  if (armed != 0) env_.wakeups->disarm(armed, schedule.key(), batch);
  if (next != kNever) env_.wakeups->arm(next, schedule.key(), batch);
  schedule.set_armed_ns(next == kNever ? 0 : next);
}

model::Letter ScheduleHost::start_letter(const model::Schedule& schedule,
                                         const model::ScheduleFire& fire) const {
  model::Letter letter;
  auto* body = letter.mutable_start_scheduled();
  auto* start = body->mutable_start();
  *start = schedule.definition().start();
  const auto& codec = env_.codec(start->flavour());
  start->set_workflow_id(fire.workflow_id());
  start->set_start_door(codec.name_start(start->start_door(), fire.workflow_id()));
  start->set_start_envelope(codec.name_start(start->start_envelope(), fire.workflow_id()));
  body->mutable_schedule()->set_schedule_id(schedule.schedule_id());
  body->mutable_schedule()->set_key(schedule.key());
  body->mutable_schedule()->set_fire(fire.number());
  letter.set_namespace_num(schedule.namespace_num());
  letter.mutable_to()->set_workflow_id(fire.workflow_id());
  letter.mutable_to()->set_run_id(fire.run_id());
  // The same for the same time, so that a backfill which comes again finds what it has started.
  letter.set_request_id(absl::StrCat(uuid_from_bytes(schedule.key()), "/", fire.workflow_id()));
  letter.set_flavour(start->flavour());
  return letter;
}

model::Letter ScheduleHost::stop_letter(const model::Schedule& schedule,
                                        const schedule::Stop& stop) {
  model::Letter letter;
  auto* body = letter.mutable_stop_scheduled();
  body->set_kind(stop.kind);
  body->set_first_run_id(stop.fire.run_id());
  letter.set_namespace_num(schedule.namespace_num());
  letter.mutable_to()->set_workflow_id(stop.fire.workflow_id());
  letter.set_flavour(schedule.definition().start().flavour());
  return letter;
}

// --- What people do -----------------------------------------------------------------------------

void ScheduleHost::create(CreateSchedule request, Reply<Done> reply) {
  const auto& ref = request.schedule;
  model::Schedule schedule;
  schedule.set_namespace_num(ref.ns.value());
  schedule.set_schedule_id(ref.schedule_id);
  schedule.set_key(uuid_to_bytes(env_.make_id()));
  *schedule.mutable_definition() = std::move(request.definition);
  if (is_of_deleted_namespace(schedule)) return reply(errors::namespace_not_found("deleted"));
  const auto calendar = schedule::Calendar::make(schedule.definition().spec());
  if (!calendar.ok()) return reply(calendar.status());
  const auto before_key = key_of(ref);
  const auto before = before_key.has_value() ? load(*before_key) : std::nullopt;
  if (before.has_value() && before->deleted_ns() == 0) {
    return reply(absl::AlreadyExistsError(
        absl::StrCat("there is a schedule ", ref.schedule_id, " already")));
  }
  step(schedule, [&](schedule::Step& step, store::WriteBatch& batch) -> Job {
    // The history of one that had the id and was deleted goes with it.
    if (before.has_value()) erase(*before, &batch);
    batch.put(keys::schedule_name(env_.shard, ref.ns, ref.schedule_id), schedule.key());
    step.create(request.is_paused);
    return done(std::move(reply));
  });
}

void ScheduleHost::describe(const ScheduleRef& ref, Reply<model::Schedule> reply) {
  auto found = find(ref);
  env_.commits->after_durable(
      [reply = std::move(reply), found = std::move(found)]() mutable { reply(std::move(found)); });
}

void ScheduleHost::update(UpdateSchedule request, Reply<Done> reply) {
  auto found = find(request.schedule);
  if (!found.ok()) return reply(found.status());
  auto definition = found->definition();
  std::vector<std::string> changed;
  if (const auto status = request.change(definition, &changed); !status.ok()) return reply(status);
  const auto calendar = schedule::Calendar::make(definition.spec());
  if (!calendar.ok()) return reply(calendar.status());
  step(*found, [&](schedule::Step& step, store::WriteBatch&) -> Job {
    step.update(definition, &*calendar, changed);
    return done(std::move(reply));
  });
}

void ScheduleHost::pause(const PauseSchedule& request, Reply<Done> reply) {
  auto found = find(request.schedule);
  if (!found.ok()) return reply(found.status());
  step(*found, [&](schedule::Step& step, store::WriteBatch&) -> Job {
    request.pauses ? step.pause(request.note) : step.resume(request.note);
    return done(std::move(reply));
  });
}

void ScheduleHost::remove(const ScheduleRef& ref, Reply<Done> reply) {
  auto found = find(ref);
  if (!found.ok()) return reply(found.status());
  step(*found, [&](schedule::Step& step, store::WriteBatch&) -> Job {
    step.remove(schedule::kDeleted);
    return done(std::move(reply));
  });
}

void ScheduleHost::trigger(const TriggerSchedule& request, Reply<schedule::Fired> reply) {
  auto found = find(request.schedule);
  if (!found.ok()) return reply(found.status());
  step(*found, [&](schedule::Step& step, store::WriteBatch&) -> Job {
    auto fired = step.trigger(request.policy);
    if (fired.outcome == schedule::Fired::Outcome::kAsked) {
      await(found->key(), fired.number, std::move(reply));
      return [] {};
    }
    return
        [reply = std::move(reply), fired = std::move(fired)]() mutable { reply(std::move(fired)); };
  });
}

void ScheduleHost::backfill(const BackfillSchedule& request,
                            Reply<std::vector<schedule::Fired>> reply) {
  auto found = find(request.schedule);
  if (!found.ok()) return reply(found.status());
  // Each of the starts, and the step itself, is heard of once it is durable.
  struct Gathering {
    Reply<std::vector<schedule::Fired>> reply;
    std::vector<schedule::Fired> fired;
    std::atomic<size_t> left{1};
    void count_down() {
      if (--left == 0) reply(std::move(fired));
    }
  };
  auto gathering = std::make_shared<Gathering>();
  step(*found, [&](schedule::Step& step, store::WriteBatch&) -> Job {
    auto fired = step.backfill(request.from, request.to, request.policy);
    if (!fired.ok()) {
      return [reply = std::move(reply), status = fired.status()]() mutable { reply(status); };
    }
    gathering->reply = std::move(reply);
    gathering->fired = *std::move(fired);
    for (size_t i = 0; i < gathering->fired.size(); ++i) {
      if (gathering->fired[i].outcome != schedule::Fired::Outcome::kAsked) continue;
      ++gathering->left;
      await(found->key(), gathering->fired[i].number, [gathering, i](auto heard) {
        if (heard.ok()) gathering->fired[i] = *std::move(heard);
        gathering->count_down();
      });
    }
    return [gathering] { gathering->count_down(); };
  });
}

void ScheduleHost::read_history(const ScheduleHistoryRequest& request,
                                Reply<ScheduleHistoryPage> reply) {
  const auto key = key_of(request.schedule);
  if (!key.has_value()) return reply(not_found(request.schedule));
  ScheduleHistoryPage page;
  const auto range = keys::schedule_events(env_.shard, *key);
  const auto begin = keys::schedule_event(env_.shard, *key, request.after_sequence + 1);
  const auto status =
      env_.store->scan(begin, range.end, [&](std::string_view, std::string_view value) {
        page.has_more = static_cast<int64_t>(page.events.size()) == request.max;
        if (page.has_more) return false;
        FL_ASSERT(
            page.events.emplace_back().ParseFromArray(value.data(), static_cast<int>(value.size())),
            "a line of a schedule's history is one");
        return true;
      });
  FL_ASSERT(status.ok(), "the store can be read");
  env_.commits->after_durable(
      [reply = std::move(reply), page = std::move(page)]() mutable { reply(std::move(page)); });
}

// --- Time and letters ---------------------------------------------------------------------------

bool ScheduleHost::wake(const std::string& key, TimeNs at) {
  auto schedule = load(key);
  if (!schedule.has_value()) return false;
  if (schedule->armed_ns() != at) return true;  // it was moved meanwhile
  const bool is_over = schedule->deleted_ns() != 0 && schedule->delete_at_ns() <= now();
  if (is_over || is_of_deleted_namespace(*schedule)) {
    store::WriteBatch batch;
    erase(*schedule, &batch);
    env_.commits->write(batch);
    return true;
  }
  step(*schedule, [&](schedule::Step& step, store::WriteBatch& batch) -> Job {
    env_.wakeups->disarm(at, key, &batch);
    schedule->set_armed_ns(0);
    step.pass_time();
    return [] {};
  });
  return true;
}

void ScheduleHost::settle(const std::string& key, int64_t number,
                          const absl::StatusOr<std::string>& run_id) {
  auto schedule = load(key);
  if (!schedule.has_value()) {
    store::WriteBatch batch;
    batch.erase(keys::letter(env_.shard, key, number));
    env_.commits->write(batch);
    env_.commits->after_durable(tell(key, number, errors::not_found("the schedule is gone")));
    return;
  }
  step(*schedule, [&](schedule::Step& step, store::WriteBatch& batch) -> Job {
    batch.erase(keys::letter(env_.shard, key, number));
    return tell(key, number, step.settle(number, run_id));
  });
}

void ScheduleHost::close_run(const model::ScheduleName& name, Job done) {
  auto schedule = load(name.key());
  if (!schedule.has_value()) {
    env_.commits->after_durable(std::move(done));
    return;
  }
  step(*schedule, [&](schedule::Step& step, store::WriteBatch&) -> Job {
    auto fired = step.close(name.fire());
    Job told = [] {};
    if (fired.has_value()) told = tell(name.key(), name.fire(), *std::move(fired));
    return [done = std::move(done), told = std::move(told)]() mutable {
      told();
      done();
    };
  });
}

bool ScheduleHost::purge(NamespaceNum ns) {
  const auto range = keys::schedule_names(env_.shard, ns);
  std::vector<std::string> found;
  const auto status =
      env_.store->scan(range.begin, range.end, [&](std::string_view, std::string_view key) {
        found.emplace_back(key);
        return true;
      });
  FL_ASSERT(status.ok(), "the store can be read");
  for (const auto& key : found) {
    store::WriteBatch batch;
    if (const auto schedule = load(key)) erase(*schedule, &batch);
    // Runs that were asked for and have not begun are not wanted any more.
    const auto letters = keys::letters(env_.shard, key);
    batch.erase_range(letters.begin, letters.end);
    env_.commits->write(batch);
  }
  return !found.empty();
}

// --- Who waits ----------------------------------------------------------------------------------

void ScheduleHost::await(const std::string& key, int64_t number, Reply<schedule::Fired> heard) {
  if (is_closed_) return heard(errors::unavailable("the server is stopping"));
  waiting_[{key, number}] = std::move(heard);
}

Job ScheduleHost::tell(const std::string& key, int64_t number,
                       absl::StatusOr<schedule::Fired> fired) {
  const auto found = waiting_.find({key, number});
  if (found == waiting_.end()) return [] {};
  auto heard = std::move(found->second);
  waiting_.erase(found);
  return
      [heard = std::move(heard), fired = std::move(fired)]() mutable { heard(std::move(fired)); };
}

void ScheduleHost::close() {
  is_closed_ = true;
  auto waiting = std::move(waiting_);
  waiting_.clear();
  for (auto& [fire, heard] : waiting) heard(errors::unavailable("the server is stopping"));
}

}  // namespace fairlead::shard
