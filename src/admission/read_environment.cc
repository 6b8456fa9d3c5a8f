#include <array>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "admission/fields.h"
#include "admission/json_reader.h"
#include "admission/read_settings.h"

namespace fairlead::admission {

namespace {

constexpr std::string_view kOverrides = "DW_TASK_QUEUE_ADMISSION_OVERRIDES";
constexpr std::string_view kQueries = "DW_QUERY_TASK_MAX_PENDING_PER_QUEUE";
constexpr std::string_view kStaleAfter = "DW_WORKER_STALE_AFTER_SECONDS";
constexpr std::string_view kPollTimeout = "DW_WORKER_POLL_TIMEOUT";

struct Variable {
  std::string_view name;
  TaskKind kind;
  std::string_view field;
};
constexpr std::array kVariables = {
    Variable{"DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_QUEUE", TaskKind::kWorkflow,
             "max_active_leases_per_queue"},
    Variable{"DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_NAMESPACE", TaskKind::kWorkflow,
             "max_active_leases_per_namespace"},
    Variable{"DW_WORKFLOW_TASK_MAX_DISPATCHES_PER_MINUTE", TaskKind::kWorkflow,
             "max_dispatches_per_minute"},
    Variable{"DW_WORKFLOW_TASK_MAX_DISPATCHES_PER_MINUTE_PER_NAMESPACE", TaskKind::kWorkflow,
             "max_dispatches_per_minute_per_namespace"},
    Variable{"DW_WORKFLOW_TASK_DISPATCH_WINDOW", TaskKind::kWorkflow, "dispatch_window"},
    Variable{"DW_WORKFLOW_TASK_DISPATCH_WINDOW_PER_NAMESPACE", TaskKind::kWorkflow,
             "dispatch_window_per_namespace"},
    Variable{"DW_ACTIVITY_TASK_MAX_ACTIVE_LEASES_PER_QUEUE", TaskKind::kActivity,
             "max_active_leases_per_queue"},
    Variable{"DW_ACTIVITY_TASK_MAX_ACTIVE_LEASES_PER_NAMESPACE", TaskKind::kActivity,
             "max_active_leases_per_namespace"},
    Variable{"DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE", TaskKind::kActivity,
             "max_dispatches_per_minute"},
    Variable{"DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE_PER_NAMESPACE", TaskKind::kActivity,
             "max_dispatches_per_minute_per_namespace"},
    Variable{"DW_ACTIVITY_TASK_DISPATCH_WINDOW", TaskKind::kActivity, "dispatch_window"},
    Variable{"DW_ACTIVITY_TASK_DISPATCH_WINDOW_PER_NAMESPACE", TaskKind::kActivity,
             "dispatch_window_per_namespace"},
};

absl::Status error_at(std::string_view place, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(place), ": ", std::string(what)));
}

// Variables of these families are ours to judge: a misspelt cap is no cap, and nobody would know.
bool is_ours(std::string_view name) {
  return name.starts_with("DW_WORKFLOW_TASK_MAX_") || name.starts_with("DW_ACTIVITY_TASK_MAX_") ||
         name.starts_with("DW_WORKFLOW_TASK_DISPATCH_") ||
         name.starts_with("DW_ACTIVITY_TASK_DISPATCH_") || name.starts_with("DW_QUERY_TASK_MAX_") ||
         name.starts_with("DW_TASK_QUEUE_ADMISSION");
}

std::string unknown_variable(std::string_view name) {
  std::vector<std::string_view> names{kOverrides, kQueries};
  for (const auto& variable : kVariables) names.push_back(variable.name);
  return unknown("setting", name, names);
}

Written written(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return std::monostate();
    case JsonValue::Kind::kNumber:
      return value.number;
    case JsonValue::Kind::kString:
      return value.text;
    case JsonValue::Kind::kBoolean:
      return Unfit{value.number != 0 ? "true" : "false"};
    case JsonValue::Kind::kArray:
      return Unfit{"a list"};
    case JsonValue::Kind::kObject:
      return Unfit{"an object"};
  }
  return std::monostate();
}

class OverridesReader {
 public:
  OverridesReader(std::string_view text, Settings* settings) : text_(text), settings_(settings) {}

  absl::Status read() {
    auto root = read_json(text_);
    if (!root.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(kOverrides), ":", root.status().message()));
    }
    if (auto status = check_object(*root); !status.ok()) return status;
    for (const auto& entry : root->members) {
      if (auto status = check_object(entry.value); !status.ok()) return status;
      for (const auto& section : entry.value.members) {
        if (auto status = read_section(entry.name, section); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status error(size_t at, std::string_view what) const {
    return error_at(absl::StrCat(std::string(kOverrides), ":", place_in(text_, at)), what);
  }

  // Some languages write an empty object as an empty list.
  absl::Status check_object(const JsonValue& value) const {
    const bool is_empty = value.kind == JsonValue::Kind::kNull ||
                          (value.kind == JsonValue::Kind::kArray && value.elements.empty());
    if (value.kind == JsonValue::Kind::kObject || is_empty) return absl::OkStatus();
    return error(value.at, "an object is wanted here");
  }

  absl::Status read_section(const std::string& key, const JsonValue::Member& section) {
    for (const TaskKind kind : kAllKinds) {
      if (section.name != name_of(kind)) continue;
      if (auto status = check_object(section.value); !status.ok()) return status;
      for (const auto& field : section.value.members) {
        if (!is_override_field(field.name)) {
          return error(field.at, unknown_override_field(field.name));
        }
        const auto status =
            set_field(field.name, written(field.value), &settings_->overrides[key][at(kind)]);
        if (!status.ok()) {
          return error(field.value.at, absl::StrCat(field.name, ": ", status.message()));
        }
      }
      return absl::OkStatus();
    }
    return error(section.at, unknown_kind(section.name));
  }

  const std::string_view text_;
  Settings* const settings_;
};

absl::Status read_seconds(std::string_view value, int64_t max, std::optional<int64_t>* out) {
  const auto seconds = read_cap(std::string(value));
  if (!seconds.ok() || *seconds < 1 || *seconds > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(value), "\" is not a number of seconds from 1 to ", max));
  }
  *out = *seconds;
  return absl::OkStatus();
}

absl::Status read_variable(std::string_view name, std::string_view value, Settings* settings) {
  for (const auto& variable : kVariables) {
    if (variable.name != name) continue;
    return set_field(variable.field, std::string(value), &settings->defaults[at(variable.kind)]);
  }
  if (name == kQueries) {
    const auto max = read_cap(std::string(value));
    if (max.ok()) settings->queries_pending_max = *max;
    return max.status();
  }
  if (name == kStaleAfter) return read_seconds(value, 86'400, &settings->worker_stale_after_s);
  if (name == kPollTimeout) return read_seconds(value, 3'600, &settings->worker_poll_timeout_s);
  if (is_ours(name)) return absl::InvalidArgumentError(unknown_variable(name));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Settings> read_environment(const std::map<std::string, std::string>& environment) {
  Settings settings;
  for (const auto& [name, value] : environment) {
    // Container tools pass variables on as empty when nobody set them.
    if (value.empty()) continue;
    if (name == kOverrides) {
      if (auto status = OverridesReader(value, &settings).read(); !status.ok()) return status;
      continue;
    }
    if (auto status = read_variable(name, value, &settings); !status.ok()) {
      return error_at(name, std::string(status.message()));
    }
  }
  return settings;
}

}  // namespace fairlead::admission
