#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/callbacks.h"
#include "api/temporal/convert.h"
#include "api/temporal/handler.h"
#include "api/temporal/search_attributes.h"
#include "api/temporal/starts.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "base/wire.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// Clients in the field still send what the API has since deprecated.
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using google::protobuf::Arena;
using temporal::api::workflowservice::v1::SignalWithStartWorkflowExecutionRequest;
using temporal::api::workflowservice::v1::SignalWithStartWorkflowExecutionResponse;
using temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;
using temporal::api::workflowservice::v1::StartWorkflowExecutionResponse;
using namespace temporal::api::enums::v1;
namespace history_api = temporal::api::history::v1;

absl::Status read_policies(const StartWorkflowExecutionRequest& request,
                           shard::StartRequest& start) {
  const auto conflict = request.workflow_id_conflict_policy();
  const auto reuse = request.workflow_id_reuse_policy();
  if (!WorkflowIdReusePolicy_IsValid(reuse)) {
    return invalid_argument("Unknown WorkflowIdReusePolicy.");
  }
  if (!WorkflowIdConflictPolicy_IsValid(conflict)) {
    return invalid_argument("Unknown WorkflowIdConflictPolicy.");
  }
  if (conflict == WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING) {
    start.conflict = shard::ConflictPolicy::kUseExisting;
  } else if (conflict == WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING) {
    start.conflict = shard::ConflictPolicy::kTerminateExisting;
  }
  switch (reuse) {
    case WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY:
      start.reuse = shard::ReusePolicy::kAllowDuplicateFailedOnly;
      break;
    case WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:
      if (conflict == WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING) {
        return invalid_argument(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be "
            "used together with WorkflowIdConflictPolicy "
            "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING");
      }
      start.reuse = shard::ReusePolicy::kRejectDuplicate;
      break;
    case WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING:
      if (conflict != WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED) {
        return invalid_argument(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot "
            "be used together with a WorkflowIDConflictPolicy.");
      }
      start.conflict = shard::ConflictPolicy::kTerminateExisting;
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status check_names(const StartWorkflowExecutionRequest& request, int64_t id_max) {
  FL_TRY(check_workflow_id(request.workflow_id(), id_max));
  if (request.workflow_type().name().empty()) {
    return invalid_argument("WorkflowType is not set on request.");
  }
  FL_TRY(check_length(request.workflow_type().name(), "WorkflowType", id_max));
  FL_TRY(check_task_queue(request.has_task_queue() ? &request.task_queue() : nullptr, id_max));
  FL_TRY(check_length(request.request_id(), "RequestId", id_max));
  return check_length(request.identity(), "Identity", id_max);
}

absl::Status read_durations(const StartWorkflowExecutionRequest& request,
                            shard::StartRequest& start) {
  FL_TRY_ASSIGN(start.execution_timeout,
                check_duration(request.workflow_execution_timeout(), "WorkflowExecutionTimeout"));
  FL_TRY_ASSIGN(start.run_timeout,
                check_duration(request.workflow_run_timeout(), "WorkflowRunTimeout"));
  FL_TRY_ASSIGN(start.task_timeout,
                check_duration(request.workflow_task_timeout(), "WorkflowTaskTimeout"));
  FL_TRY_ASSIGN(start.start_delay,
                check_duration(request.workflow_start_delay(), "WorkflowStartDelay"));
  if (!request.cron_schedule().empty() && request.has_workflow_start_delay()) {
    return invalid_argument("CronSchedule and WorkflowStartDelay may not be used together.");
  }
  return absl::OkStatus();
}

absl::Status check_sizes(const StartWorkflowExecutionRequest& request,
                         const ServiceOptions& options) {
  FL_TRY(
      check_blob(static_cast<int64_t>(request.input().ByteSizeLong()), options.limits.blob_bytes));
  if (static_cast<int64_t>(request.memo().ByteSizeLong()) > options.memo_bytes) {
    return invalid_argument("Memo size exceeds limit.");
  }
  FL_TRY(check_user_metadata(request.user_metadata()));
  return check_links(request.links());
}

// A run that silently lacks what its starter relies on is worse than no run.
absl::Status check_built(const StartWorkflowExecutionRequest& request) {
  if (request.has_versioning_override()) {
    return errors::unimplemented("versioning overrides are not implemented by this server");
  }
  if (request.time_skipping_config().enabled()) {
    return errors::unimplemented("time skipping is not implemented by this server");
  }
  return absl::OkStatus();
}

// Links that a callback brings are the callback's.
void drop_links_of_callbacks(StartWorkflowExecutionRequest& request) {
  absl::flat_hash_set<std::string> theirs;
  for (const auto& callback : request.completion_callbacks()) {
    if (!callback.has_nexus()) continue;
    for (const auto& link : callback.links()) theirs.insert(link.SerializeAsString());
  }
  if (theirs.empty()) return;
  auto* links = request.mutable_links();
  for (int i = links->size() - 1; i >= 0; --i) {
    if (theirs.contains(links->Get(i).SerializeAsString())) links->DeleteSubrange(i, 1);
  }
}

// What the run is left with if it is there already.
absl::Status read_attach(const StartWorkflowExecutionRequest& request, shard::StartRequest& start) {
  if (!request.has_on_conflict_options()) return absl::OkStatus();
  const auto& options = request.on_conflict_options();
  if (options.attach_completion_callbacks() && !options.attach_request_id()) {
    return invalid_argument("attaching request ID is required for attaching completion callbacks");
  }
  history_api::HistoryEvent envelope;
  envelope.set_worker_may_ignore(true);
  if (options.attach_links()) *envelope.mutable_links() = request.links();
  start.attach = {options.attach_request_id(), options.attach_completion_callbacks(),
                  envelope.SerializeAsString()};
  return absl::OkStatus();
}

// The started event as its readers will see it, without what the engine decides. Empties the
// request.
std::string started_door(StartWorkflowExecutionRequest& request) {
  auto& door = *Arena::CreateMessage<history_api::WorkflowExecutionStartedEventAttributes>(
      request.GetArena());
  door.unsafe_arena_set_allocated_input(request.unsafe_arena_release_input());
  door.set_identity(request.identity());
  door.set_workflow_id(request.workflow_id());
  door.unsafe_arena_set_allocated_header(request.unsafe_arena_release_header());
  door.unsafe_arena_set_allocated_memo(request.unsafe_arena_release_memo());
  door.unsafe_arena_set_allocated_search_attributes(
      request.unsafe_arena_release_search_attributes());
  door.unsafe_arena_set_allocated_continued_failure(
      request.unsafe_arena_release_continued_failure());
  door.unsafe_arena_set_allocated_last_completion_result(
      request.unsafe_arena_release_last_completion_result());
  return door.SerializeAsString();
}

std::string started_envelope(StartWorkflowExecutionRequest& request) {
  auto& event = *Arena::CreateMessage<history_api::HistoryEvent>(request.GetArena());
  event.unsafe_arena_set_allocated_user_metadata(request.unsafe_arena_release_user_metadata());
  event.mutable_links()->Swap(request.mutable_links());
  return event.SerializeAsString();
}

}  // namespace

std::string encode_started(const shard::StartResult& result, const std::string& namespace_name,
                           const std::string& workflow_id, const std::string& request_id) {
  StartWorkflowExecutionResponse response;
  response.set_run_id(result.run_id);
  response.set_first_execution_run_id(result.first_run_id);
  response.set_started(result.started);
  response.set_status(static_cast<WorkflowExecutionStatus>(result.status));
  auto& link = *response.mutable_link()->mutable_workflow_event();
  link.set_namespace_(namespace_name);
  link.set_workflow_id(workflow_id);
  link.set_run_id(result.run_id);
  if (result.attached) {
    link.mutable_request_id_ref()->set_request_id(request_id);
    link.mutable_request_id_ref()->set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED);
  } else {
    link.mutable_event_ref()->set_event_id(1);
    link.mutable_event_ref()->set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
  }
  return response.SerializeAsString();
}

absl::StatusOr<shard::StartRequest> read_start(const Service& service,
                                               const shard::NamespacePtr& ns,
                                               StartWorkflowExecutionRequest& request) {
  const auto& options = service.options;
  shard::StartRequest start;
  FL_TRY(check_names(request, options.limits.id_bytes));
  FL_TRY(read_durations(request, start));
  FL_TRY(check_retry_policy(request.retry_policy()));
  FL_TRY(check_cron(request.cron_schedule()));
  FL_TRY(read_policies(request, start));
  FL_TRY(check_search_attributes(*request.mutable_search_attributes(), ns->name()));
  FL_TRY(check_sizes(request, options));
  FL_TRY(check_priority(request.priority()));
  FL_TRY(check_built(request));
  FL_TRY_ASSIGN(start.callbacks, read_callbacks(request.completion_callbacks(),
                                                options.callback_addresses, options.limits));
  drop_links_of_callbacks(request);
  FL_TRY(read_attach(request, start));

  start.ns = number_of(ns);
  start.namespace_id = ns->id();
  start.retention = ns->retention_ns();
  start.workflow_id = request.workflow_id();
  start.workflow_type = request.workflow_type().name();
  start.task_queue = request.task_queue().name();
  start.request_id = request.request_id();
  start.priority = read_priority(request.priority());
  start.cron_schedule = request.cron_schedule();
  if (request.has_retry_policy()) {
    complete_retry_policy(*request.mutable_retry_policy());
    start.retry_policy = read_retry_policy(request.retry_policy());
  }
  for (const auto& [key, payload] : request.memo().fields()) {
    start.memo.emplace_back(key, payload.SerializeAsString());
  }
  for (const auto& [key, payload] : request.search_attributes().indexed_fields()) {
    if (!removes_key(payload)) {
      start.search_attributes.emplace_back(key, payload.SerializeAsString());
    }
  }
  if (request.search_attributes().indexed_fields().empty()) request.clear_search_attributes();
  start.user_metadata = request.user_metadata().SerializeAsString();
  start.envelope = started_envelope(request);
  start.door = started_door(request);
  return start;
}

namespace {

absl::Status start_workflow(Service& service, StartWorkflowExecutionRequest& request,
                            const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_active_namespace(request.namespace_()));
  FL_TRY_ASSIGN(auto start, read_start(service, ns, request));
  if (request.request_eager_execution()) start.eager_identity = request.identity();
  auto& engine = service.engine;
  engine.start_workflow(std::move(start), [&engine, call, ns, workflow_id = request.workflow_id(),
                                           request_id = request.request_id()](
                                              absl::StatusOr<shard::StartResult> result) {
    if (!result.ok()) return fail(*call, result.status());
    auto body = encode_started(*result, ns->name(), workflow_id, request_id);
    if (result->eager_task == nullptr) return succeed(*call, std::move(body));
    wire::Writer(&body).bytes(StartWorkflowExecutionResponse::kEagerWorkflowTaskFieldNumber,
                              encode_poll_workflow_task(*result->eager_task, ns->id()));
    call->reply(RpcStatus{}, std::move(body),
                [&engine, task = std::move(result->eager_task)](bool is_delivered) {
                  if (!is_delivered) engine.return_workflow_task(std::move(task->token));
                });
  });
  return absl::OkStatus();
}

// The start inside a signal-with-start. Empties those fields of the request.
StartWorkflowExecutionRequest& start_part(SignalWithStartWorkflowExecutionRequest& request) {
  auto& start = *Arena::CreateMessage<StartWorkflowExecutionRequest>(request.GetArena());
  start.set_namespace_(request.namespace_());
  start.set_workflow_id(request.workflow_id());
  start.set_identity(request.identity());
  start.set_request_id(request.request_id());
  start.set_cron_schedule(request.cron_schedule());
  start.set_workflow_id_reuse_policy(request.workflow_id_reuse_policy());
  start.set_workflow_id_conflict_policy(request.workflow_id_conflict_policy());
  start.unsafe_arena_set_allocated_workflow_type(request.unsafe_arena_release_workflow_type());
  start.unsafe_arena_set_allocated_task_queue(request.unsafe_arena_release_task_queue());
  start.unsafe_arena_set_allocated_input(request.unsafe_arena_release_input());
  start.unsafe_arena_set_allocated_workflow_execution_timeout(
      request.unsafe_arena_release_workflow_execution_timeout());
  start.unsafe_arena_set_allocated_workflow_run_timeout(
      request.unsafe_arena_release_workflow_run_timeout());
  start.unsafe_arena_set_allocated_workflow_task_timeout(
      request.unsafe_arena_release_workflow_task_timeout());
  start.unsafe_arena_set_allocated_workflow_start_delay(
      request.unsafe_arena_release_workflow_start_delay());
  start.unsafe_arena_set_allocated_retry_policy(request.unsafe_arena_release_retry_policy());
  start.unsafe_arena_set_allocated_memo(request.unsafe_arena_release_memo());
  start.unsafe_arena_set_allocated_search_attributes(
      request.unsafe_arena_release_search_attributes());
  if (request.has_header()) *start.mutable_header() = request.header();
  start.unsafe_arena_set_allocated_user_metadata(request.unsafe_arena_release_user_metadata());
  *start.mutable_links() = request.links();
  start.unsafe_arena_set_allocated_versioning_override(
      request.unsafe_arena_release_versioning_override());
  start.unsafe_arena_set_allocated_priority(request.unsafe_arena_release_priority());
  return start;
}

std::string encode_signaled_with_start(const shard::StartResult& result,
                                       const std::string& namespace_name,
                                       const std::string& workflow_id,
                                       const std::string& request_id) {
  SignalWithStartWorkflowExecutionResponse response;
  response.set_run_id(result.run_id);
  response.set_first_execution_run_id(result.first_run_id);
  response.set_started(result.started);
  if (!request_id.empty()) {
    auto& link = *response.mutable_signal_link()->mutable_workflow_event();
    link.set_namespace_(namespace_name);
    link.set_workflow_id(workflow_id);
    link.set_run_id(result.run_id);
    link.mutable_request_id_ref()->set_request_id(request_id);
    link.mutable_request_id_ref()->set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
  }
  return response.SerializeAsString();
}

absl::Status signal_with_start(Service& service, SignalWithStartWorkflowExecutionRequest& request,
                               const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_active_namespace(request.namespace_()));
  const auto& limits = service.options.limits;
  if (request.signal_name().empty()) return invalid_argument("SignalName is not set on request.");
  FL_TRY(check_length(request.signal_name(), "SignalName", limits.id_bytes));
  FL_TRY(
      check_blob(static_cast<int64_t>(request.signal_input().ByteSizeLong()), limits.blob_bytes));
  if (request.workflow_id_conflict_policy() == WORKFLOW_ID_CONFLICT_POLICY_FAIL) {
    return invalid_argument("SignalWithStart cannot be used with WorkflowIdConflictPolicy FAIL.");
  }
  FL_TRY_ASSIGN(auto start, read_start(service, ns, start_part(request)));
  if (start.conflict == shard::ConflictPolicy::kFail) {
    start.conflict = shard::ConflictPolicy::kUseExisting;
  }
  auto& door = *Arena::CreateMessage<history_api::WorkflowExecutionSignaledEventAttributes>(
      request.GetArena());
  door.set_signal_name(request.signal_name());
  door.unsafe_arena_set_allocated_input(request.unsafe_arena_release_signal_input());
  door.set_identity(request.identity());
  door.unsafe_arena_set_allocated_header(request.unsafe_arena_release_header());
  door.set_request_id(request.request_id());
  auto& event = *Arena::CreateMessage<history_api::HistoryEvent>(request.GetArena());
  event.mutable_links()->Swap(request.mutable_links());
  start.signal = {door.SerializeAsString(), event.SerializeAsString()};
  service.engine.start_workflow(
      std::move(start), answer<shard::StartResult>(call, [ns, workflow_id = request.workflow_id(),
                                                          request_id = request.request_id()](
                                                             const shard::StartResult& result) {
        return encode_signaled_with_start(result, ns->name(), workflow_id, request_id);
      }));
  return absl::OkStatus();
}

}  // namespace

void add_start_handlers(Registrar& registrar) {
  registrar.serve(start_workflow);
  registrar.serve(signal_with_start);
}

}  // namespace fairlead::api
