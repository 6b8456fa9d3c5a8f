#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace fairlead::load {

// How far an order strayed from the ideal, in tasks, at the worst moment of the worst key.
struct Distance {
  double behind = 0;
  double ahead = 0;

  double worst() const { return behind > ahead ? behind : ahead; }
  void include(const Distance& other);
};

// Measures an order of dispatches against the ideal: a fluid that is poured out one task a dispatch
// and divided, at every moment, in proportion to weight among the keys whose fluid is not used up.
//
//      clock ──────────────────────────────►  moves by 1 / (weights that take part) per dispatch
//      key's fluid = weight · (clock − its base) + what it had at its base, at most its tasks
//
// Nothing of a scheduler is in here, only the definition of a share: any server's order can be held
// against it. Keys are small numbers.
class FairShare {
 public:
  // So many more tasks of the key wait from now on. Its weight counts from now on, too.
  void arrive(int key, double weight, int64_t tasks);
  void set_weight(int key, double weight);
  // The server handed out a task of this key, which had one waiting.
  void dispatch(int key);

  // Over all keys and all prefixes of the order so far.
  Distance distance() const;

 private:
  struct Key {
    double weight = 0;
    int64_t arrived = 0;
    int64_t dispatched = 0;
    // The fluid it had got when the clock showed `base`. It grows from there while `is_flowing`.
    double fluid_at_base = 0;
    double base = 0;
    bool is_flowing = false;
  };

  double fluid(const Key& key) const;
  double runs_dry_at(const Key& key) const;
  void stop(int number);
  void flow(int number);
  void pour_one_task();

  std::vector<Key> keys_;
  // Keys that take part, the one that runs dry first in front.
  std::set<std::pair<double, int>> flowing_;
  double flowing_weight_ = 0;
  double clock_ = 0;
  Distance worst_;
};

}  // namespace fairlead::load
