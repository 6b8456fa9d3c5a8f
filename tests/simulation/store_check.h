#pragma once

#include <cstdint>
#include <string>

#include "store/store.h"

namespace fairlead::sim {

struct StoreCount {
  int runs = 0;
  int open_runs = 0;
  int tasks = 0;
  int pending = 0;
  int wakeups = 0;
  int letters = 0;
  int callbacks = 0;  // that are not made yet, of closed runs
  int other = 0;      // current runs, events, request ids, leases, all of schedules
};

// What is wrong with the rows of a store at rest, or nothing. It holds after any crash, because a
// step is one batch:
//
//   - a task waits in a queue if and only if its open run points to that very row;
//   - a run's pending activities and timers exist only while it is open;
//   - a run has the one wake-up row it says it has, and that is not later than its next deadline;
//   - its events are all there, without a gap, up to the next id;
//   - what it waits to hear from another run, it has told that run or still will;
//   - a schedule is woken at its next time, and has asked for the runs that it waits for.
std::string check_store(const store::Store& store, uint16_t shards, StoreCount* count);

}  // namespace fairlead::sim
