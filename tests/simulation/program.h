#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace fairlead::sim {

// What a simulated workflow does, made from a seed that travels as the workflow's input. A worker
// that has the input has the program, as a worker that has the code would.
struct ProgramStep {
  enum class Kind {
    kActivities,      // schedules `count` activities and waits for all of them
    kTimer,           // waits for `time`
    kSignals,         // waits for `count` signals, or for `time` if they do not come
    kCancelTimer,     // starts two timers and cancels the long one when the short one fires
    kCancelActivity,  // asks an activity that still runs after `time` to stop
    kMarker,          // writes something down and goes on at once
    kChildren,        // starts `count` children and waits until all have closed
    kSignalOther,     // signals a workflow that may not be there
  };
  Kind kind = Kind::kMarker;
  int count = 1;
  DurationNs time = 0;
};

struct ActivityShape {
  DurationNs schedule_to_close = 0;
  DurationNs schedule_to_start = 0;
  DurationNs start_to_close = 0;
  DurationNs heartbeat = 0;
  DurationNs retry_interval = 0;
  int attempts_max = 0;
  int priority = 0;
};

struct Program {
  std::vector<ProgramStep> steps;
  bool obeys_cancel = true;
  bool fails_with_activity = false;
  bool fails_at_end = false;
  bool continues = false;  // as new, with an input that tells it is the next one
};

// How a child closes when its parent does, as the API numbers it; part of the program.
int make_parent_close_policy(const std::string& input, const std::string& child_id);

Program make_program(const std::string& input);
// The timeouts of an activity are part of the program too: replay has to find the same ones.
ActivityShape make_activity(const std::string& input, const std::string& activity_id, bool is_long);

}  // namespace fairlead::sim
