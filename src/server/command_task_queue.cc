#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "server/commands.h"
#include "server/rpc_client.h"
#include "server/task_queue_commands.h"

namespace fairlead::server {

namespace {

// Who changed a rule, for whoever wonders later.
std::string identity() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host.fill(0);
  const char* user = std::getenv("USER");
  return absl::StrCat(user == nullptr ? "" : user, "@", host.data());
}

}  // namespace

void add_task_queue_command(CLI::App* app, CommandRun* run) {
  Desk desk;
  desk.ask = [client = std::shared_ptr<RpcClient>()](const std::string& address, DurationNs timeout,
                                                     const std::string& method,
                                                     const std::string& body) mutable {
    if (client == nullptr) client = std::make_shared<RpcClient>(address, timeout);
    return client->call(method, body);
  };
  desk.identity = identity();
  desk.out = &std::cout;
  desk.errors = &std::cerr;
  add_task_queue_commands(app, run, std::move(desk));
}

}  // namespace fairlead::server
