#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/config.h"

#define TOML_EXCEPTIONS 0
#include "toml++/toml.h"

namespace fairlead::server {

// Reads the section [matching]: the names that Temporal's file of dynamic settings has for what
// task queues do, so that such a file can be carried over.
//
//   [[matching.enableFairness]]
//   value = false
//   constraints = { namespace = "prod", taskQueueName = "billing", taskType = "Activity" }
//
// A value without constraints is the server's own setting. One with constraints is an exception for
// the queues that they fit. What has no counterpart is refused in words that say what to do.
absl::Status read_matching(const toml::table& section, const std::string& file_name,
                           Config* config);

}  // namespace fairlead::server
