#pragma once

#include "model/model.pb.h"
#include "temporal/api/taskqueue/v1/message.pb.h"

// What operators ask of a task queue and tell it.
namespace fairlead::api {

class Registrar;

void add_queue_handlers(Registrar& registrar);
void add_queue_config_handlers(Registrar& registrar);

// Whether a namespace lets its operators give the tasks without a fairness key another weight, as
// the key "". Its data say so: fairlead.allow_override_of_unkeyed=on.
bool allows_override_of_unkeyed(const model::NamespaceRow& ns);

// A queue's rules as far as the API knows them.
void write_queue_config(const model::QueueRules& rules,
                        temporal::api::taskqueue::v1::TaskQueueConfig& config);

}  // namespace fairlead::api
