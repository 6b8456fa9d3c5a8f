#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"

namespace fairlead::queue {

// How often something happened per second over the last half minute, in steps of five seconds.
class Meter {
 public:
  void count(TimeNs now) {
    turn(now);
    ++steps_[static_cast<size_t>(step_) % kSteps];
  }
  double per_second(TimeNs now) {
    turn(now);
    uint64_t sum = 0;
    for (const uint32_t step : steps_) sum += step;
    const int64_t first = step_ - (kSteps - 1);
    const TimeNs begin = began_ > first * kStep ? began_ : first * kStep;
    const double seconds = static_cast<double>(now - begin) / kSecond;
    return sum == 0 ? 0 : static_cast<double>(sum) / (seconds < 1 ? 1 : seconds);
  }

 private:
  static constexpr size_t kSteps = 7;
  static constexpr DurationNs kStep = 5 * kSecond;

  void turn(TimeNs now) {
    const int64_t step = now / kStep;
    if (began_ == 0) {
      began_ = now;
      step_ = step;
    }
    for (int64_t at = step_ + 1; at <= step && at <= step_ + static_cast<int64_t>(kSteps); ++at) {
      steps_[static_cast<size_t>(at) % kSteps] = 0;
    }
    if (step > step_ + static_cast<int64_t>(kSteps)) steps_.fill(0);
    if (step > step_) step_ = step;
  }

  std::array<uint32_t, kSteps> steps_{};
  int64_t step_ = 0;
  TimeNs began_ = 0;
};

}  // namespace fairlead::queue
