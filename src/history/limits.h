#pragma once

#include <cstdint>

#include "base/time.h"

namespace fairlead::history {

// What a run may grow to. The numbers are what users' programs assume; all can be configured.
struct Limits {
  int64_t blob_bytes = 2 << 20;
  int64_t history_events = 51'200;
  int64_t history_bytes = 50 << 20;
  int64_t history_events_suggest = 4'096;
  int64_t history_bytes_suggest = 4 << 20;
  int64_t state_bytes = 8 << 20;        // of a run and all that is pending in it
  int64_t transaction_bytes = 4 << 20;  // of the events that one step writes
  int64_t pending_activities = 2'000;
  int64_t pending_children = 2'000;
  int64_t pending_signals = 2'000;  // to other runs
  int64_t pending_cancels = 2'000;  // of other runs
  int64_t updates = 2'000;          // of a run
  int64_t updates_in_flight = 10;
  int64_t updates_in_flight_bytes = 20 << 20;
  int64_t signals = 10'000;
  int64_t callbacks = 2'000;  // of a run
  int64_t callback_url_bytes = 1'000;
  int64_t callback_header_bytes = 8 << 10;
  int64_t buffered_events = 100;
  int64_t buffered_bytes = 2 << 20;
  int64_t id_bytes = 1'000;
  int64_t last_failure_bytes = 4 << 10;
  DurationNs workflow_task_timeout = 10 * kSecond;
  DurationNs workflow_task_timeout_max = 120 * kSecond;
  DurationNs workflow_task_heartbeat = 30 * kMinute;
  DurationNs callback_timeout = 10 * kSecond;  // of one attempt
  DurationNs callback_retry_first = kSecond;
  DurationNs callback_retry_longest = kHour;
  DurationNs continue_as_new_spacing = kSecond;  // at least, between the starts of two runs
};

}  // namespace fairlead::history
