#include "simulation/program.h"

#include <algorithm>

#include "base/hash.h"
#include "base/random.h"

namespace fairlead::sim {

Program make_program(const std::string& input) {
  Random random(stable_hash(input));
  Program program;
  if (random.chance(0.01)) {
    // A long story of short waits: more than fits the first page that a worker is given.
    program.steps.assign(200, {ProgramStep::Kind::kTimer, 1, kMillisecond});
    return program;
  }
  // Of a child the input tells its line of descent, of a run that continues how often it did.
  const auto depth = std::count(input.begin(), input.end(), '/');
  const auto age = std::count(input.begin(), input.end(), '~');
  const auto steps = 1 + random.below(5);
  for (uint64_t i = 0; i < steps; ++i) {
    ProgramStep step;
    step.kind = static_cast<ProgramStep::Kind>(random.below(depth < 2 ? 8 : 6));
    step.count = 1 + static_cast<int>(random.below(3));
    const bool is_short = random.chance(0.6);
    step.time = static_cast<DurationNs>(1 + random.below(is_short ? 800 : 20'000)) * kMillisecond;
    program.steps.push_back(step);
  }
  program.obeys_cancel = random.chance(0.7);
  program.fails_with_activity = random.chance(0.3);
  program.fails_at_end = random.chance(0.1);
  program.continues = age < 2 && random.chance(0.2);
  return program;
}

int make_parent_close_policy(const std::string& input, const std::string& child_id) {
  return static_cast<int>(stable_hash(child_id, stable_hash(input)) % 4);
}

ActivityShape make_activity(const std::string& input, const std::string& activity_id,
                            bool is_long) {
  Random random(stable_hash(activity_id, stable_hash(input)));
  ActivityShape shape;
  shape.start_to_close = static_cast<DurationNs>(1 + random.below(8)) * kSecond;
  if (is_long) shape.start_to_close += 30 * kSecond;
  if (random.chance(0.5)) {
    shape.schedule_to_close = static_cast<DurationNs>(10 + random.below(90)) * kSecond;
  }
  if (random.chance(0.2)) {
    shape.schedule_to_start = static_cast<DurationNs>(2 + random.below(30)) * kSecond;
  }
  if (is_long || random.chance(0.4)) {
    shape.heartbeat = static_cast<DurationNs>(1 + random.below(4)) * kSecond;
  }
  shape.retry_interval = static_cast<DurationNs>(random.below(3000)) * kMillisecond;
  shape.attempts_max = random.chance(0.5) ? 0 : 1 + static_cast<int>(random.below(4));
  shape.priority = static_cast<int>(random.below(6));
  return shape;
}

}  // namespace fairlead::sim
