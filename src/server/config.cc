#include "server/config.h"

#include <algorithm>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "admission/read_settings.h"
#include "server/config_keys.h"
#include "server/config_matching.h"

namespace fairlead::server {
namespace {

std::string did_you_mean(std::string_view nearest) {
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", std::string(nearest), "?");
}

absl::Status error_at(std::string_view place, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(place), ": ", std::string(what)));
}

absl::Status placed(std::string_view place, const absl::Status& status) {
  return status.ok() ? status : error_at(place, std::string(status.message()));
}

// ---- the file -----------------------------------------------------------------------------------

// It has keys that only the operator knows, names of queues, so it reads itself.
constexpr std::string_view kAdmissionSection = "admission";
// It has Temporal's names, and queues for which they hold.
constexpr std::string_view kMatchingSection = "matching";

class FileReader {
 public:
  FileReader(const std::string& file_name, Config* config)
      : file_name_(file_name), config_(config) {}

  absl::Status read(std::string_view text) {
    const toml::parse_result parsed = toml::parse(text, file_name_);
    if (!parsed) return error_at(place(parsed.error().source()), parsed.error().description());
    for (const auto& [name, node] : parsed.table()) {
      if (auto status = read_top(name, node); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  std::string place(const toml::source_region& source) const {
    return absl::StrCat(file_name_, ":", source.begin.line, ":", source.begin.column);
  }

  absl::Status read_top(const toml::key& name, const toml::node& node) {
    const auto* section = node.as_table();
    if (section == nullptr) {
      return error_at(place(name.source()),
                      absl::StrCat("unknown key ", std::string(name.str()),
                                   did_you_mean(nearest_config_key(name.str()))));
    }
    if (name.str() == kAdmissionSection) {
      auto settings = admission::read_toml(*section, file_name_);
      if (!settings.ok()) return settings.status();
      config_->admission = *std::move(settings);
      return absl::OkStatus();
    }
    if (name.str() == kMatchingSection) return read_matching(*section, file_name_, config_);
    if (!is_config_section(name.str())) {
      return error_at(place(name.source()),
                      absl::StrCat("unknown section ", std::string(name.str()),
                                   did_you_mean(nearest_config_section(name.str()))));
    }
    for (const auto& [key, value] : *section) {
      if (auto status = read_key(name.str(), key, value); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status read_key(std::string_view section, const toml::key& name, const toml::node& node) {
    const std::string full = absl::StrCat(std::string(section), ".", std::string(name.str()));
    const ConfigKey* key = find_config_key(full);
    if (key == nullptr) {
      return error_at(place(name.source()),
                      absl::StrCat("unknown key ", full, did_you_mean(nearest_config_key(full))));
    }
    const std::string at = place(node.source());
    if (const auto* number = node.as_integer()) {
      return placed(at, key->set_number(number->get(), config_));
    }
    if (const auto* text = node.as_string()) {
      return placed(at, key->set_string(text->get(), config_));
    }
    return error_at(at, absl::StrCat(full, " wants ", key->wanted()));
  }

  const std::string& file_name_;
  Config* const config_;
};

// ---- environment and flags ----------------------------------------------------------------------

// Other programs of this project have variables of their own (FAIRLEAD_CACHE, FAIRLEAD_ADDRESS), so
// only those that begin like one of our sections are ours to judge.
bool is_ours(std::string_view variable) {
  return std::any_of(config_keys().begin(), config_keys().end(), [&](const ConfigKey& key) {
    const std::string section(key.section());
    const std::string prefix = absl::StrCat("FAIRLEAD_", absl::AsciiStrToUpper(section), "_");
    return variable.starts_with(prefix);
  });
}

std::string nearest_variable(std::string_view variable) {
  std::string name = absl::AsciiStrToLower(std::string(variable.substr(sizeof("FAIRLEAD_") - 1)));
  name[name.find('_')] = '.';
  const ConfigKey* nearest = find_config_key(nearest_config_key(name));
  return nearest == nullptr ? "" : nearest->environment_name();
}

absl::Status read_environment(const std::map<std::string, std::string>& environment,
                              Config* config) {
  const auto keys = config_keys();
  // Durable Workflow's own names come first: ours, more exact, have the last word.
  for (const auto& key : keys) {
    const auto found = environment.find(std::string(key.alias));
    if (key.alias.empty() || found == environment.end() || found->second.empty()) continue;
    auto status = placed(key.alias, key.set_text(found->second, config));
    if (!status.ok()) return status;
  }
  for (const auto& [variable, value] : environment) {
    if (!is_ours(variable)) continue;
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const ConfigKey& candidate) {
      return candidate.environment_name() == variable;
    });
    if (key == keys.end()) {
      return error_at(variable,
                      absl::StrCat("unknown setting", did_you_mean(nearest_variable(variable))));
    }
    // Container tools pass variables on as empty when nobody set them.
    if (value.empty()) continue;
    if (auto status = placed(variable, key->set_text(value, config)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status read_flags(const std::vector<ConfigSources::Flag>& flags, Config* config) {
  for (const auto& flag : flags) {
    const ConfigKey* key = find_config_key(flag.key);
    if (key == nullptr) {
      return error_at("command line", absl::StrCat("unknown key ", flag.key,
                                                   did_you_mean(nearest_config_key(flag.key))));
    }
    if (auto status = placed(key->flag(), key->set_text(flag.value, config)); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

// What only the whole can tell.
absl::Status check_together(const Config& config) {
  if (config.server.grpc_port == config.server.http_port) {
    return absl::InvalidArgumentError(
        absl::StrCat("server.grpc_port and server.http_port are both ", config.server.grpc_port,
                     "; give each a port of its own"));
  }
  if (config.durable.history_page_default > config.durable.history_page_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("durable.history_page_default = ", config.durable.history_page_default,
                     " is more than durable.history_page_max = ", config.durable.history_page_max));
  }
  const auto& limits = config.limits;
  if (limits.workflow_task_timeout > limits.workflow_task_timeout_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("limits.workflow_task_timeout_s = ", limits.workflow_task_timeout / kSecond,
                     " is more than limits.workflow_task_timeout_max_s = ",
                     limits.workflow_task_timeout_max / kSecond));
  }
  return absl::OkStatus();
}

}  // namespace

queue::Settings Config::Queues::settings() const {
  queue::Settings settings;
  settings.order = fairness == "on" ? queue::Order::kFair : queue::Order::kFifo;
  settings.is_prompt = first_turn == "prompt";
  settings.transition = transition == "drain"       ? model::QueueRules::DRAIN
                        : transition == "immediate" ? model::QueueRules::IMMEDIATE
                                                    : model::QueueRules::DRAIN_PER_LEVEL;
  settings.client_weight_max = client_weight_max;
  settings.ignore_client_weights = client_weights == "ignore";
  settings.levels = levels;
  settings.lower_level_share = lower_level_share;
  settings.tasks_in_memory_max = tasks_in_memory_max;
  settings.keys_max = max_active_keys;
  return settings;
}

size_t Config::Engine::executor_threads(unsigned cores) const {
  return executors > 0 ? executors : std::max(1U, cores / 2);
}

absl::StatusOr<Config> Config::load(const ConfigSources& sources) {
  Config config;
  if (sources.file_text.has_value()) {
    FileReader file(sources.file_name, &config);
    if (auto status = file.read(*sources.file_text); !status.ok()) return status;
  }
  if (auto status = read_environment(sources.environment, &config); !status.ok()) return status;
  auto admission = admission::read_environment(sources.environment);
  if (!admission.ok()) return admission.status();
  config.admission.lay_over(*admission);
  if (auto status = read_flags(sources.flags, &config); !status.ok()) return status;
  if (auto status = check_together(config); !status.ok()) return status;
  return config;
}

std::string host_port(const std::string& address, uint16_t port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return is_v6 ? absl::StrCat("[", address, "]:", port) : absl::StrCat(address, ":", port);
}

}  // namespace fairlead::server
