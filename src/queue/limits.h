#pragma once

#include <cmath>
#include <cstdint>

#include "base/time.h"

namespace fairlead::queue {

// How much of a limit may be saved up while nothing happens.
inline constexpr DurationNs kBurst = kSecond;

// What workers and operators may ask for at most; more is no limit.
inline constexpr double kSystemLimit = 100'000;

// A limit in starts per second (GCRA). In any window of t seconds at most rate * (t + 1) + 1 starts
// pass. `ready` is all there is to remember.
class Bucket {
 public:
  TimeNs ready() const { return ready_; }
  void set_ready(TimeNs ready) { ready_ = ready; }

  // Rounded up, so that rounding never lets more through.
  static DurationNs interval(double per_second) {
    if (!(per_second > 1e-9)) return kNever;
    return static_cast<DurationNs>(std::ceil(static_cast<double>(kSecond) / per_second));
  }

  bool is_ready(TimeNs now, double per_second) const { return per_second > 1e-9 && ready_ <= now; }
  void take(TimeNs now, double per_second) {
    const TimeNs floor = now - kBurst;
    ready_ = add_saturated(ready_ < floor ? floor : ready_, interval(per_second));
  }
  void give_back(double per_second) { ready_ -= interval(per_second); }
  // Another rate: what the old one made wait for longer than the new one would is forgiven.
  void change(TimeNs now, double per_second) {
    const TimeNs latest = add_saturated(now, interval(per_second));
    if (ready_ > latest) ready_ = latest;
  }

 private:
  TimeNs ready_ = 0;
};

// The clock by which all keys of a queue are limited: it runs at the rate of a key of weight one,
// so that another rate changes the clock and not a million keys. A key keeps one number, its
// arrival:
//
//   may start:   arrival - clock <= burst
//   on a start:  arrival = max(arrival, clock) + 1 / weight
//
// Times are in units of 2^-24 task and wrap around.
class KeyClock {
 public:
  static constexpr int kBits = 24;

  bool is_on() const { return is_on_; }
  bool is_frozen() const { return is_on_ && rate_ == 0; }

  int64_t at(TimeNs now) const {
    const __int128 passed = static_cast<__int128>(now - since_) * rate_ / kSecond;
    return static_cast<int64_t>(static_cast<uint64_t>(reading_) + static_cast<uint64_t>(passed));
  }
  // The other way: when the clock will show this.
  TimeNs when(int64_t reading) const {
    if (rate_ == 0) return kNever;
    const auto left =
        static_cast<int64_t>(static_cast<uint64_t>(reading) - static_cast<uint64_t>(reading_));
    const __int128 wait = (static_cast<__int128>(left) * kSecond + rate_ - 1) / rate_;
    return add_saturated(since_, static_cast<DurationNs>(wait));
  }
  int64_t burst() const {
    return static_cast<int64_t>(static_cast<__int128>(rate_) * kBurst / kSecond);
  }
  static int64_t cost(double weight) {
    return static_cast<int64_t>(std::ceil(static_cast<double>(1 << kBits) / weight));
  }

  void set_rate(TimeNs now, double per_second) {
    restart(at(now), now);
    is_on_ = true;
    rate_ = per_second > 1e-9 ? static_cast<int64_t>(per_second * (1 << kBits)) : 0;
  }
  void turn_off(TimeNs now) {
    restart(at(now), now);
    is_on_ = false;
    rate_ = 0;
  }
  void restart(int64_t reading, TimeNs since) {
    reading_ = reading;
    since_ = since;
  }
  int64_t reading() const { return reading_; }
  TimeNs since() const { return since_; }

 private:
  int64_t reading_ = 0;
  TimeNs since_ = 0;
  int64_t rate_ = 0;  // units per second
  bool is_on_ = false;
};

}  // namespace fairlead::queue
