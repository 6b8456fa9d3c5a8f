#include "shard/queue_host.h"

#include <algorithm>

#include "store/keys.h"

namespace fairlead::shard {

namespace {

// A sticky queue is alive while its worker polled this recently.
constexpr DurationNs kStickyPollerFresh = 10 * kSecond;
// Polls of a worker that said goodbye are sent home for this long.
constexpr DurationNs kGoodbye = 30 * kSecond;
constexpr DurationNs kQueueIdle = 5 * kMinute;
// Whoever asks a workflow something while nobody polls is told so, after this long.
constexpr DurationNs kPollerSeen = 20 * kSecond;
constexpr DurationNs kPollerHistory = 5 * kMinute;

}  // namespace

QueueAddress address_of(NamespaceNum ns, model::TaskKind kind, const model::QueueTarget& target) {
  return {{ns, static_cast<uint8_t>(kind), target.name()},
          target.sticky() ? target.normal_name() : target.name()};
}

QueueHost::Family& QueueHost::family(const QueueAddress& queue) {
  auto& family = families_[QueueName{queue.name.ns, queue.name.type, queue.normal}];
  if (family == nullptr) family = std::make_unique<Family>();
  return *family;
}

QueueHost::Line& QueueHost::line(const QueueAddress& queue) {
  auto& owner = family(queue);
  return queue.is_sticky() ? owner.sticky[queue.name.name] : owner.normal;
}

StoredQueue& QueueHost::load(const QueueAddress& queue, Line& line) {
  if (queue.is_sticky()) {
    if (line.stored == nullptr) {
      // One worker's own queue: first come, first served.
      line.settings.order = queue::Order::kFifo;
      line.settings.counts_running = false;
      line.stored = std::make_unique<StoredQueue>(env_.store, env_.shard, queue.name, line.settings,
                                                  env_.clock->now());
    }
    return *line.stored;
  }
  auto settings = env_.settings(queue.name);
  if (line.stored == nullptr) {
    line.settings = settings;
    line.loaded_at = env_.clock->now();
    line.stored =
        std::make_unique<StoredQueue>(env_.store, env_.shard, queue.name, settings, line.loaded_at);
  } else if (line.settings != settings) {
    line.settings = settings;
    line.stored->tasks().set_settings(settings, env_.clock->now());
  }
  return *line.stored;
}

// The queue must have been loaded, which brings its settings up to date.
uint32_t QueueHost::level_of(const QueueAddress& queue, const model::Priority& priority) {
  return queue::effective_level(priority, line(queue.normal_queue()).settings.levels);
}

bool QueueHost::is_live(const Line& line) const {
  if (line.is_released) return false;
  return !line.polls.empty() || line.last_poll + kStickyPollerFresh > env_.clock->now();
}

void QueueHost::add(const QueueAddress& queue, const queue::Place& place, const queue::Task& task) {
  auto& waiting = tasks(queue);
  waiting.add(place, task, env_.clock->now());
  if (env_.observer != nullptr) env_.observer->waits(queue.name, place);
  // A poll may have been parked between the reservation and now.
  serve_new(queue, place.stream);
  watch(queue, line(queue));
}

void QueueHost::remove(const QueueAddress& queue, const queue::Place& place) {
  auto& owner = stored(queue);
  // A queue that was read after the row had gone, and before this was told, may have given its
  // number to another task.
  if (owner.has_task_at(place)) return;
  owner.tasks().remove(place, env_.clock->now());
  if (env_.observer != nullptr) env_.observer->removed(queue.name, place);
  write_due_rows(owner);
}

// Of a sticky queue, too: its tasks are the normal queue's.
void QueueHost::count_expired(const QueueAddress& queue) {
  ++line(queue.normal_queue()).dispatches.expired;
}

void QueueHost::occupy(const QueueAddress& queue, const std::string& key) {
  tasks(queue).occupy(key, env_.clock->now());
}

void QueueHost::release(const QueueAddress& queue, const std::string& key) {
  auto& owner = stored(queue);
  owner.tasks().release(key, env_.clock->now());
  write_due_rows(owner);
  if (owner.tasks().size() > 0) serve(queue);
}

void QueueHost::write_due_rows(StoredQueue& queue) {
  if (!queue.tasks().are_rows_due()) return;
  store::WriteBatch batch;
  queue.add_rows(&batch);
  if (!batch.empty()) env_.write(batch);
}

void QueueHost::serve_new(const QueueAddress& queue, const queue::Stream& stream) {
  const std::string version = tasks(queue).target_of(stream);
  while (auto poll = take_poll(queue, version, stream.type)) {
    if (hand_out(poll, queue)) continue;
    park(std::move(poll));
    break;
  }
}

// What is nothing for one poll is nothing for others that take the same types.
void QueueHost::serve(const QueueAddress& queue, const std::string& version) {
  std::vector<queue::TypeListPtr> served;
  while (auto poll = take_poll(queue, version, {}, served)) {
    auto types = poll->request.types;
    if (hand_out(poll, queue)) continue;
    park(std::move(poll));
    served.push_back(std::move(types));
  }
}

void QueueHost::serve(const QueueAddress& queue) {
  auto versions = line(queue).polls.versions();
  if (!queue.is_sticky()) {
    for (auto& version : family(queue).sticky_polls.versions()) {
      if (std::find(versions.begin(), versions.end(), version) == versions.end()) {
        versions.push_back(std::move(version));
      }
    }
  }
  line(queue).session_free_at = kNever;
  for (const auto& version : versions) serve(queue, version);
  for (const auto& stream : waiting_sessions(queue)) serve(queue, stream);
  watch(queue, line(queue));
}

// Somebody waits and something is held back by time alone: look again when that has passed.
void QueueHost::watch(const QueueAddress& queue, Line& line) {
  if (queue.is_sticky() || line.stored == nullptr) return;
  const bool has_poll = this->has_poll(queue);
  const TimeNs next = has_poll ? std::min({line.stored->tasks().next_release(env_.clock->now()),
                                           line.look_again_at, line.session_free_at})
                               : kNever;
  if (next == line.alarm_at) return;
  if (line.alarm_at != kNever) env_.alarms->cancel(line.alarm);
  line.alarm_at = next;
  if (next == kNever) return;
  line.alarm = env_.alarms->set(next, [this, queue] { line_alarm(queue); });
}

void QueueHost::line_alarm(const QueueAddress& queue) {
  auto& owner = line(queue);
  owner.alarm_at = kNever;
  auto& waiting = load(queue, owner);
  waiting.tasks().next_level(env_.clock->now());  // lets go whom time has released
  write_due_rows(waiting);
  look_again(queue.name);
}

void QueueHost::look_again(const QueueName& name) {
  const auto found = families_.find(name);
  if (found == families_.end()) return;
  auto& owner = *found->second;
  const bool was_refused = std::exchange(owner.normal.is_refused, false);
  std::vector<std::string> refused;
  for (auto& [own, line] : owner.sticky) {
    if (std::exchange(line.is_refused, false)) refused.push_back(own);
  }
  for (const auto& own : refused) serve({{name.ns, name.type, own}, name.name});
  serve({name, name.name});
  // Nobody there any more who could use what others wait for.
  if (!was_refused || owner.normal.is_refused) return;
  owner.normal.look_again_at = kNever;
  owner.normal.refused = PollEnd::kNothing;
  env_.desk->leave(owner.normal.seat.get());
}

void QueueHost::started(const QueueAddress& queue, const queue::Waiting& waiting,
                        store::WriteBatch* batch) {
  const TimeNs now = env_.clock->now();
  tasks(queue).started(waiting.place, now);
  line(queue).dispatches.waited[waiting.place.level].add(now - waiting.task.created_ns);
  auto& account = stored(queue.normal_queue());
  if (queue.is_sticky()) {
    charge(queue,
           {waiting.place.level, waiting.place.key, waiting.task.weight, waiting.place.stream});
  }
  account.add_rows(batch);
}

void QueueHost::stale(PollPtr poll_out, const QueueAddress& queue, const queue::Place& place) {
  ++line(queue).counts.dropped;
  poll_out->permit.reset();
  poll_out->hold.reset();
  remove(queue, place);
  if (queue.is_sticky()) release(queue.normal_queue(), place.key);
  poll(std::move(poll_out));
}

QueueHost::QueryOffer QueueHost::offer_query(const QueueAddress& queue, DirectQuery query) {
  auto& target = line(queue);
  if (queue.is_sticky() && !is_live(target)) return QueryOffer::kDead;
  if (auto poll = take_any_poll(queue)) {
    env_.dispatch_query(std::move(poll), queue, std::move(query));
    return QueryOffer::kTaken;
  }
  auto place = env_.desk->place_query(queue.name.ns, std::string(shown_queue(queue.normal)));
  if (!place.has_value()) return QueryOffer::kFull;
  target.queries.push_back({std::move(query), *std::move(place)});
  return QueryOffer::kTaken;
}

void QueueHost::withdraw_query(const QueueAddress& queue, const std::string& id) {
  auto& queries = line(queue).queries;
  queries.erase(std::remove_if(queries.begin(), queries.end(),
                               [&](const WaitingQuery& waiting) { return waiting.query.id == id; }),
                queries.end());
}

bool QueueHost::was_polled_lately(const QueueAddress& queue) {
  return has_poll(queue) || line(queue).last_poll + kPollerSeen > env_.clock->now();
}

void QueueHost::shut_down_worker(const ShutdownWorkerRequest& request) {
  if (!request.worker_instance_key.empty()) {
    ended_workers_[request.worker_instance_key] = env_.clock->now() + kGoodbye;
    std::vector<uint64_t> ended;
    for (const auto& [number, poll] : parked_) {
      if (poll->request.ns == request.ns &&
          poll->request.worker_instance_key == request.worker_instance_key) {
        ended.push_back(number);
      }
    }
    std::sort(ended.begin(), ended.end());
    for (const uint64_t number : ended) end_poll(number);
  }
  for (auto& [name, owner] : families_) {
    if (name.ns == request.ns) owner->normal.pollers.erase(request.identity);
  }
  if (request.sticky_queue.empty()) return;
  std::vector<queue::Task> lost;
  for (auto& [name, owner] : families_) {
    if (name.ns != request.ns) continue;
    const auto sticky = owner->sticky.find(request.sticky_queue);
    if (sticky == owner->sticky.end()) continue;
    sticky->second.is_released = true;
    const QueueAddress queue{{name.ns, name.type, request.sticky_queue}, name.name};
    // They stay where they are until their runs move them.
    for (const auto& task : load(queue, sticky->second).all_tasks()) lost.push_back(task.task);
  }
  std::sort(lost.begin(), lost.end(), [](const auto& a, const auto& b) { return a.run < b.run; });
  for (const auto& task : lost) env_.sticky_lost(task);
}

void QueueHost::answer_all_polls() {
  std::vector<uint64_t> numbers;
  for (const auto& [number, poll] : parked_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) end_poll(number);
}

void QueueHost::sweep() {
  const TimeNs now = env_.clock->now();
  const auto is_idle = [&](const Line& line) {
    return line.polls.empty() && line.queries.empty() && line.last_poll + kQueueIdle < now &&
           line.pollers.empty() && (line.stored == nullptr || line.stored->tasks().is_idle());
  };
  const auto forget_pollers = [&](Line& line) {
    absl::erase_if(line.pollers, [&](const auto& entry) {
      return entry.second.last_access + kPollerHistory < now;
    });
  };
  for (auto at = families_.begin(); at != families_.end();) {
    auto& owner = *at->second;
    forget_pollers(owner.normal);
    forget_types({at->first, at->first.name}, owner.normal);
    for (auto& [name, line] : owner.sticky) forget_pollers(line);
    for (auto sticky = owner.sticky.begin(); sticky != owner.sticky.end();) {
      sticky = is_idle(sticky->second) ? owner.sticky.erase(sticky) : std::next(sticky);
    }
    const bool empty = owner.sticky.empty() && is_idle(owner.normal);
    if (empty) {
      if (owner.normal.alarm_at != kNever) env_.alarms->cancel(owner.normal.alarm);
      families_.erase(at++);
    } else {
      ++at;
    }
  }
  for (auto at = ended_workers_.begin(); at != ended_workers_.end();) {
    at = at->second <= now ? ended_workers_.erase(at) : std::next(at);
  }
}

}  // namespace fairlead::shard
