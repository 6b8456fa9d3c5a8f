#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/plan.h"

namespace fairlead::simulate {

// What became of one key.
struct KeyResult {
  std::string key;
  size_t group = 0;  // in the plan's `keys`
  uint32_t level = 3;
  double weight = 1;  // at the end
  int64_t arrived = 0;
  int64_t dispatched = 0;
  double due = 0;           // tasks that the ideal server would have given it
  double distance_max = 0;  // from the ideal, in tasks, at its worst moment
  DurationNs worked = 0;    // time that workers spent on its tasks
  DurationNs wait_sum = 0;  // of the tasks that were dispatched
  DurationNs wait_max = 0;  // also of those that still wait

  double wait_mean() const {
    return dispatched == 0 ? 0 : static_cast<double>(wait_sum) / static_cast<double>(dispatched);
  }
};

// How far each group of keys was right before a moment.
struct Sample {
  DurationNs at = 0;
  std::vector<int64_t> dispatched;
  std::vector<double> due;
};

struct Result {
  std::vector<KeyResult> keys;
  std::vector<Sample> samples;  // evenly spaced, the first at the start and the last at the end
  int64_t dispatched = 0;
  double busy = 0;  // the part of the workers' time that they worked
};

// Plays the plan. The same plan gives the same result.
Result simulate(const Plan& plan);

}  // namespace fairlead::simulate
