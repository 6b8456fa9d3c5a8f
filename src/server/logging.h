#pragma once

#include <string>
#include <string_view>

#include "server/config.h"

namespace fairlead::server {

// Sets up the log of the whole process: to standard error, from `level` on, as lines for people or
// as one JSON object a line. Call before anyone logs.
void set_up_logging(const Config::Log& log);

// The text as the inside of a JSON string. Bytes that are not UTF-8 go through as they are.
std::string json_escape(std::string_view text);

}  // namespace fairlead::server
