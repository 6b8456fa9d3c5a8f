#pragma once

#include <string_view>

#include "api/durable/json.h"
#include "model/model.pb.h"

namespace fairlead::durable {

// pending, running, waiting, completed, failed, cancelled or terminated.
std::string_view status_of(const model::RunState& run);
// running, completed or failed.
std::string_view bucket_of(std::string_view status);
json::value closed_reason(const model::RunState& run);

}  // namespace fairlead::durable
