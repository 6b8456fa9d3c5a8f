#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fairlead::queue {

// The ideal: a server that works on every waiting key at once, in proportion to its weight, one
// task in all for each task that the real one hands out.
class Fluid {
 public:
  explicit Fluid(size_t keys) : keys_(keys) {}

  void set_weight(size_t key, double weight) { keys_[key].weight = weight; }
  void arrive(size_t key, int tasks) { keys_[key].left += tasks; }

  // The real server hands out a task of this key.
  void serve(size_t key) {
    ++keys_[key].dispatched;
    long double slot = 1;
    while (slot > 1e-15L) {
      long double weights = 0;
      long double first_empty = slot;
      for (const auto& one : keys_) {
        if (one.left > 0) weights += one.weight;
      }
      if (weights == 0) return;
      for (const auto& one : keys_) {
        if (one.left > 0) first_empty = std::min(first_empty, one.left * weights / one.weight);
      }
      for (auto& one : keys_) {
        if (!(one.left > 0)) continue;
        const long double part = first_empty * one.weight / weights;
        one.served += part;
        one.left -= part;
        if (one.left < 1e-12L) one.left = 0;
      }
      slot -= first_empty;
    }
  }
  // Tasks that the real server owes a key; negative: that it had too many.
  double lag(size_t key) const {
    return static_cast<double>(keys_[key].served - keys_[key].dispatched);
  }

 private:
  struct Key {
    long double weight = 1;
    long double left = 0;
    long double served = 0;
    long double dispatched = 0;
  };
  std::vector<Key> keys_;
};

}  // namespace fairlead::queue
