#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "model/model.pb.h"
#include "temporal/api/common/v1/message.pb.h"
#include "temporal/api/failure/v1/message.pb.h"

// The API's small messages in the engine's words.
namespace fairlead::api {

// The longest duration there is; longer ones are cut to it without a word, as clients expect.
inline constexpr DurationNs kDurationMax = 36'500 * kDay;

// InvalidArgument if it is negative or its halves have different signs.
absl::StatusOr<DurationNs> read_duration(const google::protobuf::Duration& duration);
// For durations that have been checked already.
DurationNs duration_or_zero(const google::protobuf::Duration& duration);

TimeNs time_of(const google::protobuf::Timestamp& timestamp);

model::Priority read_priority(const temporal::api::common::v1::Priority& priority);
// As it was asked for; the policy must have been checked.
model::RetryPolicy read_retry_policy(const temporal::api::common::v1::RetryPolicy& policy);

// A worker's failure: the bytes, and what retry decisions look at.
model::Failure read_failure(const temporal::api::failure::v1::Failure& failure);
// What remains of a failure that is too large to keep: its kind and as much text as `bytes_max`
// holds.
temporal::api::failure::v1::Failure shorten_failure(
    const temporal::api::failure::v1::Failure& failure, size_t bytes_max);
// A failure that the server states, which no retry will mend.
model::Failure server_failure(std::string_view message);

// "WORKFLOW_TASK_FAILED_CAUSE_BAD_BINARY" without its prefix, as texts spell it: "BadBinary".
std::string short_name(std::string_view enum_name, std::string_view prefix);

// The longest prefix of `text` within `bytes_max` that does not end inside a character.
std::string_view cut_text(std::string_view text, size_t bytes_max);

}  // namespace fairlead::api
