#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace fairlead::server {

// All of a file that somebody named on the command line. An error is InvalidArgument and says why.
absl::StatusOr<std::string> read_file(const std::string& name);

}  // namespace fairlead::server
