// Polls: which of them wait, what they may be given, and whose turn it is.

#include <algorithm>

#include "shard/queue_host.h"

namespace fairlead::shard {

namespace {

// A limit that no worker has asked for lately is none.
constexpr DurationNs kWorkerLimit = 60 * kSecond;
constexpr size_t kPollersMax = 1000;
// Sources whose last turn is remembered; a queue has a few.
constexpr size_t kTurnsMax = 1000;

bool is_among(const queue::TypeListPtr& types, const std::vector<queue::TypeListPtr>& lists) {
  return std::any_of(lists.begin(), lists.end(),
                     [&](const queue::TypeListPtr& other) { return queue::is_same(types, other); });
}

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

void ParkedPolls::add(uint64_t number, const PollRequest& request) {
  all_.insert(number);
  if (request.takes_sessions) of_sessions_.insert(number);
  const auto add_to = [&](Crowd& crowd) {
    const auto found = std::find_if(crowd.begin(), crowd.end(), [&](const Alike& alike) {
      return queue::is_same(alike.types, request.types);
    });
    auto& alike = found == crowd.end() ? crowd.emplace_back() : *found;
    alike.types = request.types;
    alike.polls.insert(number);
  };
  add_to(by_version_[request.version]);
  if (request.takes_unversioned && !request.version.empty()) add_to(by_version_[""]);
}

void ParkedPolls::erase(uint64_t number, const PollRequest& request) {
  if (all_.erase(number) == 0) return;
  of_sessions_.erase(number);
  for (const auto& version : {request.version, std::string()}) {
    const auto found = by_version_.find(version);
    if (found == by_version_.end()) continue;
    auto& crowd = found->second;
    for (auto& alike : crowd) alike.polls.erase(number);
    std::erase_if(crowd, [](const Alike& alike) { return alike.polls.empty(); });
    if (crowd.empty()) by_version_.erase(found);
  }
}

std::vector<std::string> ParkedPolls::versions() const {
  std::vector<std::string> versions;
  for (const auto& [version, crowd] : by_version_) versions.push_back(version);
  return versions;
}

size_t ParkedPolls::count(const std::string& version, queue::TaskType type) const {
  const auto found = by_version_.find(version);
  if (found == by_version_.end()) return 0;
  size_t count = 0;
  for (const auto& alike : found->second) {
    if (queue::takes(alike.types, type)) count += alike.polls.size();
  }
  return count;
}

std::optional<uint64_t> ParkedPolls::find(const std::string& version, queue::TaskType type,
                                          Order order,
                                          const std::vector<queue::TypeListPtr>& but) const {
  const auto found = by_version_.find(version);
  if (found == by_version_.end()) return std::nullopt;
  std::optional<uint64_t> first;
  for (const auto& alike : found->second) {
    if (!queue::takes(alike.types, type) || is_among(alike.types, but)) continue;
    const bool is_newest_first = order == Order::kNewestFirst;
    const uint64_t own = is_newest_first ? *alike.polls.rbegin() : *alike.polls.begin();
    if (!first.has_value() || (is_newest_first ? own > *first : own < *first)) first = own;
  }
  return first;
}

std::optional<uint64_t> ParkedPolls::find_any(Order order) const {
  if (all_.empty()) return std::nullopt;
  return order == Order::kNewestFirst ? *all_.rbegin() : *all_.begin();
}

bool QueueHost::has_poll(const QueueAddress& queue) {
  if (!line(queue).polls.empty()) return true;
  return !queue.is_sticky() && !family(queue).sticky_polls.empty();
}

bool QueueHost::has_poll(const QueueAddress& queue, const std::string& version,
                         queue::TaskType type) {
  if (queue.is_sticky()) return !line(queue).polls.empty();
  if (admission::is_session_stream(version)) {
    const auto& polls = line(queue).polls.of_sessions();
    return std::any_of(polls.begin(), polls.end(), [&](uint64_t number) {
      return queue::takes(parked_.at(number)->request.types, type);
    });
  }
  return line(queue).polls.count(version, type) > 0 ||
         family(queue).sticky_polls.count(version, type) > 0;
}

// A sticky queue does as the queue that it belongs to.
ParkedPolls::Order QueueHost::order_of_polls(const QueueAddress& queue) {
  const auto& normal = family(queue).normal;
  const bool is_newest_first =
      normal.stored != nullptr &&
      normal.stored->tasks().rules().poller_order() == model::QueueRules::LIFO;
  return is_newest_first ? ParkedPolls::Order::kNewestFirst : ParkedPolls::Order::kOldestFirst;
}

bool QueueHost::may_take(const QueueAddress& queue, const std::string& stream,
                         const PollRequest& request) {
  const auto answer = env_.sessions->look(queue.name, stream, request.identity);
  if (!answer.refusal.has_value()) return true;
  auto& owner = line(queue);
  owner.session_free_at = std::min(owner.session_free_at, answer.look_again_at);
  return false;
}

size_t QueueHost::polls_for(const QueueAddress& queue, const std::string& version,
                            queue::TaskType type) {
  const auto& polls = line(queue).polls;
  if (!admission::is_session_stream(version)) return polls.count(version, type);
  return static_cast<size_t>(
      std::count_if(polls.of_sessions().begin(), polls.of_sessions().end(), [&](uint64_t number) {
        const auto& request = parked_.at(number)->request;
        return queue::takes(request.types, type) && may_take(queue, version, request);
      }));
}

// Of those that wait, the first that may have a task of the session.
PollPtr QueueHost::take_session_poll(const QueueAddress& queue, const std::string& stream,
                                     queue::TaskType type,
                                     const std::vector<queue::TypeListPtr>& but) {
  for (const uint64_t number : line(queue).polls.of_sessions()) {
    const auto& request = parked_.at(number)->request;
    if (!queue::takes(request.types, type) || is_among(request.types, but)) continue;
    if (may_take(queue, stream, request)) return unpark(number);
  }
  return nullptr;
}

std::vector<std::string> QueueHost::waiting_sessions(const QueueAddress& queue) {
  if (queue.is_sticky() || line(queue).stored == nullptr || tasks(queue).targets() < 2) return {};
  auto streams = tasks(queue).waiting_versions();
  std::erase_if(streams, [](const auto& each) { return !admission::is_session_stream(each); });
  return streams;
}

PollPtr QueueHost::take_poll(const QueueAddress& queue, const std::string& version,
                             queue::TaskType type, const std::vector<queue::TypeListPtr>& but) {
  if (admission::is_session_stream(version)) return take_session_poll(queue, version, type, but);
  const auto order = order_of_polls(queue);
  if (queue.is_sticky()) {
    const auto found = but.empty() ? line(queue).polls.find_any(order) : std::nullopt;
    return found.has_value() ? unpark(*found) : nullptr;
  }
  for (const auto* polls : {&line(queue).polls, &family(queue).sticky_polls}) {
    if (const auto found = polls->find(version, type, order, but)) return unpark(*found);
  }
  return nullptr;
}

PollPtr QueueHost::take_any_poll(const QueueAddress& queue) {
  const auto order = order_of_polls(queue);
  if (const auto found = line(queue).polls.find_any(order)) return unpark(*found);
  if (queue.is_sticky()) return nullptr;
  const auto found = family(queue).sticky_polls.find_any(order);
  return found.has_value() ? unpark(*found) : nullptr;
}

void QueueHost::park(PollPtr poll) {
  const auto queue = address_of(poll->request.ns, poll->request.kind, poll->request.queue);
  const uint64_t number = poll->number;
  line(queue).polls.add(number, poll->request);
  if (queue.is_sticky()) family(queue).sticky_polls.add(number, poll->request);
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
  target.polls.erase(number, poll->request);
  target.last_poll = env_.clock->now();
  family(queue).sticky_polls.erase(number, poll->request);
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

// A worker that may have what is pinned to its version, what is for workers without one, what
// sessions hold, or types that not everybody takes, takes from where the most urgent task is; of
// those that are as urgent, from the one whose turn is longest ago. So none waits for the others to
// be empty.
std::vector<queue::Source> QueueHost::sources(const PollRequest& request,
                                              const QueueAddress& queue) {
  const TimeNs now = env_.clock->now();
  auto& waiting = tasks(queue);
  std::vector<queue::Source> found;
  if (queue.is_sticky()) {
    waiting.find_sources(now, {}, 0, &found);
    return found;
  }
  uint32_t slots = 0;
  if (request.types != nullptr) {
    if (const auto slot = waiting.slot_of(*request.types)) slots = 1U << *slot;
  }
  waiting.find_sources(now, request.version, slots, &found);
  if (request.takes_unversioned && !request.version.empty()) {
    waiting.find_sources(now, {}, slots, &found);
  }
  if (request.takes_sessions) {
    for (const auto& stream : waiting_sessions(queue)) {
      if (may_take(queue, stream, request)) waiting.find_sources(now, stream, slots, &found);
    }
  }
  if (found.size() < 2) return found;
  auto& owner = line(queue);
  const auto turn_of = [&](const queue::Source& source) {
    const auto turn = owner.turns.find(std::pair(source.version, source.group));
    return turn == owner.turns.end() ? 0 : turn->second;
  };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.level, turn_of(a)) < std::pair(b.level, turn_of(b));
  });
  return found;
}

void QueueHost::take_turn(Line& line, const std::vector<queue::Source>& from) {
  if (from.size() < 2 || from[0].level != from[1].level) return;
  if (line.turns.size() >= kTurnsMax) line.turns.clear();
  line.turns[{from[0].version, from[0].group}] = ++line.last_turn;
}

uint32_t QueueHost::next_level(const PollRequest& request, const QueueAddress& queue) {
  const TimeNs now = env_.clock->now();
  const uint32_t own = tasks(queue).next_level(now, request.version);
  return request.takes_unversioned ? std::min(own, tasks(queue).next_level(now)) : own;
}

// The next task of a source. One on a worker's own queue takes a place on the queue that everyone
// polls; if there is none, it waits for it there.
std::optional<queue::Waiting> QueueHost::pick_from(const QueueAddress& queue,
                                                   const queue::Source& source) {
  while (true) {
    const TimeNs now = env_.clock->now();
    auto next = tasks(queue).pick(now, source.version, source.group);
    if (!next.has_value() || !queue.is_sticky()) return next;
    if (env_.observer != nullptr) env_.observer->picked(queue.name, true, next->place);
    auto& account = tasks(queue.normal_queue());
    if (account.may_run(next->place.key)) {
      account.occupy(next->place.key, now);
      return next;
    }
    env_.sticky_lost(next->task);  // out of this queue until its run has moved it
  }
}

// The next task that the poll may have. If it is somebody else's turn whose type it does not take,
// that was nobody's turn: the types are told apart, and the poll looks once more.
std::optional<queue::Waiting> QueueHost::pick(Poll& poll, const QueueAddress& queue,
                                              const std::vector<queue::Source>& from) {
  const auto& request = poll.request;
  take_turn(line(queue), from);
  for (const auto& source : from) {
    poll.hold.reset();
    if (admission::is_session_stream(source.version)) {
      poll.hold = env_.sessions->claim(queue.name, source.version, request.identity);
      if (!poll.hold.has_value()) continue;
    }
    auto next = pick_from(queue, source);
    if (!next.has_value()) continue;
    if (queue::takes(request.types, next->task.type)) {
      if (env_.observer != nullptr && !queue.is_sticky()) {
        env_.observer->picked(queue.name, false, next->place);
      }
      return next;
    }
    tasks(queue).put_back(next->place, env_.clock->now());
    poll.hold.reset();
    if (tell_apart(queue, *request.types)) return pick(poll, queue, sources(request, queue));
  }
  poll.hold.reset();
  return std::nullopt;
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
  const auto from = sources(poll->request, queue);
  if (from.empty()) return false;
  auto permit = admit(queue);
  if (!permit.has_value()) return false;
  const auto next = pick(*poll, queue, from);
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
  remember_types(target, poll->request);
  if (queue.is_sticky()) {
    const auto normal = queue.normal_queue();
    const bool own_first = !target.queries.empty() ||
                           tasks(queue).next_level(now) <= next_level(poll->request, normal);
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

}  // namespace fairlead::shard
