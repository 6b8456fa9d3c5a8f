#include "api/durable/payloads.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/durable/avro.h"

namespace fairlead::durable {

absl::StatusOr<std::string> payload_text(const json::value* given, bool takes_json) {
  if (given == nullptr) return "";
  if (given->is_array() && takes_json) {
    const auto blob = to_blob(*given);
    if (!blob.ok()) return blob.status();
    return envelope_text(*blob);
  }
  if (!given->is_object()) {
    return absl::InvalidArgumentError(takes_json ? "wants a list or a payload envelope"
                                                 : "wants a payload envelope");
  }
  const auto& envelope = given->as_object();
  const std::string codec = text_of(envelope, "codec");
  const std::string blob = text_of(envelope, "blob");
  if (blob.empty() || codec.empty()) {
    return absl::InvalidArgumentError("an envelope has a codec and a blob");
  }
  if (codec != "avro") {
    return absl::InvalidArgumentError(
        absl::StrCat("unsupported_payload_codec: ", codec, "; the only one is avro"));
  }
  if (const auto value = value_of_blob(blob); !value.ok()) return value.status();
  return envelope_text(blob);
}

absl::StatusOr<std::string> result_text(const json::value* given) {
  const bool is_envelope =
      given == nullptr || (given->is_object() && (given->as_object().contains("codec") ||
                                                  given->as_object().contains("blob")));
  if (is_envelope) return payload_text(given, false);
  const auto blob = to_blob(*given);
  if (!blob.ok()) return blob.status();
  return envelope_text(*blob);
}

std::string failure_members(const json::object& failure, std::string_view category) {
  const auto either = [&](const char* first, const char* second) {
    std::string text = text_of(failure, first);
    return text.empty() ? text_of(failure, second) : text;
  };
  const std::string type = either("type", "exception_type");
  const std::string exception_class = either("class", "exception_class");
  const std::string message = text_of(failure, "message");
  json::object exception;
  if (const auto* given = member(failure, "exception"); given != nullptr && given->is_object()) {
    exception = given->as_object();
  } else {
    exception["type"] = type;
    exception["class"] = exception_class.empty() ? type : exception_class;
    exception["message"] = message;
    exception["non_retryable"] = is_true(failure, "non_retryable");
    for (const char* name : {"code", "details", "stack_trace"}) {
      if (const auto* value = member(failure, name)) exception[name] = *value;
    }
  }
  Members out;
  out.put("failure_category", to_json(category));
  out.put("message", message);
  out.put("exception_type", type);
  out.put("exception_class", exception_class.empty() ? type : exception_class);
  out.put("non_retryable", is_true(failure, "non_retryable"));
  if (const auto* code = member(failure, "code")) out.put("code", *code);
  out.put("exception", exception);
  return out.take();
}

}  // namespace fairlead::durable
