#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

// JSON as this door speaks it. What the engine keeps for the door are members of an object without
// its braces: they are spliced into events and answers as they are, and never parsed for that.
namespace fairlead::durable {

namespace json = boost::json;

inline json::string_view to_json(std::string_view text) { return {text.data(), text.size()}; }
inline std::string to_std(json::string_view text) { return {text.data(), text.size()}; }

// "2026-11-16T12:00:00.000000Z", and null for 0.
std::string format_time(TimeNs time);
json::value time_or_null(TimeNs time);
json::value text_or_null(const std::string& text);

// The members of an object, without braces.
std::string members_of(const json::object& object);

// Writes members, in order.
class Members {
 public:
  Members& raw(std::string_view members);
  Members& put(std::string_view name, const json::value& value) {
    return put_raw(name, json::serialize(value));
  }
  Members& put(std::string_view name, const std::string& value) {
    return put(name, json::value(to_json(value)));
  }
  Members& put(std::string_view name, json::string_view value) {
    return put(name, json::value(value));
  }
  Members& put(std::string_view name, const char* value) { return put(name, json::value(value)); }
  Members& put_raw(std::string_view name, std::string_view value);
  template <typename Value>
  Members& put_if(bool condition, std::string_view name, const Value& value) {
    return condition ? put(name, value) : *this;
  }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// A text that is not one JSON value is none.
std::optional<json::value> parse_json(std::string_view text, std::string* error = nullptr);
// The object whose members these are; empty if they are none.
json::object object_of(std::string_view members);

// Of an object: the string under a name, or empty; the integer, also of a string of digits.
std::string text_of(const json::object& object, std::string_view name);
std::optional<int64_t> integer_of(const json::object& object, std::string_view name);
bool is_true(const json::object& object, std::string_view name);
const json::value* member(const json::object& object,
                          std::string_view name);  // null: none, or null
bool has_text(const json::array& list, std::string_view text);
json::object object_member(const json::object& object, std::string_view name);  // empty: none

}  // namespace fairlead::durable
