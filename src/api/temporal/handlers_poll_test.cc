#include <cmath>

#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using testing::kFailedPrecondition;
using testing::kInvalidArgument;
using testing::kNow;
using testing::kOk;
using testing::kResourceExhausted;
using testing::kUnimplemented;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;

class PollTest : public ServiceTest {
 protected:
  static PollWorkflowTaskQueueRequest valid() {
    return from_text<PollWorkflowTaskQueueRequest>(R"(
        namespace: "default" task_queue { name: "q" } identity: "me" worker_instance_key: "k")");
  }
  static PollActivityTaskQueueRequest valid_activity() {
    return from_text<PollActivityTaskQueueRequest>(R"(
        namespace: "default" task_queue { name: "q" })");
  }
};

TEST_F(PollTest, SaysWhoPollsWhatAndForHowLong) {
  auto request = valid();
  request.mutable_task_queue()->set_kind(temporal::api::enums::v1::TASK_QUEUE_KIND_STICKY);
  request.mutable_task_queue()->set_normal_name("orders");
  call("PollWorkflowTaskQueue", request, kNow + 5 * kSecond);
  const auto& poll = engine.workflow_polls.requests.at(0);
  EXPECT_EQ(poll.ns, NamespaceNum(7));
  EXPECT_EQ(poll.kind, model::WORKFLOW_TASK);
  expect_same(poll.queue,
              from_text<model::QueueTarget>("name: 'q' sticky: true normal_name: 'orders'"));
  EXPECT_EQ(poll.identity, "me");
  EXPECT_EQ(poll.worker_instance_key, "k");
  EXPECT_EQ(poll.hold_until, kNow + 4 * kSecond);

  call("PollActivityTaskQueue", valid_activity(), kNow + 70 * kSecond);
  EXPECT_EQ(engine.activity_polls.requests.at(0).kind, model::ACTIVITY_TASK);
  EXPECT_GT(engine.activity_polls.requests[0].hold_until, kNow + 50 * kSecond - 1);
  EXPECT_LE(engine.activity_polls.requests[0].hold_until, kNow + 60 * kSecond);
}

// Tools show which build of a program its workers run.
TEST_F(PollTest, KeepsWhatTheWorkerSaysOfItsBuild) {
  const auto with_build = [](const std::string& build_id) {
    auto request = valid();
    request.MergeFrom(from_text<PollWorkflowTaskQueueRequest>(
        "worker_version_capabilities { build_id: '" + build_id +
        "' } deployment_options { deployment_name: 'shop' }"));
    return request;
  };
  call("PollWorkflowTaskQueue", with_build("b1"));
  temporal::api::taskqueue::v1::PollerInfo about;
  ASSERT_TRUE(about.ParseFromString(engine.workflow_polls.requests.at(0).about));
  expect_same(about, from_text<temporal::api::taskqueue::v1::PollerInfo>(R"(
      worker_version_capabilities { build_id: "b1" }
      deployment_options { deployment_name: "shop" })"));

  EXPECT_EQ(call("PollWorkflowTaskQueue", with_build(std::string(1001, 'b')))->status.code,
            kInvalidArgument);
}

// Workers that started together would otherwise come back together, every minute, for ever.
TEST_F(PollTest, HoldsDiffer) {
  call("PollActivityTaskQueue", valid_activity());
  call("PollActivityTaskQueue", valid_activity());
  EXPECT_NE(engine.activity_polls.requests.at(0).hold_until,
            engine.activity_polls.requests.at(1).hold_until);
}

TEST_F(PollTest, AnActivityPollMayCarryALimitForItsQueue) {
  const auto asked = [&](const std::string& metadata) {
    auto request = valid_activity();
    if (!metadata.empty()) {
      *request.mutable_task_queue_metadata() =
          from_text<temporal::api::taskqueue::v1::TaskQueueMetadata>(metadata);
    }
    EXPECT_EQ(call("PollActivityTaskQueue", request)->status.code, kOk);
    return engine.activity_polls.requests.back().max_tasks_per_second;
  };
  EXPECT_EQ(asked(""), std::nullopt);
  EXPECT_EQ(asked("max_tasks_per_second {}"), 0.0) << "zero is a limit that stops the queue";
  EXPECT_EQ(asked("max_tasks_per_second { value: 2.5 }"), 2.5);
  EXPECT_EQ(std::signbit(*asked("max_tasks_per_second { value: -0.0 }")), false);

  const char* text = "max_tasks_per_second must be non-negative";
  expect_refusals<PollActivityTaskQueueRequest>(
      "PollActivityTaskQueue", valid_activity(),
      {{[](auto& r) {
          r.mutable_task_queue_metadata()->mutable_max_tasks_per_second()->set_value(-0.1);
        },
        kInvalidArgument, text},
       {[](auto& r) {
          r.mutable_task_queue_metadata()->mutable_max_tasks_per_second()->set_value(NAN);
        },
        kInvalidArgument, text}});
}

TEST_F(PollTest, ATaskThatDoesNotArriveGoesBack) {
  engine.workflow_polls.result = shard::WorkflowTask{.token = token()};
  auto made = call("PollWorkflowTaskQueue", valid());
  EXPECT_NE(parse<PollWorkflowTaskQueueResponse>(made->answer).task_token(), "");
  made->delivered(true);
  EXPECT_TRUE(engine.returned_workflow_tasks.empty());
  made = call("PollWorkflowTaskQueue", valid());
  made->delivered(false);
  ASSERT_EQ(engine.returned_workflow_tasks.size(), 1u);
  EXPECT_EQ(engine.returned_workflow_tasks[0].workflow_id, "order-1");

  engine.activity_polls.result = shard::ActivityTask{.token = token()};
  made = call("PollActivityTaskQueue", valid_activity());
  EXPECT_EQ(parse<PollActivityTaskQueueResponse>(made->answer).workflow_namespace(), "default");
  made->delivered(false);
  ASSERT_EQ(engine.returned_activity_tasks.size(), 1u);
}

TEST_F(PollTest, AnEmptyAnswerHasNothingToGiveBackAndAQueryGoesToSomebodyElse) {
  auto made = call("PollWorkflowTaskQueue", valid());
  EXPECT_EQ(made->status.code, kOk);
  EXPECT_EQ(made->answer, "");
  EXPECT_FALSE(made->delivered);
  engine.workflow_polls.result =
      shard::WorkflowTask{.token = token(), .query = shard::AttachedQuery{.id = "q-1"}};
  made = call("PollWorkflowTaskQueue", valid());
  made->delivered(true);
  EXPECT_TRUE(engine.returned_queries.empty());
  const auto response = parse<PollWorkflowTaskQueueResponse>(made->answer);
  EXPECT_EQ(decode_query_token(response.task_token())->namespace_id, "id-of-default");
  made = call("PollWorkflowTaskQueue", valid());
  made->delivered(false);
  EXPECT_EQ(engine.returned_queries, std::vector<std::string>{"q-1"});
}

TEST_F(PollTest, AClientThatGoesAwayWithdrawsItsPoll) {
  engine.workflow_polls.holds = true;
  const auto made = call("PollWorkflowTaskQueue", valid());
  EXPECT_EQ(made->replies, 0);
  EXPECT_EQ(made->body(), "") << "a parked poll keeps its request's bytes";
  made->gone();
  EXPECT_EQ(engine.canceled_polls, std::vector<uint64_t>{1});
}

TEST_F(PollTest, ANamespaceHasOnlySoManyPollsParked) {
  ServiceOptions options;
  options.polls_max = 2;
  serve(options);
  serving_ = true;
  engine.workflow_polls.holds = true;
  call("PollWorkflowTaskQueue", valid());
  call("PollWorkflowTaskQueue", valid());
  auto made = call("PollWorkflowTaskQueue", valid());
  EXPECT_EQ(made->status.code, kResourceExhausted);
  EXPECT_EQ(made->status.message, "namespace concurrent poller limit exceeded");
  auto other = valid();
  other.set_namespace_("other");
  EXPECT_EQ(call("PollWorkflowTaskQueue", other)->replies, 0);
  // An answered poll makes room at once, even if the engine forgets to drop its reply.
  engine.workflow_polls.held[0](shard::WorkflowTask{});
  EXPECT_EQ(call("PollWorkflowTaskQueue", valid())->replies, 0);
}

TEST_F(PollTest, RefusesWhatIsWrong) {
  expect_refusals<PollWorkflowTaskQueueRequest>(
      "PollWorkflowTaskQueue", valid(),
      {{[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
       {[](auto& r) { r.clear_task_queue(); }, kInvalidArgument, "taskQueue is not set"},
       {[](auto& r) { r.mutable_task_queue()->clear_name(); }, kInvalidArgument,
        "missing task queue name"},
       {[](auto& r) { r.mutable_task_queue()->set_normal_name("/_sys/q"); }, kInvalidArgument,
        "task queue name cannot start with reserved prefix /_sys/"},
       {[](auto& r) { r.set_identity(std::string(1001, 'i')); }, kInvalidArgument,
        "Identity length exceeds limit."},
       {[](auto& r) {
          r.mutable_deployment_options()->set_worker_versioning_mode(
              temporal::api::enums::v1::WORKER_VERSIONING_MODE_VERSIONED);
        },
        kUnimplemented, "worker versioning is not implemented by this server"}});
  const auto made = call("PollWorkflowTaskQueue", valid(), kNow + 2 * kSecond - 1);
  EXPECT_EQ(made->status.code, kFailedPrecondition);
  EXPECT_EQ(made->status.message, "Context timeout is too short.");
}

TEST_F(PollTest, ShutdownWorker) {
  EXPECT_EQ(call("ShutdownWorker", from_text<ShutdownWorkerRequest>(R"(
      namespace: "default" sticky_task_queue: "s" task_queue: "q" worker_instance_key: "k"
      identity: "me")"))
                ->status.code,
            kOk);
  const auto& request = engine.shutdowns.requests.at(0);
  EXPECT_EQ(request.sticky_queue, "s");
  EXPECT_EQ(request.task_queue, "q");
  EXPECT_EQ(request.worker_instance_key, "k");
  EXPECT_EQ(request.identity, "me") << "who leaves is no longer a poller of the queue";
  EXPECT_EQ(request.ns, NamespaceNum(7));
}

}  // namespace
}  // namespace fairlead::api
