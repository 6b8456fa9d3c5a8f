#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace fairlead::server {

// A message as JSON for scripts. Every field of the message is there, under the name that the proto
// gives it: numbers are numbers, durations are seconds, times are RFC 3339, values of enums are the
// words that the command line takes, and what is absent is null.
std::string to_json(const google::protobuf::Message& message);

}  // namespace fairlead::server
