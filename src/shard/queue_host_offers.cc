// New tasks: whether one goes to a worker at once, and who pays for it.

#include "shard/queue_host.h"

namespace fairlead::shard {

namespace {

// Without a poll for this long a queue has no worker.
constexpr DurationNs kNoPoller = kMinute;

}  // namespace

// May a task of the queue, or of a sticky queue that belongs to it, go now?
std::optional<Permit> QueueHost::admit(const QueueAddress& queue) {
  const auto normal = queue.normal_queue();
  auto& owner = line(normal);
  if (owner.seat == nullptr) owner.seat = env_.desk->open(normal.name);
  auto decision = env_.desk->admit(owner.seat.get());
  if (auto* permit = std::get_if<Permit>(&decision)) {
    owner.look_again_at = kNever;
    owner.refused = PollEnd::kNothing;
    return std::move(*permit);
  }
  const auto& refusal = std::get<admission::Refusal>(decision);
  owner.look_again_at = refusal.look_again_at(env_.clock->now());
  owner.refused = refusal.cause == admission::Refusal::Cause::kUnavailable ? PollEnd::kUnavailable
                                                                           : PollEnd::kThrottled;
  owner.is_refused = true;
  line(queue).is_refused = true;
  return std::nullopt;
}

// A task goes out on a queue of one worker's own: its key pays where everyone waits.
void QueueHost::charge(const QueueAddress& queue, const Passing& task) {
  const auto normal = queue.normal_queue();
  tasks(normal).charge(task.level, task.key, task.weight, env_.clock->now(), task.stream);
  if (env_.observer != nullptr) env_.observer->passed(normal.name, task, false);
}

// A new task goes to a worker without waiting: its key pays.
void QueueHost::pass(const QueueAddress& queue, const Passing& task) {
  const TimeNs now = env_.clock->now();
  if (queue.is_sticky()) {
    charge(queue, task);
    tasks(queue.normal_queue()).occupy(task.key, now);
    return;
  }
  tasks(queue).hand_over(task.level, task.key, task.weight, now, task.stream);
  if (env_.observer != nullptr) env_.observer->passed(queue.name, task, true);
}

// The same, to be paid when the step that makes the task is written, here. Until then it is like
// any other task that was picked and has not started yet.
queue::Waiting QueueHost::claim(const QueueAddress& queue, const Passing& task) {
  const TimeNs now = env_.clock->now();
  queue::Waiting claimed{{task.level, task.key, TaskSeq(0), task.stream}, {}};
  claimed.task.weight = task.weight;
  claimed.task.created_ns = now;
  if (queue.is_sticky()) {
    tasks(queue.normal_queue()).occupy(task.key, now);
    return claimed;
  }
  claimed.place = tasks(queue).claim(task.level, task.key, task.weight, now, task.stream);
  if (env_.observer != nullptr) env_.observer->passed(queue.name, task, true);
  return claimed;
}

std::optional<QueueHost::Handed> QueueHost::hand_over(const QueueAddress& queue,
                                                      const model::Priority& priority,
                                                      const queue::Stream& stream,
                                                      const Along& along, Writing writing) {
  auto& account = stored(queue);
  if (account.tasks().target_of(stream) != along.version) return std::nullopt;
  Passing task{level_of(queue, priority), account.tasks().line_of(priority.fairness_key()),
               priority.fairness_weight(), stream};
  const bool leaves_rows = account.tasks().hand_over_leaves_rows(task.level, stream);
  if (leaves_rows && writing.is_elsewhere()) return std::nullopt;
  if (!account.tasks().may_hand_over(task.level, task.key, env_.clock->now(), stream)) {
    return std::nullopt;
  }
  auto permit = admit(queue);
  if (!permit.has_value()) return std::nullopt;
  return hand(queue, std::move(task), *std::move(permit), leaves_rows, writing);
}

// The same on a worker's own queue, for that worker: as if it polled there. What is more urgent on
// the queue that everyone polls goes first. Where caps are scarce, everything that waits for a
// place goes first, but for a worker that goes on with what it has begun. A drain of the key does
// not speak against it: the run has begun, and is let go.
std::optional<QueueHost::Handed> QueueHost::hand_over_sticky(const QueueAddress& queue,
                                                             const model::Priority& priority,
                                                             const queue::Stream& stream,
                                                             const Along& along, Writing writing) {
  auto& account = stored(queue.normal_queue());
  if (stream.is_pinned()) return std::nullopt;
  const TimeNs now = env_.clock->now();
  Passing task{level_of(queue, priority), account.tasks().line_of(priority.fairness_key()),
               priority.fairness_weight(), stream};
  const auto& key = task.key;
  const bool leaves_rows = account.tasks().hand_over_leaves_rows(task.level, stream);
  if (leaves_rows && writing.is_elsewhere()) return std::nullopt;
  if (!account.tasks().may_run(key)) return std::nullopt;
  if (account.tasks().next_level(now, along.version) < task.level) return std::nullopt;
  if (account.tasks().has_caps() && !along.goes_on &&
      !account.tasks().may_hand_over(task.level, key, now, stream)) {
    return std::nullopt;
  }
  if (!tasks(queue).may_hand_over(task.level, key, now)) return std::nullopt;
  auto permit = admit(queue);
  if (!permit.has_value()) return std::nullopt;
  return hand(queue, std::move(task), *std::move(permit), leaves_rows, writing);
}

QueueHost::Handed QueueHost::hand(const QueueAddress& queue, Passing task, Permit permit,
                                  bool leaves_rows, Writing writing) {
  Handed handed{std::move(permit), task.key, std::nullopt};
  if (leaves_rows && writing.batch == nullptr) {
    handed.claim = claim(queue, task);
    return handed;
  }
  pass(queue, task);
  if (writing.batch != nullptr) stored(queue.normal_queue()).add_rows(writing.batch);
  return handed;
}

void QueueHost::claimed(const QueueAddress& queue, const queue::Waiting& claim,
                        store::WriteBatch* batch) {
  if (queue.is_sticky()) {
    charge(queue, {claim.place.level, claim.place.key, claim.task.weight, claim.place.stream});
  } else {
    tasks(queue).started(claim.place, env_.clock->now());
  }
  stored(queue.normal_queue()).add_rows(batch);
}

// A worker that gives back a task in the same step has a place to go on in, if anybody has one.
void QueueHost::take_along(const QueueAddress& queue, const model::Priority& priority,
                           const queue::Stream& stream, const Along& along, Writing writing,
                           Offered* offered) {
  const auto normal = queue.normal_queue();
  const bool swaps = along.gives_back.has_value() && tasks(normal).has_caps();
  if (swaps) tasks(normal).release(*along.gives_back, env_.clock->now());
  auto handed = queue.is_sticky() ? hand_over_sticky(queue, priority, stream, along, writing)
                                  : hand_over(queue, priority, stream, along, writing);
  offered->is_taken = handed.has_value();
  if (handed.has_value()) {
    offered->permit = std::move(handed->permit);
    offered->key = std::move(handed->key);
    offered->claim = std::move(handed->claim);
    offered->keeps_slot = swaps;
  } else if (swaps) {
    tasks(normal).occupy(*along.gives_back, env_.clock->now());
  }
}

QueueHost::Offered QueueHost::offer(const QueueAddress& queue, const model::Priority& priority,
                                    const queue::Stream& stream, const std::optional<Along>& along,
                                    Writing writing) {
  Offered offered;
  if (along.has_value()) {
    take_along(queue, priority, stream, *along, writing, &offered);
    if (offered.is_taken) return offered;
  }
  const TimeNs now = env_.clock->now();
  const auto normal = queue.normal_queue();
  auto& account = stored(normal);
  const uint32_t level = level_of(queue, priority);
  offered.key = account.tasks().line_of(priority.fairness_key());
  const auto& key = offered.key;
  if (key != priority.fairness_key()) ++line(normal).counts.sharing_lines;
  auto& target = line(queue);
  // What has to wait for a place waits where everyone does, in the order that is due. So does what
  // only workers of a version may have: a worker's own queue does not know which it is.
  if (queue.is_sticky() &&
      (stream.is_pinned() || !is_live(target) || !account.tasks().may_run(key))) {
    return offered;
  }
  auto& own = queue.is_sticky() ? load(queue, target) : account;
  const bool is_free =
      writing.batch != nullptr || !account.tasks().hand_over_leaves_rows(level, stream);
  const std::string version = own.tasks().target_of(stream);
  // Handed over at once only if no waiting task has a better claim.
  if (is_free && has_poll(queue, version, stream.type) &&
      own.tasks().may_hand_over(level, key, now, stream)) {
    offered.permit = admit(queue);
    if (offered.permit.has_value()) offered.poll = take_poll(queue, version, stream.type);
    if (offered.poll != nullptr && admission::is_session_stream(version)) {
      offered.hold = env_.sessions->claim(queue.name, version, offered.poll->request.identity);
      if (!offered.hold.has_value()) park(std::exchange(offered.poll, nullptr));
    }
    if (offered.poll != nullptr) {
      pass(queue, {level, key, priority.fairness_weight(), stream});
      if (writing.batch != nullptr) account.add_rows(writing.batch);
      ++target.counts.polls_with_task;
      ++target.counts.polls_with_new_task;
      target.dispatches.fresh[level].add(0);
      offered.poll->delta = advise(target, *offered.poll, now, false);
      offered.poll_from_sticky = queue.is_sticky();
      return offered;
    }
    offered.permit.reset();
  }
  offered.place = own.tasks().reserve(level, key, stream);
  ++target.counts.added_to_backlog;
  if (target.polls.empty() && target.last_poll + kNoPoller < now) {
    ++target.counts.added_without_poller;
  }
  // What a queue is to remember of its order is known before its first task waits.
  if (!queue.is_sticky() && own.tasks().rules_changed()) {
    store::WriteBatch rules;
    own.add_rules(&rules);
    env_.write(rules);
  }
  return offered;
}

}  // namespace fairlead::shard
