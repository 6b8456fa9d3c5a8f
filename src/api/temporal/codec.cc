#include "api/temporal/codec.h"

#include "absl/container/flat_hash_set.h"
#include "api/temporal/convert.h"
#include "api/temporal/event_attributes.h"
#include "base/assert.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {

namespace {

using model::Event;
using temporal::api::history::v1::History;
using temporal::api::history::v1::HistoryEvent;
using wire::Writer;

// Which member of HistoryEvent.attributes belongs to a kind of event, and what the engine knows of
// it.
struct Shape {
  int field;
  Event::AttributesCase known;
};

Shape shape_of(model::EventKind kind) {
  switch (kind) {
    case model::WORKFLOW_STARTED:
      return {HistoryEvent::kWorkflowExecutionStartedEventAttributesFieldNumber,
              Event::kWorkflowStarted};
    case model::WORKFLOW_COMPLETED:
      return {HistoryEvent::kWorkflowExecutionCompletedEventAttributesFieldNumber,
              Event::kWorkflowClosed};
    case model::WORKFLOW_FAILED:
      return {HistoryEvent::kWorkflowExecutionFailedEventAttributesFieldNumber,
              Event::kWorkflowClosed};
    case model::WORKFLOW_TIMED_OUT:
      return {HistoryEvent::kWorkflowExecutionTimedOutEventAttributesFieldNumber,
              Event::kWorkflowClosed};
    case model::WORKFLOW_CANCELED:
      return {HistoryEvent::kWorkflowExecutionCanceledEventAttributesFieldNumber,
              Event::kWorkflowClosed};
    case model::WORKFLOW_TERMINATED:
      return {HistoryEvent::kWorkflowExecutionTerminatedEventAttributesFieldNumber,
              Event::kWorkflowClosed};
    case model::WORKFLOW_TASK_SCHEDULED:
      return {HistoryEvent::kWorkflowTaskScheduledEventAttributesFieldNumber,
              Event::kWorkflowTaskScheduled};
    case model::WORKFLOW_TASK_STARTED:
      return {HistoryEvent::kWorkflowTaskStartedEventAttributesFieldNumber,
              Event::kWorkflowTaskStarted};
    case model::WORKFLOW_TASK_COMPLETED:
      return {HistoryEvent::kWorkflowTaskCompletedEventAttributesFieldNumber,
              Event::kWorkflowTaskEnded};
    case model::WORKFLOW_TASK_TIMED_OUT:
      return {HistoryEvent::kWorkflowTaskTimedOutEventAttributesFieldNumber,
              Event::kWorkflowTaskEnded};
    case model::WORKFLOW_TASK_FAILED:
      return {HistoryEvent::kWorkflowTaskFailedEventAttributesFieldNumber,
              Event::kWorkflowTaskEnded};
    case model::ACTIVITY_SCHEDULED:
      return {HistoryEvent::kActivityTaskScheduledEventAttributesFieldNumber,
              Event::kActivityScheduled};
    case model::ACTIVITY_STARTED:
      return {HistoryEvent::kActivityTaskStartedEventAttributesFieldNumber,
              Event::kActivityStarted};
    case model::ACTIVITY_COMPLETED:
      return {HistoryEvent::kActivityTaskCompletedEventAttributesFieldNumber,
              Event::kActivityEnded};
    case model::ACTIVITY_FAILED:
      return {HistoryEvent::kActivityTaskFailedEventAttributesFieldNumber, Event::kActivityEnded};
    case model::ACTIVITY_TIMED_OUT:
      return {HistoryEvent::kActivityTaskTimedOutEventAttributesFieldNumber, Event::kActivityEnded};
    case model::ACTIVITY_CANCELED:
      return {HistoryEvent::kActivityTaskCanceledEventAttributesFieldNumber, Event::kActivityEnded};
    case model::ACTIVITY_CANCEL_REQUESTED:
      return {HistoryEvent::kActivityTaskCancelRequestedEventAttributesFieldNumber,
              Event::kActivityCancelRequested};
    case model::TIMER_STARTED:
      return {HistoryEvent::kTimerStartedEventAttributesFieldNumber, Event::kTimerStarted};
    case model::TIMER_FIRED:
      return {HistoryEvent::kTimerFiredEventAttributesFieldNumber, Event::kTimerEnded};
    case model::TIMER_CANCELED:
      return {HistoryEvent::kTimerCanceledEventAttributesFieldNumber, Event::kTimerEnded};
    case model::MARKER_RECORDED:
      return {HistoryEvent::kMarkerRecordedEventAttributesFieldNumber, Event::kCommandRecorded};
    case model::SEARCH_ATTRIBUTES_UPSERTED:
      return {HistoryEvent::kUpsertWorkflowSearchAttributesEventAttributesFieldNumber,
              Event::kCommandRecorded};
    case model::PROPERTIES_MODIFIED:
      return {HistoryEvent::kWorkflowPropertiesModifiedEventAttributesFieldNumber,
              Event::kCommandRecorded};
    case model::WORKFLOW_SIGNALED:
      return {HistoryEvent::kWorkflowExecutionSignaledEventAttributesFieldNumber, Event::kOrigin};
    case model::WORKFLOW_CANCEL_REQUESTED:
      return {HistoryEvent::kWorkflowExecutionCancelRequestedEventAttributesFieldNumber,
              Event::kOrigin};
    case model::WORKFLOW_OPTIONS_UPDATED:
      return {HistoryEvent::kWorkflowExecutionOptionsUpdatedEventAttributesFieldNumber,
              Event::kWorkflowOptionsUpdated};
    case model::UPDATE_ACCEPTED:
      return {HistoryEvent::kWorkflowExecutionUpdateAcceptedEventAttributesFieldNumber,
              Event::kUpdateEvent};
    case model::UPDATE_ADMITTED:
      return {HistoryEvent::kWorkflowExecutionUpdateAdmittedEventAttributesFieldNumber,
              Event::kUpdateEvent};
    case model::UPDATE_COMPLETED:
      return {HistoryEvent::kWorkflowExecutionUpdateCompletedEventAttributesFieldNumber,
              Event::kUpdateEvent};
    case model::WORKFLOW_CONTINUED_AS_NEW:
      return {HistoryEvent::kWorkflowExecutionContinuedAsNewEventAttributesFieldNumber,
              Event::kWorkflowClosed};
    case model::CHILD_INITIATED:
      return {HistoryEvent::kStartChildWorkflowExecutionInitiatedEventAttributesFieldNumber,
              Event::kChildInitiated};
    case model::CHILD_START_FAILED:
      return {HistoryEvent::kStartChildWorkflowExecutionFailedEventAttributesFieldNumber,
              Event::kChildEvent};
    case model::CHILD_STARTED:
      return {HistoryEvent::kChildWorkflowExecutionStartedEventAttributesFieldNumber,
              Event::kChildEvent};
    case model::CHILD_COMPLETED:
      return {HistoryEvent::kChildWorkflowExecutionCompletedEventAttributesFieldNumber,
              Event::kChildEvent};
    case model::CHILD_FAILED:
      return {HistoryEvent::kChildWorkflowExecutionFailedEventAttributesFieldNumber,
              Event::kChildEvent};
    case model::CHILD_CANCELED:
      return {HistoryEvent::kChildWorkflowExecutionCanceledEventAttributesFieldNumber,
              Event::kChildEvent};
    case model::CHILD_TIMED_OUT:
      return {HistoryEvent::kChildWorkflowExecutionTimedOutEventAttributesFieldNumber,
              Event::kChildEvent};
    case model::CHILD_TERMINATED:
      return {HistoryEvent::kChildWorkflowExecutionTerminatedEventAttributesFieldNumber,
              Event::kChildEvent};
    case model::SIGNAL_EXTERNAL_INITIATED:
      return {HistoryEvent::kSignalExternalWorkflowExecutionInitiatedEventAttributesFieldNumber,
              Event::kExternalEvent};
    case model::SIGNAL_EXTERNAL_FAILED:
      return {HistoryEvent::kSignalExternalWorkflowExecutionFailedEventAttributesFieldNumber,
              Event::kExternalEvent};
    case model::EXTERNAL_SIGNALED:
      return {HistoryEvent::kExternalWorkflowExecutionSignaledEventAttributesFieldNumber,
              Event::kExternalEvent};
    case model::CANCEL_EXTERNAL_INITIATED:
      return {
          HistoryEvent::kRequestCancelExternalWorkflowExecutionInitiatedEventAttributesFieldNumber,
          Event::kExternalEvent};
    case model::CANCEL_EXTERNAL_FAILED:
      return {HistoryEvent::kRequestCancelExternalWorkflowExecutionFailedEventAttributesFieldNumber,
              Event::kExternalEvent};
    case model::EXTERNAL_CANCEL_REQUESTED:
      return {HistoryEvent::kExternalWorkflowExecutionCancelRequestedEventAttributesFieldNumber,
              Event::kExternalEvent};
    default:
      return {0, Event::ATTRIBUTES_NOT_SET};
  }
}

}  // namespace

// These bytes are stored and read by replaying workers for as long as the run is kept.
//
//   0a <length>                       an element of History.events
//     event_id, event_time, event_type, task_id
//     <attributes> <length>
//       the door's fields, as they arrived
//       the engine's fields
//     user_metadata, links, event_group_markers, as they arrived
//
// The two sets of fields never overlap: embedded messages that came twice would be merged.
void TemporalCodec::append_event(const Event& event, std::string* history) const {
  const Shape shape = shape_of(event.kind());
  FL_ASSERT(shape.field != 0, "an event of a kind that clients have no name for");
  FL_ASSERT(event.attributes_case() == shape.known ||
                event.attributes_case() == Event::ATTRIBUTES_NOT_SET,
            "an event's kind and its attributes speak of different things");

  Writer(history).message(History::kEventsFieldNumber, [&](Writer& writer) {
    writer.integer(HistoryEvent::kEventIdFieldNumber, event.id());
    writer.timestamp(HistoryEvent::kEventTimeFieldNumber, event.time_ns());
    writer.integer(HistoryEvent::kEventTypeFieldNumber, event.kind());
    // Only has to rise; nobody reads it.
    writer.integer(HistoryEvent::kTaskIdFieldNumber, event.id());
    writer.message(static_cast<uint32_t>(shape.field), [&](Writer& attributes) {
      attributes.raw(event.door());
      write_known_attributes(attributes, event);
    });
    writer.raw(event.envelope());
  });
}

Event TemporalCodec::read_event(std::string_view framed) const {
  wire::Reader frame(framed);
  HistoryEvent written;
  FL_ASSERT(frame.next() && written.ParseFromArray(frame.bytes().data(),
                                                   static_cast<int>(frame.bytes().size())),
            "the door reads what it wrote");
  Event event;
  event.set_id(written.event_id());
  event.set_kind(static_cast<model::EventKind>(written.event_type()));
  event.set_time_ns(time_of(written.event_time()));
  read_known_attributes(written, event);

  // The fields that the engine will write itself are not the door's.
  std::string known;
  Writer writer(&known);
  write_known_attributes(writer, event);
  absl::flat_hash_set<uint32_t> engines;
  for (wire::Reader field(known); field.next();) engines.insert(field.field());
  const int attributes = shape_of(event.kind()).field;
  for (wire::Reader part(frame.bytes()); part.next();) {
    switch (part.field()) {
      case HistoryEvent::kEventIdFieldNumber:
      case HistoryEvent::kEventTimeFieldNumber:
      case HistoryEvent::kEventTypeFieldNumber:
      case HistoryEvent::kTaskIdFieldNumber:
        continue;
      default:
        break;
    }
    if (static_cast<int>(part.field()) != attributes) {
      event.mutable_envelope()->append(part.raw());
      continue;
    }
    for (wire::Reader field(part.bytes()); field.next();) {
      if (!engines.contains(field.field())) event.mutable_door()->append(field.raw());
    }
  }
  return event;
}

std::string TemporalCodec::name_update(std::string_view request, const std::string& id) const {
  temporal::api::update::v1::Request named;
  FL_ASSERT(named.ParseFromArray(request.data(), static_cast<int>(request.size())),
            "the door reads what it wrote");
  named.mutable_meta()->set_update_id(id);
  return named.SerializeAsString();
}

std::string TemporalCodec::update_outcome(std::string_view completed_event) const {
  History history;
  FL_ASSERT(
      history.ParseFromArray(completed_event.data(), static_cast<int>(completed_event.size())) &&
          history.events_size() == 1,
      "the door reads what it wrote");
  return history.events(0)
      .workflow_execution_update_completed_event_attributes()
      .outcome()
      .SerializeAsString();
}

}  // namespace fairlead::api
