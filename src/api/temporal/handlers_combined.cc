// ExecuteMultiOperation: the start of a workflow and an update of it, in one call.

#include "absl/strings/str_cat.h"
#include "api/temporal/handler.h"
#include "api/temporal/starts.h"
#include "api/temporal/try.h"
#include "api/temporal/updates.h"
#include "base/error.h"
#include "base/wire.h"
#include "temporal/api/errordetails/v1/message.pb.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using temporal::api::errordetails::v1::MultiOperationExecutionFailure;
using namespace temporal::api::workflowservice::v1;
using wire::Writer;

constexpr const char* kFailed = "Update-with-Start could not be executed.";

// google.rpc.Status of one operation. Only an error that says more than its code has details.
std::string status_of(const RpcStatus& status) {
  if (!status.details.empty()) return status.details;
  std::string bytes;
  Writer writer(&bytes);
  writer.integer(1, status.code);
  writer.string(2, status.message);
  return bytes;
}

std::string write_any(const char* type, std::string_view value) {
  std::string any;
  Writer writer(&any);
  writer.string(1, absl::StrCat("type.googleapis.com/temporal.api.", type));
  writer.string(2, value);
  return any;
}

// The status of an operation that failed because its neighbour did.
std::string aborted_status() {
  std::string bytes;
  Writer writer(&bytes);
  writer.integer(1, static_cast<int64_t>(absl::StatusCode::kAborted));
  writer.string(2, "Operation was aborted.");
  writer.bytes(3, write_any("failure.v1.MultiOperationExecutionAborted", ""));
  return bytes;
}

// The whole call's failure: the code of the operation that failed, and a status for each.
void fail_both(Call& call, const absl::Status& error, const std::string& start,
               const std::string& update) {
  std::string failure;
  Writer statuses(&failure);
  statuses.bytes(MultiOperationExecutionFailure::kStatusesFieldNumber, start);
  statuses.bytes(MultiOperationExecutionFailure::kStatusesFieldNumber, update);
  RpcStatus status;
  status.code = static_cast<int>(error.code());
  status.message = kFailed;
  Writer details(&status.details);
  details.integer(1, status.code);
  details.string(2, status.message);
  details.bytes(3, write_any("errordetails.v1.MultiOperationExecutionFailure", failure));
  call.reply(std::move(status), {}, {});
}

void fail_start(Call& call, const absl::Status& error) {
  fail_both(call, error, status_of(to_rpc_status(error)), aborted_status());
}

// A start that took place has an empty status: OK.
void fail_update(Call& call, const absl::Status& error, bool is_started) {
  fail_both(call, error, is_started ? std::string() : aborted_status(),
            status_of(to_rpc_status(error)));
}

absl::Status check_start(const StartWorkflowExecutionRequest& start) {
  if (!start.cron_schedule().empty()) return invalid_argument("CronSchedule is not allowed.");
  if (start.request_eager_execution()) {
    return invalid_argument("RequestEagerExecution is not supported.");
  }
  if (start.has_workflow_start_delay()) {
    return invalid_argument("WorkflowStartDelay is not supported.");
  }
  return absl::OkStatus();
}

absl::Status check_update(const UpdateWorkflowExecutionRequest& update,
                          const StartWorkflowExecutionRequest& start) {
  if (!update.workflow_execution().run_id().empty()) {
    return invalid_argument("RunId is not allowed.");
  }
  if (!update.first_execution_run_id().empty()) {
    return invalid_argument("FirstExecutionRunId is not allowed.");
  }
  if (update.workflow_execution().workflow_id() != start.workflow_id()) {
    return invalid_argument("WorkflowId is not consistent with previous operation(s).");
  }
  return absl::OkStatus();
}

absl::Status check_shape(const ExecuteMultiOperationRequest& request) {
  if (request.operations_size() != 2) {
    return invalid_argument("Operations have to be exactly [Start, Update].");
  }
  if (!request.operations(0).has_start_workflow() || !request.operations(1).has_update_workflow()) {
    return invalid_argument("Operations have to be exactly [Start, Update].");
  }
  return absl::OkStatus();
}

absl::Status execute(Service& service, ExecuteMultiOperationRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_active_namespace(request.namespace_()));
  FL_TRY(check_shape(request));
  auto& start_part = *request.mutable_operations(0)->mutable_start_workflow();
  const auto& update_part = request.operations(1).update_workflow();
  for (const auto* name : {&start_part.namespace_(), &update_part.namespace_()}) {
    if (*name != request.namespace_()) {
      return invalid_argument("Namespace of an operation does not match that of the request.");
    }
  }

  const std::string workflow_id = start_part.workflow_id();
  if (const auto status = check_start(start_part); !status.ok()) {
    fail_start(*call, status);
    return absl::OkStatus();
  }
  if (const auto status = check_update(update_part, start_part); !status.ok()) {
    fail_update(*call, status, false);
    return absl::OkStatus();
  }
  auto start = read_start(service, ns, start_part);
  if (!start.ok()) {
    fail_start(*call, start.status());
    return absl::OkStatus();
  }
  auto update = read_update(service, ns, update_part);
  if (!update.ok()) {
    fail_update(*call, update.status(), false);
    return absl::OkStatus();
  }
  const std::string request_id = start->request_id;
  service.engine.update_with_start(
      {*std::move(start), *std::move(update)},
      [call, ns, workflow_id, request_id](absl::StatusOr<shard::UpdateWithStartResult> result) {
        if (!result.ok()) return fail_start(*call, result.status());
        if (!result->update.ok()) return fail_update(*call, result->update.status(), true);
        std::string body;
        Writer writer(&body);
        using Response = ExecuteMultiOperationResponse;
        writer.message(Response::kResponsesFieldNumber, [&](Writer& one) {
          one.bytes(Response::Response::kStartWorkflowFieldNumber,
                    encode_started(result->start, ns->name(), workflow_id, request_id));
        });
        writer.message(Response::kResponsesFieldNumber, [&](Writer& one) {
          one.bytes(Response::Response::kUpdateWorkflowFieldNumber,
                    encode_updated(*result->update, ns->name(), workflow_id));
        });
        succeed(*call, std::move(body));
      });
  return absl::OkStatus();
}

}  // namespace

void add_combined_handlers(Registrar& registrar) { registrar.serve(execute); }

}  // namespace fairlead::api
