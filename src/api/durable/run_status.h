#pragma once

#include <string_view>

#include "api/durable/json.h"
#include "base/error.h"
#include "model/model.pb.h"

namespace fairlead::durable {

// pending, running, waiting, completed, failed, cancelled or terminated.
std::string_view status_of(const model::RunState& run);
// running, completed or failed.
std::string_view bucket_of(std::string_view status);
json::value closed_reason(const model::RunState& run);

// When time ends the attempt that a worker has, or the whole activity.
json::object deadlines_of(const model::ActivityState& activity);

// Of a run that is closed, from the refusal that says so: why its worker should stop.
void add_stop(const ErrorDetail& detail, json::object* answer);

}  // namespace fairlead::durable
