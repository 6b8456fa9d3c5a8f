#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "admission/ledger.h"
#include "admission/policy.h"
#include "admission/roster.h"
#include "base/assert.h"

// What operators are shown of a queue's admission: the `admission` object of GET /api/task-queues.
// Names, order and meaning of its fields are Durable Workflow's.
namespace fairlead::admission {

// Queries that wait for a worker of one queue. They live in memory: a query that is refused, or
// forgotten by a crash, is asked again.
class PendingQueries {
 public:
  // False: full, and the caller is told so at once.
  [[nodiscard]] bool try_add(int64_t max) {
    if (pending_ >= max) return false;
    ++pending_;
    return true;
  }
  // A worker took it, or its caller has given up.
  void remove() {
    FL_ASSERT(pending_ > 0, "a query left twice");
    --pending_;
  }
  int64_t pending() const { return pending_; }

 private:
  int64_t pending_ = 0;
};

enum class Status : uint8_t {
  kAccepting,
  kThrottled,        // a cap is full
  kSaturated,        // every slot of the workers is leased
  kNoSlots,          // the workers registered no slot for this kind
  kNoActiveWorkers,  // nobody is there
  kUnavailable,      // a cap holds, and the counts are not known
  kFull,             // of queries: as many wait as may
};
std::string_view name_of(Status status);

// A cap with what is used of it.
struct BudgetView {
  std::optional<int64_t> max;
  int64_t used = 0;
  std::optional<int64_t> remaining;
};

// Workflow or activity tasks.
struct TaskSection {
  Status status = Status::kAccepting;
  TaskKind kind = TaskKind::kWorkflow;
  int64_t active_workers = 0;
  int64_t configured_slots = 0;
  int64_t leased = 0;
  int64_t ready = 0;
  int64_t available_slots = 0;
  std::array<BudgetView, kBudgets> budgets;
  std::optional<std::string> group;
  bool is_lock_required = false;
  bool is_lock_supported = true;
  std::string server_budget_source;
};

// What a section is made of. An expired lease is one whose worker is late and that has not been
// taken back yet.
struct TaskFacts {
  Caps caps;
  Usage usage;
  Slots slots;
  int64_t ready = 0;
  int64_t expired = 0;            // leases of the queue
  int64_t expired_namespace = 0;  // and of the whole namespace
  bool is_available = true;       // Ledger::is_restored
};
TaskSection make_section(const TaskFacts& facts);

struct QuerySection {
  Status status = Status::kAccepting;
  int64_t pending_max = 0;
  int64_t pending = 0;
  int64_t remaining = 0;
  bool is_lock_supported = true;
};
QuerySection make_section(int64_t pending_max, int64_t pending, bool is_available);

struct Payload {
  TaskSection workflow_tasks;
  TaskSection activity_tasks;
  QuerySection query_tasks;
};
// One line of JSON.
std::string to_json(const Payload& payload);

}  // namespace fairlead::admission
