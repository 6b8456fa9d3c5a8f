#include <spdlog/spdlog.h>

#include <cstdio>

#include "api/temporal/answers.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/wire.h"
#include "google/protobuf/any.pb.h"
#include "temporal/api/enums/v1/failed_cause.pb.h"
#include "temporal/api/errordetails/v1/message.pb.h"

// SDKs choose the exception to throw from the code and the type of the detail, so the detail is
// part of the contract: an ALREADY_EXISTS without it is not "workflow already started".
namespace fairlead::api {

namespace {

using namespace temporal::api::errordetails::v1;
namespace enums = temporal::api::enums::v1;
using wire::Writer;

constexpr size_t kMessageBytesMax = 4000;

// The errordetails message of an error: its name and its bytes.
struct Detail {
  const char* type = nullptr;  // not set: the code says it all
  std::string value;
};

std::string_view field(const ErrorDetail& error, size_t index) {
  return index < error.fields.size() ? std::string_view(error.fields[index]) : std::string_view();
}

Detail resource_exhausted(enums::ResourceExhaustedCause cause,
                          enums::ResourceExhaustedScope scope) {
  Detail detail{"ResourceExhaustedFailure", {}};
  Writer writer(&detail.value);
  writer.integer(ResourceExhaustedFailure::kCauseFieldNumber, cause);
  writer.integer(ResourceExhaustedFailure::kScopeFieldNumber, scope);
  return detail;
}

Detail already_started(const ErrorDetail& error) {
  using Failure = WorkflowExecutionAlreadyStartedFailure;
  Detail detail{"WorkflowExecutionAlreadyStartedFailure", {}};
  Writer writer(&detail.value);
  writer.string(Failure::kStartRequestIdFieldNumber, field(error, 0));
  writer.string(Failure::kRunIdFieldNumber, field(error, 1));
  writer.string(Failure::kFirstExecutionRunIdFieldNumber, field(error, 2));
  return detail;
}

Detail activity_already_started(const ErrorDetail& error) {
  using Failure = ActivityExecutionAlreadyStartedFailure;
  Detail detail{"ActivityExecutionAlreadyStartedFailure", {}};
  Writer writer(&detail.value);
  writer.string(Failure::kStartRequestIdFieldNumber, field(error, 0));
  writer.string(Failure::kRunIdFieldNumber, field(error, 1));
  return detail;
}

Detail one_field(const char* type, uint32_t number, std::string_view value) {
  Detail detail{type, {}};
  Writer(&detail.value).string(number, value);
  return detail;
}

// A namespace that is not active is deprecated: one that was deleted is not found.
Detail invalid_state(const ErrorDetail& error) {
  using Failure = NamespaceInvalidStateFailure;
  Detail detail{"NamespaceInvalidStateFailure", {}};
  Writer writer(&detail.value);
  writer.string(Failure::kNamespaceFieldNumber, field(error, 0));
  writer.integer(Failure::kStateFieldNumber, enums::NAMESPACE_STATE_DEPRECATED);
  writer.integer(Failure::kAllowedStatesFieldNumber, enums::NAMESPACE_STATE_REGISTERED);
  return detail;
}

Detail detail_of(const ErrorDetail& error) {
  switch (error.kind) {
    case ErrorKind::kPlain:
    case ErrorKind::kLeaseRefused:  // the other door's
      return {};
    case ErrorKind::kNotFound:
      return {"NotFoundFailure", {}};
    case ErrorKind::kNamespaceNotFound:
      return one_field("NamespaceNotFoundFailure", NamespaceNotFoundFailure::kNamespaceFieldNumber,
                       field(error, 0));
    case ErrorKind::kNamespaceAlreadyExists:
      return {"NamespaceAlreadyExistsFailure", {}};
    case ErrorKind::kNamespaceInvalidState:
      return invalid_state(error);
    case ErrorKind::kWorkflowAlreadyStarted:
      return already_started(error);
    case ErrorKind::kActivityAlreadyStarted:
      return activity_already_started(error);
    case ErrorKind::kQueryFailed:
      return one_field("QueryFailedFailure", QueryFailedFailure::kFailureFieldNumber,
                       field(error, 0));
    case ErrorKind::kWorkflowNotReady:
      return {"WorkflowNotReadyFailure", {}};
    case ErrorKind::kPermissionDenied:
      return {"PermissionDeniedFailure", {}};
    case ErrorKind::kRpsLimit:
      return resource_exhausted(enums::RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT,
                                enums::RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
    case ErrorKind::kConcurrentLimit:
      return resource_exhausted(enums::RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT,
                                enums::RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
    case ErrorKind::kSystemOverloaded:
      return resource_exhausted(enums::RESOURCE_EXHAUSTED_CAUSE_SYSTEM_OVERLOADED,
                                enums::RESOURCE_EXHAUSTED_SCOPE_SYSTEM);
    case ErrorKind::kBusyWorkflow:
      return resource_exhausted(enums::RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW,
                                enums::RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
  }
  return {};
}

// Cuts at the limit, but never inside a UTF-8 character: half of one would make the status
// unreadable.
std::string cut(std::string_view message) {
  if (message.size() <= kMessageBytesMax) return std::string(message);
  size_t end = kMessageBytesMax;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80) --end;
  return std::string(message.substr(0, end));
}

// What went wrong inside is for the log. The client gets a number that finds the line there.
std::string mask(std::string_view message) {
  char number[9];
  std::snprintf(number, sizeof number, "%08x", static_cast<uint32_t>(stable_hash(message) >> 32));
  spdlog::error("internal error {}: {}", number, std::string(message));
  return std::string("something went wrong, please retry (") + number + ")";
}

// google.rpc.Status, which is not among the API's own protos: code, message, details.
std::string rpc_details(const RpcStatus& status, const Detail& detail) {
  using google::protobuf::Any;
  std::string bytes;
  Writer writer(&bytes);
  writer.integer(1, status.code);
  writer.string(2, status.message);
  writer.message(3, [&](Writer& any) {
    any.string(Any::kTypeUrlFieldNumber,
               std::string("type.googleapis.com/temporal.api.errordetails.v1.") + detail.type);
    any.string(Any::kValueFieldNumber, detail.value);
  });
  return bytes;
}

}  // namespace

RpcStatus to_rpc_status(const absl::Status& status) {
  RpcStatus rpc;
  if (status.ok()) return rpc;
  // Abseil's codes are gRPC's.
  rpc.code = static_cast<int>(status.code());
  const std::string_view message(status.message().data(), status.message().size());
  const bool is_ours =
      status.code() == absl::StatusCode::kInternal || status.code() == absl::StatusCode::kUnknown;
  rpc.message = is_ours ? mask(message) : cut(message);

  const Detail detail = detail_of(error_detail(status));
  if (detail.type != nullptr) rpc.details = rpc_details(rpc, detail);
  return rpc;
}

}  // namespace fairlead::api
