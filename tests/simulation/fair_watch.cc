#include "simulation/fair_watch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "history/activity.h"
#include "queue/priority.h"
#include "queue/weight.h"
#include "store/keys.h"

namespace fairlead::sim {

namespace {

namespace keys = store::keys;

template <typename Message>
Message parse(std::string_view bytes) {
  Message message;
  FL_ASSERT(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
            "a row of the store is of its table's type");
  return message;
}

// Of tables with a run's own rows: table, shard, run.
std::string run_of(std::string_view key) { return std::string(key.substr(3, 16)); }
bool is_run(std::string_view key) { return key.front() == 'R'; }
bool is_activity(std::string_view key) {
  return key.front() == 'P' && key.size() > 19 && key[19] == 'a';
}

// What tells one start of a run's workflow task, or of an activity, from the next. Empty: no worker
// has it.
std::string start_of(const model::RunState& run) {
  const auto& task = run.workflow_task();
  if (run.status() != model::RUNNING || task.started_id() == 0) return "";
  return absl::StrCat(task.scheduled_id(), " ", task.started_id(), " ", task.attempt(), " ",
                      task.stamp(), " ", task.request_id());
}
std::string start_of(const model::ActivityState& activity) {
  if (!activity.has_lease()) return "";
  return absl::StrCat(activity.stamp(), " ", activity.started_ns(), " ", activity.request_id());
}

std::string show(const QueueName& queue, uint32_t level, const std::string& key) {
  return absl::StrCat("queue ", queue.name, " (", static_cast<int>(queue.type), ") level ", level,
                      " key '", key, "'");
}

}  // namespace

void FairCount::add(const FairCount& other) {
  starts += other.starts;
  against_level += other.against_level;
  in_line += other.in_line;
  passes += other.passes;
  stale += other.stale;
  told_apart += other.told_apart;
  share.picks += other.share.picks;
  share.intervals += other.share.intervals;
  share.keys += other.share.keys;
  share.over_crashes += other.share.over_crashes;
  share.after_passes += other.share.after_passes;
  share.after_stale += other.share.after_stale;
}

double FairWatch::weight_of(const Queue& queue, const std::string& key, double asked) {
  const auto found = queue.rules.weights().find(key);
  const double weight =
      found != queue.rules.weights().end() ? static_cast<double>(found->second) : asked;
  return weight == 0 ? 1 : std::clamp(weight, queue::Weight::kMin, queue::Weight::kMax);
}

bool FairWatch::is_free(const model::QueueRules& rules, const std::string& key) {
  if (rules.has_running_max_per_key()) return false;
  if (rules.key_limit().has_per_second() && !std::isinf(rules.key_limit().per_second())) {
    return false;
  }
  return !rules.keys().contains(key);
}

bool FairWatch::has_holds(const model::QueueRules& rules) {
  return !is_free(rules, "") || !rules.keys().empty();
}

// When nothing waits and nothing is out, nobody owes anything.
void FairWatch::settle(Level& level) {
  if (level.is_empty()) level.share.close();
}

// Where keys may be held back, shares are what is left of them.
void FairWatch::disturb_held(Queue& queue) {
  if (!has_holds(queue.rules)) return;
  for (auto& [number, level] : queue.levels) {
    if (!level.is_empty()) level.share.disturb();
  }
}

FairWatch::Lane FairWatch::Queue::lane(uint32_t level, queue::TaskType type) const {
  uint32_t group = 0;
  for (const auto& [slot, list] : lists) {
    if (type != queue::TaskType() && !list.contains(type)) group |= 1U << slot;
  }
  return {group, level};
}

FairWatch::Level* FairWatch::Queue::with_pick(uint64_t number) {
  for (auto& [lane, level] : levels) {
    if (level.out.contains(number)) return &level;
  }
  return nullptr;
}

bool FairWatch::know_lists(Queue& queue) {
  absl::btree_map<uint32_t, queue::TypeList> lists;
  for (const auto& row : queue.rules.type_lists()) {
    std::vector<queue::TaskType> types;
    for (const uint64_t type : row.types()) types.emplace_back(type);
    lists.emplace(row.slot(), queue::TypeList(std::move(types)));
  }
  return std::exchange(queue.lists, lists) != lists;
}

// Other types are told apart: whoever waits goes on waiting where its type is now, and how much of
// its share it had had is not known there.
void FairWatch::move_tasks(Queue& queue) {
  std::vector<std::pair<uint64_t, Lane>> moved;
  for (const auto& [lane, level] : queue.levels) {
    for (const auto& [key, tasks] : level.lines) {
      for (const auto& [number, asked] : tasks) moved.emplace_back(number, lane);
    }
  }
  for (const auto& [number, from] : moved) {
    const auto& row = queue.rows.at(number);
    const Lane to = queue.lane(row.place.level, row.place.stream.type);
    if (to == from) continue;
    auto& old = queue.levels[from];
    const auto line = old.lines.find(row.place.key);
    line->second.erase(number);
    if (line->second.empty()) old.lines.erase(line);
    old.share.disturb();
    old.share.lose(number, written_);
    settle(old);
    auto& level = queue.levels[to];
    settle(level);
    level.lines[row.place.key][number] = row.weight;
    level.share.arrive(row.place.key, weight_of(queue, row.place.key, row.weight), number,
                       written_);
    level.share.disturb();
  }
}

// ---- What the queues decide ---------------------------------------------------------------------

void FairWatch::waits(const QueueName& name, const queue::Place& place) {
  auto& owner = queue(name);
  const uint64_t number = place.seq.value();
  const auto row = owner.rows.find(number);
  if (row == owner.rows.end() || row->second.place != place) {
    return complain_(absl::StrCat("a task waits that was never written, in ",
                                  show(name, place.level, place.key)));
  }
  auto& level = owner.at(place);
  settle(level);
  level.lines[place.key][number] = row->second.weight;
  level.share.arrive(place.key, weight_of(owner, place.key, row->second.weight), number,
                     row->second.written);
  disturb_held(owner);
}

void FairWatch::removed(const QueueName& name, const queue::Place& place) {
  auto& owner = queue(name);
  const uint64_t number = place.seq.value();
  auto& level = owner.at(place);
  auto row = owner.rows.find(number);
  // The number may have been given out again, in another line, since the row went.
  const bool is_other = row != owner.rows.end() && (row->second.place.level != place.level ||
                                                    row->second.place.key != place.key);
  if (is_other) row = owner.rows.end();
  const uint64_t erased = row == owner.rows.end() ? 0 : row->second.erased;
  if (row != owner.rows.end() && erased == 0) {
    return complain_(absl::StrCat("a task is forgotten that still has its row, in ",
                                  show(name, place.level, place.key)));
  }
  const auto line = level.lines.find(place.key);
  const bool is_waiting = line != level.lines.end() && line->second.erase(number) > 0;
  if (is_waiting && line->second.empty()) level.lines.erase(line);
  if (is_waiting) level.share.lose(number, erased);
  if (auto* picked_from = owner.with_pick(number)) {
    picked_from->out.erase(number);
    ++count_.stale;
    picked_from->share.lose(number, erased);
    settle(*picked_from);
  }
  if (row != owner.rows.end()) owner.rows.erase(row);
  settle(level);
}

// No task of a level above `below` could have gone.
void FairWatch::check_levels(const Queue& queue, Lane below, const std::string& who) {
  for (const auto& [lane, level] : queue.levels) {
    const uint32_t number = lane.second;
    if (lane.first != below.first || number >= below.second) continue;
    for (const auto& [key, tasks] : level.lines) {
      if (!is_free(queue.rules, key)) continue;
      complain_(absl::StrCat(who, " goes while ", tasks.size(), " of key '", key,
                             "' wait in level ", number));
      return;
    }
  }
}

void FairWatch::picked(const QueueName& name, bool is_sticky, const queue::Place& place) {
  auto& owner = queue(name);
  const Lane lane = owner.lane(place.level, place.stream.type);
  auto& level = owner.levels[lane];
  const uint64_t number = place.seq.value();
  const auto who = show(name, place.level, place.key);
  const auto line = level.lines.find(place.key);
  if (line == level.lines.end() || !line->second.contains(number)) {
    return complain_(absl::StrCat("a task goes that does not wait, in ", who));
  }
  ++count_.starts;
  check_levels(owner, lane, who);
  for (const auto& [other, unused] : owner.levels) {
    if (other.first != lane.first || other == lane || unused.lines.empty()) continue;
    ++count_.against_level;
    break;
  }
  auto& tasks = line->second;
  if (tasks.begin()->first != number) {
    complain_(absl::StrCat("a task goes before an older one of its key, in ", who));
  }
  if (tasks.size() > 1) ++count_.in_line;
  const double asked = tasks.at(number);
  tasks.erase(number);
  if (tasks.empty()) level.lines.erase(line);
  level.out[number] = place.key;
  if (is_sticky) {
    // One worker's own queue: first come, first served.
    level.share.disturb();
    for (const auto& [key, others] : level.lines) {
      if (others.begin()->first < number) {
        complain_(absl::StrCat("a task goes before an older one, in ", who));
      }
    }
  }
  const auto wrong = level.share.pick(place.key, weight_of(owner, place.key, asked), number);
  if (!wrong.empty()) complain_(absl::StrCat("a share is not kept in ", who, ": ", wrong));
}

void FairWatch::passed(const QueueName& normal, const Passing& task, bool is_in_turn) {
  auto& owner = queue(normal);
  ++count_.passes;
  const Lane lane = owner.lane(task.level, task.stream.type);
  if (is_in_turn) {
    check_levels(owner, {lane.first, task.level + 1},
                 show(normal, task.level, task.key) + ", a new task,");
  }
  owner.passes.push_back({++passes_, lane, task.key, task.stream.type});
  auto& level = owner.levels[lane];
  if (!level.is_empty()) {
    level.share.pass(task.key, weight_of(owner, task.key, static_cast<double>(task.weight)),
                     passes_);
  }
}

// ---- What is written ----------------------------------------------------------------------------

void FairWatch::put_task(std::string_view key, std::string_view value) {
  const auto parsed = keys::parse_task(key);
  const auto row = parse<model::TaskRow>(value);
  queue(parsed.queue).rows[parsed.seq.value()] = {
      {parsed.level,
       parsed.fairness_key,
       parsed.seq,
       {"", static_cast<uint8_t>(row.slot()), queue::TaskType(row.type())}},
      static_cast<double>(row.priority().fairness_weight()),
      row.run(),
      row.scheduled_id(),
      row.stamp(),
      written_,
      0};
}

void FairWatch::set_rules(std::string_view key, std::string_view value) {
  auto& owner = queue(keys::parse_queue_rules(key));
  owner.rules = parse<model::QueueRules>(value);
  if (know_lists(owner)) {
    ++count_.told_apart;
    move_tasks(owner);
  }
  disturb_held(owner);
  for (auto& [number, level] : owner.levels) {
    for (const auto& [line, tasks] : level.lines) {
      level.share.reweigh(line, weight_of(owner, line, tasks.begin()->second));
    }
  }
}

std::vector<FairWatch::Start> FairWatch::find_starts(const store::WriteBatch& batch) {
  using Kind = store::WriteBatch::Kind;
  absl::btree_map<std::string, model::RunState> runs;
  for (const auto& op : batch.ops()) {
    if (op.kind == Kind::kPut && is_run(op.key)) {
      runs[run_of(op.key)] = parse<model::RunState>(op.value);
    }
  }
  std::vector<Start> starts;
  for (const auto& op : batch.ops()) {
    if (op.kind == Kind::kEraseRange) {
      with_workers_.erase(with_workers_.lower_bound(op.key), with_workers_.lower_bound(op.value));
      continue;
    }
    if (!is_run(op.key) && !is_activity(op.key)) continue;
    if (op.kind == Kind::kErase) {
      with_workers_.erase(op.key);
      continue;
    }
    const auto run = runs.find(run_of(op.key));
    FL_ASSERT(run != runs.end(), "a step writes its run");
    const NamespaceNum ns(run->second.namespace_num());
    Start start;
    start.run = run->first;
    const bool is_typed = run->second.flavour() == model::DURABLE;
    std::string now;
    if (is_run(op.key)) {
      now = start_of(run->second);
      start.queue = {ns, model::WORKFLOW_TASK, run->second.task_queue()};
      start.key = run->second.workflow_task().lease_key();
      start.stamp = run->second.workflow_task().stamp();
      start.level = queue::effective_level(run->second.priority(), queue::kLevelsDefault);
      if (is_typed) start.type = queue::task_type(run->second.workflow_type());
    } else {
      const auto activity = parse<model::ActivityState>(op.value);
      now = start_of(activity);
      start.queue = {ns, model::ACTIVITY_TASK, activity.lease().queue()};
      start.key = activity.lease().fairness_key();
      start.scheduled_id = activity.scheduled_id();
      start.stamp = activity.stamp();
      if (is_typed) start.type = queue::task_type(activity.scheduled().activity_type());
      start.level = queue::effective_level(
          history::merge_priority(run->second.priority(), activity.scheduled().priority()),
          queue::kLevelsDefault);
    }
    auto& before = with_workers_[op.key];
    if (!now.empty() && now != before) starts.push_back(std::move(start));
    before = std::move(now);
  }
  return starts;
}

// The start of a task whose key was charged past the order.
void FairWatch::pay(const Start& start, bool is_newest) {
  auto& owner = queue(start.queue);
  const auto is_its = [&](const Pass& pass) {
    return pass.key == start.key && pass.lane.second == start.level && pass.type == start.type;
  };
  auto found = std::find_if(owner.passes.begin(), owner.passes.end(), is_its);
  if (is_newest) {
    const auto newest = std::find_if(owner.passes.rbegin(), owner.passes.rend(), is_its);
    found = newest == owner.passes.rend() ? owner.passes.end() : std::prev(newest.base());
  }
  const auto who = show(start.queue, start.level, start.key);
  if (found == owner.passes.end()) {
    return complain_(absl::StrCat("a task starts past its queue and nobody pays, in ", who));
  }
  owner.levels[found->lane].share.set_written(FairLevel::Kind::kPass, found->number, written_);
  owner.passes.erase(found);
}

void FairWatch::started(const Start& start, std::vector<std::pair<QueueName, uint64_t>>& erased) {
  const auto is_its = [&](const auto& one) {
    const auto& row = queue(one.first).rows.at(one.second);
    return one.first.type == start.queue.type && row.run == start.run && row.stamp == start.stamp &&
           (start.queue.type == model::WORKFLOW_TASK || row.scheduled_id == start.scheduled_id);
  };
  const auto found = std::find_if(erased.begin(), erased.end(), is_its);
  if (found == erased.end()) return pay(start, false);
  const auto [name, number] = *found;
  erased.erase(found);
  auto& owner = queue(name);
  const auto row = owner.rows.at(number);
  auto* level = owner.with_pick(number);
  if (level == nullptr) {
    return complain_(absl::StrCat("a task starts that was not picked, in ",
                                  show(name, row.place.level, row.place.key)));
  }
  level->out.erase(number);
  level->share.set_written(FairLevel::Kind::kPick, number, written_);
  owner.rows.erase(number);
  settle(*level);
  if (name != start.queue) pay(start, true);
}

void FairWatch::saw(const store::WriteBatch& batch) {
  using Kind = store::WriteBatch::Kind;
  ++written_;
  std::vector<std::pair<QueueName, uint64_t>> erased;
  for (const auto& op : batch.ops()) {
    if (op.key.front() == 'T' && op.kind == Kind::kPut) put_task(op.key, op.value);
    if (op.key.front() == 'Q' && op.kind == Kind::kPut) set_rules(op.key, op.value);
    if (op.key.front() != 'T' || op.kind != Kind::kErase) continue;
    const auto parsed = keys::parse_task(op.key);
    const auto found = queue(parsed.queue).rows.find(parsed.seq.value());
    if (found == queue(parsed.queue).rows.end() || found->second.erased != 0) continue;
    found->second.erased = written_;
    erased.emplace_back(parsed.queue, parsed.seq.value());
  }
  for (const auto& start : find_starts(batch)) started(start, erased);
}

// ---- Power lost ---------------------------------------------------------------------------------

// What the queue will know of when it is read again: `queue.rows`, which are the store's.
void FairWatch::forget(Queue& queue, uint64_t written) {
  queue.passes.clear();
  for (auto& [number, level] : queue.levels) {
    level.lines.clear();
    level.out.clear();
    level.share.forget_after(written);
  }
  for (const auto& [number, row] : queue.rows) {
    queue.at(row.place).lines[row.place.key][number] = row.weight;
  }
  for (auto& [lane, level] : queue.levels) {
    const auto told = level.share.waiting();
    for (const auto& [task, key] : told) {
      const auto line = level.lines.find(key);
      if (line == level.lines.end() || !line->second.contains(task)) {
        level.share.lose(task, written);
      }
    }
    for (const auto& [key, tasks] : level.lines) {
      for (const auto& [task, asked] : tasks) {
        if (!told.contains(task)) {
          level.share.arrive(key, weight_of(queue, key, asked), task, written);
        }
      }
    }
    settle(level);
  }
  disturb_held(queue);
}

void FairWatch::read_again(const store::Store& store, uint16_t shards, uint64_t lost) {
  written_ -= lost;
  with_workers_.clear();
  for (auto& [name, owner] : queues_) {
    owner.rows.clear();
    owner.rules.Clear();
  }
  const auto scan = [&](const keys::Range& range, auto visit) {
    const auto status =
        store.scan(range.begin, range.end, [&](std::string_view key, std::string_view value) {
          visit(key, value);
          return true;
        });
    FL_ASSERT(status.ok(), "the simulated store can be read");
  };
  for (uint16_t i = 0; i < shards; ++i) {
    const ShardId shard(i);
    auto pending = keys::runs(shard);
    pending.begin[0] = 'P';
    pending.end[0] = 'P';
    scan(keys::runs(shard), [&](std::string_view key, std::string_view value) {
      with_workers_[std::string(key)] = start_of(parse<model::RunState>(value));
    });
    scan(pending, [&](std::string_view key, std::string_view value) {
      if (!is_activity(key)) return;
      with_workers_[std::string(key)] = start_of(parse<model::ActivityState>(value));
    });
    scan(keys::tasks(shard),
         [&](std::string_view key, std::string_view value) { put_task(key, value); });
    scan(keys::queue_rules(shard), [&](std::string_view key, std::string_view value) {
      queue(keys::parse_queue_rules(key)).rules = parse<model::QueueRules>(value);
    });
  }
  for (auto& [name, owner] : queues_) {
    if (know_lists(owner)) {
      for (auto& [lane, level] : owner.levels) level.share.disturb();
    }
    forget(owner, written_);
  }
}

FairCount FairWatch::count() {
  for (auto& [name, owner] : queues_) {
    for (auto& [number, level] : owner.levels) {
      level.share.close();
      FairCount one;
      one.share = std::exchange(level.share.judged, {});
      count_.add(one);
    }
  }
  return count_;
}

}  // namespace fairlead::sim
