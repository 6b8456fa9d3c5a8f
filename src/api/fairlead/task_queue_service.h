#pragma once

#include "api/temporal/service.h"

namespace fairlead::api {

class Registrar;

inline constexpr char kTaskQueueService[] = "fairlead.v1.TaskQueueService";

// Serves every method of fairlead.v1.TaskQueueService. `engine` must outlive every call.
void register_task_queue_service(MethodTable& methods, shard::Engine& engine,
                                 const ServiceOptions& options);

namespace queues {

void add_look_handlers(Registrar& registrar);
void add_change_handlers(Registrar& registrar);

}  // namespace queues
}  // namespace fairlead::api
