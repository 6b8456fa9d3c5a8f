#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "server/config.h"

namespace fairlead::server {

// Reads the settings where the first ones came from.
using ReadConfig = std::function<absl::StatusOr<Config>()>;

// Runs a server until it is told to stop (SIGTERM, SIGINT) and gives the process's exit code. Told
// to look again (SIGHUP), it takes new budgets and settings of queues from `read_again`.
int run_server(const Config& config, const ReadConfig& read_again);

}  // namespace fairlead::server
