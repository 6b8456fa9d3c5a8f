#pragma once

#include <cstdint>
#include <string>

#include "api/temporal/call.h"
#include "api/temporal/callbacks.h"
#include "base/time.h"
#include "history/limits.h"
#include "shard/engine.h"

namespace fairlead::api {

// What the gRPC door promises and refuses. The numbers are what users' programs assume.
struct ServiceOptions {
  history::Limits limits;
  int64_t memo_bytes = 2 << 20;
  // The largest WorkflowTaskCompletion that workers are told they may send.
  int64_t completion_bytes = 40 << 20;
  DurationNs retention_min = kHour;
  CallbackAddresses callback_addresses;  // none, unless an operator allows some

  // Long polls that one namespace may have parked, for each method.
  int polls_max = 20'000;
  DurationNs poll_hold = 60 * kSecond;
  // Each poll is held up to this much shorter, so that workers that came together do not stay
  // together.
  DurationNs poll_spread = 10 * kSecond;
  DurationNs history_wait = 20 * kSecond;
  // How long a query without a deadline waits for a worker.
  DurationNs query_wait = 60 * kSecond;
  DurationNs update_wait = 20 * kSecond;
  uint64_t seed = 1;

  // Clients print it and compare it, so it speaks of the API level and not of this program's age.
  std::string server_version = "1.32.0";
  std::string cluster_id;
  std::string cluster_name = "active";
  int32_t shards = 1;
  std::string store_name = "embedded";
};

// Serves every method of WorkflowService and OperatorService. The ones that are not built answer
// UNIMPLEMENTED in words that clients recognise. `engine` must outlive every call.
void register_service(MethodTable& methods, shard::Engine& engine, const ServiceOptions& options);

}  // namespace fairlead::api
