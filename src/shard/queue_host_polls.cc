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
  if (request.takes_sessions) of_sessions_.insert(number);
  by_version_[request.version].insert(number);
  if (request.takes_unversioned) by_version_[""].insert(number);
}

void ParkedPolls::erase(uint64_t number, const PollRequest& request) {
  if (all_.erase(number) == 0) return;
  of_sessions_.erase(number);
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
  if (admission::is_session_stream(version)) return !line(queue).polls.of_sessions().empty();
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

bool QueueHost::may_take(const QueueAddress& queue, const std::string& stream,
                         const PollRequest& request) {
  const auto answer = env_.sessions->look(queue.name, stream, request.identity);
  if (!answer.refusal.has_value()) return true;
  auto& owner = line(queue);
  owner.session_free_at = std::min(owner.session_free_at, answer.look_again_at);
  return false;
}

size_t QueueHost::polls_for(const QueueAddress& queue, const std::string& version) {
  const auto& polls = line(queue).polls;
  if (!admission::is_session_stream(version)) return polls.of(version).size();
  return static_cast<size_t>(std::count_if(
      polls.of_sessions().begin(), polls.of_sessions().end(),
      [&](uint64_t number) { return may_take(queue, version, parked_.at(number)->request); }));
}

// Of those that wait, the first that may have a task of the session.
PollPtr QueueHost::take_session_poll(const QueueAddress& queue, const std::string& stream) {
  for (const uint64_t number : line(queue).polls.of_sessions()) {
    if (may_take(queue, stream, parked_.at(number)->request)) return unpark(number);
  }
  return nullptr;
}

std::vector<std::string> QueueHost::waiting_sessions(const QueueAddress& queue) {
  if (queue.is_sticky() || line(queue).stored == nullptr || tasks(queue).targets() < 2) return {};
  auto streams = tasks(queue).waiting_versions();
  std::erase_if(streams, [](const auto& each) { return !admission::is_session_stream(each); });
  return streams;
}

PollPtr QueueHost::take_poll(const QueueAddress& queue, const std::string& version) {
  if (admission::is_session_stream(version)) return take_session_poll(queue, version);
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

// A worker that may have what is pinned to its version, what is for workers without one and what
// sessions hold takes from where the most urgent task is; where several are as urgent, from each in
// turn. So none waits for the others to be empty.
std::vector<std::string> QueueHost::sources(const PollRequest& request, const QueueAddress& queue) {
  if (queue.is_sticky()) return {""};
  const TimeNs now = env_.clock->now();
  auto& owner = line(queue);
  auto& waiting = tasks(queue);
  std::vector<std::pair<uint32_t, std::string>> found;  // by level
  const auto consider = [&](const std::string& version) {
    const uint32_t level = waiting.next_level(now, version);
    if (level <= queue::kLevelsMax) found.emplace_back(level, version);
  };
  consider(request.version);
  if (request.takes_unversioned && !request.version.empty()) consider("");
  if (request.takes_sessions) {
    for (const auto& stream : waiting_sessions(queue)) {
      if (may_take(queue, stream, request)) consider(stream);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto ties = std::find_if(found.begin(), found.end(), [&](const auto& each) {
    return each.first != found.front().first;
  });
  if (ties - found.begin() > 1) {
    // Round and round, by name: whoever comes and goes, nobody is passed over for long.
    const auto after_last = [&](const auto& each) { return each.second > *owner.last_source; };
    if (owner.last_source.has_value()) {
      std::sort(found.begin(), ties);
      std::rotate(found.begin(), std::find_if(found.begin(), ties, after_last), ties);
    }
    owner.last_source = found.front().second;
  }
  std::vector<std::string> versions;
  for (auto& [level, version] : found) versions.push_back(std::move(version));
  return versions;
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
  std::optional<SessionHold> hold;
  for (size_t i = 0; i < from.size() && !next.has_value(); ++i) {
    hold.reset();
    if (admission::is_session_stream(from[i])) {
      hold = env_.sessions->claim(queue.name, from[i], poll->request.identity);
      if (!hold.has_value()) continue;
    }
    next = pick(queue, from[i]);
  }
  if (!next.has_value()) return false;
  poll->permit = std::move(permit);
  poll->hold = std::move(hold);
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
