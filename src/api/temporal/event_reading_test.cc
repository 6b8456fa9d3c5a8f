#include <gtest/gtest.h>

#include "api/temporal/event_testing.h"
#include "base/time.h"

// What the engine needs of events that it wrote long ago. That nothing is lost on the way is what
// expect_event looks at, in the tests of every kind of event.
namespace fairlead::api {
namespace {

using namespace temporal::api::history::v1;

model::Event read(const std::string& text) {
  return TemporalCodec().read_event(bytes_of<History>("events {" + text + "}"));
}

TEST(EventReading, IdTimeKindAndEnvelope) {
  const auto event = read(R"(event_id: 3 event_time { seconds: 9 nanos: 1 } task_id: 7
      event_type: EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED links { batch_job { job_id: "j" } }
      workflow_execution_signaled_event_attributes { signal_name: "s" identity: "me"
        external_workflow_execution { workflow_id: "w" } })");
  EXPECT_EQ(event.id(), 3);
  EXPECT_EQ(event.time_ns(), 9 * kSecond + 1);
  EXPECT_EQ(event.kind(), model::WORKFLOW_SIGNALED);
  expect_same(parse<HistoryEvent>(event.envelope()),
              from_text<HistoryEvent>(R"(links { batch_job { job_id: "j" } })"));
  // Given to another run it says who sent it, as it did before.
  expect_same(parse<WorkflowExecutionSignaledEventAttributes>(event.door()),
              from_text<WorkflowExecutionSignaledEventAttributes>(R"(
      signal_name: "s" identity: "me" external_workflow_execution { workflow_id: "w" })"));
}

TEST(EventReading, AStartedRunHasItsMemoAndSearchAttributes) {
  const auto event = read(R"(event_id: 1 event_type: EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
      workflow_execution_started_event_attributes {
        memo { fields { key: "m" value { data: "1" } } fields { key: "gone" value {} } }
        search_attributes { indexed_fields { key: "s" value { data: "2" } } } })");
  const auto& started = event.workflow_started();
  EXPECT_EQ(started.memo().size(), 1u);
  EXPECT_TRUE(started.memo().contains("m"));
  EXPECT_TRUE(started.search_attributes().contains("s"));
}

// A point to which a run can be reset names the code that went on from there.
TEST(EventReading, ACompletedTaskTellsTheWorkersBuild) {
  const auto build = [](const std::string& attributes) {
    return read(
               "event_id: 4 event_type: EVENT_TYPE_WORKFLOW_TASK_COMPLETED "
               "workflow_task_completed_event_attributes {" +
               attributes + "}")
        .workflow_task_ended()
        .build();
  };
  EXPECT_EQ(build("binary_checksum: 'c'").binary_checksum(), "c");
  EXPECT_EQ(build("worker_version { build_id: 'b' }").build_id(), "b");
  EXPECT_EQ(build("worker_version { build_id: 'b' } deployment { build_id: 'd' }").build_id(), "d");
  EXPECT_EQ(build("worker_version { build_id: 'b' } deployment { build_id: 'd' } "
                  "deployment_version { build_id: 'v' }")
                .build_id(),
            "v");
}

TEST(EventReading, AnUpsertTellsWhatItRemoves) {
  const auto event = read(R"(event_id: 5 event_type: EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED
      workflow_properties_modified_event_attributes { workflow_task_completed_event_id: 4
        upserted_memo { fields { key: "m" value { data: "1" } } fields { key: "gone" value {} } } })");
  const auto& upserts = event.command_recorded().upserts();
  EXPECT_NE(upserts.at("m"), "");
  EXPECT_EQ(upserts.at("gone"), "");
}

// A child that was asked for and never answered is asked for again, with all that it begins with.
TEST(EventReading, AChildCanBeAskedForAgain) {
  const auto event = read(R"(event_id: 5
      event_type: EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
      user_metadata { summary { data: "s" } }
      start_child_workflow_execution_initiated_event_attributes { workflow_id: "c"
        input { payloads { data: "1" } } header { fields { key: "h" value {} } }
        memo { fields { key: "m" value { data: "1" } } } })");
  const auto& child = event.child_initiated();
  expect_same(parse<WorkflowExecutionStartedEventAttributes>(child.start_door()),
              from_text<WorkflowExecutionStartedEventAttributes>(R"(workflow_id: "c"
      input { payloads { data: "1" } } header { fields { key: "h" value {} } }
      memo { fields { key: "m" value { data: "1" } } })"));
  expect_same(parse<HistoryEvent>(child.start_envelope()),
              from_text<HistoryEvent>(R"(user_metadata { summary { data: "s" } })"));
  EXPECT_TRUE(child.memo().contains("m"));
}

TEST(EventReading, ASignalToAnotherRunCanBeSentAgain) {
  const auto event = read(R"(event_id: 5
      event_type: EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED
      signal_external_workflow_execution_initiated_event_attributes { signal_name: "s"
        workflow_execution { workflow_id: "w" } input { payloads { data: "1" } } })");
  expect_same(parse<WorkflowExecutionSignaledEventAttributes>(event.external_event().target_door()),
              from_text<WorkflowExecutionSignaledEventAttributes>(
                  R"(signal_name: "s" input { payloads { data: "1" } })"));
}

TEST(EventReading, UpdatesHaveTheirIds) {
  const auto accepted = read(R"(event_id: 5
      event_type: EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
      workflow_execution_update_accepted_event_attributes { protocol_instance_id: "u"
        accepted_request { meta { update_id: "u" } } })");
  EXPECT_EQ(accepted.update_event().update_id(), "u");
  EXPECT_NE(accepted.update_event().request(), "");
  const auto completed = read(R"(event_id: 6
      event_type: EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED
      workflow_execution_update_completed_event_attributes { meta { update_id: "u" }
        accepted_event_id: 5 outcome { success {} } })");
  EXPECT_EQ(completed.update_event().update_id(), "u");
  EXPECT_EQ(completed.update_event().accepted_id(), 5);
}

TEST(EventReading, WhatAResetWrites) {
  const auto request = bytes_of<temporal::api::update::v1::Request>(R"(meta { update_id: "u" })");
  model::Event admitted = from_text<model::Event>("id: 7 kind: UPDATE_ADMITTED");
  admitted.mutable_update_event()->set_request(request);
  std::string framed;
  TemporalCodec().append_event(admitted, &framed);
  const auto attributes =
      parse<History>(framed).events(0).workflow_execution_update_admitted_event_attributes();
  expect_same(attributes, from_text<WorkflowExecutionUpdateAdmittedEventAttributes>(R"(
      request { meta { update_id: "u" } } origin: UPDATE_ADMITTED_EVENT_ORIGIN_REAPPLY)"));
  const auto read_back = TemporalCodec().read_event(framed);
  EXPECT_EQ(read_back.update_event().update_id(), "u");
  EXPECT_EQ(read_back.update_event().request(), request);

  expect_event(R"(kind: WORKFLOW_TASK_FAILED workflow_task_ended { scheduled_id: 5 started_id: 6
      failed_cause: 20 identity: "history-service" base_run_id: "b" new_run_id: "n"
      failure { kind: RESET message: "again" } })",
               "", R"(workflow_task_failed_event_attributes { scheduled_event_id: 5
      started_event_id: 6 cause: WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
      identity: "history-service" base_run_id: "b" new_run_id: "n"
      failure { message: "again" reset_workflow_failure_info {} } })");
}

}  // namespace
}  // namespace fairlead::api
