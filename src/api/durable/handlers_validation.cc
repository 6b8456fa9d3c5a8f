// Updates that workflow code judges before they are accepted. The question waits here, in memory,
// until a worker takes it along with the whole history of the run as it is then: with a poll of its
// own, or instead of a workflow task. What is approved is accepted as any update is.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "api/durable/run_status.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

constexpr char kCapability[] = "update_validation_tasks";
constexpr size_t kValidationsMax = 10'000;

std::string queue_key_of(const std::string& ns, const std::string& queue) {
  return absl::StrCat(ns, "\n", queue);
}

void refuse_update(Call& caller, int status, std::string_view reason, std::string_view message,
                   json::object extra = {}) {
  extra["workflow_id"] = caller.arg(0);
  extra["update_name"] = caller.args.back();
  extra["update_status"] = "rejected";
  extra["retryable"] = status != 422;
  caller.refuse(status, reason, message, std::move(extra));
}

// Whatever a worker says is wrong, as lists of texts by field.
json::object errors_of(const json::object& given, const std::string& message) {
  json::object errors;
  for (const auto& entry : given) {
    json::array texts;
    const auto put = [&](const json::value& each) {
      texts.emplace_back(each.is_string() ? to_std(each.as_string()) : json::serialize(each));
    };
    if (entry.value().is_array()) {
      for (const auto& each : entry.value().as_array()) put(each);
    } else {
      put(entry.value());
    }
    errors[entry.key()] = std::move(texts);
  }
  if (errors.empty()) errors["update"] = json::array{message};
  return errors;
}

}  // namespace

bool takes_validations(const Call& poll) {
  const auto* kinds = member(poll.body, "task_kinds");
  return kinds != nullptr && kinds->is_array() && has_text(kinds->as_array(), "update_validation");
}

bool Worker::judges(const std::string& type, const std::string& update) const {
  const auto* names = validators.if_contains(to_json(type));
  return names != nullptr && names->is_array() && has_text(names->as_array(), update);
}

// Calls `visit` with each worker of the queue and its key, until that is true.
// What the worker says that registered last and knows the type: the others are older code.
bool Door::Impl::is_judged(const std::string& ns, const std::string& queue, const std::string& type,
                           const std::string& update) const {
  const Worker* newest = nullptr;
  any_worker(ns, queue, [&](const std::string&, const Worker& worker) {
    if (!has_text(worker.workflow_types, type)) return false;
    if (newest == nullptr || worker.registered_ns >= newest->registered_ns) newest = &worker;
    return false;
  });
  return newest != nullptr && newest->judges(type, update);
}

void Door::Impl::judge_update(std::shared_ptr<SentUpdate> sent) {
  engine_.describe_workflow(
      sent->request.run, here<shard::RunView>([this, sent](absl::StatusOr<shard::RunView> view) {
        auto& call = *sent->call;
        if (!view.ok()) return accept_update(sent);  // which says what is wrong
        const std::string queue = known_queue(view->run.task_queue());
        if (!is_judged(call.ns->name(), queue, view->run.workflow_type(), sent->request.name)) {
          return accept_update(sent);
        }
        if (sent->request.request_id.empty()) return ask_validator(sent, std::move(view->run));
        // One that was accepted before is not judged again.
        auto attach = sent->request;
        attach.attaches = true;
        attach.wait_until = now() + sent->wait_seconds * kSecond;
        durable_.update_run(
            std::move(attach),
            here<shard::UpdateResult>([this, sent, run = std::move(view->run)](
                                          absl::StatusOr<shard::UpdateResult> result) mutable {
              const auto detail = error_detail(result.status());
              const bool is_new =
                  detail.kind == ErrorKind::kLeaseRefused && detail.fields[0] == "request_not_seen";
              if (is_new) return ask_validator(sent, std::move(run));
              answer_update(*sent, result);
            }));
      }));
}

void Door::Impl::ask_validator(std::shared_ptr<SentUpdate> sent, model::RunState run) {
  auto& call = *sent->call;
  const std::string queue = known_queue(run.task_queue());
  const bool is_there =
      any_worker(call.ns->name(), queue, [&](const std::string&, const Worker& worker) {
        return !worker.is_stale(now(), options_.stale_after()) &&
               !is_draining(call.ns->name(), worker) &&
               has_text(worker.capabilities, kCapability) &&
               worker.judges(run.workflow_type(), sent->request.name);
      });
  if (!is_there) {
    return refuse_update(call, 409, "update_validator_worker_unavailable",
                         "no worker that could judge the update is there");
  }
  auto asked = std::make_shared<Asked>();
  asked->call = sent->call;
  asked->run = std::move(run);
  asked->then = [this, sent](Asked& ready) { enqueue_validation(*sent, ready, sent); };
  collect_history(asked);
}

void Door::Impl::enqueue_validation(const SentUpdate& update, const Asked& ready,
                                    std::shared_ptr<SentUpdate> sent) {
  auto& call = *update.call;
  if (is_closed_) {
    return refuse_update(call, 503, "update_validator_worker_unavailable",
                         "the server is stopping");
  }
  if (validations_.size() >= kValidationsMax) {
    return refuse_update(call, 429, "resource_exhausted", "too many updates wait to be judged");
  }
  const std::string queue = known_queue(ready.run.task_queue());
  json::object out{{"task_kind", "update_validation"},
                   {"workflow_id", ready.run.workflow_id()},
                   {"run_id", ready.run.run_id()},
                   {"workflow_type", ready.run.workflow_type()},
                   {"update_name", update.request.name},
                   {"payload_codec", "avro"},
                   {"task_queue", queue},
                   {"namespace", call.ns->name()},
                   {"run_status", to_json(status_of(ready.run))},
                   {"last_history_sequence", ready.next - 1},
                   {"workflow_arguments", nullptr}};
  const auto started = object_of(ready.started);
  if (const auto* input = member(started, "input")) out["workflow_arguments"] = *input;
  Members members;
  members.raw(members_of(out));
  members.put_raw("update_arguments", update.input.empty() ? "null" : update.input);
  members.put_raw("history_events", absl::StrCat("[", ready.events, "]"));
  Validation task;
  task.id = make_id();
  task.update = std::move(sent);
  task.ns = call.ns->name();
  task.queue = queue;
  task.workflow_type = ready.run.workflow_type();
  task.task = members.take();
  task.deadline =
      now() + (options_.query_timeout > 0 ? options_.query_timeout : options_.poll_timeout);
  executor_.post_at(task.deadline, [weak = weak_from_this(), id = task.id] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const auto late = self->take_validation(id);
    if (!late.has_value()) return;
    const bool was_claimed = !late->owner.empty();
    refuse_update(
        *late->update->call, 504,
        was_claimed ? "update_validation_execution_timeout" : "update_validation_task_not_claimed",
        was_claimed ? "the worker did not judge the update in time"
                    : "no worker took the update in time");
  });
  auto& kept = validations_[task.id];
  kept = std::move(task);
  offer_validation(kept);
}

// Removes the question, whoever has it.
std::optional<Validation> Door::Impl::take_validation(const std::string& id) {
  const auto found = validations_.find(id);
  if (found == validations_.end()) return std::nullopt;
  auto validation = std::move(found->second);
  validations_.erase(found);
  receipts_.erase(validation.receipt);
  return validation;
}

// Gives the question to a worker that waits, if there is one.
void Door::Impl::offer_validation(Validation& task) {
  const std::string& type = task.workflow_type;
  auto& polls = validation_polls_[queue_key_of(task.ns, task.queue)];
  for (auto at = polls.begin(); at != polls.end(); ++at) {
    const auto worker = workers_.find(at->worker);
    if (worker == workers_.end() || !worker->second.judges(type, task.update->request.name)) {
      continue;
    }
    const auto poll = std::move(*at);
    polls.erase(at);
    return give_validation(task, poll.call, poll.worker, "");
  }
  any_worker(task.ns, task.queue, [&](const std::string& key, const Worker& worker) {
    if (!worker.judges(type, task.update->request.name)) return false;
    const std::string prefix = absl::StrCat(key, "\n", task.queue, "\nw\n");
    for (auto at = receipts_.lower_bound(prefix); at != receipts_.end(); ++at) {
      if (!at->first.starts_with(prefix)) return false;
      if (at->second.call == nullptr || !takes_validations(*at->second.call)) continue;
      // A workflow task that is on its way to this poll goes back.
      engine_.cancel_poll(at->second.poll);
      const auto call = std::move(at->second.call);
      at->second.call = nullptr;
      give_validation(task, call, key, at->first);
      return true;
    }
    return false;
  });
}

// The oldest question that the worker can judge, if there is one.
bool Door::Impl::serve_validation(const CallPtr& call, const std::string& worker_key,
                                  const Worker& worker, const std::string& receipt) {
  for (auto& [id, task] : validations_) {
    if (!task.owner.empty() || task.ns != call->ns->name() || task.queue != worker.queue) continue;
    if (!worker.judges(task.workflow_type, task.update->request.name)) continue;
    give_validation(task, call, worker_key, receipt);
    return true;
  }
  return false;
}

void Door::Impl::give_validation(Validation& task, const CallPtr& call,
                                 const std::string& worker_key, const std::string& receipt) {
  task.owner = text_of(call->body, "worker_id");
  task.owner_key = worker_key;
  Members members;
  members.put("update_validation_task_id", task.id);
  members.put("update_validation_attempt", 1);
  members.put("lease_owner", task.owner);
  members.put("lease_expires_at", format_time(task.deadline));
  members.raw(task.task);
  const std::string body = absl::StrCat("\"task\":{", members.text(), "}");
  if (!receipt.empty()) {
    auto& kept = receipts_[receipt];
    kept.worker = worker_key;
    kept.body = body;
    kept.expires = task.deadline;
    task.receipt = receipt;
  }
  call->answer(200, {{"poll_status", "leased"}, {"server_time", format_time(now())}}, body);
}

void Door::Impl::poll_validation(CallPtr call) {
  const Worker* worker = polling_worker(*call);
  if (worker == nullptr) return;
  if (is_closed_) return call->answer(200, {{"task", nullptr}, {"poll_status", "draining"}});
  const std::string key = worker_key(*call, worker->id);
  if (serve_validation(call, key, *worker, "")) return;
  const std::string queue = queue_key_of(call->ns->name(), worker->queue);
  const auto timeout = integer_of(call->body, "timeout_seconds");
  const TimeNs until = now() + (timeout.has_value() ? *timeout * kSecond : options_.poll_timeout);
  const uint64_t number = ++last_number_;
  validation_polls_[queue].push_back({number, call, key});
  executor_.post_at(until, [weak = weak_from_this(), queue, number, call] {
    const auto self = weak.lock();
    if (self == nullptr || call->is_answered()) return;
    auto& polls = self->validation_polls_[queue];
    const auto ended =
        std::erase_if(polls, [&](const QueryPoll& poll) { return poll.number == number; });
    if (polls.empty()) self->validation_polls_.erase(queue);
    if (ended == 0) return;  // its client is gone
    call->answer(200, {{"task", nullptr}, {"poll_status", "empty"}});
  });
}

// Whether the question is the worker's; false after a refusal.
bool Door::Impl::has_validation(Call& call) {
  const std::string owner = text_of(call.body, "lease_owner");
  const auto attempt = integer_of(call.body, "update_validation_attempt");
  if (owner.empty()) {
    call.invalid("lease_owner", "lease_owner is missing");
    return false;
  }
  if (!attempt.has_value() || *attempt < 1) {
    call.invalid("update_validation_attempt", "update_validation_attempt must be at least 1");
    return false;
  }
  const json::object extra{{"update_validation_task_id", call.arg(0)},
                           {"update_validation_attempt", *attempt}};
  const auto found = validations_.find(call.arg(0));
  if (found == validations_.end() || found->second.ns != call.ns->name()) {
    call.refuse(404, "update_validation_task_not_found", "the update does not wait any more",
                extra);
    return false;
  }
  const auto& task = found->second;
  const char* reason = task.owner.empty()       ? "update_validation_task_not_leased"
                       : task.owner != owner    ? "lease_owner_mismatch"
                       : *attempt != 1          ? "stale_update_validation_completion"
                       : task.deadline <= now() ? "update_validation_lease_expired"
                                                : nullptr;
  if (reason == nullptr) return true;
  call.refuse(409, reason, "the update is not the caller's to judge", extra);
  return false;
}

void Door::Impl::approve_validation(CallPtr call) {
  if (!has_validation(*call)) return;
  const auto validation = take_validation(call->arg(0));
  call->answer(200, {{"update_validation_task_id", call->arg(0)},
                     {"update_validation_attempt", 1},
                     {"outcome", "approved"},
                     {"reason", nullptr}});
  accept_update(validation->update);
}

void Door::Impl::reject_validation(CallPtr call) {
  if (!has_validation(*call)) return;
  const auto failure = object_member(call->body, "failure");
  const std::string message = text_of(failure, "message");
  if (message.empty()) return call->invalid("failure.message", "failure.message is missing");
  std::string reason = text_of(failure, "reason");
  if (reason.empty()) reason = "update_validator_rejected";
  const auto validation = take_validation(call->arg(0));
  auto& caller = *validation->update->call;
  if (reason == "update_validator_rejected") {
    const auto errors = errors_of(object_member(failure, "validation_errors"), message);
    refuse_update(caller, 422, reason, message,
                  {{"errors", errors}, {"validation_errors", errors}});
  } else {
    refuse_update(caller, 409, reason, message);
  }
  call->answer(200, {{"update_validation_task_id", call->arg(0)},
                     {"update_validation_attempt", 1},
                     {"outcome", "rejected"},
                     {"reason", nullptr}});
}

// The worker is gone: whoever waits for its judgement hears so.
void Door::Impl::lose_validations(const std::string& worker_key) {
  std::vector<std::string> lost;
  for (const auto& [id, task] : validations_) {
    if (task.owner_key == worker_key) lost.push_back(id);
  }
  for (const auto& id : lost) {
    const auto validation = take_validation(id);
    refuse_update(*validation->update->call, 409, "update_validator_worker_lost",
                  "the worker that judged the update is gone");
  }
}

void Door::Impl::close_validations(std::vector<CallPtr>* waiting) {
  for (auto& [key, polls] : validation_polls_) {
    for (auto& poll : polls) waiting->push_back(std::move(poll.call));
  }
  validation_polls_.clear();
  auto validations = std::move(validations_);
  validations_.clear();
  for (auto& [id, task] : validations) {
    refuse_update(*task.update->call, 503, "update_validator_worker_unavailable",
                  "the server is stopping");
  }
}

}  // namespace fairlead::durable
