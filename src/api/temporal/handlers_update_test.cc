#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "base/error.h"
#include "google/protobuf/any.pb.h"
#include "temporal/api/errordetails/v1/message.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using shard::UpdateStage;
using testing::kInvalidArgument;
using testing::kNow;
using testing::kRunId;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;
using temporal::api::errordetails::v1::MultiOperationExecutionFailure;
using temporal::api::update::v1::Outcome;

class UpdateTest : public ServiceTest {
 protected:
  using Request = UpdateWorkflowExecutionRequest;

  static Request valid() {
    return from_text<Request>(R"(
        namespace: "default" workflow_execution { workflow_id: "order-1" }
        first_execution_run_id: "first"
        wait_policy { lifecycle_stage: UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED }
        request { meta { update_id: "u-1" identity: "me" } input { name: "set" } })");
  }
};

TEST_F(UpdateTest, EachFieldGoesWhereItBelongs) {
  engine.updates.result = shard::UpdateResult{kRunId, "u-1", UpdateStage::kAccepted};
  const auto response =
      succeed<UpdateWorkflowExecutionResponse>("UpdateWorkflowExecution", valid());
  EXPECT_EQ(response.update_ref().workflow_execution().run_id(), kRunId);
  EXPECT_EQ(response.update_ref().workflow_execution().workflow_id(), "order-1");
  EXPECT_EQ(response.update_ref().update_id(), "u-1");
  EXPECT_EQ(response.stage(),
            temporal::api::enums::v1::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED);
  EXPECT_FALSE(response.has_outcome());
  EXPECT_EQ(response.link().workflow_event().run_id(), kRunId);

  ASSERT_EQ(engine.updates.requests.size(), 1u);
  const auto& update = engine.updates.requests[0];
  EXPECT_EQ(update.run.workflow_id, "order-1");
  EXPECT_EQ(update.first_run_id, "first");
  EXPECT_EQ(update.update_id, "u-1");
  EXPECT_EQ(update.wait_for, UpdateStage::kAccepted);
  EXPECT_GT(update.wait_until, kNow);
  expect_same(parse<temporal::api::update::v1::Request>(update.request), valid().request());
}

TEST_F(UpdateTest, AnOutcomeIsHandedOnAsTheWorkerGaveIt) {
  shard::UpdateResult result{kRunId, "u-1", UpdateStage::kCompleted};
  result.outcome = from_text<Outcome>("success { payloads { data: '7' } }").SerializeAsString();
  engine.updates.result = result;
  const auto response =
      succeed<UpdateWorkflowExecutionResponse>("UpdateWorkflowExecution", valid());
  EXPECT_EQ(response.outcome().success().payloads(0).data(), "7");
}

TEST_F(UpdateTest, AnUpdateThatItsRunDidNotFinishSaysSo) {
  shard::UpdateResult result{kRunId, "u-1", UpdateStage::kCompleted};
  result.lost = shard::UpdateResult::Lost::kRunClosed;
  engine.updates.result = result;
  const auto response =
      succeed<UpdateWorkflowExecutionResponse>("UpdateWorkflowExecution", valid());
  EXPECT_EQ(response.outcome().failure().application_failure_info().type(),
            "AcceptedUpdateCompletedWorkflow");
  EXPECT_EQ(response.link().workflow().reason(), "Update rejected");
}

TEST_F(UpdateTest, WrongOnesAreRefused) {
  expect_refusals<Request>(
      "UpdateWorkflowExecution", valid(),
      {
          {[](Request& r) { r.clear_request(); }, kInvalidArgument,
           "Update meta is not set on request."},
          {[](Request& r) { r.mutable_request()->clear_input(); }, kInvalidArgument,
           "Update input is not set on request."},
          {[](Request& r) { r.mutable_request()->mutable_input()->clear_name(); }, kInvalidArgument,
           "Update name is not set on request."},
      });
}

TEST_F(UpdateTest, PollingWithoutAWaitPolicyDoesNotWait) {
  engine.updates.result = shard::UpdateResult{kRunId, "u-1", UpdateStage::kAdmitted};
  const auto request = from_text<PollWorkflowExecutionUpdateRequest>(R"(
      namespace: "default"
      update_ref { update_id: "u-1" workflow_execution { workflow_id: "order-1" } })");
  succeed<PollWorkflowExecutionUpdateResponse>("PollWorkflowExecutionUpdate", request);
  ASSERT_EQ(engine.updates.requests.size(), 1u);
  EXPECT_EQ(engine.updates.requests[0].wait_until, 0);
  EXPECT_TRUE(engine.updates.requests[0].request.empty());
}

class MultiOperationTest : public ServiceTest {
 protected:
  static ExecuteMultiOperationRequest valid() {
    return from_text<ExecuteMultiOperationRequest>(R"(
        namespace: "default"
        operations { start_workflow {
          namespace: "default" workflow_id: "order-1" workflow_type { name: "Order" }
          task_queue { name: "orders" } request_id: "r-1" } }
        operations { update_workflow {
          namespace: "default" workflow_execution { workflow_id: "order-1" }
          request { meta { update_id: "u-1" } input { name: "set" } } } })");
  }

  // The statuses of both operations of a call that failed.
  MultiOperationExecutionFailure failure_of(const ExecuteMultiOperationRequest& request, int code) {
    const auto made = call("ExecuteMultiOperation", request);
    EXPECT_EQ(made->status.code, code);
    EXPECT_EQ(made->status.message, "Update-with-Start could not be executed.");
    // google.rpc.Status and the status of an operation are alike.
    const auto status =
        parse<MultiOperationExecutionFailure::OperationStatus>(made->status.details);
    MultiOperationExecutionFailure failure;
    EXPECT_EQ(status.details_size(), 1);
    EXPECT_TRUE(status.details(0).UnpackTo(&failure));
    EXPECT_EQ(failure.statuses_size(), 2);
    return failure;
  }
};

TEST_F(MultiOperationTest, BothAnswersComeTogether) {
  engine.starts_with_update.result =
      shard::UpdateWithStartResult{{kRunId, kRunId, true, model::RUNNING},
                                   shard::UpdateResult{kRunId, "u-1", UpdateStage::kAccepted}};
  const auto response = succeed<ExecuteMultiOperationResponse>("ExecuteMultiOperation", valid());
  ASSERT_EQ(response.responses_size(), 2);
  EXPECT_EQ(response.responses(0).start_workflow().run_id(), kRunId);
  EXPECT_TRUE(response.responses(0).start_workflow().started());
  EXPECT_EQ(response.responses(1).update_workflow().update_ref().update_id(), "u-1");
}

TEST_F(MultiOperationTest, AStartThatFailsAbortsTheUpdate) {
  engine.starts_with_update.result =
      errors::workflow_already_started("there is one", "r", "i", "f");
  const auto failure = failure_of(valid(), static_cast<int>(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(failure.statuses(0).message(), "there is one");
  EXPECT_EQ(failure.statuses(1).code(), static_cast<int>(absl::StatusCode::kAborted));
  EXPECT_EQ(failure.statuses(1).details(0).type_url(),
            "type.googleapis.com/temporal.api.failure.v1.MultiOperationExecutionAborted");
}

TEST_F(MultiOperationTest, AnUpdateThatFailsLeavesTheStart) {
  engine.starts_with_update.result = shard::UpdateWithStartResult{
      {kRunId, kRunId, true, model::RUNNING}, errors::not_found("it is over")};
  const auto failure = failure_of(valid(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(failure.statuses(0).code(), 0);
  EXPECT_EQ(failure.statuses(1).message(), "it is over");
}

TEST_F(MultiOperationTest, AWrongPartIsNamed) {
  auto request = valid();
  request.mutable_operations(0)->mutable_start_workflow()->set_cron_schedule("@daily");
  EXPECT_EQ(failure_of(request, kInvalidArgument).statuses(0).message(),
            "CronSchedule is not allowed.");
  request = valid();
  request.mutable_operations(1)
      ->mutable_update_workflow()
      ->mutable_workflow_execution()
      ->set_workflow_id("another");
  EXPECT_EQ(failure_of(request, kInvalidArgument).statuses(1).message(),
            "WorkflowId is not consistent with previous operation(s).");
  EXPECT_EQ(engine.asked, 0);
}

TEST_F(MultiOperationTest, ItIsOneStartAndOneUpdate) {
  auto request = valid();
  request.mutable_operations()->RemoveLast();
  const auto made = call("ExecuteMultiOperation", request);
  EXPECT_EQ(made->status.code, kInvalidArgument);
  EXPECT_EQ(made->status.message, "Operations have to be exactly [Start, Update].");
}

}  // namespace
}  // namespace fairlead::api
