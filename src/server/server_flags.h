#pragma once

#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "server/config.h"

namespace fairlead::server {

// The flags of `fairlead server`, one for each key of the configuration and --config.
//
// Lives as long as the app that it was added to: the app holds pointers into it.
class ServerFlags {
 public:
  explicit ServerFlags(CLI::App* app);
  ServerFlags(const ServerFlags&) = delete;
  ServerFlags& operator=(const ServerFlags&) = delete;

  // What the flags, the environment and the file together say. Call after the app has parsed. The
  // file is the one of --config, else the one that FAIRLEAD_CONFIG names, else none.
  absl::StatusOr<Config> load(const std::map<std::string, std::string>& environment) const;

 private:
  std::string config_file_;
  // By key. A map, because its values stay where they are while more are added.
  std::map<std::string, std::string> values_;
  std::map<std::string, CLI::Option*> options_;
};

}  // namespace fairlead::server
