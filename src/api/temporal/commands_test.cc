#include "api/temporal/commands.h"

#include "api/temporal/proto_testing.h"
#include "google/protobuf/arena.h"
#include "gtest/gtest.h"
#include "temporal/api/command/v1/message.pb.h"
#include "temporal/api/enums/v1/failed_cause.pb.h"
#include "temporal/api/history/v1/message.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest;
using namespace temporal::api::history::v1;
using namespace temporal::api::enums::v1;

constexpr CommandLimits kLimits{.id_bytes = 10, .blob_bytes = 100, .memo_bytes = 100};

Drafts read_all(Commands& commands) {
  return read_commands(commands,
                       {"default", "ns-1", "order-1", "run-1", "worker@host", kLimits, {}});
}

Drafts read(const std::string& text) {
  google::protobuf::Arena arena;
  auto* request =
      google::protobuf::Arena::CreateMessage<RespondWorkflowTaskCompletedRequest>(&arena);
  request->CopyFrom(from_text<RespondWorkflowTaskCompletedRequest>(text));
  EXPECT_TRUE(check_sequence(request->commands()).ok());
  return read_all(*request->mutable_commands());
}

model::Event read_one(const std::string& text) {
  auto drafts = read("commands {" + text + "}");
  EXPECT_FALSE(drafts.bad_command.has_value()) << drafts.bad_command->message;
  return drafts.events.size() == 1 ? drafts.events[0] : model::Event();
}

// An attribute of the API's event is either known to the engine or in the door's bytes, never in
// neither: a field that falls between the two is lost for good.
TEST(Commands, ScheduleActivity) {
  const auto draft = read_one(R"(
      command_type: COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK
      user_metadata { summary { data: "pay" } }
      event_group_markers { label { id: "g" } }
      schedule_activity_task_command_attributes {
        activity_id: "1" activity_type { name: "Pay" } task_queue { name: "fast" }
        header { fields { key: "h" value { data: "x" } } }
        input { payloads { data: "in" } }
        schedule_to_close_timeout { seconds: 9 } start_to_close_timeout { seconds: 3 }
        heartbeat_timeout { seconds: 1 } schedule_to_start_timeout { seconds: 2 }
        retry_policy { initial_interval { seconds: 2 } maximum_attempts: 4
                       non_retryable_error_types: "Full" }
        priority { priority_key: 2 fairness_key: "acme" fairness_weight: 3 } })");
  expect_same(draft.activity_scheduled(), from_text<model::ActivityScheduled>(R"(
      activity_id: "1" activity_type: "Pay" task_queue: "fast"
      schedule_to_close_ns: 9000000000 schedule_to_start_ns: 2000000000
      start_to_close_ns: 3000000000 heartbeat_ns: 1000000000
      retry_policy { initial_interval_ns: 2000000000 maximum_attempts: 4
                     non_retryable_error_types: "Full" }
      priority { priority_key: 2 fairness_key: "acme" fairness_weight: 3 })"));
  EXPECT_EQ(draft.kind(), model::ACTIVITY_SCHEDULED);
  expect_same(parse<ActivityTaskScheduledEventAttributes>(draft.door()),
              from_text<ActivityTaskScheduledEventAttributes>(R"(
      header { fields { key: "h" value { data: "x" } } } input { payloads { data: "in" } })"));
  expect_same(parse<HistoryEvent>(draft.envelope()), from_text<HistoryEvent>(R"(
      user_metadata { summary { data: "pay" } } event_group_markers { label { id: "g" } })"));
}

TEST(Commands, WhatTheEngineKnowsWholeHasNoDoor) {
  auto draft = read_one(R"(
      command_type: COMMAND_TYPE_START_TIMER
      start_timer_command_attributes { timer_id: "5" start_to_fire_timeout { seconds: 1 } })");
  expect_same(draft, from_text<model::Event>(
                         R"(kind: TIMER_STARTED timer_started { timer_id: "5"
                            start_to_fire_ns: 1000000000 })"));
  draft = read_one(R"(command_type: COMMAND_TYPE_CANCEL_TIMER
                      cancel_timer_command_attributes { timer_id: "5" })");
  expect_same(draft, from_text<model::Event>(
                         R"(kind: TIMER_CANCELED
                            timer_ended { timer_id: "5" identity: "worker@host" })"));
  draft = read_one(R"(command_type: COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK
                      request_cancel_activity_task_command_attributes { scheduled_event_id: 5 })");
  expect_same(draft, from_text<model::Event>(
                         R"(kind: ACTIVITY_CANCEL_REQUESTED
                            activity_cancel_requested { scheduled_id: 5 identity: "worker@host" })"));
}

TEST(Commands, ClosingCommandsCarryTheirOutcomeInTheDoor) {
  auto draft = read_one(R"(
      command_type: COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION
      complete_workflow_execution_command_attributes { result { payloads { data: "r" } } })");
  EXPECT_EQ(draft.kind(), model::WORKFLOW_COMPLETED);
  EXPECT_TRUE(draft.has_workflow_closed());
  expect_same(
      parse<WorkflowExecutionCompletedEventAttributes>(draft.door()),
      from_text<WorkflowExecutionCompletedEventAttributes>(R"(result { payloads { data: "r" } })"));
  draft = read_one(R"(
      command_type: COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION
      fail_workflow_execution_command_attributes { failure { message: "m" } })");
  EXPECT_EQ(draft.kind(), model::WORKFLOW_FAILED);
  expect_same(parse<WorkflowExecutionFailedEventAttributes>(draft.door()),
              from_text<WorkflowExecutionFailedEventAttributes>(R"(failure { message: "m" })"));
  draft = read_one(R"(
      command_type: COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION
      cancel_workflow_execution_command_attributes { details { payloads { data: "d" } } })");
  EXPECT_EQ(draft.kind(), model::WORKFLOW_CANCELED);
  expect_same(
      parse<WorkflowExecutionCanceledEventAttributes>(draft.door()),
      from_text<WorkflowExecutionCanceledEventAttributes>(R"(details { payloads { data: "d" } })"));
}

TEST(Commands, Markers) {
  const auto draft = read_one(R"(
      command_type: COMMAND_TYPE_RECORD_MARKER
      record_marker_command_attributes {
        marker_name: "Version" details { key: "id" value { payloads { data: "1" } } }
        header { fields { key: "h" value { data: "x" } } } failure { message: "m" } })");
  EXPECT_EQ(draft.kind(), model::MARKER_RECORDED);
  EXPECT_TRUE(draft.has_command_recorded());
  expect_same(parse<MarkerRecordedEventAttributes>(draft.door()),
              from_text<MarkerRecordedEventAttributes>(R"(
      marker_name: "Version" details { key: "id" value { payloads { data: "1" } } }
      header { fields { key: "h" value { data: "x" } } } failure { message: "m" })"));
}

// The engine keeps the merged result without understanding payloads, so "remove" is said in its own
// way: no bytes.
TEST(Commands, UpsertsTellTheEngineWhatToKeep) {
  using temporal::api::common::v1::Payload;
  auto draft = read_one(R"(
      command_type: COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES
      modify_workflow_properties_command_attributes { upserted_memo {
        fields { key: "kept" value { metadata { key: "encoding" value: "json/plain" } data: "1" } }
        fields { key: "gone" value { metadata { key: "encoding" value: "binary/null" } } } } })");
  EXPECT_EQ(draft.kind(), model::PROPERTIES_MODIFIED);
  EXPECT_EQ(draft.command_recorded().upserts().at("gone"), "");
  EXPECT_EQ(parse<Payload>(draft.command_recorded().upserts().at("kept")).data(), "1");
  EXPECT_EQ(
      parse<WorkflowPropertiesModifiedEventAttributes>(draft.door()).upserted_memo().fields_size(),
      2);
  draft = read_one(R"(
      command_type: COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
      upsert_workflow_search_attributes_command_attributes { search_attributes {
        indexed_fields { key: "TemporalChangeVersion" value {
          metadata { key: "encoding" value: "json/plain" } data: "[\"a-1\"]" } } } })");
  EXPECT_EQ(draft.kind(), model::SEARCH_ATTRIBUTES_UPSERTED);
  const auto kept = parse<Payload>(draft.command_recorded().upserts().at("TemporalChangeVersion"));
  EXPECT_EQ(kept.metadata().at("type"), "KeywordList");
  expect_same(kept, parse<UpsertWorkflowSearchAttributesEventAttributes>(draft.door())
                        .search_attributes()
                        .indexed_fields()
                        .at("TemporalChangeVersion"));
}

// An SDK newer than this server sends fields that this build of the API does not know. They are the
// user's data and come back in history.
TEST(Commands, UnknownFieldsInsidePayloadsSurvive) {
  google::protobuf::Arena arena;
  auto* request =
      google::protobuf::Arena::CreateMessage<RespondWorkflowTaskCompletedRequest>(&arena);
  auto* command = request->add_commands();
  command->set_command_type(COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION);
  auto* result =
      command->mutable_complete_workflow_execution_command_attributes()->mutable_result();
  result->GetReflection()->MutableUnknownFields(result)->AddVarint(77, 5);
  const auto drafts = read_all(*request->mutable_commands());
  WorkflowExecutionCompletedEventAttributes door;
  ASSERT_TRUE(door.ParseFromString(drafts.events.at(0).door()));
  const auto& unknown = door.result().GetReflection()->GetUnknownFields(door.result());
  ASSERT_EQ(unknown.field_count(), 1);
  EXPECT_EQ(unknown.field(0).number(), 77);
}

struct BadCommand {
  std::string text;
  WorkflowTaskFailedCause cause;
  std::string message;
  bool terminates = false;
};

TEST(Commands, WrongOnesNameTheirCause) {
  const std::string activity = R"(command_type: COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK
      schedule_activity_task_command_attributes { start_to_close_timeout { seconds: 1 } )";
  const std::string named = activity + R"(activity_id: "1" activity_type { name: "Pay" } )";
  const std::string blob(101, 'b');
  const std::string long_id(11, 'i');
  const auto kBadActivity = WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES;
  const std::string bad = "BadScheduleActivityAttributes: ";
  const std::vector<BadCommand> cases = {
      {"command_type: COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK", kBadActivity,
       bad + "ScheduleActivityTaskCommandAttributes is not set on ScheduleActivityTaskCommand."},
      {activity + "}", kBadActivity, bad + "ActivityId is not set on ScheduleActivityTaskCommand."},
      {activity + "activity_id: '1' }", kBadActivity,
       bad + "ActivityType is not set on ScheduleActivityTaskCommand."},
      {activity + "activity_id: '" + long_id + "' }", kBadActivity,
       bad + "ActivityId on ScheduleActivityTaskCommand exceeds length limit. Length=11 Limit=10"},
      {named + "task_queue { name: '/_sys/q' } }", kBadActivity,
       bad + "error validating ScheduleActivityTaskCommand: task queue name cannot start with "
             "reserved prefix /_sys/. ActivityId=1 ActivityType=Pay"},
      {named + "priority { priority_key: -1 } }", kBadActivity,
       bad + "invalid priorities: priority key can't be negative"},
      {named + "retry_policy { backoff_coefficient: 0.1 } }", kBadActivity,
       bad + "Invalid ActivityRetryPolicy for ScheduleActivityTaskCommand: BackoffCoefficient "
             "cannot be less than 1 on retry policy.. ActivityId=1 ActivityType=Pay"},
      {named + "heartbeat_timeout { seconds: -1 } }", kBadActivity,
       bad + "Invalid HeartbeatTimeout for ScheduleActivityTaskCommand: negative duration. "
             "ActivityId=1 ActivityType=Pay"},
      {"command_type: COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK "
       "schedule_activity_task_command_attributes { activity_id: '1' activity_type { name: 'Pay' } "
       "heartbeat_timeout { seconds: 1 } }",
       kBadActivity,
       bad + "A valid StartToClose or ScheduleToCloseTimeout is not set on "
             "ScheduleActivityTaskCommand. ActivityId=1 ActivityType=Pay"},
      {named + "input { payloads { data: '" + blob + "' } } }", kBadActivity,
       bad + "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.", true},
      {"command_type: COMMAND_TYPE_START_TIMER start_timer_command_attributes { }",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES,
       "BadStartTimerAttributes: TimerId is not set on StartTimerCommand."},
      {"command_type: COMMAND_TYPE_START_TIMER start_timer_command_attributes { timer_id: '1' "
       "start_to_fire_timeout { seconds: -1 } }",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES,
       "BadStartTimerAttributes: An invalid StartToFireTimeout is set on StartTimerCommand: "
       "negative duration. TimerId=1"},
      {"command_type: COMMAND_TYPE_CANCEL_TIMER cancel_timer_command_attributes { }",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_TIMER_ATTRIBUTES,
       "BadCancelTimerAttributes: TimerId is not set on CancelTimerCommand."},
      {"command_type: COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK "
       "request_cancel_activity_task_command_attributes { }",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES,
       "BadRequestCancelActivityAttributes: ScheduledEventId is not set on "
       "RequestCancelActivityTaskCommand."},
      {"command_type: COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION "
       "fail_workflow_execution_command_attributes { }",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES,
       "BadFailWorkflowExecutionAttributes: Failure is not set on FailWorkflowExecutionCommand."},
      {"command_type: COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION "
       "complete_workflow_execution_command_attributes { result { payloads { data: '" +
           blob + "' } } }",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES,
       "BadCompleteWorkflowExecutionAttributes: "
       "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.",
       true},
      {"command_type: COMMAND_TYPE_RECORD_MARKER record_marker_command_attributes { }",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_RECORD_MARKER_ATTRIBUTES,
       "BadRecordMarkerAttributes: MarkerName is not set on RecordMarkerCommand."},
      {"command_type: COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES "
       "upsert_workflow_search_attributes_command_attributes { search_attributes { "
       "indexed_fields { key: 'Colour' value { data: '1' } } } }",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES,
       "BadSearchAttributes: Namespace default has no mapping defined for search attribute "
       "Colour"},
      {"command_type: COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES,
       "BadStartChildExecutionAttributes: StartChildWorkflowExecutionCommandAttributes is not set "
       "on StartChildWorkflowExecutionCommand."},
      {R"(command_type: COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION
          start_child_workflow_execution_command_attributes { workflow_type { name: "Ship" } })",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES,
       "BadStartChildExecutionAttributes: WorkflowId is not set on "
       "StartChildWorkflowExecutionCommand."},
      {R"(command_type: COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION
          start_child_workflow_execution_command_attributes { namespace: "other" })",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES,
       "BadStartChildExecutionAttributes: cross namespace commands are not allowed"},
      {R"(command_type: COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION
          continue_as_new_workflow_execution_command_attributes { cron_schedule: "* *" })",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_CONTINUE_AS_NEW_ATTRIBUTES,
       "BadContinueAsNewAttributes: Invalid CronSchedule for "
       "ContinueAsNewWorkflowExecutionCommand: invalid CronSchedule. expected exactly 5 fields, "
       "found 2"},
      {R"(command_type: COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION
          signal_external_workflow_execution_command_attributes { signal_name: "go"
            execution { workflow_id: "w" run_id: "nonsense" } })",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES,
       "BadSignalWorkflowExecutionAttributes: Invalid RunId set on "
       "SignalExternalWorkflowExecutionCommand: Invalid RunId."},
      {"command_type: COMMAND_TYPE_PROTOCOL_MESSAGE",
       WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE,
       "BadUpdateWorkflowExecutionMessage: ProtocolMessageCommandAttributes is not set on "
       "ProtocolMessageCommand."},
  };
  for (const auto& bad_command : cases) {
    const auto drafts = read("commands { " + bad_command.text + " }");
    ASSERT_TRUE(drafts.bad_command.has_value()) << bad_command.text;
    EXPECT_EQ(drafts.bad_command->message, bad_command.message);
    EXPECT_EQ(drafts.bad_command->cause, bad_command.cause) << bad_command.message;
    EXPECT_EQ(drafts.bad_command->terminates, bad_command.terminates) << bad_command.message;
  }
}

TEST(Commands, DraftsStopBeforeTheWrongOne) {
  const auto drafts = read(R"(
      commands { command_type: COMMAND_TYPE_START_TIMER
                 start_timer_command_attributes { timer_id: "1" } }
      commands { command_type: COMMAND_TYPE_START_TIMER start_timer_command_attributes { } }
      commands { command_type: COMMAND_TYPE_START_TIMER
                 start_timer_command_attributes { timer_id: "3" } })");
  EXPECT_EQ(drafts.events.size(), 1u);
  EXPECT_TRUE(drafts.bad_command.has_value());
}

TEST(Commands, AnImpossibleSequenceIsTheCallersMistake) {
  const auto check = [](const char* text) {
    const auto request = from_text<RespondWorkflowTaskCompletedRequest>(text);
    return std::string(check_sequence(request.commands()).message());
  };
  EXPECT_EQ(check("commands { command_type: COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION } "
                  "commands { command_type: COMMAND_TYPE_START_TIMER }"),
            "invalid command sequence: command CompleteWorkflowExecution is number 1 of 2 and must "
            "be the last command.");
  EXPECT_EQ(check("commands { }"), "unknown command type: 0");
  EXPECT_EQ(check("commands { command_type: 99 }"), "unknown command type: 99");
  EXPECT_EQ(check("commands { command_type: COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION }"),
            "");
}

}  // namespace
}  // namespace fairlead::api
