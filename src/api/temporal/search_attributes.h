#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "temporal/api/common/v1/message.pb.h"
#include "temporal/api/enums/v1/common.pb.h"

// Search attributes that exist in every namespace.
namespace fairlead::api {

struct KnownAttribute {
  const char* name;
  temporal::api::enums::v1::IndexedValueType type;
  bool is_settable;  // by users; the others describe the run and are kept by the server
};

absl::Span<const KnownAttribute> known_attributes();

// Checks names, values and sizes, and writes the type into each payload, as clients expect to read
// it.
absl::Status check_search_attributes(temporal::api::common::v1::SearchAttributes& attributes,
                                     const std::string& namespace_name);

// Whether a value asks for its key to be removed: null, or nothing at all.
bool removes_key(const temporal::api::common::v1::Payload& payload);

}  // namespace fairlead::api
