#pragma once

#include <functional>

#include "CLI/CLI.hpp"

namespace fairlead::server {

// What the command that was chosen does once the whole line has been parsed; gives the exit code.
using CommandRun = std::function<int()>;

// The commands of the binary. Each adds itself to the app, and sets `run` when it is the one
// chosen. A new command is a file command_<name>.cc, a line here and a line in main.cc.
void add_server_command(CLI::App* app, CommandRun* run);
void add_simulate_command(CLI::App* app, CommandRun* run);
void add_task_queue_command(CLI::App* app, CommandRun* run);
void add_version_command(CLI::App* app, CommandRun* run);

}  // namespace fairlead::server
