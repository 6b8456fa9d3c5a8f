#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "server/commands.h"

namespace fairlead::server {

// What `fairlead task-queue …` has around it: a server to ask, and somebody who reads the answer.
struct Desk {
  // Asks the server at `address`: a full method name and the bytes of a request.
  using Ask = std::function<absl::StatusOr<std::string>(
      const std::string& address, DurationNs timeout, const std::string& method,
      const std::string& body)>;

  Ask ask;
  std::string identity;  // who is asking
  std::ostream* out = nullptr;
  std::ostream* errors = nullptr;
};

// `task-queue` and everything below it. The exit code is 0, or 1 if the server refused; it is told
// in `errors` then.
void add_task_queue_commands(CLI::App* app, CommandRun* run, Desk desk);

}  // namespace fairlead::server
