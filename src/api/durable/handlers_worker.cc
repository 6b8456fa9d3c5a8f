// Workers: who is there.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "shard/admission_desk.h"
#include "shard/session_desk.h"

namespace fairlead::durable {

namespace {

constexpr int64_t kHeartbeatSeconds = 10;
constexpr size_t kWorkersMax = 100'000;

json::array list_of(const json::object& body, const char* name) {
  const auto* found = member(body, name);
  return found != nullptr && found->is_array() ? found->as_array() : json::array();
}

// Whether an optional list has nothing but strings; false after a refusal.
bool read_strings(Call& call, const char* name, json::array* strings) {
  const auto* found = member(call.body, name);
  if (found == nullptr) return true;
  const auto is_text = [](const json::value& each) { return each.is_string(); };
  if (!found->is_array() ||
      !std::all_of(found->as_array().begin(), found->as_array().end(), is_text)) {
    call.invalid(name, absl::StrCat(name, " must be a list of strings"));
    return false;
  }
  *strings = found->as_array();
  return true;
}

// What a worker can do at once, and how much of it is free as it said itself.
json::object slots_record(const Worker& worker) {
  json::object slots{{"workflow_available", nullptr}, {"workflow_capacity", worker.workflow_slots},
                     {"activity_available", nullptr}, {"activity_capacity", worker.activity_slots},
                     {"session_available", nullptr},  {"session_capacity", worker.session_slots}};
  if (worker.task_slots.is_object()) {
    for (const char* name : {"workflow_available", "activity_available", "session_available"}) {
      if (const auto given = integer_of(worker.task_slots.as_object(), name)) slots[name] = *given;
    }
  }
  return slots;
}

// A worker's key is its namespace and its id.
std::string_view namespace_of(std::string_view key) { return key.substr(0, key.find('\n')); }

// Silence after which a worker that did not deregister is taken for dead.
constexpr DurationNs kForgottenAfter = kDay;

// DO NOT CHANGE the names: they are in rows.
std::string row_of(const Worker& worker) {
  return json::serialize(json::object{{"id", worker.id},
                                      {"queue", worker.queue},
                                      {"runtime", worker.runtime},
                                      {"sdk_version", worker.sdk_version},
                                      {"build_id", worker.build_id},
                                      {"workflow_types", worker.workflow_types},
                                      {"activity_types", worker.activity_types},
                                      {"capabilities", worker.capabilities},
                                      {"fingerprints", worker.fingerprints},
                                      {"validators", worker.validators},
                                      {"contracts", worker.contracts},
                                      {"workflow_slots", worker.workflow_slots},
                                      {"activity_slots", worker.activity_slots},
                                      {"session_slots", worker.session_slots},
                                      {"registered_ns", worker.registered_ns}});
}

Worker worker_of(const json::object& row) {
  Worker worker;
  worker.id = text_of(row, "id");
  worker.queue = text_of(row, "queue");
  worker.runtime = text_of(row, "runtime");
  worker.sdk_version = text_of(row, "sdk_version");
  worker.build_id = text_of(row, "build_id");
  worker.workflow_types = list_of(row, "workflow_types");
  worker.activity_types = list_of(row, "activity_types");
  worker.capabilities = list_of(row, "capabilities");
  if (const auto* prints = member(row, "fingerprints"); prints != nullptr && prints->is_object()) {
    worker.fingerprints = prints->as_object();
  }
  worker.validators = object_member(row, "validators");
  worker.contracts = object_member(row, "contracts");
  worker.workflow_slots = integer_of(row, "workflow_slots").value_or(worker.workflow_slots);
  worker.activity_slots = integer_of(row, "activity_slots").value_or(worker.activity_slots);
  worker.session_slots = integer_of(row, "session_slots").value_or(0);
  worker.registered_ns = integer_of(row, "registered_ns").value_or(0);
  worker.know_types();
  return worker;
}

queue::TypeListPtr type_list_of(const json::array& names) {
  if (names.empty()) return nullptr;
  std::vector<queue::TaskType> types;
  for (const auto& name : names) {
    if (name.is_string()) types.push_back(queue::task_type(name.as_string()));
  }
  return std::make_shared<const queue::TypeList>(std::move(types));
}

}  // namespace

void Worker::know_types() {
  workflows_taken = type_list_of(workflow_types);
  activities_taken = type_list_of(activity_types);
}

// Answers once what was written before is durable.
Job Door::Impl::once_durable(int status, CallPtr call, json::object answer) {
  auto done = here<shard::Done>(
      [status, call, answer = std::move(answer)](absl::StatusOr<shard::Done>) mutable {
        call->answer(status, std::move(answer));
      });
  return [done = std::move(done)]() mutable { done(shard::Done{}); };
}

void Door::Impl::load_workers() {
  load_builds();
  for (const auto& [key, row] : rows_.load(shard::WorkerRow::kWorker)) {
    const auto parsed = parse_json(row);
    if (!parsed.has_value() || !parsed->is_object()) continue;
    auto worker = worker_of(parsed->as_object());
    worker.heard_ns = now();
    has_validators_ = has_validators_ || !worker.validators.empty();
    has_contracts_ = has_contracts_ || !worker.contracts.empty();
    if (const auto ns = engine_.namespaces().find(namespace_of(key)); ns.ok()) {
      count_slots(NamespaceNum((*ns)->num()), (*ns)->name(), worker);
    }
    workers_.emplace(key, std::move(worker));
  }
}

void Door::Impl::forget_silent_workers() {
  for (auto at = workers_.begin(); at != workers_.end();) {
    if (!at->second.is_stale(now(), kForgottenAfter)) {
      ++at;
      continue;
    }
    rows_.erase(shard::WorkerRow::kWorker, at->first);
    if (const auto ns = engine_.namespaces().find(namespace_of(at->first)); ns.ok()) {
      durable_.sessions().remove_worker(NamespaceNum((*ns)->num()), at->second.id);
    }
    at = workers_.erase(at);
  }
}

std::string Door::Impl::worker_key(const Call& call, const std::string& id) const {
  return absl::StrCat(call.ns->name(), "\n", id);
}

json::object Door::Impl::worker_record(const std::string& ns, const Worker& worker) const {
  const bool is_stale = worker.is_stale(engine_.now(), options_.stale_after());
  return {{"worker_id", worker.id},
          {"namespace", ns},
          {"task_queue", worker.queue},
          {"runtime", worker.runtime},
          {"sdk_version", worker.sdk_version},
          {"build_id", worker.build_id.empty() ? json::value() : json::value(worker.build_id)},
          {"supported_workflow_types", worker.workflow_types},
          {"supported_activity_types", worker.activity_types},
          {"workflow_definition_fingerprints", worker.fingerprints},
          {"capabilities", worker.capabilities},
          {"max_concurrent_workflow_tasks", worker.workflow_slots},
          {"max_concurrent_activity_tasks", worker.activity_slots},
          {"max_concurrent_worker_sessions", worker.session_slots},
          {"task_slots", slots_record(worker)},
          {"process_metrics", worker.process_metrics},
          {"heartbeat_interval_seconds", kHeartbeatSeconds},
          {"status", is_stale                  ? "stale"
                     : is_draining(ns, worker) ? "draining"
                                               : "active"},
          {"last_heartbeat_at", format_time(worker.heard_ns)},
          {"registered_at", format_time(worker.registered_ns)},
          {"updated_at", format_time(worker.heard_ns)}};
}

// A worker too many for its queue works all the same; only its slots are not shown.
void Door::Impl::count_slots(NamespaceNum ns, const std::string& ns_name, const Worker& worker) {
  auto& desk = engine_.admission();
  (void)desk.put_worker(ns, worker.queue, worker.id,
                        {worker.workflow_slots, worker.activity_slots});
  desk.drain_worker(ns, worker.queue, worker.id, is_draining(ns_name, worker));
  admission::SessionWorker facts{worker.queue,         worker.build_id, {},
                                 worker.session_slots, worker.heard_ns, options_.stale_after()};
  for (const auto& each : worker.capabilities) {
    if (each.is_string()) facts.capabilities.insert(to_std(each.as_string()));
  }
  durable_.sessions().put_worker(ns, worker.id, std::move(facts));
}

void Door::Impl::register_worker(CallPtr call) {
  const auto& body = call->body;
  Worker worker;
  worker.id = text_of(body, "worker_id");
  if (member(body, "worker_id") == nullptr) worker.id = absl::StrCat("worker-", make_id());
  if (worker.id.empty() || worker.id.size() > 255) {
    return call->invalid("worker_id", "worker_id must be 1 to 255 bytes");
  }
  worker.queue = text_of(body, "task_queue");
  if (worker.queue.empty() || worker.queue.size() > 255) {
    return call->invalid("task_queue", "task_queue must be 1 to 255 bytes");
  }
  worker.runtime = text_of(body, "runtime");
  if (worker.runtime.empty() || worker.runtime.size() > 64) {
    return call->invalid("runtime", "runtime must be 1 to 64 bytes");
  }
  worker.sdk_version = text_of(body, "sdk_version");
  worker.build_id = text_of(body, "build_id");
  if (!read_strings(*call, "supported_workflow_types", &worker.workflow_types) ||
      !read_strings(*call, "supported_activity_types", &worker.activity_types) ||
      !read_strings(*call, "capabilities", &worker.capabilities)) {
    return;
  }
  if (const auto* given = member(body, "workflow_definition_fingerprints");
      given != nullptr && given->is_object()) {
    worker.fingerprints = given->as_object();
  }
  for (const auto& contract : object_member(body, "workflow_command_contracts")) {
    if (!contract.value().is_object()) continue;
    worker.contracts[contract.key()] = contract.value();
    auto judged = list_of(contract.value().as_object(), "update_validators");
    if (!judged.empty()) worker.validators[contract.key()] = std::move(judged);
  }
  for (auto [name, slots] : {std::pair{"max_concurrent_workflow_tasks", &worker.workflow_slots},
                             std::pair{"max_concurrent_activity_tasks", &worker.activity_slots},
                             std::pair{"max_concurrent_worker_sessions", &worker.session_slots}}) {
    if (member(body, name) == nullptr) continue;
    const auto given = integer_of(body, name);
    if (!given.has_value() || *given < 0) {
      return call->invalid(name, absl::StrCat(name, " must be a whole number, at least 0"));
    }
    *slots = *given;
  }
  if (const auto* slots = member(body, "task_slots")) worker.task_slots = *slots;
  if (const auto* metrics = member(body, "process_metrics")) worker.process_metrics = *metrics;
  worker.registered_ns = worker.heard_ns = now();
  worker.know_types();

  const auto key = worker_key(*call, worker.id);
  const auto known = workers_.find(key);
  if (known != workers_.end() && !known->second.is_stale(now(), options_.stale_after())) {
    for (const auto& entry : worker.fingerprints) {
      const auto* earlier = known->second.fingerprints.if_contains(entry.key());
      if (earlier == nullptr || *earlier == entry.value()) continue;
      return call->refuse(409, "workflow_definition_changed",
                          "the worker registered another definition of the workflow before",
                          {{"workflow_type", entry.key()},
                           {"remediation", "deregister the worker, or give it another id"}});
    }
  }
  if (known == workers_.end()) {
    forget_silent_workers();
    if (workers_.size() >= kWorkersMax) {
      return call->refuse(429, "resource_exhausted", "too many workers are registered");
    }
  }
  json::object answer{{"worker_id", worker.id},
                      {"registered", true},
                      {"namespace", call->ns->name()},
                      {"task_queue", worker.queue},
                      {"runtime", worker.runtime},
                      {"status", is_draining(call->ns->name(), worker) ? "draining" : "active"},
                      {"heartbeat_interval_seconds", kHeartbeatSeconds}};
  const std::string row = row_of(worker);
  has_validators_ = has_validators_ || !worker.validators.empty();
  has_contracts_ = has_contracts_ || !worker.contracts.empty();
  count_slots(call->ns_num(), call->ns->name(), worker);
  workers_[key] = std::move(worker);
  rows_.put(shard::WorkerRow::kWorker, key, row, once_durable(201, call, std::move(answer)));
}

void Door::Impl::heartbeat_worker(CallPtr call) {
  const std::string id = text_of(call->body, "worker_id");
  if (id.empty()) return call->invalid("worker_id", "worker_id is missing");
  const auto found = workers_.find(worker_key(*call, id));
  if (found == workers_.end()) {
    return call->refuse(404, "worker_not_registered", absl::StrCat("no worker ", id, " is known"));
  }
  found->second.heard_ns = now();
  engine_.admission().hear_of_worker(call->ns_num(), found->second.queue, id);
  durable_.sessions().hear_of_worker(call->ns_num(), id);
  if (const auto* slots = member(call->body, "task_slots")) found->second.task_slots = *slots;
  if (const auto* metrics = member(call->body, "process_metrics")) {
    found->second.process_metrics = *metrics;
  }
  call->answer(200, {{"worker_id", id},
                     {"acknowledged", true},
                     {"heartbeat_interval_seconds", kHeartbeatSeconds}});
}

void Door::Impl::deregister_worker(CallPtr call) {
  const auto key = worker_key(*call, call->arg(0));
  const auto found = workers_.find(key);
  if (found == workers_.end()) {
    return call->refuse(404, "worker_not_found",
                        absl::StrCat("no worker ", call->arg(0), " is known"));
  }
  engine_.admission().remove_worker(call->ns_num(), found->second.queue, found->second.id);
  durable_.sessions().remove_worker(call->ns_num(), found->second.id);
  workers_.erase(found);
  int64_t recovered = 0;
  stop_worker(key, &recovered);
  json::object answer{{"worker_id", call->arg(0)},
                      {"outcome", "deregistered"},
                      {"recovered_workflow_task_count", recovered}};
  rows_.erase(shard::WorkerRow::kWorker, key, once_durable(200, call, std::move(answer)));
}

// Those of a namespace that is gone: how many there were.
int64_t Door::Impl::forget_workers(const Call& call) {
  int64_t count = 0;
  durable_.sessions().forget_namespace(call.ns_num());
  for (auto at = workers_.begin(); at != workers_.end();) {
    if (namespace_of(at->first) != call.ns->name()) {
      ++at;
      continue;
    }
    const auto key = at->first;
    engine_.admission().remove_worker(call.ns_num(), at->second.queue, at->second.id);
    at = workers_.erase(at);
    int64_t recovered = 0;
    stop_worker(key, &recovered);
    rows_.erase(shard::WorkerRow::kWorker, key);
    ++count;
  }
  return count;
}

// Ends the worker's polls and gives what it had to others.
void Door::Impl::stop_worker(const std::string& key, int64_t* recovered) {
  end_polls(key);
  lose_validations(key);
  for (auto at = receipts_.begin(); at != receipts_.end();) {
    at = at->second.worker == key ? receipts_.erase(at) : std::next(at);
  }
  absl::erase_if(handed_out_, [&](const auto& entry) {
    const auto& task = entry.second;
    if (task.worker != key) return false;
    if (task.is_workflow) {
      engine_.return_workflow_task(task.token);
      ++*recovered;
    }
    return true;
  });
}

// The worker gets no more tasks. What it has stays its own.
void Door::Impl::end_polls(const std::string& key) {
  std::vector<CallPtr> waiting;
  for (auto at = receipts_.begin(); at != receipts_.end();) {
    if (at->second.worker != key || at->second.call == nullptr) {
      ++at;
      continue;
    }
    engine_.cancel_poll(at->second.poll);
    waiting.push_back(std::move(at->second.call));
    at = receipts_.erase(at);
  }
  for (auto* lines : {&query_polls_, &validation_polls_}) {
    for (auto& [queue, polls] : *lines) {
      for (auto& poll : polls) {
        if (poll.worker == key) waiting.push_back(poll.call);
      }
      std::erase_if(polls, [&](const QueryPoll& poll) { return poll.worker == key; });
    }
  }
  for (auto& call : waiting) {
    call->answer(200, {{"task", nullptr}, {"poll_status", "draining"}});
  }
}

void Door::Impl::list_workers(CallPtr call) {
  const std::string queue = call->parameter("task_queue");
  const std::string status = call->parameter("status");
  std::vector<std::pair<TimeNs, json::object>> found;
  for (const auto& [key, worker] : workers_) {
    if (namespace_of(key) != call->ns->name()) continue;
    if (!queue.empty() && worker.queue != queue) continue;
    auto record = worker_record(call->ns->name(), worker);
    if (!status.empty() && text_of(record, "status") != status) continue;
    found.emplace_back(worker.heard_ns, std::move(record));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  json::array workers;
  for (auto& [heard, record] : found) workers.emplace_back(std::move(record));
  call->answer(200, {{"namespace", call->ns->name()},
                     {"stale_after_seconds", options_.stale_after() / kSecond},
                     {"workers", std::move(workers)}});
}

void Door::Impl::describe_worker(CallPtr call) {
  const auto found = workers_.find(worker_key(*call, call->arg(0)));
  if (found == workers_.end()) {
    return call->refuse(404, "worker_not_found",
                        absl::StrCat("no worker ", call->arg(0), " is known"));
  }
  call->answer(200, worker_record(call->ns->name(), found->second));
}

}  // namespace fairlead::durable
