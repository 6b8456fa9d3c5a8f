#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/temporal/commands.h"
#include "api/temporal/convert.h"
#include "api/temporal/event_attributes.h"
#include "api/temporal/handler.h"
#include "api/temporal/query_answer.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "base/wire.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// Clients in the field still send what the API has since deprecated.
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

// What a worker makes of a workflow task.
namespace fairlead::api {

namespace {

using errors::invalid_argument;
using google::protobuf::Arena;
using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;
namespace history_api = temporal::api::history::v1;

absl::Status check_completion(const RespondWorkflowTaskCompletedRequest& request) {
  if (request.page_number() > 0 || request.intermediate_page()) {
    return errors::failed_precondition(
        "pages of a workflow task completion are not accepted by this server");
  }
  const bool is_versioned =
      request.deployment_options().worker_versioning_mode() == WORKER_VERSIONING_MODE_VERSIONED;
  if (request.versioning_behavior() != VERSIONING_BEHAVIOR_UNSPECIFIED && !is_versioned) {
    return invalid_argument(
        "versioning behavior set without deployment options being set with versioned mode");
  }
  return check_sequence(request.commands());
}

// Parts that replay depends on (sdk_metadata above all) move into the event as they came.
const history_api::WorkflowTaskCompletedEventAttributes& completed_attributes(
    RespondWorkflowTaskCompletedRequest& request) {
  auto& door =
      *Arena::CreateMessage<history_api::WorkflowTaskCompletedEventAttributes>(request.GetArena());
  door.set_identity(request.identity());
  door.set_binary_checksum(request.binary_checksum());
  door.unsafe_arena_set_allocated_worker_version(
      request.unsafe_arena_release_worker_version_stamp());
  door.unsafe_arena_set_allocated_sdk_metadata(request.unsafe_arena_release_sdk_metadata());
  door.unsafe_arena_set_allocated_metering_metadata(
      request.unsafe_arena_release_metering_metadata());
  door.unsafe_arena_set_allocated_deployment(request.unsafe_arena_release_deployment());
  door.set_versioning_behavior(request.versioning_behavior());
  const auto& options = request.deployment_options();
  if (options.worker_versioning_mode() == WORKER_VERSIONING_MODE_VERSIONED) {
    door.set_worker_deployment_name(options.deployment_name());
    door.set_worker_deployment_version(
        absl::StrCat(options.deployment_name(), ".", options.build_id()));
    door.mutable_deployment_version()->set_deployment_name(options.deployment_name());
    door.mutable_deployment_version()->set_build_id(options.build_id());
  }
  return door;
}

absl::StatusOr<std::optional<model::StickyState>> read_sticky(
    const RespondWorkflowTaskCompletedRequest& request, int64_t id_max) {
  const auto& asked = request.sticky_attributes();
  const std::string& name = asked.worker_task_queue().name();
  if (name.empty()) return std::nullopt;
  FL_TRY(check_task_queue_name(name, id_max));
  model::StickyState sticky;
  sticky.set_name(name);
  FL_TRY_ASSIGN(const DurationNs timeout,
                check_duration(asked.schedule_to_start_timeout(), "ScheduleToStartTimeout"));
  sticky.set_schedule_to_start_ns(timeout);
  return sticky;
}

// RespondWorkflowTaskCompletedResponse. Mostly it is empty. Tasks that do not reach the worker go
// back.
void reply_completed(shard::Engine& engine, Call& call, const model::NamespaceRow& ns,
                     shard::CompleteWorkflowTaskResult result) {
  using Response = RespondWorkflowTaskCompletedResponse;
  std::string body;
  wire::Writer writer(&body);
  std::vector<shard::TaskToken> activities;
  if (result.new_task.has_value()) {
    writer.bytes(Response::kWorkflowTaskFieldNumber,
                 encode_poll_workflow_task(*result.new_task, ns.id()));
  }
  for (auto& activity : result.activities) {
    writer.bytes(Response::kActivityTasksFieldNumber,
                 encode_poll_activity_task(activity, ns.name()));
    activities.push_back(std::move(activity.token));
  }
  writer.integer(Response::kResetHistoryEventIdFieldNumber, result.reset_to_event);
  if (!result.new_task.has_value() && activities.empty()) return succeed(call, std::move(body));
  std::optional<shard::TaskToken> workflow;
  if (result.new_task.has_value()) workflow = std::move(result.new_task->token);
  call.reply(RpcStatus{}, std::move(body),
             [&engine, workflow = std::move(workflow),
              activities = std::move(activities)](bool is_delivered) mutable {
               if (is_delivered) return;
               if (workflow.has_value()) engine.return_workflow_task(*std::move(workflow));
               for (auto& token : activities) engine.return_activity_task(std::move(token));
             });
}

absl::Status complete_task(Service& service, RespondWorkflowTaskCompletedRequest& request,
                           const CallPtr& call) {
  FL_TRY_ASSIGN(auto bearer, service.read_token(request.task_token(), request.namespace_()));
  const auto& options = service.options;
  const auto& limits = options.limits;
  FL_TRY(check_length(request.identity(), "Identity", limits.id_bytes));
  FL_TRY(check_completion(request));

  shard::CompleteWorkflowTask completion;
  FL_TRY_ASSIGN(completion.sticky, read_sticky(request, limits.id_bytes));
  completion.token = std::move(bearer.token);
  completion.identity = request.identity();
  completion.force_new_task = request.force_create_new_workflow_task();
  completion.return_new_task = request.return_new_workflow_task();
  completion.rereads = request.capabilities().discard_speculative_workflow_task_with_events();
  const auto& attributes = completed_attributes(request);
  completion.door = attributes.SerializeAsString();
  completion.build = read_build(attributes);
  auto drafts = read_commands(*request.mutable_commands(),
                              {bearer.ns->name(),
                               bearer.ns->id(),
                               completion.token.workflow_id,
                               completion.token.run_id,
                               request.identity(),
                               {limits.id_bytes, limits.blob_bytes, options.memo_bytes},
                               request.messages()});
  completion.commands = std::move(drafts.events);
  completion.bad_command = std::move(drafts.bad_command);
  for (const auto& [id, result] : request.query_results()) {
    completion.query_answers.emplace_back(
        id,
        read_query_answer(result.result_type(), result.answer(), result.error_message(),
                          result.has_failure() ? &result.failure() : nullptr, limits.blob_bytes));
  }
  // A map has no order of its own; the same input is to have the same effects in the same order.
  std::sort(completion.query_answers.begin(), completion.query_answers.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  auto& engine = service.engine;
  engine.complete_workflow_task(
      std::move(completion),
      [&engine, call, ns = bearer.ns](absl::StatusOr<shard::CompleteWorkflowTaskResult> result) {
        if (!result.ok()) return fail(*call, result.status());
        reply_completed(engine, *call, *ns, *std::move(result));
      });
  return absl::OkStatus();
}

absl::Status fail_task(Service& service, RespondWorkflowTaskFailedRequest& request,
                       const CallPtr& call) {
  FL_TRY_ASSIGN(auto bearer, service.read_token(request.task_token(), request.namespace_()));
  const auto& limits = service.options.limits;
  FL_TRY(check_length(request.identity(), "Identity", limits.id_bytes));

  shard::FailWorkflowTask failed;
  failed.token = std::move(bearer.token);
  failed.cause = request.cause();
  failed.identity = request.identity();
  if (static_cast<int64_t>(request.failure().ByteSizeLong()) > limits.blob_bytes) {
    failed.failure = read_failure(
        shorten_failure(request.failure(), static_cast<size_t>(limits.last_failure_bytes)));
  } else if (request.has_failure()) {
    failed.failure = read_failure(request.failure());
  }
  auto& door =
      *Arena::CreateMessage<history_api::WorkflowTaskFailedEventAttributes>(request.GetArena());
  door.set_binary_checksum(request.binary_checksum());
  door.unsafe_arena_set_allocated_worker_version(request.unsafe_arena_release_worker_version());
  failed.door = door.SerializeAsString();
  service.engine.fail_workflow_task(std::move(failed), answer_done(call));
  return absl::OkStatus();
}

}  // namespace

void add_task_handlers(Registrar& registrar) {
  registrar.serve(complete_task);
  registrar.serve(fail_task);
}

}  // namespace fairlead::api
