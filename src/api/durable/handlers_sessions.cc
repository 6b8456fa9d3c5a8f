// What workers say of the sessions that they hold.

#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "api/durable/sessions.h"
#include "shard/session_desk.h"

namespace fairlead::durable {

namespace {

using admission::SessionRefusal;

json::value cause_word(admission::Session::Cause cause) {
  switch (cause) {
    case admission::Session::Cause::kTtl:
      return "ttl_expired";
    case admission::Session::Cause::kLease:
      return "lease_expired";
    case admission::Session::Cause::kWorker:
      return "worker_heartbeat_stale";
    case admission::Session::Cause::kNone:
      break;
  }
  return nullptr;
}

std::string_view sentence(SessionRefusal refusal) {
  switch (refusal) {
    case SessionRefusal::kWorkerUnknown:
      return "the worker is not registered";
    case SessionRefusal::kQueueMismatch:
      return "the worker registered for another task queue than the session's";
    case SessionRefusal::kNotFound:
      return "there is no such session";
    case SessionRefusal::kNotActive:
      return "the session has ended, or its worker was lost";
    case SessionRefusal::kOwnerMismatch:
      return "another worker holds the session";
    case SessionRefusal::kMissing:
      return "there is no such session, and create_if_missing is false";
    case SessionRefusal::kRequirements:
      return "the worker's capabilities lack something that the session requires";
    case SessionRefusal::kTooManySessions:
      return "the worker holds as many sessions as it may";
    case SessionRefusal::kOwnedByAnother:
      return "another worker holds the session";
    case SessionRefusal::kTooManyActivities:
      return "the session has as many activities as it may at once";
    case SessionRefusal::kClosed:
      return "the session was closed, which is for good: take another id";
    case SessionRefusal::kNotReacquired:
      return "the session's time is over, or it may not be taken again: take another id";
    case SessionRefusal::kFull:
      return "too many sessions are remembered";
  }
  return "";
}

int status_of(SessionRefusal refusal) {
  if (refusal == SessionRefusal::kNotFound || refusal == SessionRefusal::kWorkerUnknown) return 404;
  return refusal == SessionRefusal::kFull ? 429 : 409;
}

}  // namespace

json::object Door::Impl::session_record(const Call& call, const admission::Session& session) const {
  auto record = session_of_task(session.terms, session);
  const auto holder = workers_.find(worker_key(call, session.owner));
  const bool is_known = holder != workers_.end();
  const bool is_stale = !is_known || holder->second.is_stale(engine_.now(), options_.stale_after());
  record["namespace"] = call.ns->name();
  record["connection"] = nullptr;
  record["queue"] = session.queue;
  record["holder"] = {
      {"worker_id", session.owner},
      {"task_queue", is_known ? json::value(holder->second.queue) : json::value()},
      {"status", is_known ? json::value(is_stale ? "stale" : "active") : json::value()},
      {"last_heartbeat_at",
       is_known ? json::value(format_time(holder->second.heard_ns)) : json::value()},
      {"is_stale", is_stale}};
  record["closed_at"] = time_or_null(session.closed_ns);
  record["failure_reason"] = cause_word(session.cause);
  record["active_activity_count"] = session.running;
  record["last_heartbeat_at"] = format_time(session.heard_ns);
  record["created_at"] = format_time(session.created_ns);
  record["updated_at"] = format_time(session.changed_ns);
  return record;
}

void Door::Impl::refuse_session(Call& call, const std::string& id, SessionRefusal refusal,
                                json::object extra) {
  extra["admitted"] = false;
  if (const auto session = durable_.sessions().find(call.ns_num(), id)) {
    extra["session"] = session_record(call, *session);
  }
  call.refuse(status_of(refusal), admission::word_of(refusal), sentence(refusal), std::move(extra));
}

void Door::Impl::answer_session(const CallPtr& call, const std::string& id, const char* outcome) {
  const int status = std::string_view(outcome) == "created" ? 201 : 200;
  json::object answer{{"admitted", true},   {"outcome", outcome},
                      {"session", nullptr}, {"activity_task_id", nullptr},
                      {"status", status},   {"reason", nullptr}};
  if (const auto session = durable_.sessions().find(call->ns_num(), id)) {
    answer["session"] = session_record(*call, *session);
  }
  rows_.when_durable(once_durable(status, call, std::move(answer)));
}

// The id of the worker that speaks; empty after a refusal.
std::string Door::Impl::session_worker(Call& call) {
  const std::string id = text_of(call.body, "worker_id");
  if (id.empty() || id.size() > 255) {
    call.invalid("worker_id", "worker_id must be 1 to 255 bytes");
    return "";
  }
  return id;
}

void Door::Impl::create_session(CallPtr call) {
  const std::string worker = session_worker(*call);
  if (worker.empty()) return;
  model::SessionTerms asked;
  if (const auto fault = read_session(call->body, &asked)) {
    return call->invalid(fault->field, fault->text);
  }
  const auto known = workers_.find(worker_key(*call, worker));
  if (known == workers_.end()) {
    return refuse_session(*call, asked.session_id(), SessionRefusal::kWorkerUnknown, {});
  }
  const std::string queue = text_of(call->body, "queue");
  if (!queue.empty() && queue != known->second.queue) {
    return refuse_session(
        *call, asked.session_id(), SessionRefusal::kQueueMismatch,
        {{"registered_task_queue", known->second.queue}, {"requested_task_queue", queue}});
  }
  const auto answer = durable_.sessions().create(call->ns_num(), shard::terms_from(asked), worker);
  if (answer.refusal.has_value()) {
    json::object extra;
    if (answer.refusal == SessionRefusal::kRequirements) {
      json::array missing;
      for (const auto& each : answer.missing) missing.emplace_back(to_json(each));
      extra["missing_requirements"] = std::move(missing);
    } else if (answer.refusal == SessionRefusal::kTooManySessions) {
      extra["max_concurrent_worker_sessions"] = known->second.session_slots;
    }
    return refuse_session(*call, asked.session_id(), *answer.refusal, std::move(extra));
  }
  using Outcome = admission::Sessions::Outcome;
  answer_session(call, asked.session_id(),
                 answer.outcome == Outcome::kCreated  ? "created"
                 : answer.outcome == Outcome::kReused ? "reused"
                                                      : "reacquired");
}

void Door::Impl::renew_session(CallPtr call) {
  const std::string worker = session_worker(*call);
  if (worker.empty()) return;
  model::SessionTerms asked;
  call->body["session_id"] = call->arg(0);
  if (const auto fault = read_session(call->body, &asked)) {
    return call->invalid(fault->field, fault->text);
  }
  const bool has_lease = member(call->body, "lease_seconds") != nullptr;
  const auto lease = has_lease ? std::optional<int64_t>(asked.lease_s()) : std::nullopt;
  const auto answer = durable_.sessions().renew(call->ns_num(), asked.session_id(), worker, lease);
  if (answer.refusal.has_value()) {
    return refuse_session(*call, asked.session_id(), *answer.refusal, {});
  }
  answer_session(call, asked.session_id(), "heartbeat_recorded");
}

void Door::Impl::close_session(CallPtr call) {
  const std::string worker = session_worker(*call);
  if (worker.empty()) return;
  const auto closing = durable_.sessions().close(call->ns_num(), call->arg(0), worker);
  if (closing.refusal.has_value()) {
    return refuse_session(*call, call->arg(0), *closing.refusal, {});
  }
  answer_session(call, call->arg(0), closing.was_closed ? "already_closed" : "closed");
}

}  // namespace fairlead::durable
