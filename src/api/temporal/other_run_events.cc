// Events that have to do with other runs: chains, children, signals and cancel requests.

#include <string>

#include "api/temporal/asked.h"
#include "api/temporal/codec.h"
#include "api/temporal/event_attributes.h"
#include "api/temporal/pieces.h"
#include "base/assert.h"
#include "history/children.h"
#include "history/lifecycle.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {

namespace {

using namespace temporal::api::history::v1;
using wire::Writer;

void write_run(Writer& writer, uint32_t field, const model::RunName& run) {
  write_execution(writer, field, run.workflow_id(), run.run_id());
}

void continued_as_new(Writer& writer, const model::WorkflowClosed& known) {
  using A = WorkflowExecutionContinuedAsNewEventAttributes;
  writer.string(A::kNewExecutionRunIdFieldNumber, known.new_run_id());
  write_type(writer, A::kWorkflowTypeFieldNumber, known.next().workflow_type());
  write_task_queue(writer, A::kTaskQueueFieldNumber, known.next().task_queue());
  writer.duration(A::kWorkflowRunTimeoutFieldNumber, known.next().run_timeout_ns());
  writer.duration(A::kWorkflowTaskTimeoutFieldNumber, known.next().task_timeout_ns());
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
  // As the command has it: how the run really went on is in the next one's first event.
  if (known.next().backoff_ns() != 0) {
    writer.duration(A::kBackoffStartIntervalFieldNumber, known.next().backoff_ns());
  }
  writer.integer(A::kInitiatorFieldNumber, known.next().initiator());
}

void child_initiated(Writer& writer, const model::ChildInitiated& known) {
  using A = StartChildWorkflowExecutionInitiatedEventAttributes;
  writer.string(A::kNamespaceFieldNumber, known.namespace_name());
  writer.string(A::kWorkflowIdFieldNumber, known.workflow_id());
  write_type(writer, A::kWorkflowTypeFieldNumber, known.workflow_type());
  write_task_queue(writer, A::kTaskQueueFieldNumber, known.task_queue());
  if (known.execution_timeout_ns() != 0) {
    writer.duration(A::kWorkflowExecutionTimeoutFieldNumber, known.execution_timeout_ns());
  }
  writer.duration(A::kWorkflowRunTimeoutFieldNumber, known.run_timeout_ns());
  writer.duration(A::kWorkflowTaskTimeoutFieldNumber, known.task_timeout_ns());
  writer.integer(A::kParentClosePolicyFieldNumber, known.parent_close_policy());
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
  writer.integer(A::kWorkflowIdReusePolicyFieldNumber, known.reuse_policy());
  if (known.has_retry_policy()) {
    write_retry_policy(writer, A::kRetryPolicyFieldNumber, known.retry_policy());
  }
  writer.string(A::kCronScheduleFieldNumber, known.cron_schedule());
  writer.string(A::kNamespaceIdFieldNumber, known.namespace_id());
  write_priority(writer, A::kPriorityFieldNumber, known.priority());
}

void child_start_failed(Writer& writer, const model::ChildEvent& known) {
  using A = StartChildWorkflowExecutionFailedEventAttributes;
  writer.string(A::kNamespaceFieldNumber, known.namespace_name());
  writer.string(A::kWorkflowIdFieldNumber, known.run().workflow_id());
  write_type(writer, A::kWorkflowTypeFieldNumber, known.workflow_type());
  writer.integer(A::kCauseFieldNumber, known.failed_cause());
  writer.integer(A::kInitiatedEventIdFieldNumber, known.initiated_id());
  writer.string(A::kNamespaceIdFieldNumber, known.namespace_id());
}

template <typename A>
void about_child(Writer& writer, const model::ChildEvent& known) {
  writer.string(A::kNamespaceFieldNumber, known.namespace_name());
  writer.string(A::kNamespaceIdFieldNumber, known.namespace_id());
  write_run(writer, A::kWorkflowExecutionFieldNumber, known.run());
  write_type(writer, A::kWorkflowTypeFieldNumber, known.workflow_type());
  writer.integer(A::kInitiatedEventIdFieldNumber, known.initiated_id());
}

template <typename A>
void child_closed(Writer& writer, const model::ChildEvent& known) {
  about_child<A>(writer, known);
  writer.integer(A::kStartedEventIdFieldNumber, known.started_id());
}

template <typename A>
void child_gave_up(Writer& writer, const model::ChildEvent& known) {
  child_closed<A>(writer, known);
  writer.integer(A::kRetryStateFieldNumber, known.retry_state());
}

template <typename A>
void about_external(Writer& writer, const model::ExternalEvent& known) {
  writer.string(A::kNamespaceFieldNumber, known.namespace_name());
  writer.string(A::kNamespaceIdFieldNumber, known.namespace_id());
  write_run(writer, A::kWorkflowExecutionFieldNumber, known.run());
}

template <typename A>
void external_initiated(Writer& writer, const model::ExternalEvent& known) {
  // The namespace as the command has it, which may leave it out, is in the door.
  writer.integer(A::kWorkflowTaskCompletedEventIdFieldNumber, known.workflow_task_completed_id());
  writer.string(A::kNamespaceIdFieldNumber, known.namespace_id());
  write_run(writer, A::kWorkflowExecutionFieldNumber, known.run());
  writer.boolean(A::kChildWorkflowOnlyFieldNumber, known.children_only());
}

template <typename A>
void external_failed(Writer& writer, const model::ExternalEvent& known) {
  writer.integer(A::kCauseFieldNumber, known.failed_cause());
  about_external<A>(writer, known);
  writer.integer(A::kInitiatedEventIdFieldNumber, known.initiated_id());
}

template <typename A>
void external_done(Writer& writer, const model::ExternalEvent& known) {
  writer.integer(A::kInitiatedEventIdFieldNumber, known.initiated_id());
  about_external<A>(writer, known);
}

// What comes from another run comes through the server; from a client, the door knows all there is.
void signaled(Writer& writer, const model::Event& event) {
  using A = WorkflowExecutionSignaledEventAttributes;
  if (!event.has_origin()) return;
  writer.string(A::kIdentityFieldNumber, history::kServerIdentity);
  write_run(writer, A::kExternalWorkflowExecutionFieldNumber, event.origin().run());
  writer.string(A::kRequestIdFieldNumber,
                history::letter_id(event.origin().run().run_id(), event.origin().initiated_id()));
}

void cancel_requested(Writer& writer, const model::Event& event) {
  using A = WorkflowExecutionCancelRequestedEventAttributes;
  if (!event.has_origin()) return;
  writer.integer(A::kExternalInitiatedEventIdFieldNumber, event.origin().initiated_id());
  write_run(writer, A::kExternalWorkflowExecutionFieldNumber, event.origin().run());
  writer.string(A::kIdentityFieldNumber, history::kServerIdentity);
}

template <typename Message>
Message parsed(std::string_view bytes) {
  Message message;
  FL_ASSERT(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
            "the door reads what it wrote");
  return message;
}

}  // namespace

void write_other_run_attributes(Writer& writer, const model::Event& event) {
  const auto& child = event.child_event();
  const auto& external = event.external_event();
  switch (event.kind()) {
    case model::WORKFLOW_CONTINUED_AS_NEW:
      return continued_as_new(writer, event.workflow_closed());
    case model::CHILD_INITIATED:
      return child_initiated(writer, event.child_initiated());
    case model::CHILD_START_FAILED:
      return child_start_failed(writer, child);
    case model::CHILD_STARTED:
      return about_child<ChildWorkflowExecutionStartedEventAttributes>(writer, child);
    case model::CHILD_COMPLETED:
      return child_closed<ChildWorkflowExecutionCompletedEventAttributes>(writer, child);
    case model::CHILD_FAILED:
      return child_gave_up<ChildWorkflowExecutionFailedEventAttributes>(writer, child);
    case model::CHILD_CANCELED:
      return child_closed<ChildWorkflowExecutionCanceledEventAttributes>(writer, child);
    case model::CHILD_TIMED_OUT:
      return child_gave_up<ChildWorkflowExecutionTimedOutEventAttributes>(writer, child);
    case model::CHILD_TERMINATED:
      return child_closed<ChildWorkflowExecutionTerminatedEventAttributes>(writer, child);
    case model::SIGNAL_EXTERNAL_INITIATED:
      return external_initiated<SignalExternalWorkflowExecutionInitiatedEventAttributes>(writer,
                                                                                         external);
    case model::SIGNAL_EXTERNAL_FAILED:
      return external_failed<SignalExternalWorkflowExecutionFailedEventAttributes>(writer,
                                                                                   external);
    case model::EXTERNAL_SIGNALED:
      return external_done<ExternalWorkflowExecutionSignaledEventAttributes>(writer, external);
    case model::CANCEL_EXTERNAL_INITIATED:
      return external_initiated<RequestCancelExternalWorkflowExecutionInitiatedEventAttributes>(
          writer, external);
    case model::CANCEL_EXTERNAL_FAILED:
      return external_failed<RequestCancelExternalWorkflowExecutionFailedEventAttributes>(writer,
                                                                                          external);
    case model::EXTERNAL_CANCEL_REQUESTED:
      return external_done<ExternalWorkflowExecutionCancelRequestedEventAttributes>(writer,
                                                                                    external);
    case model::WORKFLOW_SIGNALED:
      return signaled(writer, event);
    case model::WORKFLOW_CANCEL_REQUESTED:
      return cancel_requested(writer, event);
    default:
      return;
  }
}

model::ContinueAsNew TemporalCodec::begin_again(std::string_view first_event,
                                                const model::Event& closing) const {
  auto history = parsed<History>(first_event);
  FL_ASSERT(history.events_size() == 1, "a history begins with its started event");
  auto& last = *history.mutable_events(0)->mutable_workflow_execution_started_event_attributes();
  // What the engine writes itself is left out; see workflow_started in event_attributes.cc.
  WorkflowExecutionStartedEventAttributes door;
  if (last.has_input()) door.mutable_input()->Swap(last.mutable_input());
  if (last.has_header()) door.mutable_header()->Swap(last.mutable_header());
  if (last.has_memo()) *door.mutable_memo() = last.memo();
  if (last.has_search_attributes()) *door.mutable_search_attributes() = last.search_attributes();
  door.set_workflow_id(last.workflow_id());
  if (last.has_last_completion_result()) {
    door.mutable_last_completion_result()->Swap(last.mutable_last_completion_result());
  }
  if (closing.kind() == model::WORKFLOW_COMPLETED) {
    auto closed = parsed<WorkflowExecutionCompletedEventAttributes>(closing.door());
    door.clear_last_completion_result();
    if (closed.has_result()) door.mutable_last_completion_result()->Swap(closed.mutable_result());
  } else if (closing.kind() == model::WORKFLOW_FAILED) {
    auto closed = parsed<WorkflowExecutionFailedEventAttributes>(closing.door());
    door.mutable_continued_failure()->Swap(closed.mutable_failure());
  } else {
    model::Failure failure;
    failure.set_kind(model::Failure::TIMEOUT);
    failure.set_timeout_type(model::START_TO_CLOSE);
    failure.set_message("workflow timeout");
    door.mutable_continued_failure()->ParseFromString(encode_failure(failure));
  }
  model::ContinueAsNew next;
  keep_fields(last.memo().fields(), next.mutable_memo());
  keep_fields(last.search_attributes().indexed_fields(), next.mutable_search_attributes());
  next.set_start_door(door.SerializeAsString());
  return next;
}

std::string TemporalCodec::tell_parent(const model::Event& closing) const {
  switch (closing.kind()) {
    case model::WORKFLOW_COMPLETED: {
      auto closed = parsed<WorkflowExecutionCompletedEventAttributes>(closing.door());
      ChildWorkflowExecutionCompletedEventAttributes told;
      if (closed.has_result()) told.mutable_result()->Swap(closed.mutable_result());
      return told.SerializeAsString();
    }
    case model::WORKFLOW_FAILED: {
      auto closed = parsed<WorkflowExecutionFailedEventAttributes>(closing.door());
      ChildWorkflowExecutionFailedEventAttributes told;
      if (closed.has_failure()) told.mutable_failure()->Swap(closed.mutable_failure());
      return told.SerializeAsString();
    }
    case model::WORKFLOW_CANCELED: {
      auto closed = parsed<WorkflowExecutionCanceledEventAttributes>(closing.door());
      ChildWorkflowExecutionCanceledEventAttributes told;
      if (closed.has_details()) told.mutable_details()->Swap(closed.mutable_details());
      return told.SerializeAsString();
    }
    default:
      return "";
  }
}

}  // namespace fairlead::api
