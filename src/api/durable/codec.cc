#include "api/durable/codec.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "api/durable/avro.h"
#include "api/durable/cancellation.h"
#include "api/durable/json.h"
#include "api/durable/priority.h"
#include "base/assert.h"
#include "base/wire.h"

namespace fairlead::durable {

namespace {

// DO NOT CHANGE: these names are in stored events.
std::string_view type_name(model::EventKind kind) {
  switch (kind) {
    case model::START_ACCEPTED:
      return "StartAccepted";
    case model::WORKFLOW_STARTED:
      return "WorkflowStarted";
    case model::WORKFLOW_COMPLETED:
      return "WorkflowCompleted";
    case model::WORKFLOW_FAILED:
      return "WorkflowFailed";
    case model::WORKFLOW_TIMED_OUT:
      return "WorkflowTimedOut";
    case model::WORKFLOW_CANCELED:
      return "WorkflowCancelled";
    case model::WORKFLOW_TERMINATED:
      return "WorkflowTerminated";
    case model::WORKFLOW_CONTINUED_AS_NEW:
      return "WorkflowContinuedAsNew";
    case model::WORKFLOW_SIGNALED:
      return "SignalReceived";
    case model::ACTIVITY_SCHEDULED:
      return "ActivityScheduled";
    case model::ACTIVITY_STARTED:
      return "ActivityStarted";
    case model::ACTIVITY_COMPLETED:
      return "ActivityCompleted";
    case model::ACTIVITY_FAILED:
      return "ActivityFailed";
    case model::ACTIVITY_TIMED_OUT:
      return "ActivityTimedOut";
    case model::ACTIVITY_CANCELED:
      return "ActivityCancelled";
    case model::TIMER_STARTED:
      return "TimerScheduled";
    case model::TIMER_FIRED:
      return "TimerFired";
    case model::TIMER_CANCELED:
      return "TimerCancelled";
    case model::CHILD_INITIATED:
      return "ChildWorkflowScheduled";
    case model::CHILD_STARTED:
      return "ChildRunStarted";
    case model::CHILD_COMPLETED:
      return "ChildRunCompleted";
    case model::CHILD_CANCELED:
      return "ChildRunCancelled";
    case model::CHILD_TERMINATED:
      return "ChildRunTerminated";
    case model::CHILD_START_FAILED:
    case model::CHILD_FAILED:
    case model::CHILD_TIMED_OUT:
      return "ChildRunFailed";
    case model::WAIT_OPENED:
      return "ConditionWaitOpened";
    case model::WAIT_SATISFIED:
      return "ConditionWaitSatisfied";
    case model::SELECTION_RESOLVED:
      return "SelectionResolved";
    case model::SELECTION_CANCELED:
      return "SelectionOperationCancelled";
    case model::UPDATE_ACCEPTED:
      return "UpdateAccepted";
    case model::UPDATE_APPLIED:
      return "UpdateApplied";
    case model::UPDATE_COMPLETED:
      return "UpdateCompleted";
    case model::SEARCH_ATTRIBUTES_UPSERTED:
      return "SearchAttributesUpserted";
    case model::PROPERTIES_MODIFIED:
      return "MemoUpserted";
    case model::WORKFLOW_OPTIONS_UPDATED:
      return "WorkflowOptionsUpdated";
    case model::ACTIVITY_CANCEL_REQUESTED:
      return "ActivityCancelRequested";
    case model::CANCELLATION_REQUESTED:
      return "CooperativeCancellationRequested";
    case model::CANCELLATION_DELIVERED:
      return "CooperativeCancellationDelivered";
    case model::ACTIVITY_STOP_ACKNOWLEDGED:
      return "ActivityCancellationAcknowledged";
    default:
      FL_ASSERT(false, "a Durable Workflow run has no such event");
      return "";
  }
}

std::string_view type_name(const model::Event& event) {
  return event.kind() == model::MARKER_RECORDED ? event.command_recorded().name()
                                                : type_name(event.kind());
}

json::value seconds_or_null(DurationNs duration) {
  if (duration == 0) return nullptr;
  return duration / kSecond;
}

void put_step(const model::Step& step, Members* out) {
  if (step.sequence() == 0) return;
  out->put("sequence", step.sequence());
  out->raw(step.fields());
}

std::string_view timeout_kind(model::TimeoutType type) {
  switch (type) {
    case model::SCHEDULE_TO_START:
      return "schedule_to_start";
    case model::SCHEDULE_TO_CLOSE:
      return "schedule_to_close";
    case model::HEARTBEAT:
      return "heartbeat";
    default:
      return "start_to_close";
  }
}

void put_failure(const model::Failure& failure, std::string_view category, Members* out) {
  if (!failure.door().empty()) {
    out->raw(failure.door());
    return;
  }
  const std::string_view type =
      failure.kind() == model::Failure::TIMEOUT ? "ActivityTimedOut" : "ServerFailure";
  json::object exception;
  exception["type"] = to_json(type);
  exception["class"] = to_json(type);
  exception["message"] = failure.message();
  exception["non_retryable"] = failure.non_retryable();
  out->put("failure_category", to_json(category));
  out->put("message", failure.message());
  out->put("exception_type", to_json(type));
  out->put("exception_class", to_json(type));
  out->put("non_retryable", failure.non_retryable());
  out->put("exception", exception);
}

void put_started(const model::Event& event, Members* out) {
  const auto& started = event.workflow_started();
  out->put("workflow_run_id", started.original_run_id());
  out->put("workflow_type", started.workflow_type());
  out->put("workflow_class", started.workflow_type());
  out->put("payload_codec", "avro");
  if (event.kind() == model::START_ACCEPTED) {
    out->put("outcome", "started_new");
    return;
  }
  out->put("run_number", started.run_number());
  out->put("execution_timeout_seconds", seconds_or_null(started.execution_timeout_ns()));
  out->put("run_timeout_seconds", seconds_or_null(started.run_timeout_ns()));
  out->put("execution_deadline_at", time_or_null(started.execution_expiration_ns()));
  if (started.priority().ByteSizeLong() > 0) {
    out->put("priority", priority_record(started.priority()));
  }
  if (!started.continued_run_id().empty()) {
    out->put("continued_from_run_id", started.continued_run_id());
  }
  if (started.has_parent()) {
    out->put("parent_workflow_instance_id", started.parent().run().workflow_id());
    out->put("parent_workflow_run_id", started.parent().run().run_id());
  }
}

void put_timer(const std::string& id, const std::string& wait_id, Members* out) {
  out->put("timer_id", id);
  if (wait_id.empty()) return;
  out->put("timer_kind", "condition_timeout");
  out->put("condition_wait_id", wait_id);
}

void put_wait(const model::Wait& wait, Members* out) {
  put_step(wait.step(), out);
  out->put("condition_wait_id", wait.wait_id());
  out->put_if(!wait.key().empty(), "condition_key", wait.key());
  out->put_if(!wait.fingerprint().empty(), "condition_definition_fingerprint", wait.fingerprint());
  out->put("timeout_seconds",
           wait.has_timeout_ns() ? json::value(wait.timeout_ns() / kSecond) : json::value());
}

void put_selection(const model::Event& event, Members* out) {
  const auto& about = event.selection();
  const auto& member = about.member();
  out->put("selection_group_id", about.group_id());
  out->put_raw("member_key", member.key());
  out->put("member_index", member.index());
  out->put("member_base_sequence", member.base());
  out->put("member_size", member.size());
  out->put("operation_kind", member.kind());
  out->put("operation_identity", member.identity());
  if (event.kind() == model::SELECTION_CANCELED) return;
  out->put("selection_group_base_sequence", about.base());
  out->put("selection_group_size", about.size());
  out->put("outcome", member.has_failed() ? "failed" : "completed");
  out->put("resolution_event_id", event_name(about.resolution_event_id()));
  out->put("resolution_event_type",
           to_json(type_name(static_cast<model::EventKind>(about.resolution_kind()))));
}

void put_child(const model::Event& event, Members* out) {
  const auto& about = event.child_event();
  put_step(about.step(), out);
  out->put("child_workflow_type", about.workflow_type());
  out->put("child_workflow_instance_id", about.run().workflow_id());
  out->put("child_workflow_run_id", about.run().run_id());
  out->raw(event.door());
  if (!event.door().empty() || event.kind() == model::CHILD_STARTED) return;
  const std::string_view message = event.kind() == model::CHILD_START_FAILED
                                       ? "the child's workflow id is in use"
                                       : "the child workflow was ended by the server";
  out->put("message", to_json(message));
  out->put("exception_class", "ChildWorkflowFailed");
  out->put("exception_type", "ChildWorkflowFailed");
}

// How a run ended when the server, not a worker or a client, ended it.
void put_closed(const model::Event& event, Members* out) {
  const auto& closed = event.workflow_closed();
  out->raw(event.door());
  if (event.kind() == model::WORKFLOW_CONTINUED_AS_NEW) {
    out->put("continued_to_run_id", closed.new_run_id());
    out->put("closed_reason", "continued");
    return;
  }
  if (event.kind() == model::WORKFLOW_TIMED_OUT) {
    out->put("timeout_kind", "run_timeout");
    out->put("failure_category", "timeout");
    out->put("message", "the run did not end in time");
    return;
  }
  if (!event.door().empty()) return;
  if (closed.has_cancellation()) return put_cleanup(event, out);
  out->put("reason", closed.reason());
  out->put("message", closed.reason());
}

void put_upserts(const model::Event& event, Members* out) {
  const auto& recorded = event.command_recorded();
  put_step(recorded.step(), out);
  out->raw(event.door());
  if (event.kind() == model::PROPERTIES_MODIFIED) {
    const std::map<std::string, std::string> merged(recorded.merged().begin(),
                                                    recorded.merged().end());
    out->put_raw("merged", envelope_text(blob_of_value(map_value(merged))));
    return;
  }
  const auto put = [out](std::string_view name, const auto& fields) {
    Members inner;
    for (const auto& [key, value] :
         std::map<std::string, std::string>(fields.begin(), fields.end())) {
      const std::string quoted = json::serialize(json::value(key));
      inner.put_raw(std::string_view(quoted).substr(1, quoted.size() - 2),
                    value.empty() ? "null" : std::string_view(value));
    }
    out->put_raw(name, absl::StrCat("{", inner.text(), "}"));
  };
  put("attributes", recorded.upserts());
  put("merged", recorded.merged());
}

std::string payload_of(const model::Event& event) {
  Members out;
  switch (event.kind()) {
    case model::START_ACCEPTED:
    case model::WORKFLOW_STARTED:
      out.raw(event.door());
      put_started(event, &out);
      break;
    case model::ACTIVITY_SCHEDULED:
      put_step(event.activity_scheduled().step(), &out);
      out.raw(event.door());
      break;
    case model::ACTIVITY_STARTED:
      put_step(event.activity_started().step(), &out);
      out.put("attempt_number", event.activity_started().attempt());
      out.put("lease_owner", event.activity_started().identity());
      break;
    case model::ACTIVITY_COMPLETED:
    case model::ACTIVITY_CANCELED:
      put_step(event.activity_ended().step(), &out);
      out.put("attempt_number", event.activity_ended().attempt());
      out.raw(event.door());
      break;
    case model::ACTIVITY_FAILED:
    case model::ACTIVITY_TIMED_OUT:
      put_step(event.activity_ended().step(), &out);
      out.put("attempt_number", event.activity_ended().attempt());
      if (event.kind() == model::ACTIVITY_TIMED_OUT) {
        out.put("timeout_kind",
                to_json(timeout_kind(event.activity_ended().failure().timeout_type())));
      }
      put_failure(event.activity_ended().failure(),
                  event.kind() == model::ACTIVITY_TIMED_OUT ? "timeout" : "activity", &out);
      break;
    case model::TIMER_STARTED:
      put_step(event.timer_started().step(), &out);
      put_timer(event.timer_started().timer_id(), event.timer_started().wait_id(), &out);
      out.put_if(!event.timer_started().wait_id().empty(), "delay_seconds",
                 event.timer_started().start_to_fire_ns() / kSecond);
      break;
    case model::TIMER_FIRED:
    case model::TIMER_CANCELED:
      put_step(event.timer_ended().step(), &out);
      put_timer(event.timer_ended().timer_id(), event.timer_ended().wait_id(), &out);
      out.put(event.kind() == model::TIMER_FIRED ? "fired_at" : "cancelled_at",
              format_time(event.time_ns()));
      break;
    case model::CHILD_INITIATED:
      put_step(event.child_initiated().step(), &out);
      out.put("child_workflow_type", event.child_initiated().workflow_type());
      out.put("child_workflow_instance_id", event.child_initiated().workflow_id());
      out.put_if(!event.child_initiated().promised_run_id().empty(), "child_workflow_run_id",
                 event.child_initiated().promised_run_id());
      out.raw(event.door());
      break;
    case model::CHILD_START_FAILED:
    case model::CHILD_STARTED:
    case model::CHILD_COMPLETED:
    case model::CHILD_FAILED:
    case model::CHILD_CANCELED:
    case model::CHILD_TIMED_OUT:
    case model::CHILD_TERMINATED:
      put_child(event, &out);
      break;
    case model::WAIT_OPENED:
    case model::WAIT_SATISFIED:
      put_wait(event.wait(), &out);
      break;
    case model::SELECTION_RESOLVED:
    case model::SELECTION_CANCELED:
      put_selection(event, &out);
      break;
    case model::SEARCH_ATTRIBUTES_UPSERTED:
    case model::PROPERTIES_MODIFIED:
      put_upserts(event, &out);
      break;
    case model::MARKER_RECORDED:
      put_step(event.command_recorded().step(), &out);
      out.raw(event.door());
      break;
    case model::CANCELLATION_REQUESTED:
    case model::CANCELLATION_DELIVERED:
    case model::ACTIVITY_STOP_ACKNOWLEDGED:
      put_cancellation(event, &out);
      break;
    case model::UPDATE_ACCEPTED:
    case model::UPDATE_APPLIED:
    case model::UPDATE_COMPLETED:
      out.put("update_id", event.update_event().update_id());
      out.raw(event.door());
      break;
    case model::WORKFLOW_COMPLETED:
    case model::WORKFLOW_FAILED:
    case model::WORKFLOW_CANCELED:
    case model::WORKFLOW_TERMINATED:
    case model::WORKFLOW_TIMED_OUT:
    case model::WORKFLOW_CONTINUED_AS_NEW:
      put_closed(event, &out);
      break;
    default:
      out.raw(event.door());
      break;
  }
  return out.take();
}

// The payload of one framed event.
json::object parsed_payload(std::string_view framed, std::string* type = nullptr) {
  wire::Reader reader(framed);
  if (!reader.next()) return {};
  const auto parsed = parse_json(reader.bytes());
  if (!parsed.has_value() || !parsed->is_object()) return {};
  if (type != nullptr) *type = text_of(parsed->as_object(), "event_type");
  const auto* payload = member(parsed->as_object(), "payload");
  return payload != nullptr && payload->is_object() ? payload->as_object() : json::object();
}

// The client's command that an event tells of, where the API has it.
std::string command_of(const model::Event& event) {
  const std::string id = event.has_cancellation()
                             ? event.cancellation().context().lineage().rbegin()->request_id()
                             : event.workflow_closed().cancellation().request_id();
  return id.empty() ? "null" : json::serialize(json::value(id));
}

}  // namespace

void DurableCodec::append_event(const model::Event& event, std::string* history) const {
  const std::string time = format_time(event.time_ns());
  const std::string_view type = type_name(event);
  const std::string text = absl::StrCat(
      R"({"id":")", event_name(event.id()), R"(","sequence":)", event.id(), R"(,"event_type":")",
      absl::string_view(type.data(), type.size()), R"(","recorded_at":")", time,
      R"(","timestamp":")", time, R"(","workflow_task_id":null,"workflow_command_id":)",
      command_of(event), R"(,"payload":{)", payload_of(event), "}}");
  wire::Writer(history).bytes(1, text);
}

model::Event DurableCodec::read_event(std::string_view) const {
  FL_ASSERT(false, "runs of this door are not reset");
  return {};
}

model::ContinueAsNew DurableCodec::begin_again(std::string_view first_event,
                                               const model::Event&) const {
  model::ContinueAsNew next;
  const auto payload = parsed_payload(first_event);
  Members door;
  for (const char* name : {"workflow_instance_id", "input", "business_key"}) {
    if (const auto* value = member(payload, name)) door.put(name, *value);
  }
  next.set_start_door(door.take());
  return next;
}

std::string DurableCodec::name_start(std::string_view kept, const std::string& workflow_id) const {
  return Members().put("workflow_instance_id", workflow_id).raw(kept).take();
}

std::string DurableCodec::name_update(std::string_view request, const std::string&) const {
  return std::string(request);
}

std::string DurableCodec::update_outcome(std::string_view completed_event) const {
  return members_of(parsed_payload(completed_event));
}

std::string DurableCodec::applied_update(std::string_view accepted_event) const {
  const auto payload = parsed_payload(accepted_event);
  Members door;
  for (const char* name : {"update_name", "arguments", "payload_codec"}) {
    if (const auto* value = member(payload, name)) door.put(name, *value);
  }
  return door.take();
}

std::string DurableCodec::tell_parent(const model::Event& closing) const {
  if (!closing.door().empty()) return closing.door();
  Members door;
  const std::string_view why = closing.kind() == model::WORKFLOW_TIMED_OUT
                                   ? "the child workflow did not end in time"
                                   : std::string_view(closing.workflow_closed().reason());
  door.put("message", to_json(why));
  door.put("exception_class", "ChildWorkflowFailed");
  door.put("exception_type", "ChildWorkflowFailed");
  return door.take();
}

std::string DurableCodec::end_host(const model::Event& ended) const {
  Members door;
  door.put("payload_codec", "avro");
  if (ended.kind() == model::ACTIVITY_COMPLETED) {
    const auto completed = object_of(ended.door());
    if (const auto* result = member(completed, "result")) door.put("output", *result);
  } else if (ended.kind() == model::ACTIVITY_CANCELED) {
    door.put("reason", "the activity was cancelled");
  } else {
    const bool is_late = ended.kind() == model::ACTIVITY_TIMED_OUT;
    put_failure(ended.activity_ended().failure(), is_late ? "timeout" : "activity", &door);
  }
  return door.take();
}

EventTexts join_events(std::string_view history, int64_t events_max) {
  EventTexts texts;
  wire::Reader reader(history);
  while (texts.count < events_max && reader.next()) {
    if (texts.count++ > 0) texts.joined.push_back(',');
    texts.joined.append(reader.bytes());
  }
  FL_ASSERT(reader.ok(), "stored events are framed");
  return texts;
}

std::string started_payload(std::string_view history) {
  wire::Reader reader(history);
  for (int i = 0; i < 2 && reader.next(); ++i) {
    std::string type;
    const auto payload = parsed_payload(reader.raw(), &type);
    if (type == "WorkflowStarted") return members_of(payload);
  }
  return "";
}

std::string business_key_of(std::string_view history) {
  return text_of(object_of(started_payload(history)), "business_key");
}

}  // namespace fairlead::durable
