#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "admission/dispatch_window.h"
#include "admission/policy.h"
#include "base/time.h"

namespace fairlead::admission {

// A budget that several queues draw on, and whose turn it is while it is short.
//
// A queue that ends a task could take the freed place in the same breath, for ever, and others
// would starve. So queues that were refused wait in the order in which they came. When room appears
// the first of them are called, and one place each is kept for them: a claim. A claim lasts a
// moment only: who does not come by then loses its turn, and nobody waits for a queue without
// workers.
class SharedBudget {
 public:
  static constexpr DurationNs kClaim = 100 * kMillisecond;

  // A queue as seen from here. It waits in one place at most.
  struct Waiter {
    SharedBudget* waits_at = nullptr;
    int64_t max = 0;  // what the budget is for this queue: overrides may differ
    Span span = Span::kFixed;
    uint64_t ticket = 0;
    TimeNs claim_until = 0;
  };
  struct Kept {
    int64_t places = 0;
    TimeNs until = kNever;
  };

  explicit SharedBudget(bool is_rate) : is_rate_(is_rate) {}
  SharedBudget(const SharedBudget&) = delete;
  SharedBudget& operator=(const SharedBudget&) = delete;

  // Of a rate: as of the last `window().advance`.
  int64_t used(Span span) const { return is_rate_ ? window_.used(span) : leases_; }
  int64_t leases() const { return leases_; }
  void add_lease() { ++leases_; }
  void end_lease();
  DispatchWindow& window() { return window_; }

  bool is_waited_for() const { return !waiting_.empty() || !claimants_.empty(); }
  // Places that others than `asker` have been promised.
  Kept kept_from(const Waiter& asker) const;
  // A refused queue waits, or goes on waiting at its old place.
  void wait(Waiter* waiter, int64_t max, Span span);
  void leave(Waiter* waiter);
  // Promises what room there is to the first who wait, and adds them to `called`.
  void call(TimeNs now, std::vector<Waiter*>* called);

 private:
  const bool is_rate_;
  int64_t leases_ = 0;
  DispatchWindow window_;

  absl::btree_map<uint64_t, Waiter*> waiting_;  // by ticket
  std::vector<Waiter*> claimants_;
  uint64_t last_ticket_ = 0;
  int64_t max_waited_for_ = 0;  // no waiter's budget is larger
};

}  // namespace fairlead::admission
