// Activities without workflow code. Each is a run with one activity (history/hosted.h), so what is
// not here is asked of it as of any run: its history, to stop, how it is listed among tasks.

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "api/durable/codec.h"
#include "api/durable/commands.h"
#include "api/durable/desk.h"
#include "api/durable/payloads.h"
#include "api/durable/priority.h"
#include "api/durable/run_status.h"
#include "base/error.h"
#include "history/activity.h"
#include "history/hosted.h"

namespace fairlead::durable {

namespace {

constexpr char kHostType[] = "standalone-activity";
constexpr size_t kNameMax = 255;
// As a command of a workflow has them, and what is put behind their names here.
constexpr const char* kTimeouts[] = {"start_to_close_timeout", "schedule_to_start_timeout",
                                     "schedule_to_close_timeout", "heartbeat_timeout"};
constexpr char kSeconds[] = "_seconds";

// The start as a workflow would have asked for it.
json::object command_of(const json::object& body, json::value arguments) {
  json::object command{{"type", "schedule_activity"}, {"arguments", std::move(arguments)}};
  for (const char* field :
       {"activity_type", "retry_policy", "priority", "fairness_key", "fairness_weight"}) {
    if (const auto* value = member(body, field)) command[field] = *value;
  }
  for (const char* field : kTimeouts) {
    if (const auto* value = member(body, absl::StrCat(field, kSeconds))) command[field] = *value;
  }
  return command;
}

// "commands.0.heartbeat_timeout" of the command is "heartbeat_timeout_seconds" of the request.
std::string field_of(const CommandFault& fault) {
  std::string field(absl::StripPrefix(fault.field, "commands.0."));
  if (absl::EndsWith(field, "_timeout")) field += kSeconds;
  return field;
}

const char* activity_status(const shard::RunView& view) {
  switch (view.run.status()) {
    case model::COMPLETED:
      return "completed";
    case model::CANCELED:
    case model::TERMINATED:
      return "cancelled";
    case model::RUNNING:
      return !view.activities.empty() && view.activities.front().started_ns() != 0 ? "running"
                                                                                   : "pending";
    default:
      return "failed";
  }
}

json::object record_of(const Call& call, const shard::RunView& view) {
  const auto& run = view.run;
  const auto& activity = view.activities.empty() ? run.ended_activity() : view.activities.front();
  const auto& limits = activity.scheduled();
  const auto deadline = [](TimeNs from, DurationNs limit) {
    return limit > 0 ? json::value(format_time(add_saturated(from, limit))) : json::value();
  };
  const TimeNs progress =
      std::max({run.start_ns(), run.close_ns(), activity.started_ns(), activity.heartbeat_ns()});
  return {{"activity_id", run.workflow_id()},
          {"workflow_id", run.workflow_id()},
          {"workflow_run_id", run.run_id()},
          {"run_id", run.run_id()},
          {"activity_execution_id", limits.activity_id()},
          {"workflow_type", run.workflow_type()},
          {"activity_type", limits.activity_type()},
          {"activity_class", limits.activity_type()},
          {"task_queue", known_queue(limits.task_queue())},
          {"namespace", call.ns->name()},
          {"status", to_json(status_of(run))},
          {"status_bucket", to_json(bucket_of(status_of(run)))},
          {"activity_status", activity_status(view)},
          {"closed_reason", closed_reason(run)},
          {"business_key", nullptr},
          {"payload_codec", "avro"},
          {"priority", priority_record(history::merge_priority(run.priority(), limits.priority()))},
          {"started_at", format_time(run.start_ns())},
          {"closed_at", time_or_null(run.close_ns())},
          {"last_progress_at", format_time(progress)},
          {"last_heartbeat_at", time_or_null(activity.heartbeat_ns())},
          {"schedule_to_start_deadline_at",
           deadline(activity.scheduled_ns(), limits.schedule_to_start_ns())},
          {"schedule_to_close_deadline_at",
           deadline(activity.first_scheduled_ns(), limits.schedule_to_close_ns())},
          // An attempt that nobody has taken was not made yet.
          {"attempt_count", activity.started_attempt()},
          {"result", nullptr}};
}

void refuse_missing(Call& call, const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsInvalidArgument(status)) return call.refuse(status);
  call.refuse(404, "activity_not_found", "there is no such activity");
}

}  // namespace

void Door::Impl::start_activity(CallPtr call) {
  const auto& body = call->body;
  shard::StartRequest start;
  start.flavour = model::DURABLE;
  start.ns = call->ns_num();
  start.namespace_id = call->ns->id();
  start.workflow_type = kHostType;
  start.workflow_id = text_of(body, "activity_id");
  if (member(body, "activity_id") == nullptr) start.workflow_id = make_id();
  if (!is_workflow_id(start.workflow_id)) {
    return call->invalid("activity_id",
                         "activity_id must be 1 to 128 of letters, digits and the signs . _ : -");
  }
  for (const char* field : {"activity_type", "task_queue"}) {
    const std::string text = text_of(body, field);
    if (text.empty() || text.size() > kNameMax) {
      return call->invalid(field, absl::StrCat(field, " must be a string of 1 to 255 bytes"));
    }
  }
  start.task_queue = engine_queue(text_of(body, "task_queue"));
  start.version = selected_build(call->ns->name(), text_of(body, "task_queue"));
  const auto input = payload_text(member(body, "input"), true);
  if (!input.ok()) return call->invalid("input", std::string(input.status().message()));
  const CommandContext context{
      call->ns->name(), call->ns->id(), options_, [this] { return make_id(); },
      [](const std::string&, const std::string&) { return std::string(); }};
  std::vector<model::Event> drafts;
  CommandFault fault;
  const auto arguments = input->empty() ? json::value() : *parse_json(*input);
  if (!read_commands(json::array{command_of(body, arguments)}, context, &drafts, &fault)) {
    return call->invalid(field_of(fault), fault.text);
  }
  const std::string execution = drafts.front().activity_scheduled().activity_id();
  start.activity = std::move(drafts.front());
  start.reuse = shard::ReusePolicy::kRejectDuplicate;
  start.conflict = shard::ConflictPolicy::kFail;
  start.task_timeout = options_.workflow_lease;
  const std::string business_key = text_of(body, "business_key");
  if (business_key.size() > kNameMax) {
    return call->invalid("business_key", "business_key must not be longer than 255 bytes");
  }
  Members accepted;
  accepted.put("workflow_instance_id", start.workflow_id);
  accepted.put_if(!business_key.empty(), "business_key", business_key);
  start.envelope = accepted.text();
  start.door = accepted.take();

  json::object answer{{"activity_id", start.workflow_id},
                      {"workflow_id", start.workflow_id},
                      {"activity_execution_id", execution},
                      {"workflow_type", kHostType},
                      {"activity_type", text_of(body, "activity_type")},
                      {"task_queue", text_of(body, "task_queue")},
                      {"namespace", call->ns->name()},
                      {"payload_codec", "avro"},
                      {"business_key", nullptr}};
  if (!business_key.empty()) answer["business_key"] = business_key;
  engine_.start_workflow(
      std::move(start),
      here<shard::StartResult>([call, answer = std::move(answer)](
                                   absl::StatusOr<shard::StartResult> result) mutable {
        if (result.ok()) {
          answer["workflow_run_id"] = result->run_id;
          answer["status"] = "pending";
          answer["outcome"] = "started_new";
          return call->answer(201, std::move(answer));
        }
        const auto detail = error_detail(result.status());
        if (detail.kind != ErrorKind::kWorkflowAlreadyStarted) {
          return call->refuse(result.status());
        }
        call->refuse(409, "instance_already_started", "a workflow or an activity has had this id",
                     {{"activity_id", answer.at("activity_id")},
                      {"workflow_run_id", detail.fields[1]},
                      {"outcome", "rejected_duplicate"}});
      }));
}

void Door::Impl::describe_activity(CallPtr call) {
  const shard::RunRef run{call->ns_num(), call->arg(0), "", model::DURABLE};
  engine_.describe_workflow(
      run, here<shard::RunView>([this, call, run](absl::StatusOr<shard::RunView> view) {
        if (!view.ok()) return refuse_missing(*call, view.status());
        if (!history::hosts_activity(view->run)) {
          return refuse_missing(*call, absl::NotFoundError("a workflow"));
        }
        shard::HistoryRequest all;
        all.run = {run.ns, run.workflow_id, view->run.run_id(), model::DURABLE};
        all.max_batches = 100;
        // Its history is a handful of events; the first have the key and the last the result.
        engine_.read_history(
            all, here<shard::HistoryPage>([call, record = record_of(*call, *view)](
                                              absl::StatusOr<shard::HistoryPage> page) mutable {
              if (!page.ok()) return refuse_missing(*call, page.status());
              const auto started = object_of(started_payload(page->history));
              if (const auto* key = member(started, "business_key")) record["business_key"] = *key;
              const auto events =
                  parse_json(absl::StrCat("[", join_events(page->history, INT64_MAX).joined, "]"));
              const auto& closing = events->as_array().back().as_object();
              const auto payload = object_member(closing, "payload");
              if (const auto* output = member(payload, "output")) record["result"] = *output;
              if (const auto* message = member(payload, "message")) {
                record["failure_message"] = *message;
              }
              call->answer(200, std::move(record));
            }));
      }));
}

// The rows tell which there are; what becomes of each is asked of the engine.
void Door::Impl::list_activities(CallPtr call) {
  auto request = read_list(*call);
  if (!request.has_value()) return;
  request->may_match = [bucket = call->parameter("status")](const model::RunState& run) {
    return history::hosts_activity(run) && (bucket.empty() || bucket_of(status_of(run)) == bucket);
  };
  request->matches = [](const shard::ListedRun&) { return true; };
  struct Gathered {
    std::vector<json::object> records;
    std::string next;
    size_t left = 0;
  };
  runs_.list(*request, here<shard::RunPage>([this, call](absl::StatusOr<shard::RunPage> page) {
    auto gathered = std::make_shared<Gathered>();
    gathered->records.resize(page->runs.size());
    gathered->next = page->next;
    gathered->left = page->runs.size() + 1;
    const auto note = [call, gathered] {
      if (--gathered->left > 0) return;
      json::array activities;
      // One that has gone since is not told of.
      for (auto& record : gathered->records) {
        if (!record.empty()) activities.emplace_back(std::move(record));
      }
      const auto count = static_cast<int64_t>(activities.size());
      json::object answer{{"activities", std::move(activities)},
                          {"activity_count", count},
                          {"next_page_token", nullptr}};
      if (!gathered->next.empty()) answer["next_page_token"] = absl::Base64Escape(gathered->next);
      call->answer(200, std::move(answer));
    };
    for (size_t i = 0; i < page->runs.size(); ++i) {
      const auto& listed = page->runs[i];
      engine_.describe_workflow(
          {call->ns_num(), listed.run.workflow_id(), listed.run.run_id(), model::DURABLE},
          here<shard::RunView>(
              [call, gathered, note, i,
               key = business_key_of(listed.first_events)](absl::StatusOr<shard::RunView> view) {
                if (view.ok()) {
                  gathered->records[i] = record_of(*call, *view);
                  if (!key.empty()) gathered->records[i]["business_key"] = key;
                }
                note();
              }));
    }
    note();
  }));
}

}  // namespace fairlead::durable
