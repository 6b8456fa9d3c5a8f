#include "api/temporal/changes.h"
#include "api/temporal/codec.h"
#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// UpdateWorkflowExecutionOptions.
namespace fairlead::api {

namespace {

using errors::invalid_argument;
using namespace temporal::api::workflowservice::v1;

std::string encode_options(const model::Priority& priority) {
  using Response = UpdateWorkflowExecutionOptionsResponse;
  using Options = temporal::api::workflow::v1::WorkflowExecutionOptions;
  std::string answer;
  wire::Writer(&answer).message(Response::kWorkflowExecutionOptionsFieldNumber,
                                [&](wire::Writer& options) {
                                  write_priority(options, Options::kPriorityFieldNumber, priority);
                                });
  return answer;
}

absl::Status update_options(Service& service, UpdateWorkflowExecutionOptionsRequest& request,
                            const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY(check_execution(&request.workflow_execution(), id_max));
  FL_TRY(check_length(request.identity(), "Identity", id_max));
  if (!request.has_update_mask()) return invalid_argument("UpdateMask is required");
  if (!request.has_workflow_execution_options()) {
    return invalid_argument("WorkflowExecutionOptions is required");
  }
  FL_TRY_ASSIGN(auto change, read_workflow_change(request.workflow_execution_options(),
                                                  request.update_mask(), request.identity()));
  change.run = run_ref(ns, request.workflow_execution());
  service.engine.change_run_options(std::move(change),
                                    answer<model::Priority>(call, encode_options));
  return absl::OkStatus();
}

}  // namespace

void add_options_handlers(Registrar& registrar) { registrar.serve(update_options); }

}  // namespace fairlead::api
