// What workers say of themselves, and who asks after them.

#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// Older clients read the field that the API calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fairlead::api {

namespace {

using namespace temporal::api::workflowservice::v1;
using temporal::api::worker::v1::WorkerListInfo;

constexpr int kPageMax = 1000;

absl::Status record_heartbeat(Service& service, RecordWorkerHeartbeatRequest& request,
                              const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY(check_length(request.identity(), "Identity", id_max));
  for (const auto& heartbeat : request.worker_heartbeat()) {
    FL_TRY(check_length(heartbeat.worker_instance_key(), "WorkerInstanceKey", id_max));
  }
  for (const auto& heartbeat : request.worker_heartbeat()) {
    FL_TRY(service.workers.put(number_of(ns), heartbeat, service.engine.now()));
  }
  succeed(*call, "");
  return absl::OkStatus();
}

WorkerListInfo summary_of(const Workers::Heartbeat& worker) {
  WorkerListInfo info;
  info.set_worker_instance_key(worker.worker_instance_key());
  info.set_worker_identity(worker.worker_identity());
  info.set_task_queue(worker.task_queue());
  if (worker.has_deployment_version()) {
    *info.mutable_deployment_version() = worker.deployment_version();
  }
  info.set_sdk_name(worker.sdk_name());
  info.set_sdk_version(worker.sdk_version());
  info.set_status(worker.status());
  if (worker.has_start_time()) *info.mutable_start_time() = worker.start_time();
  info.set_host_name(worker.host_info().host_name());
  info.set_worker_grouping_key(worker.host_info().worker_grouping_key());
  info.set_process_id(worker.host_info().process_id());
  *info.mutable_plugins() = worker.plugins();
  *info.mutable_drivers() = worker.drivers();
  return info;
}

absl::Status list_workers(Service& service, ListWorkersRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY_ASSIGN(const auto filter, Filter::parse(request.query(), Workers::type_of));
  const int page = request.page_size();
  const size_t max = page <= 0 || page > kPageMax ? kPageMax : static_cast<size_t>(page);
  const auto found = service.workers.list(number_of(ns), filter, request.include_system_workers(),
                                          request.next_page_token(), max + 1, service.engine.now());
  ListWorkersResponse response;
  for (size_t i = 0; i < std::min(found.size(), max); ++i) {
    *response.add_workers() = summary_of(found[i]);
    *response.add_workers_info()->mutable_worker_heartbeat() = found[i];
  }
  if (found.size() > max) response.set_next_page_token(found[max - 1].worker_instance_key());
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

absl::Status count_workers(Service& service, CountWorkersRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY_ASSIGN(const auto filter, Filter::parse(request.query(), Workers::type_of));
  CountWorkersResponse response;
  response.set_count(
      static_cast<int64_t>(service.workers
                               .list(number_of(ns), filter, request.include_system_workers(), "",
                                     std::numeric_limits<size_t>::max(), service.engine.now())
                               .size()));
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

absl::Status describe_worker(Service& service, DescribeWorkerRequest& request,
                             const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  if (request.worker_instance_key().empty()) {
    return errors::invalid_argument("WorkerInstanceKey is not set on request.");
  }
  auto found =
      service.workers.find(number_of(ns), request.worker_instance_key(), service.engine.now());
  if (!found.has_value()) return errors::not_found("Worker not found.");
  DescribeWorkerResponse response;
  *response.mutable_worker_info()->mutable_worker_heartbeat() = *std::move(found);
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

}  // namespace

void add_worker_handlers(Registrar& registrar) {
  registrar.serve(record_heartbeat);
  registrar.serve(list_workers);
  registrar.serve(count_workers);
  registrar.serve(describe_worker);
}

}  // namespace fairlead::api
