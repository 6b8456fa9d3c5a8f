// Polls for workflow and activity tasks: they wait in the engine, hold no thread, and can be
// repeated.

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/durable/cancellation.h"
#include "api/durable/codec.h"
#include "api/durable/desk.h"
#include "api/durable/priority.h"
#include "api/durable/run_status.h"
#include "api/durable/sessions.h"
#include "shard/session_desk.h"

namespace fairlead::durable {

namespace {

constexpr int64_t kHoldSecondsMax = 60;
constexpr size_t kReceiptsMax = 50'000;

// Where the next page of a task's history begins, and where the history of this task ends: a worker
// must not see what has happened since it got the task.
std::string page_token(int64_t last, int64_t end) {
  return absl::Base64Escape(absl::StrCat(last, "/", end));
}

template <typename Task>
shard::PollEnd end_of(const absl::StatusOr<Task>& task) {
  return task.ok() ? task->end : shard::PollEnd::kNothing;
}

const char* word_of(shard::PollEnd end) {
  switch (end) {
    case shard::PollEnd::kThrottled:
      return "throttled";
    case shard::PollEnd::kUnavailable:
      return "unavailable";
    case shard::PollEnd::kNothing:
      break;
  }
  return "empty";
}

// How much history there is, and whether that is a reason to continue as new.
json::object history_budget(const shard::WorkflowTask& task, const Options& options) {
  const int64_t events = task.history_end - 1;
  const int64_t read = task.next_history_event != 0 ? task.next_history_event - 1 : events;
  const auto bytes =
      static_cast<int64_t>(task.history.size()) * events / std::max<int64_t>(read, 1);
  return {{"event_count", events},
          {"event_threshold", options.continue_as_new_events},
          {"approximate_size_bytes", bytes},
          {"size_bytes_threshold", options.continue_as_new_bytes},
          {"continue_as_new_recommended",
           events >= options.continue_as_new_events || bytes >= options.continue_as_new_bytes}};
}

}  // namespace

// The registered worker that polls; null after a refusal.
const Worker* Door::Impl::polling_worker(Call& call) {
  const std::string id = text_of(call.body, "worker_id");
  const std::string queue = text_of(call.body, "task_queue");
  for (const char* field : {"worker_id", "task_queue"}) {
    if (text_of(call.body, field).empty()) {
      call.invalid(field, absl::StrCat(field, " is missing"));
      return nullptr;
    }
  }
  const bool has_timeout = member(call.body, "timeout_seconds") != nullptr;
  const auto timeout = integer_of(call.body, "timeout_seconds");
  if (has_timeout && (!timeout.has_value() || *timeout < 0 || *timeout > kHoldSecondsMax)) {
    call.invalid("timeout_seconds", "timeout_seconds must be from 0 to 60");
    return nullptr;
  }
  const bool has_size = member(call.body, "history_page_size") != nullptr;
  const auto size = integer_of(call.body, "history_page_size");
  if (has_size && (!size.has_value() || *size < 1 || *size > options_.history_page_max)) {
    call.invalid("history_page_size",
                 absl::StrCat("history_page_size must be from 1 to ", options_.history_page_max));
    return nullptr;
  }
  if (text_of(call.body, "poll_request_id").size() > 255) {
    call.invalid("poll_request_id", "poll_request_id must not be longer than 255 bytes");
    return nullptr;
  }
  const auto found = workers_.find(worker_key(call, id));
  if (found == workers_.end()) {
    call.refuse(412, "worker_not_registered", absl::StrCat("worker ", id, " is not registered"));
    return nullptr;
  }
  if (found->second.queue != queue) {
    call.refuse(409, "task_queue_mismatch", "the worker registered for another task queue",
                {{"registered_task_queue", found->second.queue}, {"requested_task_queue", queue}});
    return nullptr;
  }
  if (is_draining(call.ns->name(), found->second)) {
    call.refuse(409, "worker_draining", "the worker's build gets no new tasks",
                {{"task", nullptr}, {"poll_status", "draining"}});
    return nullptr;
  }
  return &found->second;
}

void Door::Impl::poll(CallPtr call, model::TaskKind kind) {
  const Worker* worker = polling_worker(*call);
  if (worker == nullptr) return;
  const bool is_workflow = kind == model::WORKFLOW_TASK;
  std::string request_id = text_of(call->body, "poll_request_id");
  if (request_id.empty()) request_id = absl::StrCat("\t", ++last_number_);
  const std::string key = absl::StrCat(worker_key(*call, worker->id), "\n", worker->queue, "\n",
                                       is_workflow ? "w" : "a", "\n", request_id);
  if (const auto known = receipts_.find(key); known != receipts_.end()) {
    auto& receipt = known->second;
    if (receipt.call != nullptr) {
      // The first request has lost its connection, or soon will: this one waits in its place.
      auto earlier = std::exchange(receipt.call, call);
      return earlier->answer(200, {{"task", nullptr}, {"poll_status", "empty"}});
    }
    if (receipt.expires > now()) {
      return call->answer(200, {{"poll_status", "leased"}, {"server_time", format_time(now())}},
                          receipt.body);
    }
    receipts_.erase(known);
  }
  if (is_closed_) return call->answer(200, {{"task", nullptr}, {"poll_status", "draining"}});
  drop_old_receipts();
  if (receipts_.size() >= kReceiptsMax) {
    return call->refuse(429, "long_poll_capacity_exhausted", "too many polls wait here",
                        {{"poll_status", "long_poll_capacity_exhausted"},
                         {"task", nullptr},
                         {"task_kind", is_workflow ? "workflow_task" : "activity_task"},
                         {"task_queue", worker->queue},
                         {"retryable", true},
                         {"retry_after_seconds", 1}});
  }
  if (is_workflow && takes_validations(*call) &&
      serve_validation(call, worker_key(*call, worker->id), *worker, key)) {
    return;
  }
  const auto timeout = integer_of(call->body, "timeout_seconds");
  auto& receipt = receipts_[key];
  receipt.worker = worker_key(*call, worker->id);
  receipt.call = call;
  receipt.hold_until = now() + (timeout.has_value() ? *timeout * kSecond : options_.poll_timeout);
  await_task(key, kind);
}

void Door::Impl::await_task(const std::string& key, model::TaskKind kind) {
  auto& receipt = receipts_.at(key);
  const auto& call = *receipt.call;
  shard::PollRequest request;
  request.ns = call.ns_num();
  request.kind = kind;
  request.queue.set_name(engine_queue(text_of(call.body, "task_queue")));
  request.identity = text_of(call.body, "worker_id");
  request.hold_until = receipt.hold_until;
  // A workflow task without a marker is for every worker; an activity task without one is for
  // workers without a build.
  if (const auto worker = workers_.find(receipt.worker); worker != workers_.end()) {
    request.version = worker->second.build_id;
    request.takes_unversioned = kind == model::WORKFLOW_TASK && !request.version.empty();
    request.takes_sessions = kind == model::ACTIVITY_TASK && worker->second.session_slots > 0;
    request.types = kind == model::WORKFLOW_TASK ? worker->second.workflows_taken
                                                 : worker->second.activities_taken;
  }
  if (kind == model::WORKFLOW_TASK) {
    receipt.poll = engine_.poll_workflow_task(
        std::move(request),
        here<shard::WorkflowTask>([this, key](absl::StatusOr<shard::WorkflowTask> task) {
          if (!task.ok() || task->token.workflow_id.empty()) return end_poll(key, end_of(task));
          hand_out(key, *task);
        }));
  } else {
    receipt.poll = engine_.poll_activity_task(
        std::move(request),
        here<shard::ActivityTask>([this, key](absl::StatusOr<shard::ActivityTask> task) {
          if (!task.ok() || task->token.workflow_id.empty()) return end_poll(key, end_of(task));
          hand_out(key, *task);
        }));
  }
}

void Door::Impl::end_poll(const std::string& receipt, shard::PollEnd why) {
  const auto found = receipts_.find(receipt);
  if (found == receipts_.end() || found->second.call == nullptr) return;
  const auto call = std::move(found->second.call);
  receipts_.erase(found);
  call->answer(
      200, {{"task", nullptr}, {"poll_status", word_of(why)}, {"server_time", format_time(now())}});
}

void Door::Impl::hand_out(const std::string& receipt, const shard::WorkflowTask& task) {
  const auto found = receipts_.find(receipt);
  if (found == receipts_.end() || found->second.call == nullptr) {
    return engine_.return_workflow_task(task.token);
  }
  const bool is_asked = task.cancellation.has_context();
  if (is_asked && !can_stop(found->second.worker)) return pass_on(receipt, task);
  const auto& call = *found->second.call;
  const auto& token = task.token;
  const int64_t page_size =
      integer_of(call.body, "history_page_size").value_or(options_.history_page_default);
  const auto events = join_events(task.history, page_size);
  const auto started = object_of(started_payload(task.history));
  const int64_t total = task.history_end - 1;
  const std::string name =
      TaskName{'w', token.scheduled_id, token.run_id, token.workflow_id}.text();
  json::object out{{"task_id", name},
                   {"task_kind", "workflow"},
                   {"workflow_id", token.workflow_id},
                   {"run_id", token.run_id},
                   {"workflow_type", task.workflow_type},
                   {"workflow_task_attempt", token.attempt},
                   {"payload_codec", "avro"},
                   {"arguments", nullptr},
                   {"next_history_page_token", nullptr},
                   {"total_history_events", total},
                   {"last_history_sequence", total},
                   {"task_queue", known_queue(task.task_queue)},
                   {"lease_owner", text_of(call.body, "worker_id")},
                   {"lease_expires_at", format_time(task.expires_ns)},
                   {"namespace", call.ns->name()},
                   {"sticky_replay_mode", "cold_replay"},
                   {"compatibility", text_or_null(task.version)},
                   {"history_budget", history_budget(task, options_)}};
  if (const auto* input = member(started, "input")) out["arguments"] = *input;
  if (events.count < total) out["next_history_page_token"] = page_token(events.count, total + 1);
  if (is_asked) out["cancellation_request"] = cancellation_request(task.cancellation);
  if (is_asked && task.cancellation.delivered_id() == 0 && task.message.id().empty()) {
    out["resume_source_kind"] = "cancellation_request";
    out["resume_source_id"] = history::cancellation_request_id(task.cancellation);
  }
  if (!task.message.id().empty() && task.message.is_update()) {
    out["workflow_update_id"] = task.message.id();
    out["workflow_wait_kind"] = "update";
    out["resume_source_kind"] = "workflow_update";
    out["resume_source_id"] = task.message.id();
  } else if (!task.message.id().empty()) {
    out["workflow_signal_id"] = task.message.id();
    out["signal_name"] = task.message.name();
    out["workflow_wait_kind"] = "signal";
    out["resume_source_kind"] = "workflow_signal";
    out["resume_source_id"] = task.message.id();
  }
  Members body;
  body.raw(members_of(out));
  body.put_raw("history_events", absl::StrCat("[", events.joined, "]"));
  hand_out(receipt, name, token, true, task.expires_ns,
           absl::StrCat("\"task\":{", body.text(), "}"));
  handed_out_[name].workflow_type = task.workflow_type;
}

json::object Door::Impl::session_of(NamespaceNum ns, const model::ActivityState& activity) {
  const auto& terms = activity.scheduled().session();
  return session_of_task(shard::terms_from(terms),
                         durable_.sessions().find(ns, terms.session_id()));
}

void Door::Impl::hand_out(const std::string& receipt, const shard::ActivityTask& task) {
  const auto found = receipts_.find(receipt);
  if (found == receipts_.end() || found->second.call == nullptr) {
    return engine_.return_activity_task(task.token);
  }
  const auto& call = *found->second.call;
  const auto& token = task.token;
  const auto& activity = task.activity;
  const auto& limits = activity.scheduled();
  const std::string name =
      TaskName{'a', token.scheduled_id, token.run_id, token.workflow_id}.text();
  const TimeNs expires = add_saturated(activity.started_ns(), limits.lease_ns());
  json::object out{{"task_id", name},
                   {"workflow_id", token.workflow_id},
                   {"run_id", token.run_id},
                   {"workflow_type", task.workflow_type},
                   {"namespace", call.ns->name()},
                   {"activity_execution_id", token.activity_id},
                   {"activity_attempt_id", attempt_name(token.activity_id, token.attempt)},
                   {"attempt_number", token.attempt},
                   {"activity_type", limits.activity_type()},
                   {"payload_codec", "avro"},
                   {"arguments", nullptr},
                   {"retry_policy", nullptr},
                   {"task_queue", known_queue(limits.task_queue())},
                   {"lease_owner", text_of(call.body, "worker_id")},
                   {"lease_expires_at", format_time(expires)},
                   {"deadlines", deadlines_of(activity)},
                   {"priority", priority_record(task.priority)},
                   {"idempotency_key", token.activity_id}};
  if (limits.has_session()) out["worker_session"] = session_of(task.token.ns, activity);
  const auto event = parse_json(join_events(task.scheduled_event, 1).joined);
  if (event.has_value() && event->is_object()) {
    const auto* payload = member(event->as_object(), "payload");
    for (const char* field : {"arguments", "retry_policy"}) {
      if (payload == nullptr || !payload->is_object()) break;
      if (const auto* value = member(payload->as_object(), field)) out[field] = *value;
    }
  }
  // Its worker keeps to this itself, and looks for it here.
  if (limits.heartbeat_ns() > 0) {
    auto& policy = out["retry_policy"];
    if (!policy.is_object()) policy.emplace_object();
    policy.as_object()["heartbeat_timeout"] = limits.heartbeat_ns() / kSecond;
  }
  hand_out(receipt, name, token, false, expires, absl::StrCat("\"task\":", json::serialize(out)));
}

void Door::Impl::hand_out(const std::string& receipt, const std::string& task,
                          shard::TaskToken token, bool is_workflow, TimeNs expires,
                          std::string body) {
  auto& kept = receipts_.at(receipt);
  const auto call = std::move(kept.call);
  kept.call = nullptr;
  kept.task = task;
  kept.body = std::move(body);
  kept.expires = expires;
  handed_out_[task] = {kept.worker, receipt, std::move(token), is_workflow, ""};
  call->answer(200, {{"poll_status", "leased"}, {"server_time", format_time(now())}}, kept.body);
}

// A poll whose client has vanished must not be given a task.
void Door::Impl::forget(const Request& request) {
  for (auto at = receipts_.begin(); at != receipts_.end(); ++at) {
    if (at->second.call == nullptr || at->second.call->request.get() != &request) continue;
    engine_.cancel_poll(at->second.poll);
    receipts_.erase(at);
    return;
  }
  for (auto& [queue, polls] : query_polls_) {
    std::erase_if(polls,
                  [&](const QueryPoll& poll) { return poll.call->request.get() == &request; });
  }
  for (auto& [queue, polls] : validation_polls_) {
    std::erase_if(polls,
                  [&](const QueryPoll& poll) { return poll.call->request.get() == &request; });
  }
  for (const auto& [id, validation] : validations_) {
    if (validation.update->call->request.get() != &request) continue;
    (void)take_validation(std::string(id));
    return;
  }
  for (const auto& [id, query] : queries_) {
    if (query.caller->request.get() != &request) continue;
    end_query(std::string(id));
    return;
  }
}

// The task is over, or no longer its worker's.
void Door::Impl::settle_task(const std::string& task) {
  const auto found = handed_out_.find(task);
  if (found == handed_out_.end()) return;
  receipts_.erase(found->second.receipt);
  handed_out_.erase(found);
}

// Receipts of leases that have ended without a word. Looked for when the table has grown, so that
// the cost is spread over many polls.
void Door::Impl::drop_old_receipts() {
  if (receipts_.size() < 1024 || receipts_.size() % 256 != 0) return;
  const TimeNs present = now();
  for (auto at = receipts_.begin(); at != receipts_.end();) {
    if (at->second.call != nullptr || at->second.expires > present) {
      ++at;
      continue;
    }
    const auto task = handed_out_.find(at->second.task);
    if (task != handed_out_.end() && task->second.receipt == at->first) handed_out_.erase(task);
    at = receipts_.erase(at);
  }
}

void Door::Impl::task_history(CallPtr call) {
  auto token = leased_token(*call, 'w');
  if (!token.has_value()) return;
  std::string decoded;
  int64_t last = 0;
  int64_t end = 0;
  const std::string given = text_of(call->body, "next_history_page_token");
  const bool is_decoded = absl::Base64Unescape(given, &decoded);
  const std::pair<std::string, std::string> parts = absl::StrSplit(decoded, '/');
  if (!is_decoded || !absl::SimpleAtoi(parts.first, &last) || last < 0 ||
      (!parts.second.empty() && !absl::SimpleAtoi(parts.second, &end))) {
    return call->refuse(400, "invalid_page_token", "the page token is not one of this server's");
  }
  const int64_t page_size =
      std::min(integer_of(call->body, "history_page_size").value_or(options_.history_page_default),
               options_.history_page_max);
  if (page_size < 1) return call->invalid("history_page_size", "history_page_size is at least 1");
  // Reading on is a sign of life.
  durable_.renew_task(
      {*token}, here<shard::TaskLease>([this, call, token = *token, last,
                                        page_size](absl::StatusOr<shard::TaskLease> lease) {
        if (!lease.ok()) return refuse_task(*call, lease.status());
        shard::HistoryRequest request;
        request.run = token.run();
        request.from_event = last + 1;
        request.max_batches = static_cast<int>(page_size);
        engine_.read_history(
            std::move(request),
            here<shard::HistoryPage>([call, last, page_size, token, end = lease->history_end](
                                         absl::StatusOr<shard::HistoryPage> page) {
              if (!page.ok()) return call->refuse(page.status());
              const auto events = join_events(page->history, std::min(page_size, end - 1 - last));
              json::object answer{{"task_id", call->arg(0)},
                                  {"workflow_task_attempt", token.attempt},
                                  {"total_history_events", end - 1},
                                  {"next_history_page_token", nullptr}};
              if (events.count > 0 && last + events.count + 1 < end) {
                answer["next_history_page_token"] = page_token(last + events.count, end);
              }
              call->answer(200, std::move(answer),
                           absl::StrCat("\"history_events\":[", events.joined, "]"));
            }));
      }));
}

}  // namespace fairlead::durable
