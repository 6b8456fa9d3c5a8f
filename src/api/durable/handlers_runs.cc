// Starting runs and looking at them.

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/durable/avro.h"
#include "api/durable/codec.h"
#include "api/durable/commands.h"
#include "api/durable/desk.h"
#include "api/durable/payloads.h"
#include "api/durable/priority.h"
#include "api/durable/run_status.h"
#include "base/error.h"
#include "history/hosted.h"

namespace fairlead::durable {

namespace {

constexpr const char* kRefusedFields[] = {"workflow_execution_timeout",
                                          "workflow_run_timeout",
                                          "workflow_task_timeout",
                                          "retry_policy",
                                          "idempotency_key",
                                          "request_id"};
constexpr size_t kNameMax = 255;
constexpr int kRunsMax = 1000;

// Whether an optional number of seconds is one; false after a refusal.
bool read_seconds(Call& call, const char* field, DurationNs* duration) {
  if (member(call.body, field) == nullptr) return true;
  const auto seconds = integer_of(call.body, field);
  if (!seconds.has_value() || *seconds < 1 || *seconds > 10LL * 365 * 86'400) {
    call.invalid(field, absl::StrCat(field, " must be a whole number of seconds, at least 1"));
    return false;
  }
  *duration = *seconds * kSecond;
  return true;
}

bool read_memo(Call& call, int64_t bytes_max, shard::StartRequest* start) {
  const auto* memo = member(call.body, "memo");
  if (memo == nullptr) return true;
  if (!memo->is_object() || static_cast<int64_t>(json::serialize(*memo).size()) > bytes_max) {
    call.invalid("memo", absl::StrCat("memo must be an object of at most ", bytes_max, " bytes"));
    return false;
  }
  for (const auto& entry : memo->as_object()) {
    auto value = to_value(entry.value());
    if (!value.ok()) {
      call.invalid("memo", std::string(value.status().message()));
      return false;
    }
    start->memo.emplace_back(to_std(entry.key()), *std::move(value));
  }
  return true;
}

bool read_search_attributes(Call& call, const Options& options, shard::StartRequest* start) {
  const auto* attributes = member(call.body, "search_attributes");
  if (attributes == nullptr) return true;
  if (!attributes->is_object()) {
    call.invalid("search_attributes", "search_attributes must be an object");
    return false;
  }
  for (const auto& entry : attributes->as_object()) {
    const auto fault = attribute_fault(entry.key(), entry.value(), options);
    if (!fault.empty()) {
      call.invalid("search_attributes", fault);
      return false;
    }
    start->search_attributes.emplace_back(to_std(entry.key()), json::serialize(entry.value()));
  }
  return true;
}

json::object memo_of(const model::RunState& run) {
  json::object memo;
  for (const auto& [key, value] : run.memo()) {
    auto shown = from_value(value);
    memo[key] = shown.ok() ? *std::move(shown) : json::value();
  }
  return memo;
}

json::object attributes_of(const model::RunState& run) {
  json::object attributes;
  for (const auto& [key, value] : run.search_attributes()) {
    attributes[key] = parse_json(value).value_or(json::value());
  }
  return attributes;
}

json::object record_of(const Call& call, const model::RunState& run, bool is_current) {
  const auto status = status_of(run);
  const bool is_open = run.status() == model::RUNNING;
  json::object record;
  record["workflow_id"] = run.workflow_id();
  record["run_id"] = run.run_id();
  record["namespace"] = call.ns->name();
  record["workflow_type"] = run.workflow_type();
  record["business_key"] = nullptr;
  record["status"] = to_json(status);
  record["status_bucket"] = to_json(bucket_of(status));
  record["is_terminal"] = !is_open;
  record["closed_reason"] = closed_reason(run);
  record["task_queue"] = known_queue(run.task_queue());
  record["run_number"] = run.durable().run_number();
  record["is_current_run"] = is_current;
  record["compatibility"] = text_or_null(run.version());
  record["payload_codec"] = "avro";
  record["execution_timeout_seconds"] = run.execution_timeout_ns() / kSecond;
  record["run_timeout_seconds"] = run.run_timeout_ns() / kSecond;
  record["execution_deadline_at"] = time_or_null(run.execution_expiration_ns());
  record["run_deadline_at"] = time_or_null(run.run_expiration_ns());
  record["started_at"] = format_time(run.start_ns());
  record["closed_at"] = time_or_null(run.close_ns());
  record["wait_kind"] = run.durable().waits_size() > 0 ? json::value("condition") : json::value();
  record["wait_reason"] = nullptr;
  if (run.durable().is_parked()) record["blocked_reason"] = run.durable().parked_reason();
  record["priority"] = priority_record(run.priority());
  record["memo"] = memo_of(run);
  record["search_attributes"] = attributes_of(run);
  record["archived_at"] = time_or_null(run.durable().archived_ns());
  record["actions"] = {{"can_signal", is_open},
                       {"can_query", true},
                       {"can_update", is_open},
                       {"can_cancel", is_open},
                       {"can_terminate", is_open},
                       {"can_repair", run.durable().is_parked()},
                       {"can_archive", !is_open && run.durable().archived_ns() == 0}};
  return record;
}

}  // namespace

shard::RunRef Door::Impl::run_of(const Call& call, size_t run_arg_count) const {
  return {call.ns_num(), call.arg(0), call.args.size() >= run_arg_count ? call.arg(1) : "",
          model::DURABLE};
}

void Door::Impl::start(CallPtr call) {
  const auto& body = call->body;
  for (const char* field : kRefusedFields) {
    if (body.contains(field)) {
      return call->invalid(field, absl::StrCat(field, " is not a field of a start"));
    }
  }
  shard::StartRequest start;
  start.flavour = model::DURABLE;
  start.ns = call->ns_num();
  start.namespace_id = call->ns->id();
  start.workflow_type = text_of(body, "workflow_type");
  if (start.workflow_type.empty() || start.workflow_type.size() > kNameMax) {
    return call->invalid("workflow_type", "workflow_type must be a string of 1 to 255 bytes");
  }
  start.workflow_id = text_of(body, "workflow_id");
  if (member(body, "workflow_id") == nullptr) start.workflow_id = make_id();
  if (!is_workflow_id(start.workflow_id)) {
    return call->invalid("workflow_id",
                         "workflow_id must be 1 to 128 of letters, digits and the signs . _ : -");
  }
  std::string queue = text_of(body, "task_queue");
  if (queue.empty()) queue = "default";
  if (queue.size() > kNameMax) {
    return call->invalid("task_queue", "task_queue must not be longer than 255 bytes");
  }
  start.task_queue = engine_queue(queue);
  start.version = selected_build(call->ns->name(), queue);
  for (const char* field : {"compatibility", "build_id"}) {  // the second one counts
    const std::string build = text_of(body, field);
    if (build.size() > kNameMax) {
      return call->invalid(field, absl::StrCat(field, " must not be longer than 255 bytes"));
    }
    if (!build.empty()) start.version = build;
  }
  const auto input = payload_text(member(body, "input"), true);
  if (!input.ok()) return call->invalid("input", std::string(input.status().message()));
  const std::string policy = text_of(body, "duplicate_policy");
  if (!policy.empty() && policy != "fail" && policy != "use-existing") {
    return call->invalid("duplicate_policy", "duplicate_policy must be fail or use-existing");
  }
  start.reuse = shard::ReusePolicy::kRejectDuplicate;
  start.conflict =
      policy == "use-existing" ? shard::ConflictPolicy::kUseExisting : shard::ConflictPolicy::kFail;
  start.task_timeout = options_.workflow_lease;
  if (!read_seconds(*call, "execution_timeout_seconds", &start.execution_timeout) ||
      !read_seconds(*call, "run_timeout_seconds", &start.run_timeout) ||
      !read_memo(*call, options_.memo_bytes_max, &start) ||
      !read_search_attributes(*call, options_, &start)) {
    return;
  }
  if (const auto fault = read_priority(body, &start.priority)) {
    return call->invalid(fault->field, fault->text);
  }
  const std::string business_key = text_of(body, "business_key");
  Members accepted;
  accepted.put("workflow_instance_id", start.workflow_id);
  accepted.put_if(!business_key.empty(), "business_key", business_key);
  start.envelope = accepted.text();
  if (!input->empty()) accepted.put_raw("input", *input);
  accepted.raw(declared_for(call->ns->name(), queue, start.workflow_type));
  start.door = accepted.take();

  json::object answer{{"workflow_id", start.workflow_id}, {"workflow_type", start.workflow_type},
                      {"namespace", call->ns->name()},    {"task_queue", queue},
                      {"payload_codec", "avro"},          {"business_key", nullptr}};
  if (!business_key.empty()) answer["business_key"] = business_key;
  engine_.start_workflow(
      std::move(start),
      here<shard::StartResult>(
          [call, answer = std::move(answer)](absl::StatusOr<shard::StartResult> result) mutable {
            if (result.ok()) {
              answer["run_id"] = result->run_id;
              answer["status"] = result->started ? "pending" : "running";
              answer["outcome"] = result->started ? "started_new" : "returned_existing_active";
              return call->answer(result->started ? 201 : 200, std::move(answer));
            }
            const auto detail = error_detail(result.status());
            if (detail.kind != ErrorKind::kWorkflowAlreadyStarted)
              return call->refuse(result.status());
            answer["run_id"] = detail.fields[1];
            answer["outcome"] = "rejected_duplicate";
            call->refuse(409, "instance_already_started", std::string(result.status().message()),
                         std::move(answer));
          }));
}

void Door::Impl::describe(CallPtr call) {
  const auto run = run_of(*call, 2);
  const bool is_by_run = !run.run_id.empty();
  engine_.describe_workflow(
      run, here<shard::RunView>([this, call, run, is_by_run](absl::StatusOr<shard::RunView> view) {
        if (!view.ok()) {
          if (!absl::IsNotFound(view.status()) && !absl::IsInvalidArgument(view.status())) {
            return call->refuse(view.status());
          }
          return call->refuse(404, is_by_run ? "run_not_found" : "instance_not_found",
                              std::string(view.status().message()));
        }
        // A run that has no successor is the last one of its id: ids are used once.
        const bool is_current = view->run.next_run_id().empty();
        auto record = record_of(*call, view->run, is_current);
        record["run_count"] =
            is_current ? json::value(view->run.durable().run_number()) : json::value();
        shard::HistoryRequest first;
        first.run = {run.ns, run.workflow_id, view->run.run_id(), model::DURABLE};
        first.max_batches = 1;
        shard::HistoryRequest last = first;
        last.close_event_only = true;
        const bool is_open = view->run.status() == model::RUNNING;
        engine_.read_history(
            first, here<shard::HistoryPage>([this, call, record = std::move(record), last, is_open](
                                                absl::StatusOr<shard::HistoryPage> page) mutable {
              if (!page.ok()) return call->refuse(page.status());
              const auto started = object_of(started_payload(page->history));
              for (const char* name : {"input", "output", "input_envelope", "output_envelope"}) {
                record[name] = nullptr;
              }
              if (const auto* input = member(started, "input")) record["input_envelope"] = *input;
              if (const auto* key = member(started, "business_key")) record["business_key"] = *key;
              if (is_open) return call->answer(200, std::move(record));
              engine_.read_history(
                  last,
                  here<shard::HistoryPage>([call, record = std::move(record)](
                                               absl::StatusOr<shard::HistoryPage> closing) mutable {
                    if (!closing.ok()) return call->refuse(closing.status());
                    const auto event = parse_json(join_events(closing->history, 1).joined);
                    if (event.has_value() && event->is_object()) {
                      const auto* payload = member(event->as_object(), "payload");
                      if (payload != nullptr && payload->is_object()) {
                        if (const auto* output = member(payload->as_object(), "output")) {
                          record["output_envelope"] = *output;
                        }
                      }
                    }
                    call->answer(200, std::move(record));
                  }));
            }));
      }));
}

// Of which page, and how much of it; nothing after a refusal.
std::optional<shard::ListRuns> Door::Impl::read_list(Call& call) {
  int64_t page_size = 50;
  const std::string asked = call.parameter("page_size");
  if (!asked.empty() &&
      (!absl::SimpleAtoi(asked, &page_size) || page_size < 1 || page_size > 200)) {
    call.invalid("page_size", "page_size must be from 1 to 200");
    return std::nullopt;
  }
  const std::string bucket = call.parameter("status");
  if (!bucket.empty() && bucket != "running" && bucket != "completed" && bucket != "failed") {
    call.invalid("status", "status must be running, completed or failed");
    return std::nullopt;
  }
  shard::ListRuns request;
  request.ns = call.ns_num();
  request.max = static_cast<size_t>(page_size);
  const std::string token = call.parameter("next_page_token");
  if (!token.empty() &&
      (!absl::Base64Unescape(token, &request.before) || uuid_to_bytes(request.before).empty())) {
    call.refuse(400, "invalid_page_token", "the page token is not one of this server's");
    return std::nullopt;
  }
  return request;
}

void Door::Impl::list_workflows(CallPtr call) {
  auto request = read_list(*call);
  if (!request.has_value()) return;
  request->may_match = [type = call->parameter("workflow_type"),
                        bucket = call->parameter("status")](const model::RunState& run) {
    return !history::hosts_activity(run) && (type.empty() || run.workflow_type() == type) &&
           (bucket.empty() || bucket_of(status_of(run)) == bucket);
  };
  request->matches = [text = call->parameter("query")](const shard::ListedRun& listed) {
    return text.empty() || listed.run.workflow_id().find(text) != std::string::npos ||
           business_key_of(listed.first_events).find(text) != std::string::npos;
  };
  runs_.list(*request, here<shard::RunPage>([call](absl::StatusOr<shard::RunPage> page) {
    json::array workflows;
    for (const auto& listed : page->runs) {
      auto record = record_of(*call, listed.run, true);
      const std::string key = business_key_of(listed.first_events);
      if (!key.empty()) record["business_key"] = key;
      workflows.emplace_back(std::move(record));
    }
    const auto count = static_cast<int64_t>(workflows.size());
    json::object answer{{"workflows", std::move(workflows)},
                        {"workflow_count", count},
                        {"next_page_token", nullptr}};
    if (!page->next.empty()) answer["next_page_token"] = absl::Base64Escape(page->next);
    call->answer(200, std::move(answer));
  }));
}

// Follows the chain back from its last run.
void Door::Impl::list_runs(CallPtr call) {
  struct Walk {
    CallPtr call;
    json::array runs;
    std::string next;
  };
  auto walk = std::make_shared<Walk>();
  walk->call = call;
  auto step = std::make_shared<std::function<void()>>();
  *step = [this, walk, step] {
    shard::RunRef run{walk->call->ns_num(), walk->call->arg(0), walk->next, model::DURABLE};
    engine_.describe_workflow(
        run, here<shard::RunView>([walk, step](absl::StatusOr<shard::RunView> view) {
          const bool is_first = walk->runs.empty();
          if (!view.ok() && is_first) {
            *step = nullptr;
            return walk->call->refuse(view.status());
          }
          if (view.ok()) {
            const auto& state = view->run;
            walk->runs.insert(walk->runs.begin(),
                              json::object{{"run_id", state.run_id()},
                                           {"run_number", state.durable().run_number()},
                                           {"workflow_type", state.workflow_type()},
                                           {"business_key", nullptr},
                                           {"status", to_json(status_of(state))},
                                           {"task_queue", known_queue(state.task_queue())},
                                           {"started_at", format_time(state.start_ns())},
                                           {"closed_at", time_or_null(state.close_ns())}});
            walk->next = state.continued_run_id();
          }
          if (view.ok() && !walk->next.empty() && walk->runs.size() < kRunsMax) return (*step)();
          *step = nullptr;
          const auto count = static_cast<int64_t>(walk->runs.size());
          walk->call->answer(200, {{"workflow_id", walk->call->arg(0)},
                                   {"run_count", count},
                                   {"runs", std::move(walk->runs)}});
        }));
  };
  (*step)();
}

void Door::Impl::read_history(CallPtr call) {
  int64_t page_size = 100;
  const std::string asked = call->parameter("page_size");
  if (!asked.empty() &&
      (!absl::SimpleAtoi(asked, &page_size) || page_size < 1 || page_size > 1000)) {
    return call->invalid("page_size", "page_size must be from 1 to 1000");
  }
  int64_t after = 0;
  const std::string token = call->parameter("next_page_token");
  std::string decoded;
  if (!token.empty() &&
      (!absl::Base64Unescape(token, &decoded) || !absl::SimpleAtoi(decoded, &after) || after < 0)) {
    return call->refuse(400, "invalid_page_token", "the page token is not one of this server's");
  }
  shard::HistoryRequest request;
  request.run = run_of(*call, 2);
  request.from_event = after + 1;
  request.max_batches = static_cast<int>(page_size);
  const std::string wait = call->parameter("wait_new_event");
  request.wait_new_event = wait == "1" || wait == "true";
  request.wait_until = now() + options_.poll_timeout;
  engine_.read_history(
      std::move(request),
      here<shard::HistoryPage>([call, after, page_size](absl::StatusOr<shard::HistoryPage> page) {
        if (!page.ok()) {
          if (absl::IsNotFound(page.status()) || absl::IsInvalidArgument(page.status())) {
            return call->refuse(404, "run_not_found", std::string(page.status().message()));
          }
          return call->refuse(page.status());
        }
        const auto texts = join_events(page->history, page_size);
        const int64_t last = after + texts.count;
        json::object answer{
            {"workflow_id", call->arg(0)}, {"run_id", page->run_id}, {"next_page_token", nullptr}};
        if (texts.count > 0 && (last + 1 < page->next_event || !page->at_end)) {
          answer["next_page_token"] = absl::Base64Escape(absl::StrCat(last));
        }
        call->answer(200, std::move(answer), absl::StrCat("\"events\":[", texts.joined, "]"));
      }));
}

}  // namespace fairlead::durable
