#include "queue/ideal.h"

#include <algorithm>

namespace fairlead::queue {

namespace {

// Less than this is the rounding of a long day.
constexpr double kNothing = 1e-9;

}  // namespace

Ideal::Key Ideal::add(double weight) {
  keys_.push_back({});
  keys_.back().weight = weight;
  return keys_.size() - 1;
}

double Ideal::due(Key key) const {
  const auto& entry = keys_[key];
  if (entry.end < 0) return entry.served;
  const double served = entry.served + entry.weight * (clock_ - entry.since);
  return std::min(served, static_cast<double>(entry.limit()));
}

// Takes part from now on, if there is something left to work on.
void Ideal::enter(Key key) {
  auto& entry = keys_[key];
  const double left = static_cast<double>(entry.limit()) - entry.served;
  if (left < kNothing) return;
  entry.since = clock_;
  entry.end = clock_ + left / entry.weight;
  ends_.insert({entry.end, key});
  weights_ += entry.weight;
}

void Ideal::leave(Key key) {
  auto& entry = keys_[key];
  if (entry.end < 0) return;
  entry.served = due(key);
  ends_.erase({entry.end, key});
  entry.end = -1;
  weights_ = ends_.empty() ? 0 : weights_ - entry.weight;
}

void Ideal::work(double amount) {
  while (amount > kNothing && !ends_.empty()) {
    const auto [end, key] = *ends_.begin();
    const double until_dry = std::max(0.0, end - clock_) * weights_;
    if (until_dry > amount) {
      clock_ += amount / weights_;
      return;
    }
    amount -= until_dry;
    clock_ = std::max(clock_, end);
    leave(key);
    keys_[key].served = static_cast<double>(keys_[key].limit());
  }
}

// Work beyond what can be handed out goes to the others.
void Ideal::forfeit(Key key) {
  auto& entry = keys_[key];
  const double extra = entry.served - static_cast<double>(entry.limit());
  if (extra <= 0) return;
  entry.served = static_cast<double>(entry.limit());
  work(extra);
}

void Ideal::set_weight(Key key, double weight) {
  if (keys_[key].weight == weight) return;
  leave(key);
  keys_[key].weight = weight;
  enter(key);
}

void Ideal::arrive(Key key, int64_t tasks) {
  leave(key);
  keys_[key].arrived += tasks;
  enter(key);
}

void Ideal::lose(Key key, int64_t tasks) {
  leave(key);
  keys_[key].arrived -= tasks;
  forfeit(key);
  enter(key);
}

void Ideal::hold(Key key) {
  if (keys_[key].is_held) return;
  leave(key);
  keys_[key].is_held = true;
  forfeit(key);
  enter(key);
}

void Ideal::release(Key key) {
  if (!keys_[key].is_held) return;
  leave(key);
  keys_[key].is_held = false;
  enter(key);
}

void Ideal::serve(Key key) {
  auto& entry = keys_[key];
  if (entry.is_held) leave(key);
  ++entry.dispatched;
  if (entry.is_held) enter(key);
  work(1);
}

}  // namespace fairlead::queue
