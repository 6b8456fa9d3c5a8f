#include "server/metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "api/temporal/answers.h"
#include "base/error.h"

namespace fairlead::server {
namespace {

constexpr TimeNs kNow = 1'700'000'000 * kSecond;

std::string text_of(const std::vector<prometheus::MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

std::string text_of(const shard::MeasuredQueue& queue) {
  std::vector<prometheus::MetricFamily> families;
  const auto names = [](NamespaceNum num) { return num == NamespaceNum(7) ? "prod" : ""; };
  add_queue_families({queue}, names, kNow, &families);
  return text_of(families);
}

// Alerts are written against these very names and labels, so a test spells them out.
TEST(Metrics, DispatchLatencyIsToldBySourceAndLevel) {
  shard::MeasuredQueue queue;
  queue.figures.queue = {NamespaceNum(7), model::ACTIVITY_TASK, "mail-out"};
  queue.dispatches.fresh[3].add(0);
  queue.dispatches.waited[1].add(3 * kSecond);
  queue.dispatches.waited[1].add(kSecond);
  const auto text = text_of(queue);
  const std::string labels =
      "namespace=\"prod\",taskqueue=\"mail_out\",task_type=\"Activity\",partition=\"0\"";
  EXPECT_NE(text.find("task_dispatch_latency_count{" + labels +
                      ",source=\"History\",forwarded=\"false\",task_priority=\"3\"} 1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("task_dispatch_latency_count{" + labels +
                      ",source=\"DbBacklog\",forwarded=\"false\",task_priority=\"1\"} 2"),
            std::string::npos);
  EXPECT_NE(text.find("task_dispatch_latency_sum{" + labels +
                      ",source=\"DbBacklog\",forwarded=\"false\",task_priority=\"1\"} 4"),
            std::string::npos);
}

TEST(Metrics, TasksThatNobodyTookInTimeAreCounted) {
  shard::MeasuredQueue queue;
  queue.figures.queue = {NamespaceNum(7), model::WORKFLOW_TASK, "q"};
  queue.dispatches.expired = 4;
  EXPECT_NE(text_of(queue).find("schedule_to_start_timeout{namespace=\"prod\",taskqueue=\"q\","
                                "task_type=\"Workflow\",partition=\"0\"} 4"),
            std::string::npos);
}

// A namespace that was deleted has no name that an operator would know.
TEST(Metrics, QueuesOfNamespacesThatAreGoneAreLeftOut) {
  shard::MeasuredQueue queue;
  queue.figures.queue = {NamespaceNum(8), model::WORKFLOW_TASK, "q"};
  EXPECT_EQ(text_of(queue), "");
}

TEST(Metrics, CallsThatAreTurnedAwayAreToldByCause) {
  api::RefusalCounts refusals;
  std::vector<prometheus::MetricFamily> families;
  add_refusal_families(refusals, &families);
  EXPECT_EQ(text_of(families), "");
  const std::string service = "/temporal.api.workflowservice.v1.WorkflowService/";
  const auto limit =
      api::to_rpc_status(errors::concurrent_limit("namespace concurrent poller limit"));
  for (int i = 0; i < 3; ++i) refusals.count(service + "PollActivityTaskQueue", limit);
  refusals.count(service + "StartWorkflowExecution",
                 api::to_rpc_status(errors::system_overloaded()));
  refusals.count(service + "StartWorkflowExecution", api::to_rpc_status(errors::not_found("no")));
  refusals.count(service + "Plain", {8, "a limit without a cause", ""});
  add_refusal_families(refusals, &families);
  const auto text = text_of(families);
  EXPECT_NE(text.find("service_errors_resource_exhausted{operation=\"PollActivityTaskQueue\","
                      "resource_exhausted_cause=\"ConcurrentLimit\","
                      "resource_exhausted_scope=\"Namespace\"} 3"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("resource_exhausted_cause=\"SystemOverloaded\","
                      "resource_exhausted_scope=\"System\"} 1"),
            std::string::npos);
  EXPECT_NE(text.find("operation=\"Plain\",resource_exhausted_cause=\"Unspecified\""),
            std::string::npos);
}

}  // namespace
}  // namespace fairlead::server
