#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "api/fairlead/task_queue.pb.h"

// The flags that change rules, and the requests that they mean. What the flags say wrong is a
// CLI::ValidationError, which ends the program like any other mistake on the line.
namespace fairlead::server {

// Where the commands are sent, and what all of them have.
struct CommonFlags {
  void add_to(CLI::App* app);

  std::string address = "127.0.0.1:7233";
  std::string namespace_name = "default";
  double timeout_s = 10;
  bool is_json = false;
};

// One queue.
struct QueueFlags {
  void add_to(CLI::App* app);
  v1::TaskQueue queue(const CommonFlags& common) const;

  std::string name;
  std::string type;  // empty: it has to be said
};

// One key, which may be empty but must be said.
CLI::Option* add_key_flag(CLI::App* app, std::string* key);

// `config set`: flags of `temporal task-queue config set` under their own names, then ours. A value
// of `default` unsets.
class ConfigFlags {
 public:
  void add_to(CLI::App* app);
  // What the flags change; the queue and the identity are the caller's. Warnings are for people.
  v1::SetTaskQueueRequest request(std::vector<std::string>* warnings) const;

 private:
  std::string queue_rate_;
  std::string queue_rate_reason_;
  std::string key_rate_;
  std::string key_rate_reason_;
  std::vector<std::string> weights_;
  bool clears_weights_ = false;
  std::string running_max_;
  std::string running_max_per_key_;
  std::string fairness_;
  std::string first_turn_;
  std::string transition_;
  std::string basis_;
  std::string poller_order_;
};

// `config set-key`.
class KeyConfigFlags {
 public:
  void add_to(CLI::App* app);
  // All but the queue.
  v1::SetKeyRequest request(std::vector<std::string>* warnings) const;

 private:
  std::string key_;
  std::string weight_;
  std::string running_max_;
  std::string rate_;
};

}  // namespace fairlead::server
