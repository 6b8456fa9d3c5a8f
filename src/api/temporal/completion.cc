// How those who asked for it are told of the end of a workflow: the HTTP request with which the
// Nexus protocol completes an operation.

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "api/temporal/codec.h"
#include "base/assert.h"
#include "base/time.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {

namespace {

using temporal::api::common::v1::Callback;
using temporal::api::common::v1::Payload;
using temporal::api::common::v1::Payloads;
using temporal::api::failure::v1::Failure;
using temporal::api::history::v1::History;

// What the protocol calls the three ways in which an operation ends.
constexpr char kSucceeded[] = "succeeded";
constexpr char kFailed[] = "failed";
constexpr char kCanceled[] = "canceled";

std::string json_of(const google::protobuf::Message& message) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json);
  FL_ASSERT(status.ok(), "a message that was read can be written");
  return json;
}

std::string quoted(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  return json_of(value);
}

// A failure in Nexus's words; what those cannot say is in the details, in ours.
std::string nexus_failure(const Failure& failure) {
  Failure details = failure;
  details.clear_message();
  details.clear_stack_trace();
  std::string json = absl::StrCat("{\"message\":", quoted(failure.message()));
  if (!failure.stack_trace().empty()) {
    absl::StrAppend(&json, ",\"stackTrace\":", quoted(failure.stack_trace()));
  }
  absl::StrAppend(&json, ",\"metadata\":{\"type\":\"", Failure::descriptor()->full_name(),
                  "\"},\"details\":", json_of(details));
  if (failure.has_cause()) absl::StrAppend(&json, ",\"cause\":", nexus_failure(failure.cause()));
  return absl::StrCat(json, "}");
}

struct Content {
  std::map<std::string, std::string> headers;
  std::string body;
};

// A payload whose encoding the protocol has a content type for is sent as that, any other as it is.
Content content_of(const Payloads& result) {
  Content content;
  if (result.payloads().empty()) return content;
  const Payload& payload = result.payloads(0);
  const auto& metadata = payload.metadata();
  const auto said = [&](const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? std::string() : found->second;
  };
  const std::string encoding = said("encoding");
  const std::string type = said("messageType");
  const bool is_alone = metadata.size() == 1;
  const bool is_typed = metadata.size() == 2 && !type.empty();
  auto& content_type = content.headers["content-type"];
  content.body = payload.data();
  if (encoding == "json/plain" && is_alone) {
    content_type = "application/json";
  } else if (encoding == "binary/plain" && is_alone) {
    content_type = "application/octet-stream";
  } else if (encoding == "json/protobuf" && is_typed) {
    content_type = absl::StrCat("application/json; format=protobuf; message-type=\"", type, "\"");
  } else if (encoding == "binary/protobuf" && is_typed) {
    content_type = absl::StrCat("application/x-protobuf; message-type=\"", type, "\"");
  } else if (encoding == "binary/null" && is_alone) {
    content.headers.clear();
  } else if (encoding == "unknown/nexus-content") {
    content.headers.clear();
    for (const auto& [name, value] : metadata) {
      if (name != "encoding") content.headers["content-" + absl::AsciiStrToLower(name)] = value;
    }
  } else {
    content_type = "application/x-temporal-payload";
    content.body = payload.SerializeAsString();
  }
  return content;
}

// `plain` are the signs that may stand as they are, beside letters and digits.
std::string escaped(const std::string& text, std::string_view plain) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        plain.find(c) != std::string_view::npos) {
      out.push_back(c);
    } else {
      absl::StrAppendFormat(&out, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string link_of(const history::Ended& ended) {
  const auto in_path = [](const std::string& text) { return escaped(text, "-_.~$&+=:@"); };
  const auto& callback = ended.callback;
  const std::string query =
      callback.attached()
          ? absl::StrCat(
                "eventType=WorkflowExecutionOptionsUpdated&referenceType="
                "RequestIdReference&requestID=",
                escaped(callback.request_id(), "-_.~"))
          : "eventID=1&eventType=WorkflowExecutionStarted&referenceType=EventReference";
  return absl::StrCat("<temporal:///namespaces/", in_path(ended.namespace_name), "/workflows/",
                      in_path(ended.run.workflow_id()), "/", ended.run.run_id(), "/history?", query,
                      ">; type=\"temporal.api.common.v1.Link.WorkflowEvent\"");
}

// As the JSON of protobuf writes times: as many digits as are needed, by threes.
std::string close_time(TimeNs at) {
  std::string text =
      absl::FormatTime("%E4Y-%m-%dT%H:%M:%E9S", absl::FromUnixNanos(at), absl::UTCTimeZone());
  for (const std::string_view zeros : {"000", "000", ".000"}) {
    if (text.ends_with(zeros)) text.resize(text.size() - zeros.size());
  }
  return text + "Z";
}

Failure ended_by_server(const char* message) {
  Failure failure;
  failure.set_message(message);
  return failure;
}

}  // namespace

history::Outgoing TemporalCodec::call_back(const history::Ended& ended) const {
  History history;
  FL_ASSERT(history.ParseFromArray(ended.closing_event.data(),
                                   static_cast<int>(ended.closing_event.size())) &&
                history.events_size() == 1,
            "the door reads what it wrote");
  Callback callback;
  FL_ASSERT(callback.ParseFromString(ended.callback.door()), "the door reads what it wrote");
  const auto& event = history.events(0);
  Content content;
  std::string state = kFailed;
  const auto fail = [&](const Failure& failure) {
    content.headers["content-type"] = "application/json";
    content.body = nexus_failure(failure);
  };
  // Whoever is told may be anybody: why a workflow was terminated is not among what they hear.
  if (event.has_workflow_execution_completed_event_attributes()) {
    state = kSucceeded;
    content = content_of(event.workflow_execution_completed_event_attributes().result());
  } else if (event.has_workflow_execution_failed_event_attributes()) {
    fail(event.workflow_execution_failed_event_attributes().failure());
  } else if (event.has_workflow_execution_canceled_event_attributes()) {
    state = kCanceled;
    auto failure = ended_by_server("operation canceled");
    auto& info = *failure.mutable_canceled_failure_info();
    const auto& canceled = event.workflow_execution_canceled_event_attributes();
    if (canceled.has_details()) *info.mutable_details() = canceled.details();
    fail(failure);
  } else if (event.has_workflow_execution_timed_out_event_attributes()) {
    auto failure = ended_by_server("operation exceeded internal timeout");
    failure.mutable_timeout_failure_info();
    fail(failure);
  } else {
    auto failure = ended_by_server("operation terminated");
    failure.mutable_terminated_failure_info();
    fail(failure);
  }

  auto& headers = content.headers;
  headers["nexus-operation-state"] = state;
  headers["user-agent"] = "fairlead";
  headers["nexus-operation-start-time"] =
      absl::FormatTime("%a, %d %b %E4Y %H:%M:%S GMT", absl::FromUnixNanos(ended.run.start_ns()),
                       absl::UTCTimeZone());
  headers["nexus-operation-close-time"] = close_time(ended.run.close_ns());
  headers["nexus-link"] = link_of(ended);
  // Who asked for it may say otherwise.
  for (const auto& [name, value] : callback.nexus().header()) headers[name] = value;
  return {callback.nexus().url(), {headers.begin(), headers.end()}, std::move(content.body)};
}

}  // namespace fairlead::api
