// What workers answer to workflow tasks, and whether a task is theirs.

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/durable/cancellation.h"
#include "api/durable/commands.h"
#include "api/durable/desk.h"
#include "api/durable/payloads.h"
#include "api/durable/run_status.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

// The worker's own words for "my replay does not fit this history": trying again would not help.
constexpr std::string_view kBlockers[] = {
    "nondetermin",
    "non-determin",
    "determinism",
    "replay error",
    "replay failed",
    "history shape",
    "history mismatch",
    "unexpected history",
    "invalidargument",
    "servererror",
    "validationexception",
    "cannot decode workflow start input",
    "cannot replay workflow history",
    "unsupported payload codec",
    "unsupported_payload_codec",
    "workflow task completion failed after commands were produced",
    "no workflow registered",
};

bool is_waiting(const json::object& failure) {
  const std::string type = absl::AsciiStrToLower(text_of(failure, "type"));
  const std::string message = absl::AsciiStrToLower(text_of(failure, "message"));
  return absl::StripAsciiWhitespace(type) == "workflowtaskwaitingforhistory" ||
         absl::StartsWith(message, "workflow task waiting for scheduled history");
}

bool is_blocked(const json::object& failure) {
  const std::string text = absl::AsciiStrToLower(
      absl::StrCat(text_of(failure, "type"), " ", text_of(failure, "message")));
  for (const auto blocker : kBlockers) {
    if (absl::StrContains(text, absl::string_view(blocker.data(), blocker.size()))) return true;
  }
  return false;
}

}  // namespace

// What the call says that its worker holds; nothing after a refusal.
std::optional<shard::TaskToken> Door::Impl::leased_token(Call& call, char kind) {
  const std::string owner = text_of(call.body, "lease_owner");
  if (owner.empty()) {
    call.invalid("lease_owner", "lease_owner is missing");
    return std::nullopt;
  }
  const auto name = TaskName::parse(call.arg(0));
  shard::TaskToken token;
  token.flavour = model::DURABLE;
  token.ns = call.ns_num();
  token.owner = owner;
  if (kind == 'w') {
    const auto attempt = integer_of(call.body, "workflow_task_attempt");
    if (!attempt.has_value() || *attempt < 1) {
      call.invalid("workflow_task_attempt", "workflow_task_attempt must be at least 1");
      return std::nullopt;
    }
    token.attempt = static_cast<int32_t>(*attempt);
  } else {
    const std::string attempt = text_of(call.body, "activity_attempt_id");
    int32_t number = 0;
    const size_t colon = attempt.rfind(':');
    if (attempt.empty()) {
      call.invalid("activity_attempt_id", "activity_attempt_id is missing");
      return std::nullopt;
    }
    if (colon == attempt.npos || !absl::SimpleAtoi(attempt.substr(colon + 1), &number)) {
      call.refuse(404, "attempt_not_found", "there is no such attempt", {{"task_id", call.arg(0)}});
      return std::nullopt;
    }
    token.attempt = number;
  }
  if (!name.has_value() || name->kind != kind) {
    call.refuse(404, "task_not_found", "there is no such task", {{"task_id", call.arg(0)}});
    return std::nullopt;
  }
  token.workflow_id = name->workflow_id;
  token.run_id = name->run_id;
  token.scheduled_id = name->number;
  return token;
}

void Door::Impl::refuse_task(Call& call, const absl::Status& status) {
  const auto detail = error_detail(status);
  json::object extra{{"task_id", call.arg(0)}};
  if (const auto attempt = integer_of(call.body, "workflow_task_attempt")) {
    extra["workflow_task_attempt"] = *attempt;
  }
  if (const auto attempt = text_of(call.body, "activity_attempt_id"); !attempt.empty()) {
    extra["activity_attempt_id"] = attempt;
  }
  if (detail.kind != ErrorKind::kLeaseRefused) {
    if (absl::IsNotFound(status) || absl::IsInvalidArgument(status)) {
      return call.refuse(404, "task_not_found", std::string(status.message()), std::move(extra));
    }
    if (absl::IsFailedPrecondition(status)) {
      return call.refuse(409, "invalid_commands", std::string(status.message()), std::move(extra));
    }
    return call.refuse(status);
  }
  std::string reason = detail.fields[0];
  if (reason == "task_not_found") {
    return call.refuse(404, reason, "there is no such task", std::move(extra));
  }
  if (reason == "attempt_not_found") {
    return call.refuse(404, reason, "there is no such attempt", std::move(extra));
  }
  if (reason == "structural_limit_exceeded") return call.exceeds(detail, std::move(extra));
  if (reason == "lease_owner_mismatch") extra["lease_owner"] = detail.fields[1];
  if (reason == "workflow_task_attempt_mismatch") {
    int64_t current = 0;
    if (absl::SimpleAtoi(detail.fields[1], &current)) extra["current_attempt"] = current;
  }
  if (reason == "lease_expired") {
    int64_t expires = 0;
    extra["lease_owner"] = detail.fields[1];
    if (absl::SimpleAtoi(detail.fields[2], &expires)) {
      extra["lease_expires_at"] = format_time(expires);
    }
    extra["task_status"] = "leased";
  }
  if (reason == "run_closed") {
    add_stop(detail, &extra);
    if (extra.contains("activity_attempt_id")) {
      reason = text_of(extra, "stop_reason");
      extra["outcome"] = "ignored";
      extra["recorded"] = false;
    }
  }
  call.refuse(409, reason, std::string(status.message()), std::move(extra));
}

void Door::Impl::complete_task(CallPtr call) {
  auto token = leased_token(*call, 'w');
  if (!token.has_value()) return;
  const auto* commands = member(call->body, "commands");
  if (commands == nullptr || !commands->is_array()) {
    return call->invalid("commands", "commands must be a list that is not empty");
  }
  const auto count = static_cast<int64_t>(commands->as_array().size());
  if (count > options_.command_batch_max) {
    return call->exceeds("command_batch_size", count, options_.command_batch_max,
                         {{"task_id", call->arg(0)}});
  }
  const auto handed_out = handed_out_.find(call->arg(0));
  const bool is_known = handed_out != handed_out_.end();
  const auto declared = [&](std::string queue, std::string type) {
    if (type.empty() && is_known) type = handed_out->second.workflow_type;
    const auto worker = workers_.find(worker_key(*call, token->owner));
    if (queue.empty() && worker != workers_.end()) queue = worker->second.queue;
    return declared_for(call->ns->name(), queue, type);
  };
  const CommandContext context{call->ns->name(), call->ns->id(), options_,
                               [this] { return make_id(); }, declared};
  shard::CompleteTask request;
  request.token = *token;
  request.limits = options_.run_limits;
  CommandFault fault;
  if (!read_commands(commands->as_array(), context, &request.commands, &fault)) {
    if (!fault.is_conflict) return call->invalid(fault.field, fault.text);
    return call->refuse(409, "invalid_commands", fault.text,
                        {{"task_id", call->arg(0)}, {"field", fault.field}});
  }
  durable_.complete_task(
      std::move(request),
      here<shard::TaskCompleted>([this, call](absl::StatusOr<shard::TaskCompleted> done) {
        if (!done.ok()) return refuse_task(*call, done.status());
        settle_task(call->arg(0));
        json::array created;
        if (done->next_task != 0) {
          created.emplace_back(
              TaskName{'w', done->next_task, done->run.run_id(), done->run.workflow_id()}.text());
        }
        call->answer(200,
                     {{"task_id", call->arg(0)},
                      {"workflow_task_attempt", *integer_of(call->body, "workflow_task_attempt")},
                      {"outcome", "completed"},
                      {"recorded", true},
                      {"run_id", done->run.run_id()},
                      {"run_status", to_json(status_of(done->run))},
                      {"created_task_ids", std::move(created)},
                      {"reason", nullptr}});
      }));
}

void Door::Impl::fail_task(CallPtr call) {
  auto token = leased_token(*call, 'w');
  if (!token.has_value()) return;
  const auto failure = object_member(call->body, "failure");
  const std::string message = text_of(failure, "message");
  if (message.empty()) return call->invalid("failure.message", "failure.message is missing");
  const bool waits = is_waiting(failure);
  const char* outcome = waits ? "waiting_for_history" : "failed";
  auto reply = here<shard::TaskCompleted>([this, call,
                                           outcome](absl::StatusOr<shard::TaskCompleted> done) {
    if (!done.ok()) return refuse_task(*call, done.status());
    settle_task(call->arg(0));
    json::value next;
    if (done->next_task != 0) {
      next = TaskName{'w', done->next_task, done->run.run_id(), done->run.workflow_id()}.text();
    }
    call->answer(200, {{"task_id", call->arg(0)},
                       {"workflow_task_attempt", *integer_of(call->body, "workflow_task_attempt")},
                       {"outcome", outcome},
                       {"recorded", true},
                       {"reason", nullptr},
                       {"next_task_id", std::move(next)}});
  });
  if (waits) {
    shard::CompleteTask request;
    request.token = *token;
    return durable_.complete_task(std::move(request), std::move(reply));
  }
  shard::FailTask request;
  request.token = *token;
  request.parks = is_blocked(failure);
  request.reason = message.substr(0, 1000);
  durable_.fail_task(std::move(request), std::move(reply));
}

void Door::Impl::heartbeat_task(CallPtr call) {
  auto token = leased_token(*call, 'w');
  if (!token.has_value()) return;
  const bool can_be_told = can_stop(worker_key(*call, token->owner));
  durable_.renew_task(
      {*token, can_be_told},
      here<shard::TaskLease>([this, call, owner = token->owner, attempt = token->attempt,
                              can_be_told](absl::StatusOr<shard::TaskLease> lease) {
        if (!lease.ok()) return refuse_task(*call, lease.status());
        note_lease(call->arg(0), lease->expires_ns);
        json::object answer{{"task_id", call->arg(0)},
                            {"lease_owner", owner},
                            {"workflow_task_attempt", attempt},
                            {"renewed", true},
                            {"lease_expires_at", format_time(lease->expires_ns)},
                            {"run_status", "running"},
                            {"task_status", "leased"},
                            {"reason", nullptr}};
        if (can_be_told && lease->cancellation.has_context()) {
          answer["cancellation_request"] = cancellation_request(lease->cancellation);
        }
        call->answer(200, std::move(answer));
      }));
}

}  // namespace fairlead::durable
