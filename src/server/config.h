#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "admission/policy.h"
#include "api/durable/options.h"
#include "history/limits.h"
#include "queue/exceptions.h"
#include "queue/task_queue.h"

namespace fairlead::server {

// Where the settings of a server come from, as text. A flag beats the environment, the environment
// beats the file, and what none of them names keeps its default.
struct ConfigSources {
  struct Flag {
    std::string key;  // "server.grpc_port"
    std::string value;
  };

  std::string file_name;  // for messages
  std::optional<std::string> file_text;
  std::map<std::string, std::string> environment;
  std::vector<Flag> flags;
};

// Everything an operator can set, checked. The keys, their ranges and their help are one table,
// config_keys.cc; a field here without a line there cannot be set.
struct Config {
  struct Server {
    std::string bind = "127.0.0.1";
    uint16_t grpc_port = 7233;
    uint16_t http_port = 8233;
    std::string data_dir = "fairlead-data";
  };
  struct Engine {
    uint16_t shards = 16;  // of a new store; one that exists keeps its own
    uint32_t executors = 0;
    size_t cache_bytes = size_t{64} << 20;
    size_t requests_max = 20'000;
    size_t polls_per_namespace_max = 20'000;

    // The threads that run shards. Half of the cores unless told: the other half serves sockets and
    // the disk.
    size_t executor_threads(unsigned cores) const;
  };
  // How task queues hand out work, unless their namespace or their own rules say otherwise.
  struct Queues {
    std::string fairness = "on";
    std::string first_turn = "scheduled";
    std::string transition = "drain";
    uint32_t client_weight_max = 1000;
    std::string client_weights = "honour";
    uint32_t levels = queue::kLevelsDefault;
    uint32_t lower_level_share = 0;  // percent
    size_t tasks_in_memory_max = 512 * 1024;
    size_t max_active_keys = 4'000'000;
    std::vector<queue::Exception> exceptions;  // from the section [matching]

    queue::Settings settings() const;
  };
  // Whom the server may tell how a workflow ended.
  struct Callbacks {
    std::string allowed_addresses;
  };
  struct Log {
    std::string level = "info";
    std::string format = "text";
  };

  Server server;
  Engine engine;
  history::Limits limits;
  Queues queues;
  durable::Options durable;
  Callbacks callbacks;
  Log log;
  admission::Settings admission;  // the section of that name, and the variables DW_…

  // Pure: looks at its argument and nothing else. An error is InvalidArgument and begins with the
  // place to look at: "fairlead.toml:3:1: …", "FAIRLEAD_LOG_LEVEL: …" or "--log-level: …".
  static absl::StatusOr<Config> load(const ConfigSources& sources);
};

// "127.0.0.1:7233", "[::1]:7233".
std::string host_port(const std::string& address, uint16_t port);

}  // namespace fairlead::server
