#pragma once

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace fairlead::queue {

// The ideal: a server that works on every waiting key at once, in proportion to its weight, one
// task in all for each task that the real one hands out. Straight from that sentence, without a
// clock or tags, so that it shares no idea with what is tested by it.
//
// With rationals it is exact, and its fractions grow whenever a key runs dry: for short stories.
// With long doubles it is good for long ones.
template <typename Number>
class Fluid {
 public:
  explicit Fluid(size_t keys) : keys_(keys) {}

  void set_weight(size_t key, Number weight) { keys_[key].weight = weight; }
  void arrive(size_t key, int tasks) { keys_[key].left += tasks; }

  // The real server hands out a task of this key.
  void serve(size_t key) {
    keys_[key].dispatched += 1;
    Number slot = 1;
    while (slot > kNothing) {
      Number weights = 0;
      for (const auto& one : keys_) {
        if (one.left > kNothing) weights += one.weight;
      }
      if (weights == 0) return;
      // What each gets for a unit of weight, until the first runs dry or the slot is used up.
      Number part = slot / weights;
      for (const auto& one : keys_) {
        if (one.left > kNothing) part = std::min<Number>(part, one.left / one.weight);
      }
      for (auto& one : keys_) {
        if (!(one.left > kNothing)) continue;
        const Number got = part * one.weight;
        one.served += got;
        one.left -= got;
      }
      clock_ += part;
      slot -= part * weights;
    }
  }
  // Tasks that the real server owes a key; negative: that it had too many.
  Number lag(size_t key) const { return keys_[key].served - keys_[key].dispatched; }
  // What a key of weight one that waited all the time would have had.
  const Number& clock() const { return clock_; }

 private:
  // Below this a number that is not exact is zero.
  inline static const Number kNothing =
      std::is_floating_point_v<Number> ? Number(1e-12L) : Number(0);

  struct Key {
    Number weight = 1;
    Number left = 0;
    Number served = 0;
    Number dispatched = 0;
  };
  std::vector<Key> keys_;
  Number clock_ = 0;
};

using Rational = boost::multiprecision::cpp_rational;

}  // namespace fairlead::queue
