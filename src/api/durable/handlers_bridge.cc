// Events of the world outside, as its webhooks tell them: each starts, signals or updates a
// workflow, once, and whoever sent it hears what became of it in one form.

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "base/sha256.h"

namespace fairlead::durable {

namespace {

// DO NOT CHANGE: clients know the form by it.
constexpr char kOutcomeSchema[] = "durable-workflow.v2.bridge-adapter-outcome.contract";

constexpr size_t kAdapterMax = 64;
constexpr size_t kKeyMax = 255;
constexpr size_t kCorrelationMax = 4096;  // bytes of JSON: it is told back

// What is told back of a target. Everything else in it may be somebody's secret.
constexpr const char* kShown[] = {"workflow_id", "run_id",          "workflow_type",
                                  "task_queue",  "business_key",    "signal_name",
                                  "update_name", "duplicate_policy"};

// What a start takes from its target.
constexpr const char* kStartFields[] = {"workflow_id", "workflow_type", "task_queue",
                                        "business_key"};

bool is_adapter_name(std::string_view name) {
  return !name.empty() && name.size() <= kAdapterMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                  c == ':' || c == '-';
         });
}

// One event, while the door does what it asks for.
struct Event {
  CallPtr call;
  json::object outcome;  // what is known of the answer before anything is done
  json::object target;
  std::string action;
  std::string identity;   // of the event: the same whenever it is sent again
  bool may_exist = true;  // a start of a workflow that is there already is no mistake

  void accept(const json::object& done) { answer(202, "accepted", nullptr, done); }
  void repeat(const json::object& done, json::value reason) {
    answer(200, "duplicate", std::move(reason), done);
  }
  void reject(std::string_view reason, std::string_view message, json::object done = {}) {
    done["message"] = to_json(message);
    answer(422, "rejected", to_json(reason), done);
  }

 private:
  void answer(int status, const char* word, json::value reason, const json::object& done) {
    outcome["accepted"] = status == 202;
    outcome["outcome"] = word;
    outcome["reason"] = std::move(reason);
    for (const char* field : {"workflow_id", "run_id", "workflow_type", "command_id", "update_id",
                              "message", "validation_errors"}) {
      if (const auto* value = member(done, field)) outcome[field] = *value;
    }
    if (const auto* value = member(done, "outcome")) outcome["control_plane_outcome"] = *value;
    call->answer(status, std::move(outcome));
  }
};
using EventPtr = std::shared_ptr<Event>;

// The door's answer to what the event asked for, as the outcome of the event.
void conclude(Event& event, const Response& response) {
  const auto parsed = parse_json(response.body);
  json::object done =
      parsed.has_value() && parsed->is_object() ? parsed->as_object() : json::object{};
  const std::string reason = text_of(done, "reason");
  const std::string message = text_of(done, "message");
  const bool is_start = event.action == "start_workflow";
  if (response.status < 300) {
    const bool is_new = is_start ? response.status == 201 : !is_true(done, "retained");
    if (is_new) return event.accept(done);
    if (is_start) return event.repeat(done, "duplicate_start");
  }
  if (response.status < 300 || reason == "request_id_conflict") {
    // The same event, whatever it carries this time: the first one counts.
    done["outcome"] = "deduped_existing_command";
    done.erase("message");
    return event.repeat(done, nullptr);
  }
  if (reason == "instance_already_started" && event.may_exist) {
    done.erase("message");
    return event.repeat(done, "duplicate_start");
  }
  if (reason == "instance_not_found" || reason == "run_not_found") {
    return event.reject("unknown_target", message);
  }
  // What is not the event's fault, and may go through later, is an error like any other.
  if (response.status == 429 || response.status >= 500) {
    return event.call->refuse(response.status, reason, message);
  }
  event.reject(reason, message, std::move(done));
}

// The arguments that an event carries: a lone object is one argument, unless it is an envelope.
json::value arguments_of(const json::value& input) {
  if (!input.is_object() || input.as_object().contains("codec")) return input;
  return json::array{input};
}

// A request to another of the door's handlers in the name of the event.
CallPtr inner_call(const EventPtr& event, Operation operation, std::vector<std::string> args) {
  auto inner = std::make_shared<Call>(event->call->request,
                                      [event](Response response) { conclude(*event, response); });
  inner->operation = operation;
  inner->args = std::move(args);
  inner->ns = event->call->ns;
  if (const auto* input = member(event->call->body, "input")) {
    inner->body["input"] = arguments_of(*input);
  }
  return inner;
}

// The arguments of the path that a command to a run has; empty: the event was rejected.
std::vector<std::string> command_args(Event& event, const char* name_field) {
  std::vector<std::string> args;
  for (const char* field : {"workflow_id", "run_id", name_field}) {
    const std::string text = text_of(event.target, field);
    const bool is_run = std::string_view(field) == "run_id";
    if (text.empty() && !is_run) {
      event.reject("unknown_target", absl::StrCat("the target has no ", field));
      return {};
    }
    if (!text.empty()) args.push_back(text);
  }
  return args;
}

}  // namespace

void Door::Impl::bridge_event(CallPtr call) {
  auto event = std::make_shared<Event>();
  event->call = call;
  const std::string& adapter = call->arg(0);
  const std::string key = text_of(call->body, "idempotency_key");
  event->action = text_of(call->body, "action");
  event->target = object_member(call->body, "target");
  json::object shown;
  for (const char* field : kShown) {
    const auto* value = member(event->target, field);
    if (value != nullptr && value->is_string()) shown[field] = *value;
  }
  event->outcome = {{"schema", kOutcomeSchema},
                    {"version", 1},
                    {"adapter", adapter},
                    {"action", text_or_null(event->action)},
                    {"idempotency_key", text_or_null(key)},
                    {"target", std::move(shown)}};
  if (!is_adapter_name(adapter)) {
    return event->reject("malformed_event",
                         "the adapter must be 1 to 64 letters, digits or . _ : -");
  }
  if (key.empty() || key.size() > kKeyMax) {
    return event->reject("malformed_event", "idempotency_key must be a string of 1 to 255 bytes");
  }
  if (const auto* correlation = member(call->body, "correlation")) {
    if (!correlation->is_object() || json::serialize(*correlation).size() > kCorrelationMax) {
      return event->reject("malformed_event",
                           "correlation must be an object of at most 4096 bytes");
    }
    event->outcome["correlation"] = *correlation;
  }
  // Adapters' keys are their own: two that use the same one mean different events.
  event->identity = hmac_sha256_hex(adapter, key);
  if (event->action == "start_workflow") {
    const std::string policy = text_of(event->target, "duplicate_policy");
    if (!policy.empty() && policy != "fail" && policy != "use-existing" &&
        policy != "use_existing") {
      return event->reject("malformed_event", "duplicate_policy must be fail or use-existing");
    }
    auto inner = inner_call(event, {"start", ""}, {});
    for (const char* field : kStartFields) {
      if (const auto* value = member(event->target, field)) inner->body[field] = *value;
    }
    if (member(event->target, "workflow_id") == nullptr) {
      inner->body["workflow_id"] =
          absl::StrCat("bridge-", adapter, "-", event->identity.substr(0, 32));
    } else {
      event->may_exist = policy != "fail";
    }
    inner->body["duplicate_policy"] = event->may_exist ? "use-existing" : "fail";
    return start(std::move(inner));
  }
  const bool is_signal = event->action == "signal_workflow";
  if (!is_signal && event->action != "update_workflow") {
    return event->reject("unsupported_action",
                         "action must be start_workflow, signal_workflow or update_workflow");
  }
  const char* name_field = is_signal ? "signal_name" : "update_name";
  auto args = command_args(*event, name_field);
  if (args.empty()) return;
  auto inner = inner_call(event, {is_signal ? "signal" : "update", name_field}, std::move(args));
  inner->body["request_id"] = absl::StrCat("bridge ", event->identity);
  is_signal ? signal(std::move(inner)) : update(std::move(inner));
}

}  // namespace fairlead::durable
