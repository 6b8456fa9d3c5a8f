#include "api/temporal/answers.h"

#include "api/temporal/codec.h"
#include "api/temporal/pieces.h"
#include "api/temporal/updates.h"
#include "base/wire.h"
#include "temporal/api/history/v1/message.pb.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// Answers to polls. They are the hottest messages of the server and carry payloads that arrived in
// wire format, so they are written straight to bytes and the payloads are spliced in.
namespace fairlead::api {

namespace {

namespace history_v1 = temporal::api::history::v1;
namespace service = temporal::api::workflowservice::v1;
using wire::Reader;
using wire::Writer;

// A map's entry: the key is field 1 and the value is field 2.
void write_query(Writer& writer, const shard::AttachedQuery& query) {
  writer.message(service::PollWorkflowTaskQueueResponse::kQueriesFieldNumber, [&](Writer& entry) {
    entry.string(1, query.id);
    entry.bytes(2, query.query);
  });
}

std::string workflow_task_token(const shard::WorkflowTask& task, std::string_view namespace_id) {
  if (task.query.has_value()) return encode_query_token(namespace_id, task.query->id);
  return encode_token(task.token);
}

// Zero is no advice, which is not the same as advice to change nothing.
void write_scaling(Writer& writer, uint32_t field, int delta) {
  if (delta == 0) return;
  writer.message(field, [&](Writer& decision) {
    decision.integer(
        temporal::api::taskqueue::v1::PollerScalingDecision::kPollRequestDeltaSuggestionFieldNumber,
        delta);
  });
}

// The value of the first such field, or nothing.
std::string_view find(std::string_view message, uint32_t field) {
  Reader reader(message);
  while (reader.next()) {
    if (reader.field() == field) return reader.bytes();
  }
  return {};
}

// Copies header and input out of the framed event that scheduled the activity. A field that came in
// two pieces leaves in two pieces: readers of protobuf put them together again.
void write_scheduled_payloads(Writer& writer, std::string_view scheduled_event) {
  using Poll = service::PollActivityTaskQueueResponse;
  using Scheduled = history_v1::ActivityTaskScheduledEventAttributes;
  const auto event = find(scheduled_event, history_v1::History::kEventsFieldNumber);
  Reader reader(
      find(event, history_v1::HistoryEvent::kActivityTaskScheduledEventAttributesFieldNumber));
  while (reader.next()) {
    if (reader.field() == Scheduled::kHeaderFieldNumber) {
      writer.bytes(Poll::kHeaderFieldNumber, reader.bytes());
    } else if (reader.field() == Scheduled::kInputFieldNumber) {
      writer.bytes(Poll::kInputFieldNumber, reader.bytes());
    }
  }
}

}  // namespace

std::string encode_poll_workflow_task(const shard::WorkflowTask& task,
                                      std::string_view namespace_id) {
  using Poll = service::PollWorkflowTaskQueueResponse;
  std::string answer;
  if (task.token.workflow_id.empty()) return answer;
  answer.reserve(task.history.size() + 512);
  Writer writer(&answer);

  writer.bytes(Poll::kTaskTokenFieldNumber, workflow_task_token(task, namespace_id));
  write_execution(writer, Poll::kWorkflowExecutionFieldNumber, task.token.workflow_id,
                  task.token.run_id);
  write_type(writer, Poll::kWorkflowTypeFieldNumber, task.workflow_type);
  writer.integer(Poll::kPreviousStartedEventIdFieldNumber, task.previous_started_id);
  // A direct query starts nothing, and SDKs tell it by this.
  if (!task.query.has_value()) {
    writer.integer(Poll::kStartedEventIdFieldNumber, task.token.started_id);
  }
  writer.integer(Poll::kAttemptFieldNumber, task.token.attempt);
  writer.integer(Poll::kBacklogCountHintFieldNumber, task.backlog_hint);
  // Present even when empty, as it is for a query to a worker that holds the run: the Go SDK looks
  // into it without asking.
  writer.bytes(Poll::kHistoryFieldNumber, task.history);
  if (task.next_history_event != 0) {
    writer.bytes(
        Poll::kNextPageTokenFieldNumber,
        encode_history_token({.run_id = task.token.run_id, .next_event = task.next_history_event}));
  }
  if (task.query.has_value()) writer.bytes(Poll::kQueryFieldNumber, task.query->query);
  write_task_queue(writer, Poll::kWorkflowExecutionTaskQueueFieldNumber, task.task_queue);
  write_time(writer, Poll::kScheduledTimeFieldNumber, task.scheduled_ns);
  write_time(writer, Poll::kStartedTimeFieldNumber, task.started_ns);
  for (const auto& query : task.queries) write_query(writer, query);
  // Each comes after the events before the task.
  for (const auto& update : task.updates) {
    write_update(writer, Poll::kMessagesFieldNumber, update, task.token.started_id - 1);
  }
  write_scaling(writer, Poll::kPollerScalingDecisionFieldNumber, task.poller_delta);
  return answer;
}

std::string encode_poll_activity_task(const shard::ActivityTask& task,
                                      std::string_view namespace_name) {
  using Poll = service::PollActivityTaskQueueResponse;
  std::string answer;
  if (task.token.workflow_id.empty()) return answer;
  answer.reserve(task.scheduled_event.size() + 512);
  Writer writer(&answer);
  const auto& activity = task.activity;
  const auto& scheduled = activity.scheduled();

  writer.bytes(Poll::kTaskTokenFieldNumber, encode_token(task.token));
  writer.string(Poll::kWorkflowNamespaceFieldNumber, namespace_name);
  if (task.token.flavour == model::STANDALONE) {
    writer.bytes(Poll::kWorkflowExecutionFieldNumber, {});
    writer.string(Poll::kActivityRunIdFieldNumber, task.token.run_id);
  } else {
    write_type(writer, Poll::kWorkflowTypeFieldNumber, task.workflow_type);
    write_execution(writer, Poll::kWorkflowExecutionFieldNumber, task.token.workflow_id,
                    task.token.run_id);
  }
  write_type(writer, Poll::kActivityTypeFieldNumber, scheduled.activity_type());
  writer.string(Poll::kActivityIdFieldNumber, scheduled.activity_id());
  write_scheduled_payloads(writer, task.scheduled_event);
  writer.string(Poll::kHeartbeatDetailsFieldNumber, activity.heartbeat_details());
  write_time(writer, Poll::kScheduledTimeFieldNumber, activity.first_scheduled_ns());
  write_time(writer, Poll::kCurrentAttemptScheduledTimeFieldNumber, activity.scheduled_ns());
  write_time(writer, Poll::kStartedTimeFieldNumber, activity.started_ns());
  writer.integer(Poll::kAttemptFieldNumber, activity.attempt());
  writer.duration(Poll::kScheduleToCloseTimeoutFieldNumber, scheduled.schedule_to_close_ns());
  writer.duration(Poll::kStartToCloseTimeoutFieldNumber, scheduled.start_to_close_ns());
  writer.duration(Poll::kHeartbeatTimeoutFieldNumber, scheduled.heartbeat_ns());
  write_retry_policy(writer, Poll::kRetryPolicyFieldNumber, scheduled.retry_policy());
  write_scaling(writer, Poll::kPollerScalingDecisionFieldNumber, task.poller_delta);
  write_priority(writer, Poll::kPriorityFieldNumber, task.priority);
  return answer;
}

}  // namespace fairlead::api
