#include "api/durable/cancellation.h"

#include "absl/strings/str_cat.h"

namespace fairlead::durable {

namespace {

// Read from the start: base64 of the last event that was read.
constexpr char kFromTheStart[] = "MA==";

const std::string& request_id_of(const model::CancellationContext& context) {
  return context.lineage().rbegin()->request_id();
}

json::value reason_of(const model::CancellationContext& context) {
  return context.has_reason() ? json::value(context.reason()) : json::value();
}

}  // namespace

std::string event_name(int64_t id) { return absl::StrCat("event-", id); }

json::object cancellation_context(const model::CancellationContext& context) {
  json::array lineage;
  for (const auto& link : context.lineage()) {
    lineage.emplace_back(json::object{{"request_id", link.request_id()},
                                      {"workflow_instance_id", link.workflow_id()},
                                      {"workflow_run_id", link.run_id()}});
  }
  const int size = context.lineage_size();
  const auto& root = context.lineage(0);
  return {{"schema", "durable-workflow.cancellation-context/v1"},
          {"request_id", request_id_of(context)},
          {"root_request_id", root.request_id()},
          {"root_workflow_instance_id", root.workflow_id()},
          {"root_workflow_run_id", root.run_id()},
          {"parent_request_id",
           size > 1 ? json::value(context.lineage(size - 2).request_id()) : json::value()},
          {"reason", reason_of(context)},
          {"requester", {{"type", context.requester()}}},
          {"source", context.source()},
          {"requested_at", format_time(context.requested_ns())},
          {"cleanup_deadline_at", format_time(context.deadline_ns())},
          {"lineage", std::move(lineage)}};
}

json::object cancellation_request(const model::Cancellation& cancellation) {
  const auto& context = cancellation.context();
  const bool is_delivered = cancellation.delivered_id() != 0;
  return {{"request_id", request_id_of(context)},
          {"requested_at", format_time(cancellation.asked_ns())},
          {"cleanup_deadline_at", format_time(context.deadline_ns())},
          {"delivery_sequence",
           is_delivered ? json::value(cancellation.delivery().sequence()) : json::value()},
          {"history_refresh_page_token", kFromTheStart}};
}

json::object stop_record(const model::StoppedActivity& stopped,
                         const model::CancellationContext& context) {
  const bool has_stopped = stopped.acknowledged_ns() != 0;
  return {{"request_id", request_id_of(context)},
          {"root_request_id", context.lineage(0).request_id()},
          {"cleanup_deadline_at", format_time(context.deadline_ns())},
          {"cancellation_history_event_id", event_name(stopped.canceled_id())},
          {"callback_state", has_stopped ? "stopped" : "unknown"},
          {"acknowledged_at", time_or_null(stopped.acknowledged_ns())},
          {"received_after_deadline",
           has_stopped && stopped.acknowledged_ns() >= context.deadline_ns()},
          {"history_event_id",
           has_stopped ? json::value(event_name(stopped.acknowledged_id())) : json::value()}};
}

void put_cancellation(const model::Event& event, Members* out) {
  const auto& about = event.cancellation();
  const auto& context = about.context();
  const auto& own = *context.lineage().rbegin();
  out->put("workflow_command_id", own.request_id());
  out->put("workflow_run_id", own.run_id());
  if (event.kind() == model::ACTIVITY_STOP_ACKNOWLEDGED) {
    const auto& stopped = about.stopped();
    out->put("sequence", stopped.step());
    out->put("activity_execution_id", stopped.activity_id());
    out->put("activity_attempt_id", absl::StrCat(stopped.activity_id(), ":", stopped.attempt()));
    out->put("lease_owner", stopped.owner());
    out->put("cancellation_history_event_id", event_name(stopped.canceled_id()));
    out->put("request_id", own.request_id());
    out->put("root_request_id", context.lineage(0).request_id());
    out->put("cleanup_deadline_at", format_time(context.deadline_ns()));
    out->put("callback_state", "stopped");
    out->put("evidence_source", "activity_worker");
    out->put("acknowledged_at", format_time(stopped.acknowledged_ns()));
    out->put("received_after_deadline", stopped.acknowledged_ns() >= context.deadline_ns());
    return;
  }
  if (event.kind() == model::CANCELLATION_DELIVERED) {
    const auto& at = about.delivery();
    out->put("sequence", at.sequence());
    out->put("sequence_span", at.span());
    out->put("call_kind", at.call_kind());
    if (at.operation_sequence() != 0) {
      out->put("operation_sequence", at.operation_sequence());
      out->put("operation_sequence_span", at.operation_span());
    }
  } else {
    out->put("workflow_instance_id", own.workflow_id());
    out->put("command_type", "request_cancellation");
    out->put("reason", reason_of(context));
    out->put("cleanup_deadline_at", format_time(context.deadline_ns()));
  }
  out->put("cancellation", cancellation_context(context));
}

void put_cleanup(const model::Event& closing, Members* out) {
  const auto& closed = closing.workflow_closed();
  const auto& end = closed.cancellation();
  const bool is_told = end.delivered_id() != 0;
  const std::string_view message = end.is_late()
                                       ? "the workflow was cancelled: its time to clean up was over"
                                       : "the workflow was cancelled";
  out->put("workflow_command_id", end.request_id());
  out->put("failure_category", "cancelled");
  out->put("closed_reason", "cancelled");
  out->put("exception_class", "WorkflowCancelled");
  out->put("exception_type", "WorkflowCancelled");
  out->put("message", closed.reason().empty() ? to_json(message) : json::value(closed.reason()));
  out->put("reason", closed.reason().empty() ? json::value() : json::value(closed.reason()));
  out->put("cancellation_cleanup",
           json::object{{"request_id", end.request_id()},
                        {"outcome", end.is_late() ? "deadline_expired" : "completed"},
                        {"cleanup_deadline_at", format_time(end.deadline_ns())},
                        {"finished_at", format_time(closing.time_ns())},
                        {"delivery_history_event_id",
                         is_told ? json::value(event_name(end.delivered_id())) : json::value()},
                        {"delivery_sequence",
                         is_told ? json::value(end.delivery_sequence()) : json::value()}});
}

}  // namespace fairlead::durable
