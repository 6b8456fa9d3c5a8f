#include "absl/strings/str_cat.h"
#include "api/temporal/changes.h"
#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// Clients in the field still send what the API has since deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// What a client does to a run: signal, cancel, terminate, reset, look, delete.
namespace fairlead::api {

namespace {

using errors::invalid_argument;
using google::protobuf::Arena;
using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;
namespace history_api = temporal::api::history::v1;

using Links = google::protobuf::RepeatedPtrField<temporal::api::common::v1::Link>;

// The namespace of a request about a run, once the parts that all such requests share are right.
template <typename Request>
absl::StatusOr<shard::NamespacePtr> check_run_request(const Service& service,
                                                      const Request& request) {
  FL_TRY_ASSIGN(auto ns, service.find_namespace(request.namespace_()));
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY(check_execution(request.has_workflow_execution() ? &request.workflow_execution() : nullptr,
                         id_max));
  FL_TRY(check_length(request.identity(), "Identity", id_max));
  FL_TRY(check_links(request.links()));
  return ns;
}

// Takes the links away from the request they came with.
std::string links_envelope(Links& links, Arena* arena) {
  if (links.empty()) return {};
  auto& event = *Arena::CreateMessage<history_api::HistoryEvent>(arena);
  event.mutable_links()->Swap(&links);
  return event.SerializeAsString();
}

std::string encode_signaled(const std::string& namespace_name, const std::string& workflow_id,
                            const std::string& run_id, const std::string& request_id) {
  SignalWorkflowExecutionResponse response;
  if (!request_id.empty()) {
    auto& link = *response.mutable_link()->mutable_workflow_event();
    link.set_namespace_(namespace_name);
    link.set_workflow_id(workflow_id);
    link.set_run_id(run_id);
    link.mutable_request_id_ref()->set_request_id(request_id);
    link.mutable_request_id_ref()->set_event_type(
        temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
  }
  return response.SerializeAsString();
}

// A signal that a client sends, or has follow a reset; the run is left open. Takes away what it
// came with.
template <typename Asked>
absl::StatusOr<shard::SignalRequest> read_signal(const history::Limits& limits, Asked& asked,
                                                 const std::string& identity) {
  if (asked.signal_name().empty()) return invalid_argument("SignalName is not set on request.");
  FL_TRY(check_length(asked.signal_name(), "SignalName", limits.id_bytes));
  FL_TRY(check_links(asked.links()));
  FL_TRY(check_blob(static_cast<int64_t>(asked.input().ByteSizeLong()), limits.blob_bytes));
  shard::SignalRequest signal;
  signal.envelope = links_envelope(*asked.mutable_links(), asked.GetArena());
  auto& door = *Arena::CreateMessage<history_api::WorkflowExecutionSignaledEventAttributes>(
      asked.GetArena());
  door.set_signal_name(asked.signal_name());
  door.unsafe_arena_set_allocated_input(asked.unsafe_arena_release_input());
  door.set_identity(identity);
  door.unsafe_arena_set_allocated_header(asked.unsafe_arena_release_header());
  if constexpr (requires { asked.request_id(); }) {
    FL_TRY(check_length(asked.request_id(), "RequestId", limits.id_bytes));
    signal.request_id = asked.request_id();
    door.set_request_id(asked.request_id());
  }
  signal.door = door.SerializeAsString();
  return signal;
}

absl::Status signal_workflow(Service& service, SignalWorkflowExecutionRequest& request,
                             const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, check_run_request(service, request));
  FL_TRY_ASSIGN(auto signal, read_signal(service.options.limits, request, request.identity()));
  signal.run = run_ref(ns, request.workflow_execution());
  auto encode = [ns, workflow_id = signal.run.workflow_id,
                 request_id = signal.request_id](const shard::Signaled& signaled) {
    return encode_signaled(ns->name(), workflow_id, signaled.run_id, request_id);
  };
  service.engine.signal_workflow(std::move(signal),
                                 answer<shard::Signaled>(call, std::move(encode)));
  return absl::OkStatus();
}

absl::Status request_cancel(Service& service, RequestCancelWorkflowExecutionRequest& request,
                            const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, check_run_request(service, request));
  FL_TRY(check_length(request.request_id(), "RequestId", service.options.limits.id_bytes));
  FL_TRY(check_run_id(request.first_execution_run_id()));
  FL_TRY(
      check_blob(static_cast<int64_t>(request.reason().size()), service.options.limits.blob_bytes));

  shard::CancelRequest cancel;
  cancel.run = run_ref(ns, request.workflow_execution());
  cancel.first_run_id = request.first_execution_run_id();
  cancel.envelope = links_envelope(*request.mutable_links(), request.GetArena());
  auto& door = *Arena::CreateMessage<history_api::WorkflowExecutionCancelRequestedEventAttributes>(
      request.GetArena());
  door.set_cause(request.reason());
  door.set_identity(request.identity());
  cancel.door = door.SerializeAsString();
  service.engine.cancel_workflow(std::move(cancel), answer_done(call));
  return absl::OkStatus();
}

absl::Status terminate_workflow(Service& service, TerminateWorkflowExecutionRequest& request,
                                const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, check_run_request(service, request));
  FL_TRY(check_run_id(request.first_execution_run_id()));
  FL_TRY(
      check_blob(static_cast<int64_t>(request.details().ByteSizeLong() + request.reason().size()),
                 service.options.limits.blob_bytes));

  shard::TerminateRequest terminate;
  terminate.run = run_ref(ns, request.workflow_execution());
  terminate.first_run_id = request.first_execution_run_id();
  terminate.envelope = links_envelope(*request.mutable_links(), request.GetArena());
  auto& door = *Arena::CreateMessage<history_api::WorkflowExecutionTerminatedEventAttributes>(
      request.GetArena());
  door.set_reason(request.reason().empty() ? "terminated by user via frontend" : request.reason());
  door.set_identity(request.identity().empty() ? "frontend-service" : request.identity());
  door.unsafe_arena_set_allocated_details(request.unsafe_arena_release_details());
  terminate.door = door.SerializeAsString();
  service.engine.terminate_workflow(std::move(terminate), answer_done(call));
  return absl::OkStatus();
}

// The deprecated field and the one that replaced it say it in opposite ways.
absl::Status read_exclusions(const ResetWorkflowExecutionRequest& request,
                             shard::ResetRequest& reset) {
  const auto type = request.reset_reapply_type();
  if (!ResetReapplyType_IsValid(type)) {
    return invalid_argument(absl::StrCat("unknown reset reapply type: ", int{type}));
  }
  reset.skips_signals = type == RESET_REAPPLY_TYPE_NONE;
  reset.skips_updates = type == RESET_REAPPLY_TYPE_NONE || type == RESET_REAPPLY_TYPE_SIGNAL;
  for (const int excluded : request.reset_reapply_exclude_types()) {
    if (excluded == RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL) reset.skips_signals = true;
    if (excluded == RESET_REAPPLY_EXCLUDE_TYPE_UPDATE) reset.skips_updates = true;
  }
  return absl::OkStatus();
}

absl::Status reset_workflow(Service& service, ResetWorkflowExecutionRequest& request,
                            const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_active_namespace(request.namespace_()));
  const auto& limits = service.options.limits;
  if (request.request_id().empty()) return invalid_argument("RequestId is not set on request.");
  FL_TRY(check_length(request.request_id(), "RequestId", limits.id_bytes));
  FL_TRY(check_execution(request.has_workflow_execution() ? &request.workflow_execution() : nullptr,
                         limits.id_bytes));
  FL_TRY(check_blob(static_cast<int64_t>(request.reason().size()), limits.blob_bytes));
  shard::ResetRequest reset;
  FL_TRY(read_exclusions(request, reset));
  for (auto& operation : *request.mutable_post_reset_operations()) {
    if (operation.has_signal_workflow()) {
      FL_TRY_ASSIGN(auto signal,
                    read_signal(limits, *operation.mutable_signal_workflow(), request.identity()));
      reset.operations.emplace_back(std::move(signal));
      continue;
    }
    if (!operation.has_update_workflow_options()) {
      return invalid_argument(
          "an operation that follows a reset is a signal or a change of options");
    }
    const auto& asked = operation.update_workflow_options();
    FL_TRY_ASSIGN(auto change, read_workflow_change(asked.workflow_execution_options(),
                                                    asked.update_mask(), ""));
    reset.operations.emplace_back(std::move(change));
  }
  reset.run = run_ref(ns, request.workflow_execution());
  reset.namespace_name = request.namespace_();
  reset.request_id = request.request_id();
  reset.event_id = request.workflow_task_finish_event_id();
  reset.reason = request.reason();
  service.engine.reset_workflow(
      std::move(reset), answer<shard::ResetResult>(call, [](const shard::ResetResult& result) {
        ResetWorkflowExecutionResponse response;
        response.set_run_id(result.run_id);
        return response.SerializeAsString();
      }));
  return absl::OkStatus();
}

absl::Status describe_workflow(Service& service, DescribeWorkflowExecutionRequest& request,
                               const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY(check_execution(request.has_execution() ? &request.execution() : nullptr,
                         service.options.limits.id_bytes));
  service.engine.describe_workflow(run_ref(ns, request.execution()),
                                   answer<shard::RunView>(call, encode_describe));
  return absl::OkStatus();
}

absl::Status delete_workflow(Service& service, DeleteWorkflowExecutionRequest& request,
                             const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY(check_execution(request.has_workflow_execution() ? &request.workflow_execution() : nullptr,
                         service.options.limits.id_bytes));
  service.engine.delete_workflow(run_ref(ns, request.workflow_execution()), answer_done(call));
  return absl::OkStatus();
}

absl::Status reset_sticky(Service& service, ResetStickyTaskQueueRequest& request,
                          const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY(check_execution(request.has_execution() ? &request.execution() : nullptr,
                         service.options.limits.id_bytes));
  service.engine.reset_sticky(run_ref(ns, request.execution()), answer_done(call));
  return absl::OkStatus();
}

}  // namespace

void add_workflow_handlers(Registrar& registrar) {
  registrar.serve(signal_workflow);
  registrar.serve(request_cancel);
  registrar.serve(terminate_workflow);
  registrar.serve(reset_workflow);
  registrar.serve(describe_workflow);
  registrar.serve(delete_workflow);
  registrar.serve(reset_sticky);
}

}  // namespace fairlead::api
