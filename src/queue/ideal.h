#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace fairlead::queue {

// The ideal that a level is measured against: a server that works on every waiting key at once, in
// proportion to its weight, and does one task's worth of work in all for each task that the real
// one hands out.
//
// A key that is held takes part only until what it was given ahead of its share is paid. What it
// was owed when it was held is shared out among the others, as is work done on a task that goes
// away: nobody gets credit for work that cannot be handed out.
//
// For measuring only: the order itself is computed without floating point, in domain.h.
class Ideal {
 public:
  using Key = size_t;

  Key add(double weight);
  void set_weight(Key key, double weight);
  void arrive(Key key, int64_t tasks = 1);
  // Tasks that waited are gone, and no worker had them.
  void lose(Key key, int64_t tasks = 1);
  void hold(Key key);
  void release(Key key);
  // The real server hands out a task of this key.
  void serve(Key key);

  // Tasks that a key should have had, and how many it is owed; negative: it had too many.
  double due(Key key) const;
  double lag(Key key) const { return due(key) - static_cast<double>(keys_[key].dispatched); }

 private:
  struct Entry {
    double weight = 1;
    double served = 0;  // up to `since`
    double since = 0;   // on the clock
    int64_t arrived = 0;
    int64_t dispatched = 0;
    bool is_held = false;
    double end = -1;  // on the clock, when it runs dry; negative: it takes no part
    // As far as the ideal server may go.
    int64_t limit() const { return is_held ? dispatched : arrived; }
  };

  void enter(Key key);
  void leave(Key key);
  void work(double amount);
  void forfeit(Key key);

  std::vector<Entry> keys_;
  std::set<std::pair<double, Key>> ends_;
  double clock_ = 0;
  double weights_ = 0;
};

}  // namespace fairlead::queue
