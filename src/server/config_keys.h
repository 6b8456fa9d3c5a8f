#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "server/config.h"

namespace fairlead::server {

// One thing that can be set. The same line makes the key in the file, the variable in the
// environment, the flag with its help, and the check of what arrives.
struct ConfigKey {
  struct Number {
    int64_t min;
    int64_t max;
    int64_t unit;  // what one of the key's units is in the field's units: KiB to bytes, s to ns
    void (*set)(Config&, int64_t);
    int64_t (*get)(const Config&);
  };
  struct Text {
    // Says what is wrong with a value, or nothing.
    std::string (*complaint)(std::string_view);
    std::string& (*field)(Config&);
  };

  std::string_view name;  // "section.key"
  std::string_view help;
  std::variant<Number, Text> value;
  // The name that Durable Workflow's own server has for it in the environment; empty: none.
  std::string_view alias = "";

  std::string_view section() const { return name.substr(0, name.find('.')); }
  std::string environment_name() const;  // FAIRLEAD_SERVER_GRPC_PORT
  // --grpc-port: the section `server` goes without saying, every other one is named.
  std::string flag() const;
  std::string default_text() const;

  // Each says in InvalidArgument what the key wants when it gets something else.
  absl::Status set_number(int64_t number, Config* config) const;
  absl::Status set_string(std::string_view text, Config* config) const;
  // For sources that know only text.
  absl::Status set_text(std::string_view text, Config* config) const;
  // "an integer from 1 to 65535", "a string".
  std::string wanted() const;
};

std::span<const ConfigKey> config_keys();
// What Durable Workflow's own server can be told and this one has no use for; why is in
// docs/durable-workflow.md. Who moves here need not remove them.
std::span<const std::string_view> meaningless_variables();
const ConfigKey* find_config_key(std::string_view name);

// The known key nearest to a misspelt one, or empty when none is near. A key that was written into
// the wrong section is near its right place.
std::string_view nearest_config_key(std::string_view name);
std::string_view nearest_config_section(std::string_view name);
bool is_config_section(std::string_view name);

}  // namespace fairlead::server
