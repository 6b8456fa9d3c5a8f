// Queries: a question waits here, in memory, until a worker that polls for questions takes it along
// with the whole history of the run as it is then.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/durable/codec.h"
#include "api/durable/desk.h"
#include "api/durable/payloads.h"
#include "api/durable/run_status.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

constexpr int kBatchesPerRead = 1000;

std::string queue_key_of(const std::string& ns, const std::string& queue) {
  return absl::StrCat(ns, "\n", queue);
}

void refuse_query(Call& caller, int status, std::string_view reason, std::string_view message) {
  caller.refuse(status, reason, message,
                {{"workflow_id", caller.arg(0)},
                 {"query_name", caller.args.back()},
                 {"result", nullptr},
                 {"result_envelope", nullptr}});
}

json::object times_of(const QueryTask& task) {
  return {{"lease_expires_at", format_time(task.lease_expires)},
          {"query_admitted_at", format_time(task.admitted)},
          {"query_deadline_at", format_time(task.deadline)}};
}

}  // namespace

void Door::Impl::query(CallPtr call) {
  const std::string& name = call->args.back();
  if (name.empty() || static_cast<int64_t>(name.size()) > options_.operation_name_bytes_max) {
    return call->invalid("query_name", "query_name is empty or too long");
  }
  const auto input = payload_text(member(call->body, "input"), true);
  if (!input.ok()) return call->invalid("input", std::string(input.status().message()));
  auto asked = std::make_shared<Asked>();
  asked->call = call;
  asked->input = *input;
  engine_.describe_workflow(
      run_of(*call, 3), here<shard::RunView>([this, asked](absl::StatusOr<shard::RunView> view) {
        auto& caller = *asked->call;
        if (!view.ok()) {
          if (!absl::IsNotFound(view.status()) && !absl::IsInvalidArgument(view.status())) {
            return caller.refuse(view.status());
          }
          return refuse_query(caller, 404, "instance_not_found",
                              std::string(view.status().message()));
        }
        asked->run = std::move(view->run);
        if (asked->run.durable().hosts_activity()) {
          return refuse_query(caller, 404, "rejected_unknown_query",
                              "an activity without workflow code answers no queries");
        }
        const std::string queue = known_queue(asked->run.task_queue());
        if (!has_query_worker(caller.ns->name(), queue, asked->run.workflow_type())) {
          return refuse_query(caller, 409, "query_worker_unavailable",
                              "no worker that answers queries of this workflow is there");
        }
        asked->then = [this](Asked& ready) {
          const auto fault = contract_fault(object_of(ready.started), "query",
                                            ready.call->args.back(), ready.input);
          if (fault.has_value()) return refuse_by_contract(*ready.call, *fault);
          queue_query(ready);
        };
        collect_history(asked);
      }));
}

bool Door::Impl::has_query_worker(const std::string& ns, const std::string& queue,
                                  const std::string& type) {
  const std::string prefix = absl::StrCat(ns, "\n");
  for (auto at = workers_.lower_bound(prefix); at != workers_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    const auto& worker = at->second;
    if (worker.queue != queue || worker.is_stale(now(), options_.stale_after())) continue;
    if (is_draining(ns, worker)) continue;
    if (!has_text(worker.capabilities, "query_tasks")) continue;
    if (worker.takes_workflow(type)) return true;
  }
  return false;
}

// Reads the history to its end.
void Door::Impl::collect_history(std::shared_ptr<Asked> asked) {
  shard::HistoryRequest request;
  request.run = {asked->call->ns_num(), asked->run.workflow_id(), asked->run.run_id(),
                 model::DURABLE};
  request.from_event = asked->next;
  request.max_batches = kBatchesPerRead;
  engine_.read_history(
      std::move(request),
      here<shard::HistoryPage>([this, asked](absl::StatusOr<shard::HistoryPage> page) {
        if (!page.ok()) return asked->call->refuse(page.status());
        const auto texts = join_events(page->history, INT64_MAX);
        if (asked->next == 1) asked->started = started_payload(page->history);
        if (texts.count > 0 && !asked->events.empty()) asked->events.push_back(',');
        asked->events.append(texts.joined);
        asked->next = page->next_event;
        if (!page->at_end) return collect_history(asked);
        asked->then(*asked);
      }));
}

// Puts the question where workers look for it.
void Door::Impl::queue_query(Asked& asked) {
  auto& call = *asked.call;
  const std::string queue = known_queue(asked.run.task_queue());
  json::object out{{"workflow_id", asked.run.workflow_id()},
                   {"run_id", asked.run.run_id()},
                   {"workflow_type", asked.run.workflow_type()},
                   {"query_name", call.args.back()},
                   {"payload_codec", "avro"},
                   {"task_queue", queue},
                   {"namespace", call.ns->name()},
                   {"run_status", to_json(status_of(asked.run))},
                   {"last_history_sequence", asked.next - 1},
                   {"workflow_arguments", nullptr}};
  const auto started = object_of(asked.started);
  if (const auto* input = member(started, "input")) out["workflow_arguments"] = *input;
  Members members;
  members.raw(members_of(out));
  members.put_raw("query_arguments", asked.input.empty() ? "null" : asked.input);
  members.put_raw("history_events", absl::StrCat("[", asked.events, "]"));
  QueryTask task;
  task.id = make_id();
  task.caller = asked.call;
  task.ns = call.ns_num();
  task.queue = queue;
  task.queue_key = queue_key_of(call.ns->name(), queue);
  task.workflow_type = asked.run.workflow_type();
  task.task = members.take();
  task.admitted = now();
  task.deadline =
      task.admitted + (options_.query_timeout > 0 ? options_.query_timeout : options_.poll_timeout);
  enqueue_query(std::move(task));
}

void Door::Impl::enqueue_query(QueryTask task) {
  if (is_closed_) {
    return refuse_query(*task.caller, 503, "query_task_queue_unavailable",
                        "the server is stopping");
  }
  auto& kept = queries_[task.id];
  kept = std::move(task);
  watch_query(kept.id, kept.deadline);
  await_worker(kept);
}

// A worker that waits takes the query; else the query waits for one, if it may. One that comes back
// from a worker goes first.
void Door::Impl::await_worker(QueryTask& task) {
  const bool is_awaited = find_poll_for(task) != nullptr;
  if (!is_awaited) task.place = engine_.admission().place_query(task.ns, task.queue);
  if (!is_awaited && !task.place.has_value()) {
    const auto caller = task.caller;
    end_query(std::string(task.id));
    return refuse_query(*caller, 429, "query_task_queue_full",
                        "too many queries wait for the workers of this queue");
  }
  auto& pending = pending_queries_[task.queue_key];
  pending.insert(task.was_claimed ? pending.begin() : pending.end(), task.id);
  serve_queries(std::string(task.queue_key));
}

// Looks again at the query when its caller's patience, or a lease, is over.
void Door::Impl::watch_query(const std::string& id, TimeNs at) {
  executor_.post_at(at, [weak = weak_from_this(), id] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const auto found = self->queries_.find(id);
    if (found == self->queries_.end()) return;
    auto& query = found->second;
    if (query.deadline <= self->now()) {
      const bool was_claimed = query.was_claimed;
      const auto caller = query.caller;
      self->end_query(id);
      return refuse_query(
          *caller, 504, was_claimed ? "query_worker_execution_timeout" : "query_task_not_claimed",
          was_claimed ? "the worker did not answer in time" : "no worker took the query in time");
    }
    if (!query.owner.empty() && query.lease_expires <= self->now()) {
      query.owner.clear();
      self->await_worker(query);
    }
  });
}

void Door::Impl::end_query(const std::string& id) {
  const auto found = queries_.find(id);
  if (found == queries_.end()) return;
  auto& pending = pending_queries_[found->second.queue_key];
  std::erase(pending, id);
  if (pending.empty()) pending_queries_.erase(found->second.queue_key);
  queries_.erase(found);
}

const QueryPoll* Door::Impl::find_poll_for(const QueryTask& task) const {
  const auto polls = query_polls_.find(task.queue_key);
  if (polls == query_polls_.end()) return nullptr;
  for (const auto& poll : polls->second) {
    const auto worker = workers_.find(poll.worker);
    if (worker != workers_.end() && worker->second.takes_workflow(task.workflow_type)) {
      return &poll;
    }
  }
  return nullptr;
}

void Door::Impl::serve_queries(const std::string& queue_key) {
  const auto found = pending_queries_.find(queue_key);
  const auto polls = query_polls_.find(queue_key);
  if (found == pending_queries_.end() || polls == query_polls_.end()) return;
  auto& pending = found->second;
  for (auto at = pending.begin(); at != pending.end() && !polls->second.empty();) {
    auto& task = queries_.at(*at);
    const auto* poll = find_poll_for(task);
    if (poll == nullptr) {
      ++at;
      continue;
    }
    const QueryPoll taken = *poll;
    std::erase_if(polls->second,
                  [&](const QueryPoll& other) { return other.number == taken.number; });
    at = pending.erase(at);
    give_query(task, taken);
  }
}

void Door::Impl::give_query(QueryTask& task, const QueryPoll& poll) {
  ++task.attempt;
  task.was_claimed = true;
  task.place.reset();
  task.owner = text_of(poll.call->body, "worker_id");
  const DurationNs lease =
      options_.query_lease > 0 ? options_.query_lease : options_.workflow_lease;
  task.lease_expires = std::min(now() + lease, task.deadline);
  watch_query(task.id, task.lease_expires);
  Members members;
  members.put("query_task_id", task.id);
  members.put("query_task_attempt", task.attempt);
  members.put("lease_owner", task.owner);
  members.raw(members_of(times_of(task)));
  members.put("server_time", format_time(now()));
  members.raw(task.task);
  poll.call->answer(200, {{"poll_status", "leased"}, {"server_time", format_time(now())}},
                    absl::StrCat("\"task\":{", members.text(), "}"));
}

void Door::Impl::poll_query_task(CallPtr call) {
  const Worker* worker = polling_worker(*call);
  if (worker == nullptr) return;
  if (is_closed_) return call->answer(200, {{"task", nullptr}, {"poll_status", "draining"}});
  const std::string queue = queue_key_of(call->ns->name(), worker->queue);
  const auto timeout = integer_of(call->body, "timeout_seconds");
  const TimeNs until = now() + (timeout.has_value() ? *timeout * kSecond : options_.poll_timeout);
  const uint64_t number = ++last_number_;
  query_polls_[queue].push_back({number, call, worker_key(*call, worker->id)});
  serve_queries(queue);
  if (call->is_answered()) return;
  executor_.post_at(until, [weak = weak_from_this(), queue, number, call] {
    const auto self = weak.lock();
    if (self == nullptr || call->is_answered()) return;
    auto& polls = self->query_polls_[queue];
    const auto ended =
        std::erase_if(polls, [&](const QueryPoll& poll) { return poll.number == number; });
    if (polls.empty()) self->query_polls_.erase(queue);
    if (ended == 0) return;  // its client is gone
    call->answer(200, {{"task", nullptr}, {"poll_status", "empty"}});
  });
}

// The query that the worker holds; null after a refusal.
QueryTask* Door::Impl::leased_query(Call& call) {
  const std::string owner = text_of(call.body, "lease_owner");
  const auto attempt = integer_of(call.body, "query_task_attempt");
  if (owner.empty()) {
    call.invalid("lease_owner", "lease_owner is missing");
    return nullptr;
  }
  if (!attempt.has_value() || *attempt < 1) {
    call.invalid("query_task_attempt", "query_task_attempt must be at least 1");
    return nullptr;
  }
  const json::object extra{{"query_task_id", call.arg(0)}, {"query_task_attempt", *attempt}};
  const auto found = queries_.find(call.arg(0));
  if (found == queries_.end()) {
    call.refuse(404, "query_task_not_found", "the query is not waiting any more", extra);
    return nullptr;
  }
  auto& query = found->second;
  const char* reason = query.owner.empty()            ? "query_task_not_leased"
                       : query.owner != owner         ? "lease_owner_mismatch"
                       : query.attempt != *attempt    ? "query_task_attempt_mismatch"
                       : query.lease_expires <= now() ? "lease_expired"
                                                      : nullptr;
  if (reason == nullptr) return &query;
  call.refuse(409, reason, "the query is not the caller's", extra);
  return nullptr;
}

// Whether the query is still the worker's. Asking keeps nothing alive.
void Door::Impl::query_status(CallPtr call) {
  call->body = {{"lease_owner", call->parameter("lease_owner")},
                {"query_task_attempt", call->parameter("query_task_attempt")}};
  const QueryTask* query = leased_query(*call);
  if (query == nullptr) return;
  json::object answer = times_of(*query);
  answer["query_task_id"] = query->id;
  answer["query_task_attempt"] = query->attempt;
  answer["query_task_status"] = "leased";
  answer["lease_owner"] = query->owner;
  answer["can_continue"] = true;
  answer["reason"] = nullptr;
  answer["server_time"] = format_time(now());
  call->answer(200, std::move(answer));
}

void Door::Impl::complete_query(CallPtr call) {
  QueryTask* query = leased_query(*call);
  if (query == nullptr) return;
  const auto envelope = payload_text(member(call->body, "result_envelope"), false);
  if (!envelope.ok()) {
    return call->invalid("result_envelope", std::string(envelope.status().message()));
  }
  const auto caller = query->caller;
  const auto task = object_of(query->task.substr(0, query->task.find(",\"query_arguments\"")));
  json::object answer{{"workflow_id", caller->arg(0)},
                      {"run_id", text_of(task, "run_id")},
                      {"query_name", caller->args.back()},
                      {"target_scope", "instance"},
                      {"result", nullptr},
                      {"result_envelope", nullptr},
                      {"reason", nullptr}};
  if (const auto* result = member(call->body, "result")) answer["result"] = *result;
  if (const auto* given = member(call->body, "result_envelope")) {
    answer["result_envelope"] = *given;
  }
  const int attempt = query->attempt;
  end_query(call->arg(0));
  caller->answer(200, std::move(answer));
  call->answer(
      200,
      {{"query_task_id", call->arg(0)}, {"query_task_attempt", attempt}, {"outcome", "completed"}});
}

void Door::Impl::fail_query(CallPtr call) {
  QueryTask* query = leased_query(*call);
  if (query == nullptr) return;
  const auto* given = member(call->body, "failure");
  const json::object failure =
      given != nullptr && given->is_object() ? given->as_object() : json::object();
  const std::string message = text_of(failure, "message");
  if (message.empty()) return call->invalid("failure.message", "failure.message is missing");
  std::string reason = text_of(failure, "reason");
  if (reason.empty()) reason = "query_rejected";
  const auto caller = query->caller;
  const int attempt = query->attempt;
  end_query(call->arg(0));
  refuse_query(*caller, reason == "rejected_unknown_query" ? 404 : 409, reason, message);
  call->answer(
      200,
      {{"query_task_id", call->arg(0)}, {"query_task_attempt", attempt}, {"outcome", "failed"}});
}

}  // namespace fairlead::durable
