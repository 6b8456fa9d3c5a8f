#include "absl/strings/str_cat.h"
#include "api/temporal/convert.h"
#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "temporal/api/enums/v1/namespace.pb.h"
#include "temporal/api/operatorservice/v1/request_response.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using model::NamespaceRow;
using namespace temporal::api::workflowservice::v1;
namespace enums = temporal::api::enums::v1;
namespace operations = temporal::api::operatorservice::v1;

constexpr int kPageMax = 1'000;
constexpr int kPageDefault = 100;
constexpr const char* kReservedName = "temporal-system";

// Describe, update and list show a namespace in the same parts.
template <typename Response>
void describe(const NamespaceRow& row, const ServiceOptions& options, Response& response) {
  auto& info = *response.mutable_namespace_info();
  info.set_name(row.name());
  info.set_state(static_cast<enums::NamespaceState>(row.state()));
  info.set_description(row.description());
  info.set_owner_email(row.owner_email());
  for (const auto& [key, value] : row.data()) (*info.mutable_data())[key] = value;
  info.set_id(row.id());
  // ShutdownWorker ends the polls of its worker, so workers may leave that to us.
  info.mutable_capabilities()->set_worker_poll_complete_on_shutdown(true);
  // Tasks carry advice on the number of polls, also the advice to have fewer.
  info.mutable_capabilities()->set_poller_autoscaling(true);
  info.mutable_capabilities()->set_eager_workflow_start(true);
  info.mutable_capabilities()->set_sync_update(true);
  info.mutable_capabilities()->set_async_update(true);
  info.mutable_capabilities()->set_worker_heartbeats(true);
  info.mutable_capabilities()->set_standalone_activities(true);
  info.mutable_capabilities()->set_standalone_activity_start_delay(true);
  info.mutable_capabilities()->set_standalone_activity_operator_commands(true);
  info.mutable_limits()->set_blob_size_limit_error(options.limits.blob_bytes);
  info.mutable_limits()->set_memo_size_limit_error(options.memo_bytes);
  info.mutable_limits()->set_workflow_task_completion_size_limit_error(options.completion_bytes);
  auto& config = *response.mutable_config();
  config.mutable_workflow_execution_retention_ttl()->set_seconds(row.retention_ns() / kSecond);
  config.mutable_workflow_execution_retention_ttl()->set_nanos(
      static_cast<int32_t>(row.retention_ns() % kSecond));
  config.mutable_bad_binaries();
  config.set_history_archival_state(enums::ARCHIVAL_STATE_DISABLED);
  config.set_visibility_archival_state(enums::ARCHIVAL_STATE_DISABLED);
  auto& replication = *response.mutable_replication_config();
  replication.set_active_cluster_name(options.cluster_name);
  replication.add_clusters()->set_cluster_name(options.cluster_name);
}

absl::StatusOr<DurationNs> check_retention(const google::protobuf::Duration& asked,
                                           DurationNs retention_min) {
  const auto retention = read_duration(asked);
  if (!retention.ok() || *retention < retention_min) {
    return invalid_argument("A valid retention period is not set on request.");
  }
  return retention;
}

absl::Status check_archival(enums::ArchivalState history, enums::ArchivalState visibility) {
  if (history != enums::ARCHIVAL_STATE_ENABLED && visibility != enums::ARCHIVAL_STATE_ENABLED) {
    return absl::OkStatus();
  }
  return errors::unimplemented("archival is not implemented by this server");
}

absl::Status check_cluster(const std::string& name, const ServiceOptions& options) {
  if (name.empty() || name == options.cluster_name) return absl::OkStatus();
  return invalid_argument(absl::StrCat("cluster ", name, " is unknown; this server is cluster ",
                                       options.cluster_name, " and has no others"));
}

absl::Status register_namespace(Service& service, RegisterNamespaceRequest& request,
                                const CallPtr& call) {
  const auto& options = service.options;
  if (request.namespace_().empty()) return invalid_argument("Namespace is empty.");
  FL_TRY(check_length(request.namespace_(), "Namespace", options.limits.id_bytes));
  if (request.namespace_() == kReservedName) {
    return invalid_argument(absl::StrCat("Namespace ", kReservedName, " is reserved."));
  }
  FL_TRY_ASSIGN(
      const DurationNs retention,
      check_retention(request.workflow_execution_retention_period(), options.retention_min));
  FL_TRY(check_archival(request.history_archival_state(), request.visibility_archival_state()));
  if (request.is_global_namespace()) {
    return invalid_argument("Cannot register global namespace: this server has a single cluster.");
  }
  FL_TRY(check_cluster(request.active_cluster_name(), options));
  for (const auto& cluster : request.clusters()) {
    FL_TRY(check_cluster(cluster.cluster_name(), options));
  }

  NamespaceRow row;
  row.set_name(request.namespace_());
  row.set_description(request.description());
  row.set_owner_email(request.owner_email());
  for (const auto& [key, value] : request.data()) (*row.mutable_data())[key] = value;
  row.set_retention_ns(retention);
  service.engine.namespaces().add(
      std::move(row),
      answer<shard::NamespacePtr>(call, [](const shard::NamespacePtr&) { return std::string(); }));
  return absl::OkStatus();
}

absl::Status describe_namespace(Service& service, DescribeNamespaceRequest& request,
                                const CallPtr& call) {
  const bool by_name = !request.namespace_().empty();
  if (by_name && !request.id().empty()) {
    return invalid_argument("Both Id and Name of the namespace are set on request.");
  }
  FL_TRY_ASSIGN(const auto ns, by_name || request.id().empty()
                                   ? service.find_namespace(request.namespace_())
                                   : service.engine.namespaces().find_by_id(request.id()));
  DescribeNamespaceResponse response;
  describe(*ns, service.options, response);
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

// Pages follow the names; a token is the last name shown, so that a page stays right when
// namespaces come and go between calls.
absl::Status list_namespaces(Service& service, ListNamespacesRequest& request,
                             const CallPtr& call) {
  int page = request.page_size();
  if (page <= 0) page = kPageDefault;
  page = std::min(page, kPageMax);
  ListNamespacesResponse response;
  for (const auto& ns : service.engine.namespaces().list()) {
    if (!request.next_page_token().empty() && ns->name() <= request.next_page_token()) continue;
    const bool is_deleted = ns->state() == NamespaceRow::DELETED;
    if (is_deleted && !request.namespace_filter().include_deleted()) continue;
    if (response.namespaces_size() == page) {
      response.set_next_page_token(response.namespaces(page - 1).namespace_info().name());
      break;
    }
    describe(*ns, service.options, *response.add_namespaces());
  }
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

absl::Status check_update(const Service& service, const UpdateNamespaceRequest& request) {
  const auto& config = request.config();
  FL_TRY(check_archival(config.history_archival_state(), config.visibility_archival_state()));
  if (!config.custom_search_attribute_aliases().empty()) {
    return errors::unimplemented("search attribute aliases are not implemented by this server");
  }
  if (!config.bad_binaries().binaries().empty() || !request.delete_bad_binary().empty()) {
    return errors::unimplemented("bad binaries are not implemented by this server");
  }
  if (request.promote_namespace()) {
    return invalid_argument("Cannot promote a namespace: this server has a single cluster.");
  }
  return check_cluster(request.replication_config().active_cluster_name(), service.options);
}

absl::Status change_state(NamespaceRow& row, enums::NamespaceState asked) {
  const auto state = static_cast<int>(asked);
  if (state == enums::NAMESPACE_STATE_UNSPECIFIED || state == row.state()) return absl::OkStatus();
  if (row.state() != NamespaceRow::REGISTERED || state != enums::NAMESPACE_STATE_DEPRECATED) {
    return invalid_argument(
        absl::StrCat("Namespace ", row.name(), " cannot change its state in this way."));
  }
  row.set_state(NamespaceRow::DEPRECATED);
  return absl::OkStatus();
}

absl::Status update_namespace(Service& service, UpdateNamespaceRequest& request,
                              const CallPtr& call) {
  FL_TRY(service.find_namespace(request.namespace_()).status());
  FL_TRY(check_update(service, request));
  DurationNs retention = 0;
  if (request.config().has_workflow_execution_retention_ttl()) {
    FL_TRY_ASSIGN(retention, check_retention(request.config().workflow_execution_retention_ttl(),
                                             service.options.retention_min));
  }
  // What is empty stays as it is; there is no way to say "make it empty" in this request.
  auto change = [retention, info = temporal::api::namespace_::v1::UpdateNamespaceInfo(
                                request.update_info())](NamespaceRow& row) -> absl::Status {
    FL_TRY(change_state(row, info.state()));
    if (!info.description().empty()) row.set_description(info.description());
    if (!info.owner_email().empty()) row.set_owner_email(info.owner_email());
    for (const auto& [key, value] : info.data()) (*row.mutable_data())[key] = value;
    if (retention != 0) row.set_retention_ns(retention);
    return absl::OkStatus();
  };
  service.engine.namespaces().update(
      request.namespace_(), std::move(change),
      answer<shard::NamespacePtr>(call, [options = service.options](const auto& ns) {
        UpdateNamespaceResponse response;
        describe(*ns, options, response);
        return response.SerializeAsString();
      }));
  return absl::OkStatus();
}

absl::Status deprecate_namespace(Service& service, DeprecateNamespaceRequest& request,
                                 const CallPtr& call) {
  FL_TRY(service.find_namespace(request.namespace_()).status());
  service.engine.namespaces().update(
      request.namespace_(),
      [](NamespaceRow& row) { return change_state(row, enums::NAMESPACE_STATE_DEPRECATED); },
      answer<shard::NamespacePtr>(call, [](const auto&) { return std::string(); }));
  return absl::OkStatus();
}

// What is known of a deleted namespace is kept, so a wish to keep it for a while is granted anyway.
absl::Status delete_namespace(Service& service, operations::DeleteNamespaceRequest& request,
                              const CallPtr& call) {
  const bool by_name = !request.namespace_().empty();
  if (by_name && !request.namespace_id().empty()) {
    return invalid_argument("Only one of namespace name or Id should be set on request.");
  }
  if (request.namespace_() == kReservedName) {
    return errors::failed_precondition("unable to delete system namespace");
  }
  FL_TRY_ASSIGN(const auto ns,
                by_name || request.namespace_id().empty()
                    ? service.find_namespace(request.namespace_())
                    : service.engine.namespaces().find_by_id(request.namespace_id()));
  service.engine.delete_namespace(ns->name(),
                                  answer<shard::NamespacePtr>(call, [](const auto& deleted) {
                                    operations::DeleteNamespaceResponse response;
                                    response.set_deleted_namespace(deleted->name());
                                    return response.SerializeAsString();
                                  }));
  return absl::OkStatus();
}

}  // namespace

void add_namespace_handlers(Registrar& registrar) {
  registrar.serve(register_namespace);
  registrar.serve(describe_namespace);
  registrar.serve(list_namespaces);
  registrar.serve(update_namespace);
  registrar.serve(deprecate_namespace);
  registrar.serve(delete_namespace);
}

}  // namespace fairlead::api
