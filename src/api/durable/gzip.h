#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace fairlead::durable {

std::string gzipped(std::string_view text);
// At most `bytes_max` of it: RESOURCE_EXHAUSTED if there are more, which a few bytes can promise.
absl::StatusOr<std::string> gunzipped(std::string_view bytes, size_t bytes_max);

// Whether an Accept-Encoding header takes gzip: "gzip, deflate;q=0.5", "*", but not "gzip;q=0".
bool accepts_gzip(std::string_view accept_encoding);

}  // namespace fairlead::durable
