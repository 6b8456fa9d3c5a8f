#include <gtest/gtest.h>

#include "api/temporal/event_testing.h"

// Events that have to do with other runs, and what passes from one run to another.
namespace fairlead::api {
namespace {

using namespace temporal::api::history::v1;

constexpr char kAboutChild[] = R"(namespace: "default" namespace_id: "ns-1"
    workflow_execution { workflow_id: "c" run_id: "cr" } workflow_type { name: "Ship" }
    initiated_event_id: 5)";

std::string child(const std::string& kind, const std::string& more = "") {
  return "kind: " + kind + R"( child_event { namespace_name: "default" namespace_id: "ns-1"
      run { workflow_id: "c" run_id: "cr" } workflow_type: "Ship" initiated_id: 5 )" +
         more + "}";
}

TEST(OtherRunEvents, ContinuedAsNew) {
  expect_event(R"(kind: WORKFLOW_CONTINUED_AS_NEW workflow_closed {
      workflow_task_completed_id: 4 new_run_id: "r2"
      next { backoff_ns: 1000000000 initiator: BY_CRON workflow_type: "order" task_queue: "q" run_timeout_ns: 2000000000 } })",
               bytes_of<WorkflowExecutionContinuedAsNewEventAttributes>(
                   "input { payloads { data: '1' } } memo {}"),
               R"(workflow_execution_continued_as_new_event_attributes {
      input { payloads { data: '1' } } memo {} new_execution_run_id: "r2"
      workflow_type { name: "order" } task_queue { name: "q" kind: TASK_QUEUE_KIND_NORMAL }
      workflow_run_timeout { seconds: 2 } workflow_task_timeout {}
      workflow_task_completed_event_id: 4 backoff_start_interval { seconds: 1 }
      initiator: CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE })");
}

TEST(OtherRunEvents, ChildInitiated) {
  expect_event(R"(kind: CHILD_INITIATED child_initiated {
      namespace_name: "default" namespace_id: "ns-1" workflow_id: "c" workflow_type: "Ship"
      task_queue: "q" run_timeout_ns: 1000000000 parent_close_policy: PARENT_CLOSE_ABANDON
      reuse_policy: 3 retry_policy { maximum_attempts: 2 } cron_schedule: "@daily"
      priority { priority_key: 2 } workflow_task_completed_id: 4 start_door: "not shown" })",
               bytes_of<StartChildWorkflowExecutionInitiatedEventAttributes>(
                   "input { payloads { data: '1' } }"),
               R"(start_child_workflow_execution_initiated_event_attributes {
      namespace: "default" namespace_id: "ns-1" workflow_id: "c" workflow_type { name: "Ship" }
      task_queue { name: "q" kind: TASK_QUEUE_KIND_NORMAL } input { payloads { data: '1' } }
      workflow_run_timeout { seconds: 1 } workflow_task_timeout {}
      parent_close_policy: PARENT_CLOSE_POLICY_ABANDON workflow_task_completed_event_id: 4
      workflow_id_reuse_policy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
      retry_policy { maximum_attempts: 2 } cron_schedule: "@daily" priority { priority_key: 2 } })");
}

TEST(OtherRunEvents, WhatBecomesOfAChild) {
  const std::string about = kAboutChild;
  expect_event(child("CHILD_STARTED"), "",
               "child_workflow_execution_started_event_attributes {" + about + "}");
  expect_event(child("CHILD_START_FAILED", "failed_cause: 1"), "",
               R"(start_child_workflow_execution_failed_event_attributes {
      namespace: "default" namespace_id: "ns-1" workflow_id: "c" workflow_type { name: "Ship" }
      initiated_event_id: 5
      cause: START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS })");
  expect_event(
      child("CHILD_COMPLETED", "started_id: 6"),
      bytes_of<ChildWorkflowExecutionCompletedEventAttributes>("result { payloads { data: '1' } }"),
      "child_workflow_execution_completed_event_attributes { started_event_id: 6 "
      "result { payloads { data: '1' } }" +
          about + "}");
  expect_event(child("CHILD_FAILED", "started_id: 6 retry_state: RETRY_POLICY_NOT_SET"), "",
               "child_workflow_execution_failed_event_attributes { started_event_id: 6 "
               "retry_state: RETRY_STATE_RETRY_POLICY_NOT_SET " +
                   about + "}");
  expect_event(
      child("CHILD_CANCELED", "started_id: 6"), "",
      "child_workflow_execution_canceled_event_attributes { started_event_id: 6 " + about + "}");
  expect_event(child("CHILD_TIMED_OUT", "started_id: 6 retry_state: RETRY_TIMEOUT"), "",
               "child_workflow_execution_timed_out_event_attributes { started_event_id: 6 "
               "retry_state: RETRY_STATE_TIMEOUT " +
                   about + "}");
  expect_event(
      child("CHILD_TERMINATED", "started_id: 6"), "",
      "child_workflow_execution_terminated_event_attributes { started_event_id: 6 " + about + "}");
}

TEST(OtherRunEvents, SignalsAndCancelRequestsToOthers) {
  const std::string known = R"(external_event { namespace_name: "default" namespace_id: "ns-1"
      run { workflow_id: "o" run_id: "or" } workflow_task_completed_id: 4 )";
  const std::string shown = R"(namespace: "default" namespace_id: "ns-1"
      workflow_execution { workflow_id: "o" run_id: "or" } )";
  expect_event("kind: SIGNAL_EXTERNAL_INITIATED " + known + "children_only: true }",
               bytes_of<SignalExternalWorkflowExecutionInitiatedEventAttributes>(
                   "signal_name: 's' namespace: 'default'"),
               "signal_external_workflow_execution_initiated_event_attributes { signal_name: 's' "
               "workflow_task_completed_event_id: 4 child_workflow_only: true " +
                   shown + "}");
  expect_event("kind: SIGNAL_EXTERNAL_FAILED " + known + "initiated_id: 5 failed_cause: 1 }", "",
               "signal_external_workflow_execution_failed_event_attributes { initiated_event_id: 5 "
               "cause: "
               "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_"
               "FOUND " +
                   shown + "}");
  expect_event("kind: EXTERNAL_SIGNALED " + known + "initiated_id: 5 }", "",
               "external_workflow_execution_signaled_event_attributes { initiated_event_id: 5 " +
                   shown + "}");
  // The command left the namespace out.
  expect_event("kind: CANCEL_EXTERNAL_INITIATED " + known + "}", "",
               R"(request_cancel_external_workflow_execution_initiated_event_attributes {
      workflow_task_completed_event_id: 4 namespace_id: "ns-1"
      workflow_execution { workflow_id: "o" run_id: "or" } })");
  expect_event("kind: EXTERNAL_CANCEL_REQUESTED " + known + "initiated_id: 5 }", "",
               "external_workflow_execution_cancel_requested_event_attributes { "
               "initiated_event_id: 5 " +
                   shown + "}");
}

TEST(OtherRunEvents, WhatComesFromAnotherRunSaysSo) {
  const std::string origin = R"(origin { run { workflow_id: "o" run_id: "or" } initiated_id: 5 })";
  expect_event("kind: WORKFLOW_SIGNALED " + origin,
               bytes_of<WorkflowExecutionSignaledEventAttributes>("signal_name: 's'"),
               R"(workflow_execution_signaled_event_attributes { signal_name: 's'
      identity: "history-service" request_id: "or/5"
      external_workflow_execution { workflow_id: "o" run_id: "or" } })");
  expect_event("kind: WORKFLOW_CANCEL_REQUESTED " + origin,
               bytes_of<WorkflowExecutionCancelRequestedEventAttributes>("cause: 'c'"),
               R"(workflow_execution_cancel_requested_event_attributes { cause: 'c'
      identity: "history-service" external_initiated_event_id: 5
      external_workflow_execution { workflow_id: "o" run_id: "or" } })");
}

std::string first_event() {
  auto event = from_text<model::Event>(R"(id: 1 kind: WORKFLOW_STARTED workflow_started {
      workflow_type: "order" task_queue: "q" attempt: 1 run_timeout_ns: 1 })");
  event.set_door(bytes_of<WorkflowExecutionStartedEventAttributes>(R"(
      input { payloads { data: "1" } } identity: "me" workflow_id: "w"
      memo { fields { key: "m" value { data: "2" } } } header { fields { key: "h" value {} } }
      last_completion_result { payloads { data: "before" } })"));
  std::string bytes;
  TemporalCodec().append_event(event, &bytes);
  return bytes;
}

WorkflowExecutionStartedEventAttributes again(const model::Event& closing) {
  const auto next = TemporalCodec().begin_again(first_event(), closing);
  EXPECT_EQ(next.memo_size(), 1);
  return parse<WorkflowExecutionStartedEventAttributes>(next.start_door());
}

// Who started the first run did not start this one.
constexpr char kKept[] = R"(input { payloads { data: "1" } } workflow_id: "w"
    memo { fields { key: "m" value { data: "2" } } } header { fields { key: "h" value {} } })";

TEST(BeginAgain, CarriesTheResultOn) {
  auto closing = from_text<model::Event>("kind: WORKFLOW_COMPLETED");
  closing.set_door(
      bytes_of<WorkflowExecutionCompletedEventAttributes>("result { payloads { data: 'now' } }"));
  expect_same(again(closing),
              from_text<WorkflowExecutionStartedEventAttributes>(
                  std::string(kKept) + "last_completion_result { payloads { data: 'now' } }"));
}

TEST(BeginAgain, RemembersTheFailureAndTheLastResult) {
  auto closing = from_text<model::Event>("kind: WORKFLOW_FAILED");
  closing.set_door(bytes_of<WorkflowExecutionFailedEventAttributes>("failure { message: 'no' }"));
  expect_same(again(closing),
              from_text<WorkflowExecutionStartedEventAttributes>(
                  std::string(kKept) + "last_completion_result { payloads { data: 'before' } } "
                                       "continued_failure { message: 'no' }"));
  const auto timed_out = again(from_text<model::Event>("kind: WORKFLOW_TIMED_OUT"));
  EXPECT_EQ(timed_out.continued_failure().message(), "workflow timeout");
  EXPECT_EQ(timed_out.continued_failure().timeout_failure_info().timeout_type(),
            temporal::api::enums::v1::TIMEOUT_TYPE_START_TO_CLOSE);
}

TEST(TellParent, HasTheParentsNumbers) {
  auto closing = from_text<model::Event>("kind: WORKFLOW_CANCELED");
  closing.set_door(
      bytes_of<WorkflowExecutionCanceledEventAttributes>("details { payloads { data: 'why' } }"));
  expect_same(
      parse<ChildWorkflowExecutionCanceledEventAttributes>(TemporalCodec().tell_parent(closing)),
      from_text<ChildWorkflowExecutionCanceledEventAttributes>(
          "details { payloads { data: 'why' } }"));
}

}  // namespace
}  // namespace fairlead::api
