#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using testing::kFailedPrecondition;
using testing::kInvalidArgument;
using testing::kOk;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;
using namespace temporal::api::enums::v1;
using temporal::api::failure::v1::Failure;
namespace history_api = temporal::api::history::v1;

class TaskTest : public ServiceTest {
 protected:
  RespondWorkflowTaskCompletedRequest completion(const std::string& text = "") {
    auto request = from_text<RespondWorkflowTaskCompletedRequest>("identity: 'me' " + text);
    request.set_task_token(encode_token(token()));
    return request;
  }
};

// sdk_metadata holds the flags that replay branches on. Lose it and workflows break much later, on
// another machine.
TEST_F(TaskTest, TheCompletedEventKeepsWhatTheWorkerSaid) {
  auto request = completion(R"(
      binary_checksum: "sum" worker_version_stamp { build_id: "b" }
      sdk_metadata { core_used_flags: 1 lang_used_flags: 3 sdk_name: "go" }
      metering_metadata { nonfirst_local_activity_execution_attempts: 2 }
      sticky_attributes { worker_task_queue { name: "sticky" }
                          schedule_to_start_timeout { seconds: 5 } }
      force_create_new_workflow_task: true return_new_workflow_task: true
      query_results { key: "q" value {
        result_type: QUERY_RESULT_TYPE_ANSWERED answer { payloads { data: "r" } } } }
      commands { command_type: COMMAND_TYPE_START_TIMER
                 start_timer_command_attributes { timer_id: "1" } })");
  const auto made = call("RespondWorkflowTaskCompleted", request);
  EXPECT_EQ(made->status.code, kOk);
  EXPECT_EQ(made->answer, "");
  const auto& completed = engine.completions.requests.at(0);
  EXPECT_EQ(completed.token.scheduled_id, 2);
  EXPECT_EQ(completed.identity, "me");
  EXPECT_EQ(completed.build.build_id(), "b");
  EXPECT_EQ(completed.build.binary_checksum(), "sum");
  EXPECT_TRUE(completed.force_new_task);
  EXPECT_TRUE(completed.return_new_task);
  EXPECT_FALSE(completed.bad_command.has_value());
  expect_same(*completed.sticky,
              from_text<model::StickyState>("name: 'sticky' schedule_to_start_ns: 5000000000"));
  ASSERT_EQ(completed.commands.size(), 1u);
  ASSERT_EQ(completed.query_answers.size(), 1u);
  EXPECT_EQ(completed.query_answers[0].first, "q");
  EXPECT_TRUE(completed.query_answers[0].second.answered);
  using Attributes = history_api::WorkflowTaskCompletedEventAttributes;
  expect_same(parse<Attributes>(completed.door), from_text<Attributes>(R"(
      identity: "me" binary_checksum: "sum" worker_version { build_id: "b" }
      sdk_metadata { core_used_flags: 1 lang_used_flags: 3 sdk_name: "go" }
      metering_metadata { nonfirst_local_activity_execution_attempts: 2 })"));
}

TEST_F(TaskTest, VersionedWorkersLeaveTheirVersion) {
  call("RespondWorkflowTaskCompleted", completion(R"(
      versioning_behavior: VERSIONING_BEHAVIOR_PINNED
      deployment_options { deployment_name: "shop" build_id: "7"
                           worker_versioning_mode: WORKER_VERSIONING_MODE_VERSIONED })"));
  using Attributes = history_api::WorkflowTaskCompletedEventAttributes;
  expect_same(parse<Attributes>(engine.completions.requests.at(0).door), from_text<Attributes>(R"(
      identity: "me" versioning_behavior: VERSIONING_BEHAVIOR_PINNED
      worker_deployment_version: "shop.7" worker_deployment_name: "shop"
      deployment_version { build_id: "7" deployment_name: "shop" })"));
}

TEST_F(TaskTest, WithoutStickyAttributesTheRunIsNotSticky) {
  call("RespondWorkflowTaskCompleted", completion());
  call("RespondWorkflowTaskCompleted", completion("sticky_attributes { }"));
  EXPECT_FALSE(engine.completions.requests.at(0).sticky.has_value());
  EXPECT_FALSE(engine.completions.requests.at(1).sticky.has_value());
}

// The worker's mistake fails the workflow task, so the engine has to hear of it.
TEST_F(TaskTest, AWrongCommandIsToldToTheEngine) {
  engine.completions.result = errors::invalid_argument("BadStartTimerAttributes: …");
  const auto made = call("RespondWorkflowTaskCompleted", completion(R"(
      commands { command_type: COMMAND_TYPE_START_TIMER start_timer_command_attributes { } })"));
  EXPECT_EQ(made->status.code, kInvalidArgument);
  EXPECT_EQ(engine.completions.requests.at(0).bad_command->message,
            "BadStartTimerAttributes: TimerId is not set on StartTimerCommand.");
  call("RespondWorkflowTaskCompleted", completion("messages { id: 'm' }"));
  EXPECT_EQ(engine.completions.requests.at(1).bad_command->cause,
            WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE);
}

TEST_F(TaskTest, ANewTaskInTheAnswerGoesBackIfItDoesNotArrive) {
  engine.completions.result->new_task = shard::WorkflowTask{.token = token()};
  const auto made = call("RespondWorkflowTaskCompleted", completion());
  const auto response = parse<RespondWorkflowTaskCompletedResponse>(made->answer);
  EXPECT_EQ(response.workflow_task().workflow_execution().workflow_id(), "order-1");
  made->delivered(false);
  EXPECT_EQ(engine.returned_workflow_tasks.size(), 1u);
}

TEST_F(TaskTest, RefusesWhatLeavesTheTaskAlone) {
  using Request = RespondWorkflowTaskCompletedRequest;
  expect_refusals<Request>(
      "RespondWorkflowTaskCompleted", completion(),
      {{[](auto& r) { r.clear_task_token(); }, kInvalidArgument, "Task token not set on request."},
       {[](auto& r) { r.set_identity(std::string(1001, 'i')); }, kInvalidArgument,
        "Identity length exceeds limit."},
       {[](auto& r) { r.add_commands(); }, kInvalidArgument, "unknown command type: 0"},
       {[](auto& r) { r.set_page_number(1); }, kFailedPrecondition,
        "pages of a workflow task completion are not accepted by this server"},
       {[](auto& r) { r.set_versioning_behavior(VERSIONING_BEHAVIOR_PINNED); }, kInvalidArgument,
        "versioning behavior set without deployment options being set with versioned mode"},
       {[](auto& r) {
          r.mutable_sticky_attributes()->mutable_worker_task_queue()->set_name("s");
          r.mutable_sticky_attributes()->mutable_schedule_to_start_timeout()->set_seconds(-1);
        },
        kInvalidArgument,
        "An invalid ScheduleToStartTimeout is set on request: negative duration"}});
}

TEST_F(TaskTest, AFailedTask) {
  auto request = from_text<RespondWorkflowTaskFailedRequest>(R"(
      namespace: "default" identity: "me" binary_checksum: "sum"
      cause: WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
      failure { message: "m" application_failure_info { type: "T" } })");
  request.set_task_token(encode_token(token()));
  EXPECT_EQ(call("RespondWorkflowTaskFailed", request)->status.code, kOk);
  const auto& failed = engine.failed_tasks.requests.at(0);
  EXPECT_EQ(failed.cause, WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR);
  EXPECT_EQ(failed.identity, "me");
  EXPECT_EQ(parse<Failure>(failed.failure.door()).message(), "m");
  using Attributes = history_api::WorkflowTaskFailedEventAttributes;
  expect_same(parse<Attributes>(failed.door), from_text<Attributes>("binary_checksum: 'sum'"));

  request.mutable_failure()->set_stack_trace(std::string(2 << 20, 's'));
  call("RespondWorkflowTaskFailed", request);
  EXPECT_LE(engine.failed_tasks.requests.at(1).failure.door().size(), 4096u);
}

class ActivityTest : public ServiceTest {
 protected:
  template <typename Request>
  Request by_token(const std::string& text) {
    auto request = from_text<Request>("identity: 'me' " + text);
    request.set_task_token(encode_token(token()));
    return request;
  }
  static constexpr const char* kById =
      "namespace: 'default' workflow_id: 'w' activity_id: 'a' identity: 'me' ";
};

TEST_F(ActivityTest, OutcomesByToken) {
  call("RespondActivityTaskCompleted",
       by_token<RespondActivityTaskCompletedRequest>("result { payloads { data: 'r' } }"));
  const auto& completed = engine.completed_activities.requests.at(0);
  EXPECT_EQ(completed.token.scheduled_id, 2);
  EXPECT_EQ(completed.identity, "me");
  using Completed = history_api::ActivityTaskCompletedEventAttributes;
  expect_same(parse<Completed>(completed.door),
              from_text<Completed>("result { payloads { data: 'r' } }"));

  call("RespondActivityTaskCanceled",
       by_token<RespondActivityTaskCanceledRequest>("details { payloads { data: 'd' } }"));
  using Canceled = history_api::ActivityTaskCanceledEventAttributes;
  expect_same(parse<Canceled>(engine.canceled_activities.requests.at(0).door),
              from_text<Canceled>("details { payloads { data: 'd' } }"));

  call("RespondActivityTaskFailed", by_token<RespondActivityTaskFailedRequest>(R"(
      failure { message: "m" application_failure_info { type: "Full" } }
      last_heartbeat_details { payloads { data: "h" } })"));
  EXPECT_EQ(engine.failed_activities.requests.at(0).failure.type(), "Full");
  EXPECT_TRUE(engine.failed_activities.requests[0].heartbeat_details.has_value());

  engine.heartbeats.result = shard::HeartbeatResult{.cancel_requested = true};
  EXPECT_TRUE(succeed<RecordActivityTaskHeartbeatResponse>(
                  "RecordActivityTaskHeartbeat",
                  by_token<RecordActivityTaskHeartbeatRequest>("details { payloads { } }"))
                  .cancel_requested());
}

TEST_F(ActivityTest, OutcomesById) {
  using Request = RespondActivityTaskCompletedByIdRequest;
  call("RespondActivityTaskCompletedById", from_text<Request>(kById));
  const auto& token = engine.completed_activities.requests.at(0).token;
  EXPECT_EQ(token.ns, NamespaceNum(7));
  EXPECT_EQ(token.workflow_id, "w");
  EXPECT_EQ(token.run_id, "");
  EXPECT_EQ(token.activity_id, "a");
  EXPECT_EQ(token.scheduled_id, 0);
  call("RespondActivityTaskFailedById", from_text<RespondActivityTaskFailedByIdRequest>(kById));
  EXPECT_EQ(engine.failed_activities.requests.at(0).token.activity_id, "a");
  call("RespondActivityTaskCanceledById", from_text<RespondActivityTaskCanceledByIdRequest>(kById));
  EXPECT_EQ(engine.canceled_activities.requests.at(0).token.activity_id, "a");
  call("RecordActivityTaskHeartbeatById", from_text<RecordActivityTaskHeartbeatByIdRequest>(kById));
  EXPECT_EQ(engine.heartbeats.requests.at(0).token.activity_id, "a");

  expect_refusals<Request>(
      "RespondActivityTaskCompletedById", from_text<Request>(kById),
      {{[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
       {[](auto& r) { r.clear_activity_id(); }, kInvalidArgument,
        "ActivityId is not set on request."},
       {[](auto& r) { r.set_run_id("x"); }, kInvalidArgument, "Invalid RunId."}});
}

TEST_F(ActivityTest, WithoutAWorkflowIdTheActivityIsARunOfItsOwn) {
  auto request = from_text<RespondActivityTaskCompletedByIdRequest>(kById);
  request.clear_workflow_id();
  call("RespondActivityTaskCompletedById", request);
  ASSERT_EQ(engine.completed_activities.requests.size(), 1u);
  const auto& asked = engine.completed_activities.requests[0].token;
  EXPECT_EQ(asked.workflow_id, request.activity_id());
  EXPECT_EQ(asked.activity_id, request.activity_id());
  EXPECT_EQ(asked.flavour, model::STANDALONE);
}

TEST_F(ActivityTest, AFailureOfAWorkerIsAnApplicationFailure) {
  const auto made = call("RespondActivityTaskFailed",
                         by_token<RespondActivityTaskFailedRequest>("failure { message: 'm' }"));
  EXPECT_EQ(made->status.message, "Failure must have ApplicationFailureInfo.");
  EXPECT_EQ(engine.asked, 0);
}

// Retrying the call would send the same bytes again, so the activity ends here.
TEST_F(ActivityTest, OutcomesThatAreTooLargeFailTheActivity) {
  const std::string blob(2 << 20, 'b');
  auto completed = by_token<RespondActivityTaskCompletedRequest>("");
  completed.mutable_result()->add_payloads()->set_data(blob);
  EXPECT_EQ(call("RespondActivityTaskCompleted", completed)->status.code, kOk);
  EXPECT_TRUE(engine.completed_activities.requests.empty());
  expect_same(engine.failed_activities.requests.at(0).failure, from_text<model::Failure>(R"(
      kind: SERVER non_retryable: true message: "Complete result exceeds size limit.")"));

  auto canceled = by_token<RespondActivityTaskCanceledRequest>("");
  canceled.mutable_details()->add_payloads()->set_data(blob);
  call("RespondActivityTaskCanceled", canceled);
  EXPECT_EQ(engine.failed_activities.requests.at(1).failure.message(),
            "Cancel details exceed size limit.");

  auto beat = by_token<RecordActivityTaskHeartbeatRequest>("");
  beat.mutable_details()->add_payloads()->set_data(blob);
  EXPECT_TRUE(succeed<RecordActivityTaskHeartbeatResponse>("RecordActivityTaskHeartbeat", beat)
                  .cancel_requested());
  EXPECT_TRUE(engine.heartbeats.requests.at(0).oversize);
  EXPECT_EQ(engine.heartbeats.requests[0].details, "");

  auto failed = by_token<RespondActivityTaskFailedRequest>(
      "failure { message: 'm' application_failure_info { type: 'Full' } }");
  failed.mutable_failure()->set_stack_trace(blob);
  failed.mutable_last_heartbeat_details()->add_payloads()->set_data(blob);
  const auto response =
      succeed<RespondActivityTaskFailedResponse>("RespondActivityTaskFailed", failed);
  ASSERT_EQ(response.failures_size(), 2);
  EXPECT_EQ(response.failures(0).message(), "Heartbeat details exceed size limit.");
  EXPECT_EQ(response.failures(1).message(), "Failure exceeds size limit.");
  const auto& kept = engine.failed_activities.requests.at(2);
  EXPECT_FALSE(kept.heartbeat_details.has_value());
  EXPECT_EQ(kept.failure.kind(), model::Failure::SERVER);
  EXPECT_TRUE(kept.failure.non_retryable());
  EXPECT_LE(kept.failure.door().size(), 5000u);
}

}  // namespace
}  // namespace fairlead::api
