#include <cstdio>
#include <string>

#include "server/commands.h"
#include "server/version.h"

namespace fairlead::server {

void add_version_command(CLI::App* app, CommandRun* run) {
  auto* command = app->add_subcommand("version", "Say which version this is");
  command->callback([run] {
    *run = [] {
      std::printf("fairlead %s\n", std::string(version()).c_str());
      return 0;
    };
  });
}

}  // namespace fairlead::server
