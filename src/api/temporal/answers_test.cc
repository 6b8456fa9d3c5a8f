#include "api/temporal/answers.h"

#include <gtest/gtest.h>

#include "api/temporal/codec.h"
#include "api/temporal/proto_testing.h"
#include "temporal/api/common/v1/message.pb.h"
#include "temporal/api/query/v1/message.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using temporal::api::common::v1::Payloads;
using temporal::api::history::v1::ActivityTaskScheduledEventAttributes;
using temporal::api::query::v1::WorkflowQuery;
using temporal::api::workflowservice::v1::PollActivityTaskQueueResponse;
using temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse;

shard::WorkflowTask workflow_task() {
  shard::WorkflowTask task;
  task.token = {.ns = NamespaceNum(1),
                .workflow_id = "w",
                .run_id = "r",
                .scheduled_id = 2,
                .started_id = 3,
                .attempt = 4};
  task.workflow_type = "order";
  task.task_queue = "q";
  model::Event event;
  event.set_kind(model::WORKFLOW_SIGNALED);
  for (int id = 1; id <= 2; ++id) {
    event.set_id(id);
    TemporalCodec().append_event(event, &task.history);
  }
  return task;
}

// SDKs poll again at once when the token is empty. Advice belongs to tasks: without one there is
// none.
TEST(PollAnswers, APollThatEndedWithoutATaskIsEmpty) {
  EXPECT_EQ(encode_poll_workflow_task({}), "");
  EXPECT_EQ(encode_poll_activity_task({}, "n"), "");
  EXPECT_EQ(encode_poll_workflow_task({.poller_delta = 1}), "");
  EXPECT_EQ(encode_poll_activity_task({.poller_delta = 1}, "n"), "");
}

TEST(PollAnswers, AWorkflowTaskWithEverything) {
  auto task = workflow_task();
  task.previous_started_id = 1;
  task.backlog_hint = 8;
  task.scheduled_ns = 90'000'000'000;
  task.started_ns = 91'000'000'000;
  task.next_history_event = 3;
  task.queries.push_back({"a", bytes_of<WorkflowQuery>("query_type: 'state'")});
  task.queries.push_back({"b", ""});

  auto answer = parse<PollWorkflowTaskQueueResponse>(encode_poll_workflow_task(task));
  ASSERT_EQ(answer.history().events_size(), 2);
  EXPECT_EQ(answer.history().events(1).event_id(), 2);
  const auto token = decode_token(answer.task_token());
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->started_id, 3);
  const auto page = decode_history_token(answer.next_page_token());
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->run_id, "r");
  EXPECT_EQ(page->next_event, 3);

  answer.mutable_history()->Clear();
  answer.clear_task_token();
  answer.clear_next_page_token();
  expect_same(answer, from_text<PollWorkflowTaskQueueResponse>(R"(
      workflow_execution { workflow_id: "w" run_id: "r" } workflow_type { name: "order" }
      previous_started_event_id: 1 started_event_id: 3 attempt: 4 backlog_count_hint: 8
      history {} workflow_execution_task_queue { name: "q" kind: TASK_QUEUE_KIND_NORMAL }
      scheduled_time { seconds: 90 } started_time { seconds: 91 }
      queries { key: "a" value { query_type: "state" } } queries { key: "b" value {} })"));
}

TEST(PollAnswers, AWholeHistoryNeedsNoNextPage) {
  const auto answer =
      parse<PollWorkflowTaskQueueResponse>(encode_poll_workflow_task(workflow_task()));
  EXPECT_EQ(answer.next_page_token(), "");
  EXPECT_FALSE(answer.has_query());
  EXPECT_FALSE(answer.has_scheduled_time());
}

// A direct query changes nothing in the run: nothing started, and the answer goes to the query.
TEST(PollAnswers, ADirectQueryHasATokenOfItsOwnAndNoStartedEvent) {
  auto task = workflow_task();
  task.history.clear();
  task.query = shard::AttachedQuery{"query-1", bytes_of<WorkflowQuery>("query_type: 'state'")};
  const auto answer =
      parse<PollWorkflowTaskQueueResponse>(encode_poll_workflow_task(task, "ns-id"));
  EXPECT_EQ(answer.started_event_id(), 0);
  EXPECT_EQ(answer.query().query_type(), "state");
  EXPECT_TRUE(answer.has_history());
  EXPECT_FALSE(decode_token(answer.task_token()).ok());
  const auto token = decode_query_token(answer.task_token());
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->query_id, "query-1");
  EXPECT_EQ(token->namespace_id, "ns-id");
}

shard::ActivityTask activity_task(const std::string& activity) {
  shard::ActivityTask task;
  task.token = {.ns = NamespaceNum(1), .workflow_id = "w", .run_id = "r", .scheduled_id = 5};
  task.workflow_type = "order";
  task.activity = from_text<model::ActivityState>(activity);
  return task;
}

TEST(PollAnswers, AnActivityTaskWithEverything) {
  auto task = activity_task(R"(
      scheduled { activity_id: "a" activity_type: "charge" task_queue: "q"
        schedule_to_close_ns: 4000000000 schedule_to_start_ns: 3000000000
        start_to_close_ns: 2000000000 heartbeat_ns: 1000000000
        retry_policy { maximum_attempts: 9 } priority { priority_key: 1 } }
      first_scheduled_ns: 90000000000 scheduled_ns: 91000000000 started_ns: 92000000000
      attempt: 3)");
  task.activity.set_heartbeat_details(bytes_of<Payloads>("payloads { data: 'half' }"));
  task.priority.set_priority_key(2);
  model::Event event;
  event.set_id(5);
  event.set_kind(model::ACTIVITY_SCHEDULED);
  *event.mutable_activity_scheduled() = task.activity.scheduled();
  event.set_door(bytes_of<ActivityTaskScheduledEventAttributes>(
      "header { fields { key: 'h' value { data: '1' } } } input { payloads { data: '2' } }"));
  TemporalCodec().append_event(event, &task.scheduled_event);

  auto answer = parse<PollActivityTaskQueueResponse>(encode_poll_activity_task(task, "shop"));
  const auto token = decode_token(answer.task_token());
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->scheduled_id, 5);
  answer.clear_task_token();
  expect_same(answer, from_text<PollActivityTaskQueueResponse>(R"(
      workflow_namespace: "shop" workflow_type { name: "order" }
      workflow_execution { workflow_id: "w" run_id: "r" }
      activity_type { name: "charge" } activity_id: "a"
      header { fields { key: "h" value { data: "1" } } } input { payloads { data: "2" } }
      heartbeat_details { payloads { data: "half" } }
      scheduled_time { seconds: 90 } current_attempt_scheduled_time { seconds: 91 }
      started_time { seconds: 92 } attempt: 3
      schedule_to_close_timeout { seconds: 4 } start_to_close_timeout { seconds: 2 }
      heartbeat_timeout { seconds: 1 } retry_policy { maximum_attempts: 9 }
      priority { priority_key: 2 })"));
}

// The TypeScript SDK throws when one of these messages is missing.
TEST(PollAnswers, AnActivityTaskHasItsTimeoutsEvenWhenTheyAreZero) {
  const auto task =
      activity_task("scheduled { activity_id: 'a' activity_type: 'charge' } attempt: 1");
  auto answer = parse<PollActivityTaskQueueResponse>(encode_poll_activity_task(task, "shop"));
  answer.clear_task_token();
  expect_same(answer, from_text<PollActivityTaskQueueResponse>(R"(
      workflow_namespace: "shop" workflow_type { name: "order" }
      workflow_execution { workflow_id: "w" run_id: "r" }
      activity_type { name: "charge" } activity_id: "a" attempt: 1
      schedule_to_close_timeout {} start_to_close_timeout {} heartbeat_timeout {}
      retry_policy {})"));
}

// A client may send a message in two pieces, which readers of protobuf must put together.
TEST(PollAnswers, InputThatCameInPiecesIsWhole) {
  auto task = activity_task("attempt: 1");
  model::Event event;
  event.set_kind(model::ACTIVITY_SCHEDULED);
  event.set_door(
      bytes_of<ActivityTaskScheduledEventAttributes>("input { payloads { data: '1' } }") +
      bytes_of<ActivityTaskScheduledEventAttributes>("input { payloads { data: '2' } }"));
  TemporalCodec().append_event(event, &task.scheduled_event);
  const auto answer = parse<PollActivityTaskQueueResponse>(encode_poll_activity_task(task, "shop"));
  ASSERT_EQ(answer.input().payloads_size(), 2);
  EXPECT_EQ(answer.input().payloads(1).data(), "2");
}

// Workers that scale themselves take a decision of zero as one; "nothing said" is its absence.
TEST(PollAnswers, AdviceOnPollersIsThereOnlyWhenThereIsSome) {
  auto task = workflow_task();
  auto activity = activity_task("attempt: 1");
  for (const int delta : {-1, 0, 1}) {
    task.poller_delta = activity.poller_delta = delta;
    const auto answer = parse<PollWorkflowTaskQueueResponse>(encode_poll_workflow_task(task));
    EXPECT_EQ(answer.has_poller_scaling_decision(), delta != 0);
    EXPECT_EQ(answer.poller_scaling_decision().poll_request_delta_suggestion(), delta);
    const auto other =
        parse<PollActivityTaskQueueResponse>(encode_poll_activity_task(activity, "shop"));
    EXPECT_EQ(other.has_poller_scaling_decision(), delta != 0);
    EXPECT_EQ(other.poller_scaling_decision().poll_request_delta_suggestion(), delta);
  }
}

}  // namespace
}  // namespace fairlead::api
