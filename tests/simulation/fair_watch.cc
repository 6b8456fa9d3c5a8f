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

// ---- What the queues decide ---------------------------------------------------------------------

void FairWatch::waits(const QueueName& name, const queue::Place& place) {
  auto& owner = queue(name);
  const uint64_t number = place.seq.value();
  const auto row = owner.rows.find(number);
  if (row == owner.rows.end() || row->second.place != place) {
    return complain_(absl::StrCat("a task waits that was never written, in ",
                                  show(name, place.level, place.key)));
  }
  auto& level = owner.levels[place.level];
  settle(level);
  level.lines[place.key][number] = row->second.weight;
  level.share.arrive(place.key, weight_of(owner, place.key, row->second.weight), number,
                     row->second.written);
  disturb_held(owner);
}

void FairWatch::removed(const QueueName& name, const queue::Place& place) {
  auto& owner = queue(name);
  const uint64_t number = place.seq.value();
  auto& level = owner.levels[place.level];
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
  const bool is_stale = level.out.erase(number) > 0;
  if (is_stale) ++count_.stale;
  if (is_waiting || is_stale) level.share.lose(number, erased);
  if (row != owner.rows.end()) owner.rows.erase(row);
  settle(level);
}

// No task of a level above `below` could have gone.
void FairWatch::check_levels(const Queue& queue, uint32_t below, const std::string& who) {
  for (const auto& [number, level] : queue.levels) {
    if (number >= below) return;
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
  auto& level = owner.levels[place.level];
  const uint64_t number = place.seq.value();
  const auto who = show(name, place.level, place.key);
  const auto line = level.lines.find(place.key);
  if (line == level.lines.end() || !line->second.contains(number)) {
    return complain_(absl::StrCat("a task goes that does not wait, in ", who));
  }
  ++count_.starts;
  check_levels(owner, place.level, who);
  for (const auto& [other, unused] : owner.levels) {
    if (other == place.level || unused.lines.empty()) continue;
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

void FairWatch::passed(const QueueName& normal, uint32_t number, const std::string& key,
                       float weight, bool is_in_turn) {
  auto& owner = queue(normal);
  ++count_.passes;
  if (is_in_turn) check_levels(owner, number + 1, show(normal, number, key) + ", a new task,");
  owner.passes.push_back({++passes_, number, key});
  auto& level = owner.levels[number];
  if (!level.is_empty()) {
    level.share.pass(key, weight_of(owner, key, static_cast<double>(weight)), passes_);
  }
}

// ---- What is written ----------------------------------------------------------------------------

void FairWatch::put_task(std::string_view key, std::string_view value) {
  const auto parsed = keys::parse_task(key);
  const auto row = parse<model::TaskRow>(value);
  queue(parsed.queue).rows[parsed.seq.value()] = {
      {parsed.level, parsed.fairness_key, parsed.seq, {"", static_cast<uint8_t>(row.slot())}},
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
    std::string now;
    if (is_run(op.key)) {
      now = start_of(run->second);
      start.queue = {ns, model::WORKFLOW_TASK, run->second.task_queue()};
      start.key = run->second.workflow_task().lease_key();
      start.stamp = run->second.workflow_task().stamp();
      start.level = queue::effective_level(run->second.priority(), queue::kLevelsDefault);
    } else {
      const auto activity = parse<model::ActivityState>(op.value);
      now = start_of(activity);
      start.queue = {ns, model::ACTIVITY_TASK, activity.lease().queue()};
      start.key = activity.lease().fairness_key();
      start.scheduled_id = activity.scheduled_id();
      start.stamp = activity.stamp();
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
    return pass.key == start.key && pass.level == start.level;
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
  owner.levels[found->level].share.set_written(FairLevel::Kind::kPass, found->number, written_);
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
  auto& level = owner.levels[row.place.level];
  if (level.out.erase(number) == 0) {
    return complain_(absl::StrCat("a task starts that was not picked, in ",
                                  show(name, row.place.level, row.place.key)));
  }
  level.share.set_written(FairLevel::Kind::kPick, number, written_);
  owner.rows.erase(number);
  settle(level);
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
    queue.levels[row.place.level].lines[row.place.key][number] = row.weight;
  }
  for (auto& [number, level] : queue.levels) {
    const auto told = level.share.waiting();
    for (const auto& [task, key] : told) {
      if (!queue.rows.contains(task)) level.share.lose(task, written);
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
  for (auto& [name, owner] : queues_) forget(owner, written_);
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
