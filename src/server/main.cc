#include <cstdio>

#include "CLI/CLI.hpp"
#include "server/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Fairlead: durable execution for Temporal programs, in one binary");
  app.name("fairlead");
  app.require_subcommand(0, 1);

  fairlead::server::CommandRun run;
  fairlead::server::add_server_command(&app, &run);
  fairlead::server::add_version_command(&app, &run);

  CLI11_PARSE(app, argc, argv);
  if (!run) {
    std::fputs(app.help().c_str(), stderr);
    return 2;
  }
  return run();
}
