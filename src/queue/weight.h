#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fairlead::queue {

// A key's share relative to other keys, in fixed point: order never depends on floating point, so
// it is the same on every machine and after every restart.
//
// What clients and operators ask for is kept as they wrote it; the weight that counts is held
// within [0.001, 1000].
class Weight {
 public:
  static constexpr int kBits = 30;
  static constexpr double kMin = 0.001;
  static constexpr double kMax = 1000;

  constexpr Weight() = default;
  // Not positive means "nothing said", which is a weight of one.
  static Weight of(double asked) {
    if (!(asked > 0)) return Weight();
    const double held = std::clamp(asked, kMin, kMax);
    return Weight(static_cast<uint64_t>(std::llround(held * (1ULL << kBits))));
  }
  static constexpr Weight from_fixed(uint64_t fixed) { return Weight(fixed); }

  constexpr uint64_t fixed() const { return fixed_; }
  constexpr double value() const { return static_cast<double>(fixed_) / (1ULL << kBits); }
  // What one task costs in virtual time, which has 32 fractional bits.
  constexpr uint64_t stride() const { return (1ULL << 62) / fixed_; }

  friend constexpr bool operator==(Weight, Weight) = default;

 private:
  constexpr explicit Weight(uint64_t fixed) : fixed_(fixed) {}
  uint64_t fixed_ = 1ULL << kBits;
};

}  // namespace fairlead::queue
