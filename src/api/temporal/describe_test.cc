#include <gtest/gtest.h>

#include "api/temporal/answers.h"
#include "api/temporal/proto_testing.h"
#include "base/time.h"
#include "temporal/api/common/v1/message.pb.h"
#include "temporal/api/failure/v1/message.pb.h"
#include "temporal/api/sdk/v1/user_metadata.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

namespace enums = temporal::api::enums::v1;
using temporal::api::common::v1::Payload;
using temporal::api::common::v1::Payloads;
using temporal::api::workflow::v1::PendingActivityInfo;
using temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse;

static_assert(int{model::RUNNING} == int{enums::WORKFLOW_EXECUTION_STATUS_RUNNING});
static_assert(int{model::COMPLETED} == int{enums::WORKFLOW_EXECUTION_STATUS_COMPLETED});
static_assert(int{model::FAILED} == int{enums::WORKFLOW_EXECUTION_STATUS_FAILED});
static_assert(int{model::CANCELED} == int{enums::WORKFLOW_EXECUTION_STATUS_CANCELED});
static_assert(int{model::TERMINATED} == int{enums::WORKFLOW_EXECUTION_STATUS_TERMINATED});
static_assert(int{model::CONTINUED_AS_NEW} ==
              int{enums::WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW});
static_assert(int{model::TIMED_OUT} == int{enums::WORKFLOW_EXECUTION_STATUS_TIMED_OUT});

DescribeWorkflowExecutionResponse describe(const shard::RunView& view) {
  return parse<DescribeWorkflowExecutionResponse>(encode_describe(view));
}

shard::RunView open_run() {
  shard::RunView view;
  view.run = from_text<model::RunState>(R"(
      workflow_id: "w" run_id: "r" first_run_id: "f" workflow_type: "order" task_queue: "q"
      execution_timeout_ns: 60000000000 run_timeout_ns: 30000000000 task_timeout_ns: 10000000000
      start_ns: 100000000000 execution_ns: 105000000000
      execution_expiration_ns: 160000000000 run_expiration_ns: 130000000000
      status: RUNNING next_event_id: 12 history_bytes: 345 state_transitions: 6
      cancel_requested: true start_request_id: "q1" priority { priority_key: 2 }
      workflow_task { scheduled_id: 10 started_id: 11 attempt: 2 scheduled_ns: 107000000000
        original_scheduled_ns: 106000000000 started_ns: 108000000000 })");
  const auto payload = bytes_of<Payload>("data: '1'");
  (*view.run.mutable_memo())["m"] = payload;
  (*view.run.mutable_search_attributes())["s"] = payload;
  view.run.set_user_metadata(
      bytes_of<temporal::api::sdk::v1::UserMetadata>("summary { data: 'hello' }"));
  return view;
}

TEST(Describe, PointsToWhichARunCanBeReset) {
  auto view = open_run();
  *view.run.mutable_reset_points() = from_text<model::RunState>(R"(
      reset_points { build { build_id: "b" } run_id: "before" completed_id: 4
        created_ns: 5000000000 expires_ns: 6000000000 is_resettable: true }
      reset_points { build { binary_checksum: "c" } completed_id: 7 created_ns: 8000000000 })")
                                         .reset_points();
  expect_same(describe(view).workflow_execution_info().auto_reset_points(),
              from_text<temporal::api::workflow::v1::ResetPoints>(R"(
      points { build_id: "b" run_id: "before" first_workflow_task_completed_id: 4
        create_time { seconds: 5 } expire_time { seconds: 6 } resettable: true }
      points { binary_checksum: "c" run_id: "r" first_workflow_task_completed_id: 7
        create_time { seconds: 8 } })"));

  view.run.set_next_run_id("after");
  view.run.set_delete_at_ns(9 * kSecond);
  const auto points = describe(view).workflow_execution_info().auto_reset_points();
  EXPECT_EQ(points.points(0).expire_time().seconds(), 6) << "that of the run before";
  EXPECT_EQ(points.points(1).expire_time().seconds(), 9);
}

TEST(Describe, AnOpenRunWithEverything) {
  expect_same(describe(open_run()), from_text<DescribeWorkflowExecutionResponse>(R"(
      execution_config {
        task_queue { name: "q" kind: TASK_QUEUE_KIND_NORMAL }
        workflow_execution_timeout { seconds: 60 } workflow_run_timeout { seconds: 30 }
        default_workflow_task_timeout { seconds: 10 } user_metadata { summary { data: "hello" } } }
      workflow_execution_info {
        execution { workflow_id: "w" run_id: "r" } type { name: "order" }
        start_time { seconds: 100 } execution_time { seconds: 105 }
        status: WORKFLOW_EXECUTION_STATUS_RUNNING history_length: 11
        memo { fields { key: "m" value { data: "1" } } }
        search_attributes { indexed_fields { key: "s" value { data: "1" } } }
        auto_reset_points {}
        task_queue: "q" state_transition_count: 6 history_size_bytes: 345
        root_execution { workflow_id: "w" run_id: "r" } first_run_id: "f"
        priority { priority_key: 2 } }
      pending_workflow_task {
        state: PENDING_WORKFLOW_TASK_STATE_STARTED scheduled_time { seconds: 107 }
        original_scheduled_time { seconds: 106 } started_time { seconds: 108 } attempt: 2 }
      workflow_extended_info {
        execution_expiration_time { seconds: 160 } run_expiration_time { seconds: 130 }
        cancel_requested: true original_start_time { seconds: 100 }
        request_id_infos { key: "q1"
          value { event_type: EVENT_TYPE_WORKFLOW_EXECUTION_STARTED event_id: 1 } } })"));
}

// Memo and search attributes are messages that callers look into without asking.
TEST(Describe, ARunWithoutMemoStillHasTheMessages) {
  shard::RunView view;
  view.run =
      from_text<model::RunState>("workflow_id: 'w' run_id: 'r' status: RUNNING next_event_id: 1");
  const auto answer = describe(view);
  EXPECT_TRUE(answer.workflow_execution_info().has_memo());
  EXPECT_TRUE(answer.workflow_execution_info().has_search_attributes());
  EXPECT_FALSE(answer.execution_config().has_workflow_run_timeout());
  EXPECT_TRUE(answer.execution_config().has_default_workflow_task_timeout());
  EXPECT_FALSE(answer.execution_config().has_user_metadata());
  EXPECT_FALSE(answer.has_pending_workflow_task());
  EXPECT_FALSE(answer.workflow_execution_info().has_priority());
  EXPECT_FALSE(answer.workflow_execution_info().has_close_time());
  EXPECT_FALSE(answer.workflow_extended_info().has_run_expiration_time());
  EXPECT_EQ(answer.workflow_extended_info().request_id_infos_size(), 0);
}

// Tools look at what a workflow was doing when it was terminated.
TEST(Describe, AClosedRunHasAnEndAndWhatWasPendingThen) {
  auto view = open_run();
  view.run.set_status(model::COMPLETED);
  view.run.set_close_ns(112'000'000'000);
  view.activities.emplace_back();
  const auto answer = describe(view);
  EXPECT_EQ(answer.pending_activities_size(), 1);
  EXPECT_TRUE(answer.has_pending_workflow_task());
  EXPECT_EQ(answer.workflow_execution_info().close_time().seconds(), 112);
  EXPECT_EQ(answer.workflow_execution_info().execution_duration().seconds(), 7);
}

TEST(Describe, ARunTerminatedDuringItsStartDelayTookNoTime) {
  auto view = open_run();
  view.run.set_status(model::TERMINATED);
  view.run.set_close_ns(101'000'000'000);
  const auto info = describe(view).workflow_execution_info();
  EXPECT_TRUE(info.has_execution_duration());
  EXPECT_EQ(info.execution_duration().seconds(), 0);
}

TEST(Describe, CallbacksAndTheRequestsThatBroughtThem) {
  auto view = open_run();
  view.callbacks.push_back(from_text<model::CallbackState>(R"(
      number: 1 registered_ns: 100000000000 stage: BACKING_OFF attempts: 2 due_ns: 130000000000
      attempt_ended_ns: 120000000000 failure: "busy")"));
  view.callbacks[0].set_door(
      bytes_of<temporal::api::common::v1::Callback>("nexus { url: 'https://ear' }"));
  view.callbacks.push_back(from_text<model::CallbackState>(R"(
      number: 2 registered_ns: 100000000000 stage: FAILED attempts: 1
      attempt_ended_ns: 120000000000 failure: "no")"));
  view.requests.push_back(from_text<model::AttachedRequest>("request_id: 'q2' event_id: 7"));
  view.requests.push_back(from_text<model::AttachedRequest>("request_id: 'q3'"));
  const auto answer = describe(view);
  ASSERT_EQ(answer.callbacks_size(), 2);
  expect_same(answer.callbacks(0), from_text<temporal::api::workflow::v1::CallbackInfo>(R"(
      callback { nexus { url: "https://ear" } } trigger { workflow_closed {} }
      registration_time { seconds: 100 } state: CALLBACK_STATE_BACKING_OFF attempt: 2
      last_attempt_complete_time { seconds: 120 }
      last_attempt_failure { message: "busy" application_failure_info {} }
      next_attempt_schedule_time { seconds: 130 })"));
  EXPECT_EQ(answer.callbacks(1).state(), enums::CALLBACK_STATE_FAILED);
  EXPECT_TRUE(
      answer.callbacks(1).last_attempt_failure().application_failure_info().non_retryable());
  const auto& ids = answer.workflow_extended_info().request_id_infos();
  EXPECT_EQ(ids.at("q1").event_id(), 1);
  EXPECT_EQ(ids.at("q2").event_id(), 7);
  EXPECT_EQ(ids.at("q2").event_type(), enums::EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED);
  EXPECT_FALSE(ids.at("q2").buffered());
  EXPECT_TRUE(ids.at("q3").buffered());
}

PendingActivityInfo describe_activity(const model::ActivityState& activity) {
  auto view = open_run();
  view.activities.push_back(activity);
  return describe(view).pending_activities(0);
}

TEST(Describe, AnActivityThatRuns) {
  auto activity = from_text<model::ActivityState>(R"(
      scheduled { activity_id: "a" activity_type: "charge" task_queue: "aq"
        schedule_to_close_ns: 40000000000 schedule_to_start_ns: 3000000000
        start_to_close_ns: 2000000000 heartbeat_ns: 1000000000
        retry_policy { maximum_attempts: 9 } priority { fairness_key: "acme" } }
      first_scheduled_ns: 200000000000 scheduled_ns: 210000000000 started_ns: 211000000000
      started_identity: "now" last_worker_identity: "before" attempt: 3
      heartbeat_ns: 212000000000 last_attempt_complete_ns: 205000000000)");
  activity.set_heartbeat_details(bytes_of<Payloads>("payloads { data: 'half' }"));
  activity.mutable_last_failure()->set_door(
      bytes_of<temporal::api::failure::v1::Failure>("message: 'no' source: 'GoSDK'"));
  expect_same(describe_activity(activity), from_text<PendingActivityInfo>(R"(
      activity_id: "a" activity_type { name: "charge" } state: PENDING_ACTIVITY_STATE_STARTED
      heartbeat_details { payloads { data: "half" } } last_heartbeat_time { seconds: 212 }
      last_started_time { seconds: 211 } attempt: 3 maximum_attempts: 9
      scheduled_time { seconds: 210 } expiration_time { seconds: 240 }
      last_failure { message: "no" source: "GoSDK" } last_worker_identity: "now"
      last_attempt_complete_time { seconds: 205 } priority { fairness_key: "acme" }
      activity_options {
        task_queue { name: "aq" kind: TASK_QUEUE_KIND_NORMAL }
        schedule_to_close_timeout { seconds: 40 } schedule_to_start_timeout { seconds: 3 }
        start_to_close_timeout { seconds: 2 } heartbeat_timeout { seconds: 1 }
        retry_policy { maximum_attempts: 9 } priority { fairness_key: "acme" } })"));
}

// "When will it try again?" is the question people come with.
TEST(Describe, AnActivityThatBacksOffSaysWhenItTriesAgain) {
  const auto info = describe_activity(from_text<model::ActivityState>(R"(
      scheduled { activity_id: "a" } scheduled_ns: 210000000000 attempt: 2 backing_off: true
      last_worker_identity: "before" last_attempt_complete_ns: 206000000000)"));
  EXPECT_EQ(info.state(), enums::PENDING_ACTIVITY_STATE_SCHEDULED);
  EXPECT_EQ(info.current_retry_interval().seconds(), 4);
  EXPECT_EQ(info.next_attempt_schedule_time().seconds(), 210);
  EXPECT_EQ(info.last_worker_identity(), "before");
  EXPECT_FALSE(info.has_last_started_time());
  EXPECT_FALSE(info.has_expiration_time());
}

TEST(Describe, AnActivityThatWaitsIsOnItsFirstAttempt) {
  const auto info = describe_activity(
      from_text<model::ActivityState>("scheduled { activity_id: 'a' } scheduled_ns: 210000000000"));
  EXPECT_EQ(info.state(), enums::PENDING_ACTIVITY_STATE_SCHEDULED);
  EXPECT_EQ(info.attempt(), 1);
  EXPECT_FALSE(info.has_current_retry_interval());
  EXPECT_FALSE(info.has_next_attempt_schedule_time());
  EXPECT_FALSE(info.has_last_failure());
}

// The first thing an operator looks at: is it paused, by whom, and does a worker still have it?
TEST(Describe, APausedActivitySaysWhoPausedItAndHasNoNextAttempt) {
  auto activity = from_text<model::ActivityState>(R"(
      scheduled { activity_id: "a" } scheduled_ns: 210000000000 attempt: 2 backing_off: true
      pause { since_ns: 208000000000 identity: "ada" reason: "deploy" request_id: "r" })");
  auto info = describe_activity(activity);
  EXPECT_EQ(info.state(), enums::PENDING_ACTIVITY_STATE_PAUSED);
  EXPECT_TRUE(info.paused());
  EXPECT_FALSE(info.has_next_attempt_schedule_time());
  EXPECT_FALSE(info.has_current_retry_interval());
  expect_same(info.pause_info(), from_text<PendingActivityInfo::PauseInfo>(R"(
      pause_time { seconds: 208 } manual { identity: "ada" reason: "deploy" })"));
  activity.set_started_ns(211'000'000'000);
  info = describe_activity(activity);
  EXPECT_EQ(info.state(), enums::PENDING_ACTIVITY_STATE_PAUSE_REQUESTED);
  EXPECT_TRUE(info.paused());
}

TEST(Describe, ACancelRequestShowsEvenWhileTheActivityRuns) {
  const auto info = describe_activity(from_text<model::ActivityState>(
      "scheduled { activity_id: 'a' } started_ns: 211000000000 cancel_requested: true"));
  EXPECT_EQ(info.state(), enums::PENDING_ACTIVITY_STATE_CANCEL_REQUESTED);
}

}  // namespace
}  // namespace fairlead::api
