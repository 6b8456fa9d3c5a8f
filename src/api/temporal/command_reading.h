#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/commands.h"
#include "base/error.h"
#include "google/protobuf/arena.h"
#include "temporal/api/command/v1/message.pb.h"

// What the readers of commands share. A reader turns one command into the draft of its event.
namespace fairlead::api {

using temporal::api::command::v1::Command;

// Of commands that have to do with other runs.
absl::Status continue_as_new(Command& command, const Context& context, model::Event& draft);
absl::Status start_child(Command& command, const Context& context, model::Event& draft);
absl::Status signal_external(Command& command, const Context& context, model::Event& draft);
absl::Status cancel_external(Command& command, const Context& context, model::Event& draft);

// A blob too large for the run to go on. Everything else that is wrong with a command is
// InvalidArgument and fails the workflow task only.
inline absl::Status oversize(std::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat(absl::string_view(what.data(), what.size()), " exceeds size limit."));
}

inline absl::Status check_size(size_t bytes, int64_t bytes_max, std::string_view what) {
  return static_cast<int64_t>(bytes) > bytes_max ? oversize(what) : absl::OkStatus();
}

template <typename Attributes>
Attributes& door_for(const Command& command) {
  return *google::protobuf::Arena::CreateMessage<Attributes>(command.GetArena());
}

inline absl::Status annotate(const absl::Status& status, const std::string& before,
                             const std::string& after) {
  return status.ok() ? status
                     : errors::invalid_argument(absl::StrCat(before, status.message(), after));
}

inline absl::Status check_name(const std::string& value, std::string_view field,
                               std::string_view command, int64_t bytes_max) {
  const absl::string_view field_text(field.data(), field.size());
  const absl::string_view command_text(command.data(), command.size());
  if (value.empty()) {
    return errors::invalid_argument(absl::StrCat(field_text, " is not set on ", command_text, "."));
  }
  if (static_cast<int64_t>(value.size()) > bytes_max) {
    return errors::invalid_argument(absl::StrCat(field_text, " on ", command_text,
                                                 " exceeds length limit. Length=", value.size(),
                                                 " Limit=", bytes_max));
  }
  return absl::OkStatus();
}

}  // namespace fairlead::api
