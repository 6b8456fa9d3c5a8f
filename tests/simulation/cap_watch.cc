#include "simulation/cap_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::sim {

namespace {

namespace keys = store::keys;

// A task that was on its way to its worker when a cap was lowered arrives within this time.
constexpr DurationNs kOnTheWay = 10 * kSecond;

template <typename Message>
Message parse(std::string_view bytes) {
  Message message;
  FL_ASSERT(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
            "a row of the store is of its table's type");
  return message;
}

bool is_run(std::string_view key) { return key.front() == 'R'; }
// Of a run's pending things: table, shard, run, kind.
bool is_activity(std::string_view key) {
  return key.front() == 'P' && key.size() > 19 && key[19] == 'a';
}

}  // namespace

std::optional<CapWatch::Out> CapWatch::read(std::string_view key, std::string_view value) {
  if (is_run(key)) {
    const auto run = parse<model::RunState>(value);
    if (run.status() != model::RUNNING || run.workflow_task().started_id() == 0) {
      return std::nullopt;
    }
    return Out{{NamespaceNum(run.namespace_num()), model::WORKFLOW_TASK, run.task_queue()},
               run.workflow_task().lease_key()};
  }
  const auto activity = parse<model::ActivityState>(value);
  if (!activity.has_lease()) return std::nullopt;
  return Out{{NamespaceNum(0), model::ACTIVITY_TASK, activity.lease().queue()},
             activity.lease().fairness_key()};
}

void CapWatch::put(const std::string& row, std::optional<Out> out) {
  const auto count = [&](const Out& one, int64_t by) {
    const Queue queue{one.queue.type, one.queue.name};
    of_queue_[queue] += by;
    of_key_[{queue, one.key}] += by;
  };
  if (const auto found = out_.find(row); found != out_.end()) {
    count(found->second, -1);
    out_.erase(found);
  }
  if (!out.has_value()) return;
  count(*out, 1);
  out_[row] = std::move(*out);
}

void CapWatch::set_rules(std::string_view key, std::string_view value) {
  const auto name = keys::parse_queue_rules(key);
  auto& all = rules_[{name.type, name.name}];
  all.push_back({clock_->now(), parse<model::QueueRules>(value)});
}

void CapWatch::saw(const store::WriteBatch& batch) {
  using Kind = store::WriteBatch::Kind;
  const auto queues_before = of_queue_;
  const auto keys_before = of_key_;
  for (const auto& op : batch.ops()) {
    if (op.kind == Kind::kEraseRange) {
      std::vector<std::string> gone;
      for (auto at = out_.lower_bound(op.key); at != out_.end() && at->first < op.value; ++at) {
        gone.push_back(at->first);
      }
      for (const auto& row : gone) put(row, std::nullopt);
    } else if (is_run(op.key) || is_activity(op.key)) {
      put(op.key, op.kind == Kind::kPut ? read(op.key, op.value) : std::nullopt);
    } else if (op.key.front() == 'Q' && op.kind == Kind::kPut) {
      set_rules(op.key, op.value);
    }
  }
  const auto before = [](const auto& counts, const auto& what) -> int64_t {
    const auto found = counts.find(what);
    return found == counts.end() ? 0 : found->second;
  };
  const auto complain = [&](const std::string& whose, int64_t is, uint32_t max) {
    complain_(absl::StrCat("a cap is exceeded: ", is, " of ", max, " tasks of ", whose,
                           " are with workers"));
  };
  for (const auto& [queue, count] : of_queue_) {
    if (count <= before(queues_before, queue)) continue;
    const auto max = most(queue, [](const model::QueueRules& rules) {
      return rules.has_running_max() ? std::optional(rules.running_max()) : std::nullopt;
    });
    if (!max.has_value()) continue;
    if (count == *max) probes_->hit(Probe::kCapFull);
    if (count > *max) complain(queue.second, count, *max);
  }
  for (const auto& [line, count] : of_key_) {
    if (count <= before(keys_before, line)) continue;
    const auto& queue = line.first;
    const std::string& key = line.second;
    const auto max = most(queue, [&key](const model::QueueRules& rules) {
      const auto found = rules.keys().find(key);
      if (found != rules.keys().end() && found->second.has_running_max()) {
        return std::optional(found->second.running_max());
      }
      return rules.has_running_max_per_key() ? std::optional(rules.running_max_per_key())
                                             : std::nullopt;
    });
    if (!max.has_value()) continue;
    if (count == *max) probes_->hit(Probe::kCapFull);
    if (count > *max) complain(absl::StrCat(queue.second, " of key '", key, "'"), count, *max);
  }
}

// The most that any rules allow under which the task may have been let go. None: any number.
template <typename Cap>
std::optional<uint32_t> CapWatch::most(const Queue& queue, Cap cap) const {
  const auto found = rules_.find(queue);
  if (found == rules_.end()) return std::nullopt;
  std::optional<uint32_t> max = 0;
  TimeNs until = kNever;  // the next rules took over
  for (auto at = found->second.rbegin(); at != found->second.rend(); ++at) {
    if (add_saturated(until, kOnTheWay) < clock_->now()) return max;
    const auto one = cap(at->rules);
    if (!one.has_value()) return std::nullopt;
    max = std::max(*max, *one);
    until = at->since;
  }
  // Before the first there were none.
  if (add_saturated(until, kOnTheWay) >= clock_->now()) return std::nullopt;
  return max;
}

void CapWatch::read_again(const store::Store& store, uint16_t shards) {
  out_.clear();
  of_queue_.clear();
  of_key_.clear();
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
    const auto visit = [&](std::string_view key, std::string_view value) {
      if (is_run(key) || is_activity(key)) put(std::string(key), read(key, value));
    };
    scan(keys::runs(shard), visit);
    scan(pending, visit);
    scan(keys::queue_rules(shard),
         [&](std::string_view key, std::string_view value) { set_rules(key, value); });
  }
}

}  // namespace fairlead::sim
