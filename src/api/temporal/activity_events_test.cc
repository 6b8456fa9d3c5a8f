#include <gtest/gtest.h>

#include "api/temporal/event_testing.h"
#include "temporal/api/common/v1/message.pb.h"
#include "temporal/api/failure/v1/message.pb.h"

// Events of activities and timers, and the failures inside them.
namespace fairlead::api {
namespace {

using namespace temporal::api::history::v1;
using temporal::api::common::v1::Payloads;
using temporal::api::failure::v1::Failure;

TEST(ActivityEvents, Scheduled) {
  const std::string door =
      "header { fields { key: 'h' value {} } } input { payloads { data: '1' } }";
  expect_event(R"(kind: ACTIVITY_SCHEDULED activity_scheduled {
      activity_id: "a" activity_type: "charge" task_queue: "q"
      schedule_to_close_ns: 4000000000 schedule_to_start_ns: 3000000000
      start_to_close_ns: 2000000000 heartbeat_ns: 1000000000
      retry_policy { initial_interval_ns: 1000000000 backoff_coefficient: 2.5
        maximum_interval_ns: 100000000000 maximum_attempts: 9
        non_retryable_error_types: "Bad" non_retryable_error_types: "" }
      priority { priority_key: 3 fairness_key: "acme" fairness_weight: 1.5 }
      workflow_task_completed_id: 4 })",
               bytes_of<ActivityTaskScheduledEventAttributes>(door),
               "activity_task_scheduled_event_attributes {" + door + R"(
      activity_id: "a" activity_type { name: "charge" }
      task_queue { name: "q" kind: TASK_QUEUE_KIND_NORMAL }
      schedule_to_close_timeout { seconds: 4 } schedule_to_start_timeout { seconds: 3 }
      start_to_close_timeout { seconds: 2 } heartbeat_timeout { seconds: 1 }
      retry_policy { initial_interval { seconds: 1 } backoff_coefficient: 2.5
        maximum_interval { seconds: 100 } maximum_attempts: 9
        non_retryable_error_types: "Bad" non_retryable_error_types: "" }
      priority { priority_key: 3 fairness_key: "acme" fairness_weight: 1.5 }
      workflow_task_completed_event_id: 4 })");
}

// Timeouts and retry policy are read by SDKs without asking; a priority that says nothing is not.
TEST(ActivityEvents, ScheduledHasItsTimeoutsAndPolicyEvenWhenTheyAreEmpty) {
  expect_event("kind: ACTIVITY_SCHEDULED activity_scheduled { priority {} }", "",
               R"(activity_task_scheduled_event_attributes {
      activity_type {} task_queue { kind: TASK_QUEUE_KIND_NORMAL }
      schedule_to_close_timeout {} schedule_to_start_timeout {} start_to_close_timeout {}
      heartbeat_timeout {} retry_policy {} })");
}

TEST(ActivityEvents, Started) {
  expect_event(R"(kind: ACTIVITY_STARTED activity_started {
      scheduled_id: 5 identity: "w" request_id: "q" attempt: 3
      last_failure { kind: TIMEOUT timeout_type: HEARTBEAT
        message: "activity Heartbeat timeout" } })",
               "", R"(activity_task_started_event_attributes {
      scheduled_event_id: 5 identity: "w" request_id: "q" attempt: 3
      last_failure { message: "activity Heartbeat timeout" source: "Server"
        timeout_failure_info { timeout_type: TIMEOUT_TYPE_HEARTBEAT } } })");
  expect_event("kind: ACTIVITY_STARTED activity_started {}", "",
               "activity_task_started_event_attributes {}");
}

TEST(ActivityEvents, Completed) {
  expect_event(
      "kind: ACTIVITY_COMPLETED activity_ended { scheduled_id: 5 started_id: 6 identity: 'w' }",
      bytes_of<ActivityTaskCompletedEventAttributes>("result { payloads { data: '1' } }"),
      R"(activity_task_completed_event_attributes { result { payloads { data: '1' } }
         scheduled_event_id: 5 started_event_id: 6 identity: 'w' })");
  expect_event("kind: ACTIVITY_COMPLETED activity_ended {}", "",
               "activity_task_completed_event_attributes {}");
}

TEST(ActivityEvents, Failed) {
  model::Event event;
  auto* ended = event.mutable_activity_ended();
  event.set_kind(model::ACTIVITY_FAILED);
  ended->set_scheduled_id(5);
  ended->set_started_id(6);
  ended->set_identity("w");
  ended->set_retry_state(model::RETRY_MAXIMUM_ATTEMPTS_REACHED);
  ended->mutable_failure()->set_kind(model::Failure::APPLICATION);
  ended->mutable_failure()->set_type("Bad");
  const std::string failure = R"(failure { message: "no" source: "GoSDK" stack_trace: "main.go:1"
      application_failure_info { type: "Bad" details { payloads { data: "1" } } } })";
  // A worker's failure is in the worker's own bytes; the engine's copy of its type is not added.
  ended->mutable_failure()->set_door(
      from_text<ActivityTaskFailedEventAttributes>(failure).failure().SerializeAsString());
  expect_event(event.DebugString(), "", "activity_task_failed_event_attributes {" + failure + R"(
      scheduled_event_id: 5 started_event_id: 6 identity: 'w'
      retry_state: RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED })");
  expect_event("kind: ACTIVITY_FAILED activity_ended {}", "",
               "activity_task_failed_event_attributes {}");
}

TEST(ActivityEvents, TimedOut) {
  expect_event(R"(kind: ACTIVITY_TIMED_OUT activity_ended {
      scheduled_id: 5 started_id: 6 retry_state: RETRY_TIMEOUT
      failure { kind: TIMEOUT message: "activity StartToClose timeout" timeout_type: START_TO_CLOSE
        cause { kind: SERVER message: "worker gone" non_retryable: true } } })",
               "", R"(activity_task_timed_out_event_attributes {
      scheduled_event_id: 5 started_event_id: 6 retry_state: RETRY_STATE_TIMEOUT
      failure { message: "activity StartToClose timeout" source: "Server"
        timeout_failure_info { timeout_type: TIMEOUT_TYPE_START_TO_CLOSE }
        cause { message: "worker gone"
          server_failure_info { non_retryable: true } } } })");
  expect_event("kind: ACTIVITY_TIMED_OUT activity_ended {}", "",
               "activity_task_timed_out_event_attributes {}");
}

TEST(ActivityEvents, CanceledByItsWorker) {
  expect_event(R"(kind: ACTIVITY_CANCELED activity_ended {
      scheduled_id: 5 started_id: 6 identity: "w" latest_cancel_requested_id: 4 })",
               bytes_of<ActivityTaskCanceledEventAttributes>("details { payloads { data: '1' } }"),
               R"(activity_task_canceled_event_attributes { details { payloads { data: '1' } }
      scheduled_event_id: 5 started_event_id: 6 identity: "w"
      latest_cancel_requested_event_id: 4 })");
  expect_event("kind: ACTIVITY_CANCELED activity_ended {}", "",
               "activity_task_canceled_event_attributes {}");
}

// Nobody was there to give details, so the server gives some, in JSON.
TEST(ActivityEvents, CanceledBeforeItStarted) {
  expect_event(R"(kind: ACTIVITY_CANCELED activity_ended {
      scheduled_id: 5 latest_cancel_requested_id: 6 canceled_before_start: true })",
               "", R"(activity_task_canceled_event_attributes {
      details { payloads { metadata { key: "encoding" value: "json/plain" }
        data: "\"ACTIVITY_ID_NOT_STARTED\"" } }
      scheduled_event_id: 5 latest_cancel_requested_event_id: 6 })");
}

TEST(ActivityEvents, CancelRequested) {
  expect_event(R"(kind: ACTIVITY_CANCEL_REQUESTED activity_cancel_requested {
      scheduled_id: 5 workflow_task_completed_id: 6 })",
               "", R"(activity_task_cancel_requested_event_attributes {
      scheduled_event_id: 5 workflow_task_completed_event_id: 6 })");
  expect_event("kind: ACTIVITY_CANCEL_REQUESTED activity_cancel_requested {}", "",
               "activity_task_cancel_requested_event_attributes {}");
}

TEST(TimerEvents, StartedFiredCanceled) {
  expect_event(R"(kind: TIMER_STARTED timer_started {
      timer_id: "t" start_to_fire_ns: 2000000000 workflow_task_completed_id: 4 })",
               "", R"(timer_started_event_attributes { timer_id: "t"
      start_to_fire_timeout { seconds: 2 } workflow_task_completed_event_id: 4 })");
  expect_event("kind: TIMER_FIRED timer_ended { timer_id: 't' started_id: 5 }", "",
               "timer_fired_event_attributes { timer_id: 't' started_event_id: 5 }");
  expect_event(R"(kind: TIMER_CANCELED timer_ended {
      timer_id: "t" started_id: 5 workflow_task_completed_id: 6 identity: "w" })",
               "", R"(timer_canceled_event_attributes {
      timer_id: "t" started_event_id: 5 workflow_task_completed_event_id: 6 identity: "w" })");
}

TEST(TimerEvents, NothingSet) {
  expect_event("kind: TIMER_STARTED timer_started {}", "",
               "timer_started_event_attributes { start_to_fire_timeout {} }");
  expect_event("kind: TIMER_FIRED timer_ended {}", "", "timer_fired_event_attributes {}");
  expect_event("kind: TIMER_CANCELED timer_ended {}", "", "timer_canceled_event_attributes {}");
}

TEST(Failures, AWorkersOwnBytesAreNotTouched) {
  model::Failure failure;
  failure.set_message("ignored");
  failure.set_door("\x0a\x02no\xd2\x3e\x01x");  // with a field that no API defines
  EXPECT_EQ(encode_failure(failure), failure.door());
}

TEST(Failures, TheServersOwnCarryTheKindThatSdksThrow) {
  model::Failure failure;
  failure.set_kind(model::Failure::TIMEOUT);
  failure.set_message("activity Heartbeat timeout");
  failure.set_timeout_type(model::HEARTBEAT);
  failure.set_heartbeat_details(bytes_of<Payloads>("payloads { data: '1' }"));
  expect_same(parse<Failure>(encode_failure(failure)), from_text<Failure>(R"(
      message: "activity Heartbeat timeout" source: "Server"
      timeout_failure_info { timeout_type: TIMEOUT_TYPE_HEARTBEAT
        last_heartbeat_details { payloads { data: '1' } } })"));

  const auto encoded = [](const std::string& text) {
    return parse<Failure>(encode_failure(from_text<model::Failure>(text)));
  };
  expect_same(encoded("kind: SERVER message: 'm'"),
              from_text<Failure>("message: 'm' server_failure_info {}"));
  expect_same(encoded("kind: CANCELED"),
              from_text<Failure>("source: 'Server' canceled_failure_info {}"));
  expect_same(encoded("kind: TERMINATED"),
              from_text<Failure>("source: 'Server' terminated_failure_info {}"));
  expect_same(encoded("kind: APPLICATION type: 'T' non_retryable: true next_retry_delay_ns: 0"),
              from_text<Failure>("source: 'Server' application_failure_info { type: 'T' "
                                 "non_retryable: true next_retry_delay {} }"));
  expect_same(encoded("message: 'm'"), from_text<Failure>("message: 'm' source: 'Server'"));
}

// A worker may fail an activity and leave the failure empty. It has no bytes to keep, and the
// server does not put words in its mouth.
TEST(Failures, OneThatSaysNothingStaysEmpty) { EXPECT_EQ(encode_failure(model::Failure()), ""); }

}  // namespace
}  // namespace fairlead::api
