#pragma once

#include <string>

#include "api/durable/json.h"

namespace fairlead::durable {

// A value in the one form that checksums of exported histories are made over, which the API calls
// "json-recursive-ksort-v1": members sorted, no spaces, all but ASCII escaped, and numbers with a
// fraction as PHP writes them.
std::string canonical_json(const json::value& value);

}  // namespace fairlead::durable
