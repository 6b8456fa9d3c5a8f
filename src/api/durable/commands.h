#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/durable/json.h"
#include "api/durable/options.h"
#include "base/time.h"
#include "model/model.pb.h"

namespace fairlead::durable {

// What commands are translated for.
struct CommandContext {
  std::string namespace_name;
  std::string namespace_id;
  const Options& options;
  std::function<std::string()> make_id;
  // What a run takes that is started on a queue, of a type; empty: of the run that commands.
  std::function<std::string(const std::string& queue, const std::string& type)> declared;
};

// What is wrong with a completion, and where.
struct CommandFault {
  std::string field;
  std::string text;
  bool is_conflict = false;  // the commands as a whole cannot be: nothing is wrong with a field
};

// What is wrong with a search attribute; empty: nothing.
std::string attribute_fault(std::string_view key, const json::value& value, const Options& options);

// Translates a worker's commands into drafts of events; see history/commands.h. False: `fault` says
// why, and nothing may be done.
bool read_commands(const json::array& commands, const CommandContext& context,
                   std::vector<model::Event>* drafts, CommandFault* fault);

}  // namespace fairlead::durable
