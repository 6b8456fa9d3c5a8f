#pragma once

#include <string>

#include "api/durable/json.h"
#include "model/model.pb.h"

// How a request to stop looks to clients of the API.
namespace fairlead::durable {

// The id of an event, as events refer to each other.
std::string event_name(int64_t id);

// The request with everything that is handed down: what workflow code can read of it.
json::object cancellation_context(const model::CancellationContext& context);
// What a worker is told with its task: that there is a request.
json::object cancellation_request(const model::Cancellation& cancellation);
// What the worker of an attempt that was taken from it has to know to acknowledge that.
json::object stop_record(const model::StoppedActivity& stopped,
                         const model::CancellationContext& context);

// Members of the events.
void put_cancellation(const model::Event& event, Members* out);
void put_cleanup(const model::Event& closing, Members* out);

}  // namespace fairlead::durable
