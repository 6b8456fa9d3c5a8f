#include "api/durable/json.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace fairlead::durable {

std::string format_time(TimeNs time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixNanos(time), absl::UTCTimeZone());
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value() : json::value(text);
}

json::value time_or_null(TimeNs time) {
  if (time == 0) return nullptr;
  return json::value(format_time(time));
}

std::string members_of(const json::object& object) {
  std::string text = json::serialize(object);
  return text.substr(1, text.size() - 2);
}

Members& Members::raw(std::string_view members) {
  if (members.empty()) return *this;
  if (!text_.empty()) text_.push_back(',');
  text_.append(members);
  return *this;
}

Members& Members::put_raw(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_.push_back(',');
  text_.push_back('"');
  text_.append(name);
  text_.append("\":");
  text_.append(value);
  return *this;
}

namespace {

// The parser takes 1e400 for infinity, which cannot be written again.
bool is_writable(const json::value& value) {
  if (value.is_double()) return std::isfinite(value.as_double());
  if (value.is_array()) {
    return std::all_of(value.as_array().begin(), value.as_array().end(), is_writable);
  }
  if (!value.is_object()) return true;
  return std::all_of(value.as_object().begin(), value.as_object().end(),
                     [](const auto& entry) { return is_writable(entry.value()); });
}

}  // namespace

std::optional<json::value> parse_json(std::string_view text, std::string* error) {
  json::error_code failed;
  json::parse_options options;
  options.max_depth = 64;
  json::value value = json::parse(to_json(text), failed, {}, options);
  const bool is_fine = !failed && is_writable(value);
  if (is_fine) return value;
  if (error != nullptr)
    *error = failed ? failed.message() : "a number is beyond what a double holds";
  return std::nullopt;
}

json::object object_of(std::string_view members) {
  std::string text = "{";
  text.append(members);
  text.push_back('}');
  auto value = parse_json(text);
  return value.has_value() && value->is_object() ? std::move(value->as_object()) : json::object();
}

const json::value* member(const json::object& object, std::string_view name) {
  const auto* found = object.if_contains(to_json(name));
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string text_of(const json::object& object, std::string_view name) {
  const auto* found = member(object, name);
  return found != nullptr && found->is_string() ? to_std(found->as_string()) : "";
}

std::optional<int64_t> integer_of(const json::object& object, std::string_view name) {
  const auto* found = member(object, name);
  if (found == nullptr) return std::nullopt;
  if (found->is_int64()) return found->as_int64();
  int64_t parsed = 0;
  if (found->is_string() && absl::SimpleAtoi(to_std(found->as_string()), &parsed)) return parsed;
  return std::nullopt;
}

bool is_true(const json::object& object, std::string_view name) {
  const auto* found = member(object, name);
  return found != nullptr && found->is_bool() && found->as_bool();
}

bool has_text(const json::array& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(), [&](const json::value& each) {
    return each.is_string() && each.as_string() == to_json(text);
  });
}

json::object object_member(const json::object& object, std::string_view name) {
  const auto* found = member(object, name);
  return found != nullptr && found->is_object() ? found->as_object() : json::object();
}

}  // namespace fairlead::durable
