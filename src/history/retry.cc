#include "history/retry.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace fairlead::history {

namespace {

constexpr DurationNs kDefaultInterval = kSecond;
constexpr double kDefaultCoefficient = 2.0;
constexpr int64_t kMaximumIntervalFactor = 100;
constexpr std::string_view kTimeoutTypePrefix = "TemporalTimeout:";

bool listed(const model::RetryPolicy& policy, std::string_view type) {
  return std::any_of(policy.non_retryable_error_types().begin(),
                     policy.non_retryable_error_types().end(),
                     [&](const std::string& entry) { return entry == type; });
}

bool is_retryable(const model::RetryPolicy& policy, const model::Failure& failure) {
  switch (failure.kind()) {
    case model::Failure::CANCELED:
    case model::Failure::TERMINATED:
      return false;
    case model::Failure::TIMEOUT:
      if (failure.timeout_type() == model::START_TO_CLOSE) {
        return !listed(policy, "TemporalTimeout:StartToClose");
      }
      if (failure.timeout_type() == model::HEARTBEAT) {
        return !listed(policy, "TemporalTimeout:Heartbeat");
      }
      return false;
    case model::Failure::SERVER:
      return !failure.non_retryable();
    case model::Failure::APPLICATION:
      return !failure.non_retryable() && !listed(policy, failure.type());
    default:
      return true;
  }
}

}  // namespace

void apply_retry_defaults(model::RetryPolicy* policy) {
  if (policy->initial_interval_ns() == 0) policy->set_initial_interval_ns(kDefaultInterval);
  if (policy->backoff_coefficient() == 0) policy->set_backoff_coefficient(kDefaultCoefficient);
  if (policy->maximum_interval_ns() == 0) {
    DurationNs maximum;
    if (__builtin_mul_overflow(policy->initial_interval_ns(), kMaximumIntervalFactor, &maximum)) {
      maximum = kNever;
    }
    policy->set_maximum_interval_ns(maximum);
  }
}

absl::Status check_retry_policy(const model::RetryPolicy& policy) {
  // With a single attempt nothing else of the policy matters.
  if (policy.maximum_attempts() == 1) return absl::OkStatus();
  // Written as "not at least" so that NaN is refused too.
  const double coefficient = policy.backoff_coefficient();
  if (coefficient != 0 && !(coefficient >= 1)) {
    return errors::invalid_argument("BackoffCoefficient cannot be less than 1 on retry policy.");
  }
  const DurationNs initial =
      policy.initial_interval_ns() > 0 ? policy.initial_interval_ns() : kDefaultInterval;
  if (policy.maximum_interval_ns() > 0 && policy.maximum_interval_ns() < initial) {
    return errors::invalid_argument(
        "MaximumInterval cannot be less than InitialInterval on retry policy.");
  }
  if (policy.maximum_attempts() < 0) {
    return errors::invalid_argument("MaximumAttempts cannot be negative on retry policy.");
  }
  for (const std::string& type : policy.non_retryable_error_types()) {
    std::string_view timeout = type;
    if (!timeout.starts_with(kTimeoutTypePrefix)) continue;
    timeout.remove_prefix(kTimeoutTypePrefix.size());
    if (timeout != "StartToClose" && timeout != "ScheduleToStart" && timeout != "ScheduleToClose" &&
        timeout != "Heartbeat") {
      return errors::invalid_argument(
          absl::StrCat("Invalid timeout type value: ", std::string(timeout), "."));
    }
  }
  return absl::OkStatus();
}

DurationNs retry_interval(const model::RetryPolicy& policy, int32_t attempt) {
  if (policy.pauses_ns_size() > 0) {
    return policy.pauses_ns(std::min(attempt, policy.pauses_ns_size()) - 1);
  }
  const double interval = static_cast<double>(policy.initial_interval_ns()) *
                          std::pow(policy.backoff_coefficient(), attempt - 1);
  const DurationNs maximum =
      policy.maximum_interval_ns() > 0 ? policy.maximum_interval_ns() : kNever;
  // Compared as doubles first: the power may be far beyond what 64 bits hold.
  if (!(interval < static_cast<double>(maximum))) return maximum;
  return static_cast<DurationNs>(interval);
}

RetryDecision decide_retry(const model::RetryPolicy& policy, int32_t attempt,
                           const model::Failure& failure, TimeNs now, TimeNs expires) {
  if (failure.kind() == model::Failure::TIMEOUT &&
      (failure.timeout_type() == model::SCHEDULE_TO_START ||
       failure.timeout_type() == model::SCHEDULE_TO_CLOSE)) {
    return {model::RETRY_TIMEOUT};
  }
  if (!is_retryable(policy, failure)) return {model::RETRY_NON_RETRYABLE_FAILURE};
  if (policy.maximum_attempts() > 0 && attempt >= policy.maximum_attempts()) {
    return {model::RETRY_MAXIMUM_ATTEMPTS_REACHED};
  }
  const DurationNs interval = failure.has_next_retry_delay_ns() ? failure.next_retry_delay_ns()
                                                                : retry_interval(policy, attempt);
  if (add_saturated(now, interval) > expires) return {model::RETRY_TIMEOUT};
  return {model::RETRY_IN_PROGRESS, interval};
}

}  // namespace fairlead::history
