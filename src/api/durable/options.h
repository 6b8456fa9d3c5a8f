#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/time.h"
#include "shard/durable_engine.h"

namespace fairlead::durable {

// What operators may set. The names are those of Durable Workflow's own variables, without DW_.
struct Options {
  std::string auth_driver = "token";  // none, token, signature
  std::string auth_token;
  std::string worker_token;
  std::string operator_token;
  std::string admin_token;
  std::string signature_key;
  std::string worker_signature_key;
  std::string operator_signature_key;
  std::string admin_signature_key;
  std::string auth_backward_compatible = "true";  // the shared secret besides those of roles
  std::string compression_enabled = "true";       // of answers, for who accepts it
  std::string default_namespace = "default";
  std::string server_id = "fairlead";
  std::string version = "0";
  DurationNs poll_timeout = 30 * kSecond;
  DurationNs workflow_lease = 60 * kSecond;
  DurationNs activity_lease = 300 * kSecond;
  DurationNs query_timeout = 0;       // 0: as long as a poll
  DurationNs query_lease = 0;         // 0: as long as a workflow task's
  DurationNs worker_stale_after = 0;  // 0: twice a poll, at least a minute
  DurationNs update_wait = 10 * kSecond;
  int64_t history_page_default = 500;
  int64_t history_page_max = 1000;
  int64_t payload_bytes_max = 2 << 20;
  int64_t memo_bytes_max = 262'144;
  int64_t operation_name_bytes_max = 256;
  int64_t search_attributes_max = 100;  // that a namespace defines
  int64_t search_attribute_key_bytes_max = 128;
  int64_t search_attribute_value_bytes_max = 2048;
  int64_t command_batch_max = 1000;
  int64_t schedules_max = 10'000;  // of a namespace
  int64_t retention_days = 30;     // of a namespace that does not say
  // What a history may grow to before its workers are advised to continue as new.
  int64_t continue_as_new_events = 10'000;
  int64_t continue_as_new_bytes = 5 << 20;
  shard::RunLimits run_limits;
  uint64_t seed = 1;

  DurationNs stale_after() const {
    return worker_stale_after > 0 ? worker_stale_after : std::max(2 * poll_timeout, kMinute);
  }
};

}  // namespace fairlead::durable
