#include <cstdio>

#include "CLI/CLI.hpp"
#include "server/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Fairlead: durable execution for Temporal programs, in one binary");
  app.name("fairlead");
  app.require_subcommand(0, 1);

  fairlead::server::CommandRun run;
  fairlead::server::add_server_command(&app, &run);
  fairlead::server::add_simulate_command(&app, &run);
  fairlead::server::add_task_queue_command(&app, &run);
  fairlead::server::add_version_command(&app, &run);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help is no mistake; everything else is one on the line, whatever CLI11 numbers it.
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!run) {
    std::fputs(app.help().c_str(), stderr);
    return 2;
  }
  return run();
}
