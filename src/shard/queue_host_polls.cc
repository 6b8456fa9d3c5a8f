// Polls: which of them wait, what they may be given, and whose turn it is.

#include <algorithm>

#include "shard/queue_host.h"

namespace fairlead::shard {

namespace {

// A limit that no worker has asked for lately is none.
constexpr DurationNs kWorkerLimit = 60 * kSecond;
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

void ParkedPolls::add(uint64_t number, const PollRequest& request) {
  all_.insert(number);
  by_version_[request.version].insert(number);
  if (request.takes_unversioned) by_version_[""].insert(number);
}

void ParkedPolls::erase(uint64_t number, const PollRequest& request) {
  if (all_.erase(number) == 0) return;
  for (const auto& version : {request.version, std::string()}) {
    const auto found = by_version_.find(version);
    if (found == by_version_.end()) continue;
    found->second.erase(number);
    if (found->second.empty()) by_version_.erase(found);
  }
}

const absl::btree_set<uint64_t>& ParkedPolls::of(const std::string& version) const {
  static const absl::btree_set<uint64_t> kNobody;
  const auto found = by_version_.find(version);
  return found == by_version_.end() ? kNobody : found->second;
}

std::vector<std::string> ParkedPolls::versions() const {
  std::vector<std::string> versions;
  for (const auto& [version, polls] : by_version_) versions.push_back(version);
  return versions;
}

bool QueueHost::has_poll(const QueueAddress& queue) {
  if (!line(queue).polls.empty()) return true;
  return !queue.is_sticky() && !family(queue).sticky_polls.empty();
}

bool QueueHost::has_poll(const QueueAddress& queue, const std::string& version) {
  if (queue.is_sticky()) return !line(queue).polls.empty();
  return !line(queue).polls.of(version).empty() || !family(queue).sticky_polls.of(version).empty();
}

// Polls are numbered as they come. A sticky queue does as the queue that it belongs to.
PollPtr QueueHost::take_from(const QueueAddress& queue, const absl::btree_set<uint64_t>& polls) {
  if (polls.empty()) return nullptr;
  const auto& normal = family(queue).normal;
  const bool newest_first =
      normal.stored != nullptr &&
      normal.stored->tasks().rules().poller_order() == model::QueueRules::LIFO;
  return unpark(newest_first ? *polls.rbegin() : *polls.begin());
}

PollPtr QueueHost::take_poll(const QueueAddress& queue, const std::string& version) {
  const auto& own = line(queue).polls;
  if (auto poll = take_from(queue, queue.is_sticky() ? own.all() : own.of(version))) return poll;
  if (queue.is_sticky()) return nullptr;
  return take_from(queue, family(queue).sticky_polls.of(version));
}

PollPtr QueueHost::take_any_poll(const QueueAddress& queue) {
  if (auto poll = take_from(queue, line(queue).polls.all())) return poll;
  if (queue.is_sticky()) return nullptr;
  return take_from(queue, family(queue).sticky_polls.all());
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

// A worker that may have what is pinned to its version and what is for workers without one takes
// from where the more urgent task is; where both are as urgent, from each in turn. So neither waits
// for the other to be empty.
std::vector<std::string> QueueHost::sources(const PollRequest& request, const QueueAddress& queue) {
  if (queue.is_sticky()) return {""};
  const TimeNs now = env_.clock->now();
  auto& owner = line(queue);
  auto& waiting = tasks(queue);
  const uint32_t own = waiting.next_level(now, request.version);
  const bool takes_both = request.takes_unversioned && !request.version.empty();
  const uint32_t unversioned = takes_both ? waiting.next_level(now) : queue::kLevelsMax + 1;
  std::vector<std::string> found;
  if (own <= queue::kLevelsMax) found.push_back(request.version);
  if (unversioned <= queue::kLevelsMax) found.emplace_back();
  if (found.size() < 2) return found;
  const bool is_tie = own == unversioned;
  if (unversioned < own || (is_tie && owner.unversioned_next)) std::swap(found[0], found[1]);
  if (is_tie) owner.unversioned_next = !owner.unversioned_next;
  return found;
}

uint32_t QueueHost::next_level(const PollRequest& request, const QueueAddress& queue) {
  const TimeNs now = env_.clock->now();
  const uint32_t own = tasks(queue).next_level(now, request.version);
  return request.takes_unversioned ? std::min(own, tasks(queue).next_level(now)) : own;
}

// The next task of the queue. One on a worker's own queue takes a place on the queue that everyone
// polls; if there is none, it waits for it there.
std::optional<queue::Waiting> QueueHost::pick(const QueueAddress& queue,
                                              const std::string& version) {
  while (true) {
    const TimeNs now = env_.clock->now();
    auto next = tasks(queue).pick(now, version);
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
  const auto from = sources(poll->request, queue);
  if (from.empty() ||
      (queue.is_sticky() && waiting.next_level(env_.clock->now()) > queue::kLevelsMax)) {
    return false;
  }
  auto permit = admit(queue);
  if (!permit.has_value()) return false;
  std::optional<queue::Waiting> next;
  for (size_t i = 0; i < from.size() && !next.has_value(); ++i) next = pick(queue, from[i]);
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
