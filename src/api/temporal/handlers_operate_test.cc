#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "temporal/api/history/v1/message.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using testing::kInvalidArgument;
using testing::kOk;
using testing::kRunId;
using testing::kUnimplemented;
using testing::ServiceTest;
using By = history::ActivitySelector::By;
using namespace temporal::api::workflowservice::v1;
using temporal::api::activity::v1::ActivityOptions;
using temporal::api::workflow::v1::WorkflowExecutionOptions;
namespace history_api = temporal::api::history::v1;

constexpr char kOldNames[] =
    "namespace: 'default' execution { workflow_id: 'order-1' } identity: 'ada' ";
constexpr char kNewNames[] =
    "namespace: 'default' workflow_id: 'order-1' activity_id: 'a' identity: 'ada' ";

template <typename Request>
Request older(const std::string& text = "id: 'a'") {
  return from_text<Request>(kOldNames + text);
}
template <typename Request>
Request newer(const std::string& text = "") {
  return from_text<Request>(kNewNames + text);
}

class OperateTest : public ServiceTest {
 protected:
  void expect_a(const shard::RunRef& run, const history::ActivitySelector& which) {
    EXPECT_EQ(run.ns, NamespaceNum(7));
    EXPECT_EQ(run.workflow_id, "order-1");
    EXPECT_EQ(which.by, By::kId);
    EXPECT_EQ(which.name, "a");
  }
  // The change that a mask makes of these options.
  history::ActivityChange change(const std::string& options, const std::vector<std::string>& mask) {
    auto request = older<UpdateActivityOptionsRequest>();
    *request.mutable_activity_options() = from_text<ActivityOptions>(options);
    for (const auto& path : mask) request.mutable_update_mask()->add_paths(path);
    request.mutable_update_mask();
    const auto made = call("UpdateActivityOptions", request);
    EXPECT_EQ(made->status.code, kOk) << made->status.message;
    return engine.activity_changes.requests.back().change.value();
  }
};

TEST_F(OperateTest, PauseKeepsWhoAndWhyInBothForms) {
  call("PauseActivity", older<PauseActivityRequest>("id: 'a' reason: 'deploy' request_id: 'r'"));
  call("PauseActivityExecution",
       newer<PauseActivityExecutionRequest>("reason: 'deploy' request_id: 'r'"));
  ASSERT_EQ(engine.pauses.requests.size(), 2u);
  for (const auto& asked : engine.pauses.requests) {
    expect_a(asked.run, asked.which);
    expect_same(asked.pause, from_text<model::ActivityPause>(
                                 "identity: 'ada' reason: 'deploy' request_id: 'r'"));
  }
}

TEST_F(OperateTest, TheOlderFormAlsoChoosesByTypeOrAll) {
  call("PauseActivity", older<PauseActivityRequest>("type: 'charge'"));
  EXPECT_EQ(engine.pauses.requests.at(0).which.by, By::kType);
  EXPECT_EQ(engine.pauses.requests.at(0).which.name, "charge");
  call("UnpauseActivity", older<UnpauseActivityRequest>("unpause_all: true"));
  EXPECT_EQ(engine.unpauses.requests.at(0).which.by, By::kAll);
  call("ResetActivity", older<ResetActivityRequest>("match_all: true"));
  EXPECT_EQ(engine.resets.requests.at(0).which.by, By::kAll);
  call("UpdateActivityOptions",
       older<UpdateActivityOptionsRequest>("match_all: true restore_original: true"));
  EXPECT_EQ(engine.activity_changes.requests.at(0).which.by, By::kAll);
  EXPECT_FALSE(engine.activity_changes.requests.at(0).change.has_value());
}

TEST_F(OperateTest, UnpauseAndResetSayHow) {
  call("UnpauseActivity",
       older<UnpauseActivityRequest>("id: 'a' reset_attempts: true jitter { seconds: 3 }"));
  const auto& unpause = engine.unpauses.requests.at(0);
  EXPECT_TRUE(unpause.how.reset_attempts);
  EXPECT_FALSE(unpause.how.reset_heartbeat);
  EXPECT_EQ(unpause.jitter, 3 * kSecond);
  call("UnpauseActivityExecution", newer<UnpauseActivityExecutionRequest>("jitter { seconds: 4 }"));
  expect_a(engine.unpauses.requests.at(1).run, engine.unpauses.requests.at(1).which);
  EXPECT_EQ(engine.unpauses.requests.at(1).jitter, 4 * kSecond);

  call("ResetActivity", older<ResetActivityRequest>("id: 'a' keep_paused: true"));
  call("ResetActivityExecution", newer<ResetActivityExecutionRequest>(
                                     "reset_heartbeat: true restore_original_options: true"));
  EXPECT_TRUE(engine.resets.requests.at(0).how.keep_paused);
  EXPECT_FALSE(engine.resets.requests.at(0).how.restore_options);
  EXPECT_TRUE(engine.resets.requests.at(1).how.reset_heartbeat);
  EXPECT_TRUE(engine.resets.requests.at(1).how.restore_options);
}

TEST_F(OperateTest, RefusesWhatNamesNoActivity) {
  expect_refusals<PauseActivityRequest>(
      "PauseActivity", older<PauseActivityRequest>(),
      {{[](auto& r) { r.mutable_execution()->clear_workflow_id(); }, kInvalidArgument,
        "WorkflowId is not set on request."},
       {[](auto& r) { r.mutable_execution()->set_run_id("x"); }, kInvalidArgument,
        "Invalid RunId."},
       {[](auto& r) { r.clear_activity(); }, kInvalidArgument,
        "Either Activity.Id or Activity.Type should be set on request."},
       {[](auto& r) { r.set_reason(std::string(1001, 'r')); }, kInvalidArgument,
        "Reason length exceeds limit."},
       {[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."}});
  expect_refusals<ResetActivityExecutionRequest>(
      "ResetActivityExecution", newer<ResetActivityExecutionRequest>(),
      {{[](auto& r) { r.clear_activity_id(); }, kInvalidArgument,
        "ActivityId is not set on request."},
       {[](auto& r) { r.mutable_jitter()->set_seconds(-1); }, kInvalidArgument,
        "An invalid Jitter is set on request: negative duration"}});
}

TEST_F(OperateTest, WithoutAWorkflowIdTheActivityIsARunOfItsOwn) {
  auto request = newer<ResetActivityExecutionRequest>();
  request.clear_workflow_id();
  call("ResetActivityExecution", request);
  ASSERT_EQ(engine.resets.requests.size(), 1u);
  EXPECT_EQ(engine.resets.requests[0].run.workflow_id, request.activity_id());
  EXPECT_EQ(engine.resets.requests[0].run.flavour, model::STANDALONE);
}

// Heartbeats are how a running attempt hears of it.
TEST_F(OperateTest, AHeartbeatTellsOfPauseAndReset) {
  RecordActivityTaskHeartbeatRequest request;
  request.set_task_token(encode_token(token()));
  engine.heartbeats.result = shard::HeartbeatResult{.is_paused = true};
  expect_same(succeed<RecordActivityTaskHeartbeatResponse>("RecordActivityTaskHeartbeat", request),
              from_text<RecordActivityTaskHeartbeatResponse>("activity_paused: true"));
  engine.heartbeats.result = shard::HeartbeatResult{.is_reset = true};
  expect_same(succeed<RecordActivityTaskHeartbeatResponse>("RecordActivityTaskHeartbeat", request),
              from_text<RecordActivityTaskHeartbeatResponse>("activity_reset: true"));
}

TEST_F(OperateTest, OnlyWhatTheMaskNamesIsChanged) {
  const std::string options = R"(
      task_queue { name: "q" } schedule_to_close_timeout { seconds: 4 }
      start_to_close_timeout { seconds: 2 } heartbeat_timeout { seconds: 1 }
      retry_policy { initial_interval { seconds: 5 } maximum_attempts: 6 }
      priority { priority_key: 1 fairness_key: "acme" fairness_weight: 2 })";
  EXPECT_FALSE(change(options, {}).task_queue.has_value());
  const auto some = change(options, {"task_queue.name", "start_to_close_timeout",
                                     "retry_policy.maximum_attempts", "priority.fairness_key"});
  EXPECT_EQ(some.task_queue, "q");
  EXPECT_EQ(some.start_to_close, 2 * kSecond);
  EXPECT_FALSE(some.schedule_to_close.has_value());
  EXPECT_FALSE(some.heartbeat.has_value());
  EXPECT_EQ(some.retry.maximum_attempts, 6);
  EXPECT_FALSE(some.retry.initial_interval.has_value());
  EXPECT_EQ(some.priority.fairness_key, "acme");
  EXPECT_FALSE(some.priority.priority_key.has_value());

  const auto whole = change(options, {"retry_policy", "priority", "scheduleToCloseTimeout"});
  EXPECT_EQ(whole.retry.initial_interval, 5 * kSecond);
  EXPECT_EQ(whole.retry.maximum_interval, 0);
  EXPECT_TRUE(whole.retry.non_retryable_error_types->empty());
  EXPECT_EQ(whole.priority.priority_key, 1);
  EXPECT_EQ(whole.priority.fairness_weight, 2.0F);
  EXPECT_EQ(whole.schedule_to_close, 4 * kSecond);
}

TEST_F(OperateTest, WhatIsNamedAndNotSetGoesBackToItsDefault) {
  const auto cleared = change("", {"heartbeat_timeout", "priority"});
  EXPECT_EQ(cleared.heartbeat, 0);
  EXPECT_EQ(cleared.priority.fairness_key, "");
}

TEST_F(OperateTest, RefusesOptionsThatSayTooLittleOrTooMuch) {
  using Request = UpdateActivityOptionsRequest;
  const auto masked = [](const char* path) {
    return [path](Request& r) { r.mutable_update_mask()->add_paths(path); };
  };
  expect_refusals<Request>(
      "UpdateActivityOptions",
      older<Request>("id: 'a' activity_options { heartbeat_timeout { seconds: 1 } } "
                     "update_mask { paths: 'heartbeat_timeout' }"),
      {{[](auto& r) { r.clear_update_mask(); }, kInvalidArgument, "UpdateMask is not provided"},
       {[](auto& r) { r.clear_activity_options(); }, kInvalidArgument,
        "ActivityOptions are not provided"},
       {[](auto& r) { r.set_restore_original(true); }, kInvalidArgument,
        "Both UpdateMask and RestoreOriginal are provided"},
       {masked("task_queue.name"), kInvalidArgument, "TaskQueue is not provided"},
       {masked("retry_policy.maximum_attempts"), kInvalidArgument, "RetryPolicy is not provided"},
       {masked("priority.priority_key"), kInvalidArgument, "Priority is not provided"},
       {masked("start_delay"), kInvalidArgument,
        "UpdateMask names \"start_delay\", which is no option of an activity that can change"},
       {[](auto& r) { r.mutable_activity_options()->mutable_heartbeat_timeout()->set_seconds(-1); },
        kInvalidArgument, "An invalid HeartbeatTimeout is set on request: negative duration"},
       {[](auto& r) {
          r.mutable_activity_options()->mutable_task_queue()->set_name("/_sys/x");
          r.mutable_update_mask()->add_paths("task_queue.name");
        },
        kInvalidArgument, "task queue name cannot start with reserved prefix /_sys/"},
       {[](auto& r) { r.mutable_activity_options()->mutable_priority()->set_priority_key(-1); },
        kInvalidArgument, "priority key can't be negative"}});
}

TEST_F(OperateTest, TheAnswerHasTheOptionsInForce) {
  engine.activity_changes.result = from_text<model::ActivityScheduled>(R"(
      activity_id: "a" activity_type: "charge" task_queue: "q" start_to_close_ns: 2000000000
      retry_policy { maximum_attempts: 3 } priority { fairness_key: "acme" })");
  const auto response = succeed<UpdateActivityExecutionOptionsResponse>(
      "UpdateActivityExecutionOptions",
      newer<UpdateActivityExecutionOptionsRequest>("restore_original: true"));
  expect_same(response.activity_options(), from_text<ActivityOptions>(R"(
      task_queue { name: "q" kind: TASK_QUEUE_KIND_NORMAL } schedule_to_close_timeout { }
      schedule_to_start_timeout { } start_to_close_timeout { seconds: 2 } heartbeat_timeout { }
      retry_policy { maximum_attempts: 3 } priority { fairness_key: "acme" })"));
}

// --- UpdateWorkflowExecutionOptions and DeleteWorkflowExecution

UpdateWorkflowExecutionOptionsRequest options_request(const std::string& text) {
  return from_text<UpdateWorkflowExecutionOptionsRequest>(
      "namespace: 'default' workflow_execution { workflow_id: 'order-1' } identity: 'ada' " + text);
}

TEST_F(OperateTest, APriorityIsChangedAsAWholeOrInPart) {
  engine.option_changes.result = from_text<model::Priority>("priority_key: 2");
  const auto response = succeed<UpdateWorkflowExecutionOptionsResponse>(
      "UpdateWorkflowExecutionOptions",
      options_request("workflow_execution_options { priority { priority_key: 2 } } "
                      "update_mask { paths: 'priority' }"));
  expect_same(response, from_text<UpdateWorkflowExecutionOptionsResponse>(
                            "workflow_execution_options { priority { priority_key: 2 } }"));
  const auto& whole = engine.option_changes.requests.at(0);
  EXPECT_EQ(whole.run.workflow_id, "order-1");
  EXPECT_EQ(whole.priority.priority_key, 2);
  EXPECT_EQ(whole.priority.fairness_key, "");
  using Attributes = history_api::WorkflowExecutionOptionsUpdatedEventAttributes;
  expect_same(parse<Attributes>(whole.door),
              from_text<Attributes>("identity: 'ada' unset_versioning_override: true"));
  // Older SDKs fail on an event that they do not know and may not ignore.
  EXPECT_TRUE(parse<history_api::HistoryEvent>(whole.envelope).worker_may_ignore());

  call("UpdateWorkflowExecutionOptions",
       options_request("workflow_execution_options { priority { fairness_weight: 3 } } "
                       "update_mask { paths: 'priority.fairness_weight' }"));
  const auto& part = engine.option_changes.requests.at(1);
  EXPECT_EQ(part.priority.fairness_weight, 3.0F);
  EXPECT_FALSE(part.priority.priority_key.has_value());
}

// There is no override, so taking it away is nothing; setting one would be a promise.
TEST_F(OperateTest, AnOverrideCanOnlyBeTakenAway) {
  const auto made = call("UpdateWorkflowExecutionOptions",
                         options_request("workflow_execution_options { } "
                                         "update_mask { paths: 'versioning_override' }"));
  EXPECT_EQ(made->status.code, kOk) << made->status.message;
  EXPECT_FALSE(engine.option_changes.requests.at(0).priority.priority_key.has_value());
}

TEST_F(OperateTest, RefusesWorkflowOptionsThatAreNotThere) {
  using Request = UpdateWorkflowExecutionOptionsRequest;
  expect_refusals<Request>(
      "UpdateWorkflowExecutionOptions",
      options_request("workflow_execution_options { priority { priority_key: 2 } } "
                      "update_mask { paths: 'priority' }"),
      {{[](auto& r) { r.clear_update_mask(); }, kInvalidArgument, "UpdateMask is required"},
       {[](auto& r) { r.clear_workflow_execution_options(); }, kInvalidArgument,
        "WorkflowExecutionOptions is required"},
       {[](auto& r) { r.clear_workflow_execution(); }, kInvalidArgument,
        "WorkflowId is not set on request."},
       {[](auto& r) { r.mutable_update_mask()->add_paths("nonsense"); }, kInvalidArgument,
        "error parsing UpdateMask: proto: invalid path \"nonsense\" for message "
        "\"temporal.api.workflow.v1.WorkflowExecutionOptions\""},
       {[](auto& r) {
          r.mutable_workflow_execution_options()->mutable_priority()->set_priority_key(-2);
        },
        kInvalidArgument, "priority key can't be negative"},
       {[](auto& r) {
          r.mutable_workflow_execution_options()->mutable_versioning_override();
          r.mutable_update_mask()->add_paths("versioning_override");
        },
        kUnimplemented, "versioning overrides are not implemented by this server"},
       {[](auto& r) { r.mutable_update_mask()->add_paths("time_skipping_config"); }, kUnimplemented,
        "time skipping is not implemented by this server"}});
}

TEST_F(OperateTest, DeleteNamesTheRun) {
  using Request = DeleteWorkflowExecutionRequest;
  auto request =
      from_text<Request>("namespace: 'default' workflow_execution { workflow_id: 'order-1' }");
  request.mutable_workflow_execution()->set_run_id(kRunId);
  expect_refusals<Request>("DeleteWorkflowExecution", request,
                           {{[](auto& r) { r.clear_workflow_execution(); }, kInvalidArgument,
                             "Execution is not set on request."},
                            {[](auto& r) { r.mutable_workflow_execution()->clear_workflow_id(); },
                             kInvalidArgument, "WorkflowId is not set on request."}});
  EXPECT_EQ(engine.deletes.requests.at(0).workflow_id, "order-1");
  EXPECT_EQ(engine.deletes.requests.at(0).run_id, kRunId);
}

}  // namespace
}  // namespace fairlead::api
