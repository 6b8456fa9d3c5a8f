#include "api/durable/call.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/durable/gzip.h"
#include "base/assert.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

// Below it the bytes that are saved cost more than they would on the wire.
constexpr size_t kWorthCompressing = 8 << 10;

// Members of an answer that are told again in its control_plane block.
constexpr const char* kMirrored[] = {
    "run_id",
    "workflow_type",
    "namespace",
    "business_key",
    "status",
    "status_bucket",
    "is_terminal",
    "task_queue",
    "run_number",
    "run_count",
    "workflow_count",
    "is_current_run",
    "compatibility",
    "started_at",
    "closed_at",
    "last_progress_at",
    "wait_kind",
    "wait_reason",
    "next_page_token",
    "command_id",
    "command_status",
    "command_source",
    "target_scope",
    "outcome",
    "reason",
    "rejection_reason",
    "validation_errors",
    "result",
    "result_envelope",
    "update_id",
    "update_status",
    "wait_for",
    "wait_timed_out",
    "blocked_reason",
    "message",
    "wait_timeout_seconds",
    "diagnostic_status",
};

json::array success_fields(std::string_view operation) {
  if (operation == "start") return {"workflow_id", "outcome"};
  if (operation == "describe_run") return {"run_id"};
  if (operation == "debug_workflow") return {"run_id", "diagnostic_status"};
  if (operation == "history") return {"next_page_token"};
  if (operation == "query") return {"result"};
  if (operation == "list" || operation == "describe" || operation == "list_runs") return {};
  return {"outcome"};
}

json::object control_block(const Call& call, const json::object& body) {
  json::object block;
  block["schema"] = "durable-workflow.v2.control-plane-response";
  block["version"] = 1;
  block["operation"] = to_json(call.operation.name);
  const bool has_id = !call.args.empty();
  json::array required;
  if (has_id) {
    block["workflow_id"] = call.arg(0);
    required.emplace_back("workflow_id");
  } else if (const auto* id = member(body, "workflow_id")) {
    block["workflow_id"] = *id;
  }
  if (call.operation.name == "history") required.emplace_back("run_id");
  if (!call.operation.name_field.empty()) {
    block["operation_name"] = call.args.back();
    block["operation_name_field"] = to_json(call.operation.name_field);
    required.emplace_back("operation_name");
    required.emplace_back("operation_name_field");
  }
  block["contract"] = {{"schema", "durable-workflow.v2.control-plane-response.contract"},
                       {"version", 1},
                       {"legacy_field_policy", "reject_non_canonical"},
                       {"legacy_fields",
                        {{"query", "query_name"},
                         {"signal", "signal_name"},
                         {"update", "update_name"},
                         {"wait_policy", "wait_for"}}},
                       {"required_fields", required},
                       {"success_fields", success_fields(call.operation.name)}};
  for (const char* name : kMirrored) {
    if (const auto* value = body.if_contains(name)) block[name] = *value;
  }
  return block;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, absl::string_view(name.data(), name.size()))) return value;
  }
  return {};
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
        hex_digit(text[i + 2]) >= 0) {
      decoded.push_back(static_cast<char>(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2])));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

std::string Call::parameter(std::string_view name) const {
  for (const auto part : absl::StrSplit(request->query, '&')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.first == name) return percent_decoded(pair.second);
  }
  return "";
}

void Call::send(int status, json::object body_out, std::string_view raw) {
  FL_ASSERT(!is_answered_, "a request is answered once");
  is_answered_ = true;
  Response response;
  response.status = status;
  response.headers = std::move(headers);
  if (plane == Plane::kWorker) {
    body_out["protocol_version"] = kProtocolVersion;
    if (capabilities != nullptr) body_out["server_capabilities"] = *capabilities;
    response.headers.emplace_back(kProtocolHeader, kProtocolVersion);
  } else if (plane == Plane::kControl) {
    if (!operation.name.empty()) body_out["control_plane"] = control_block(*this, body_out);
    response.headers.emplace_back(kControlHeader, kControlVersion);
  }
  Members members;
  members.raw(members_of(body_out)).raw(raw);
  response.body = absl::StrCat("{", members.text(), "}");
  if (may_compress && response.body.size() >= kWorthCompressing &&
      accepts_gzip(request->header("Accept-Encoding"))) {
    response.body = gzipped(response.body);
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.headers.emplace_back("Vary", "Accept-Encoding");
  }
  respond_(std::move(response));
}

void Call::answer(int status, json::object body_out, std::string_view raw) {
  send(status, std::move(body_out), raw);
}

void Call::refuse(int status, std::string_view reason, std::string_view message,
                  json::object extra) {
  extra["reason"] = to_json(reason);
  extra["message"] = to_json(message);
  if (plane == Plane::kWorker) extra["error"] = to_json(message);
  send(status, std::move(extra), "");
}

void Call::invalid(std::string_view field, std::string_view text, std::string_view reason) {
  json::object errors;
  errors[to_json(field)] = json::array{to_json(text)};
  json::object extra;
  extra["errors"] = errors;
  extra["validation_errors"] = errors;
  refuse(422, reason, text, std::move(extra));
}

void Call::exceeds(std::string_view kind, int64_t current, int64_t limit, json::object extra) {
  extra["limit_kind"] = to_json(kind);
  extra["current_value"] = current;
  extra["configured_limit"] = limit;
  extra["outcome"] = "rejected";
  refuse(422, "structural_limit_exceeded",
         absl::StrCat(std::string(kind), " would be ", current, "; the limit is ", limit),
         std::move(extra));
}

void Call::exceeds(const ErrorDetail& refusal, json::object extra) {
  const std::vector<std::string> numbers = absl::StrSplit(refusal.fields.at(2), ' ');
  int64_t current = 0;
  int64_t limit = 0;
  FL_ASSERT(numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &current) &&
                absl::SimpleAtoi(numbers[1], &limit),
            "the engine tells both numbers");
  exceeds(refusal.fields.at(1), current, limit, std::move(extra));
}

void Call::refuse(const absl::Status& status) {
  const std::string message(status.message());
  const auto detail = error_detail(status);
  if (detail.kind == ErrorKind::kNamespaceNotFound) {
    return refuse(404, "namespace_not_found", message);
  }
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return refuse(404, "instance_not_found", message);
    case absl::StatusCode::kInvalidArgument:
      return refuse(422, "validation_failed", message);
    case absl::StatusCode::kResourceExhausted:
      return refuse(429, "resource_exhausted", message);
    case absl::StatusCode::kFailedPrecondition:
      return refuse(409, detail.kind == ErrorKind::kLeaseRefused ? detail.fields[0] : "conflict",
                    message);
    case absl::StatusCode::kUnavailable:
      return refuse(503, "backend_unavailable", message);
    default:
      return refuse(500, "server_error", message);
  }
}

}  // namespace fairlead::durable
