#include "api/fairlead/task_queue_service.h"

#include "api/temporal/handler.h"

namespace fairlead::api {

void register_task_queue_service(MethodTable& methods, shard::Engine& engine,
                                 const ServiceOptions& options) {
  Registrar registrar(methods, std::make_shared<Service>(engine, options), {kTaskQueueService});
  queues::add_look_handlers(registrar);
  queues::add_change_handlers(registrar);
}

}  // namespace fairlead::api
