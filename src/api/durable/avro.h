#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "api/durable/json.h"

// Durable Workflow's payloads: one Avro schema for every value, in base64 with a fixed header.
//
//   blob = base64( C3 01 · eight bytes of fingerprint · value )
//   value = branch byte · content: null, boolean, long, double, bytes, string, array, map
//
// DO NOT CHANGE: clients and stored events hold these bytes.
namespace fairlead::durable {

// A JSON value as the bytes of one value, without the header.
absl::StatusOr<std::string> to_value(const json::value& value);
absl::StatusOr<std::string> to_blob(const json::value& value);
// Bytes become a base64 text, which is as near as JSON comes.
absl::StatusOr<json::value> from_value(std::string_view bytes);

std::string blob_of_value(std::string_view value_bytes);
// Checks the framing and the whole value, and gives the value's bytes.
absl::StatusOr<std::string> value_of_blob(std::string_view blob);

// A map whose values stay as they are, in the order of their keys.
std::string map_value(const std::map<std::string, std::string>& entries);
absl::StatusOr<std::map<std::string, std::string>> split_map(std::string_view bytes);

// {"codec":"avro","blob":"…"}
std::string envelope_text(std::string_view blob);

}  // namespace fairlead::durable
