// Routes of the API that are known and not built. A client hears that, and not that there is
// nothing.

#include "api/durable/desk.h"

namespace fairlead::durable {

void Door::Impl::add_not_built(std::vector<Route>* routes) {
  struct NotBuilt {
    std::string_view method;
    std::string_view path;
    std::string_view summary;
  };
  static constexpr NotBuilt kNotBuilt[] = {
      {"GET", "workflows/{workflow_id}/runs/{run_id}/streams", "List the streams of a run"},
      {"GET", "workflows/{workflow_id}/runs/{run_id}/streams/{stream_name}", "Describe a stream"},
      {"GET", "workflows/{workflow_id}/runs/{run_id}/streams/{stream_name}/items", "Read a stream"},
      {"POST", "workflows/{workflow_id}/runs/{run_id}/streams/{stream_name}/items",
       "Append to a stream"},
      {"POST", "workflows/{workflow_id}/runs/{run_id}/streams/{stream_name}/close",
       "Close a stream"},
      {"PUT", "namespaces/{namespace}/external-storage", "Set where large payloads go"},
      {"POST", "storage/test", "Try the storage of large payloads"},
      {"POST", "external-payloads/v1", "Upload a large payload"},
      {"GET", "external-payloads/v1/{reference_id}", "Fetch a large payload"},
      {"POST", "service-endpoints/{endpoint}/services/{service}/operations/{operation}/execute",
       "Call a service"},
      {"POST", "worker/registrations/{worker_id}/deregister", "Leave, with a token"},
      {"POST", "worker/workflow-tasks/{task_id}/cancellation-scopes/{phase}",
       "Open or end a cancellation scope"},
      {"POST", "worker/workflow-tasks/{task_id}/local-activities/{operation}",
       "Prepare a local activity"},
      {"POST", "worker/workflow-tasks/{task_id}/local-activities/{attempt_id}/{operation}",
       "Go on with a local activity"},
  };
  for (const auto& each : kNotBuilt) {
    const bool is_worker = each.path.starts_with("worker/");
    const bool has_body = each.method != "GET" && each.method != "DELETE";
    routes->push_back({each.method,
                       each.path,
                       is_worker ? Plane::kWorker : Plane::kControl,
                       is_worker ? "w" : "oa",
                       &Impl::not_built,
                       Operation{},
                       {each.summary, has_body ? "Anything" : "", "501"}});
  }
}

}  // namespace fairlead::durable
