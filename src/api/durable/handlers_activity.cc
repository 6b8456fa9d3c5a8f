// What workers say of activity tasks.

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "api/durable/payloads.h"
#include "api/durable/run_status.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

json::object activity_answer(const Call& call, const char* outcome) {
  return {
      {"task_id", call.arg(0)}, {"activity_attempt_id", text_of(call.body, "activity_attempt_id")},
      {"outcome", outcome},     {"recorded", true},
      {"reason", nullptr},      {"next_task_id", nullptr}};
}

}  // namespace

void Door::Impl::complete_activity(CallPtr call) {
  auto token = leased_token(*call, 'a');
  if (!token.has_value()) return;
  const auto result = result_text(member(call->body, "result"));
  if (!result.ok()) return call->invalid("result", std::string(result.status().message()));
  shard::CompleteActivity request;
  request.token = *token;
  request.identity = token->owner;
  Members door;
  door.put("payload_codec", "avro");
  if (!result->empty()) door.put_raw("result", *result);
  request.door = door.take();
  engine_.complete_activity(std::move(request),
                            here<shard::Done>([this, call](absl::StatusOr<shard::Done> done) {
                              if (!done.ok()) return refuse_task(*call, done.status());
                              settle_task(call->arg(0));
                              call->answer(200, activity_answer(*call, "completed"));
                            }));
}

void Door::Impl::fail_activity(CallPtr call) {
  auto token = leased_token(*call, 'a');
  if (!token.has_value()) return;
  const auto failure = object_member(call->body, "failure");
  if (text_of(failure, "message").empty()) {
    return call->invalid("failure.message", "failure.message is missing");
  }
  shard::FailActivity request;
  request.token = *token;
  request.identity = token->owner;
  request.failure.set_kind(model::Failure::APPLICATION);
  request.failure.set_type(std::string(absl::StripAsciiWhitespace(text_of(failure, "type"))));
  request.failure.set_message(text_of(failure, "message"));
  request.failure.set_non_retryable(is_true(failure, "non_retryable"));
  request.failure.set_door(failure_members(failure, "activity"));
  engine_.fail_activity(std::move(request),
                        here<shard::Done>([this, call](absl::StatusOr<shard::Done> done) {
                          if (!done.ok()) return refuse_task(*call, done.status());
                          settle_task(call->arg(0));
                          call->answer(200, activity_answer(*call, "failed"));
                        }));
}

namespace {

// What a worker hears of an attempt that it asks about, or reports of.
json::object claim_of(const Call& call, const shard::TaskToken& token) {
  return {{"task_id", call.arg(0)},
          {"workflow_task_id", call.arg(0)},
          {"workflow_id", token.workflow_id},
          {"workflow_instance_id", token.workflow_id},
          {"run_id", token.run_id},
          {"workflow_run_id", token.run_id},
          {"activity_attempt_id", text_of(call.body, "activity_attempt_id")},
          {"attempt_number", token.attempt},
          {"lease_owner", token.owner},
          {"cancel_requested", false},
          {"can_continue", true},
          {"heartbeat_recorded", false},
          {"reason", nullptr}};
}

// The run is closed, or was asked to stop and has stopped waiting for this attempt.
bool is_stopped(const absl::Status& status) {
  const auto detail = error_detail(status);
  return detail.kind == ErrorKind::kLeaseRefused &&
         (detail.fields[0] == "run_closed" || detail.fields[0] == "attempt_stopped");
}

// That is an answer, and what the worker does next is its matter.
json::object stopped_answer(json::object answer, const absl::Status& status) {
  const auto detail = error_detail(status);
  if (detail.fields[0] == "run_closed") {
    add_stop(detail, &answer);
    json::value reason = answer.at("stop_reason");
    answer["reason"] = std::move(reason);
  } else {
    answer["cancel_requested"] = true;
    answer["can_continue"] = false;
    answer["reason"] = "cancel_requested";
  }
  answer["lease_expires_at"] = nullptr;
  answer["last_heartbeat_at"] = nullptr;
  return answer;
}

}  // namespace

void Door::Impl::note_lease(const std::string& task, TimeNs expires) {
  const auto handed_out = handed_out_.find(task);
  if (handed_out == handed_out_.end()) return;
  const auto receipt = receipts_.find(handed_out->second.receipt);
  if (receipt != receipts_.end()) receipt->second.expires = expires;
}

void Door::Impl::heartbeat_activity(CallPtr call) {
  auto token = leased_token(*call, 'a');
  if (!token.has_value()) return;
  shard::HeartbeatActivity request;
  request.token = *token;
  if (const auto* details = member(call->body, "details")) {
    request.details = json::serialize(*details);
  }
  engine_.heartbeat_activity(
      std::move(request),
      here<shard::HeartbeatResult>(
          [this, call, token = *token](absl::StatusOr<shard::HeartbeatResult> beat) {
            auto answer = claim_of(*call, token);
            if (is_stopped(beat.status())) {
              return call->answer(200, stopped_answer(std::move(answer), beat.status()));
            }
            if (!beat.ok()) return refuse_task(*call, beat.status());
            note_lease(call->arg(0), beat->lease_end_ns);
            answer["cancel_requested"] = beat->cancel_requested;
            answer["heartbeat_recorded"] = true;
            answer["lease_expires_at"] = format_time(beat->lease_end_ns);
            answer["last_heartbeat_at"] = format_time(beat->beat_ns);
            call->answer(200, std::move(answer));
          }));
}

// Whether the worker still has the attempt; with `renews`, also that it is at work.
void Door::Impl::observe_activity(CallPtr call, bool renews) {
  auto token = leased_token(*call, 'a');
  if (!token.has_value()) return;
  durable_.observe_activity(
      {*token, renews}, here<shard::ActivityClaim>([this, call, token = *token, renews](
                                                       absl::StatusOr<shard::ActivityClaim> claim) {
        auto answer = claim_of(*call, token);
        answer["server_time"] = format_time(now());
        if (!renews && is_stopped(claim.status())) {
          return answer_stopped(call, token, stopped_answer(std::move(answer), claim.status()));
        }
        if (!claim.ok()) return refuse_task(*call, claim.status());
        const auto& activity = claim->activity;
        const bool is_canceled = activity.cancel_requested();
        if (renews && !is_canceled) note_lease(call->arg(0), claim->expires_ns);
        answer["activity_execution_id"] = activity.scheduled().activity_id();
        answer["server_time"] = format_time(claim->seen_ns);
        answer["lease_expires_at"] = format_time(claim->expires_ns);
        answer["last_heartbeat_at"] = time_or_null(activity.heartbeat_ns());
        auto deadlines = deadlines_of(activity);
        answer["heartbeat_deadline_at"] =
            deadlines.contains("heartbeat") ? deadlines.at("heartbeat") : json::value();
        answer["deadlines"] = std::move(deadlines);
        answer["cancel_requested"] = is_canceled;
        if (is_canceled) answer["reason"] = "cancel_requested";
        if (activity.scheduled().has_session()) {
          answer["worker_session"] = session_of(token.ns, activity);
        }
        if (renews) answer["lease_renewed"] = !is_canceled;
        if (!renews) answer["task_status"] = "leased";
        call->answer(200, std::move(answer));
      }));
}

}  // namespace fairlead::durable
