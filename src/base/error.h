#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace fairlead {

// What kind of trouble a status speaks of, beyond its code. Doors turn it into the detail message
// that their clients recognise; the engine does not know what those look like.
enum class ErrorKind : uint8_t {
  kPlain = 0,
  kNotFound = 1,
  kNamespaceNotFound = 2,  // fields: namespace
  kNamespaceAlreadyExists = 3,
  kNamespaceInvalidState = 4,   // fields: namespace
  kWorkflowAlreadyStarted = 5,  // fields: start request id, run id, first run id
  kQueryFailed = 6,             // fields: failure, in the door's own encoding
  kWorkflowNotReady = 7,
  kRpsLimit = 8,  // the kinds from here on are RESOURCE_EXHAUSTED, by cause
  kConcurrentLimit = 9,
  kSystemOverloaded = 10,
  kBusyWorkflow = 11,
  kPermissionDenied = 12,
  kLeaseRefused = 13,            // fields: reason, and what goes with it
  kActivityAlreadyStarted = 14,  // fields: start request id, run id
};

struct ErrorDetail {
  ErrorKind kind = ErrorKind::kPlain;
  std::vector<std::string> fields;
};

// The detail of a status made by the functions below; kPlain for any other.
ErrorDetail error_detail(const absl::Status& status);

// The catalogue. A function for each error that carries a detail, so that code and detail always
// fit.
namespace errors {

absl::Status invalid_argument(std::string_view message);
absl::Status failed_precondition(std::string_view message);
absl::Status unavailable(std::string_view message);
absl::Status unimplemented(std::string_view message);
absl::Status permission_denied(std::string_view message);
absl::Status internal(std::string_view message);

absl::Status not_found(std::string_view message);
absl::Status workflow_not_found(std::string_view workflow_id);
absl::Status run_not_found(std::string_view workflow_id, std::string_view run_id);
absl::Status workflow_completed();
absl::Status workflow_task_not_found();
absl::Status activity_not_found();
// A worker speaks of a task that it does not hold. `reason` is one of Durable Workflow's words.
absl::Status lease_refused(std::string_view reason, std::string_view detail = "",
                           std::string_view more = "");
absl::Status pending_activity_not_found();
absl::Status namespace_not_found(std::string_view name);
absl::Status namespace_already_exists(std::string_view name);
absl::Status namespace_invalid_state(std::string_view name, std::string_view message);
absl::Status workflow_already_started(std::string_view message, std::string_view start_request_id,
                                      std::string_view run_id, std::string_view first_run_id);
// Of activities without a workflow.
absl::Status standalone_not_found(std::string_view activity_id);
absl::Status activity_already_started(std::string_view start_request_id, std::string_view run_id);
absl::Status query_failed(std::string_view message, std::string_view failure);
absl::Status workflow_not_ready(std::string_view message);
absl::Status concurrent_limit(std::string_view message);
absl::Status system_overloaded();
absl::Status busy_workflow(std::string_view message);

}  // namespace errors
}  // namespace fairlead
