#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/time.h"

// Which budgets there are for the tasks of a queue, and where they come from.
namespace fairlead::admission {

enum class TaskKind : uint8_t { kWorkflow, kActivity };
inline constexpr size_t kKinds = 2;
inline constexpr std::array kAllKinds = {TaskKind::kWorkflow, TaskKind::kActivity};
// "workflow_tasks", "activity_tasks".
std::string_view name_of(TaskKind kind);

// In the order in which they are asked.
enum class Budget : uint8_t {
  kQueueLeases,
  kNamespaceLeases,
  kQueueRate,
  kNamespaceRate,
  kGroupRate,
};
inline constexpr size_t kBudgets = 5;
inline constexpr std::array kAllBudgets = {Budget::kQueueLeases, Budget::kNamespaceLeases,
                                           Budget::kQueueRate, Budget::kNamespaceRate,
                                           Budget::kGroupRate};
constexpr size_t at(Budget budget) { return static_cast<size_t>(budget); }
constexpr size_t at(TaskKind kind) { return static_cast<size_t>(kind); }
constexpr bool is_rate(Budget budget) { return budget >= Budget::kQueueRate; }
// Several queues draw on it.
constexpr bool is_shared(Budget budget) {
  return budget != Budget::kQueueLeases && budget != Budget::kQueueRate;
}
// "max_active_leases_per_queue" and so on.
std::string_view field_of(Budget budget);

// What a dispatch of a minute is counted against.
//
//   fixed     the wall clock's minute. Around its boundary twice the cap may pass in a minute.
//   sliding   the sixty seconds that end now. Never more than the cap in any of them.
enum class Span : uint8_t { kFixed, kSliding };

// A window remembers each of its dispatches; beyond this they would weigh too much.
inline constexpr int64_t kSlidingMax = 1'000'000;
inline constexpr int64_t kCapMax = 1'000'000'000;

// ---- settings: what somebody wrote -----------------------------------------------------------

// What an override says of a field: nothing, null (the search ends, the default holds), or a value.
template <typename Value>
using Said = std::optional<std::optional<Value>>;

// One kind of task under one key of the overrides. A cap of 0 is none.
struct KindOverrides {
  std::array<Said<int64_t>, kBudgets> max;
  Said<int64_t> max_active_leases;  // another name for kQueueLeases
  std::array<Said<Span>, kBudgets> span;
  Said<std::string> dispatch_budget_group;
  Said<std::string> budget_group;  // another name for it
};

struct Settings {
  struct Defaults {
    std::array<std::optional<int64_t>, kBudgets> max;
    std::array<std::optional<Span>, kBudgets> span;
  };
  std::array<Defaults, kKinds> defaults;
  // By "namespace:queue", "namespace:*", "queue" or "*".
  std::map<std::string, std::array<KindOverrides, kKinds>, std::less<>> overrides;
  std::optional<int64_t> queries_pending_max;
  std::optional<int64_t> worker_stale_after_s;
  std::optional<int64_t> worker_poll_timeout_s;

  // What `upper` says replaces what is said here, field by field.
  void lay_over(const Settings& upper);
};

// ---- policies: what holds --------------------------------------------------------------------

struct Cap {
  int64_t max = 0;  // 0: none
  Span span = Span::kFixed;
  bool is_overridden = false;  // who says so: an override, or the default
};

struct Caps {
  TaskKind kind = TaskKind::kWorkflow;
  std::array<Cap, kBudgets> caps;
  std::string group;  // empty: none

  const Cap& operator[](Budget budget) const { return caps[at(budget)]; }
  bool has(Budget budget) const { return caps[at(budget)].max > 0; }
  bool is_any() const;
  // A dispatch is counted somewhere.
  bool is_any_rate() const;
  // As in the payload: "server.admission.queue_overrides;server.admission.…".
  std::string source() const;
};

// What holds for every queue, for good: a reload makes another one.
class Policies {
 public:
  static constexpr int64_t kQueriesPendingMax = 1024;

  Policies() = default;
  explicit Policies(Settings settings);

  // Each field on its own is looked up under "namespace:queue", "namespace:*", "queue", "*" and
  // then in the defaults. Namespaces are compared in small letters.
  Caps resolve(std::string_view ns, std::string_view queue, TaskKind kind) const;

  int64_t queries_pending_max() const { return queries_pending_max_; }
  DurationNs worker_stale_after() const { return worker_stale_after_; }

 private:
  Settings settings_;
  int64_t queries_pending_max_ = kQueriesPendingMax;
  DurationNs worker_stale_after_ = 60 * kSecond;
};

}  // namespace fairlead::admission
