#include "api/temporal/changes.h"
#include "api/temporal/handler.h"
#include "api/temporal/pieces.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// What operators do to a workflow's pending activities. Each command exists twice: the older form
// names a run and chooses among its activities by id, by type or all; the newer one names one
// activity.
namespace fairlead::api {

namespace {

using errors::invalid_argument;
using history::ActivitySelector;
using By = ActivitySelector::By;
using namespace temporal::api::workflowservice::v1;

template <typename Request>
concept OlderForm = requires(const Request& request) { request.execution(); };

template <typename Request>
ActivitySelector select(const Request& request) {
  if (request.activity_case() == Request::kId) return {By::kId, request.id()};
  if (request.activity_case() == Request::kType) return {By::kType, request.type()};
  return {By::kAll, ""};
}

struct Target {
  shard::RunRef run;
  ActivitySelector which;
};

template <typename Request>
absl::StatusOr<Target> find_target(const Service& service, const Request& request) {
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  FL_TRY(check_length(request.identity(), "Identity", id_max));
  Target target;
  if constexpr (OlderForm<Request>) {
    FL_TRY(check_execution(&request.execution(), id_max));
    if (request.activity_case() == Request::ACTIVITY_NOT_SET) {
      return invalid_argument("Either Activity.Id or Activity.Type should be set on request.");
    }
    target.run = run_ref(ns, request.execution());
    target.which = select(request);
    FL_TRY(check_length(target.which.name, "Activity", id_max));
  } else {
    FL_TRY(
        check_activity_ids(request.workflow_id(), request.run_id(), request.activity_id(), id_max));
    FL_TRY(check_length(request.request_id(), "RequestId", id_max));
    target.run = activity_run(ns, request);
    target.which = {By::kId, request.activity_id()};
  }
  return target;
}

template <typename Request>
absl::Status pause(Service& service, Request& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto target, find_target(service, request));
  const auto& limits = service.options.limits;
  FL_TRY(check_length(request.request_id(), "RequestId", limits.id_bytes));
  // The reason is kept with the activity, and shown whenever somebody looks at it.
  FL_TRY(check_length(request.reason(), "Reason", limits.id_bytes));
  shard::PauseActivities asked{std::move(target.run), std::move(target.which), {}};
  asked.pause.set_identity(request.identity());
  asked.pause.set_reason(request.reason());
  asked.pause.set_request_id(request.request_id());
  service.engine.pause_activities(std::move(asked), answer_done(call));
  return absl::OkStatus();
}

template <typename Request>
absl::Status unpause(Service& service, Request& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto target, find_target(service, request));
  shard::UnpauseActivities asked{std::move(target.run), std::move(target.which)};
  FL_TRY_ASSIGN(asked.jitter, check_duration(request.jitter(), "Jitter"));
  if constexpr (OlderForm<Request>) {
    asked.how = {request.reset_attempts(), request.reset_heartbeat()};
  }
  service.engine.unpause_activities(std::move(asked), answer_done(call));
  return absl::OkStatus();
}

template <typename Request>
absl::Status reset(Service& service, Request& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto target, find_target(service, request));
  shard::ResetActivities asked{std::move(target.run), std::move(target.which)};
  FL_TRY_ASSIGN(asked.jitter, check_duration(request.jitter(), "Jitter"));
  asked.how = {request.keep_paused(), request.reset_heartbeat(),
               request.restore_original_options()};
  service.engine.reset_activities(std::move(asked), answer_done(call));
  return absl::OkStatus();
}

// UpdateActivityOptionsResponse, in either form.
std::string encode_options(const model::ActivityScheduled& options) {
  std::string answer;
  wire::Writer writer(&answer);
  static_assert(int{UpdateActivityOptionsResponse::kActivityOptionsFieldNumber} ==
                int{UpdateActivityExecutionOptionsResponse::kActivityOptionsFieldNumber});
  write_activity_options(writer, UpdateActivityOptionsResponse::kActivityOptionsFieldNumber,
                         options);
  return answer;
}

template <typename Request>
absl::Status update_options(Service& service, Request& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto target, find_target(service, request));
  shard::ChangeActivities asked{std::move(target.run), std::move(target.which), {}};
  if (request.restore_original()) {
    if (request.update_mask().paths_size() > 0) {
      return invalid_argument("Both UpdateMask and RestoreOriginal are provided");
    }
  } else {
    if (!request.has_activity_options()) {
      return invalid_argument("ActivityOptions are not provided");
    }
    if (!request.has_update_mask()) return invalid_argument("UpdateMask is not provided");
    FL_TRY_ASSIGN(asked.change,
                  read_activity_change(request.activity_options(), request.update_mask(),
                                       service.options.limits.id_bytes));
  }
  service.engine.change_activities(std::move(asked),
                                   answer<model::ActivityScheduled>(call, encode_options));
  return absl::OkStatus();
}

}  // namespace

void add_operate_handlers(Registrar& registrar) {
  registrar.serve(pause<PauseActivityRequest>);
  registrar.serve(pause<PauseActivityExecutionRequest>);
  registrar.serve(unpause<UnpauseActivityRequest>);
  registrar.serve(unpause<UnpauseActivityExecutionRequest>);
  registrar.serve(reset<ResetActivityRequest>);
  registrar.serve(reset<ResetActivityExecutionRequest>);
  registrar.serve(update_options<UpdateActivityOptionsRequest>);
  registrar.serve(update_options<UpdateActivityExecutionOptionsRequest>);
}

}  // namespace fairlead::api
