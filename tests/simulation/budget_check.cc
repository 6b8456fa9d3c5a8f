#include "simulation/budget_check.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "model/model.pb.h"
#include "simulation/world.h"
#include "store/keys.h"

namespace fairlead::sim {

namespace {

namespace keys = store::keys;
using admission::Budget;
using admission::Span;
using admission::TaskKind;

// Queues by kind and name, those of both doors as one; a namespace, or a group, by kind and an
// empty name, or its own.
using Place = std::pair<TaskKind, std::string>;

TaskKind kind_of(const QueueName& queue) {
  return queue.type == model::ACTIVITY_TASK ? TaskKind::kActivity : TaskKind::kWorkflow;
}

// The most dispatches that one minute has seen.
int64_t busiest(std::vector<TimeNs> times, Span span) {
  std::sort(times.begin(), times.end());
  int64_t most = 0;
  size_t first = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    while (span == Span::kFixed ? times[first] / kMinute != times[i] / kMinute
                                : times[first] + kMinute <= times[i]) {
      ++first;
    }
    most = std::max(most, static_cast<int64_t>(i - first + 1));
  }
  return most;
}

class BudgetChecker {
 public:
  BudgetChecker(const store::Store& store, uint16_t shards, const admission::Policies& policies,
                BudgetCount* count)
      : store_(store), shards_(shards), policies_(policies), count_(*count) {}

  std::string check() {
    for (uint16_t i = 0; i < shards_; ++i) read(ShardId(i));
    for (const auto& [queue, leases] : leases_) {
      compare(queue, Budget::kQueueLeases, leases);
      compare(queue, Budget::kNamespaceLeases, all_leases_[queue.first]);
    }
    for (const auto& [queue, times] : dispatches_) {
      const auto caps = caps_of(queue);
      const auto rate = [&](Budget budget, const std::vector<TimeNs>& counted) {
        compare(queue, budget, busiest(counted, caps[budget].span));
      };
      rate(Budget::kQueueRate, times);
      rate(Budget::kNamespaceRate, in_namespace_[queue.first]);
      rate(Budget::kGroupRate, in_group_[{queue.first, caps.group}]);
    }
    return error_;
  }

 private:
  admission::Caps caps_of(const Place& queue) const {
    return policies_.resolve(kNamespace, queue.second, queue.first);
  }

  void compare(const Place& queue, Budget budget, int64_t used) {
    const auto caps = caps_of(queue);
    if (!caps.has(budget)) return;
    const int64_t max = caps[budget].max;
    if (used == max) ++count_.full;
    if (used <= max || !error_.empty()) return;
    error_ = absl::StrCat(used, " of ", max, " are used of ", std::string(field_of(budget)),
                          " for ", std::string(name_of(queue.first)), " of queue ", queue.second);
  }

  template <typename Visit>
  void scan(const keys::Range& range, Visit visit) {
    const auto status =
        store_.scan(range.begin, range.end, [&](std::string_view key, std::string_view value) {
          visit(key, value);
          return true;
        });
    FL_ASSERT(status.ok(), "the simulated store can be read");
  }

  void add_lease(const Place& queue) {
    ++leases_[queue];
    ++all_leases_[queue.first];
  }

  void read(ShardId shard) {
    scan(keys::leases(shard), [&](std::string_view key, std::string_view) {
      const auto queue = keys::parse_lease(key).queue;
      add_lease({kind_of(queue), std::string(shown_queue(queue.name))});
    });
    scan(keys::runs(shard), [&](std::string_view, std::string_view value) {
      model::RunState run;
      FL_ASSERT(run.ParseFromArray(value.data(), static_cast<int>(value.size())), "a run's row");
      if (run.status() != model::RUNNING || run.workflow_task().started_id() == 0) return;
      add_lease({TaskKind::kWorkflow, std::string(shown_queue(run.task_queue()))});
    });
    scan(keys::dispatches(shard), [&](std::string_view key, std::string_view value) {
      const auto queue = keys::parse_dispatch(key).queue;
      model::DispatchRow row;
      FL_ASSERT(row.ParseFromArray(value.data(), static_cast<int>(value.size())), "a dispatch");
      const TaskKind kind = kind_of(queue);
      dispatches_[{kind, std::string(shown_queue(queue.name))}].push_back(row.at_ns());
      if (row.in_namespace()) in_namespace_[kind].push_back(row.at_ns());
      if (!row.group().empty()) in_group_[{kind, row.group()}].push_back(row.at_ns());
    });
  }

  const store::Store& store_;
  const uint16_t shards_;
  const admission::Policies& policies_;
  BudgetCount& count_;
  std::string error_;
  absl::btree_map<Place, int64_t> leases_;
  absl::btree_map<TaskKind, int64_t> all_leases_;
  absl::btree_map<Place, std::vector<TimeNs>> dispatches_;
  absl::btree_map<TaskKind, std::vector<TimeNs>> in_namespace_;
  absl::btree_map<Place, std::vector<TimeNs>> in_group_;
};

}  // namespace

std::shared_ptr<const admission::Policies> draw_policies(Random& random) {
  admission::Settings settings;
  const bool is_any = random.chance(0.5);
  for (const TaskKind kind : admission::kAllKinds) {
    auto& defaults = settings.defaults[at(kind)];
    const auto draw = [&](Budget budget, double chance, uint64_t least, uint64_t spread) {
      if (!is_any || !random.chance(chance)) return;
      defaults.max[at(budget)] = static_cast<int64_t>(least + random.below(spread));
      if (is_rate(budget)) {
        defaults.span[at(budget)] = random.chance(0.5) ? Span::kSliding : Span::kFixed;
      }
    };
    draw(Budget::kQueueLeases, 0.4, 1, 5);
    draw(Budget::kNamespaceLeases, 0.4, 1, 8);
    draw(Budget::kQueueRate, 0.3, 60, 200);
    draw(Budget::kNamespaceRate, 0.3, 60, 200);
    if (!is_any || !random.chance(0.3)) continue;
    auto& all = settings.overrides["*"][at(kind)];
    all.dispatch_budget_group = "downstream";
    all.max[at(Budget::kGroupRate)] = static_cast<int64_t>(60 + random.below(200));
    all.span[at(Budget::kGroupRate)] = random.chance(0.5) ? Span::kSliding : Span::kFixed;
  }
  return std::make_shared<admission::Policies>(std::move(settings));
}

std::string check_budgets(const store::Store& store, uint16_t shards,
                          const admission::Policies& policies, BudgetCount* count) {
  return BudgetChecker(store, shards, policies, count).check();
}

}  // namespace fairlead::sim
