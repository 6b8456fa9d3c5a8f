#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

// What operators may ask of a run's pending activities and of its options. In a change everything
// that is not set stays as it is; a zero asks for the default.
namespace fairlead::history {

// Who wants an activity without a workflow to stop.
struct Stopper {
  std::string identity;
  std::string reason;
  std::string request_id;
  std::string door;  // of the event that says so, if no worker has it
};

// The pending activities that a command concerns.
struct ActivitySelector {
  enum class By { kId, kType, kAll };
  By by = By::kId;
  std::string name;
};

struct Unpause {
  bool reset_attempts = false;
  bool reset_heartbeat = false;
};

struct Reset {
  bool keep_paused = false;
  bool reset_heartbeat = false;
  bool restore_options = false;
};

struct PriorityChange {
  std::optional<int32_t> priority_key;
  std::optional<std::string> fairness_key;
  std::optional<float> fairness_weight;
};

struct RetryChange {
  std::optional<DurationNs> initial_interval;
  std::optional<double> backoff_coefficient;
  std::optional<DurationNs> maximum_interval;
  std::optional<int32_t> maximum_attempts;
  std::optional<std::vector<std::string>> non_retryable_error_types;
};

struct ActivityChange {
  std::optional<std::string> task_queue;
  std::optional<DurationNs> schedule_to_close;
  std::optional<DurationNs> schedule_to_start;
  std::optional<DurationNs> start_to_close;
  std::optional<DurationNs> heartbeat;
  RetryChange retry;
  PriorityChange priority;
};

}  // namespace fairlead::history
