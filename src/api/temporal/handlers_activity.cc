#include "api/temporal/convert.h"
#include "api/temporal/handler.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "base/wire.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// How an attempt at an activity ends, or says that it lives. Each call exists twice: by the token
// of the attempt, and by the ids of the activity.
namespace fairlead::api {

namespace {

using errors::invalid_argument;
using google::protobuf::Arena;
using temporal::api::failure::v1::Failure;
using namespace temporal::api::workflowservice::v1;
namespace history_api = temporal::api::history::v1;

template <typename Request>
concept ByToken = requires(const Request& request) { request.task_token(); };

// The activity that either form of a request speaks of.
template <typename Request>
absl::StatusOr<shard::TaskToken> find_activity(const Service& service, const Request& request) {
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY(check_length(request.identity(), "Identity", id_max));
  if constexpr (ByToken<Request>) {
    FL_TRY_ASSIGN(auto bearer, service.read_token(request.task_token(), request.namespace_()));
    return std::move(bearer.token);
  } else {
    FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
    FL_TRY(
        check_activity_ids(request.workflow_id(), request.run_id(), request.activity_id(), id_max));
    auto run = activity_run(ns, request);
    shard::TaskToken token;
    token.ns = run.ns;
    token.workflow_id = std::move(run.workflow_id);
    token.run_id = std::move(run.run_id);
    token.flavour = run.flavour;
    token.activity_id = request.activity_id();
    return token;
  }
}

template <typename Blob>
bool is_oversize(const Service& service, const Blob& blob) {
  return static_cast<int64_t>(blob.ByteSizeLong()) > service.options.limits.blob_bytes;
}

// The worker did its part and a retry would only repeat it, so too large an outcome is a failure of
// the activity and not an error of the call.
void fail_for_size(Service& service, shard::TaskToken token, const std::string& identity,
                   std::string_view message, const CallPtr& call) {
  shard::FailActivity failed;
  failed.token = std::move(token);
  failed.identity = identity;
  failed.failure = server_failure(message);
  service.engine.fail_activity(std::move(failed), answer_done(call));
}

template <typename Request>
absl::Status complete_activity(Service& service, Request& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto token, find_activity(service, request));
  if (is_oversize(service, request.result())) {
    fail_for_size(service, std::move(token), request.identity(),
                  "Complete result exceeds size limit.", call);
    return absl::OkStatus();
  }
  auto& door =
      *Arena::CreateMessage<history_api::ActivityTaskCompletedEventAttributes>(request.GetArena());
  door.unsafe_arena_set_allocated_result(request.unsafe_arena_release_result());
  service.engine.complete_activity(
      {.token = std::move(token), .identity = request.identity(), .door = door.SerializeAsString()},
      answer_done(call));
  return absl::OkStatus();
}

template <typename Request>
absl::Status cancel_activity(Service& service, Request& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto token, find_activity(service, request));
  if (is_oversize(service, request.details())) {
    fail_for_size(service, std::move(token), request.identity(),
                  "Cancel details exceed size limit.", call);
    return absl::OkStatus();
  }
  auto& door =
      *Arena::CreateMessage<history_api::ActivityTaskCanceledEventAttributes>(request.GetArena());
  door.unsafe_arena_set_allocated_details(request.unsafe_arena_release_details());
  service.engine.cancel_activity(
      {.token = std::move(token), .identity = request.identity(), .door = door.SerializeAsString()},
      answer_done(call));
  return absl::OkStatus();
}

// RespondActivityTaskFailedResponse, in either form: what the server put in place of what it got.
void note_replaced(std::string* response, const Failure& failure) {
  wire::Writer(response).bytes(1, failure.SerializeAsString());
}

Failure size_failure(const char* message) {
  Failure failure;
  failure.set_message(message);
  failure.mutable_server_failure_info()->set_non_retryable(true);
  return failure;
}

template <typename Request>
absl::Status fail_activity(Service& service, Request& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto token, find_activity(service, request));
  if (request.has_failure() && !request.failure().has_application_failure_info()) {
    return invalid_argument("Failure must have ApplicationFailureInfo.");
  }
  shard::FailActivity failed;
  failed.token = std::move(token);
  failed.identity = request.identity();
  std::string response;
  if (request.has_last_heartbeat_details()) {
    if (is_oversize(service, request.last_heartbeat_details())) {
      note_replaced(&response, size_failure("Heartbeat details exceed size limit."));
    } else {
      failed.heartbeat_details = request.last_heartbeat_details().SerializeAsString();
    }
  }
  if (is_oversize(service, request.failure())) {
    Failure replaced = size_failure("Failure exceeds size limit.");
    *replaced.mutable_cause() = shorten_failure(
        request.failure(), static_cast<size_t>(service.options.limits.last_failure_bytes));
    note_replaced(&response, replaced);
    failed.failure = read_failure(replaced);
  } else if (request.has_failure()) {
    failed.failure = read_failure(request.failure());
  }
  auto encode = [response = std::move(response)](shard::Done) mutable {
    return std::move(response);
  };
  service.engine.fail_activity(std::move(failed), answer<shard::Done>(call, std::move(encode)));
  return absl::OkStatus();
}

template <typename Request>
absl::Status heartbeat(Service& service, Request& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto token, find_activity(service, request));
  shard::HeartbeatActivity beat;
  beat.token = std::move(token);
  beat.oversize = is_oversize(service, request.details());
  if (!beat.oversize) beat.details = request.details().SerializeAsString();
  // An attempt that was failed for its details has to stop, which a worker learns as a
  // cancellation.
  auto encode = [oversize = beat.oversize](const shard::HeartbeatResult& result) {
    std::string body;
    wire::Writer writer(&body);
    writer.boolean(RecordActivityTaskHeartbeatResponse::kCancelRequestedFieldNumber,
                   result.cancel_requested || oversize);
    writer.boolean(RecordActivityTaskHeartbeatResponse::kActivityPausedFieldNumber,
                   result.is_paused);
    writer.boolean(RecordActivityTaskHeartbeatResponse::kActivityResetFieldNumber, result.is_reset);
    return body;
  };
  service.engine.heartbeat_activity(std::move(beat),
                                    answer<shard::HeartbeatResult>(call, std::move(encode)));
  return absl::OkStatus();
}

}  // namespace

void add_activity_handlers(Registrar& registrar) {
  registrar.serve(complete_activity<RespondActivityTaskCompletedRequest>);
  registrar.serve(complete_activity<RespondActivityTaskCompletedByIdRequest>);
  registrar.serve(fail_activity<RespondActivityTaskFailedRequest>);
  registrar.serve(fail_activity<RespondActivityTaskFailedByIdRequest>);
  registrar.serve(cancel_activity<RespondActivityTaskCanceledRequest>);
  registrar.serve(cancel_activity<RespondActivityTaskCanceledByIdRequest>);
  registrar.serve(heartbeat<RecordActivityTaskHeartbeatRequest>);
  registrar.serve(heartbeat<RecordActivityTaskHeartbeatByIdRequest>);
}

}  // namespace fairlead::api
