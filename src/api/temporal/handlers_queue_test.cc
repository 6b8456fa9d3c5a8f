#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// The mode that the CLI uses is deprecated.
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

namespace fairlead::api {
namespace {

using shard::QueueView;
using testing::kInvalidArgument;
using testing::kNotFound;
using testing::kNow;
using testing::kUnimplemented;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;
using namespace temporal::api::enums::v1;

class QueueTest : public ServiceTest {
 protected:
  static DescribeTaskQueueRequest request(const std::string& text) {
    return from_text<DescribeTaskQueueRequest>(R"(namespace: "default" task_queue { name: "q" } )" +
                                               text);
  }
  DescribeTaskQueueResponse describe(const std::string& text) {
    return succeed<DescribeTaskQueueResponse>("DescribeTaskQueue", request(text));
  }

  // Somebody works here, and not as fast as tasks come in.
  static QueueView busy() {
    QueueView view;
    view.pollers = {{.identity = "w1", .last_access_ns = 90 * kSecond},
                    {.identity = "w2",
                     .last_access_ns = 91 * kSecond,
                     .max_tasks_per_second = 7.5,
                     .about = from_text<temporal::api::taskqueue::v1::PollerInfo>(
                                  R"(worker_version_capabilities { build_id: "b1" })")
                                  .SerializeAsString()}};
    view.levels[0] = {.waiting = 2, .oldest_ns = kNow - 3 * kSecond, .added_per_second = 1.5};
    view.levels[3] = {.waiting = 5,
                      .oldest_ns = kNow - 1500 * kMillisecond,
                      .added_per_second = 2,
                      .dispatched_per_second = 0.5};
    view.levels[4] = {.dispatched_per_second = 0.25};
    view.limit_per_second = 7.5;
    view.limit_source = QueueView::LimitSource::kWorker;
    view.is_limiting = true;
    return view;
  }
  static QueueView quiet() {
    QueueView view;
    view.limit_per_second = 4000;
    return view;
  }
};

TEST_F(QueueTest, AnUnknownQueueIsAnEmptyOne) {
  engine.described_queues.result = quiet();
  expect_same(describe("report_config: true"), from_text<DescribeTaskQueueResponse>(R"(
      versioning_info { current_version: "__unversioned__" update_time { seconds: -62135596800 } }
      effective_rate_limit { requests_per_second: 4000
                             rate_limit_source: RATE_LIMIT_SOURCE_SYSTEM })"));
  const auto& asked = engine.described_queues.requests.at(0);
  EXPECT_EQ(asked.ns, NamespaceNum(7));
  EXPECT_EQ(asked.name, "q");
  EXPECT_EQ(asked.kind, model::WORKFLOW_TASK) << "which is what a type of 0 means";
  describe("task_queue_type: TASK_QUEUE_TYPE_ACTIVITY");
  EXPECT_EQ(engine.described_queues.requests.at(1).kind, model::ACTIVITY_TASK);
}

TEST_F(QueueTest, ABusyQueueWithEverything) {
  engine.described_queues.result = busy();
  expect_same(describe("report_stats: true include_task_queue_status: true"),
              from_text<DescribeTaskQueueResponse>(R"(
      pollers { identity: "w1" last_access_time { seconds: 90 } rate_per_second: 100000 }
      pollers { identity: "w2" last_access_time { seconds: 91 } rate_per_second: 7.5
          worker_version_capabilities { build_id: "b1" } }
      stats { approximate_backlog_count: 7 approximate_backlog_age { seconds: 3 }
              tasks_add_rate: 3.5 tasks_dispatch_rate: 0.75 rate_limiting_active: true }
      stats_by_priority_key { key: 1 value {
          approximate_backlog_count: 2 approximate_backlog_age { seconds: 3 }
          tasks_add_rate: 1.5 rate_limiting_active: true } }
      stats_by_priority_key { key: 3 value {
          approximate_backlog_age {} rate_limiting_active: true } }
      stats_by_priority_key { key: 4 value {
          approximate_backlog_count: 5 approximate_backlog_age { seconds: 1 nanos: 500000000 }
          tasks_add_rate: 2 tasks_dispatch_rate: 0.5 rate_limiting_active: true } }
      stats_by_priority_key { key: 5 value {
          approximate_backlog_age {} tasks_dispatch_rate: 0.25 rate_limiting_active: true } }
      versioning_info { current_version: "__unversioned__" update_time { seconds: -62135596800 } }
      effective_rate_limit { requests_per_second: 7.5 rate_limit_source: RATE_LIMIT_SOURCE_WORKER }
      task_queue_status { backlog_count_hint: 7 rate_per_second: 7.5 task_id_block {} })"));
}

// The oldest task may wait in any level, and a level's leftover time says nothing once it is empty.
TEST_F(QueueTest, TheAgeIsThatOfTheOldestWaitingTask) {
  auto view = quiet();
  view.levels[0] = {.waiting = 0, .oldest_ns = 1};
  view.levels[1] = {.waiting = 1, .oldest_ns = kNow - 2 * kSecond};
  view.levels[4] = {.waiting = 1, .oldest_ns = kNow - 9 * kSecond};
  engine.described_queues.result = view;
  EXPECT_EQ(describe("report_stats: true").stats().approximate_backlog_age().seconds(), 9);
  // A shard's clock may be a moment ahead of the door's.
  view.levels[4].oldest_ns = view.levels[1].oldest_ns = kNow + 1;
  engine.described_queues.result = view;
  expect_same(describe("report_stats: true").stats(),
              from_text<temporal::api::taskqueue::v1::TaskQueueStats>(
                  "approximate_backlog_count: 2 approximate_backlog_age {}"));
}

TEST_F(QueueTest, ReportsOnlyWhatWasAskedFor) {
  engine.described_queues.result = busy();
  const auto response = describe("");
  EXPECT_FALSE(response.has_stats());
  EXPECT_EQ(response.stats_by_priority_key_size(), 0);
  EXPECT_FALSE(response.has_config());
  EXPECT_EQ(response.pollers_size(), 2);
}

TEST_F(QueueTest, TellsWhereTheLimitComesFrom) {
  auto view = quiet();
  view.limit_source = QueueView::LimitSource::kApi;
  view.limit_per_second = 0;
  engine.described_queues.result = view;
  expect_same(describe("").effective_rate_limit(),
              from_text<DescribeTaskQueueResponse::EffectiveRateLimit>(
                  "rate_limit_source: RATE_LIMIT_SOURCE_API"));
}

TEST_F(QueueTest, TheConfigurationIsThereOnceSomebodyHasSetIt) {
  auto view = quiet();
  view.has_rules = true;
  engine.described_queues.result = view;
  EXPECT_TRUE(describe("report_config: true").has_config());
  view.rules = from_text<model::QueueRules>(R"(
      queue_limit { per_second: 5 reason: "r" identity: "i" updated_ns: 3000000000 }
      weights { key: "gold" value: 2 })");
  engine.described_queues.result = view;
  expect_same(describe("report_config: true").config(),
              from_text<temporal::api::taskqueue::v1::TaskQueueConfig>(R"(
      queue_rate_limit {
        rate_limit { requests_per_second: 5 }
        metadata { reason: "r" update_identity: "i" update_time { seconds: 3 } } }
      fairness_weight_overrides { key: "gold" value: 2 })"));
  EXPECT_FALSE(describe("").has_config());
}

TEST_F(QueueTest, NexusQueuesAreEmpty) {
  expect_same(describe("task_queue_type: TASK_QUEUE_TYPE_NEXUS report_stats: true "
                       "report_config: true"),
              from_text<DescribeTaskQueueResponse>(R"(
      stats { approximate_backlog_age {} }
      stats_by_priority_key { key: 3 value { approximate_backlog_age {} } }
      versioning_info { current_version: "__unversioned__" update_time { seconds: -62135596800 } }
      effective_rate_limit { requests_per_second: 100000
                             rate_limit_source: RATE_LIMIT_SOURCE_SYSTEM })"));
  EXPECT_EQ(engine.asked, 0);
}

// What `temporal task-queue describe` asks.
TEST_F(QueueTest, EnhancedModeShowsTheQueuesOfAName) {
  engine.described_queues.result = busy();
  expect_same(describe("api_mode: DESCRIBE_TASK_QUEUE_MODE_ENHANCED report_stats: true "
                       "report_pollers: true task_queue_types: TASK_QUEUE_TYPE_ACTIVITY "
                       "task_queue_types: TASK_QUEUE_TYPE_NEXUS "
                       "task_queue_types: TASK_QUEUE_TYPE_ACTIVITY"),
              from_text<DescribeTaskQueueResponse>(R"(
      versions_info { key: "" value {
        types_info { key: 2 value {
          pollers { identity: "w1" last_access_time { seconds: 90 } rate_per_second: 100000 }
          pollers { identity: "w2" last_access_time { seconds: 91 } rate_per_second: 7.5
          worker_version_capabilities { build_id: "b1" } }
          stats { approximate_backlog_count: 7 approximate_backlog_age { seconds: 3 }
                  tasks_add_rate: 3.5 tasks_dispatch_rate: 0.75 rate_limiting_active: true } } }
        types_info { key: 3 value { stats { approximate_backlog_age {} } } } } })"));
  ASSERT_EQ(engine.described_queues.requests.size(), 1u);
  EXPECT_EQ(engine.described_queues.requests[0].kind, model::ACTIVITY_TASK);
}

TEST_F(QueueTest, EnhancedModeAsksForBothTypesUnlessTold) {
  engine.described_queues.result = busy();
  expect_same(describe("api_mode: DESCRIBE_TASK_QUEUE_MODE_ENHANCED"),
              from_text<DescribeTaskQueueResponse>(R"(
      versions_info { key: "" value {
        types_info { key: 1 value {} } types_info { key: 2 value {} } } })"));
  ASSERT_EQ(engine.described_queues.requests.size(), 2u);
  EXPECT_EQ(engine.described_queues.requests[0].kind, model::WORKFLOW_TASK);
  EXPECT_EQ(engine.described_queues.requests[1].kind, model::ACTIVITY_TASK);
  const auto one = describe(
      "api_mode: DESCRIBE_TASK_QUEUE_MODE_ENHANCED task_queue_types: TASK_QUEUE_TYPE_UNSPECIFIED");
  EXPECT_EQ(one.versions_info().at("").types_info().count(1), 1u);
}

// There are no versions: what waits and who polls belongs to workers without one.
TEST_F(QueueTest, EnhancedModeShowsNothingForAVersion) {
  engine.described_queues.result = busy();
  const std::string asked =
      "api_mode: DESCRIBE_TASK_QUEUE_MODE_ENHANCED report_stats: true report_pollers: true "
      "report_task_reachability: true task_queue_types: TASK_QUEUE_TYPE_WORKFLOW ";
  const auto only = describe(asked + "versions { build_ids: 'b1' }");
  expect_same(only, from_text<DescribeTaskQueueResponse>(R"(
      versions_info { key: "b1" value {
        types_info { key: 1 value { stats { approximate_backlog_age {} } } }
        task_reachability: BUILD_ID_TASK_REACHABILITY_UNREACHABLE } })"));
  for (const char* more : {"unversioned: true", "all_active: true"}) {
    const auto both = describe(asked + "versions { build_ids: 'b1' " + more + " }");
    EXPECT_EQ(both.versions_info_size(), 2);
    EXPECT_EQ(both.versions_info().at("").task_reachability(),
              BUILD_ID_TASK_REACHABILITY_REACHABLE);
    EXPECT_EQ(both.versions_info().at("").types_info().at(1).pollers_size(), 2);
  }
}

TEST_F(QueueTest, EnhancedModeHasTheConfigurationToo) {
  engine.described_queues.holds = true;
  const auto made =
      call("DescribeTaskQueue",
           request("api_mode: DESCRIBE_TASK_QUEUE_MODE_ENHANCED report_config: true"));
  ASSERT_EQ(engine.described_queues.held.size(), 1u);
  engine.described_queues.held[0](quiet());
  ASSERT_EQ(engine.described_queues.held.size(), 2u);
  EXPECT_EQ(made->replies, 0);
  auto view = quiet();
  view.has_rules = true;
  (*view.rules.mutable_weights())["gold"] = 2;
  engine.described_queues.held[1](view);
  EXPECT_EQ(made->replies, 1);
  const auto response = parse<DescribeTaskQueueResponse>(made->answer);
  EXPECT_EQ(response.config().fairness_weight_overrides().at("gold"), 2);
}

TEST_F(QueueTest, AQueueThatCannotBeAskedEndsTheCall) {
  engine.described_queues.result = errors::unimplemented("later");
  const auto made =
      call("DescribeTaskQueue", request("api_mode: DESCRIBE_TASK_QUEUE_MODE_ENHANCED"));
  EXPECT_EQ(made->replies, 1);
  EXPECT_EQ(made->status.message, "later");
  EXPECT_EQ(engine.described_queues.requests.size(), 1u);
}

TEST_F(QueueTest, RefusesToDescribeWhatIsNoQueue) {
  const auto sticky = [](DescribeTaskQueueRequest& r) {
    r.mutable_task_queue()->set_kind(TASK_QUEUE_KIND_STICKY);
  };
  const auto versions = [](DescribeTaskQueueRequest& r, const std::string& text) {
    r.MergeFrom(from_text<DescribeTaskQueueRequest>(text));
  };
  expect_refusals<DescribeTaskQueueRequest>(
      "DescribeTaskQueue", request(""),
      {{[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
       {[](auto& r) { r.set_namespace_("x"); }, kNotFound, "Namespace x is not found."},
       {[](auto& r) { r.clear_task_queue(); }, kInvalidArgument, "taskQueue is not set"},
       {[](auto& r) { r.mutable_task_queue()->clear_name(); }, kInvalidArgument,
        "missing task queue name"},
       {[](auto& r) { r.mutable_task_queue()->set_name(std::string(1001, 'q')); }, kInvalidArgument,
        "taskQueue length exceeds limit"},
       {[](auto& r) { r.mutable_task_queue()->set_name("/_sys/q/1"); }, kInvalidArgument,
        "task queue name cannot start with reserved prefix /_sys/"},
       {[](auto& r) { r.set_task_queue_type(static_cast<TaskQueueType>(9)); }, kInvalidArgument,
        "task queue type 9 is unknown; there are 1, 2 and 3"},
       {[=](auto& r) {
          sticky(r);
          versions(r, "api_mode: DESCRIBE_TASK_QUEUE_MODE_ENHANCED");
        },
        kInvalidArgument,
        "Enhanced DescribeTaskQueue is not valid for a sticky queue, use api_mode=UNSPECIFIED or a "
        "normal queue."},
       {[=](auto& r) {
          sticky(r);
          r.set_report_stats(true);
        },
        kInvalidArgument, "DescribeTaskQueue stats are only supported for the root partition"},
       {sticky, kUnimplemented, "sticky queues are not described by this server"},
       {[=](auto& r) {
          versions(r,
                   "report_task_reachability: true versions { build_ids: ['1', '2', '3', '4', "
                   "'5', '6'] }");
        },
        kInvalidArgument,
        "Too many build ids queried at once with ReportTaskReachability==true, limit: 5"},
       {[=](auto& r) {
          for (int i = 0; i <= 100; ++i) versions(r, "versions { build_ids: 'b' }");
        },
        kInvalidArgument, "too many build ids: got 101, maximum 100"}});
}

// A queue has one owner, whatever clients know of partitions.
TEST_F(QueueTest, AQueueIsItsOnlyPartition) {
  const auto valid =
      from_text<ListTaskQueuePartitionsRequest>("namespace: 'default' task_queue { name: 'q' }");
  expect_same(succeed<ListTaskQueuePartitionsResponse>("ListTaskQueuePartitions", valid),
              from_text<ListTaskQueuePartitionsResponse>(R"(
      activity_task_queue_partitions { key: "q" }
      workflow_task_queue_partitions { key: "q" })"));
  expect_refusals<ListTaskQueuePartitionsRequest>(
      "ListTaskQueuePartitions", valid,
      {{[](auto& r) { r.set_namespace_("x"); }, kNotFound, "Namespace x is not found."},
       {[](auto& r) { r.clear_task_queue(); }, kInvalidArgument, "taskQueue is not set"},
       {[](auto& r) { r.mutable_task_queue()->set_name("/_sys/q/1"); }, kInvalidArgument,
        "task queue name cannot start with reserved prefix /_sys/"}});
}

}  // namespace
}  // namespace fairlead::api
