#include "load/fair_share.h"

#include <algorithm>

#include "base/assert.h"

namespace fairlead::load {

void Distance::include(const Distance& other) {
  behind = std::max(behind, other.behind);
  ahead = std::max(ahead, other.ahead);
}

double FairShare::fluid(const Key& key) const {
  if (!key.is_flowing) return key.fluid_at_base;
  return std::min(key.fluid_at_base + key.weight * (clock_ - key.base),
                  static_cast<double>(key.arrived));
}

double FairShare::runs_dry_at(const Key& key) const {
  return key.base + (static_cast<double>(key.arrived) - key.fluid_at_base) / key.weight;
}

// Takes the key out of the flow with what it has got.
void FairShare::stop(int number) {
  Key& key = keys_[static_cast<size_t>(number)];
  if (!key.is_flowing) return;
  flowing_.erase({runs_dry_at(key), number});
  key.fluid_at_base = fluid(key);
  key.is_flowing = false;
  // Sums of rounded numbers keep a rest; an empty sum has none.
  flowing_weight_ = flowing_.empty() ? 0 : flowing_weight_ - key.weight;
}

void FairShare::flow(int number) {
  Key& key = keys_[static_cast<size_t>(number)];
  if (key.fluid_at_base >= static_cast<double>(key.arrived)) return;
  key.base = clock_;
  key.is_flowing = true;
  flowing_weight_ += key.weight;
  flowing_.insert({runs_dry_at(key), number});
}

void FairShare::arrive(int number, double weight, int64_t tasks) {
  FL_ASSERT(number >= 0 && weight > 0, "a key has a number and a share");
  if (static_cast<size_t>(number) >= keys_.size()) keys_.resize(static_cast<size_t>(number) + 1);
  stop(number);
  Key& key = keys_[static_cast<size_t>(number)];
  key.weight = weight;
  key.arrived += tasks;
  flow(number);
}

void FairShare::set_weight(int number, double weight) {
  FL_ASSERT(number >= 0 && static_cast<size_t>(number) < keys_.size(), "a weight needs a key");
  stop(number);
  keys_[static_cast<size_t>(number)].weight = weight;
  flow(number);
}

void FairShare::pour_one_task() {
  double left = 1;
  while (!flowing_.empty()) {
    const auto [dry_at, number] = *flowing_.begin();
    const double until_dry = (dry_at - clock_) * flowing_weight_;
    if (until_dry > left) {
      clock_ += left / flowing_weight_;
      return;
    }
    left -= until_dry;
    clock_ = dry_at;
    stop(number);
    Key& key = keys_[static_cast<size_t>(number)];
    key.fluid_at_base = static_cast<double>(key.arrived);
  }
}

// Fluid only grows. So a key is furthest behind just before its next task goes out, and furthest
// ahead just after: the other prefixes need no look.
void FairShare::dispatch(int number) {
  FL_ASSERT(number >= 0 && static_cast<size_t>(number) < keys_.size(), "only what came can leave");
  Key& key = keys_[static_cast<size_t>(number)];
  FL_ASSERT(key.dispatched < key.arrived, "only what came can leave");
  worst_.behind = std::max(worst_.behind, fluid(key) - static_cast<double>(key.dispatched));
  pour_one_task();
  ++key.dispatched;
  worst_.ahead = std::max(worst_.ahead, static_cast<double>(key.dispatched) - fluid(key));
}

// Keys that still wait may be further behind now than ever before.
Distance FairShare::distance() const {
  Distance distance = worst_;
  for (const Key& key : keys_) {
    distance.behind = std::max(distance.behind, fluid(key) - static_cast<double>(key.dispatched));
  }
  return distance;
}

}  // namespace fairlead::load
