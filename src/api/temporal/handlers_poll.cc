#include <cmath>

#include "api/temporal/convert.h"
#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// Clients in the field still send what the API has since deprecated.
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

// Long polls: parked in the engine until there is a task, the time is up, or the client is gone.
namespace fairlead::api {

namespace {

using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;

// A worker of a versioned deployment must not be given tasks as if it had none.
template <typename Request>
absl::Status check_unversioned(const Request& request) {
  if (request.deployment_options().worker_versioning_mode() != WORKER_VERSIONING_MODE_VERSIONED &&
      !request.worker_version_capabilities().use_versioning()) {
    return absl::OkStatus();
  }
  return errors::unimplemented("worker versioning is not implemented by this server");
}

template <typename Request>
absl::StatusOr<shard::PollRequest> read_poll(Service& service, const Request& request,
                                             const shard::NamespacePtr& ns, model::TaskKind kind,
                                             TimeNs deadline) {
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY(check_task_queue(request.has_task_queue() ? &request.task_queue() : nullptr, id_max));
  FL_TRY(check_length(request.identity(), "Identity", id_max));
  FL_TRY(check_length(request.worker_instance_key(), "WorkerInstanceKey", id_max));
  FL_TRY(check_length(request.worker_version_capabilities().build_id(), "BuildId", id_max));
  FL_TRY(check_length(request.deployment_options().build_id(), "BuildId", id_max));
  FL_TRY(check_length(request.deployment_options().deployment_name(), "DeploymentName", id_max));
  FL_TRY(check_unversioned(request));
  shard::PollRequest poll;
  FL_TRY_ASSIGN(poll.hold_until,
                service.hold.until(service.engine.now(), deadline, service.polls.chance()));
  poll.ns = number_of(ns);
  poll.kind = kind;
  poll.queue.set_name(request.task_queue().name());
  if (kind == model::WORKFLOW_TASK && request.task_queue().kind() == TASK_QUEUE_KIND_STICKY) {
    poll.queue.set_sticky(true);
    poll.queue.set_normal_name(request.task_queue().normal_name());
  }
  poll.identity = request.identity();
  poll.worker_instance_key = request.worker_instance_key();
  if (request.has_worker_version_capabilities() || request.has_deployment_options()) {
    temporal::api::taskqueue::v1::PollerInfo about;
    if (request.has_worker_version_capabilities()) {
      *about.mutable_worker_version_capabilities() = request.worker_version_capabilities();
    }
    if (request.has_deployment_options()) {
      *about.mutable_deployment_options() = request.deployment_options();
    }
    poll.about = about.SerializeAsString();
  }
  return poll;
}

// The limit that a worker asks for its whole queue, if it asks for one.
absl::StatusOr<std::optional<double>> read_max_tasks_per_second(
    const temporal::api::taskqueue::v1::TaskQueueMetadata& metadata) {
  if (!metadata.has_max_tasks_per_second()) return std::nullopt;
  const double rate = metadata.max_tasks_per_second().value();
  // Written as "not at least zero" so that NaN is refused too.
  if (!(rate >= 0)) {
    return errors::invalid_argument("max_tasks_per_second must be non-negative");
  }
  return std::abs(rate);  // minus zero is a zero, too
}

// A poll whose answer finds nobody has taken a task away from everybody else: it goes back.
absl::Status poll_workflow_task(Service& service, PollWorkflowTaskQueueRequest& request,
                                const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY_ASSIGN(auto poll, read_poll(service, request, ns, model::WORKFLOW_TASK, call->deadline()));
  FL_TRY_ASSIGN(auto slot, service.polls.park(poll.ns, poll.kind));
  auto& engine = service.engine;
  auto reply = [&engine, call, ns, slot = std::optional(std::move(slot))](
                   absl::StatusOr<shard::WorkflowTask> task) mutable {
    slot.reset();
    if (!task.ok()) return fail(*call, task.status());
    if (task->token.workflow_id.empty()) return succeed(*call, {});
    Delivered delivered;
    if (task->query.has_value()) {
      delivered = [&engine, id = task->query->id](bool is_delivered) mutable {
        if (!is_delivered) engine.return_query(std::move(id));
      };
    } else {
      delivered = [&engine, token = task->token](bool is_delivered) mutable {
        if (!is_delivered) engine.return_workflow_task(std::move(token));
      };
    }
    call->reply(RpcStatus{}, encode_poll_workflow_task(*task, ns->id()), std::move(delivered));
  };
  const auto id = engine.poll_workflow_task(std::move(poll), std::move(reply));
  call->on_cancel([&engine, id] { engine.cancel_poll(id); });
  return absl::OkStatus();
}

absl::Status poll_activity_task(Service& service, PollActivityTaskQueueRequest& request,
                                const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY_ASSIGN(auto poll, read_poll(service, request, ns, model::ACTIVITY_TASK, call->deadline()));
  FL_TRY_ASSIGN(poll.max_tasks_per_second,
                read_max_tasks_per_second(request.task_queue_metadata()));
  FL_TRY_ASSIGN(auto slot, service.polls.park(poll.ns, poll.kind));
  auto& engine = service.engine;
  auto reply = [&engine, call, ns, slot = std::optional(std::move(slot))](
                   absl::StatusOr<shard::ActivityTask> task) mutable {
    slot.reset();
    if (!task.ok()) return fail(*call, task.status());
    if (task->token.workflow_id.empty()) return succeed(*call, {});
    call->reply(RpcStatus{}, encode_poll_activity_task(*task, ns->name()),
                [&engine, token = task->token](bool is_delivered) mutable {
                  if (!is_delivered) engine.return_activity_task(std::move(token));
                });
  };
  const auto id = engine.poll_activity_task(std::move(poll), std::move(reply));
  call->on_cancel([&engine, id] { engine.cancel_poll(id); });
  return absl::OkStatus();
}

absl::Status shutdown_worker(Service& service, ShutdownWorkerRequest& request,
                             const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY(check_length(request.sticky_task_queue(), "StickyTaskQueue", id_max));
  FL_TRY(check_length(request.task_queue(), "TaskQueue", id_max));
  FL_TRY(check_length(request.worker_instance_key(), "WorkerInstanceKey", id_max));
  FL_TRY(check_length(request.identity(), "Identity", id_max));
  if (request.has_worker_heartbeat() && !request.worker_heartbeat().worker_instance_key().empty()) {
    FL_TRY(service.workers.put(number_of(ns), request.worker_heartbeat(), service.engine.now()));
  }
  service.engine.shutdown_worker({.ns = number_of(ns),
                                  .sticky_queue = request.sticky_task_queue(),
                                  .task_queue = request.task_queue(),
                                  .worker_instance_key = request.worker_instance_key(),
                                  .identity = request.identity()},
                                 answer_done(call));
  return absl::OkStatus();
}

}  // namespace

void add_poll_handlers(Registrar& registrar) {
  registrar.serve(poll_workflow_task);
  registrar.serve(poll_activity_task);
  registrar.serve(shutdown_worker);
}

}  // namespace fairlead::api
