#include <algorithm>

// Commands that have to do with other runs: the next one of the chain, children, signals and cancel
// requests.

#include "api/temporal/asked.h"
#include "api/temporal/command_reading.h"
#include "api/temporal/convert.h"
#include "api/temporal/search_attributes.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "temporal/api/enums/v1/workflow.pb.h"
#include "temporal/api/history/v1/message.pb.h"

// Fields that the API calls deprecated are still sent by workers that people run.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using namespace temporal::api::enums::v1;
namespace history_api = temporal::api::history::v1;

// As Temporal does unless it is told otherwise.
absl::Status check_namespace(const std::string& asked, const Context& context) {
  if (asked.empty() || asked == context.namespace_name) return absl::OkStatus();
  return invalid_argument("cross namespace commands are not allowed");
}

absl::Status read_timeout(const google::protobuf::Duration& timeout, const char* name,
                          const char* command, DurationNs* read) {
  const auto duration = read_duration(timeout);
  FL_TRY(annotate(duration.status(), absl::StrCat("Invalid ", name, " on ", command, ": "), ""));
  *read = *duration;
  return absl::OkStatus();
}

// What both kinds of new runs have in common: memo, search attributes, retries, schedule.
template <typename Asked, typename Draft>
absl::Status read_new_run(Asked& asked, const Context& context, const char* command, Draft& draft) {
  FL_TRY(annotate(check_retry_policy(asked.retry_policy()),
                  absl::StrCat("Invalid WorkflowRetryPolicy for ", command, ": "), ""));
  FL_TRY(annotate(check_cron(asked.cron_schedule()),
                  absl::StrCat("Invalid CronSchedule for ", command, ": "), ""));
  FL_TRY(check_search_attributes(*asked.mutable_search_attributes(), context.namespace_name));
  if (asked.search_attributes().indexed_fields().empty()) asked.clear_search_attributes();
  FL_TRY(check_size(asked.input().ByteSizeLong(), context.limits.blob_bytes,
                    absl::StrCat(command, "Attributes.Input")));
  FL_TRY(check_size(asked.memo().ByteSizeLong(), context.limits.memo_bytes,
                    absl::StrCat(command, "Attributes.Memo")));
  if (asked.has_retry_policy()) {
    complete_retry_policy(*asked.mutable_retry_policy());
    *draft.mutable_retry_policy() = read_retry_policy(asked.retry_policy());
  }
  draft.set_cron_schedule(asked.cron_schedule());
  keep_fields(asked.memo().fields(), draft.mutable_memo());
  keep_fields(asked.search_attributes().indexed_fields(), draft.mutable_search_attributes());
  return absl::OkStatus();
}

}  // namespace

absl::Status continue_as_new(Command& command, const Context& context, model::Event& draft) {
  constexpr char kName[] = "ContinueAsNewWorkflowExecutionCommand";
  auto& asked = *command.mutable_continue_as_new_workflow_execution_command_attributes();
  // What is left out stays as it is; the engine knows it.
  FL_TRY(
      annotate(check_length(asked.workflow_type().name(), "WorkflowType", context.limits.id_bytes),
               absl::StrCat("error validating ", kName, ": "), ""));
  if (!asked.task_queue().name().empty()) {
    FL_TRY(annotate(check_task_queue_name(asked.task_queue().name(), context.limits.id_bytes),
                    absl::StrCat("error validating ", kName, " TaskQueue: "), ""));
  }
  draft.set_kind(model::WORKFLOW_CONTINUED_AS_NEW);
  auto& next = *draft.mutable_workflow_closed()->mutable_next();
  DurationNs run_timeout = 0;
  DurationNs task_timeout = 0;
  DurationNs backoff = 0;
  FL_TRY(read_timeout(asked.workflow_run_timeout(), "WorkflowRunTimeout", kName, &run_timeout));
  FL_TRY(read_timeout(asked.workflow_task_timeout(), "WorkflowTaskTimeout", kName, &task_timeout));
  FL_TRY(read_timeout(asked.backoff_start_interval(), "BackoffStartInterval", kName, &backoff));
  if (run_timeout > 0) task_timeout = std::min(task_timeout, run_timeout);
  FL_TRY(read_new_run(asked, context, kName, next));
  next.set_workflow_type(asked.workflow_type().name());
  next.set_task_queue(asked.task_queue().name());
  next.set_run_timeout_ns(run_timeout);
  next.set_task_timeout_ns(task_timeout);
  next.set_backoff_ns(backoff);
  next.set_initiator(static_cast<model::Initiator>(asked.initiator()));
  next.set_start_door(started_door(asked, context.workflow_id));

  auto& door = door_for<history_api::WorkflowExecutionContinuedAsNewEventAttributes>(command);
  door.unsafe_arena_set_allocated_input(asked.unsafe_arena_release_input());
  door.unsafe_arena_set_allocated_failure(asked.unsafe_arena_release_failure());
  door.unsafe_arena_set_allocated_last_completion_result(
      asked.unsafe_arena_release_last_completion_result());
  door.set_inherit_build_id(asked.inherit_build_id());
  door.unsafe_arena_set_allocated_header(asked.unsafe_arena_release_header());
  door.unsafe_arena_set_allocated_memo(asked.unsafe_arena_release_memo());
  door.unsafe_arena_set_allocated_search_attributes(asked.unsafe_arena_release_search_attributes());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

absl::Status start_child(Command& command, const Context& context, model::Event& draft) {
  constexpr char kName[] = "StartChildWorkflowExecutionCommand";
  auto& asked = *command.mutable_start_child_workflow_execution_command_attributes();
  FL_TRY(check_namespace(asked.namespace_(), context));
  FL_TRY(check_name(asked.workflow_id(), "WorkflowId", kName, context.limits.id_bytes));
  FL_TRY(check_name(asked.workflow_type().name(), "WorkflowType", kName, context.limits.id_bytes));
  // Without a name it is the parent's queue, which the engine knows.
  if (!asked.task_queue().name().empty()) {
    FL_TRY(annotate(check_task_queue_name(asked.task_queue().name(), context.limits.id_bytes),
                    absl::StrCat("error validating ", kName, " TaskQueue: "), ""));
  }
  FL_TRY(annotate(check_priority(asked.priority()), "invalid priorities: ", ""));
  if (!ParentClosePolicy_IsValid(asked.parent_close_policy()) ||
      !WorkflowIdReusePolicy_IsValid(asked.workflow_id_reuse_policy())) {
    return invalid_argument(absl::StrCat("unknown policy on ", kName, "."));
  }
  draft.set_kind(model::CHILD_INITIATED);
  auto& child = *draft.mutable_child_initiated();
  DurationNs execution_timeout = 0;
  DurationNs run_timeout = 0;
  DurationNs task_timeout = 0;
  FL_TRY(read_timeout(asked.workflow_execution_timeout(), "WorkflowExecutionTimeout", kName,
                      &execution_timeout));
  FL_TRY(read_timeout(asked.workflow_run_timeout(), "WorkflowRunTimeout", kName, &run_timeout));
  FL_TRY(read_timeout(asked.workflow_task_timeout(), "WorkflowTaskTimeout", kName, &task_timeout));
  FL_TRY(read_new_run(asked, context, kName, child));
  child.set_namespace_name(context.namespace_name);
  child.set_namespace_id(context.namespace_id);
  child.set_workflow_id(asked.workflow_id());
  child.set_workflow_type(asked.workflow_type().name());
  child.set_task_queue(asked.task_queue().name());
  child.set_execution_timeout_ns(execution_timeout);
  child.set_run_timeout_ns(run_timeout);
  child.set_task_timeout_ns(task_timeout);
  child.set_parent_close_policy(
      asked.parent_close_policy() == PARENT_CLOSE_POLICY_UNSPECIFIED
          ? model::PARENT_CLOSE_TERMINATE
          : static_cast<model::ParentClosePolicy>(asked.parent_close_policy()));
  child.set_reuse_policy(asked.workflow_id_reuse_policy() == WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED
                             ? WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
                             : asked.workflow_id_reuse_policy());
  if (asked.has_priority()) *child.mutable_priority() = read_priority(asked.priority());
  child.set_start_door(started_door(asked, asked.workflow_id()));
  child.set_started_door(child_started_door(asked));
  child.set_start_envelope(started_envelope(child.user_metadata()));

  auto& door = door_for<history_api::StartChildWorkflowExecutionInitiatedEventAttributes>(command);
  door.unsafe_arena_set_allocated_input(asked.unsafe_arena_release_input());
  door.set_control(asked.control());
  door.unsafe_arena_set_allocated_header(asked.unsafe_arena_release_header());
  door.unsafe_arena_set_allocated_memo(asked.unsafe_arena_release_memo());
  door.unsafe_arena_set_allocated_search_attributes(asked.unsafe_arena_release_search_attributes());
  door.set_inherit_build_id(asked.inherit_build_id());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

namespace {

absl::Status read_target(const std::string& workflow_id, const std::string& run_id,
                         const char* command, const Context& context, model::Event& draft) {
  FL_TRY(check_name(workflow_id, "WorkflowId", command, context.limits.id_bytes));
  FL_TRY(annotate(check_run_id(run_id), absl::StrCat("Invalid RunId set on ", command, ": "), ""));
  auto& external = *draft.mutable_external_event();
  external.set_namespace_name(context.namespace_name);
  external.set_namespace_id(context.namespace_id);
  external.mutable_run()->set_workflow_id(workflow_id);
  external.mutable_run()->set_run_id(run_id);
  return absl::OkStatus();
}

}  // namespace

absl::Status signal_external(Command& command, const Context& context, model::Event& draft) {
  constexpr char kName[] = "SignalExternalWorkflowExecutionCommand";
  auto& asked = *command.mutable_signal_external_workflow_execution_command_attributes();
  FL_TRY(check_namespace(asked.namespace_(), context));
  FL_TRY(check_name(asked.signal_name(), "SignalName", kName, context.limits.id_bytes));
  FL_TRY(read_target(asked.execution().workflow_id(), asked.execution().run_id(), kName, context,
                     draft));
  FL_TRY(check_size(asked.input().ByteSizeLong(), context.limits.blob_bytes,
                    "SignalExternalWorkflowExecutionCommandAttributes.Input"));
  draft.set_kind(model::SIGNAL_EXTERNAL_INITIATED);
  draft.mutable_external_event()->set_children_only(asked.child_workflow_only());
  draft.mutable_external_event()->set_target_door(signaled_door(asked));

  auto& door =
      door_for<history_api::SignalExternalWorkflowExecutionInitiatedEventAttributes>(command);
  door.set_namespace_(asked.namespace_());
  door.set_signal_name(asked.signal_name());
  door.unsafe_arena_set_allocated_input(asked.unsafe_arena_release_input());
  door.set_control(asked.control());
  door.unsafe_arena_set_allocated_header(asked.unsafe_arena_release_header());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

absl::Status cancel_external(Command& command, const Context& context, model::Event& draft) {
  constexpr char kName[] = "RequestCancelExternalWorkflowExecutionCommand";
  const auto& asked = command.request_cancel_external_workflow_execution_command_attributes();
  FL_TRY(check_namespace(asked.namespace_(), context));
  FL_TRY(read_target(asked.workflow_id(), asked.run_id(), kName, context, draft));
  draft.set_kind(model::CANCEL_EXTERNAL_INITIATED);
  draft.mutable_external_event()->set_children_only(asked.child_workflow_only());
  draft.mutable_external_event()->set_target_door(cancel_door(asked));

  history_api::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes door;
  door.set_namespace_(asked.namespace_());
  door.set_control(asked.control());
  door.set_reason(asked.reason());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

}  // namespace fairlead::api
