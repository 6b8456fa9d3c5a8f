// What clients tell a run: signals, updates, stops.

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "api/durable/avro.h"
#include "api/durable/desk.h"
#include "api/durable/payloads.h"
#include "base/error.h"
#include "base/hash.h"

namespace fairlead::durable {

namespace {

// How many arguments a path has that names a run: one more for the name of what is sent.
constexpr size_t kWithRun = 2;
constexpr size_t kWithRunAndName = 3;

// DO NOT CHANGE: workflow code knows messages of streams by this name, and it is in events.
constexpr char kStreamSignal[] = "__durable_workflow_message_stream";

bool check_name(Call& call, std::string_view field, int64_t bytes_max) {
  const std::string& name = call.args.back();
  const bool has_control = std::any_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (!name.empty() && static_cast<int64_t>(name.size()) <= bytes_max && !has_control) return true;
  call.invalid(field, absl::StrCat(std::string(field), " must be 1 to ", bytes_max,
                                   " bytes without control characters"));
  return false;
}

bool check_request_id(Call& call) {
  if (text_of(call.body, "request_id").size() <= 255) return true;
  call.invalid("request_id", "request_id must not be longer than 255 bytes");
  return false;
}

}  // namespace

void refuse_command(Call& call, const absl::Status& status) {
  const auto detail = error_detail(status);
  if (detail.kind != ErrorKind::kLeaseRefused) {
    if (absl::IsInvalidArgument(status)) {
      return call.refuse(404, "run_not_found", std::string(status.message()));
    }
    return call.refuse(status);
  }
  const std::string& reason = detail.fields[0];
  json::object extra{{"workflow_id", call.arg(0)}};
  std::string message = "the run is closed";
  if (reason == "no_workflow_code") {
    return call.refuse(404, absl::StrCat("unknown_", std::string(call.operation.name)),
                       "an activity without workflow code cannot be told anything",
                       std::move(extra));
  }
  if (reason == "structural_limit_exceeded") return call.exceeds(detail, std::move(extra));
  if (reason == "run_not_active") extra["outcome"] = "rejected_not_active";
  if (reason == "run_not_closed") {
    extra["outcome"] = "rejected_run_not_closed";
    message = "the run is open";
  }
  if (reason == "historical_run_command_rejected") {
    extra["outcome"] = "rejected_not_current";
    message = "the run is not the current one of its workflow";
  }
  if (reason == "request_id_conflict") {
    extra["request_id"] = text_of(call.body, "request_id");
    extra["retained_command_type"] = to_json(call.operation.name);
    extra["retained_command_id"] = detail.fields[1];
    extra["retained_outcome"] = "accepted";
    extra["conflict"] = true;
    message = "the request id was used for something else";
  }
  call.refuse(409, reason, message, std::move(extra));
}

namespace {

std::string intent_of(const Call& call, const std::string& input) {
  return absl::StrCat(std::string(call.operation.name), " ", call.args.back(), " ",
                      stable_hash(input));
}

json::object receipt_body(const Call& call, const shard::Receipt& receipt, const char* outcome) {
  return {{"workflow_id", call.arg(0)},       {"run_id", receipt.run_id},
          {"command_id", receipt.command_id}, {"command_sequence", receipt.sequence},
          {"command_status", "accepted"},     {"command_source", "control_plane"},
          {"target_scope", "instance"},       {"outcome", outcome},
          {"retained", receipt.retained},     {"reason", nullptr}};
}

}  // namespace

void Door::Impl::signal(CallPtr call) {
  if (!check_name(*call, "signal_name", options_.operation_name_bytes_max) ||
      !check_request_id(*call)) {
    return;
  }
  if (call->args.back() == kStreamSignal) {
    // Its messages have positions that only the server gives.
    return call->refuse(422, "runtime_reserved_signal",
                        "this signal carries messages of streams; append to a stream instead",
                        {{"accepted", false}, {"workflow_id", call->arg(0)}});
  }
  const auto input = payload_text(member(call->body, "input"), true);
  if (!input.ok()) return call->invalid("input", std::string(input.status().message()));
  shard::SignalRun request;
  request.run = run_of(*call, kWithRunAndName);
  request.request_id = text_of(call->body, "request_id");
  request.intent = intent_of(*call, *input);
  request.name = call->args.back();
  request.limits = options_.run_limits;
  Members door;
  door.put("signal_name", request.name);
  door.put("workflow_instance_id", request.run.workflow_id);
  door.put("payload_codec", "avro");
  if (!input->empty()) door.put_raw("arguments", *input);
  request.door = door.take();
  const auto run = request.run;
  check_contract(call, run, *input, [this, call, request = std::move(request)] {
    durable_.signal_run(request,
                        here<shard::Receipt>([call](absl::StatusOr<shard::Receipt> receipt) {
                          if (!receipt.ok()) return refuse_command(*call, receipt.status());
                          auto body = receipt_body(*call, *receipt, "signal_received");
                          body["signal_name"] = call->args.back();
                          call->answer(202, std::move(body));
                        }));
  });
}

namespace {

// DO NOT CHANGE: likewise.
constexpr char kStreamSchema[] = "durable-workflow.v2.message-stream.message";

bool is_stream_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == ':' ||
           c == '-';
  });
}

// The signal that a message is to its workflow. Positions go up, but not by one.
std::string message_door(const std::string& workflow_id, const std::string& stream,
                         const std::string& message_id, const std::string& blob, int64_t position) {
  const json::value message{{"schema", kStreamSchema},
                            {"stream_name", stream},
                            {"message_id", message_id},
                            {"position", position},
                            {"payload_envelope", {{"codec", "avro"}, {"blob", blob}}}};
  Members door;
  door.put("signal_name", kStreamSignal);
  door.put("workflow_instance_id", workflow_id);
  door.put("payload_codec", "avro");
  door.put_raw("arguments", envelope_text(*to_blob(json::array{message})));
  return door.take();
}

}  // namespace

// A message of a stream is a signal that the SDK deals with by itself.
void Door::Impl::append_message(CallPtr call) {
  const std::string stream = call->args.back();
  const std::string message_id = text_of(call->body, "message_id");
  if (!is_stream_name(stream)) {
    return call->invalid("stream_name", "stream_name must be 1 to 128 letters, digits or . _ : -");
  }
  if (message_id.empty() || message_id.size() > 200) {
    return call->invalid("message_id", "message_id must be 1 to 200 bytes");
  }
  const auto input = payload_text(member(call->body, "input"), true);
  if (!input.ok()) return call->invalid("input", std::string(input.status().message()));
  const std::string envelope = input->empty() ? envelope_text(*to_blob(json::array{})) : *input;
  const std::string blob = text_of(parse_json(envelope)->as_object(), "blob");
  shard::SignalRun request;
  request.run = run_of(*call, kWithRunAndName);
  request.request_id = absl::StrCat("message-stream ", stream, " ", message_id);
  request.intent = intent_of(*call, envelope);
  request.name = kStreamSignal;
  request.limits = options_.run_limits;
  request.make_door = [id = request.run.workflow_id, stream, message_id, blob](int64_t position) {
    return message_door(id, stream, message_id, blob, position);
  };
  durable_.signal_run(
      std::move(request),
      here<shard::Receipt>([call, stream, message_id](absl::StatusOr<shard::Receipt> receipt) {
        if (!receipt.ok()) return refuse_command(*call, receipt.status());
        auto body = receipt_body(*call, *receipt, "message_appended");
        body["stream_name"] = stream;
        body["message_id"] = message_id;
        body["position"] = receipt->sequence;
        call->answer(202, std::move(body));
      }));
}

void Door::Impl::update(CallPtr call) {
  if (!check_name(*call, "update_name", options_.operation_name_bytes_max) ||
      !check_request_id(*call)) {
    return;
  }
  if (call->body.contains("wait_policy")) {
    return call->invalid("wait_policy", "wait_policy is called wait_for now");
  }
  const auto input = payload_text(member(call->body, "input"), true);
  if (!input.ok()) return call->invalid("input", std::string(input.status().message()));
  std::string wait_for = text_of(call->body, "wait_for");
  if (wait_for.empty()) wait_for = "accepted";
  if (wait_for != "accepted" && wait_for != "completed") {
    return call->invalid("wait_for", "wait_for must be accepted or completed");
  }
  const int64_t wait_seconds =
      integer_of(call->body, "wait_timeout_seconds").value_or(options_.update_wait / kSecond);
  if (wait_seconds < 1 || wait_seconds > 3600) {
    return call->invalid("wait_timeout_seconds", "wait_timeout_seconds must be from 1 to 3600");
  }
  auto sent = std::make_shared<SentUpdate>();
  auto& request = sent->request;
  request.run = run_of(*call, kWithRunAndName);
  request.request_id = text_of(call->body, "request_id");
  request.intent = intent_of(*call, *input);
  request.name = call->args.back();
  request.limits = options_.run_limits;
  request.wait_for =
      wait_for == "completed" ? shard::UpdateStage::kCompleted : shard::UpdateStage::kAccepted;
  Members door;
  door.put("update_name", request.name);
  door.put("payload_codec", "avro");
  if (!input->empty()) door.put_raw("arguments", *input);
  request.door = door.take();
  sent->call = call;
  sent->input = *input;
  sent->wait_for = wait_for;
  sent->wait_seconds = wait_seconds;
  check_contract(call, sent->request.run, sent->input, [this, sent] {
    if (!has_validators_) return accept_update(sent);
    judge_update(sent);
  });
}

void Door::Impl::accept_update(std::shared_ptr<SentUpdate> sent) {
  auto request = sent->request;
  request.wait_until = now() + sent->wait_seconds * kSecond;
  durable_.update_run(
      std::move(request),
      here<shard::UpdateResult>([this, sent](absl::StatusOr<shard::UpdateResult> result) {
        answer_update(*sent, result);
      }));
}

void Door::Impl::answer_update(const SentUpdate& sent,
                               const absl::StatusOr<shard::UpdateResult>& result) {
  auto& call = *sent.call;
  if (!result.ok()) return refuse_command(call, result.status());
  const bool is_done = result->stage == shard::UpdateStage::kCompleted;
  json::object body{{"workflow_id", call.arg(0)},
                    {"run_id", result->run_id},
                    {"update_id", result->update_id},
                    {"update_name", call.args.back()},
                    {"update_status", "accepted"},
                    {"command_id", result->update_id},
                    {"command_status", "accepted"},
                    {"outcome", nullptr},
                    {"retained", result->retained},
                    {"wait_for", sent.wait_for},
                    {"wait_timed_out", !is_done && sent.wait_for == "completed"},
                    {"wait_timeout_seconds", sent.wait_seconds},
                    {"result", nullptr},
                    {"result_envelope", nullptr},
                    {"reason", nullptr}};
  if (!is_done) return call.answer(202, std::move(body));
  const auto outcome = object_of(result->outcome);
  const auto* value = member(outcome, "result");
  const bool failed = result->lost != shard::UpdateResult::Lost::kNo || outcome.contains("message");
  if (!failed) {
    body["update_status"] = "completed";
    body["outcome"] = "update_completed";
    if (value != nullptr) body["result_envelope"] = *value;
    return call.answer(200, std::move(body));
  }
  const std::string message = result->lost != shard::UpdateResult::Lost::kNo
                                  ? "the run closed before the update was applied"
                                  : text_of(outcome, "message");
  body["update_status"] = "failed";
  body["outcome"] = "update_failed";
  body["failure_id"] = result->update_id;
  body["failure_message"] = message;
  call.refuse(422, "update_failed", message, std::move(body));
}

void Door::Impl::stop(CallPtr call, model::EventKind kind) {
  if (!check_request_id(*call)) return;
  const std::string reason = text_of(call->body, "reason");
  if (reason.size() > 1000) {
    return call->invalid("reason", "reason must not be longer than 1000 bytes");
  }
  const bool is_cancel = kind == model::WORKFLOW_CANCELED;
  shard::StopRun request;
  request.run = run_of(*call, kWithRun);
  request.request_id = text_of(call->body, "request_id");
  request.kind = kind;
  const char* word = is_cancel ? "cancelled" : "terminated";
  Members door;
  door.put("workflow_instance_id", request.run.workflow_id);
  door.put("failure_category", word);
  door.put("closed_reason", word);
  door.put("exception_class", is_cancel ? "WorkflowCancelled" : "WorkflowTerminated");
  door.put("exception_type", is_cancel ? "WorkflowCancelled" : "WorkflowTerminated");
  door.put("message", reason.empty() ? absl::StrCat("the workflow was ", word) : reason);
  door.put("reason", reason.empty() ? json::value() : json::value(reason));
  request.door = door.take();
  durable_.stop_run(std::move(request),
                    here<shard::Receipt>([call, word](absl::StatusOr<shard::Receipt> receipt) {
                      if (!receipt.ok()) return refuse_command(*call, receipt.status());
                      call->answer(200, receipt_body(*call, *receipt, word));
                    }));
}

void Door::Impl::repair(CallPtr call) {
  durable_.repair_run(
      run_of(*call, kWithRun), here<shard::Repaired>([call](absl::StatusOr<shard::Repaired> done) {
        if (!done.ok()) return refuse_command(*call, done.status());
        call->answer(200,
                     {{"workflow_id", call->arg(0)},
                      {"run_id", done->run_id},
                      {"outcome", done->was_needed ? "repair_dispatched" : "repair_not_needed"},
                      {"reason", nullptr}});
      }));
}

// Archiving sets a closed run aside for people who look: it stays as it is, for as long as any.
void Door::Impl::archive(CallPtr call) {
  if (!check_request_id(*call)) return;
  const std::string reason = text_of(call->body, "reason");
  if (reason.size() > 1000) {
    return call->invalid("reason", "reason must not be longer than 1000 bytes");
  }
  durable_.archive_run(
      {run_of(*call, kWithRun), reason},
      here<shard::Archived>([call](absl::StatusOr<shard::Archived> done) {
        if (!done.ok()) return refuse_command(*call, done.status());
        call->answer(200, {{"workflow_id", call->arg(0)},
                           {"run_id", done->run_id},
                           {"command_status", "accepted"},
                           {"outcome", done->was_needed ? "archived" : "archive_not_needed"},
                           {"archived_at", format_time(done->at_ns)},
                           {"reason", nullptr}});
      }));
}

}  // namespace fairlead::durable
