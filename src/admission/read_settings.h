#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "admission/policy.h"

#define TOML_EXCEPTIONS 0
#include "toml++/toml.h"

namespace fairlead::admission {

// The variables that begin with DW_ and speak of admission. An error is InvalidArgument and begins
// with the place: "DW_QUERY_TASK_MAX_PENDING_PER_QUEUE: …" or, inside the overrides' JSON,
// "DW_TASK_QUEUE_ADMISSION_OVERRIDES:3:14: …".
absl::StatusOr<Settings> read_environment(const std::map<std::string, std::string>& environment);

// The [admission] section of a file. An error begins with "fairlead.toml:3:14: …".
//
//   [admission.workflow_tasks]
//   max_active_leases_per_queue = 25
//   [admission.queue_overrides."production:payments".workflow_tasks]
//   max_dispatches_per_minute = 120
//   dispatch_window = "sliding"
absl::StatusOr<Settings> read_toml(const toml::table& section, std::string_view file_name);

}  // namespace fairlead::admission
