// A ledger with a disk that loses its tail, workers that come and go, and an auditor with books of
// its own.

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "admission/ledger.h"
#include "admission/policy_testing.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

constexpr TimeNs kStart = 28'333'333 * kMinute;
constexpr size_t kQueues = 12;

QueueId id_of(size_t queue) {
  return {queue % 2 == 0 ? "red" : "blue", absl::StrCat("q", queue / 4),
          queue % 4 < 2 ? TaskKind::kActivity : TaskKind::kWorkflow};
}

// A task that was granted. It has a row once it is written, and is a worker's once that is synced.
struct Task {
  size_t queue = 0;
  TimeNs at = 0;                     // by the auditor's clock
  std::vector<std::string> budgets;  // that count it by the minute
};

// What is on the disk, and what has been written since.
struct Disk {
  using LeaseRows = std::map<uint64_t, size_t>;                                // task: queue
  using DispatchRows = std::map<std::pair<size_t, uint32_t>, DispatchRecord>;  // queue, slot
  struct Batch {
    uint64_t task = 0;
    size_t queue = 0;
    bool is_start = false;
    std::optional<DispatchRecord> record;
  };

  void apply(const Batch& batch) {
    if (!batch.is_start) {
      leases.erase(batch.task);
      return;
    }
    leases[batch.task] = batch.queue;
    if (batch.record.has_value()) dispatches[{batch.queue, batch.record->slot}] = *batch.record;
  }
  void sync(size_t batches) {
    for (; batches > 0; --batches) {
      apply(tail.front());
      tail.pop_front();
    }
  }

  LeaseRows leases;  // as synced
  DispatchRows dispatches;
  std::deque<Batch> tail;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    reload();
    ledger_ = std::make_unique<Ledger>(policies_);
    ledger_->restored(now_);
    open();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) step();
  }

  // Everything ends: nothing may be left.
  void finish() {
    while (!granted_.empty()) write(0);
    while (!running_.empty()) end(0);
    for (size_t queue = 0; queue < kQueues; ++queue) {
      EXPECT_EQ(ledger_->usage(queues_[queue], now_).leases, 0);
      EXPECT_EQ(ledger_->usage(queues_[queue], now_).namespace_leases, 0);
    }
    disk_.sync(disk_.tail.size());
    EXPECT_TRUE(disk_.leases.empty());
  }

  size_t grants = 0, refusals = 0, cancels = 0, crashes = 0, lost = 0, reloads = 0, rows_max = 0;

 private:
  void step() {
    const uint64_t dice = random_.below(10'000);
    if (dice < 4'500) {
      ask(random_.below(kQueues));
    } else if (dice < 6'500) {
      if (!granted_.empty()) write(random_.below(granted_.size()));
    } else if (dice < 6'800) {
      if (!granted_.empty()) cancel(random_.below(granted_.size()));
    } else if (dice < 8'600) {
      if (!running_.empty()) end(random_.below(running_.size()));
    } else if (dice < 9'000) {
      disk_.sync(random_.below(disk_.tail.size() + 1));
    } else if (dice < 9'970) {
      now_ += static_cast<TimeNs>(random_.below(random_.chance(0.02) ? kMinute : kSecond));
    } else if (dice < 9'980) {
      crash();
    } else if (dice < 9'985) {
      reload();
      ledger_->set_policies(policies_);
    } else {
      ledger_->take_called();  // and nobody listens: budgets do not depend on calls
    }
  }

  void reload() {
    ++reloads;
    const auto cap = [&](std::string_view name, uint64_t most) {
      const uint64_t max = random_.chance(0.3) ? 0 : 1 + random_.below(most);
      return absl::StrCat("\"", std::string(name), "\": ", max, ", ");
    };
    const auto span = [&](std::string_view name) {
      return absl::StrCat("\"", std::string(name), "\": \"",
                          random_.chance(0.5) ? "fixed" : "sliding", "\", ");
    };
    std::string text = "{";
    for (const char* key : {"red:q0", "red:*", "q1", "*"}) {
      absl::StrAppend(&text, text == "{" ? "\"" : ", \"", key, "\": {");
      for (const char* kind : {"workflow_tasks", "activity_tasks"}) {
        absl::StrAppend(&text, kind[0] == 'w' ? "" : ", ", "\"", kind, "\": {");
        if (key[0] == '*' || random_.chance(0.5)) {
          for (const Budget budget : kAllBudgets) {
            text += cap(field_of(budget), is_rate(budget) ? 40 : 8);
          }
          text += span("dispatch_window");
          text += span("dispatch_window_per_namespace");
          text += span("dispatch_window_per_budget_group");
        }
        absl::StrAppend(&text, "\"budget_group\": \"g", random_.below(2), "\"}");
      }
      text += "}";
    }
    policies_ = std::make_shared<const Policies>(policies_of(text + "}"));
  }

  void open() {
    for (size_t queue = 0; queue < kQueues; ++queue) queues_[queue] = ledger_->open(id_of(queue));
  }

  void ask(size_t queue) {
    const auto decision = ledger_->admit(queues_[queue], now_);
    if (const auto* grant = std::get_if<Ledger::Grant>(&decision)) {
      ++grants;
      const uint64_t number = ++last_task_;
      tasks_[number] = {queue, now_, budgets_of(queue, *grant)};
      granted_.push_back({number, *grant});
      ++leases_[queue];
      count(number, tasks_[number]);
      audit(queue, true);
    } else {
      ++refusals;
      const auto& refusal = std::get<Refusal>(decision);
      if (refusal.cause == Refusal::Cause::kFull) {
        ASSERT_GE(refusal.used, refusal.limit);
      }
      ASSERT_GT(refusal.retry_at, now_);
      audit(queue, false);
    }
  }

  void write(size_t i) {
    const auto number = granted_[i].first;
    const auto record = ledger_->start(granted_[i].second);
    disk_.tail.push_back({number, tasks_[number].queue, true, record});
    running_.push_back(number);
    granted_.erase(granted_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void cancel(size_t i) {
    ++cancels;
    const auto [number, grant] = granted_[i];
    ledger_->cancel(grant, now_);
    granted_.erase(granted_.begin() + static_cast<std::ptrdiff_t>(i));
    const size_t queue = tasks_[number].queue;
    --leases_[queue];
    forget(number);
    audit(queue, false);
  }

  // First the row goes, then the count.
  void end(size_t i) {
    const auto number = running_[i];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    const size_t queue = tasks_[number].queue;
    disk_.tail.push_back({number, queue, false, std::nullopt});
    ledger_->release(queues_[queue], now_);
    --leases_[queue];
    audit(queue, false);
  }

  // The process is gone, and with it what was granted and some of what was written.
  void crash() {
    ++crashes;
    disk_.sync(random_.below(disk_.tail.size() + 1));
    for (const auto& batch : disk_.tail) {
      if (batch.is_start) {
        ++lost;
        forget(batch.task);
      }
    }
    disk_.tail.clear();
    for (const auto& [number, grant] : granted_) forget(number);
    granted_.clear();
    running_.clear();
    leases_.fill(0);
    rows_max = std::max(rows_max, disk_.dispatches.size());

    ledger_ = std::make_unique<Ledger>(policies_);
    for (const auto& [number, queue] : disk_.leases) {
      ledger_->restore_lease(id_of(queue));
      running_.push_back(number);
      ++leases_[queue];
    }
    for (const auto& [key, record] : disk_.dispatches) {
      ledger_->restore_dispatch(id_of(key.first), record);
    }
    if (random_.chance(0.5)) now_ += static_cast<TimeNs>(random_.below(20 * kSecond));
    ledger_->restored(now_);
    open();
    for (size_t queue = 0; queue < kQueues; ++queue) audit(queue, false);
  }

  // ---- the auditor ---------------------------------------------------------------------------

  std::vector<std::string> budgets_of(size_t queue, const Ledger::Grant& grant) {
    std::vector<std::string> names;
    if (!grant.is_counted) return names;
    const auto id = id_of(queue);
    const std::string kind(name_of(id.kind));
    names.push_back(absl::StrCat("q ", id.ns, " ", id.queue, " ", kind));
    if (grant.is_in_namespace) names.push_back(absl::StrCat("n ", id.ns, " ", kind));
    if (grant.group != nullptr) {
      const auto& group = ledger_->caps_of(queues_[queue]).group;
      names.push_back(absl::StrCat("g ", id.ns, " ", group, " ", kind));
    }
    return names;
  }

  void count(uint64_t number, const Task& task) {
    for (const auto& name : task.budgets) {
      dispatched_[name].insert({task.at, number});
    }
  }

  // It never happened.
  void forget(uint64_t number) {
    const auto& task = tasks_[number];
    for (const auto& name : task.budgets) dispatched_[name].erase({task.at, number});
    tasks_.erase(number);
  }

  int64_t dispatches(const std::string& name, Span span) {
    auto& times = dispatched_[name];
    while (!times.empty() && times.begin()->first <= now_ - kMinute) times.erase(times.begin());
    const TimeNs minute = now_ / kMinute * kMinute;
    const auto first = span == Span::kFixed ? times.lower_bound({minute, 0}) : times.begin();
    return std::distance(first, times.end());
  }

  // What the ledger counts is what happened; and what was just granted is within every budget.
  void audit(size_t queue, bool is_grant) {
    const auto id = id_of(queue);
    const auto& caps = ledger_->caps_of(queues_[queue]);
    const auto usage = ledger_->usage(queues_[queue], now_);
    int64_t namespace_leases = 0;
    for (size_t other = 0; other < kQueues; ++other) {
      const auto its = id_of(other);
      if (its.ns == id.ns && its.kind == id.kind) namespace_leases += leases_[other];
    }
    const std::string kind(name_of(id.kind));
    const auto rate = [&](Budget budget, const std::string& name) {
      return dispatches(name, caps[budget].span);
    };
    const std::array<int64_t, kBudgets> counted = {
        leases_[queue],
        namespace_leases,
        rate(Budget::kQueueRate, absl::StrCat("q ", id.ns, " ", id.queue, " ", kind)),
        rate(Budget::kNamespaceRate, absl::StrCat("n ", id.ns, " ", kind)),
        rate(Budget::kGroupRate, absl::StrCat("g ", id.ns, " ", caps.group, " ", kind)),
    };
    ASSERT_EQ(usage.leases, counted[0]);
    ASSERT_EQ(usage.namespace_leases, counted[1]);
    ASSERT_EQ(usage.dispatches, counted[2]);
    ASSERT_EQ(usage.namespace_dispatches, counted[3]);
    ASSERT_EQ(usage.group_dispatches, counted[4]);
    if (!is_grant) return;
    for (const Budget budget : kAllBudgets) {
      if (caps.has(budget)) {
        ASSERT_LE(counted[at(budget)], caps[budget].max) << field_of(budget);
      }
    }
  }

  Random random_;
  TimeNs now_ = kStart;
  std::shared_ptr<const Policies> policies_;
  std::unique_ptr<Ledger> ledger_;
  std::array<Ledger::Queue*, kQueues> queues_{};
  Disk disk_;
  uint64_t last_task_ = 0;
  std::vector<std::pair<uint64_t, Ledger::Grant>> granted_;
  std::vector<uint64_t> running_;
  std::map<uint64_t, Task> tasks_;
  std::array<int64_t, kQueues> leases_{};
  std::map<std::string, std::set<std::pair<TimeNs, uint64_t>>> dispatched_;
};

TEST(LedgerProperty, NoBudgetIsExceededAndNoLeaseLeaksOverAMillionSteps) {
  size_t grants = 0;
  size_t refusals = 0;
  size_t crashes = 0;
  size_t lost = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world(seed);
    world.run(50'000);
    if (HasFatalFailure()) return;
    world.finish();
    grants += world.grants;
    refusals += world.refusals;
    crashes += world.crashes;
    lost += world.lost;
    // At most one row for each dispatch of a queue's busiest minute.
    EXPECT_LT(world.rows_max, 10'000U);
  }
  // The simulation has been where it matters.
  EXPECT_GT(grants, 100'000U);
  EXPECT_GT(refusals, 100'000U);
  EXPECT_GT(crashes, 500U);
  EXPECT_GT(lost, 500U);
}

// Calls may be lost and turns are kept for a moment only; still every queue with work gets on.
TEST(LedgerProperty, EveryQueueThatLooksAgainIsServed) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Ledger ledger(std::make_shared<const Policies>(
        policies_of(R"({"*": {"activity_tasks": {"max_active_leases_per_namespace": 2,
          "max_dispatches_per_minute_per_namespace": 30, "dispatch_window_per_namespace":
          "sliding"}}})")));
    ledger.restored(kStart);
    constexpr size_t kShares = 8;
    std::array<Ledger::Queue*, kShares> queues{};
    std::array<TimeNs, kShares> asks_at{};
    std::array<int, kShares> served{};
    std::array<int64_t, kShares> running{};
    for (size_t i = 0; i < kShares; ++i) {
      queues[i] = ledger.open({"ns", absl::StrCat("q", i), TaskKind::kActivity});
    }
    for (TimeNs now = kStart; now < kStart + 20 * kMinute; now += 50 * kMillisecond) {
      for (size_t i = 0; i < kShares; ++i) {
        if (running[i] > 0 && random.chance(0.3)) {
          --running[i];
          ledger.release(queues[i], now);
          asks_at[i] = now;
        }
        if (asks_at[i] > now) continue;
        const auto decision = ledger.admit(queues[i], now);
        if (const auto* refusal = std::get_if<Refusal>(&decision)) {
          asks_at[i] = refusal->look_again_at(now);
        } else {
          ++served[i];
          ++running[i];
        }
      }
      for (auto* const called : ledger.take_called()) {
        if (random.chance(0.2)) continue;
        const auto found = std::find(queues.begin(), queues.end(), called);
        asks_at[static_cast<size_t>(found - queues.begin())] = now;
      }
    }
    // 600 in twenty minutes, 75 each.
    for (size_t i = 0; i < kShares; ++i) EXPECT_GT(served[i], 45) << "seed " << seed;
    EXPECT_GT(std::accumulate(served.begin(), served.end(), 0), 570) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fairlead::admission
