#include "api/temporal/service.h"

#include "absl/strings/match.h"
#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "google/protobuf/descriptor.h"
#include "temporal/api/operatorservice/v1/request_response.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using testing::FakeNamespaces;
using testing::kFailedPrecondition;
using testing::kInvalidArgument;
using testing::kNotFound;
using testing::kOk;
using testing::kUnimplemented;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;

// A method that nobody serves is answered by the transport in words of its own, which clients do
// not recognise. So each of them has a handler, also the ones we forgot.
TEST_F(ServiceTest, EveryMethodOfTheApiAnswersOnce) {
  int methods_seen = 0;
  for (const char* name : {"temporal.api.workflowservice.v1.WorkflowService",
                           "temporal.api.operatorservice.v1.OperatorService"}) {
    const auto* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    ASSERT_NE(service, nullptr);
    for (int i = 0; i < service->method_count(); ++i, ++methods_seen) {
      const auto made = call_bytes(std::string("/") + name + "/" + service->method(i)->name(), "");
      EXPECT_EQ(made->replies, 1) << service->method(i)->name();
    }
  }
  EXPECT_EQ(methods_seen, 123 + 12);
}

TEST_F(ServiceTest, WhatIsNotBuiltSaysSoInWordsThatClientsKnow) {
  const auto made = call_bytes("CreateSchedule", "");
  EXPECT_EQ(made->status.code, kUnimplemented);
  EXPECT_EQ(made->status.message,
            "unknown method CreateSchedule for service "
            "temporal.api.workflowservice.v1.WorkflowService: it is not implemented by this "
            "server");
  // Nobody is asked for what no client uses yet.
  EXPECT_EQ(call_bytes("FetchWorkerConfig", "")->status.code, kUnimplemented);
}

TEST_F(ServiceTest, BytesThatAreNoMessageAreRefused) {
  const auto made = call_bytes("DescribeNamespace", "\x0a\xff");
  EXPECT_EQ(made->status.code, kInvalidArgument);
  EXPECT_EQ(made->status.message,
            "the request is not a valid temporal.api.workflowservice.v1.DescribeNamespaceRequest");
}

// An SDK branches on these flags while it replays, so claiming one early breaks workflows later.
TEST_F(ServiceTest, ClaimsWhatItCanDoAndNothingElse) {
  expect_same(succeed<GetSystemInfoResponse>("GetSystemInfo", GetSystemInfoRequest()),
              from_text<GetSystemInfoResponse>(R"(
      server_version: "1.32.0"
      capabilities {
        signal_and_query_header: true internal_error_differentiation: true
        activity_failure_include_heartbeat: true encoded_failure_attributes: true
        build_id_based_versioning: true upsert_memo: true eager_workflow_start: true sdk_metadata: true })"));
}

TEST_F(ServiceTest, ClusterInfo) {
  ServiceOptions options;
  options.cluster_id = "c-1";
  serve(options);
  serving_ = true;
  const auto info = succeed<GetClusterInfoResponse>("GetClusterInfo", GetClusterInfoRequest());
  EXPECT_EQ(info.cluster_id(), "c-1");
  EXPECT_EQ(info.supported_clients().at("temporal-go"), "<2.0.0");
  EXPECT_EQ(info.supported_clients().at("temporal-ui"), "<3.0.0");
}

TEST_F(ServiceTest, SearchAttributesOfEveryNamespace) {
  using namespace temporal::api::operatorservice::v1;
  using namespace temporal::api::enums::v1;
  ListSearchAttributesRequest request;
  request.set_namespace_("default");
  const auto listed = succeed<ListSearchAttributesResponse>(
      "/temporal.api.operatorservice.v1.OperatorService/ListSearchAttributes", request);
  EXPECT_EQ(listed.system_attributes_size(), 33);
  EXPECT_EQ(listed.system_attributes().at("TemporalChangeVersion"),
            INDEXED_VALUE_TYPE_KEYWORD_LIST);
  EXPECT_EQ(listed.custom_attributes_size(), 0);
}

TEST_F(ServiceTest, RegisteringANamespace) {
  const auto valid = from_text<RegisterNamespaceRequest>(
      R"(namespace: "shop" workflow_execution_retention_period { seconds: 3600 }
         data { key: "k" value: "v" })");
  expect_refusals<RegisterNamespaceRequest>(
      "RegisterNamespace", valid,
      {{[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
       {[](auto& r) { r.set_namespace_(std::string(1001, 'n')); }, kInvalidArgument,
        "Namespace length exceeds limit."},
       {[](auto& r) { r.set_namespace_("temporal-system"); }, kInvalidArgument,
        "Namespace temporal-system is reserved."},
       {[](auto& r) { r.clear_workflow_execution_retention_period(); }, kInvalidArgument,
        "A valid retention period is not set on request."},
       {[](auto& r) { r.mutable_workflow_execution_retention_period()->set_seconds(3599); },
        kInvalidArgument, "A valid retention period is not set on request."},
       {[](auto& r) { r.set_namespace_("shop"); }, testing::kAlreadyExists,
        "Namespace shop already exists."}});
  EXPECT_EQ(engine.registry.rows.back()->retention_ns(), kHour);
  EXPECT_EQ(engine.registry.rows.back()->data().at("k"), "v");
}

TEST_F(ServiceTest, DescribingANamespace) {
  const auto described = succeed<DescribeNamespaceResponse>(
      "DescribeNamespace", from_text<DescribeNamespaceRequest>(R"(namespace: "default")"));
  expect_same(described, from_text<DescribeNamespaceResponse>(R"(
      namespace_info { name: "default" state: NAMESPACE_STATE_REGISTERED id: "id-of-default"
        capabilities { worker_poll_complete_on_shutdown: true poller_autoscaling: true eager_workflow_start: true
        sync_update: true async_update: true worker_heartbeats: true
        standalone_activities: true standalone_activity_start_delay: true
        standalone_activity_operator_commands: true }
        limits { blob_size_limit_error: 2097152 memo_size_limit_error: 2097152
                 workflow_task_completion_size_limit_error: 41943040 } }
      config { workflow_execution_retention_ttl { seconds: 86400 } bad_binaries { }
        history_archival_state: ARCHIVAL_STATE_DISABLED
        visibility_archival_state: ARCHIVAL_STATE_DISABLED }
      replication_config { active_cluster_name: "active" clusters { cluster_name: "active" } })"));
  EXPECT_EQ(succeed<DescribeNamespaceResponse>(
                "DescribeNamespace", from_text<DescribeNamespaceRequest>(R"(id: "id-of-other")"))
                .namespace_info()
                .name(),
            "other");
  auto made = call("DescribeNamespace",
                   from_text<DescribeNamespaceRequest>(R"(namespace: "default" id: "x")"));
  EXPECT_EQ(made->status.code, kInvalidArgument);
  made = call("DescribeNamespace", from_text<DescribeNamespaceRequest>(R"(namespace: "nope")"));
  EXPECT_EQ(made->status.code, kNotFound);
  EXPECT_EQ(made->status.message, "Namespace nope is not found.");
}

TEST_F(ServiceTest, ListingNamespacesInPages) {
  engine.registry.put("zombie", 10, model::NamespaceRow::DELETED);
  ListNamespacesRequest request;
  request.set_page_size(2);
  auto page = succeed<ListNamespacesResponse>("ListNamespaces", request);
  ASSERT_EQ(page.namespaces_size(), 2);
  EXPECT_EQ(page.namespaces(1).namespace_info().name(), "other");
  request.set_next_page_token(page.next_page_token());
  page = succeed<ListNamespacesResponse>("ListNamespaces", request);
  ASSERT_EQ(page.namespaces_size(), 1);
  EXPECT_EQ(page.namespaces(0).namespace_info().name(), "retired");
  EXPECT_EQ(page.next_page_token(), "");
  request.mutable_namespace_filter()->set_include_deleted(true);
  page = succeed<ListNamespacesResponse>("ListNamespaces", request);
  EXPECT_EQ(page.namespaces_size(), 2);
}

TEST_F(ServiceTest, UpdatingANamespaceChangesOnlyWhatIsNamed) {
  const auto updated =
      succeed<UpdateNamespaceResponse>("UpdateNamespace", from_text<UpdateNamespaceRequest>(R"(
          namespace: "default" update_info { description: "ours" data { key: "a" value: "b" } })"));
  EXPECT_EQ(updated.namespace_info().description(), "ours");
  EXPECT_EQ(updated.config().workflow_execution_retention_ttl().seconds(), 86400);
  auto made = call("UpdateNamespace", from_text<UpdateNamespaceRequest>(R"(
      namespace: "default" config { workflow_execution_retention_ttl { seconds: 1 } })"));
  EXPECT_EQ(made->status.message, "A valid retention period is not set on request.");
  made = call("UpdateNamespace", from_text<UpdateNamespaceRequest>(R"(
      namespace: "default" config { custom_search_attribute_aliases { key: "a" value: "b" } })"));
  EXPECT_EQ(made->status.code, kUnimplemented);
}

TEST_F(ServiceTest, ADeprecatedNamespaceFinishesWhatItHasAndStartsNothing) {
  DeprecateNamespaceRequest request;
  request.set_namespace_("default");
  EXPECT_EQ(call("DeprecateNamespace", request)->status.code, kOk);
  const auto start = call("StartWorkflowExecution", from_text<StartWorkflowExecutionRequest>(R"(
      namespace: "default" workflow_id: "w" workflow_type { name: "T" }
      task_queue { name: "q" })"));
  EXPECT_EQ(start->status.code, kFailedPrecondition);
  EXPECT_EQ(start->status.message, "Namespace has invalid state: Deprecated. Must be Registered.");
  EXPECT_EQ(engine.asked, 0);
  const auto signal = call("SignalWorkflowExecution", from_text<SignalWorkflowExecutionRequest>(R"(
      namespace: "default" workflow_execution { workflow_id: "w" } signal_name: "s")"));
  EXPECT_EQ(signal->status.code, kOk);
}

TEST_F(ServiceTest, ADeletedNamespaceIsGoneUnderItsName) {
  using temporal::api::operatorservice::v1::DeleteNamespaceRequest;
  using temporal::api::operatorservice::v1::DeleteNamespaceResponse;
  const std::string method = "/temporal.api.operatorservice.v1.OperatorService/DeleteNamespace";
  const auto refusal = [&](const char* asked) {
    return call(method, from_text<DeleteNamespaceRequest>(asked))->status;
  };
  EXPECT_EQ(refusal("").message, "Namespace is empty.");
  EXPECT_EQ(refusal(R"(namespace: "default" namespace_id: "x")").message,
            "Only one of namespace name or Id should be set on request.");
  EXPECT_EQ(refusal(R"(namespace: "nope")").code, kNotFound);
  EXPECT_EQ(refusal(R"(namespace: "temporal-system")").code, kFailedPrecondition);

  const auto deleted = succeed<DeleteNamespaceResponse>(
      method, from_text<DeleteNamespaceRequest>(R"(namespace_id: "id-of-other")"));
  EXPECT_TRUE(absl::StartsWith(deleted.deleted_namespace(), "other-deleted-"));
  EXPECT_EQ(refusal(R"(namespace: "other")").code, kNotFound);
  DescribeNamespaceRequest describe;
  describe.set_namespace_("other");
  EXPECT_EQ(call("DescribeNamespace", describe)->status.code, kNotFound);
}

// The token says which namespace a task belongs to. If the request says another one, somebody is
// trying a token that is not theirs, or has mixed up two clients.
TEST_F(ServiceTest, ATokenOpensOnlyItsOwnNamespace) {
  RespondActivityTaskCompletedRequest request;
  request.set_task_token(encode_token(token()));
  EXPECT_EQ(call("RespondActivityTaskCompleted", request)->status.code, kOk);
  request.set_namespace_("default");
  EXPECT_EQ(call("RespondActivityTaskCompleted", request)->status.code, kOk);
  ASSERT_EQ(engine.asked, 2);

  request.set_namespace_("other");
  EXPECT_EQ(call("RespondActivityTaskCompleted", request)->status.message,
            "Operation requested with a token from a different namespace.");
  request.set_namespace_("nope");
  EXPECT_EQ(call("RespondActivityTaskCompleted", request)->status.code, kNotFound);
  request.clear_namespace_();
  auto stray = token();
  stray.ns = NamespaceNum(99);
  request.set_task_token(encode_token(stray));
  EXPECT_EQ(call("RespondActivityTaskCompleted", request)->status.code, kNotFound);
  request.set_task_token("garbage");
  EXPECT_EQ(call("RespondActivityTaskCompleted", request)->status.message,
            "Error deserializing task token.");
  request.clear_task_token();
  EXPECT_EQ(call("RespondActivityTaskCompleted", request)->status.message,
            "Task token not set on request.");
  EXPECT_EQ(engine.asked, 2);
}

}  // namespace
}  // namespace fairlead::api
