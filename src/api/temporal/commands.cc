#include "api/temporal/commands.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/temporal/asked.h"
#include "api/temporal/command_reading.h"
#include "api/temporal/convert.h"
#include "api/temporal/search_attributes.h"
#include "api/temporal/try.h"
#include "api/temporal/updates.h"
#include "api/temporal/validate.h"
#include "base/assert.h"
#include "base/error.h"
#include "google/protobuf/arena.h"
#include "temporal/api/command/v1/message.pb.h"
#include "temporal/api/enums/v1/command_type.pb.h"
#include "temporal/api/enums/v1/failed_cause.pb.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using google::protobuf::Arena;
using temporal::api::command::v1::Command;
using namespace temporal::api::enums::v1;
namespace history_api = temporal::api::history::v1;

absl::Status schedule_activity(Command& command, const Context& context, model::Event& draft) {
  auto& asked = *command.mutable_schedule_activity_task_command_attributes();
  const int64_t id_max = context.limits.id_bytes;
  FL_TRY(check_name(asked.activity_id(), "ActivityId", "ScheduleActivityTaskCommand", id_max));
  FL_TRY(check_name(asked.activity_type().name(), "ActivityType", "ScheduleActivityTaskCommand",
                    id_max));
  const std::string which = absl::StrCat(". ActivityId=", asked.activity_id(),
                                         " ActivityType=", asked.activity_type().name());
  // Without a name it is the workflow's queue, which the engine knows.
  if (!asked.task_queue().name().empty()) {
    FL_TRY(annotate(check_task_queue_name(asked.task_queue().name(), id_max),
                    "error validating ScheduleActivityTaskCommand: ", which));
  }
  FL_TRY(annotate(check_priority(asked.priority()), "invalid priorities: ", ""));
  FL_TRY(annotate(check_retry_policy(asked.retry_policy()),
                  "Invalid ActivityRetryPolicy for ScheduleActivityTaskCommand: ", which));

  draft.set_kind(model::ACTIVITY_SCHEDULED);
  auto& scheduled = *draft.mutable_activity_scheduled();
  const auto read = [&](const google::protobuf::Duration& timeout, const char* name,
                        auto set) -> absl::Status {
    const auto duration = read_duration(timeout);
    FL_TRY(annotate(duration.status(),
                    absl::StrCat("Invalid ", name, " for ScheduleActivityTaskCommand: "), which));
    (scheduled.*set)(*duration);
    return absl::OkStatus();
  };
  using Scheduled = model::ActivityScheduled;
  FL_TRY(read(asked.schedule_to_close_timeout(), "ScheduleToCloseTimeout",
              &Scheduled::set_schedule_to_close_ns));
  FL_TRY(read(asked.schedule_to_start_timeout(), "ScheduleToStartTimeout",
              &Scheduled::set_schedule_to_start_ns));
  FL_TRY(read(asked.start_to_close_timeout(), "StartToCloseTimeout",
              &Scheduled::set_start_to_close_ns));
  FL_TRY(read(asked.heartbeat_timeout(), "HeartbeatTimeout", &Scheduled::set_heartbeat_ns));
  if (scheduled.schedule_to_close_ns() == 0 && scheduled.start_to_close_ns() == 0) {
    return invalid_argument(
        absl::StrCat("A valid StartToClose or ScheduleToCloseTimeout is not set on "
                     "ScheduleActivityTaskCommand",
                     which));
  }
  FL_TRY(check_size(asked.input().ByteSizeLong(), context.limits.blob_bytes,
                    "ScheduleActivityTaskCommandAttributes.Input"));

  scheduled.set_activity_id(asked.activity_id());
  scheduled.set_activity_type(asked.activity_type().name());
  scheduled.set_task_queue(asked.task_queue().name());
  scheduled.set_eager(asked.request_eager_execution());
  if (asked.has_retry_policy()) {
    *scheduled.mutable_retry_policy() = read_retry_policy(asked.retry_policy());
  }
  if (asked.has_priority()) *scheduled.mutable_priority() = read_priority(asked.priority());
  auto& door = door_for<history_api::ActivityTaskScheduledEventAttributes>(command);
  door.unsafe_arena_set_allocated_header(asked.unsafe_arena_release_header());
  door.unsafe_arena_set_allocated_input(asked.unsafe_arena_release_input());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

absl::Status request_cancel_activity(Command& command, const Context& context,
                                     model::Event& draft) {
  const int64_t scheduled_id =
      command.request_cancel_activity_task_command_attributes().scheduled_event_id();
  if (scheduled_id <= 0) {
    return invalid_argument("ScheduledEventId is not set on RequestCancelActivityTaskCommand.");
  }
  draft.set_kind(model::ACTIVITY_CANCEL_REQUESTED);
  draft.mutable_activity_cancel_requested()->set_scheduled_id(scheduled_id);
  draft.mutable_activity_cancel_requested()->set_identity(context.identity);
  return absl::OkStatus();
}

absl::Status start_timer(Command& command, const Context& context, model::Event& draft) {
  const auto& asked = command.start_timer_command_attributes();
  FL_TRY(check_name(asked.timer_id(), "TimerId", "StartTimerCommand", context.limits.id_bytes));
  const auto duration = read_duration(asked.start_to_fire_timeout());
  FL_TRY(annotate(duration.status(), "An invalid StartToFireTimeout is set on StartTimerCommand: ",
                  absl::StrCat(". TimerId=", asked.timer_id())));
  draft.set_kind(model::TIMER_STARTED);
  draft.mutable_timer_started()->set_timer_id(asked.timer_id());
  draft.mutable_timer_started()->set_start_to_fire_ns(*duration);
  return absl::OkStatus();
}

absl::Status cancel_timer(Command& command, const Context& context, model::Event& draft) {
  const auto& asked = command.cancel_timer_command_attributes();
  FL_TRY(check_name(asked.timer_id(), "TimerId", "CancelTimerCommand", context.limits.id_bytes));
  draft.set_kind(model::TIMER_CANCELED);
  draft.mutable_timer_ended()->set_timer_id(asked.timer_id());
  draft.mutable_timer_ended()->set_identity(context.identity);
  return absl::OkStatus();
}

absl::Status complete_workflow(Command& command, const Context& context, model::Event& draft) {
  auto& asked = *command.mutable_complete_workflow_execution_command_attributes();
  FL_TRY(check_size(asked.result().ByteSizeLong(), context.limits.blob_bytes,
                    "CompleteWorkflowExecutionCommandAttributes.Result"));
  draft.set_kind(model::WORKFLOW_COMPLETED);
  draft.mutable_workflow_closed();
  auto& door = door_for<history_api::WorkflowExecutionCompletedEventAttributes>(command);
  door.unsafe_arena_set_allocated_result(asked.unsafe_arena_release_result());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

// What decides on a retry, without the text that the door's bytes hold already.
model::Failure retry_view(const temporal::api::failure::v1::Failure& failure) {
  auto view = read_failure(failure);
  view.clear_door();
  return view;
}

absl::Status fail_workflow(Command& command, const Context& context, model::Event& draft) {
  auto& asked = *command.mutable_fail_workflow_execution_command_attributes();
  if (!asked.has_failure()) {
    return invalid_argument("Failure is not set on FailWorkflowExecutionCommand.");
  }
  FL_TRY(check_size(asked.failure().ByteSizeLong(), context.limits.blob_bytes,
                    "FailWorkflowExecutionCommandAttributes.Failure"));
  draft.set_kind(model::WORKFLOW_FAILED);
  *draft.mutable_workflow_closed()->mutable_failure() = retry_view(asked.failure());
  auto& door = door_for<history_api::WorkflowExecutionFailedEventAttributes>(command);
  door.unsafe_arena_set_allocated_failure(asked.unsafe_arena_release_failure());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

absl::Status cancel_workflow(Command& command, const Context& context, model::Event& draft) {
  auto& asked = *command.mutable_cancel_workflow_execution_command_attributes();
  FL_TRY(check_size(asked.details().ByteSizeLong(), context.limits.blob_bytes,
                    "CancelWorkflowExecutionCommandAttributes.Details"));
  draft.set_kind(model::WORKFLOW_CANCELED);
  draft.mutable_workflow_closed();
  auto& door = door_for<history_api::WorkflowExecutionCanceledEventAttributes>(command);
  door.unsafe_arena_set_allocated_details(asked.unsafe_arena_release_details());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

absl::Status record_marker(Command& command, const Context& context, model::Event& draft) {
  auto& asked = *command.mutable_record_marker_command_attributes();
  FL_TRY(check_name(asked.marker_name(), "MarkerName", "RecordMarkerCommand",
                    context.limits.id_bytes));
  size_t bytes = 0;
  for (const auto& [name, payloads] : asked.details())
    bytes += name.size() + payloads.ByteSizeLong();
  FL_TRY(check_size(bytes, context.limits.blob_bytes, "RecordMarkerCommandAttributes.Details"));
  FL_TRY(check_size(asked.failure().ByteSizeLong(), context.limits.blob_bytes,
                    "RecordMarkerCommandAttributes.Failure"));
  draft.set_kind(model::MARKER_RECORDED);
  draft.mutable_command_recorded();
  auto& door = door_for<history_api::MarkerRecordedEventAttributes>(command);
  door.set_marker_name(asked.marker_name());
  door.mutable_details()->swap(*asked.mutable_details());
  door.unsafe_arena_set_allocated_header(asked.unsafe_arena_release_header());
  door.unsafe_arena_set_allocated_failure(asked.unsafe_arena_release_failure());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

// Both kinds of upsert: the event tells readers what was asked, `upserts` tells the engine what to
// keep.
absl::Status upsert_search_attributes(Command& command, const Context& context,
                                      model::Event& draft) {
  auto& asked = *command.mutable_upsert_workflow_search_attributes_command_attributes();
  if (asked.search_attributes().indexed_fields().empty()) {
    return invalid_argument(
        "SearchAttributes are not set on UpsertWorkflowSearchAttributesCommand.");
  }
  FL_TRY(check_search_attributes(*asked.mutable_search_attributes(), context.namespace_name));
  draft.set_kind(model::SEARCH_ATTRIBUTES_UPSERTED);
  note_upserts(asked.search_attributes().indexed_fields(),
               *draft.mutable_command_recorded()->mutable_upserts());
  auto& door = door_for<history_api::UpsertWorkflowSearchAttributesEventAttributes>(command);
  door.unsafe_arena_set_allocated_search_attributes(asked.unsafe_arena_release_search_attributes());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

absl::Status modify_properties(Command& command, const Context& context, model::Event& draft) {
  auto& asked = *command.mutable_modify_workflow_properties_command_attributes();
  if (asked.upserted_memo().fields().empty()) {
    return invalid_argument("UpsertedMemo is not set on ModifyWorkflowPropertiesCommand.");
  }
  FL_TRY(check_size(asked.upserted_memo().ByteSizeLong(), context.limits.memo_bytes,
                    "ModifyWorkflowPropertiesCommandAttributes.UpsertedMemo"));
  draft.set_kind(model::PROPERTIES_MODIFIED);
  note_upserts(asked.upserted_memo().fields(),
               *draft.mutable_command_recorded()->mutable_upserts());
  auto& door = door_for<history_api::WorkflowPropertiesModifiedEventAttributes>(command);
  door.unsafe_arena_set_allocated_upserted_memo(asked.unsafe_arena_release_upserted_memo());
  draft.set_door(door.SerializeAsString());
  return absl::OkStatus();
}

// Takes its message's place among the commands.
absl::Status protocol_message(Command& command, const Context& context, model::Event& draft) {
  const auto& id = command.protocol_message_command_attributes().message_id();
  if (id.empty()) return invalid_argument("MessageID is not set on ProtocolMessageCommand.");
  for (const auto& message : context.messages) {
    if (message.id() != id) continue;
    FL_TRY_ASSIGN(draft, read_update_answer(message));
    return absl::OkStatus();
  }
  return invalid_argument(absl::StrCat("ProtocolMessageCommand referenced absent message ID ", id));
}

using Read = absl::Status (*)(Command&, const Context&, model::Event&);

struct Kind {
  CommandType type;
  Command::AttributesCase attributes;
  WorkflowTaskFailedCause cause;  // when the command is wrong
  bool closes;                    // the workflow
  Read read;                      // null: not built
};

#define FL_CAUSE(name) WORKFLOW_TASK_FAILED_CAUSE_##name
#define FL_COMMAND(type, attributes) COMMAND_TYPE_##type, Command::k##attributes##CommandAttributes
constexpr std::array kKinds = {
    Kind{FL_COMMAND(SCHEDULE_ACTIVITY_TASK, ScheduleActivityTask),
         FL_CAUSE(BAD_SCHEDULE_ACTIVITY_ATTRIBUTES), false, schedule_activity},
    Kind{FL_COMMAND(REQUEST_CANCEL_ACTIVITY_TASK, RequestCancelActivityTask),
         FL_CAUSE(BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES), false, request_cancel_activity},
    Kind{FL_COMMAND(START_TIMER, StartTimer), FL_CAUSE(BAD_START_TIMER_ATTRIBUTES), false,
         start_timer},
    Kind{FL_COMMAND(CANCEL_TIMER, CancelTimer), FL_CAUSE(BAD_CANCEL_TIMER_ATTRIBUTES), false,
         cancel_timer},
    Kind{FL_COMMAND(COMPLETE_WORKFLOW_EXECUTION, CompleteWorkflowExecution),
         FL_CAUSE(BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES), true, complete_workflow},
    Kind{FL_COMMAND(FAIL_WORKFLOW_EXECUTION, FailWorkflowExecution),
         FL_CAUSE(BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES), true, fail_workflow},
    Kind{FL_COMMAND(CANCEL_WORKFLOW_EXECUTION, CancelWorkflowExecution),
         FL_CAUSE(BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES), true, cancel_workflow},
    Kind{FL_COMMAND(RECORD_MARKER, RecordMarker), FL_CAUSE(BAD_RECORD_MARKER_ATTRIBUTES), false,
         record_marker},
    Kind{FL_COMMAND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, UpsertWorkflowSearchAttributes),
         FL_CAUSE(BAD_SEARCH_ATTRIBUTES), false, upsert_search_attributes},
    Kind{FL_COMMAND(MODIFY_WORKFLOW_PROPERTIES, ModifyWorkflowProperties),
         FL_CAUSE(BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES), false, modify_properties},
    Kind{FL_COMMAND(CONTINUE_AS_NEW_WORKFLOW_EXECUTION, ContinueAsNewWorkflowExecution),
         FL_CAUSE(BAD_CONTINUE_AS_NEW_ATTRIBUTES), true, continue_as_new},
    Kind{FL_COMMAND(START_CHILD_WORKFLOW_EXECUTION, StartChildWorkflowExecution),
         FL_CAUSE(BAD_START_CHILD_EXECUTION_ATTRIBUTES), false, start_child},
    Kind{FL_COMMAND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION, SignalExternalWorkflowExecution),
         FL_CAUSE(BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES), false, signal_external},
    Kind{FL_COMMAND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION,
                    RequestCancelExternalWorkflowExecution),
         FL_CAUSE(BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES), false,
         cancel_external},
    Kind{FL_COMMAND(PROTOCOL_MESSAGE, ProtocolMessage),
         FL_CAUSE(BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE), false, protocol_message},
    Kind{FL_COMMAND(SCHEDULE_NEXUS_OPERATION, ScheduleNexusOperation),
         FL_CAUSE(BAD_SCHEDULE_NEXUS_OPERATION_ATTRIBUTES), false, nullptr},
    Kind{FL_COMMAND(REQUEST_CANCEL_NEXUS_OPERATION, RequestCancelNexusOperation),
         FL_CAUSE(BAD_REQUEST_CANCEL_NEXUS_OPERATION_ATTRIBUTES), false, nullptr},
};
#undef FL_COMMAND
#undef FL_CAUSE

const Kind* find_kind(CommandType type) {
  const auto* found = std::find_if(kKinds.begin(), kKinds.end(),
                                   [&](const Kind& kind) { return kind.type == type; });
  return found == kKinds.end() ? nullptr : found;
}

std::string name_of(const Kind& kind) {
  return short_name(CommandType_Name(kind.type), "COMMAND_TYPE_");
}

absl::Status read_command(const Kind& kind, Command& command, const Context& context,
                          model::Event& draft) {
  const std::string name = name_of(kind);
  if (kind.read == nullptr) {
    return invalid_argument(absl::StrCat(name, " is not implemented by this server"));
  }
  if (command.attributes_case() != kind.attributes) {
    return invalid_argument(
        absl::StrCat(name, "CommandAttributes is not set on ", name, "Command."));
  }
  FL_TRY(check_user_metadata(command.user_metadata()));
  if (command.command_type() == COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION) {
    // The child keeps it too, as the one that it was started with.
    draft.mutable_child_initiated()->set_user_metadata(command.user_metadata().SerializeAsString());
  }
  FL_TRY(kind.read(command, context, draft));
  auto& envelope = *Arena::CreateMessage<history_api::HistoryEvent>(command.GetArena());
  envelope.unsafe_arena_set_allocated_user_metadata(command.unsafe_arena_release_user_metadata());
  envelope.mutable_event_group_markers()->Swap(command.mutable_event_group_markers());
  draft.set_envelope(envelope.SerializeAsString());
  return absl::OkStatus();
}

// Messages that no command has placed, mostly rejections. A command that closes the run stays last.
void add_other_answers(const Commands& commands, const Context& context, Drafts* drafts) {
  std::vector<model::Event> others;
  for (const auto& message : context.messages) {
    const bool is_placed =
        std::any_of(commands.begin(), commands.end(), [&](const Command& command) {
          return command.protocol_message_command_attributes().message_id() == message.id();
        });
    if (is_placed) continue;
    auto draft = read_update_answer(message);
    if (!draft.ok()) {
      drafts->bad_command = shard::CommandError{
          .cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE,
          .message = absl::StrCat("BadUpdateWorkflowExecutionMessage: ", draft.status().message())};
      return;
    }
    others.push_back(*std::move(draft));
  }
  const bool closes =
      !commands.empty() && find_kind(commands[commands.size() - 1].command_type())->closes;
  drafts->events.insert(drafts->events.end() - (closes ? 1 : 0),
                        std::make_move_iterator(others.begin()),
                        std::make_move_iterator(others.end()));
}

}  // namespace

absl::Status check_sequence(const Commands& commands) {
  for (int i = 0; i < commands.size(); ++i) {
    const Kind* kind = find_kind(commands[i].command_type());
    if (kind == nullptr) {
      return invalid_argument(
          absl::StrCat("unknown command type: ", static_cast<int>(commands[i].command_type())));
    }
    if (kind->closes && i + 1 < commands.size()) {
      return invalid_argument(absl::StrCat("invalid command sequence: command ", name_of(*kind),
                                           " is number ", i + 1, " of ", commands.size(),
                                           " and must be the last command."));
    }
  }
  return absl::OkStatus();
}

Drafts read_commands(Commands& commands, const Context& context) {
  Drafts drafts;
  drafts.events.reserve(static_cast<size_t>(commands.size()));
  for (Command& command : commands) {
    FL_ASSERT(command.GetArena() != nullptr,
              "commands give their parts away, which needs an arena");
    const Kind* kind = find_kind(command.command_type());
    FL_ASSERT(kind != nullptr, "the sequence was not checked");
    model::Event draft;
    const absl::Status status = read_command(*kind, command, context, draft);
    if (!status.ok()) {
      const std::string cause =
          short_name(WorkflowTaskFailedCause_Name(kind->cause), "WORKFLOW_TASK_FAILED_CAUSE_");
      drafts.bad_command =
          shard::CommandError{.cause = kind->cause,
                              .message = absl::StrCat(cause, ": ", status.message()),
                              .terminates = absl::IsResourceExhausted(status)};
      return drafts;
    }
    drafts.events.push_back(std::move(draft));
  }
  add_other_answers(commands, context, &drafts);
  return drafts;
}

}  // namespace fairlead::api
