#include <gtest/gtest.h>

#include "api/temporal/event_testing.h"

// Events of the workflow and its tasks: first with everything set, then with nothing set, where
// what matters is which messages are there all the same.
namespace fairlead::api {
namespace {

using namespace temporal::api::history::v1;

TEST(WorkflowEvents, StartedMergesTheDoorsFieldsWithTheEngines) {
  const auto door = bytes_of<WorkflowExecutionStartedEventAttributes>(R"(
    input { payloads { data: "1" } } identity: "me" workflow_id: "w"
    memo { fields { key: "m" value { data: "2" } } } header { fields { key: "h" value {} } }
    search_attributes { indexed_fields { key: "s" value { data: "3" } } })");
  expect_event(R"(kind: WORKFLOW_STARTED workflow_started {
      execution_timeout_ns: 60000000000 run_timeout_ns: 30000000001 task_timeout_ns: 10000000000
      execution_expiration_ns: 150000000000 first_task_backoff_ns: 5000000000
      original_run_id: "r1" first_run_id: "r0" attempt: 2 workflow_type: "order" task_queue: "q"
      continued_run_id: "r0" initiator: BY_RETRY cron_schedule: "@daily"
      retry_policy { maximum_attempts: 3 } priority { priority_key: 2 }
      parent { namespace_name: "default" namespace_id: "ns-1" initiated_id: 5
               run { workflow_id: "p" run_id: "pr" } }
      reset_points { build { build_id: "b" binary_checksum: "c" } run_id: "r0" completed_id: 4
        created_ns: 5000000000 expires_ns: 6000000000 is_resettable: true }
      root { workflow_id: "g" run_id: "gr" } })",
               door, R"(workflow_execution_started_event_attributes {
      workflow_type { name: "order" } task_queue { name: "q" kind: TASK_QUEUE_KIND_NORMAL }
      input { payloads { data: "1" } } identity: "me" workflow_id: "w" cron_schedule: "@daily"
      memo { fields { key: "m" value { data: "2" } } } header { fields { key: "h" value {} } }
      search_attributes { indexed_fields { key: "s" value { data: "3" } } }
      retry_policy { maximum_attempts: 3 } priority { priority_key: 2 }
      workflow_execution_timeout { seconds: 60 } workflow_run_timeout { seconds: 30 nanos: 1 }
      workflow_task_timeout { seconds: 10 } first_workflow_task_backoff { seconds: 5 }
      workflow_execution_expiration_time { seconds: 150 }
      original_execution_run_id: "r1" first_execution_run_id: "r0" attempt: 2
      continued_execution_run_id: "r0" initiator: CONTINUE_AS_NEW_INITIATOR_RETRY
      parent_workflow_namespace: "default" parent_workflow_namespace_id: "ns-1"
      parent_workflow_execution { workflow_id: "p" run_id: "pr" } parent_initiated_event_id: 5
      prev_auto_reset_points { points { build_id: "b" binary_checksum: "c" run_id: "r0"
        first_workflow_task_completed_id: 4 create_time { seconds: 5 } expire_time { seconds: 6 }
        resettable: true } }
      root_workflow_execution { workflow_id: "g" run_id: "gr" } })");
}

// SDKs read these durations without asking whether they are there. Timeouts that are not set, they
// do ask for.
TEST(WorkflowEvents, StartedHasItsDurationsEvenWhenTheyAreZero) {
  expect_event("kind: WORKFLOW_STARTED workflow_started {}", "",
               R"(workflow_execution_started_event_attributes {
      workflow_type {} task_queue { kind: TASK_QUEUE_KIND_NORMAL }
      workflow_task_timeout {}
      first_workflow_task_backoff {} })");
}

TEST(WorkflowEvents, Completed) {
  expect_event(
      "kind: WORKFLOW_COMPLETED workflow_closed { workflow_task_completed_id: 6 }",
      bytes_of<WorkflowExecutionCompletedEventAttributes>("result { payloads { data: '1' } }"),
      R"(workflow_execution_completed_event_attributes {
        result { payloads { data: '1' } } workflow_task_completed_event_id: 6 })");
  expect_event("kind: WORKFLOW_COMPLETED workflow_closed {}", "",
               "workflow_execution_completed_event_attributes {}");
}

TEST(WorkflowEvents, Failed) {
  expect_event(R"(kind: WORKFLOW_FAILED workflow_closed {
      workflow_task_completed_id: 6 retry_state: RETRY_POLICY_NOT_SET })",
               bytes_of<WorkflowExecutionFailedEventAttributes>("failure { message: 'no' }"),
               R"(workflow_execution_failed_event_attributes {
      failure { message: 'no' } retry_state: RETRY_STATE_RETRY_POLICY_NOT_SET
      workflow_task_completed_event_id: 6 })");
  expect_event("kind: WORKFLOW_FAILED workflow_closed {}", "",
               "workflow_execution_failed_event_attributes {}");
}

TEST(WorkflowEvents, TimedOut) {
  expect_event(
      "kind: WORKFLOW_TIMED_OUT workflow_closed { retry_state: RETRY_TIMEOUT }", "",
      "workflow_execution_timed_out_event_attributes { retry_state: RETRY_STATE_TIMEOUT }");
  expect_event("kind: WORKFLOW_TIMED_OUT workflow_closed {}", "",
               "workflow_execution_timed_out_event_attributes {}");
}

TEST(WorkflowEvents, Canceled) {
  expect_event(
      "kind: WORKFLOW_CANCELED workflow_closed { workflow_task_completed_id: 6 }",
      bytes_of<WorkflowExecutionCanceledEventAttributes>("details { payloads { data: '1' } }"),
      R"(workflow_execution_canceled_event_attributes {
        details { payloads { data: '1' } } workflow_task_completed_event_id: 6 })");
  expect_event("kind: WORKFLOW_CANCELED workflow_closed {}", "",
               "workflow_execution_canceled_event_attributes {}");
}

// Somebody terminated the run: everything is in the words of that somebody.
TEST(WorkflowEvents, TerminatedByAClient) {
  const char* text = "reason: 'enough' identity: 'me' details { payloads { data: '1' } }";
  expect_event("kind: WORKFLOW_TERMINATED",
               bytes_of<WorkflowExecutionTerminatedEventAttributes>(text),
               std::string("workflow_execution_terminated_event_attributes {") + text + "}");
  expect_event("kind: WORKFLOW_TERMINATED workflow_closed {}", "",
               "workflow_execution_terminated_event_attributes {}");
}

// The server terminated it, and says why in a payload that every SDK can decode.
TEST(WorkflowEvents, TerminatedByTheServerExplainsItselfInJson) {
  expect_event(R"(kind: WORKFLOW_TERMINATED workflow_closed {
      reason: "too big" identity: "history-service"
      details: "a \"quoted\" \\ line\nand \001 ü" })",
               "", R"(workflow_execution_terminated_event_attributes {
      reason: "too big" identity: "history-service"
      details { payloads {
        metadata { key: "encoding" value: "json/plain" }
        data: "\"a \\\"quoted\\\" \\\\ line\\u000aand \\u0001 ü\"" } } })");
}

TEST(WorkflowEvents, SignalsAndCancelRequestsAreTheDoorsAlone) {
  const char* signal = R"(signal_name: "go" input { payloads { data: "1" } } identity: "me"
      header { fields { key: "h" value {} } } request_id: "q")";
  expect_event("kind: WORKFLOW_SIGNALED",
               bytes_of<WorkflowExecutionSignaledEventAttributes>(signal),
               std::string("workflow_execution_signaled_event_attributes {") + signal + "}");
  const char* cancel = "cause: 'tired' identity: 'me' external_initiated_event_id: 4";
  expect_event(
      "kind: WORKFLOW_CANCEL_REQUESTED",
      bytes_of<WorkflowExecutionCancelRequestedEventAttributes>(cancel),
      std::string("workflow_execution_cancel_requested_event_attributes {") + cancel + "}");
  expect_event("kind: WORKFLOW_CANCEL_REQUESTED", "",
               "workflow_execution_cancel_requested_event_attributes {}");
}

TEST(WorkflowEvents, OptionsUpdatedHasTheWholePriority) {
  using Attributes = WorkflowExecutionOptionsUpdatedEventAttributes;
  expect_event(R"(kind: WORKFLOW_OPTIONS_UPDATED workflow_options_updated {
      priority { priority_key: 1 fairness_key: "acme" fairness_weight: 2 } })",
               bytes_of<Attributes>("identity: 'ada' unset_versioning_override: true"),
               R"(workflow_execution_options_updated_event_attributes {
      identity: "ada" unset_versioning_override: true
      priority { priority_key: 1 fairness_key: "acme" fairness_weight: 2 } })");
}

TEST(WorkflowEvents, TaskScheduledOnTheNormalQueue) {
  expect_event(R"(kind: WORKFLOW_TASK_SCHEDULED workflow_task_scheduled {
      queue { name: "q" } start_to_close_ns: 10000000000 attempt: 3 })",
               "", R"(workflow_task_scheduled_event_attributes {
      task_queue { name: "q" kind: TASK_QUEUE_KIND_NORMAL }
      start_to_close_timeout { seconds: 10 } attempt: 3 })");
  expect_event("kind: WORKFLOW_TASK_SCHEDULED workflow_task_scheduled {}", "",
               R"(workflow_task_scheduled_event_attributes {
      task_queue { kind: TASK_QUEUE_KIND_NORMAL } start_to_close_timeout {} })");
}

TEST(WorkflowEvents, TaskScheduledOnAStickyQueueNamesTheNormalOneToo) {
  expect_event(R"(kind: WORKFLOW_TASK_SCHEDULED workflow_task_scheduled {
      queue { name: "host:1" sticky: true normal_name: "q" }
      start_to_close_ns: 1500000000 attempt: 1 })",
               "", R"(workflow_task_scheduled_event_attributes {
      task_queue { name: "host:1" kind: TASK_QUEUE_KIND_STICKY normal_name: "q" }
      start_to_close_timeout { seconds: 1 nanos: 500000000 } attempt: 1 })");
}

TEST(WorkflowEvents, TaskStarted) {
  expect_event(R"(kind: WORKFLOW_TASK_STARTED workflow_task_started {
      scheduled_id: 6 identity: "w" request_id: "q" suggest_continue_as_new: true
      too_many_events: true history_too_large: true history_bytes: 5000000 })",
               "", R"(workflow_task_started_event_attributes {
      scheduled_event_id: 6 identity: "w" request_id: "q" suggest_continue_as_new: true
      suggest_continue_as_new_reasons: SUGGEST_CONTINUE_AS_NEW_REASON_HISTORY_SIZE_TOO_LARGE
      suggest_continue_as_new_reasons: SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_HISTORY_EVENTS
      history_size_bytes: 5000000 })");
  expect_event("kind: WORKFLOW_TASK_STARTED workflow_task_started {}", "",
               "workflow_task_started_event_attributes {}");
}

TEST(WorkflowEvents, TaskCompleted) {
  expect_event(R"(kind: WORKFLOW_TASK_COMPLETED workflow_task_ended {
      scheduled_id: 5 started_id: 6 identity: "w" })",
               bytes_of<WorkflowTaskCompletedEventAttributes>(
                   "sdk_metadata { core_used_flags: 3 } worker_deployment_name: 'd'"),
               R"(workflow_task_completed_event_attributes {
      scheduled_event_id: 5 started_event_id: 6 identity: "w"
      sdk_metadata { core_used_flags: 3 } worker_deployment_name: 'd' })");
  expect_event("kind: WORKFLOW_TASK_COMPLETED workflow_task_ended {}", "",
               "workflow_task_completed_event_attributes {}");
}

TEST(WorkflowEvents, TaskTimedOut) {
  expect_event(R"(kind: WORKFLOW_TASK_TIMED_OUT workflow_task_ended {
      scheduled_id: 5 started_id: 6 timeout_type: START_TO_CLOSE })",
               "", R"(workflow_task_timed_out_event_attributes {
      scheduled_event_id: 5 started_event_id: 6 timeout_type: TIMEOUT_TYPE_START_TO_CLOSE })");
  expect_event("kind: WORKFLOW_TASK_TIMED_OUT workflow_task_ended {}", "",
               "workflow_task_timed_out_event_attributes {}");
}

TEST(WorkflowEvents, TaskFailed) {
  expect_event(R"(kind: WORKFLOW_TASK_FAILED workflow_task_ended {
      scheduled_id: 5 started_id: 6 failed_cause: 24 identity: "w"
      failure { kind: SERVER message: "UnhandledCommand" } })",
               bytes_of<WorkflowTaskFailedEventAttributes>("base_run_id: 'b'"),
               R"(workflow_task_failed_event_attributes {
      scheduled_event_id: 5 started_event_id: 6 identity: "w" base_run_id: 'b'
      cause: WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
      failure { message: "UnhandledCommand" server_failure_info {} } })");
  expect_event("kind: WORKFLOW_TASK_FAILED workflow_task_ended {}", "",
               "workflow_task_failed_event_attributes {}");
}

TEST(WorkflowEvents, CommandsThatAreOnlyRecordedKnowTheirWorkflowTask) {
  const char* known = " command_recorded { workflow_task_completed_id: 6 }";
  const std::string id = " workflow_task_completed_event_id: 6 ";
  const std::string marker = R"(marker_name: "m" details { key: "d" value { payloads {} } }
      header {} failure { message: "f" })";
  expect_event(std::string("kind: MARKER_RECORDED") + known,
               bytes_of<MarkerRecordedEventAttributes>(marker),
               "marker_recorded_event_attributes {" + marker + id + "}");
  const std::string attributes =
      "search_attributes { indexed_fields { key: 's' value { data: '1' } } }";
  expect_event(std::string("kind: SEARCH_ATTRIBUTES_UPSERTED") + known,
               bytes_of<UpsertWorkflowSearchAttributesEventAttributes>(attributes),
               "upsert_workflow_search_attributes_event_attributes {" + attributes + id + "}");
  const std::string memo = "upserted_memo { fields { key: 'm' value { data: '1' } } }";
  expect_event(std::string("kind: PROPERTIES_MODIFIED") + known,
               bytes_of<WorkflowPropertiesModifiedEventAttributes>(memo),
               "workflow_properties_modified_event_attributes {" + memo + id + "}");
}

}  // namespace
}  // namespace fairlead::api
