#include "api/temporal/codec.h"

#include <gtest/gtest.h>

#include "api/temporal/proto_testing.h"
#include "base/random.h"
#include "temporal/api/enums/v1/event_type.pb.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {
namespace {

namespace enums = temporal::api::enums::v1;
using temporal::api::history::v1::History;
using temporal::api::history::v1::HistoryEvent;
using temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes;

// The engine's enums are written as they are.
#define SAME(ours, theirs) static_assert(int{model::ours} == int{enums::theirs})
SAME(WORKFLOW_STARTED, EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
SAME(WORKFLOW_COMPLETED, EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED);
SAME(WORKFLOW_FAILED, EVENT_TYPE_WORKFLOW_EXECUTION_FAILED);
SAME(WORKFLOW_TIMED_OUT, EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT);
SAME(WORKFLOW_TASK_SCHEDULED, EVENT_TYPE_WORKFLOW_TASK_SCHEDULED);
SAME(WORKFLOW_TASK_STARTED, EVENT_TYPE_WORKFLOW_TASK_STARTED);
SAME(WORKFLOW_TASK_COMPLETED, EVENT_TYPE_WORKFLOW_TASK_COMPLETED);
SAME(WORKFLOW_TASK_TIMED_OUT, EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT);
SAME(WORKFLOW_TASK_FAILED, EVENT_TYPE_WORKFLOW_TASK_FAILED);
SAME(ACTIVITY_SCHEDULED, EVENT_TYPE_ACTIVITY_TASK_SCHEDULED);
SAME(ACTIVITY_STARTED, EVENT_TYPE_ACTIVITY_TASK_STARTED);
SAME(ACTIVITY_COMPLETED, EVENT_TYPE_ACTIVITY_TASK_COMPLETED);
SAME(ACTIVITY_FAILED, EVENT_TYPE_ACTIVITY_TASK_FAILED);
SAME(ACTIVITY_TIMED_OUT, EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT);
SAME(ACTIVITY_CANCEL_REQUESTED, EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED);
SAME(ACTIVITY_CANCELED, EVENT_TYPE_ACTIVITY_TASK_CANCELED);
SAME(TIMER_STARTED, EVENT_TYPE_TIMER_STARTED);
SAME(TIMER_FIRED, EVENT_TYPE_TIMER_FIRED);
SAME(TIMER_CANCELED, EVENT_TYPE_TIMER_CANCELED);
SAME(WORKFLOW_CANCEL_REQUESTED, EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED);
SAME(WORKFLOW_CANCELED, EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED);
SAME(MARKER_RECORDED, EVENT_TYPE_MARKER_RECORDED);
SAME(WORKFLOW_SIGNALED, EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
SAME(WORKFLOW_TERMINATED, EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED);
SAME(WORKFLOW_CONTINUED_AS_NEW, EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW);
SAME(CHILD_INITIATED, EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED);
SAME(CHILD_START_FAILED, EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED);
SAME(CHILD_STARTED, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED);
SAME(CHILD_COMPLETED, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED);
SAME(CHILD_FAILED, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED);
SAME(CHILD_CANCELED, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED);
SAME(CHILD_TIMED_OUT, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT);
SAME(CHILD_TERMINATED, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED);
SAME(SIGNAL_EXTERNAL_INITIATED, EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED);
SAME(SIGNAL_EXTERNAL_FAILED, EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED);
SAME(EXTERNAL_SIGNALED, EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED);
SAME(CANCEL_EXTERNAL_INITIATED, EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED);
SAME(CANCEL_EXTERNAL_FAILED, EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED);
SAME(EXTERNAL_CANCEL_REQUESTED, EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED);
SAME(UPDATE_ACCEPTED, EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED);
SAME(UPDATE_COMPLETED, EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED);
SAME(WORKFLOW_OPTIONS_UPDATED, EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED);
SAME(BY_WORKFLOW, CONTINUE_AS_NEW_INITIATOR_WORKFLOW);
SAME(BY_RETRY, CONTINUE_AS_NEW_INITIATOR_RETRY);
SAME(BY_CRON, CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
SAME(PARENT_CLOSE_TERMINATE, PARENT_CLOSE_POLICY_TERMINATE);
SAME(PARENT_CLOSE_ABANDON, PARENT_CLOSE_POLICY_ABANDON);
SAME(PARENT_CLOSE_REQUEST_CANCEL, PARENT_CLOSE_POLICY_REQUEST_CANCEL);
SAME(SEARCH_ATTRIBUTES_UPSERTED, EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES);
SAME(PROPERTIES_MODIFIED, EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED);
SAME(START_TO_CLOSE, TIMEOUT_TYPE_START_TO_CLOSE);
SAME(SCHEDULE_TO_START, TIMEOUT_TYPE_SCHEDULE_TO_START);
SAME(SCHEDULE_TO_CLOSE, TIMEOUT_TYPE_SCHEDULE_TO_CLOSE);
SAME(HEARTBEAT, TIMEOUT_TYPE_HEARTBEAT);
SAME(RETRY_IN_PROGRESS, RETRY_STATE_IN_PROGRESS);
SAME(RETRY_NON_RETRYABLE_FAILURE, RETRY_STATE_NON_RETRYABLE_FAILURE);
SAME(RETRY_TIMEOUT, RETRY_STATE_TIMEOUT);
SAME(RETRY_MAXIMUM_ATTEMPTS_REACHED, RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED);
SAME(RETRY_POLICY_NOT_SET, RETRY_STATE_RETRY_POLICY_NOT_SET);
SAME(RETRY_INTERNAL_SERVER_ERROR, RETRY_STATE_INTERNAL_SERVER_ERROR);
SAME(RETRY_CANCEL_REQUESTED, RETRY_STATE_CANCEL_REQUESTED);
#undef SAME

model::Event signal(int64_t id) {
  model::Event event;
  event.set_id(id);
  event.set_kind(model::WORKFLOW_SIGNALED);
  event.set_time_ns(1'700'000'000'000'000'001);
  event.set_door(bytes_of<WorkflowExecutionSignaledEventAttributes>("signal_name: 'go'"));
  return event;
}

// Histories are stored as batches and read as one message, with no step in between that could mend
// a wrong frame.
TEST(TemporalCodec, EventsLaidEndToEndAreOneHistory) {
  std::string first_batch;
  std::string second_batch;
  const TemporalCodec codec;
  codec.append_event(signal(1), &first_batch);
  codec.append_event(signal(2), &first_batch);
  codec.append_event(signal(3), &second_batch);

  const auto history = parse<History>(first_batch + second_batch);
  ASSERT_EQ(history.events_size(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(history.events(i).event_id(), i + 1);
}

// What a worker will replay next year was written today.
TEST(TemporalCodec, TheBytesOfAnEventDoNotChange) {
  std::string history;
  TemporalCodec().append_event(signal(300), &history);
  const std::string golden(
      "\x0a\x19"                                  // History.events, 25 bytes
      "\x08\xac\x02"                              // event_id 300
      "\x12\x08\x08\x80\xe2\xcf\xaa\x06\x10\x01"  // event_time, seconds and nanos
      "\x18\x1a"                                  // event_type
      "\x28\xac\x02"                              // task_id
      "\xd2\x01\x04\x0a\x02go",                   // attributes, signal_name
      27);
  EXPECT_EQ(history, golden);
}

// Metadata, links and markers are for people and other services; the engine carries them unread.
TEST(TemporalCodec, TheEnvelopeSurroundsTheAttributes) {
  const char* text = R"(
    user_metadata { summary { data: '"hello"' } }
    links { workflow_event { workflow_id: "caller" } }
    event_group_markers { })";
  auto event = signal(4);
  event.set_envelope(bytes_of<HistoryEvent>(text));
  std::string history;
  TemporalCodec().append_event(event, &history);

  auto expected = from_text<HistoryEvent>(text);
  expected.set_event_id(4);
  expected.set_task_id(4);
  expected.set_event_type(enums::EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
  expected.mutable_event_time()->set_seconds(1'700'000'000);
  expected.mutable_event_time()->set_nanos(1);
  expected.mutable_workflow_execution_signaled_event_attributes()->set_signal_name("go");
  expect_same(parse<History>(history).events(0), expected);
}

// A random message of fields that no API defines, at most `bytes` long.
std::string random_fields(Random& random, size_t bytes_max) {
  std::string bytes;
  wire::Writer writer(&bytes);
  while (bytes.size() < bytes_max) {
    const auto field = static_cast<uint32_t>(1000 + random.below(100'000));
    std::string text(random.below(300), '\0');
    for (auto& c : text) c = static_cast<char>(random.next());
    switch (random.below(4)) {
      case 0:
        writer.varint(field, random.next());
        break;
      case 1:
        writer.float32(field, 1.5f);
        break;
      case 2:
        writer.float64(field, 2.5);
        break;
      default:
        writer.bytes(field, text);
    }
  }
  return bytes;
}

// An SDK may be newer than the server. What it says in fields that we have never heard of has to be
// there when it replays, byte for byte, whatever the sizes do to the frames around it.
TEST(TemporalCodec, FieldsFromTheFutureSurviveByteForByte) {
  Random random(20);
  for (int round = 0; round < 300; ++round) {
    const auto* kinds = model::EventKind_descriptor();
    const auto kind = 1 + random.below(static_cast<uint64_t>(kinds->value_count()) - 1);
    model::Event event;
    event.set_id(static_cast<int64_t>(1 + random.below(100'000)));
    event.set_kind(static_cast<model::EventKind>(kinds->value(static_cast<int>(kind))->number()));
    if (event.kind() == model::UPDATE_REJECTED) continue;  // a draft only: it is never written
    if (event.kind() >= model::WAIT_OPENED) continue;      // the other door's
    event.set_door(random_fields(random, random.below(40'000)));
    event.set_envelope(random_fields(random, random.below(500)));

    std::string bytes;
    TemporalCodec().append_event(event, &bytes);
    History history;
    ASSERT_TRUE(history.ParseFromString(bytes));
    const auto& written = history.events(0);
    const auto* attributes = HistoryEvent::descriptor()->FindOneofByName("attributes");
    const auto* member = written.GetReflection()->GetOneofFieldDescriptor(written, attributes);
    ASSERT_NE(member, nullptr) << event.kind();
    const auto& message = written.GetReflection()->GetMessage(written, member);
    std::string door;
    std::string envelope;
    message.GetReflection()->GetUnknownFields(message).SerializeToString(&door);
    written.GetReflection()->GetUnknownFields(written).SerializeToString(&envelope);
    EXPECT_EQ(door, event.door()) << "seed 20, round " << round;
    EXPECT_EQ(envelope, event.envelope()) << "seed 20, round " << round;
    EXPECT_NE(bytes.find(event.door()), std::string::npos);
  }
}

TEST(TemporalCodecDeathTest, KindAndAttributesMustSpeakOfTheSameThing) {
  std::string history;
  auto event = signal(1);
  event.mutable_timer_started();
  EXPECT_DEATH(TemporalCodec().append_event(event, &history), "different things");
  event.set_kind(model::EVENT_UNSPECIFIED);
  EXPECT_DEATH(TemporalCodec().append_event(event, &history), "no name for");
}

}  // namespace
}  // namespace fairlead::api
