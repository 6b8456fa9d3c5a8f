#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "server/commands.h"
#include "server/logging.h"
#include "server/server.h"
#include "server/server_flags.h"

namespace fairlead::server {
namespace {

std::map<std::string, std::string> read_environment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

}  // namespace

void add_server_command(CLI::App* app, CommandRun* run) {
  auto* command = app->add_subcommand("server", "Run the server");
  command->footer(
      "Every flag is also a key of the TOML file and a variable of the environment:\n"
      "--grpc-port is grpc_port in [server] and FAIRLEAD_SERVER_GRPC_PORT.\n"
      "A flag beats the environment, the environment beats the file.\n"
      "Budgets are set in [admission] and by the variables DW_...; see docs/admission.md.\n"
      "A server that gets SIGHUP reads its budgets and what holds for queues again.");
  auto flags = std::make_shared<ServerFlags>(command);
  command->callback([flags, run] {
    *run = [flags] {
      const auto config = flags->load(read_environment());
      if (!config.ok()) {
        std::fprintf(stderr, "fairlead: %s\n", std::string(config.status().message()).c_str());
        return 2;
      }
      set_up_logging(config->log);
      return run_server(*config, [flags] { return flags->load(read_environment()); });
    };
  });
}

}  // namespace fairlead::server
