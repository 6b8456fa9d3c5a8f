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
// A limit that no worker has asked for lately is none.
constexpr DurationNs kWorkerLimit = 60 * kSecond;
constexpr DurationNs kPollerHistory = 5 * kMinute;
constexpr size_t kPollersMax = 1000;
}  // namespace

void Poll::answer_empty(PollEnd why) {
  std::visit(
      [why](auto& answer) {
        using Answer = std::decay_t<decltype(answer)>;
        if constexpr (std::is_same_v<Answer, Reply<WorkflowTask>>) {
          WorkflowTask nothing;
          nothing.end = why;
          answer(std::move(nothing));
        } else {
          ActivityTask nothing;
          nothing.end = why;
          answer(std::move(nothing));
        }
      },
      reply);
}

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
    line.stored = std::make_unique<StoredQueue>(env_.store, env_.shard, queue.name, settings,
                                                env_.clock->now());
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
  tasks(queue).add(place, task, env_.clock->now());
  if (env_.observer != nullptr) env_.observer->waits(queue.name, place);
  // A poll may have been parked between the reservation and now.
  serve(queue);
}

void QueueHost::remove(const QueueAddress& queue, const queue::Place& place) {
  auto& owner = stored(queue);
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

void QueueHost::serve(const QueueAddress& queue) {
  while (auto poll = take_poll(queue)) {
    if (hand_out(poll, queue)) continue;
    park(std::move(poll));
    break;
  }
  watch(queue, line(queue));
}

// Somebody waits and something is held back by time alone: look again when that has passed.
void QueueHost::watch(const QueueAddress& queue, Line& line) {
  if (queue.is_sticky() || line.stored == nullptr) return;
  const bool has_poll = this->has_poll(queue);
  const TimeNs next =
      has_poll ? std::min(line.stored->tasks().next_release(env_.clock->now()), line.look_again_at)
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

bool QueueHost::has_poll(const QueueAddress& queue) {
  if (!line(queue).polls.empty()) return true;
  return !queue.is_sticky() && !family(queue).sticky_polls.empty();
}

PollPtr QueueHost::take_poll(const QueueAddress& queue) {
  auto& owner = family(queue);
  auto& target = line(queue);
  // Polls are numbered as they come. A sticky queue does as the queue that it belongs to.
  const bool newest_first =
      owner.normal.stored != nullptr &&
      owner.normal.stored->tasks().rules().poller_order() == model::QueueRules::LIFO;
  if (!target.polls.empty()) {
    return unpark(newest_first ? *target.polls.rbegin() : *target.polls.begin());
  }
  if (!queue.is_sticky() && !owner.sticky_polls.empty()) {
    return unpark(newest_first ? owner.sticky_polls.rbegin()->first
                               : owner.sticky_polls.begin()->first);
  }
  return nullptr;
}

void QueueHost::park(PollPtr poll) {
  const auto queue = address_of(poll->request.ns, poll->request.kind, poll->request.queue);
  const uint64_t number = poll->number;
  line(queue).polls.insert(number);
  if (queue.is_sticky()) family(queue).sticky_polls[number] = queue.name.name;
  poll->alarm = env_.alarms->set(poll->request.hold_until, [this, number] { end_poll(number); });
  parked_[number] = std::move(poll);
}

PollPtr QueueHost::unpark(uint64_t number) {
  const auto found = parked_.find(number);
  if (found == parked_.end()) return nullptr;
  PollPtr poll = std::move(found->second);
  parked_.erase(found);
  env_.alarms->cancel(poll->alarm);
  const auto queue = address_of(poll->request.ns, poll->request.kind, poll->request.queue);
  auto& target = line(queue);
  target.polls.erase(number);
  target.last_poll = env_.clock->now();
  family(queue).sticky_polls.erase(number);
  return poll;
}

void QueueHost::end_poll(uint64_t number) {
  auto poll = unpark(number);
  if (poll == nullptr) return;
  const auto queue = address_of(poll->request.ns, poll->request.kind, poll->request.queue);
  ++line(queue).counts.polls_empty;
  poll->answer_empty(line(queue.normal_queue()).refused);
}

void QueueHost::cancel_poll(uint64_t number) { unpark(number); }

// The next task of the queue. One on a worker's own queue takes a place on the queue that everyone
// polls; if there is none, it waits for it there.
std::optional<queue::Waiting> QueueHost::pick(const QueueAddress& queue) {
  while (true) {
    const TimeNs now = env_.clock->now();
    auto next = tasks(queue).pick(now);
    if (!next.has_value()) return next;
    if (env_.observer != nullptr) env_.observer->picked(queue.name, queue.is_sticky(), next->place);
    if (!queue.is_sticky()) return next;
    auto& account = tasks(queue.normal_queue());
    if (account.may_run(next->place.key)) {
      account.occupy(next->place.key, now);
      return next;
    }
    env_.sticky_lost(next->task);  // out of this queue until its run has moved it
  }
}

// Gives the poll the next thing from this queue. False if there is nothing.
bool QueueHost::hand_out(PollPtr& poll, const QueueAddress& queue) {
  auto& target = line(queue);
  if (!target.queries.empty()) {
    auto query = std::move(target.queries.front().query);
    target.queries.pop_front();
    env_.dispatch_query(std::move(poll), queue, std::move(query));
    return true;
  }
  auto& waiting = load(queue, target).tasks();
  if (waiting.next_level(env_.clock->now()) > queue::kLevelsMax) return false;
  auto permit = admit(queue);
  if (!permit.has_value()) return false;
  const auto next = pick(queue);
  if (!next.has_value()) return false;
  poll->permit = std::move(permit);
  auto& source = line(queue);
  poll->delta = advise(source, *poll, next->task.created_ns, true);
  ++source.counts.polls_with_task;
  source.counts.waited.add(env_.clock->now() - next->task.created_ns);
  env_.dispatch(std::move(poll), queue, *next);
  return true;
}

void QueueHost::poll(PollPtr poll) {
  const auto queue = address_of(poll->request.ns, poll->request.kind, poll->request.queue);
  const TimeNs now = env_.clock->now();
  const auto ended = ended_workers_.find(poll->request.worker_instance_key);
  if ((ended != ended_workers_.end() && ended->second > now) || poll->request.hold_until <= now) {
    poll->answer_empty();
    return;
  }
  auto& target = line(queue);
  target.last_poll = now;
  target.is_released = false;
  if (poll->arrived_ns == 0) poll->arrived_ns = now;
  remember_poller(target, poll->request);
  if (queue.is_sticky()) {
    const auto normal = queue.normal_queue();
    const bool own_first =
        !target.queries.empty() || tasks(queue).next_level(now) <= tasks(normal).next_level(now);
    if (own_first && hand_out(poll, queue)) return;
    if (hand_out(poll, normal)) return;
  }
  if (hand_out(poll, queue)) return;
  park(std::move(poll));
  const auto normal = queue.normal_queue();
  watch(normal, line(normal));
}

void QueueHost::remember_poller(Line& line, const PollRequest& request) {
  const TimeNs now = env_.clock->now();
  const auto& asked = request.max_tasks_per_second;
  if (line.pollers.size() < kPollersMax || line.pollers.contains(request.identity)) {
    line.pollers[request.identity] = {now, asked, request.about};
  }
  if (request.kind != model::ACTIVITY_TASK) return;
  if (asked.has_value()) {
    line.limit_carried = now;
    load({{request.ns, static_cast<uint8_t>(request.kind), request.queue.name()},
          request.queue.name()},
         line)
        .tasks()
        .set_worker_limit(*asked < queue::kSystemLimit ? asked : std::nullopt, now);
  } else if (line.limit_carried != 0 && line.limit_carried + kWorkerLimit < now) {
    line.limit_carried = 0;
    if (line.stored != nullptr) line.stored->tasks().set_worker_limit(std::nullopt, now);
  }
}

// How a worker should change the number of its polls.
int QueueHost::advise(Line& line, const Poll& poll, TimeNs task_created, bool from_backlog) {
  const TimeNs now = env_.clock->now();
  if (!from_backlog && now - poll.arrived_ns >= kSecond) return -1;
  if (line.stored == nullptr || !line.advice.is_ready(now, 10)) return 0;
  auto& waiting = line.stored->tasks();
  if (waiting.is_limiting(now)) return 0;
  const bool is_behind = waiting.size() > 0 && now - task_created > 200 * kMillisecond;
  if (!is_behind && !waiting.grows(now)) return 0;
  line.advice.take(now, 10);
  return 1;
}

void QueueHost::started(const QueueAddress& queue, const queue::Waiting& waiting,
                        store::WriteBatch* batch) {
  const TimeNs now = env_.clock->now();
  tasks(queue).started(waiting.place, now);
  line(queue).dispatches.waited[waiting.place.level].add(now - waiting.task.created_ns);
  auto& account = stored(queue.normal_queue());
  if (queue.is_sticky()) {
    charge(queue, waiting.place.level, waiting.place.key, waiting.task.weight);
  }
  account.add_rows(batch);
}

void QueueHost::stale(PollPtr poll_out, const QueueAddress& queue, const queue::Place& place) {
  ++line(queue).counts.dropped;
  poll_out->permit.reset();
  remove(queue, place);
  if (queue.is_sticky()) release(queue.normal_queue(), place.key);
  poll(std::move(poll_out));
}

QueueHost::QueryOffer QueueHost::offer_query(const QueueAddress& queue, DirectQuery query) {
  auto& target = line(queue);
  if (queue.is_sticky() && !is_live(target)) return QueryOffer::kDead;
  if (auto poll = take_poll(queue)) {
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
