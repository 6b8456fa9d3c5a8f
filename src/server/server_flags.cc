#include "server/server_flags.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/config_keys.h"
#include "server/files.h"

namespace fairlead::server {

ServerFlags::ServerFlags(CLI::App* app) {
  app->add_option("--config", config_file_, "Settings in TOML; also FAIRLEAD_CONFIG")
      ->type_name("FILE");
  for (const auto& key : config_keys()) {
    const std::string name(key.name);
    const bool is_number = std::holds_alternative<ConfigKey::Number>(key.value);
    auto* option = app->add_option(key.flag(), values_[name], std::string(key.help));
    option->type_name(is_number ? "N" : "TEXT");
    option->default_str(key.default_text());
    // The one group that everyone needs stands under CLI11's own heading, beside --help.
    if (key.section() != "server") option->group(std::string(key.section()));
    options_[name] = option;
  }
}

absl::StatusOr<Config> ServerFlags::load(
    const std::map<std::string, std::string>& environment) const {
  ConfigSources sources;
  sources.environment = environment;
  sources.file_name = config_file_;
  const auto from_environment = environment.find("FAIRLEAD_CONFIG");
  if (config_file_.empty() && from_environment != environment.end()) {
    sources.file_name = from_environment->second;
  }
  if (!sources.file_name.empty()) {
    auto text = read_file(sources.file_name);
    if (!text.ok()) return text.status();
    sources.file_text = *std::move(text);
  }
  for (const auto& [key, option] : options_) {
    if (option->count() > 0) sources.flags.push_back({key, values_.at(key)});
  }
  return Config::load(sources);
}

}  // namespace fairlead::server
