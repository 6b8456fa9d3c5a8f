#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "history/limits.h"
#include "model/model.pb.h"
#include "shard/requests.h"

namespace temporal::api::command::v1 {
class Command;
}
namespace temporal::api::protocol::v1 {
class Message;
}

namespace fairlead::api {

using Commands = google::protobuf::RepeatedPtrField<temporal::api::command::v1::Command>;

using Messages = google::protobuf::RepeatedPtrField<temporal::api::protocol::v1::Message>;

// What the worker wants to happen, as drafts of the events that record it. When a command is wrong
// in itself, `bad_command` says why, and the drafts are those before it.
struct Drafts {
  std::vector<model::Event> events;
  std::optional<shard::CommandError> bad_command;
};

struct CommandLimits {
  int64_t id_bytes;
  int64_t blob_bytes;
  int64_t memo_bytes;
};

// Where commands come from.
struct Context {
  const std::string& namespace_name;
  const std::string& namespace_id;
  const std::string& workflow_id;
  const std::string& run_id;
  const std::string& identity;
  CommandLimits limits;
  // What the worker says of updates; a command tells where in the order of commands it belongs.
  const Messages& messages;
};

// A list that no worker may send: a closing command before the end, or a type that does not exist.
// This is the caller's mistake and leaves the workflow task alone.
absl::Status check_sequence(const Commands& commands);

// Empties `commands`, which must live on an arena: payloads move from there into the drafts.
Drafts read_commands(Commands& commands, const Context& context);

}  // namespace fairlead::api
