#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "admission/policy.h"
#include "base/time.h"

namespace fairlead::admission {

// Which line of tasks is meant.
struct QueueId {
  std::string ns;
  std::string queue;
  TaskKind kind = TaskKind::kWorkflow;

  friend bool operator==(const QueueId&, const QueueId&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const QueueId& id) {
    return H::combine(std::move(state), id.ns, id.queue, id.kind);
  }
};

// Why no task of a queue may go now.
struct Refusal {
  enum class Cause : uint8_t {
    kFull,         // the budget is used up
    kTurn,         // what is left of it has been promised to queues that wait for longer
    kUnavailable,  // the budgets' counts are not known, yet or any more
  };
  // A queue looks again this soon, in case that nobody called it.
  static constexpr DurationNs kLookAgain = kSecond;

  Cause cause = Cause::kFull;
  Budget budget = Budget::kQueueLeases;
  Span span = Span::kFixed;
  int64_t limit = 0;
  int64_t used = 0;
  TimeNs retry_at = kNever;  // when time alone may change it; kNever: only a lease that ends
  TimeNs since = 0;          // the queue has been refused, for whatever cause, from then on

  // When the queue should ask again, whatever else happens.
  TimeNs look_again_at(TimeNs now) const {
    if (cause == Cause::kFull && !is_shared(budget)) return retry_at;
    return std::min(retry_at, now + kLookAgain);
  }
};

// A sentence for people: "budget group downstream-openai: 600 of 600 workflow tasks were dispatched
// in this minute; it has room in 12.3 s".
std::string to_text(const Refusal& refusal, const QueueId& id, std::string_view group, TimeNs now);

}  // namespace fairlead::admission
