#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "base/strong.h"
#include "base/time.h"
#include "model/model.pb.h"

namespace fairlead::api {

// Until when a poll that arrives at `now` is held.
//
//   now |<-- hold, less a random part of spread -->|        the usual end
//       |<------- what the caller grants ------->|-1 s|     its deadline, with a second for the way
//       back
//
// The earlier of the two ends it. A caller that grants less than two seconds is refused: its polls
// would cost more than they could ever fetch.
struct PollHold {
  DurationNs hold;
  DurationNs spread;

  // `chance` is a number in [0, 1).
  absl::StatusOr<TimeNs> until(TimeNs now, TimeNs deadline, double chance) const;
};

// Counts the parked polls of each namespace and kind and stops new ones at the limit.
class PollLimiter {
 public:
  PollLimiter(int polls_max, uint64_t seed) : polls_max_(polls_max), random_(seed) {}

  // One parked poll. Gives its place back when it goes.
  class Slot {
   public:
    explicit Slot(std::shared_ptr<std::atomic<int>> count) : count_(std::move(count)) {}
    Slot(Slot&&) = default;
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    std::shared_ptr<std::atomic<int>> count_;
  };

  // ResourceExhausted when the namespace has too many already.
  absl::StatusOr<Slot> park(NamespaceNum ns, model::TaskKind kind);

  // A number in [0, 1).
  double chance();

 private:
  const int polls_max_;
  std::mutex mutex_;
  Random random_;
  absl::flat_hash_map<std::pair<NamespaceNum, int>, std::shared_ptr<std::atomic<int>>> counts_;
};

}  // namespace fairlead::api
