#include "api/temporal/polls.h"

#include <algorithm>

#include "base/error.h"

namespace fairlead::api {

namespace {

constexpr DurationNs kGrantMin = 2 * kSecond;
constexpr DurationNs kWayBack = kSecond;
constexpr DurationNs kSpreadHoldMin = 10 * kSecond;

}  // namespace

absl::StatusOr<TimeNs> PollHold::until(TimeNs now, TimeNs deadline, double chance) const {
  const auto shortened = static_cast<DurationNs>(static_cast<double>(spread) * chance);
  // A short hold has no herd to spread, and shortening it would only make it busier.
  const DurationNs held = hold - shortened < kSpreadHoldMin ? hold : hold - shortened;
  if (deadline == kNever) return add_saturated(now, held);
  // Compared from the side that cannot overflow: a deadline may lie anywhere, also in the past.
  if (deadline < add_saturated(now, kGrantMin)) {
    return errors::failed_precondition("Context timeout is too short.");
  }
  return std::min(add_saturated(now, held), deadline - kWayBack);
}

absl::StatusOr<PollLimiter::Slot> PollLimiter::park(NamespaceNum ns, model::TaskKind kind) {
  std::shared_ptr<std::atomic<int>> count;
  {
    const std::lock_guard lock(mutex_);
    auto& slot = counts_[{ns, kind}];
    if (slot == nullptr) slot = std::make_shared<std::atomic<int>>(0);
    count = slot;
  }
  Slot slot(count);
  if (count->fetch_add(1, std::memory_order_relaxed) >= polls_max_) {
    return errors::concurrent_limit("namespace concurrent poller limit exceeded");
  }
  return slot;
}

double PollLimiter::chance() {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(random_.below(1 << 20)) / (1 << 20);
}

}  // namespace fairlead::api
