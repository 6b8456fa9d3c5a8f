#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "admission/dispatch_window.h"
#include "admission/policy.h"
#include "admission/refusal.h"
#include "admission/shared_budget.h"
#include "base/time.h"

namespace fairlead::admission {

// What makes a dispatch count after a restart, too: a row under its queue and slot, written in the
// batch of the start. Slots are used again a minute later, so a queue has no more rows than it had
// dispatches in its busiest minute.
struct DispatchRecord {
  uint32_t slot = 0;
  TimeNs at = 0;
  bool is_in_namespace = false;  // also counted for the namespace
  std::string group;             // also counted for this budget group; empty: for none
};

// How much of the budgets is in use.
struct Usage {
  int64_t leases = 0;
  int64_t namespace_leases = 0;
  int64_t dispatches = 0;
  int64_t namespace_dispatches = 0;
  int64_t group_dispatches = 0;
};

// The one owner of all budgets: what is leased, what was dispatched, and who may go.
//
//   admit ──► granted ──► start, written with its rows ──► release, once the lease's row is erased
//        │           └──► cancel: the task was not wanted
//        └──► refused, with the cause; the queue keeps its place among those who wait
//
// Asking and counting are one act, so no budget is ever exceeded. Rows keep it so over a crash: a
// lease or a dispatch is counted before its row is written and until after that row is erased, so
// at any moment the rows tell of no more than was counted, and a log that is cut anywhere tells of
// what was once true.
//
// An operator may lower a cap below what is in use. Nothing is revoked then.
//
// Not thread-safe; whoever shares it guards it.
class Ledger {
 public:
  struct Queue;

  struct Grant {
    Queue* queue = nullptr;
    void* group = nullptr;  // counted there
    TimeNs at = 0;
    uint32_t slot = 0;
    bool is_counted = false;  // as a dispatch
    bool is_in_namespace = false;
  };
  using Decision = std::variant<Grant, Refusal>;

  explicit Ledger(std::shared_ptr<const Policies> policies);
  ~Ledger();

  // Loading: every lease and dispatch that has a row. Until `restored`, queues with a cap are
  // refused, because nobody knows what is in use.
  void restore_lease(const QueueId& id);
  void restore_dispatch(const QueueId& id, const DispatchRecord& record);
  void restored(TimeNs now);
  bool is_restored() const { return is_restored_; }

  // A queue's place here, until it is closed as often as it was opened.
  Queue* open(const QueueId& id);
  void close(Queue* queue, TimeNs now);
  // Forgets queues that are closed and of which nothing is counted any more.
  void sweep(TimeNs now);
  size_t queues() const { return queues_.size(); }

  // May one task go now? If so it is counted.
  [[nodiscard]] Decision admit(Queue* queue, TimeNs now);
  // It goes: what to write in the batch of the start, right now. Nothing unless a cap per minute
  // holds.
  std::optional<DispatchRecord> start(const Grant& grant);
  // It did not go after all.
  void cancel(const Grant& grant, TimeNs now);
  // A worker is done with a task, and its row is erased.
  void release(Queue* queue, TimeNs now);
  // The queue has nothing to hand out, or nobody to hand it to: it waits for no budget.
  void leave(Queue* queue, TimeNs now);

  // Queues whose turn has come, to be asked soon whether they have something to hand out.
  std::vector<Queue*> take_called();

  // Other budgets, same counts. Whoever waits is called.
  void set_policies(std::shared_ptr<const Policies> policies);
  const Policies& policies() const { return *policies_; }

  const QueueId& id_of(const Queue* queue) const;
  const Caps& caps_of(const Queue* queue) const;
  // Why the last one who asked was refused; nothing if it was not.
  const std::optional<Refusal>& refusal_of(const Queue* queue) const;
  Usage usage(Queue* queue, TimeNs now);

 private:
  struct Namespace;
  struct Group;
  using NamespaceKey = std::pair<std::string, TaskKind>;
  using GroupKey = std::pair<NamespaceKey, std::string>;

  Queue& get(const QueueId& id);
  Namespace& get_namespace(const QueueId& id);
  Group& get_group(const QueueId& id, const std::string& name);
  void resolve(Queue& queue);
  SharedBudget* shared(const Queue& queue, Budget budget) const;
  std::optional<Refusal> check(Queue& queue, Budget budget, TimeNs now);
  Refusal refuse(Queue& queue, Refusal refusal, TimeNs now);
  void stop_waiting(Queue& queue, TimeNs now);
  void call(SharedBudget& budget, TimeNs now);
  static uint32_t take_slot(Queue& queue);
  // The grant is no longer on its way. True if its minute is over and its slot free again.
  static bool settle_slot(const Grant& grant);
  static TimeNs advance(Queue& queue, TimeNs now);
  Grant grant(Queue& queue, TimeNs now);

  std::shared_ptr<const Policies> policies_;
  bool is_restored_ = false;
  absl::flat_hash_map<QueueId, std::unique_ptr<Queue>> queues_;
  // As many as there are namespaces, and groups in the configuration: they stay.
  absl::flat_hash_map<NamespaceKey, std::unique_ptr<Namespace>> namespaces_;
  absl::flat_hash_map<GroupKey, std::unique_ptr<Group>> groups_;
  std::vector<SharedBudget::Waiter*> called_;
};

}  // namespace fairlead::admission
