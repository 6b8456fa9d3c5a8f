#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using testing::kInvalidArgument;
using testing::kNotFound;
using testing::kRunId;
using testing::kUnimplemented;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;
using namespace temporal::api::enums::v1;
using temporal::api::history::v1::HistoryEvent;
using temporal::api::history::v1::WorkflowExecutionStartedEventAttributes;

class StartTest : public ServiceTest {
 protected:
  using Request = StartWorkflowExecutionRequest;

  static Request valid() {
    return from_text<Request>(R"(
        namespace: "default" workflow_id: "order-1" workflow_type { name: "Order" }
        task_queue { name: "orders" } request_id: "r-1" identity: "me")");
  }
};

TEST_F(StartTest, EachFieldGoesWhereItBelongs) {
  engine.starts.result = shard::StartResult{kRunId, kRunId, true, model::RUNNING};
  auto request = valid();
  request.MergeFrom(from_text<Request>(R"(
      input { payloads { data: "in" } } header { fields { key: "h" value { data: "x" } } }
      workflow_execution_timeout { seconds: 30 } workflow_run_timeout { seconds: 20 }
      workflow_task_timeout { seconds: 5 } workflow_start_delay { seconds: 2 }
      memo { fields { key: "m" value { data: "1" } } }
      search_attributes { indexed_fields { key: "BatcherUser" value {
        metadata { key: "encoding" value: "json/plain" } data: "\"ann\"" } } }
      priority { priority_key: 1 fairness_key: "acme" fairness_weight: 2 }
      retry_policy { maximum_attempts: 1 }
      user_metadata { summary { data: "s" } }
      links { batch_job { job_id: "caller" } }
      workflow_id_reuse_policy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
      workflow_id_conflict_policy: WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
      request_eager_execution: true)"));
  expect_same(succeed<StartWorkflowExecutionResponse>("StartWorkflowExecution", request),
              from_text<StartWorkflowExecutionResponse>(R"(
      run_id: "01890a5d-ac96-774b-bcce-b302099a8057"
      first_execution_run_id: "01890a5d-ac96-774b-bcce-b302099a8057"
      started: true status: WORKFLOW_EXECUTION_STATUS_RUNNING
      link { workflow_event {
        namespace: "default" workflow_id: "order-1" run_id: "01890a5d-ac96-774b-bcce-b302099a8057"
        event_ref { event_id: 1 event_type: EVENT_TYPE_WORKFLOW_EXECUTION_STARTED } } })"));

  ASSERT_EQ(engine.starts.requests.size(), 1u);
  const auto& start = engine.starts.requests[0];
  EXPECT_EQ(start.ns, NamespaceNum(7));
  EXPECT_EQ(start.namespace_id, "id-of-default");
  EXPECT_EQ(start.workflow_id, "order-1");
  EXPECT_EQ(start.workflow_type, "Order");
  EXPECT_EQ(start.task_queue, "orders");
  EXPECT_EQ(start.request_id, "r-1");
  EXPECT_EQ(start.execution_timeout, 30 * kSecond);
  EXPECT_EQ(start.run_timeout, 20 * kSecond);
  EXPECT_EQ(start.task_timeout, 5 * kSecond);
  EXPECT_EQ(start.start_delay, 2 * kSecond);
  EXPECT_EQ(start.retention, kDay);
  EXPECT_EQ(start.reuse, shard::ReusePolicy::kRejectDuplicate);
  EXPECT_EQ(start.conflict, shard::ConflictPolicy::kUseExisting);
  EXPECT_EQ(start.priority.fairness_key(), "acme");
  ASSERT_EQ(start.memo.size(), 1u);
  EXPECT_EQ(start.memo[0].first, "m");
  ASSERT_EQ(start.search_attributes.size(), 1u);
  EXPECT_EQ(start.search_attributes[0].first, "BatcherUser");
  // Timeouts, ids and attempt are the engine's to fill in; everything else is in the door.
  expect_same(parse<WorkflowExecutionStartedEventAttributes>(start.door),
              from_text<WorkflowExecutionStartedEventAttributes>(R"(
      input { payloads { data: "in" } } identity: "me" workflow_id: "order-1"
      header { fields { key: "h" value { data: "x" } } }
      memo { fields { key: "m" value { data: "1" } } }
      search_attributes { indexed_fields { key: "BatcherUser" value {
        metadata { key: "encoding" value: "json/plain" }
        metadata { key: "type" value: "Keyword" } data: "\"ann\"" } } })"));
  ASSERT_TRUE(start.retry_policy.has_value());
  EXPECT_EQ(start.retry_policy->maximum_interval_ns(), 100 * kSecond);
  expect_same(parse<HistoryEvent>(start.envelope), from_text<HistoryEvent>(R"(
      user_metadata { summary { data: "s" } }
      links { batch_job { job_id: "caller" } })"));
}

TEST_F(StartTest, AbsentPartsStayAbsentInTheStartedEvent) {
  call("StartWorkflowExecution", valid());
  expect_same(parse<WorkflowExecutionStartedEventAttributes>(engine.starts.requests.at(0).door),
              from_text<WorkflowExecutionStartedEventAttributes>(R"(
      identity: "me" workflow_id: "order-1")"));
  EXPECT_EQ(engine.starts.requests[0].envelope, "");
  EXPECT_EQ(engine.starts.requests[0].conflict, shard::ConflictPolicy::kFail);
}

TEST_F(StartTest, TheOldNameOfTerminateExisting) {
  auto request = valid();
  request.set_workflow_id_reuse_policy(static_cast<WorkflowIdReusePolicy>(4));
  call("StartWorkflowExecution", request);
  EXPECT_EQ(engine.starts.requests.at(0).conflict, shard::ConflictPolicy::kTerminateExisting);
  EXPECT_EQ(engine.starts.requests.at(0).reuse, shard::ReusePolicy::kAllowDuplicate);
}

TEST_F(StartTest, RefusesWhatIsWrong) {
  const std::string long_id(1001, 'x');
  const std::string blob((2 << 20) + 1, 'b');
  const auto too_large = [&](auto* payloads) { payloads->add_payloads()->set_data(blob); };
  expect_refusals<Request>(
      "StartWorkflowExecution", valid(),
      {
          {[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
          {[](auto& r) { r.set_namespace_("nope"); }, kNotFound, "Namespace nope is not found."},
          {[](auto& r) { r.clear_workflow_id(); }, kInvalidArgument,
           "WorkflowId is not set on request."},
          {[&](auto& r) { r.set_workflow_id(long_id); }, kInvalidArgument,
           "WorkflowId exceeds maximum allowed length (1001/1000)"},
          {[](auto& r) { r.clear_workflow_type(); }, kInvalidArgument,
           "WorkflowType is not set on request."},
          {[&](auto& r) { r.mutable_workflow_type()->set_name(long_id); }, kInvalidArgument,
           "WorkflowType length exceeds limit."},
          {[](auto& r) { r.clear_task_queue(); }, kInvalidArgument, "taskQueue is not set"},
          {[](auto& r) { r.mutable_task_queue()->clear_name(); }, kInvalidArgument,
           "missing task queue name"},
          {[](auto& r) { r.mutable_task_queue()->set_name("/_sys/x"); }, kInvalidArgument,
           "task queue name cannot start with reserved prefix /_sys/"},
          {[&](auto& r) { r.set_request_id(long_id); }, kInvalidArgument,
           "RequestId length exceeds limit."},
          {[&](auto& r) { r.set_identity(long_id); }, kInvalidArgument,
           "Identity length exceeds limit."},
          {[](auto& r) { r.mutable_workflow_run_timeout()->set_seconds(-1); }, kInvalidArgument,
           "An invalid WorkflowRunTimeout is set on request: negative duration"},
          {[](auto& r) { r.mutable_workflow_start_delay()->set_nanos(-1); }, kInvalidArgument,
           "An invalid WorkflowStartDelay is set on request: negative duration"},
          {[](auto& r) { r.mutable_retry_policy()->set_backoff_coefficient(0.5); },
           kInvalidArgument, "BackoffCoefficient cannot be less than 1 on retry policy."},
          {[](auto& r) {
             r.set_workflow_id_reuse_policy(WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE);
             r.set_workflow_id_conflict_policy(WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING);
           },
           kInvalidArgument,
           "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be "
           "used together with WorkflowIdConflictPolicy "
           "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"},
          {[](auto& r) {
             r.set_workflow_id_reuse_policy(static_cast<WorkflowIdReusePolicy>(4));
             r.set_workflow_id_conflict_policy(WORKFLOW_ID_CONFLICT_POLICY_FAIL);
           },
           kInvalidArgument,
           "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot "
           "be used together with a WorkflowIDConflictPolicy."},
          {[](auto& r) { r.set_workflow_id_reuse_policy(static_cast<WorkflowIdReusePolicy>(9)); },
           kInvalidArgument, "Unknown WorkflowIdReusePolicy."},
          {[](auto& r) { (*r.mutable_search_attributes()->mutable_indexed_fields())["X"]; },
           kInvalidArgument, "Namespace default has no mapping defined for search attribute X"},
          {[&](auto& r) { too_large(r.mutable_input()); }, kInvalidArgument,
           "Blob data size exceeds limit."},
          {[&](auto& r) { (*r.mutable_memo()->mutable_fields())["m"].set_data(blob); },
           kInvalidArgument, "Memo size exceeds limit."},
          {[](auto& r) {
             r.mutable_user_metadata()->mutable_summary()->set_data(std::string(400, 's'));
           },
           kInvalidArgument, "user metadata summary has 403 bytes, the limit is 400"},
          {[](auto& r) {
             for (int i = 0; i < 11; ++i) r.add_links();
           },
           kInvalidArgument, "cannot attach more than 10 links per request, got 11"},
          {[](auto& r) { r.mutable_priority()->set_priority_key(-1); }, kInvalidArgument,
           "priority key can't be negative"},
          {[](auto& r) { r.set_cron_schedule("* * * *"); }, kInvalidArgument,
           "invalid CronSchedule. expected exactly 5 fields, found 4"},
          {[](auto& r) { r.set_cron_schedule("0 0 31 2 *"); }, kInvalidArgument,
           "invalid CronSchedule. It never comes."},
          {[](auto& r) {
             r.set_cron_schedule("* * * * *");
             r.mutable_workflow_start_delay()->set_seconds(1);
           },
           kInvalidArgument, "CronSchedule and WorkflowStartDelay may not be used together."},
          {[](auto& r) { r.add_completion_callbacks()->mutable_nexus()->set_url("https://a/b"); },
           kInvalidArgument,
           "invalid url: url does not match any configured callback address: https://a/b"},
          {[](auto& r) { r.mutable_on_conflict_options()->set_attach_completion_callbacks(true); },
           kInvalidArgument, "attaching request ID is required for attaching completion callbacks"},
          {[](auto& r) { r.mutable_versioning_override(); }, kUnimplemented,
           "versioning overrides are not implemented by this server"},
      });
}

TEST_F(StartTest, CallbacksAndWhatIsAttachedGoToTheEngine) {
  ServiceOptions options;
  options.callback_addresses = *CallbackAddresses::parse("ear");
  serve_with(options);
  shard::StartResult result{kRunId, kRunId, false, model::RUNNING};
  result.attached = true;
  engine.starts.result = result;
  auto request = valid();
  request.MergeFrom(from_text<Request>(R"(
      completion_callbacks { nexus { url: "https://ear/1" header { key: "H" value: "v" } }
        links { batch_job { job_id: "a" } } }
      links { batch_job { job_id: "a" } } links { batch_job { job_id: "b" } }
      workflow_id_conflict_policy: WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
      on_conflict_options { attach_request_id: true attach_completion_callbacks: true
        attach_links: true })"));
  const auto response = succeed<StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
  expect_same(response.link().workflow_event().request_id_ref(),
              from_text<temporal::api::common::v1::Link::WorkflowEvent::RequestIdReference>(R"(
      request_id: "r-1" event_type: EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED)"));
  const auto& start = engine.starts.requests.at(0);
  ASSERT_EQ(start.callbacks.size(), 1u);
  expect_same(parse<temporal::api::common::v1::Callback>(start.callbacks[0]),
              from_text<temporal::api::common::v1::Callback>(R"(
      nexus { url: "https://ear/1" header { key: "h" value: "v" } }
      links { batch_job { job_id: "a" } })"));
  ASSERT_TRUE(start.attach.has_value());
  EXPECT_TRUE(start.attach->request_id);
  EXPECT_TRUE(start.attach->callbacks);
  // A link that a callback brings is the callback's.
  expect_same(parse<HistoryEvent>(start.attach->envelope), from_text<HistoryEvent>(R"(
      worker_may_ignore: true links { batch_job { job_id: "b" } })"));
}

}  // namespace
}  // namespace fairlead::api
