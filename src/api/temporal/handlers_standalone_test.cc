#include "api/temporal/codec.h"
#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "temporal/api/errordetails/v1/message.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using testing::kAlreadyExists;
using testing::kInvalidArgument;
using testing::kRunId;
using testing::kUnimplemented;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;
using temporal::api::activity::v1::ActivityExecutionOutcome;
using temporal::api::history::v1::ActivityTaskScheduledEventAttributes;

class StandaloneTest : public ServiceTest {
 protected:
  using Request = StartActivityExecutionRequest;

  static Request valid() {
    return from_text<Request>(R"(
        namespace: "default" activity_id: "pay-1" activity_type { name: "Pay" }
        task_queue { name: "payments" } request_id: "r-1" identity: "me"
        start_to_close_timeout { seconds: 10 })");
  }

  template <typename Named>
  static Named named(const char* more = "") {
    auto request = from_text<Named>(R"(namespace: "default" activity_id: "pay-1")");
    request.MergeFrom(from_text<Named>(more));
    return request;
  }

  // How the engine shows such an activity that a worker has.
  static shard::RunView view() {
    shard::RunView view;
    view.run.set_workflow_id("pay-1");
    view.run.set_run_id(kRunId);
    view.run.set_flavour(model::STANDALONE);
    view.run.set_status(model::RUNNING);
    view.run.set_start_ns(testing::kNow);
    view.run.set_execution_ns(testing::kNow);
    view.run.set_state_transitions(2);
    model::ActivityState activity;
    activity.set_attempt(1);
    activity.set_started_ns(testing::kNow);
    activity.set_last_worker_identity("worker");
    activity.mutable_scheduled()->set_activity_type("Pay");
    activity.set_heartbeat_details(
        from_text<temporal::api::common::v1::Payloads>("payloads { data: 'half' }")
            .SerializeAsString());
    view.activities.push_back(activity);
    model::Event scheduled;
    scheduled.set_kind(model::ACTIVITY_SCHEDULED);
    scheduled.mutable_activity_scheduled()->set_activity_id("pay-1");
    scheduled.set_door(
        from_text<ActivityTaskScheduledEventAttributes>("input { payloads { data: 'in' } }")
            .SerializeAsString());
    TemporalCodec().append_event(scheduled, &view.scheduled_event);
    return view;
  }

  static std::string ended(model::EventKind kind, const model::ActivityEnded& how) {
    model::Event event;
    event.set_kind(kind);
    *event.mutable_activity_ended() = how;
    std::string framed;
    TemporalCodec().append_event(event, &framed);
    return framed;
  }
};

TEST_F(StandaloneTest, AStartBecomesARunOfItsOwn) {
  engine.starts.result = shard::StartResult{kRunId, kRunId, true, model::RUNNING};
  auto request = valid();
  request.MergeFrom(from_text<Request>(R"(
      input { payloads { data: "in" } } header { fields { key: "h" value { data: "x" } } }
      start_delay { seconds: 3 } priority { priority_key: 1 fairness_key: "acme" }
      id_reuse_policy: ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE
      id_conflict_policy: ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING)"));
  expect_same(succeed<StartActivityExecutionResponse>("StartActivityExecution", request),
              from_text<StartActivityExecutionResponse>(R"(
      run_id: "01890a5d-ac96-774b-bcce-b302099a8057" started: true
      link { activity { namespace: "default" activity_id: "pay-1"
                        run_id: "01890a5d-ac96-774b-bcce-b302099a8057" } })"));
  ASSERT_EQ(engine.starts.requests.size(), 1u);
  const auto& start = engine.starts.requests[0];
  EXPECT_EQ(start.flavour, model::STANDALONE);
  EXPECT_EQ(start.workflow_id, "pay-1");
  EXPECT_EQ(start.request_id, "r-1");
  EXPECT_EQ(start.start_delay, 3 * kSecond);
  EXPECT_EQ(start.reuse, shard::ReusePolicy::kRejectDuplicate);
  EXPECT_EQ(start.conflict, shard::ConflictPolicy::kUseExisting);
  ASSERT_TRUE(start.activity.has_value());
  const auto& scheduled = start.activity->activity_scheduled();
  EXPECT_EQ(scheduled.activity_type(), "Pay");
  EXPECT_EQ(scheduled.task_queue(), "payments");
  EXPECT_EQ(scheduled.start_to_close_ns(), 10 * kSecond);
  EXPECT_EQ(scheduled.priority().fairness_key(), "acme");
  EXPECT_EQ(scheduled.retry_policy().initial_interval_ns(), kSecond) << "defaults are filled in";
}

TEST_F(StandaloneTest, ASpoiledStartIsRefused) {
  expect_refusals<Request>(
      "StartActivityExecution", valid(),
      {{[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
       {[](auto& r) { r.clear_activity_id(); }, kInvalidArgument, "activityId is not set"},
       {[](auto& r) { r.clear_activity_type(); }, kInvalidArgument, "activityType is not set"},
       {[](auto& r) { r.clear_task_queue(); }, kInvalidArgument, "missing task queue name"},
       {[](auto& r) { r.clear_start_to_close_timeout(); }, kInvalidArgument,
        "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. "
        "ActivityId=pay-1 ActivityType=Pay"},
       {[](auto& r) { r.mutable_heartbeat_timeout()->set_seconds(-1); }, kInvalidArgument,
        "invalid HeartbeatTimeout: negative duration"},
       {[](auto& r) { r.mutable_start_delay()->set_seconds(-1); }, kInvalidArgument,
        "invalid StartDelay: negative duration"},
       {[](auto& r) { r.mutable_priority()->set_priority_key(-1); }, kInvalidArgument,
        "invalid priorities: priority key can't be negative"},
       {[](auto& r) { r.set_request_id(std::string(1001, 'r')); }, kInvalidArgument,
        "request ID exceeds length limit. Length=1001 Limit=1000"},
       {[](auto& r) { r.add_completion_callbacks(); }, kInvalidArgument,
        "completion callbacks are not enabled for this namespace"},
       {[](auto& r) { r.mutable_on_conflict_options()->set_attach_links(true); }, kUnimplemented,
        "on-conflict options are not implemented by this server"}});
}

TEST_F(StandaloneTest, AnIdThatIsTakenNamesTheRunThatHasIt) {
  engine.starts.result = errors::activity_already_started("r-0", kRunId);
  const auto made = call("StartActivityExecution", valid());
  EXPECT_EQ(made->status.code, kAlreadyExists);
  EXPECT_EQ(made->status.message, "activity execution already started");
  EXPECT_NE(made->status.details.find("ActivityExecutionAlreadyStartedFailure"), std::string::npos);
  EXPECT_NE(made->status.details.find(kRunId), std::string::npos);
}

TEST_F(StandaloneTest, WhoAsksForNothingMoreGetsNoPayloads) {
  engine.describes.result = view();
  const auto plain = succeed<DescribeActivityExecutionResponse>(
      "DescribeActivityExecution", named<DescribeActivityExecutionRequest>());
  EXPECT_EQ(plain.run_id(), kRunId);
  EXPECT_EQ(plain.info().run_state(), temporal::api::enums::v1::PENDING_ACTIVITY_STATE_STARTED);
  EXPECT_FALSE(plain.has_input());
  EXPECT_FALSE(plain.info().has_heartbeat_details());
  const auto full = succeed<DescribeActivityExecutionResponse>(
      "DescribeActivityExecution", named<DescribeActivityExecutionRequest>(
                                       "include_input: true include_heartbeat_details: true"));
  EXPECT_EQ(full.input().payloads(0).data(), "in");
  EXPECT_EQ(full.info().heartbeat_details().payloads(0).data(), "half");
  EXPECT_FALSE(full.has_outcome());
}

// With the token of an earlier answer one waits for news; without news the answer is empty.
TEST_F(StandaloneTest, ADescriptionWaitsForChanges) {
  engine.describes.result = view();
  const auto first = succeed<DescribeActivityExecutionResponse>(
      "DescribeActivityExecution", named<DescribeActivityExecutionRequest>());
  auto request = named<DescribeActivityExecutionRequest>();
  request.set_long_poll_token(first.long_poll_token());
  EXPECT_EQ(call("DescribeActivityExecution", request)->status.message,
            "run id is required when long poll token is provided");
  request.set_run_id(kRunId);
  EXPECT_FALSE(
      succeed<DescribeActivityExecutionResponse>("DescribeActivityExecution", request).has_info());
  ASSERT_EQ(engine.histories.requests.size(), 1u);
  EXPECT_EQ(engine.histories.requests[0].transitions_seen, 2);
  EXPECT_TRUE(engine.histories.requests[0].wait_new_event);
  auto later = view();
  later.run.set_state_transitions(3);
  engine.describes.result = later;
  EXPECT_TRUE(
      succeed<DescribeActivityExecutionResponse>("DescribeActivityExecution", request).has_info());
  request.set_long_poll_token("nonsense");
  EXPECT_EQ(call("DescribeActivityExecution", request)->status.message, "invalid long poll token");
}

TEST_F(StandaloneTest, APollIsEmptyUntilTheEndAndThenHasTheOutcome) {
  const auto request = named<PollActivityExecutionRequest>();
  EXPECT_FALSE(
      succeed<PollActivityExecutionResponse>("PollActivityExecution", request).has_outcome());
  shard::HistoryPage page;
  page.run_id = kRunId;
  model::ActivityEnded how;
  how.set_identity("ada");
  how.mutable_failure()->set_kind(model::Failure::TERMINATED);
  how.mutable_failure()->set_message("enough");
  page.history = ended(model::ACTIVITY_FAILED, how);
  engine.histories.result = page;
  expect_same(succeed<PollActivityExecutionResponse>("PollActivityExecution", request).outcome(),
              from_text<ActivityExecutionOutcome>(
                  "failure { message: 'enough' terminated_failure_info { identity: 'ada' } }"));
  how.clear_failure();
  page.history = ended(model::ACTIVITY_CANCELED, how);
  engine.histories.result = page;
  expect_same(
      succeed<PollActivityExecutionResponse>("PollActivityExecution", request).outcome(),
      from_text<ActivityExecutionOutcome>(
          "failure { message: 'Activity canceled' canceled_failure_info { identity: 'ada' } }"));
}

TEST_F(StandaloneTest, APollWaitsAsLongAsItsCallerGrants) {
  const auto wait = [&](TimeNs deadline) {
    call("PollActivityExecution", named<PollActivityExecutionRequest>(), deadline);
    return engine.histories.requests.back().wait_until - testing::kNow;
  };
  EXPECT_EQ(wait(testing::kNow + 70 * kSecond), 20 * kSecond);
  EXPECT_EQ(wait(testing::kNow + 10 * kSecond), 9 * kSecond);
  EXPECT_EQ(wait(testing::kNow + kSecond / 2), kSecond / 2)
      << "never answered with nothing at once";
  EXPECT_EQ(wait(0), 0);
}

TEST_F(StandaloneTest, StopsNameTheirReason) {
  call("RequestCancelActivityExecution",
       named<RequestCancelActivityExecutionRequest>("reason: 'enough' request_id: 'c'"));
  call("TerminateActivityExecution", named<TerminateActivityExecutionRequest>("identity: 'ada'"));
  ASSERT_EQ(engine.stops.requests.size(), 2u);
  EXPECT_FALSE(engine.stops.requests[0].terminates);
  EXPECT_EQ(engine.stops.requests[0].by.reason, "enough");
  EXPECT_EQ(engine.stops.requests[0].run.flavour, model::STANDALONE);
  EXPECT_TRUE(engine.stops.requests[1].terminates);
  EXPECT_EQ(engine.stops.requests[1].by.identity, "ada");
}

TEST_F(StandaloneTest, AnActivityIsNamedInFull) {
  expect_refusals<DeleteActivityExecutionRequest>(
      "DeleteActivityExecution", named<DeleteActivityExecutionRequest>(),
      {{[](auto& r) { r.clear_activity_id(); }, kInvalidArgument, "activity ID is required"},
       {[](auto& r) { r.set_activity_id(std::string(1001, 'a')); }, kInvalidArgument,
        "activity ID exceeds length limit. Length=1001 Limit=1000"},
       {[](auto& r) { r.set_run_id("x"); }, kInvalidArgument,
        "invalid run id: must be a valid UUID"}});
}

// A worker's task of such an activity has a run of the activity and none of a workflow.
TEST_F(StandaloneTest, ItsTaskNamesNoWorkflow) {
  shard::ActivityTask task;
  task.token = token();
  task.token.workflow_id = "pay-1";
  task.token.flavour = model::STANDALONE;
  task.activity = view().activities[0];
  PollActivityTaskQueueResponse polled;
  ASSERT_TRUE(polled.ParseFromString(encode_poll_activity_task(task, "default")));
  EXPECT_EQ(polled.activity_run_id(), kRunId);
  EXPECT_TRUE(polled.has_workflow_execution());
  EXPECT_EQ(polled.workflow_execution().workflow_id(), "");
  EXPECT_FALSE(polled.has_workflow_type());
}

}  // namespace
}  // namespace fairlead::api
