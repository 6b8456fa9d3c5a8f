// Asking runs to stop, and what workers do about it.

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "api/durable/cancellation.h"
#include "api/durable/desk.h"
#include "api/durable/run_status.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

constexpr size_t kWithRun = 2;
constexpr int64_t kCleanupSecondsMax = 3600;
constexpr int64_t kSpanMax = 1000;
// Before another worker is tried: for one that can deal with the request, or in case one comes.
constexpr DurationNs kPassOnSoon = 200 * kMillisecond;
constexpr DurationNs kPassOnLater = 2 * kSecond;
constexpr std::array<std::string_view, 7> kCallKinds = {
    "activity", "local_activity", "timer", "condition", "child", "parallel", "selection_handle"};

std::optional<int64_t> number_of(const json::object& body, const char* name, int64_t otherwise) {
  if (const auto* given = member(body, name); given == nullptr || given->is_null()) {
    return otherwise;
  }
  return integer_of(body, name);
}

// Where the worker's code stands; nothing after a refusal.
std::optional<model::CancellationDelivery> read_delivery(Call& call) {
  const auto& body = call.body;
  model::CancellationDelivery at;
  const auto sequence = integer_of(body, "sequence");
  const auto span = number_of(body, "sequence_span", 1);
  const auto operation = number_of(body, "operation_sequence", 0);
  const auto operation_span = number_of(body, "operation_sequence_span", 1);
  const std::string kind = text_of(body, "call_kind");
  const bool is_kind = std::find(kCallKinds.begin(), kCallKinds.end(), kind) != kCallKinds.end();
  const bool is_handle = kind == "selection_handle";
  const auto invalid = [&call](const char* field, const char* text) {
    call.invalid(field, text);
    return std::nullopt;
  };
  if (!sequence.has_value() || *sequence < 1) {
    return invalid("sequence", "sequence must be at least 1");
  }
  if (!is_kind) return invalid("call_kind", "call_kind is none of the calls that can be told");
  if (!span.has_value() || *span < 1 || *span > kSpanMax || (kind != "parallel" && *span != 1)) {
    return invalid("sequence_span", "sequence_span must be 1, or up to 1000 of a parallel call");
  }
  if (!operation.has_value() ||
      (is_handle ? *operation < 1 || *operation >= *sequence : *operation != 0)) {
    return invalid("operation_sequence", "operation_sequence is what a handle stands for");
  }
  if (!operation_span.has_value() || *operation_span < 1 || *operation_span > kSpanMax ||
      (is_handle ? *operation_span > *sequence - *operation : *operation_span != 1)) {
    return invalid("operation_sequence_span", "operation_sequence_span is that of a handle");
  }
  at.set_sequence(*sequence);
  at.set_span(*span);
  at.set_call_kind(kind);
  if (is_handle) {
    at.set_operation_sequence(*operation);
    at.set_operation_span(*operation_span);
  }
  return at;
}

json::object delivered_answer(const Call& call, const std::string& run_id,
                              const std::string& request_id,
                              const model::CancellationDelivery& at) {
  const bool is_handle = at.operation_sequence() != 0;
  return {{"delivered", true},
          {"task_id", call.arg(0)},
          {"workflow_run_id", run_id},
          {"request_id", request_id},
          {"sequence", at.sequence()},
          {"call_kind", at.call_kind()},
          {"sequence_span", at.span()},
          {"operation_sequence", is_handle ? json::value(at.operation_sequence()) : json::value()},
          {"operation_sequence_span", is_handle ? at.operation_span() : 1},
          {"claim_released", false},
          {"reason", nullptr}};
}

// Something has to stop first: the task is no longer the worker's.
json::object waiting_answer(const Call& call, const std::string& run_id,
                            history::Delivery outcome) {
  return {{"delivered", false},
          {"task_id", call.arg(0)},
          {"workflow_run_id", run_id},
          {"request_id", nullptr},
          {"sequence", nullptr},
          {"call_kind", nullptr},
          {"sequence_span", nullptr},
          {"operation_sequence", nullptr},
          {"operation_sequence_span", nullptr},
          {"claim_released", true},
          {"reason", outcome == history::Delivery::kWaitsForChild
                         ? "cancellation_waiting_for_child"
                         : "cancellation_waiting_for_activity"}};
}

}  // namespace

bool cooperates(const Worker& worker) { return has_text(worker.capabilities, kCooperates); }

bool Door::Impl::can_stop(const std::string& worker_key) const {
  const auto found = workers_.find(worker_key);
  return found != workers_.end() && cooperates(found->second);
}

void Door::Impl::request_cancellation(CallPtr call) {
  const std::string reason = text_of(call->body, "reason");
  if (reason.size() > 1000) {
    return call->invalid("reason", "reason must not be longer than 1000 bytes");
  }
  const auto seconds =
      number_of(call->body, "cleanup_timeout_seconds", history::kCleanupTime / kSecond);
  if (!seconds.has_value() || *seconds < 1 || *seconds > kCleanupSecondsMax) {
    return call->invalid("cleanup_timeout_seconds",
                         "cleanup_timeout_seconds must be from 1 to 3600");
  }
  shard::AskToStop request;
  request.run = run_of(*call, kWithRun);
  if (!reason.empty()) request.reason = reason;
  request.cleanup_time = *seconds * kSecond;
  durable_.ask_to_stop(
      std::move(request),
      here<shard::AskedToStop>([call](absl::StatusOr<shard::AskedToStop> asked) {
        if (!asked.ok()) {
          const auto detail = error_detail(asked.status());
          if (detail.kind == ErrorKind::kLeaseRefused && detail.fields[0] == "no_workflow_code") {
            return call->refuse(409, "cooperative_cancellation_not_supported",
                                "an activity without workflow code cannot be asked to clean up",
                                {{"workflow_id", call->arg(0)}});
          }
          return refuse_command(*call, asked.status());
        }
        const auto& cancellation = asked->run.durable().cancellation();
        call->answer(asked->is_new ? 202 : 200,
                     {{"workflow_id", call->arg(0)},
                      {"run_id", asked->run.run_id()},
                      {"command_id", history::cancellation_request_id(cancellation)},
                      {"command_status", "accepted"},
                      {"outcome", "cancellation_requested"},
                      {"accepted", true},
                      {"duplicate", !asked->is_new},
                      {"run_status", to_json(status_of(asked->run))},
                      {"cancellation_request", cancellation_request(cancellation)},
                      {"reason", nullptr}});
      }));
}

void Door::Impl::deliver_cancellation(CallPtr call) {
  auto token = leased_token(*call, 'w');
  if (!token.has_value()) return;
  const std::string request_id = text_of(call->body, "request_id");
  if (request_id.empty()) return call->invalid("request_id", "request_id is missing");
  const auto at = read_delivery(*call);
  if (!at.has_value()) return;
  if (!can_stop(worker_key(*call, token->owner))) {
    return call->refuse(409, "active_claim_cancellation_not_supported",
                        "the worker did not register as one that can tell its code",
                        {{"task_id", call->arg(0)}});
  }
  durable_.deliver_cancellation(
      {*token, request_id, *at},
      here<shard::CancellationDelivered>(
          [this, call, request_id, at = *at](absl::StatusOr<shard::CancellationDelivered> done) {
            if (!done.ok()) return refuse_task(*call, done.status());
            if (done->outcome == history::Delivery::kDelivered) {
              return call->answer(200, delivered_answer(*call, done->run_id, request_id, at));
            }
            settle_task(call->arg(0));
            call->answer(200, waiting_answer(*call, done->run_id, done->outcome));
          }));
}

void Door::Impl::acknowledge_stop(CallPtr call) {
  auto token = leased_token(*call, 'a');
  if (!token.has_value()) return;
  const std::string request_id = text_of(call->body, "request_id");
  if (request_id.empty()) return call->invalid("request_id", "request_id is missing");
  durable_.stop_of_activity(
      {*token, request_id, true},
      here<shard::ActivityStopped>([this, call, owner = token->owner,
                                    request_id](absl::StatusOr<shard::ActivityStopped> stopped) {
        if (!stopped.ok()) return refuse_task(*call, stopped.status());
        settle_task(call->arg(0));
        call->answer(200, {{"task_id", call->arg(0)},
                           {"activity_attempt_id", text_of(call->body, "activity_attempt_id")},
                           {"lease_owner", owner},
                           {"request_id", request_id},
                           {"acknowledged", true},
                           {"duplicate", !stopped->is_new},
                           {"heartbeat_recorded", false},
                           {"history_event_id", event_name(stopped->activity.acknowledged_id())},
                           {"reason", nullptr}});
      }));
}

// An attempt that is not its worker's any longer: with what the worker needs to say that it
// stopped.
void Door::Impl::answer_stopped(CallPtr call, shard::TaskToken token, json::object answer) {
  durable_.stop_of_activity(
      {std::move(token), "", false},
      here<shard::ActivityStopped>([call, answer = std::move(answer)](
                                       absl::StatusOr<shard::ActivityStopped> stopped) mutable {
        if (stopped.ok()) {
          answer["cancellation_acknowledgement"] = stop_record(stopped->activity, stopped->context);
        }
        call->answer(200, std::move(answer));
      }));
}

// The worker that polled cannot tell its code of the request: it waits for another task, and the
// task for another worker.
void Door::Impl::pass_on(const std::string& receipt, const shard::WorkflowTask& task) {
  const auto& kept = receipts_.at(receipt);
  const auto& poll = *kept.call;
  const bool has_other =
      any_worker(poll.ns->name(), text_of(poll.body, "task_queue"),
                 [this](const std::string&, const Worker& worker) {
                   return cooperates(worker) && !worker.is_stale(now(), options_.stale_after());
                 });
  shard::FailTask request;
  request.token = task.token;
  request.token.owner = text_of(poll.body, "worker_id");
  request.passes_on = has_other ? kPassOnSoon : kPassOnLater;
  durable_.fail_task(
      std::move(request),
      here<shard::TaskCompleted>([this, receipt](absl::StatusOr<shard::TaskCompleted>) {
        const auto found = receipts_.find(receipt);
        if (found == receipts_.end() || found->second.call == nullptr) return;
        if (is_closed_ || found->second.hold_until <= now()) return end_poll(receipt);
        await_task(receipt, model::WORKFLOW_TASK);
      }));
}

}  // namespace fairlead::durable
