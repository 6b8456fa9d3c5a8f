#pragma once

#include "api/durable/door.h"
#include "server/http_routes.h"

namespace fairlead::server {

// Everything below /api goes to the Durable Workflow door.
void add_durable_routes(durable::Door* door, HttpRoutes* routes);

}  // namespace fairlead::server
