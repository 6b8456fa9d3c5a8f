#include "shard/shard.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/callbacks.h"
#include "history/chain.h"
#include "history/deadlines.h"
#include "history/durable.h"
#include "history/lifecycle.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {
constexpr size_t kWakeupsPerTick = 256;
constexpr DurationNs kSweepEvery = kMinute;
}  // namespace

Shard::Shard(ShardId id, Executor* executor, World world, Random random)
    : id_(id),
      executor_(executor),
      world_(world),
      random_(random),
      runs_(id, world.store, world.cache_bytes),
      wakeups_(id, world.store),
      queues_(QueueHost::Env{
          .shard = id,
          .store = world.store,
          .clock = world.clock,
          .alarms = &alarms_,
          .dispatch =
              [this](PollPtr poll, QueueAddress queue, queue::Waiting waiting) {
                run_on(waiting.task.shard, [poll = std::move(poll), queue = std::move(queue),
                                            owner = id_, waiting](Shard& shard) mutable {
                  shard.start_task(std::move(poll), std::move(queue), owner, waiting);
                });
              },
          .dispatch_query =
              [this](PollPtr poll, QueueAddress queue, DirectQuery query) {
                const ShardId home = query.shard;
                run_on(home, [poll = std::move(poll), queue = std::move(queue),
                              query = std::move(query)](Shard& shard) mutable {
                  shard.start_query(std::move(poll), std::move(queue), std::move(query));
                });
              },
          .sticky_lost =
              [this](const queue::Task& task) {
                run_on(task.shard, [task](Shard& shard) { shard.release_sticky_task(task); });
              },
          .write = [this](const store::WriteBatch& batch) { world_.commits->write(batch); },
          .settings = [this](const QueueName& queue) { return settings_of(queue); },
          .desk = world.desk,
          .sessions = world.sessions,
          .observer = world.observer,
      }),
      schedules_(ScheduleHost::Env{
          .shard = id,
          .store = world.store,
          .commits = world.commits,
          .clock = world.clock,
          .wakeups = &wakeups_,
          .namespaces = world.namespaces,
          .make_id = [this] { return make_uuid(random_, now()); },
          .codec = [this](model::Flavour flavour) -> const history::Codec& {
            return *(flavour == model::DURABLE ? world_.durable_codec : world_.codec);
          },
          .deliver =
              [this](const std::string& key, int64_t number, model::Letter letter) {
                deliver({id_, key, number}, std::move(letter));
              },
          .armed = [this] { schedule_tick(); },
      }) {}

void Shard::open() {
  sweep_at_ = now() + kSweepEvery;
  resume_letters(store::keys::letters(id_).begin);
  tick();
}

void Shard::close() {
  is_closed_ = true;
  queues_.answer_all_polls();
  schedules_.close();
  alarms_.run_due(kNever);
}

void Shard::run_on(ShardId target, absl::AnyInvocable<void(Shard&)> job) {
  Shard& shard = world_.peers->shard(target);
  if (shard.executor().is_current()) {
    job(shard);
    return;
  }
  shard.executor().post([&shard, job = std::move(job)]() mutable {
    job(shard);
    shard.schedule_tick();
  });
}

ShardId Shard::owner_of(const QueueAddress& queue) const {
  return world_.peers->shard_of_queue(queue.name.ns, static_cast<model::TaskKind>(queue.name.type),
                                      queue.normal);
}

namespace {

// What a namespace's data say about its queues.
void apply_data(const google::protobuf::Map<std::string, std::string>& data,
                queue::Settings* settings) {
  const auto said = [&](const char* name, const char* value) {
    const auto found = data.find(name);
    return found != data.end() && found->second == value;
  };
  const auto number = [&](const char* name, uint32_t min, uint32_t max, uint32_t* setting) {
    const auto found = data.find(name);
    uint32_t value = 0;
    if (found == data.end() || !absl::SimpleAtoi(found->second, &value)) return;
    if (value >= min && value <= max) *setting = value;
  };
  if (said("fairlead.fairness", "on")) settings->order = queue::Order::kFair;
  if (said("fairlead.fairness", "off")) settings->order = queue::Order::kFifo;
  if (said("fairlead.first_turn", "prompt")) settings->is_prompt = true;
  if (said("fairlead.first_turn", "scheduled")) settings->is_prompt = false;
  if (said("fairlead.transition", "drain")) settings->transition = model::QueueRules::DRAIN;
  if (said("fairlead.transition", "drain-per-level")) {
    settings->transition = model::QueueRules::DRAIN_PER_LEVEL;
  }
  if (said("fairlead.transition", "immediate")) settings->transition = model::QueueRules::IMMEDIATE;
  number("fairlead.levels", 1, queue::kLevelsMax, &settings->levels);
  number("fairlead.lower_level_share", 0, queue::kLowerLevelShareMax, &settings->lower_level_share);
}

}  // namespace

// The namespace's data speak for its queues, as far as neither the file of settings nor their own
// rules do. Asked at every turn.
queue::Settings Shard::settings_of(const QueueName& queue) const {
  auto settings = world_.queue_settings;
  const auto row = world_.namespaces->find_by_num(queue.ns.value());
  if (row == nullptr) return settings;
  if (!row->data().empty()) apply_data(row->data(), &settings);
  if (!world_.queue_exceptions.empty()) {
    queue::apply_exceptions(world_.queue_exceptions, row->name(), queue, &settings);
  }
  return settings;
}

void Shard::set_queue_settings(const queue::Settings& settings,
                               std::vector<queue::Exception> exceptions) {
  world_.queue_settings = settings;
  world_.queue_exceptions = std::move(exceptions);
}

DurationNs Shard::retention(const RunEntry& entry) const {
  const auto row = world_.namespaces->find_by_num(entry.run.state.namespace_num());
  return row == nullptr ? 0 : row->retention_ns();
}

// --- Runs ---------------------------------------------------------------------------------------

std::string Shard::current_row(NamespaceNum ns, const std::string& workflow_id,
                               model::Flavour flavour) const {
  return flavour == model::STANDALONE ? store::keys::current_activity(id_, ns, workflow_id)
                                      : store::keys::current_run(id_, ns, workflow_id);
}

std::string Shard::current_row(const model::RunState& state) const {
  return current_row(NamespaceNum(state.namespace_num()), state.workflow_id(), state.flavour());
}

absl::StatusOr<std::string> Shard::current_run(NamespaceNum ns, const std::string& workflow_id,
                                               model::Flavour flavour) {
  const auto key = current_row(ns, workflow_id, flavour);
  const auto starting = starting_.find(key);
  if (starting != starting_.end()) return starting->second;
  const auto row = world_.store->get(key);
  if (!row.ok()) return errors::unavailable(row.status().ToString());
  if (!row->has_value()) return history::missing_run(flavour, workflow_id, "");
  return **row;
}

absl::StatusOr<std::string> Shard::resolve(const RunRef& run) {
  if (run.run_id.empty()) return current_run(run.ns, run.workflow_id, run.flavour);
  auto key = uuid_to_bytes(run.run_id);
  if (key.empty()) return errors::invalid_argument("Invalid RunId.");
  return key;
}

void Shard::with_entry(const std::string& key, Use use, absl::AnyInvocable<void()> absent) {
  auto* entry = runs_.find(key);
  if (entry == nullptr) {
    absent();
  } else if (entry->is_locked) {
    entry->waiting.push_back(
        [this, key, use = std::move(use), absent = std::move(absent)]() mutable {
          with_entry(key, std::move(use), std::move(absent));
        });
  } else {
    use(*entry);
  }
}

void Shard::with_run(RunRef run, Use use, Refuse refuse) {
  const auto key = resolve(run);
  if (!key.ok()) {
    refuse(key.status());
    return;
  }
  const auto not_found = [](const RunRef& missing) {
    return history::missing_run(missing.flavour, missing.workflow_id, missing.run_id);
  };
  auto* entry = runs_.find(*key);
  const bool is_asked_for = entry != nullptr && entry->run.state.workflow_id() == run.workflow_id &&
                            entry->run.state.namespace_num() == run.ns.value() &&
                            entry->run.state.flavour() == run.flavour;
  if (!is_asked_for) {
    refuse(not_found(run));
  } else if (!entry->is_locked) {
    use(*entry);
  } else {
    // The step that it waits for may be the run's last one.
    with_entry(*key, std::move(use),
               [run = std::move(run), refuse = std::move(refuse), not_found]() mutable {
                 refuse(not_found(run));
               });
  }
}

// --- Steps --------------------------------------------------------------------------------------

Shard::StepPtr Shard::begin(RunEntry& entry) {
  auto step = std::make_unique<Step>();
  add_part(*step, entry);
  return step;
}

Step::Part& Shard::add_part(Step& step, RunEntry& entry) {
  FL_ASSERT(!entry.is_locked, "one step at a time on a run");
  entry.is_locked = true;
  step.parts.push_back(std::make_unique<Step::Part>(Step::Part{
      &entry,
      history::Transaction(&entry.run, &codec_of(entry), world_.limits, now(), retention(entry))}));
  // A run that begins with the history of another has no worker of its own yet.
  auto& part = *step.parts.back();
  part.held_task = !entry.is_new && entry.run.is_open() && entry.run.has_started_task();
  if (part.held_task) part.held_key = entry.run.state.workflow_task().lease_key();
  auto& tx = part.tx;
  if (tx.state().has_retry_policy() || !tx.state().cron_schedule().empty()) {
    tx.successor_run_id = make_uuid(random_, tx.now);
  }
  return part;
}

void Shard::finish(StepPtr step) {
  for (size_t i = 0; i < step->parts.size(); ++i) {
    auto& part = *step->parts[i];
    part.tx.finish();
    drop_tasks(*step, part);
    post_letters(*step, part);
    make_calls(*step, part);
    if (part.tx.successor().has_value()) add_successor(*step, i);
  }
  offer_tasks(std::move(step));
}

// The run that follows one that closes is written with its end, so that a chain has no gap.
void Shard::add_successor(Step& step, size_t part) {
  auto* last = step.parts[part]->entry;
  const auto successor = *step.parts[part]->tx.successor();
  const auto& closing = successor.closing;
  auto asked = closing.kind() == model::WORKFLOW_CONTINUED_AS_NEW
                   ? closing.workflow_closed().next()
                   : codec_of(*last).begin_again(event_bytes(*last, 1), closing);
  auto* next = runs_.create(uuid_to_bytes(successor.run_id));
  auto& state = next->run.state;
  history::continue_chain(last->run.state, successor, asked, &state);
  starting_[current_row(state)] = next->key;
  auto& added = add_part(step, *next);
  history::start_run(added.tx,
                     {successor.backoff, std::move(*asked.mutable_start_door()), "", false,
                      history::inherited_callbacks(last->run, successor.initiator)});
  ++stats_.runs_started;
}

void Shard::drop_tasks(Step& step, Step::Part& part) {
  const NamespaceNum ns(part.entry->run.state.namespace_num());
  for (const auto& drop : part.tx.drops()) {
    const auto queue = address_of(ns, drop.kind, drop.place.queue());
    const queue::Place place = place_from(drop.place);
    const ShardId owner = owner_of(queue);
    step.batch.erase(task_row(owner, queue.name, place));
    step.after_write.push_back([this, owner, queue, place] {
      run_on(owner, [queue, place](Shard& shard) {
        shard.queues_.remove(queue, place);
        shard.schedule_tick();
      });
    });
  }
  for (const auto& end : part.tx.lease_ends()) {
    model::QueueTarget target;
    target.set_name(end.lease.queue());
    const auto queue = address_of(ns, model::ACTIVITY_TASK, target);
    const ShardId owner = owner_of(queue);
    step.batch.erase(store::keys::lease(owner, queue.name, part.entry->key, end.scheduled_id));
    step.after_write.push_back(
        [this, owner, queue, ns, session = end.lease.session_id(), key = end.lease.fairness_key()] {
          world_.desk->release(queue.name);
          if (!session.empty()) world_.sessions->release(ns, session);
          run_on(owner, [queue, key](Shard& shard) {
            shard.queues_.release(queue, key);
            shard.schedule_tick();
          });
        });
  }
}

// Counts the task as running, until somebody says that it is not. Of an activity there is a row
// that says so; of a workflow task it is the run's own.
void Shard::lease(Step& step, Step::Part& part, const QueueAddress& queue, const std::string& key,
                  int64_t scheduled_id) {
  if (queue.name.type == model::WORKFLOW_TASK) {
    part.tx.state().mutable_workflow_task()->set_lease_key(key);
    return;
  }
  auto* activity = part.entry->run.find_activity(scheduled_id);
  FL_ASSERT(activity != nullptr, "the activity was started in this step");
  activity->mutable_lease()->set_queue(queue.name.name);
  activity->mutable_lease()->set_fairness_key(key);
  model::LeaseRow row;
  row.set_fairness_key(key);
  row.set_started_ns(part.tx.now);
  if (const auto& session = activity->scheduled().session().session_id(); !session.empty()) {
    activity->mutable_lease()->set_session_id(session);
    row.set_session_id(session);
  }
  step.batch.put(store::keys::lease(owner_of(queue), queue.name, part.entry->key, scheduled_id),
                 row.SerializeAsString());
}

// Offers the step's new tasks to their queues, one after the other. For a queue on another executor
// the step travels there and back, with its runs locked meanwhile; queues on this one come last and
// answer at once, so that what they have to remember is written before anything else of theirs. A
// task that its maker takes along from a queue on another executor, and that the queue has to
// remember, brings the step there once more, to be written.
void Shard::offer_tasks(StepPtr step) {
  for (auto& part : step->parts) {
    auto& offers = part->tx.offers();
    const auto is_here = [&](const history::TaskOffer& offer) {
      const auto queue =
          address_of(NamespaceNum(part->entry->run.state.namespace_num()), offer.kind, offer.queue);
      return world_.peers->shard(owner_of(queue)).executor().is_current();
    };
    std::stable_partition(offers.begin() + static_cast<std::ptrdiff_t>(part->next_offer),
                          offers.end(),
                          [&](const history::TaskOffer& offer) { return !is_here(offer); });
  }
  const bool starts_elsewhere =
      step->start.has_value() && !world_.peers->shard(step->start->owner).executor().is_current();
  for (const bool here : {false, true}) {
    for (auto& part : step->parts) {
      auto& offers = part->tx.offers();
      while (part->next_offer < offers.size()) {
        const history::TaskOffer offer = offers[part->next_offer];
        const auto queue = address_of(NamespaceNum(part->entry->run.state.namespace_num()),
                                      offer.kind, offer.queue);
        Shard& owner = world_.peers->shard(owner_of(queue));
        const bool is_here = owner.executor().is_current();
        if (is_here && !here) break;
        if (is_here) {
          const QueueHost::Writing writing{starts_elsewhere ? nullptr : &step->batch};
          settle_offer(*step, *part, offer, queue,
                       owner.queues_.offer(queue, offer.priority, stream_of(*part, offer),
                                           along(*step, *part, offer), writing));
          continue;
        }
        auto* current = part.get();
        owner.executor().post(
            [this, &owner, current, offer, queue, step = std::move(step)]() mutable {
              // Written in one place: where the first of them lives whose start leaves rows.
              const QueueHost::Writing writing{nullptr, !step->start.has_value()};
              auto offered = owner.queues_.offer(queue, offer.priority, stream_of(*current, offer),
                                                 along(*step, *current, offer), writing);
              executor_->post([this, current, offer, queue, offered = std::move(offered),
                               step = std::move(step)]() mutable {
                settle_offer(*step, *current, offer, queue, std::move(offered));
                offer_tasks(std::move(step));
              });
            });
        return;
      }
    }
  }
  write(std::move(step));
}

// Only Durable Workflow's workers say which types they take.
queue::Stream Shard::stream_of(const Step::Part& part, const history::TaskOffer& offer) {
  auto& run = part.entry->run;
  queue::Stream stream{run.state.version(), ramp_slot(run.state.workflow_id())};
  if (!history::is_durable(run.state)) return stream;
  if (offer.kind == model::WORKFLOW_TASK) {
    stream.type = queue::task_type(run.state.workflow_type());
    return stream;
  }
  const auto* activity = run.find_activity(offer.scheduled_id);
  if (activity == nullptr) return stream;
  stream.type = queue::task_type(activity->scheduled().activity_type());
  if (activity->scheduled().has_session()) {
    stream.version =
        admission::session_stream(run.state.version(), terms_from(activity->scheduled().session()));
  }
  return stream;
}

std::optional<QueueHost::Along> Shard::along(const Step& step, const Step::Part& part,
                                             const history::TaskOffer& offer) {
  if (!offer.is_eager || !step.eager.has_value()) return std::nullopt;
  QueueHost::Along along;
  if (offer.kind == model::WORKFLOW_TASK) {
    if (part.held_task) along.gives_back = part.held_key;
    along.goes_on = step.eager->goes_on;
  }
  return along;
}

void Shard::settle_offer(Step& step, Step::Part& part, const history::TaskOffer& offer,
                         const QueueAddress& queue, QueueHost::Offered offered) {
  auto& run = part.entry->run;
  if (offered.permit.has_value()) step.permits.push_back(std::move(*offered.permit));
  if (offered.hold.has_value()) step.holds.push_back(std::move(*offered.hold));
  if (offered.claim.has_value()) {
    FL_ASSERT(!step.start.has_value(), "a step is written in one place");
    step.start = Step::Start{owner_of(queue), queue, *std::move(offered.claim), true};
  }
  if (offered.poll != nullptr) {
    ++stats_.tasks_matched_at_once;
    ++part.next_offer;
    const bool is_wanted =
        begin_taken_task(part, offered.poll->request.identity, offer.kind, offer.scheduled_id,
                         offer.stamp, offered.poll_from_sticky);
    FL_ASSERT(is_wanted, "a task is wanted in the step that makes it");
    lease(step, part, queue, offered.key, offer.scheduled_id);
    answer_taken_task(step, part, std::move(offered.poll), offer.kind, offer.scheduled_id,
                      offered.poll_from_sticky, 0);
    return;
  }
  if (offered.is_taken && offer.kind == model::WORKFLOW_TASK) {
    ++stats_.tasks_matched_at_once;
    ++part.next_offer;
    part.keeps_slot = offered.keeps_slot;
    take_along(part, {step.eager->identity, "request-from-RespondWorkflowTaskCompleted", true},
               offered.key);
    step.after_write.push_back([this, &step, entry = part.entry] {
      step.eager->give_next(make_workflow_task(*entry, true));
    });
    return;
  }
  if (offered.is_taken) {
    ++stats_.tasks_matched_at_once;
    ++part.next_offer;
    const bool is_wanted = begin_taken_task(part, step.eager->identity, offer.kind,
                                            offer.scheduled_id, offer.stamp, false);
    FL_ASSERT(is_wanted, "a new activity is wanted");
    lease(step, part, queue, offered.key, offer.scheduled_id);
    step.after_write.push_back([this, &step, entry = part.entry, id = offer.scheduled_id] {
      ++stats_.activity_tasks_started;
      step.eager->give(make_activity_task(*entry, id));
    });
    return;
  }
  if (!offered.place.has_value()) {
    // The sticky worker is gone: everyone may have the task, and nothing waits for that worker.
    FL_ASSERT(queue.is_sticky(), "a normal queue refuses nobody");
    auto& again = part.tx.offers()[part.next_offer].queue;
    again.Clear();
    again.set_name(run.state.task_queue());
    // Whoever offers it again must not offer it to that worker, whom nobody waits for now.
    auto* task = run.state.mutable_workflow_task();
    *task->mutable_queue() = again;
    task->set_schedule_to_start_deadline_ns(0);
    return;
  }

  ++part.next_offer;
  model::TaskPlace place;
  *place.mutable_queue() = offer.queue;
  place.set_level(offered.place->level);
  place.set_seq(offered.place->seq.value());
  place.set_fairness_key(offered.place->key);
  place.set_version(offered.place->stream.version);
  place.set_slot(offered.place->stream.slot);
  place.set_type(offered.place->stream.type.value());
  if (offer.kind == model::WORKFLOW_TASK) {
    *run.state.mutable_workflow_task()->mutable_place() = std::move(place);
  } else {
    *part.tx.touch(*run.find_activity(offer.scheduled_id)).mutable_place() = std::move(place);
  }
  model::TaskRow row;
  row.set_kind(offer.kind);
  row.set_shard(id_.value());
  row.set_run(part.entry->key);
  row.set_scheduled_id(offer.scheduled_id);
  row.set_stamp(offer.stamp);
  *row.mutable_priority() = offer.priority;
  row.set_created_ns(part.tx.now);
  row.set_slot(offered.place->stream.slot);
  row.set_type(offered.place->stream.type.value());
  const ShardId owner = owner_of(queue);
  step.batch.put(task_row(owner, queue.name, *offered.place), row.SerializeAsString());
  queue::Task task;
  std::copy(part.entry->key.begin(), part.entry->key.end(), task.run.begin());
  task.scheduled_id = offer.scheduled_id;
  task.stamp = offer.stamp;
  task.created_ns = part.tx.now;
  task.weight = offer.priority.fairness_weight();
  task.shard = id_;
  step.after_write.push_back([this, owner, queue, place = *offered.place, task] {
    run_on(owner, [queue, place, task](Shard& shard) { shard.queues_.add(queue, place, task); });
  });
}

void Shard::write(StepPtr step) {
  for (auto& part : step->parts) write_part(*step, *part);
  ++stats_.steps;
  if (!step->start.has_value()) {
    commit(*step);
    after_write(std::move(step));
    return;
  }
  Shard& owner = world_.peers->shard(step->start->owner);
  const auto start = [this, &owner](Step& ready) {
    const auto& start = *ready.start;
    if (start.is_claim) {
      owner.queues_.claimed(start.queue, start.waiting, &ready.batch);
    } else {
      owner.queues_.started(start.queue, start.waiting, &ready.batch);
    }
    commit(ready);
  };
  if (owner.executor().is_current()) {
    start(*step);
    after_write(std::move(step));
    return;
  }
  owner.executor().post([this, start, step = std::move(step)]() mutable {
    start(*step);
    executor_->post([this, step = std::move(step)]() mutable { after_write(std::move(step)); });
  });
}

// On the executor of the queue whose task the step starts, if it starts one.
void Shard::commit(Step& step) {
  for (auto& permit : step.permits) std::move(permit).start(&step.batch);
  SessionDesk::Lock lock;
  if (!step.holds.empty() || step.sign_of_life.has_value()) lock = world_.sessions->lock();
  for (auto& hold : step.holds) std::move(hold).start(lock, &step.batch);
  if (const auto& sign = step.sign_of_life) {
    world_.sessions->renew(lock, sign->ns, sign->session_id, sign->worker, &step.batch);
  }
  world_.commits->write(step.batch);
}

void Shard::after_write(StepPtr step) {
  for (auto& part : step->parts) {
    if (!part->entry->is_new) continue;
    part->entry->is_new = false;
    starting_.erase(current_row(part->entry->run.state));
  }
  for (auto& part : step->parts) {
    wake_waiters(*step, *part->entry);
    if (part->tx.lost_task()) redeliver_updates(*part->entry);
  }
  for (size_t i = 0; i < step->after_write.size(); ++i) step->after_write[i]();
  for (auto& part : step->parts) {
    if (part->tx.closed_now()) abort_updates(*step, *part->entry);
  }
  for (auto& part : step->parts) reroute_queries(*part->entry);
  if (!step->effects.empty()) {
    world_.commits->after_durable([effects = std::move(step->effects)]() mutable {
      for (auto& effect : effects) effect();
    });
  }
  for (auto& part : step->parts) {
    runs_.resize(part->entry);
    unlock(*part->entry);
  }
  schedule_tick();
}

namespace {

// The rows of what a step has changed among the run's pending things.
template <typename Id, typename Rows, typename Key>
void write_touched(Step& step, absl::btree_set<Id>* touched, const Rows& rows, Key key) {
  for (const Id& id : *touched) {
    const auto found = rows.find(id);
    if (found == rows.end()) {
      step.batch.erase(key(id));
    } else {
      step.batch.put(key(id), found->second.SerializeAsString());
    }
  }
  touched->clear();
}

}  // namespace

void Shard::write_part(Step& step, Step::Part& part) {
  auto& entry = *part.entry;
  auto& run = entry.run;
  auto& state = run.state;
  arm(step, entry);
  if (part.tx.closed_now()) ++stats_.runs_closed;
  release_task(step, part);
  if (!part.tx.events().empty()) {
    state.set_batches(state.batches() + 1);
    step.batch.put(store::keys::events(id_, entry.key, part.tx.first_event_id()), part.tx.events());
    entry.remember_recent(part.tx.first_event_id(), part.tx.events());
  }
  write_touched(step, &run.touched_activities, run.activities,
                [&](int64_t id) { return store::keys::pending_activity(id_, entry.key, id); });
  write_touched(step, &run.touched_timers, run.timers,
                [&](int64_t id) { return store::keys::pending_timer(id_, entry.key, id); });
  write_touched(step, &run.touched_children, run.children,
                [&](int64_t id) { return store::keys::pending_child(id_, entry.key, id); });
  write_touched(step, &run.touched_updates, run.updates, [&](const std::string& id) {
    return store::keys::accepted_update(id_, entry.key, id);
  });
  write_touched(step, &run.touched_externals, run.externals,
                [&](int64_t id) { return store::keys::pending_external(id_, entry.key, id); });
  write_touched(step, &run.touched_callbacks, run.callbacks,
                [&](int64_t number) { return store::keys::callback(id_, entry.key, number); });
  write_touched(step, &run.touched_requests, run.requests, [&](const std::string& id) {
    return store::keys::attached_request(id_, entry.key, id);
  });
  if (part.tx.left_open().ByteSizeLong() > 0) {
    step.batch.put(store::keys::left_open(id_, entry.key), part.tx.left_open().SerializeAsString());
  }
  state.set_has_no_pending(!run.has_pending_rows());
  if (entry.is_new) step.batch.put(current_row(state), entry.key);
  step.batch.put(store::keys::run(id_, entry.key), state.SerializeAsString());
}

// A workflow task counts as leased while the run's row says that a worker has it.
void Shard::release_task(Step& step, Step::Part& part) {
  auto& run = part.entry->run;
  const bool holds = run.is_open() && run.has_started_task();
  const int ended = static_cast<int>(part.held_task) + part.task_starts - static_cast<int>(holds);
  FL_ASSERT(ended == 0 || ended == 1, "a worker gives back what it was given");
  if (ended == 0) return;
  // What was held ended before what was taken along began.
  const std::string key = part.held_task ? part.held_key : run.state.workflow_task().lease_key();
  if (!holds && run.state.has_workflow_task()) run.state.mutable_workflow_task()->clear_lease_key();
  const QueueAddress queue{
      {NamespaceNum(run.state.namespace_num()), model::WORKFLOW_TASK, run.state.task_queue()},
      run.state.task_queue()};
  step.after_write.push_back([this, queue, key, is_free = !part.keeps_slot] {
    world_.desk->release(queue.name);
    if (!is_free) return;
    run_on(owner_of(queue), [queue, key](Shard& owner) {
      owner.queues_.release(queue, key);
      owner.schedule_tick();
    });
  });
}

// Keeps the run's one wake-up row at or before its next deadline. A deadline that moved further
// away leaves the row where it is; only a closed run, whose next date is days off, moves it at
// once.
void Shard::arm(Step& step, RunEntry& entry) {
  auto& state = entry.run.state;
  const TimeNs next = history::next_deadline(entry.run);
  const TimeNs armed = state.armed_ns();
  if (next == kNever || (armed != 0 && (next == armed || (next > armed && entry.run.is_open())))) {
    return;
  }
  if (armed != 0) wakeups_.disarm(armed, entry.key, &step.batch);
  wakeups_.arm(next, entry.key, &step.batch);
  state.set_armed_ns(next);
}

void Shard::unlock(RunEntry& entry) {
  FL_ASSERT(entry.is_locked, "a step ends once");
  entry.is_locked = false;
  if (entry.waiting.empty()) return;
  auto waiting = std::move(entry.waiting);
  entry.waiting.clear();
  executor_->post([this, waiting = std::move(waiting)]() mutable {
    for (auto& job : waiting) job();
    schedule_tick();
  });
}

// --- Time ---------------------------------------------------------------------------------------

void Shard::schedule_tick() {
  if (is_closed_) return;
  const TimeNs next = std::min({alarms_.next(), wakeups_.next(), sweep_at_});
  if (next >= tick_at_) return;
  tick_at_ = next;
  executor_->post_at(next, [this, next] {
    if (tick_at_ == next) tick();
  });
}

void Shard::tick() {
  if (is_closed_) return;
  const TimeNs present = now();
  tick_at_ = kNever;
  alarms_.run_due(present);
  for (const auto& due : wakeups_.take_due(present, kWakeupsPerTick)) wake(due);
  if (present >= sweep_at_) {
    queues_.sweep();
    if (id_.value() == 0) world_.sessions->sweep();
    sweep_at_ = present + kSweepEvery;
  }
  stats_.polls_parked = queues_.parked();
  schedule_tick();
}

void Shard::wake(const Wakeups::Due& due) {
  with_entry(
      due.run,
      [this, at = due.at](RunEntry& entry) {
        auto& state = entry.run.state;
        if (state.armed_ns() != at) return;  // moved while it waited for a step to end
        if (!entry.run.is_open() && state.delete_at_ns() <= now()) {
          erase_run(entry);
          return;
        }
        auto step = begin(entry);
        wakeups_.disarm(at, entry.key, &step->batch);
        state.set_armed_ns(0);
        for (const auto& task : history::expiring_tasks(entry.run, step->parts[0]->tx.now)) {
          const auto queue = address_of(NamespaceNum(state.namespace_num()), task.kind, task.queue);
          step->after_write.push_back([this, queue] {
            run_on(owner_of(queue), [queue](Shard& owner) { owner.queues_.count_expired(queue); });
          });
        }
        history::pass_time(step->parts[0]->tx);
        finish(std::move(step));
      },
      [this, due] {
        if (schedules_.wake(due.run, due.at)) return;
        store::WriteBatch batch;
        wakeups_.disarm(due.at, due.run, &batch);
        world_.commits->write(batch);
      });
}

}  // namespace fairlead::shard
