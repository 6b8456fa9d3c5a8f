#pragma once

#include <cstdint>
#include <limits>

namespace fairlead {

// Wall-clock time and durations are nanoseconds in 64 bits: exact, cheap to compare and to store,
// and good until the year 2262.
using TimeNs = int64_t;
using DurationNs = int64_t;

inline constexpr DurationNs kMillisecond = 1'000'000;
inline constexpr DurationNs kSecond = 1'000 * kMillisecond;
inline constexpr DurationNs kMinute = 60 * kSecond;
inline constexpr DurationNs kHour = 60 * kMinute;
inline constexpr DurationNs kDay = 24 * kHour;
inline constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();

// Adds without overflowing: a deadline too far away to say is one that never comes.
inline TimeNs add_saturated(TimeNs time, DurationNs duration) {
  TimeNs sum;
  return __builtin_add_overflow(time, duration, &sum) ? kNever : sum;
}

// The only source of time. Everything that needs the present asks one of these, so a test or a
// simulation can move it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeNs now() = 0;
};

// The machine's clock.
class SystemClock final : public Clock {
 public:
  TimeNs now() override;
};

}  // namespace fairlead
