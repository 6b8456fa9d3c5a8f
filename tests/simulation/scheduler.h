#pragma once

#include <cstdint>
#include <deque>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "base/executor.h"
#include "base/random.h"
#include "base/time.h"

namespace fairlead::sim {

// Who a pending event belongs to. A server that crashes takes its events with it; what belongs to
// nobody (clients, the wire, misfortune itself) stays.
using Owner = uint32_t;
inline constexpr Owner kNobody = 0;

// All that will happen, in one line. Events at the same instant come in an order that the seed
// decides, so that nothing gets to rely on the order in which they were asked for.
class Scheduler final : public Clock {
 public:
  explicit Scheduler(uint64_t seed) : random_(seed) {}

  TimeNs now() override { return now_; }
  Random& random() { return random_; }

  void at(TimeNs when, Owner owner, Job job);
  void after(DurationNs delay, Owner owner, Job job) {
    at(add_saturated(now_, delay), owner, std::move(job));
  }
  // A duration in [from, to).
  DurationNs between(DurationNs from, DurationNs to) {
    return from + static_cast<DurationNs>(random_.below(static_cast<uint64_t>(to - from)));
  }

  // Lets the next event happen. False if there is none before `end`; the clock then stands at
  // `end`.
  bool step(TimeNs end);
  // Forgets everything that a dead server still meant to do.
  void drop(Owner owner);
  uint64_t steps() const { return steps_; }

 private:
  using Key = std::tuple<TimeNs, uint32_t, uint64_t>;  // when, whose turn by lot, asked for
  struct Event {
    Owner owner;
    Job job;
  };

  TimeNs now_ = 1'700'000'000 * kSecond;
  Random random_;
  uint64_t last_ = 0;
  uint64_t steps_ = 0;
  absl::btree_map<Key, Event> events_;
};

// One of the server's threads. Jobs run one at a time and in order, with a little time between them
// in which the others get a turn.
class SimExecutor final : public Executor {
 public:
  // `current` is shared by all executors of a server and says which of them is running.
  SimExecutor(Scheduler* scheduler, Owner owner, const SimExecutor** current)
      : scheduler_(scheduler), owner_(owner), current_(current) {}

  void post(Job job) override;
  void post_at(TimeNs at, Job job) override;
  bool is_current() const override { return *current_ == this; }
  void clear() { jobs_.clear(); }

 private:
  void wait_for_turn();

  Scheduler* const scheduler_;
  const Owner owner_;
  const SimExecutor** const current_;
  std::deque<Job> jobs_;
};

}  // namespace fairlead::sim
