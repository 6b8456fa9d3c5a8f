#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fairlead::admission {

// A value of a JSON text that remembers where it stood, so that whoever finds it wrong can say so.
struct JsonValue {
  enum class Kind { kNull, kBoolean, kNumber, kString, kArray, kObject };
  struct Member;

  Kind kind = Kind::kNull;
  size_t at = 0;  // a byte of the text
  double number = 0;
  std::string text;
  std::vector<JsonValue> elements;
  std::vector<Member> members;  // in the order of the text; no name is there twice
};

struct JsonValue::Member {
  std::string name;
  size_t at = 0;
  JsonValue value;
};

// Reads the whole text as one value. An error is InvalidArgument and begins with the place:
// "3:14: …".
absl::StatusOr<JsonValue> read_json(std::string_view text);

// "line:column" of a byte; both count from one.
std::string place_in(std::string_view text, size_t at);

}  // namespace fairlead::admission
