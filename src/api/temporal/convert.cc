#include "api/temporal/convert.h"

#include "absl/strings/ascii.h"
#include "base/error.h"

namespace fairlead::api {

namespace {

using temporal::api::failure::v1::Failure;

constexpr int64_t kNanosPerSecond = kSecond;

}  // namespace

absl::StatusOr<DurationNs> read_duration(const google::protobuf::Duration& duration) {
  if (duration.seconds() < 0 || duration.nanos() < 0) {
    return errors::invalid_argument("negative duration");
  }
  if (duration.nanos() >= kNanosPerSecond) {
    return errors::invalid_argument("nanos of a duration reach a whole second");
  }
  return duration_or_zero(duration);
}

DurationNs duration_or_zero(const google::protobuf::Duration& duration) {
  if (duration.seconds() < 0 || duration.nanos() < 0) return 0;
  if (duration.seconds() >= kDurationMax / kSecond) return kDurationMax;
  return duration.seconds() * kSecond + duration.nanos();
}

TimeNs time_of(const google::protobuf::Timestamp& timestamp) {
  return timestamp.seconds() * kSecond + timestamp.nanos();
}

model::Priority read_priority(const temporal::api::common::v1::Priority& priority) {
  model::Priority result;
  result.set_priority_key(priority.priority_key());
  result.set_fairness_key(priority.fairness_key());
  result.set_fairness_weight(priority.fairness_weight());
  return result;
}

model::RetryPolicy read_retry_policy(const temporal::api::common::v1::RetryPolicy& policy) {
  model::RetryPolicy result;
  result.set_initial_interval_ns(duration_or_zero(policy.initial_interval()));
  result.set_backoff_coefficient(policy.backoff_coefficient());
  result.set_maximum_interval_ns(duration_or_zero(policy.maximum_interval()));
  result.set_maximum_attempts(policy.maximum_attempts());
  *result.mutable_non_retryable_error_types() = policy.non_retryable_error_types();
  return result;
}

model::Failure read_failure(const Failure& failure) {
  model::Failure result;
  result.set_door(failure.SerializeAsString());
  switch (failure.failure_info_case()) {
    case Failure::kApplicationFailureInfo: {
      const auto& info = failure.application_failure_info();
      result.set_kind(model::Failure::APPLICATION);
      result.set_type(info.type());
      result.set_non_retryable(info.non_retryable());
      if (info.has_next_retry_delay()) {
        result.set_next_retry_delay_ns(duration_or_zero(info.next_retry_delay()));
      }
      break;
    }
    case Failure::kCanceledFailureInfo:
      result.set_kind(model::Failure::CANCELED);
      break;
    case Failure::kTerminatedFailureInfo:
      result.set_kind(model::Failure::TERMINATED);
      break;
    case Failure::kTimeoutFailureInfo:
      result.set_kind(model::Failure::TIMEOUT);
      result.set_timeout_type(
          static_cast<model::TimeoutType>(failure.timeout_failure_info().timeout_type()));
      break;
    case Failure::kServerFailureInfo:
      result.set_kind(model::Failure::SERVER);
      result.set_non_retryable(failure.server_failure_info().non_retryable());
      break;
    default:
      result.set_kind(model::Failure::OTHER);
  }
  return result;
}

Failure shorten_failure(const Failure& failure, size_t bytes_max) {
  // Half for the message, half for the rest: a stack trace without its message explains little.
  Failure result;
  const auto cut = [&](const std::string& text, size_t part) {
    return std::string(cut_text(text, bytes_max / part));
  };
  result.set_message(cut(failure.message(), 2));
  result.set_source(cut(failure.source(), 16));
  result.set_stack_trace(cut(failure.stack_trace(), 4));
  if (failure.has_application_failure_info()) {
    const auto& from = failure.application_failure_info();
    auto* info = result.mutable_application_failure_info();
    info->set_type(cut(from.type(), 16));
    info->set_non_retryable(from.non_retryable());
  } else if (failure.has_canceled_failure_info()) {
    result.mutable_canceled_failure_info();
  } else if (failure.has_server_failure_info()) {
    result.mutable_server_failure_info()->set_non_retryable(
        failure.server_failure_info().non_retryable());
  }
  return result;
}

model::Failure server_failure(std::string_view message) {
  model::Failure failure;
  failure.set_kind(model::Failure::SERVER);
  failure.set_message(std::string(message));
  failure.set_non_retryable(true);
  return failure;
}

std::string short_name(std::string_view enum_name, std::string_view prefix) {
  if (enum_name.starts_with(prefix)) enum_name.remove_prefix(prefix.size());
  std::string result;
  bool starts_word = true;
  for (const char letter : enum_name) {
    if (letter != '_') result.push_back(starts_word ? letter : absl::ascii_tolower(letter));
    starts_word = letter == '_';
  }
  return result;
}

std::string_view cut_text(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  // Bytes 10xxxxxx continue a character that began before them.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace fairlead::api
