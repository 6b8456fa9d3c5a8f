#include "absl/strings/str_cat.h"
#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/updates.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using shard::UpdateStage;
using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;
using temporal::api::update::v1::Outcome;

absl::StatusOr<UpdateStage> read_stage(const temporal::api::update::v1::WaitPolicy& policy) {
  switch (policy.lifecycle_stage()) {
    case UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_UNSPECIFIED:
    case UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED:
      return UpdateStage::kCompleted;
    case UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED:
      return UpdateStage::kAccepted;
    case UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED:
      return UpdateStage::kAdmitted;
    default:
      return invalid_argument("Unknown UpdateWorkflowExecutionLifecycleStage.");
  }
}

// Who waits less long than the server would is not answered early: clients ask again at once after
// an answer, and give up after their deadline.
TimeNs wait_until(const Service& service) {
  return add_saturated(service.engine.now(), service.options.update_wait);
}

// An update that has no outcome of its worker's.
Outcome lost_outcome(shard::UpdateResult::Lost lost) {
  Outcome outcome;
  auto& failure = *outcome.mutable_failure();
  failure.set_source("Server");
  auto& info = *failure.mutable_application_failure_info();
  info.set_non_retryable(true);
  if (lost == shard::UpdateResult::Lost::kRunClosed) {
    info.set_type("AcceptedUpdateCompletedWorkflow");
    failure.set_message(
        "Workflow Update failed because the Workflow completed before the Update completed.");
  } else {
    info.set_type("UnprocessedUpdate");
    failure.set_message(
        "Workflow Update is rejected because it wasn't processed by worker. Probably, Workflow "
        "Update is not supported by the worker.");
  }
  return outcome;
}

// What both answers have.
template <typename Response>
Response make_response(const shard::UpdateResult& result, const std::string& workflow_id) {
  Response response;
  auto& ref = *response.mutable_update_ref();
  ref.mutable_workflow_execution()->set_workflow_id(workflow_id);
  ref.mutable_workflow_execution()->set_run_id(result.run_id);
  ref.set_update_id(result.update_id);
  response.set_stage(static_cast<UpdateWorkflowExecutionLifecycleStage>(result.stage));
  if (result.lost != shard::UpdateResult::Lost::kNo) {
    *response.mutable_outcome() = lost_outcome(result.lost);
  } else if (result.stage == UpdateStage::kCompleted) {
    response.mutable_outcome()->ParseFromString(result.outcome);
  }
  return response;
}

}  // namespace

std::string encode_updated(const shard::UpdateResult& result, const std::string& namespace_name,
                           const std::string& workflow_id) {
  auto response = make_response<UpdateWorkflowExecutionResponse>(result, workflow_id);
  if (result.stage < UpdateStage::kAccepted) return response.SerializeAsString();
  const auto fill = [&](auto& link) {
    link.set_namespace_(namespace_name);
    link.set_workflow_id(workflow_id);
    link.set_run_id(result.run_id);
  };
  if (response.outcome().has_failure()) {
    auto& link = *response.mutable_link()->mutable_workflow();
    fill(link);
    link.set_reason("Update rejected");
  } else {
    auto& link = *response.mutable_link()->mutable_workflow_event();
    fill(link);
    link.mutable_request_id_ref()->set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED);
  }
  return response.SerializeAsString();
}

absl::StatusOr<shard::UpdateRequest> read_update(const Service& service,
                                                 const shard::NamespacePtr& ns,
                                                 const UpdateWorkflowExecutionRequest& request) {
  const auto& limits = service.options.limits;
  FL_TRY(check_execution(request.has_workflow_execution() ? &request.workflow_execution() : nullptr,
                         limits.id_bytes));
  const auto& asked = request.request();
  if (!asked.has_meta()) return invalid_argument("Update meta is not set on request.");
  FL_TRY(check_length(asked.meta().update_id(), "UpdateId", limits.id_bytes));
  if (!asked.has_input()) return invalid_argument("Update input is not set on request.");
  if (asked.input().name().empty()) return invalid_argument("Update name is not set on request.");
  FL_TRY(check_blob(static_cast<int64_t>(asked.input().args().ByteSizeLong()), limits.blob_bytes));
  shard::UpdateRequest update;
  FL_TRY_ASSIGN(update.wait_for, read_stage(request.wait_policy()));
  if (update.wait_for == UpdateStage::kAdmitted) {
    return errors::permission_denied(
        "UpdateWorkflowExecution issued asynchronously and waiting on update admitted is not "
        "supported.");
  }
  update.run = {number_of(ns), request.workflow_execution().workflow_id(),
                request.workflow_execution().run_id()};
  update.first_run_id = request.first_execution_run_id();
  update.update_id = asked.meta().update_id();
  update.request = asked.SerializeAsString();
  update.wait_until = wait_until(service);
  return update;
}

namespace {

absl::Status update_workflow(Service& service, UpdateWorkflowExecutionRequest& request,
                             const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_active_namespace(request.namespace_()));
  FL_TRY_ASSIGN(auto update, read_update(service, ns, request));
  service.engine.update_workflow(
      std::move(update), answer<shard::UpdateResult>(
                             call, [ns, workflow_id = request.workflow_execution().workflow_id()](
                                       const shard::UpdateResult& result) {
                               return encode_updated(result, ns->name(), workflow_id);
                             }));
  return absl::OkStatus();
}

absl::Status poll_update(Service& service, PollWorkflowExecutionUpdateRequest& request,
                         const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  const auto& limits = service.options.limits;
  const auto& ref = request.update_ref();
  if (!request.has_update_ref()) return invalid_argument("UpdateRef is not set on request.");
  FL_TRY(check_execution(ref.has_workflow_execution() ? &ref.workflow_execution() : nullptr,
                         limits.id_bytes));
  shard::UpdateRequest update;
  FL_TRY_ASSIGN(update.wait_for, read_stage(request.wait_policy()));
  update.run = {number_of(ns), ref.workflow_execution().workflow_id(),
                ref.workflow_execution().run_id()};
  update.update_id = ref.update_id();
  const bool waits = request.wait_policy().lifecycle_stage() !=
                     UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_UNSPECIFIED;
  update.wait_until = waits ? wait_until(service) : 0;
  service.engine.update_workflow(
      std::move(update),
      answer<shard::UpdateResult>(call, [workflow_id = ref.workflow_execution().workflow_id()](
                                            const shard::UpdateResult& result) {
        return make_response<PollWorkflowExecutionUpdateResponse>(result, workflow_id)
            .SerializeAsString();
      }));
  return absl::OkStatus();
}

}  // namespace

void add_update_handlers(Registrar& registrar) {
  registrar.serve(update_workflow);
  registrar.serve(poll_update);
}

}  // namespace fairlead::api
