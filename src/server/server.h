#pragma once

#include "server/config.h"

namespace fairlead::server {

// Runs a server until it is told to stop (SIGTERM, SIGINT) and gives the process's exit code.
int run_server(const Config& config);

}  // namespace fairlead::server
