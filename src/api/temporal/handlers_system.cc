#include "api/temporal/handler.h"
#include "api/temporal/search_attributes.h"
#include "api/temporal/try.h"
#include "temporal/api/operatorservice/v1/request_response.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// What the server says about itself. A capability is claimed once it works and not before: clients
// change how they behave, and how they replay, by these flags.
namespace fairlead::api {

namespace {

namespace workflow = temporal::api::workflowservice::v1;
namespace operations = temporal::api::operatorservice::v1;

absl::Status get_system_info(Service& service, workflow::GetSystemInfoRequest&,
                             const CallPtr& call) {
  workflow::GetSystemInfoResponse response;
  response.set_server_version(service.options.server_version);
  auto& capabilities = *response.mutable_capabilities();
  capabilities.set_signal_and_query_header(true);
  capabilities.set_internal_error_differentiation(true);
  capabilities.set_activity_failure_include_heartbeat(true);
  capabilities.set_encoded_failure_attributes(true);
  capabilities.set_build_id_based_versioning(true);
  capabilities.set_sdk_metadata(true);
  capabilities.set_upsert_memo(true);
  capabilities.set_eager_workflow_start(true);
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

absl::Status get_cluster_info(Service& service, workflow::GetClusterInfoRequest&,
                              const CallPtr& call) {
  workflow::GetClusterInfoResponse response;
  auto& clients = *response.mutable_supported_clients();
  for (const char* name : {"temporal-go", "temporal-java", "temporal-php", "temporal-typescript",
                           "temporal-cli", "temporal-server", "Nexus-go-sdk"}) {
    clients[name] = "<2.0.0";
  }
  clients["temporal-ui"] = "<3.0.0";
  response.set_server_version(service.options.server_version);
  response.set_cluster_id(service.options.cluster_id);
  response.set_cluster_name(service.options.cluster_name);
  response.set_history_shard_count(service.options.shards);
  response.set_persistence_store(service.options.store_name);
  response.set_visibility_store(service.options.store_name);
  response.set_initial_failover_version(1);
  response.set_failover_version_increment(10);
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

absl::Status get_search_attributes(Service&, workflow::GetSearchAttributesRequest&,
                                   const CallPtr& call) {
  workflow::GetSearchAttributesResponse response;
  for (const auto& known : known_attributes()) {
    (*response.mutable_keys())[known.name] = known.type;
  }
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

absl::Status list_search_attributes(Service& service,
                                    operations::ListSearchAttributesRequest& request,
                                    const CallPtr& call) {
  FL_TRY(service.find_namespace(request.namespace_()).status());
  operations::ListSearchAttributesResponse response;
  for (const auto& known : known_attributes()) {
    (*response.mutable_system_attributes())[known.name] = known.type;
  }
  succeed(*call, response.SerializeAsString());
  return absl::OkStatus();
}

}  // namespace

void add_system_handlers(Registrar& registrar) {
  registrar.serve(get_system_info);
  registrar.serve(get_cluster_info);
  registrar.serve(get_search_attributes);
  registrar.serve(list_search_attributes);
}

}  // namespace fairlead::api
