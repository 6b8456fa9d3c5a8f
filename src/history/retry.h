#pragma once

#include "absl/status/status.h"
#include "base/time.h"
#include "model/model.pb.h"

namespace fairlead::history {

struct RetryDecision {
  model::RetryState state =
      model::RETRY_UNSPECIFIED;  // RETRY_IN_PROGRESS: try again after `interval`
  DurationNs interval = 0;
};

// Fills in what a policy leaves open: 1 s, doubling, at most 100 times the first interval.
void apply_retry_defaults(model::RetryPolicy* policy);

// InvalidArgument if the policy contradicts itself. Zeros stand for the defaults, and it is those
// that are compared then.
absl::Status check_retry_policy(const model::RetryPolicy& policy);

// How long to wait after attempt number `attempt` (1-based) has failed.
DurationNs retry_interval(const model::RetryPolicy& policy, int32_t attempt);

// Whether and when to try again. `expires` is when the whole activity gives up (kNever: it does
// not).
RetryDecision decide_retry(const model::RetryPolicy& policy, int32_t attempt,
                           const model::Failure& failure, TimeNs now, TimeNs expires);

}  // namespace fairlead::history
