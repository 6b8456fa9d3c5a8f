#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/temporal/stream.h"

namespace fairlead::api {

// Answers one grpc.reflection ServerReflectionRequest with one ServerReflectionResponse. The
// messages of v1 and v1alpha are the same on the wire.
std::string answer_reflection(std::string_view request, const std::vector<std::string>& services);

// Adds ServerReflectionInfo of both versions. `services` are the names to list; those of reflection
// and health are added to them.
void add_reflection(std::vector<std::string> services, StreamTable* streams);

}  // namespace fairlead::api
