#include "shard/queue_host.h"

#include <algorithm>

#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

// A sticky queue is alive while its worker polled this recently.
constexpr DurationNs kStickyPollerFresh = 10 * kSecond;
// Polls of a worker that said goodbye are sent home for this long.
constexpr DurationNs kGoodbye = 30 * kSecond;
constexpr DurationNs kQueueIdle = 5 * kMinute;
constexpr size_t kPageTasks = 512;

queue::Task task_from_row(const model::TaskRow& row) {
  queue::Task task;
  FL_ASSERT(row.run().size() == task.run.size(), "a task's row names a run");
  std::copy(row.run().begin(), row.run().end(), task.run.begin());
  task.scheduled_id = row.scheduled_id();
  task.stamp = row.stamp();
  task.created_ns = row.created_ns();
  task.shard = ShardId(static_cast<uint16_t>(row.shard()));
  return task;
}

QueueAddress normal_of(const QueueAddress& queue) {
  return {{queue.name.ns, queue.name.type, queue.normal}, queue.normal};
}

}  // namespace

void Poll::answer_empty() {
  std::visit(
      [](auto& answer) {
        using Answer = std::decay_t<decltype(answer)>;
        if constexpr (std::is_same_v<Answer, Reply<WorkflowTask>>) {
          answer(WorkflowTask{});
        } else {
          answer(ActivityTask{});
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

queue::TaskQueue& QueueHost::tasks(const QueueAddress& queue) { return load(queue, line(queue)); }

queue::TaskQueue& QueueHost::load(const QueueAddress& queue, Line& line) {
  if (line.tasks != nullptr) return *line.tasks;
  std::array<int64_t, queue::kLevels + 1> on_disk{};
  TaskSeq last;
  const auto range = store::keys::tasks(env_.shard, queue.name);
  const auto status =
      env_.store->scan(range.begin, range.end, [&](std::string_view key, std::string_view) {
        const auto row = store::keys::parse_task(key);
        ++on_disk[row.level];
        last = std::max(last, row.seq);
        return true;
      });
  FL_ASSERT(status.ok(), "the store can be read");
  line.tasks = std::make_unique<queue::TaskQueue>(last.next());
  for (uint32_t level = 1; level <= queue::kLevels; ++level) {
    if (on_disk[level] > 0) line.tasks->set_on_disk(level, on_disk[level]);
  }
  return *line.tasks;
}

void QueueHost::page_in(const QueueAddress& queue, queue::TaskQueue& tasks) {
  while (const auto after = tasks.page_needed()) {
    const auto level = static_cast<uint8_t>(after->level);
    const auto range = store::keys::task_level(env_.shard, queue.name, level);
    std::vector<queue::Waiting> rows;
    const auto status = env_.store->scan(
        store::keys::task(env_.shard, queue.name, level, after->seq.next()), range.end,
        [&](std::string_view key, std::string_view value) {
          model::TaskRow row;
          FL_ASSERT(row.ParseFromArray(value.data(), static_cast<int>(value.size())),
                    "a task's row is a task");
          rows.push_back({{after->level, store::keys::parse_task(key).seq}, task_from_row(row)});
          return rows.size() < kPageTasks;
        });
    FL_ASSERT(status.ok(), "the store can be read");
    tasks.add_page(after->level, rows, rows.size() < kPageTasks);
  }
}

bool QueueHost::is_live(const Line& line) const {
  if (line.is_released) return false;
  return !line.polls.empty() || line.last_poll + kStickyPollerFresh > env_.clock->now();
}

QueueHost::Offered QueueHost::offer(const QueueAddress& queue, uint32_t level) {
  Offered offered;
  auto& target = line(queue);
  if (queue.is_sticky() && !is_live(target)) return offered;
  auto& waiting = load(queue, target);
  // Handed over at once only if no waiting task has a better claim.
  if (!waiting.has_waiting(level)) {
    offered.poll = take_poll(queue);
    if (offered.poll != nullptr) {
      offered.poll_from_sticky = queue.is_sticky();
      return offered;
    }
  }
  offered.place = waiting.reserve(level);
  return offered;
}

void QueueHost::add(const QueueAddress& queue, queue::Place place, const queue::Task& task) {
  auto& waiting = tasks(queue);
  waiting.add(place, task);
  // A poll may have been parked between the reservation and now.
  if (auto poll = take_poll(queue)) {
    if (!hand_out(poll, queue)) park(std::move(poll));
  }
}

void QueueHost::remove(const QueueAddress& queue, queue::Place place) {
  tasks(queue).remove(place);
}

PollPtr QueueHost::take_poll(const QueueAddress& queue) {
  auto& owner = family(queue);
  auto& target = line(queue);
  if (!target.polls.empty()) return unpark(*target.polls.begin());
  if (!queue.is_sticky() && !owner.sticky_polls.empty()) {
    return unpark(owner.sticky_polls.begin()->first);
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
  if (auto poll = unpark(number)) poll->answer_empty();
}

void QueueHost::cancel_poll(uint64_t number) { unpark(number); }

// Gives the poll the next thing from this queue. False if there is nothing.
bool QueueHost::hand_out(PollPtr& poll, const QueueAddress& queue) {
  auto& target = line(queue);
  if (!target.queries.empty()) {
    const auto query = target.queries.front();
    target.queries.pop_front();
    env_.dispatch_query(std::move(poll), queue, query);
    return true;
  }
  auto& waiting = load(queue, target);
  page_in(queue, waiting);
  const auto next = waiting.pick();
  if (!next.has_value()) return false;
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
  if (queue.is_sticky()) {
    const auto normal = normal_of(queue);
    const bool own_first =
        !target.queries.empty() || load(queue, target).next_level() <= tasks(normal).next_level();
    if (own_first && hand_out(poll, queue)) return;
    if (hand_out(poll, normal)) return;
  }
  if (hand_out(poll, queue)) return;
  park(std::move(poll));
}

void QueueHost::started(const QueueAddress& queue, queue::Place place) {
  tasks(queue).started(place);
}

void QueueHost::stale(PollPtr poll_out, const QueueAddress& queue, queue::Place place) {
  tasks(queue).remove(place);
  poll(std::move(poll_out));
}

bool QueueHost::offer_query(const QueueAddress& queue, DirectQuery query) {
  auto& target = line(queue);
  if (queue.is_sticky() && !is_live(target)) return false;
  if (auto poll = take_poll(queue)) {
    env_.dispatch_query(std::move(poll), queue, std::move(query));
  } else {
    target.queries.push_back(std::move(query));
  }
  return true;
}

void QueueHost::withdraw_query(const QueueAddress& queue, const std::string& id) {
  auto& queries = line(queue).queries;
  queries.erase(std::remove_if(queries.begin(), queries.end(),
                               [&](const DirectQuery& query) { return query.id == id; }),
                queries.end());
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
  if (request.sticky_queue.empty()) return;
  std::vector<queue::Task> lost;
  for (auto& [name, owner] : families_) {
    if (name.ns != request.ns) continue;
    const auto sticky = owner->sticky.find(request.sticky_queue);
    if (sticky == owner->sticky.end()) continue;
    sticky->second.is_released = true;
    const QueueAddress queue{{name.ns, name.type, request.sticky_queue}, name.name};
    auto& waiting = load(queue, sticky->second);
    page_in(queue, waiting);
    std::vector<queue::Waiting> picked;
    while (const auto next = waiting.pick()) {
      picked.push_back(*next);
      lost.push_back(next->task);
      page_in(queue, waiting);
    }
    // They stay where they are until their runs move them.
    for (const auto& task : picked) waiting.put_back(task);
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
           (line.tasks == nullptr || line.tasks->is_idle());
  };
  for (auto at = families_.begin(); at != families_.end();) {
    auto& owner = *at->second;
    for (auto sticky = owner.sticky.begin(); sticky != owner.sticky.end();) {
      sticky = is_idle(sticky->second) ? owner.sticky.erase(sticky) : std::next(sticky);
    }
    const bool empty = owner.sticky.empty() && is_idle(owner.normal);
    if (empty) {
      families_.erase(at++);
    } else {
      ++at;
    }
  }
  for (auto at = ended_workers_.begin(); at != ended_workers_.end();) {
    at = at->second <= now ? ended_workers_.erase(at) : std::next(at);
  }
}

int64_t QueueHost::backlog(const QueueAddress& queue) { return tasks(queue).size(); }

}  // namespace fairlead::shard
