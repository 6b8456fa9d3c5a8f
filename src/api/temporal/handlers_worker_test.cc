#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "api/temporal/workers.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using testing::kInvalidArgument;
using testing::kNotFound;
using testing::kOk;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;

class WorkerTest : public ServiceTest {
 protected:
  void beat(const std::string& heartbeats) {
    auto request = from_text<RecordWorkerHeartbeatRequest>("namespace: 'default' " + heartbeats);
    ASSERT_EQ(call("RecordWorkerHeartbeat", request)->status.code, kOk);
  }

  // The instance keys of the workers that are listed, page by page.
  std::vector<std::string> list(const std::string& query, int page_size = 0) {
    std::vector<std::string> keys;
    ListWorkersRequest request;
    request.set_namespace_("default");
    request.set_query(query);
    request.set_page_size(page_size);
    do {
      const auto page = succeed<ListWorkersResponse>("ListWorkers", request);
      for (const auto& worker : page.workers()) keys.push_back(worker.worker_instance_key());
      request.set_next_page_token(page.next_page_token());
    } while (!request.next_page_token().empty());
    return keys;
  }

  void SetUp() override {
    beat(
        R"(worker_heartbeat { worker_instance_key: "a" task_queue: "orders" status: WORKER_STATUS_RUNNING
                               host_info { host_name: "h1" process_id: "1" } sdk_name: "py" }
            worker_heartbeat { worker_instance_key: "b" task_queue: "orders"
                               start_time { seconds: 1700000000 } }
            worker_heartbeat { worker_instance_key: "c" task_queue: "mails"
                               heartbeat_time { seconds: 1700000000 } }
            worker_heartbeat { worker_instance_key: "s" task_queue: "temporal-sys-x" })");
  }
};

using Keys = std::vector<std::string>;

TEST_F(WorkerTest, AreListedByWhatTheySaidLast) {
  EXPECT_EQ(list(""), (Keys{"a", "b", "c"}));
  EXPECT_EQ(list("", 1), (Keys{"a", "b", "c"}));
  EXPECT_EQ(list("TaskQueue='orders'"), (Keys{"a", "b"}));
  EXPECT_EQ(list("Status = 'Running' AND HostName = 'h1'"), (Keys{"a"}));
  EXPECT_EQ(list("StartTime > '2023-01-01T00:00:00Z'"), (Keys{"b"}));
  EXPECT_EQ(list("HeartbeatTime > '2023-01-01T00:00:00Z'"), (Keys{"c"}));
  beat("worker_heartbeat { worker_instance_key: 'c' task_queue: 'orders' }");
  EXPECT_EQ(list("TaskQueue='orders'", 2), (Keys{"a", "b", "c"}));
}

TEST_F(WorkerTest, AreCountedAndDescribed) {
  auto count = from_text<CountWorkersRequest>("namespace: 'default' query: \"TaskQueue='orders'\"");
  EXPECT_EQ(succeed<CountWorkersResponse>("CountWorkers", count).count(), 2);
  count.clear_query();
  count.set_include_system_workers(true);
  EXPECT_EQ(succeed<CountWorkersResponse>("CountWorkers", count).count(), 4);

  auto describe = from_text<DescribeWorkerRequest>("namespace: 'default' worker_instance_key: 'a'");
  const auto described = succeed<DescribeWorkerResponse>("DescribeWorker", describe);
  EXPECT_EQ(described.worker_info().worker_heartbeat().host_info().process_id(), "1");
  describe.set_worker_instance_key("nobody");
  EXPECT_EQ(call("DescribeWorker", describe)->status.code, kNotFound);
}

// A worker tells twice that it goes: when it begins to, and when it has nothing left to do.
TEST_F(WorkerTest, OneThatHasGoneIsForgotten) {
  call("ShutdownWorker", from_text<ShutdownWorkerRequest>(R"(
      namespace: "default" worker_heartbeat { worker_instance_key: "a"
        status: WORKER_STATUS_SHUTTING_DOWN })"));
  EXPECT_EQ(list("WorkerStatus = 'ShuttingDown'"), (Keys{"a"}));
  beat("worker_heartbeat { worker_instance_key: 'a' status: WORKER_STATUS_SHUTDOWN }");
  EXPECT_EQ(list(""), (Keys{"b", "c"}));
}

TEST_F(WorkerTest, BadQuestionsAreRefused) {
  auto request = from_text<ListWorkersRequest>("namespace: 'default' query: 'Color = 1'");
  EXPECT_EQ(call("ListWorkers", request)->status.code, kInvalidArgument);
  EXPECT_EQ(call("RecordWorkerHeartbeat", from_text<RecordWorkerHeartbeatRequest>(
                                              "namespace: 'default' worker_heartbeat {}"))
                ->status.code,
            kInvalidArgument);
  EXPECT_EQ(
      call("DescribeWorker", from_text<DescribeWorkerRequest>("namespace: 'default'"))->status.code,
      kInvalidArgument);
}

TEST(Workers, AreForgottenAfterFiveMinutes) {
  Workers workers;
  Workers::Heartbeat heartbeat;
  heartbeat.set_worker_instance_key("a");
  const NamespaceNum ns(7);
  const auto filter = Filter::parse("", Workers::type_of);
  ASSERT_TRUE(workers.put(ns, heartbeat, 0).ok());
  EXPECT_EQ(workers.list(ns, *filter, false, "", 10, 5 * kMinute - 1).size(), 1U);
  EXPECT_TRUE(workers.list(ns, *filter, false, "", 10, 5 * kMinute).empty());
  EXPECT_FALSE(workers.find(ns, "a", 5 * kMinute).has_value());
  EXPECT_FALSE(workers.find(NamespaceNum(8), "a", 1).has_value());
}

}  // namespace
}  // namespace fairlead::api
