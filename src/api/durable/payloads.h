#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "api/durable/json.h"

namespace fairlead::durable {

// What a client or a worker sends where a payload belongs, as the text of an envelope. An envelope
// stays as it is once its framing was checked; with `takes_json` a list becomes one. Nothing sent
// is an empty text. An error's message begins with the reason.
absl::StatusOr<std::string> payload_text(const json::value* given, bool takes_json);

// The same for a result: what is no envelope, as people send it by hand, becomes one.
absl::StatusOr<std::string> result_text(const json::value* given);

// {"message": …} and so on as members of an event, from what a worker reports about a failure.
std::string failure_members(const json::object& failure, std::string_view category);

}  // namespace fairlead::durable
