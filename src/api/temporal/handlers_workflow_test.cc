#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using testing::kInvalidArgument;
using testing::kNow;
using testing::kOk;
using testing::kOtherRunId;
using testing::kRunId;
using testing::kUnimplemented;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;
using namespace temporal::api::history::v1;

class WorkflowTest : public ServiceTest {};

const char* const kRun = R"(namespace: "default" identity: "me"
    workflow_execution { workflow_id: "w" run_id: "01890a5d-ac96-774b-bcce-b302099a8057" } )";
const char* const kReadRun = R"(namespace: "default"
    execution { workflow_id: "w" run_id: "01890a5d-ac96-774b-bcce-b302099a8057" } )";

TEST_F(WorkflowTest, Signal) {
  const auto request = from_text<SignalWorkflowExecutionRequest>(std::string(kRun) + R"(
      signal_name: "s" input { payloads { data: "in" } } request_id: "r"
      header { fields { key: "h" value { data: "x" } } } links { batch_job { job_id: "j" } })");
  engine.signals.result = shard::Signaled{testing::kOtherRunId};
  const auto response =
      succeed<SignalWorkflowExecutionResponse>("SignalWorkflowExecution", request);
  EXPECT_EQ(response.link().workflow_event().request_id_ref().request_id(), "r");
  // The run that got it: a client that named none learns which that was.
  EXPECT_EQ(response.link().workflow_event().run_id(), testing::kOtherRunId);
  const auto& signal = engine.signals.requests.at(0);
  EXPECT_EQ(signal.run.ns, NamespaceNum(7));
  EXPECT_EQ(signal.run.workflow_id, "w");
  EXPECT_EQ(signal.run.run_id, kRunId);
  EXPECT_EQ(signal.request_id, "r");
  expect_same(parse<WorkflowExecutionSignaledEventAttributes>(signal.door),
              from_text<WorkflowExecutionSignaledEventAttributes>(R"(
      signal_name: "s" input { payloads { data: "in" } } identity: "me" request_id: "r"
      header { fields { key: "h" value { data: "x" } } })"));
  expect_same(parse<HistoryEvent>(signal.envelope),
              from_text<HistoryEvent>(R"(links { batch_job { job_id: "j" } })"));

  using Request = SignalWorkflowExecutionRequest;
  expect_refusals<Request>(
      "SignalWorkflowExecution", request,
      {{[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
       {[](auto& r) { r.clear_workflow_execution(); }, kInvalidArgument,
        "Execution is not set on request."},
       {[](auto& r) { r.mutable_workflow_execution()->clear_workflow_id(); }, kInvalidArgument,
        "WorkflowId is not set on request."},
       {[](auto& r) { r.mutable_workflow_execution()->set_run_id("x"); }, kInvalidArgument,
        "Invalid RunId."},
       {[](auto& r) { r.clear_signal_name(); }, kInvalidArgument,
        "SignalName is not set on request."},
       {[](auto& r) { r.set_signal_name(std::string(1001, 's')); }, kInvalidArgument,
        "SignalName length exceeds limit."},
       {[](auto& r) { r.mutable_input()->add_payloads()->set_data(std::string(2 << 20, 'b')); },
        kInvalidArgument, "Blob data size exceeds limit."}});
}

TEST_F(WorkflowTest, Reset) {
  const auto request = from_text<ResetWorkflowExecutionRequest>(std::string(kRun) + R"(
      reason: "again" workflow_task_finish_event_id: 4 request_id: "r")");
  engine.run_resets.result = shard::ResetResult{kOtherRunId};
  EXPECT_EQ(succeed<ResetWorkflowExecutionResponse>("ResetWorkflowExecution", request).run_id(),
            kOtherRunId);
  const auto& reset = engine.run_resets.requests.at(0);
  EXPECT_EQ(reset.run.run_id, kRunId);
  EXPECT_EQ(reset.event_id, 4);
  EXPECT_EQ(reset.request_id, "r");
  EXPECT_EQ(reset.reason, "again");
  EXPECT_FALSE(reset.skips_signals || reset.skips_updates);

  using Request = ResetWorkflowExecutionRequest;
  expect_refusals<Request>(
      "ResetWorkflowExecution", request,
      {{[](auto& r) { r.clear_request_id(); }, kInvalidArgument,
        "RequestId is not set on request."},
       {[](auto& r) { r.set_request_id(std::string(1001, 'r')); }, kInvalidArgument,
        "RequestId length exceeds limit."},
       {[](auto& r) { r.clear_workflow_execution(); }, kInvalidArgument,
        "Execution is not set on request."},
       {[](auto& r) { r.add_post_reset_operations(); }, kInvalidArgument,
        "an operation that follows a reset is a signal or a change of options"},
       {[](auto& r) { r.add_post_reset_operations()->mutable_signal_workflow(); }, kInvalidArgument,
        "SignalName is not set on request."}});
}

TEST_F(WorkflowTest, AResetMayBeginWithOtherOptions) {
  const auto request = from_text<ResetWorkflowExecutionRequest>(std::string(kRun) + R"(
      workflow_task_finish_event_id: 4 request_id: "r"
      post_reset_operations { update_workflow_options {
          workflow_execution_options { priority { priority_key: 4 fairness_key: "unnamed" } }
          update_mask { paths: "priority.priority_key" } } })");
  EXPECT_EQ(call("ResetWorkflowExecution", request)->status.code, kOk);
  const auto& operations = engine.run_resets.requests.at(0).operations;
  ASSERT_EQ(operations.size(), 1U);
  const auto& change = std::get<shard::ChangeRunOptions>(operations[0]);
  EXPECT_EQ(change.priority.priority_key, 4);
  EXPECT_FALSE(change.priority.fairness_key.has_value());
  EXPECT_FALSE(change.door.empty());
}

TEST_F(WorkflowTest, AResetMayBeFollowedBySignals) {
  const auto request = from_text<ResetWorkflowExecutionRequest>(std::string(kRun) + R"(
      workflow_task_finish_event_id: 4 request_id: "r"
      post_reset_operations { signal_workflow { signal_name: "s" input { payloads { data: "1" } }
          header { fields { key: "h" value {} } } links { batch_job { job_id: "j" } } } })");
  EXPECT_EQ(call("ResetWorkflowExecution", request)->status.code, kOk);
  const auto& operations = engine.run_resets.requests.at(0).operations;
  ASSERT_EQ(operations.size(), 1U);
  const auto& signal = std::get<shard::SignalRequest>(operations[0]);
  using temporal::api::history::v1::HistoryEvent;
  using temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes;
  expect_same(parse<WorkflowExecutionSignaledEventAttributes>(signal.door),
              from_text<WorkflowExecutionSignaledEventAttributes>(R"(signal_name: "s"
      input { payloads { data: "1" } } header { fields { key: "h" value {} } }
      identity: "me")"));
  expect_same(parse<HistoryEvent>(signal.envelope),
              from_text<HistoryEvent>(R"(links { batch_job { job_id: "j" } })"));
}

// Old clients say what they want, new ones what they do not want.
TEST_F(WorkflowTest, ResetLeavesOutWhatIsExcluded) {
  const auto asked = [&](const std::string& text) {
    const auto request = from_text<ResetWorkflowExecutionRequest>(std::string(kRun) + R"(
        workflow_task_finish_event_id: 4 request_id: "r" )" + text);
    EXPECT_EQ(call("ResetWorkflowExecution", request)->status.code, kOk);
    const auto& reset = engine.run_resets.requests.back();
    return std::make_pair(reset.skips_signals, reset.skips_updates);
  };
  EXPECT_EQ(asked("reset_reapply_type: RESET_REAPPLY_TYPE_SIGNAL"), std::make_pair(false, true));
  EXPECT_EQ(asked("reset_reapply_type: RESET_REAPPLY_TYPE_NONE"), std::make_pair(true, true));
  EXPECT_EQ(asked("reset_reapply_type: RESET_REAPPLY_TYPE_ALL_ELIGIBLE"),
            std::make_pair(false, false));
  EXPECT_EQ(asked("reset_reapply_exclude_types: RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL"),
            std::make_pair(true, false));
  EXPECT_EQ(asked("reset_reapply_exclude_types: RESET_REAPPLY_EXCLUDE_TYPE_UPDATE"),
            std::make_pair(false, true));
}

TEST_F(WorkflowTest, CancelAndTerminate) {
  EXPECT_EQ(call("RequestCancelWorkflowExecution",
                 from_text<RequestCancelWorkflowExecutionRequest>(std::string(kRun) + R"(
                     reason: "late" first_execution_run_id: "01890a5d-ac96-774b-bcce-b302099a8058")"))
                ->status.code,
            kOk);
  EXPECT_EQ(engine.cancels.requests.at(0).first_run_id, kOtherRunId);
  expect_same(
      parse<WorkflowExecutionCancelRequestedEventAttributes>(engine.cancels.requests[0].door),
      from_text<WorkflowExecutionCancelRequestedEventAttributes>(
          R"(cause: "late" identity: "me")"));

  call("TerminateWorkflowExecution",
       from_text<TerminateWorkflowExecutionRequest>(
           std::string(kRun) + R"(reason: "why" details { payloads { data: "d" } })"));
  expect_same(
      parse<WorkflowExecutionTerminatedEventAttributes>(engine.terminates.requests.at(0).door),
      from_text<WorkflowExecutionTerminatedEventAttributes>(
          R"(reason: "why" details { payloads { data: "d" } } identity: "me")"));
  call("TerminateWorkflowExecution", from_text<TerminateWorkflowExecutionRequest>(R"(
      namespace: "default" workflow_execution { workflow_id: "w" })"));
  expect_same(
      parse<WorkflowExecutionTerminatedEventAttributes>(engine.terminates.requests.at(1).door),
      from_text<WorkflowExecutionTerminatedEventAttributes>(
          R"(reason: "terminated by user via frontend" identity: "frontend-service")"));
}

TEST_F(WorkflowTest, ErrorsOfTheEngineReachTheCaller) {
  engine.signals.result = errors::workflow_completed();
  const auto made =
      call("SignalWorkflowExecution",
           from_text<SignalWorkflowExecutionRequest>(std::string(kRun) + "signal_name: 's'"));
  EXPECT_EQ(made->status.code, testing::kNotFound);
  EXPECT_EQ(made->status.message, "workflow execution already completed");
  EXPECT_NE(made->status.details, "");
}

TEST_F(WorkflowTest, DescribeAndResetSticky) {
  EXPECT_EQ(call("DescribeWorkflowExecution", from_text<DescribeWorkflowExecutionRequest>(kReadRun))
                ->status.code,
            kOk);
  EXPECT_EQ(engine.describes.requests.at(0).run_id, kRunId);
  call("ResetStickyTaskQueue", from_text<ResetStickyTaskQueueRequest>(kReadRun));
  EXPECT_EQ(engine.sticky_resets.requests.at(0).workflow_id, "w");
  EXPECT_EQ(call("DescribeWorkflowExecution",
                 from_text<DescribeWorkflowExecutionRequest>("namespace: 'default'"))
                ->status.message,
            "Execution is not set on request.");
}

class HistoryTest : public ServiceTest {
 protected:
  using Request = GetWorkflowExecutionHistoryRequest;
  using Response = GetWorkflowExecutionHistoryResponse;

  std::string token_after(const std::string& asked, const shard::HistoryPage& page) {
    engine.histories.result = page;
    return succeed<Response>("GetWorkflowExecutionHistory",
                             from_text<Request>(std::string(kReadRun) + asked))
        .next_page_token();
  }
};

// "result()" of every SDK is a loop around this call: one token too many and it never ends, one too
// few and it ends without a result.
TEST_F(HistoryTest, ATokenIsGivenWhileThereIsAReasonToComeBack) {
  const std::string close = "history_event_filter_type: HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT ";
  const std::string wait = "wait_new_event: true ";
  const shard::HistoryPage open{.run_id = kRunId, .next_event = 5, .at_end = true, .is_open = true};
  const shard::HistoryPage closed{.run_id = kRunId, .next_event = 6, .at_end = true};
  const shard::HistoryPage middle{.run_id = kRunId, .next_event = 4, .at_end = false};
  EXPECT_EQ(token_after("", open), "");
  EXPECT_NE(token_after(wait, open), "");
  EXPECT_EQ(token_after(wait, closed), "");
  EXPECT_NE(token_after("", middle), "");
  EXPECT_EQ(token_after(close, open), "");
  EXPECT_NE(token_after(close + wait, open), "");
  EXPECT_EQ(token_after(close + wait, closed), "");
  EXPECT_TRUE(engine.histories.requests.back().close_event_only);
}

TEST_F(HistoryTest, ATokenFixesTheRunAndThePlace) {
  auto request = from_text<Request>(R"(namespace: "default" execution { workflow_id: "w" })");
  request.set_next_page_token(encode_history_token({kRunId, 42, true}));
  call("GetWorkflowExecutionHistory", request);
  EXPECT_EQ(engine.histories.requests.at(0).run.run_id, kRunId);
  EXPECT_EQ(engine.histories.requests.at(0).from_event, 42);

  request.mutable_execution()->set_run_id(kOtherRunId);
  EXPECT_EQ(call("GetWorkflowExecutionHistory", request)->status.message,
            "RunId in the request does not match the NextPageToken.");
  request.set_next_page_token("rubbish");
  EXPECT_EQ(call("GetWorkflowExecutionHistory", request)->status.message, "Invalid NextPageToken.");
  EXPECT_EQ(engine.asked, 1);
}

TEST_F(HistoryTest, WaitsTwentySecondsOrWhatTheCallerGrants) {
  const auto request = from_text<Request>(std::string(kReadRun) + "wait_new_event: true");
  const auto wait = [&](TimeNs deadline) {
    call("GetWorkflowExecutionHistory", request, deadline);
    return engine.histories.requests.back().wait_until - kNow;
  };
  EXPECT_EQ(wait(kNow + 70 * kSecond), 20 * kSecond);
  EXPECT_EQ(wait(kNever), 20 * kSecond);
  EXPECT_EQ(wait(kNow + 10 * kSecond), 9 * kSecond);
  EXPECT_EQ(wait(kNow + 1), 0);
  EXPECT_EQ(wait(0), 0);
}

TEST_F(HistoryTest, PagesHaveAMaximum) {
  const auto batches = [&](int asked) {
    auto request = from_text<Request>(kReadRun);
    request.set_maximum_page_size(asked);
    call("GetWorkflowExecutionHistory", request);
    return engine.histories.requests.back().max_batches;
  };
  EXPECT_EQ(batches(0), 256);
  EXPECT_EQ(batches(-3), 256);
  EXPECT_EQ(batches(17), 17);
  EXPECT_EQ(batches(257), 256);
}

TEST_F(HistoryTest, Reverse) {
  engine.reverse_histories.result =
      shard::HistoryPage{.run_id = kRunId,
                         .history = bytes_of<History>("events { event_id: 9 }"),
                         .next_event = 9,
                         .at_end = false};
  auto request = from_text<GetWorkflowExecutionHistoryReverseRequest>(kReadRun);
  const auto response = succeed<GetWorkflowExecutionHistoryReverseResponse>(
      "GetWorkflowExecutionHistoryReverse", request);
  EXPECT_EQ(response.history().events(0).event_id(), 9);
  EXPECT_EQ(engine.reverse_histories.requests[0].from_event, 0);
  request.set_next_page_token(response.next_page_token());
  engine.reverse_histories.result->at_end = true;
  EXPECT_EQ(succeed<GetWorkflowExecutionHistoryReverseResponse>(
                "GetWorkflowExecutionHistoryReverse", request)
                .next_page_token(),
            "");
  EXPECT_EQ(engine.reverse_histories.requests[1].from_event, 9);
}

class QueryTest : public ServiceTest {};

TEST_F(QueryTest, TheWorkersBytesComeBack) {
  using temporal::api::common::v1::Payloads;
  using temporal::api::query::v1::WorkflowQuery;
  engine.queries.result =
      shard::QueryResult{.result = bytes_of<Payloads>("payloads { data: 'r' }")};
  const auto request = from_text<QueryWorkflowRequest>(
      std::string(kReadRun) +
      "query { query_type: 'q' } query_reject_condition: QUERY_REJECT_CONDITION_NOT_OPEN");
  EXPECT_EQ(
      succeed<QueryWorkflowResponse>("QueryWorkflow", request).query_result().payloads(0).data(),
      "r");
  EXPECT_EQ(parse<WorkflowQuery>(engine.queries.requests[0].query).query_type(), "q");
  EXPECT_EQ(engine.queries.requests[0].reject, shard::QueryReject::kNotOpen);
  EXPECT_EQ(engine.queries.requests[0].deadline, kNow + 70 * kSecond);
  call("QueryWorkflow", request, kNever);
  EXPECT_EQ(engine.queries.requests[1].deadline, kNow + 60 * kSecond);

  engine.queries.result = shard::QueryResult{.rejected = model::COMPLETED};
  const auto rejected = succeed<QueryWorkflowResponse>("QueryWorkflow", request);
  EXPECT_FALSE(rejected.has_query_result());
  EXPECT_EQ(rejected.query_rejected().status(),
            temporal::api::enums::v1::WORKFLOW_EXECUTION_STATUS_COMPLETED);

  expect_refusals<QueryWorkflowRequest>(
      "QueryWorkflow", request,
      {{[](auto& r) { r.clear_query(); }, kInvalidArgument, "WorkflowQuery is not set on request."},
       {[](auto& r) { r.mutable_query()->clear_query_type(); }, kInvalidArgument,
        "QueryType is not set on request."}});
}

TEST_F(QueryTest, AnswersOfWorkers) {
  RespondQueryTaskCompletedRequest request;
  request.set_namespace_("default");
  request.set_task_token(encode_query_token("id-of-default", "q-1"));
  request.set_completed_type(temporal::api::enums::v1::QUERY_RESULT_TYPE_ANSWERED);
  request.mutable_query_result()->add_payloads()->set_data("r");
  call("RespondQueryTaskCompleted", request);
  EXPECT_EQ(engine.answered_queries.requests.at(0).first, "q-1");
  EXPECT_TRUE(engine.answered_queries.requests[0].second.answered);

  // Too large a result is the query's failure: its caller hears why.
  request.mutable_query_result()->add_payloads()->set_data(std::string(2 << 20, 'b'));
  EXPECT_EQ(call("RespondQueryTaskCompleted", request)->status.code, kOk);
  EXPECT_FALSE(engine.answered_queries.requests.at(1).second.answered);
  EXPECT_EQ(engine.answered_queries.requests[1].second.error_message,
            "Blob data size exceeds limit.");

  request.clear_query_result();
  request.set_completed_type(temporal::api::enums::v1::QUERY_RESULT_TYPE_FAILED);
  request.set_error_message("no such query");
  request.mutable_failure()->set_message("no such query");
  call("RespondQueryTaskCompleted", request);
  EXPECT_EQ(engine.answered_queries.requests.at(2).second.error_message, "no such query");
  EXPECT_NE(engine.answered_queries.requests[2].second.failure, "");

  request.set_task_token(encode_query_token("id-of-other", "q-1"));
  EXPECT_EQ(call("RespondQueryTaskCompleted", request)->status.message,
            "Operation requested with a token from a different namespace.");
}

}  // namespace
}  // namespace fairlead::api
