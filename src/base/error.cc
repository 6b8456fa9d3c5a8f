#include "base/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/wire.h"

namespace fairlead {

namespace {

constexpr absl::string_view kPayload = "fairlead/error";

absl::string_view to_absl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status make(absl::StatusCode code, std::string_view message, ErrorKind kind,
                  std::vector<std::string_view> fields = {}) {
  absl::Status status(code, to_absl(message));
  std::string payload;
  wire::Writer writer(&payload);
  writer.varint(1, static_cast<uint64_t>(kind));
  for (const auto field : fields) writer.bytes(2, field);
  status.SetPayload(kPayload, absl::Cord(payload));
  return status;
}

}  // namespace

ErrorDetail error_detail(const absl::Status& status) {
  ErrorDetail detail;
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return detail;
  const std::string bytes(*payload);
  wire::Reader reader(bytes);
  while (reader.next()) {
    if (reader.field() == 1) detail.kind = static_cast<ErrorKind>(reader.number());
    if (reader.field() == 2) detail.fields.emplace_back(reader.bytes());
  }
  return detail;
}

namespace errors {

using absl::StatusCode;

absl::Status invalid_argument(std::string_view message) {
  return absl::InvalidArgumentError(to_absl(message));
}
absl::Status failed_precondition(std::string_view message) {
  return absl::FailedPreconditionError(to_absl(message));
}
absl::Status unavailable(std::string_view message) {
  return absl::UnavailableError(to_absl(message));
}
absl::Status unimplemented(std::string_view message) {
  return absl::UnimplementedError(to_absl(message));
}
absl::Status internal(std::string_view message) { return absl::InternalError(to_absl(message)); }

absl::Status not_found(std::string_view message) {
  return make(StatusCode::kNotFound, message, ErrorKind::kNotFound);
}

absl::Status workflow_not_found(std::string_view workflow_id) {
  return not_found(absl::StrCat("workflow not found for ID: ", to_absl(workflow_id)));
}

absl::Status run_not_found(std::string_view workflow_id, std::string_view run_id) {
  return not_found(absl::StrCat("workflow execution not found for workflow ID \"",
                                to_absl(workflow_id), "\" and run ID \"", to_absl(run_id), "\""));
}

absl::Status workflow_completed() { return not_found("workflow execution already completed"); }

absl::Status workflow_task_not_found() { return not_found("Workflow task not found."); }

absl::Status activity_not_found() {
  return not_found(
      "invalid activityID or activity already timed out or invoking workflow is completed");
}

absl::Status lease_refused(std::string_view reason, std::string_view detail,
                           std::string_view more) {
  return make(StatusCode::kFailedPrecondition,
              absl::StrCat("the task is not the caller's: ", to_absl(reason)),
              ErrorKind::kLeaseRefused, {reason, detail, more});
}

absl::Status pending_activity_not_found() {
  return not_found(
      "Can't find pending activity with such ID. Invalid activityID or activity already completed");
}

absl::Status namespace_not_found(std::string_view name) {
  return make(StatusCode::kNotFound, absl::StrCat("Namespace ", to_absl(name), " is not found."),
              ErrorKind::kNamespaceNotFound, {name});
}

absl::Status namespace_already_exists(std::string_view name) {
  return make(StatusCode::kAlreadyExists,
              absl::StrCat("Namespace ", to_absl(name), " already exists."),
              ErrorKind::kNamespaceAlreadyExists);
}

absl::Status namespace_invalid_state(std::string_view name, std::string_view message) {
  return make(StatusCode::kFailedPrecondition, message, ErrorKind::kNamespaceInvalidState, {name});
}

absl::Status workflow_already_started(std::string_view message, std::string_view start_request_id,
                                      std::string_view run_id, std::string_view first_run_id) {
  return make(StatusCode::kAlreadyExists, message, ErrorKind::kWorkflowAlreadyStarted,
              {start_request_id, run_id, first_run_id});
}

absl::Status standalone_not_found(std::string_view activity_id) {
  return not_found(absl::StrCat("activity not found for ID: ", to_absl(activity_id)));
}

absl::Status activity_already_started(std::string_view start_request_id, std::string_view run_id) {
  return make(StatusCode::kAlreadyExists, "activity execution already started",
              ErrorKind::kActivityAlreadyStarted, {start_request_id, run_id});
}

absl::Status query_failed(std::string_view message, std::string_view failure) {
  return make(StatusCode::kInvalidArgument, message, ErrorKind::kQueryFailed, {failure});
}

absl::Status workflow_not_ready(std::string_view message) {
  return make(StatusCode::kFailedPrecondition, message, ErrorKind::kWorkflowNotReady);
}

absl::Status concurrent_limit(std::string_view message) {
  return make(StatusCode::kResourceExhausted, message, ErrorKind::kConcurrentLimit);
}

absl::Status system_overloaded() {
  return make(StatusCode::kResourceExhausted,
              "the server has more requests waiting than it can hold; try again shortly",
              ErrorKind::kSystemOverloaded);
}

absl::Status permission_denied(std::string_view message) {
  return make(StatusCode::kPermissionDenied, message, ErrorKind::kPermissionDenied);
}

absl::Status busy_workflow(std::string_view message) {
  return make(StatusCode::kResourceExhausted, message, ErrorKind::kBusyWorkflow);
}

}  // namespace errors
}  // namespace fairlead
