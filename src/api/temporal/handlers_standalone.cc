#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "api/temporal/convert.h"
#include "api/temporal/handler.h"
#include "api/temporal/pieces.h"
#include "api/temporal/search_attributes.h"
#include "api/temporal/try.h"
#include "api/temporal/validate.h"
#include "base/error.h"
#include "base/wire.h"
#include "history/activity.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

// Activities without a workflow: started, looked at, waited for and stopped by their clients. What
// workers say about them comes by the calls of all activities (handlers_activity.cc), and so do the
// commands of operators (handlers_operate.cc).
namespace fairlead::api {

namespace {

using errors::invalid_argument;
using google::protobuf::Arena;
using namespace temporal::api::enums::v1;
using namespace temporal::api::workflowservice::v1;
namespace history_api = temporal::api::history::v1;

constexpr size_t kSummaryBytesMax = 400;
constexpr size_t kDetailsBytesMax = 20'000;

absl::string_view to_absl(std::string_view text) { return {text.data(), text.size()}; }

// These calls have sentences of their own for what is too long.
absl::Status check_length_of(std::string_view value, std::string_view name, int64_t bytes_max) {
  if (static_cast<int64_t>(value.size()) <= bytes_max) return absl::OkStatus();
  return invalid_argument(absl::StrCat(
      to_absl(name), " exceeds length limit. Length=", value.size(), " Limit=", bytes_max));
}

absl::Status check_name_of(std::string_view value, std::string_view name, int64_t bytes_max) {
  if (value.empty()) return invalid_argument(absl::StrCat(to_absl(name), " is not set"));
  return check_length_of(value, name, bytes_max);
}

absl::Status check_metadata_part(size_t bytes, std::string_view name, size_t bytes_max) {
  if (bytes <= bytes_max) return absl::OkStatus();
  return invalid_argument(absl::StrCat("user_metadata.", to_absl(name),
                                       " exceeds size limit. Length=", bytes,
                                       " Limit=", bytes_max));
}

absl::Status read_timeout(const google::protobuf::Duration& timeout, std::string_view name,
                          DurationNs* read) {
  const auto duration = read_duration(timeout);
  if (!duration.ok()) {
    return invalid_argument(
        absl::StrCat("invalid ", to_absl(name), ": ", duration.status().message()));
  }
  *read = *duration;
  return absl::OkStatus();
}

// An activity that silently lacks what its starter relies on is worse than none.
absl::Status check_built(const StartActivityExecutionRequest& request) {
  if (request.completion_callbacks_size() > 0) {
    return invalid_argument("completion callbacks are not enabled for this namespace");
  }
  const auto& attach = request.on_conflict_options();
  if (attach.attach_request_id() && request.links_size() == 0) {
    return invalid_argument(
        "on_conflict_options: attach_request_id requires at least one completion callback or link");
  }
  if (attach.attach_request_id() || attach.attach_completion_callbacks() || attach.attach_links()) {
    return errors::unimplemented("on-conflict options are not implemented by this server");
  }
  return absl::OkStatus();
}

absl::Status read_policies(const StartActivityExecutionRequest& request,
                           shard::StartRequest& start) {
  if (!ActivityIdReusePolicy_IsValid(request.id_reuse_policy())) {
    return invalid_argument(
        absl::StrCat("unsupported ID reuse policy: ", int{request.id_reuse_policy()}));
  }
  if (!ActivityIdConflictPolicy_IsValid(request.id_conflict_policy())) {
    return invalid_argument(
        absl::StrCat("unsupported ID conflict policy: ", int{request.id_conflict_policy()}));
  }
  if (request.id_reuse_policy() == ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY) {
    start.reuse = shard::ReusePolicy::kAllowDuplicateFailedOnly;
  } else if (request.id_reuse_policy() == ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE) {
    start.reuse = shard::ReusePolicy::kRejectDuplicate;
  }
  if (request.id_conflict_policy() == ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING) {
    start.conflict = shard::ConflictPolicy::kUseExisting;
  }
  return absl::OkStatus();
}

absl::Status check_start(const Service& service, const shard::NamespacePtr& ns,
                         StartActivityExecutionRequest& request) {
  const auto& limits = service.options.limits;
  FL_TRY(check_name_of(request.activity_id(), "activityId", limits.id_bytes));
  FL_TRY(check_name_of(request.activity_type().name(), "activityType", limits.id_bytes));
  FL_TRY(check_task_queue_name(request.task_queue().name(), limits.id_bytes));
  FL_TRY(check_retry_policy(request.retry_policy()));
  if (const auto status = check_priority(request.priority()); !status.ok()) {
    return invalid_argument(absl::StrCat("invalid priorities: ", status.message()));
  }
  FL_TRY(check_length_of(request.request_id(), "request ID", limits.id_bytes));
  FL_TRY(check_length_of(request.identity(), "identity", limits.id_bytes));
  if (static_cast<int64_t>(request.input().ByteSizeLong()) > limits.blob_bytes ||
      static_cast<int64_t>(request.header().ByteSizeLong()) > limits.blob_bytes) {
    return invalid_argument("input exceeds length limit");
  }
  FL_TRY(check_metadata_part(request.user_metadata().summary().ByteSizeLong(), "summary",
                             kSummaryBytesMax));
  FL_TRY(check_metadata_part(request.user_metadata().details().ByteSizeLong(), "details",
                             kDetailsBytesMax));
  FL_TRY(check_links(request.links()));
  FL_TRY(check_search_attributes(*request.mutable_search_attributes(), ns->name()));
  return check_built(request);
}

// The activity as it is scheduled. Empties the request of its payloads.
absl::StatusOr<model::Event> read_activity(StartActivityExecutionRequest& request) {
  model::Event draft;
  draft.set_kind(model::ACTIVITY_SCHEDULED);
  auto& scheduled = *draft.mutable_activity_scheduled();
  DurationNs to_close = 0;
  DurationNs to_start = 0;
  DurationNs attempt = 0;
  DurationNs heartbeat = 0;
  FL_TRY(read_timeout(request.schedule_to_close_timeout(), "ScheduleToCloseTimeout", &to_close));
  FL_TRY(read_timeout(request.schedule_to_start_timeout(), "ScheduleToStartTimeout", &to_start));
  FL_TRY(read_timeout(request.start_to_close_timeout(), "StartToCloseTimeout", &attempt));
  FL_TRY(read_timeout(request.heartbeat_timeout(), "HeartbeatTimeout", &heartbeat));
  scheduled.set_schedule_to_close_ns(to_close);
  scheduled.set_schedule_to_start_ns(to_start);
  scheduled.set_start_to_close_ns(attempt);
  scheduled.set_heartbeat_ns(heartbeat);
  scheduled.set_activity_id(request.activity_id());
  scheduled.set_activity_type(request.activity_type().name());
  scheduled.set_task_queue(request.task_queue().name());
  *scheduled.mutable_retry_policy() = read_retry_policy(request.retry_policy());
  if (request.has_priority()) *scheduled.mutable_priority() = read_priority(request.priority());
  if (!history::normalize_activity(&scheduled, model::RunState())) {
    return invalid_argument(absl::StrCat(
        "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. "
        "ActivityId=",
        request.activity_id(), " ActivityType=", request.activity_type().name()));
  }
  auto& door =
      *Arena::CreateMessage<history_api::ActivityTaskScheduledEventAttributes>(request.GetArena());
  door.unsafe_arena_set_allocated_header(request.unsafe_arena_release_header());
  door.unsafe_arena_set_allocated_input(request.unsafe_arena_release_input());
  draft.set_door(door.SerializeAsString());
  auto& envelope = *Arena::CreateMessage<history_api::HistoryEvent>(request.GetArena());
  envelope.mutable_links()->Swap(request.mutable_links());
  draft.set_envelope(envelope.SerializeAsString());
  return draft;
}

absl::Status start(Service& service, StartActivityExecutionRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(const auto ns, service.find_active_namespace(request.namespace_()));
  FL_TRY(check_start(service, ns, request));
  shard::StartRequest asked;
  FL_TRY(read_policies(request, asked));
  FL_TRY(read_timeout(request.start_delay(), "StartDelay", &asked.start_delay));
  asked.ns = number_of(ns);
  asked.namespace_id = ns->id();
  asked.flavour = model::STANDALONE;
  asked.workflow_id = request.activity_id();
  asked.task_queue = request.task_queue().name();
  asked.request_id = request.request_id();
  asked.user_metadata = request.user_metadata().SerializeAsString();
  for (const auto& [key, payload] : request.search_attributes().indexed_fields()) {
    if (!removes_key(payload)) {
      asked.search_attributes.emplace_back(key, payload.SerializeAsString());
    }
  }
  FL_TRY_ASSIGN(asked.activity, read_activity(request));
  service.engine.start_workflow(
      std::move(asked), answer<shard::StartResult>(call, [ns, activity_id = request.activity_id()](
                                                             const shard::StartResult& result) {
        StartActivityExecutionResponse response;
        response.set_run_id(result.run_id);
        response.set_started(result.started);
        auto& link = *response.mutable_link()->mutable_activity();
        link.set_namespace_(ns->name());
        link.set_activity_id(activity_id);
        link.set_run_id(result.run_id);
        return response.SerializeAsString();
      }));
  return absl::OkStatus();
}

// The activity that a request speaks of.
template <typename Request>
absl::StatusOr<shard::RunRef> find(const Service& service, const Request& request) {
  const int64_t id_max = service.options.limits.id_bytes;
  FL_TRY_ASSIGN(const auto ns, service.find_namespace(request.namespace_()));
  if (request.activity_id().empty()) return invalid_argument("activity ID is required");
  FL_TRY(check_length_of(request.activity_id(), "activity ID", id_max));
  if (!check_run_id(request.run_id()).ok()) {
    return invalid_argument("invalid run id: must be a valid UUID");
  }
  return shard::RunRef{number_of(ns), request.activity_id(), request.run_id(), model::STANDALONE};
}

// A caller that grants less time than the way of the answer takes is left to its own deadline: told
// nothing, it would only ask again, at once.
TimeNs hold_until(const Service& service, const Call& call) {
  const TimeNs until = service.wait_until(call);
  return until > service.engine.now() ? until : std::max(until, call.deadline());
}

// What a description is to hold besides the usual.
struct Wanted {
  InfoParts info;
  bool input = false;
  bool outcome = false;
};

std::string encode_description(const shard::RunView& view, const Wanted& wanted) {
  using Response = DescribeActivityExecutionResponse;
  std::string body;
  wire::Writer writer(&body);
  writer.string(Response::kRunIdFieldNumber, view.run.run_id());
  writer.bytes(Response::kInfoFieldNumber, encode_activity_info(view, wanted.info));
  if (wanted.input) {
    writer.string(Response::kInputFieldNumber, scheduled_input(view.scheduled_event));
  }
  if (wanted.outcome && !view.ended_event.empty()) {
    writer.bytes(Response::kOutcomeFieldNumber, encode_outcome(view.ended_event));
  }
  writer.bytes(Response::kLongPollTokenFieldNumber,
               encode_change_token({view.run.run_id(), view.run.state_transitions()}));
  return body;
}

absl::Status describe(Service& service, DescribeActivityExecutionRequest& request,
                      const CallPtr& call) {
  FL_TRY_ASSIGN(auto run, find(service, request));
  const Wanted wanted{{request.include_heartbeat_details(), request.include_last_failure()},
                      request.include_input(),
                      request.include_outcome()};
  if (request.long_poll_token().empty()) {
    service.engine.describe_workflow(
        std::move(run), answer<shard::RunView>(call, [wanted](const shard::RunView& view) {
          return encode_description(view, wanted);
        }));
    return absl::OkStatus();
  }
  if (run.run_id.empty()) {
    return invalid_argument("run id is required when long poll token is provided");
  }
  FL_TRY_ASSIGN(const auto seen, decode_change_token(request.long_poll_token()));
  if (seen.run_id != run.run_id) return invalid_argument("invalid long poll token");
  shard::HistoryRequest wait;
  wait.run = run;
  wait.wait_new_event = true;
  wait.transitions_seen = seen.transitions;
  wait.wait_until = hold_until(service, *call);
  auto& engine = service.engine;
  engine.read_history(std::move(wait), [&engine, call, run = std::move(run), seen,
                                        wanted](absl::StatusOr<shard::HistoryPage> page) {
    if (!page.ok()) return fail(*call, page.status());
    engine.describe_workflow(
        run, answer<shard::RunView>(call, [seen, wanted](const shard::RunView& view) {
          const bool has_news = view.run.status() != model::RUNNING ||
                                view.run.state_transitions() > seen.transitions;
          return has_news ? encode_description(view, wanted) : std::string();
        }));
  });
  return absl::OkStatus();
}

absl::Status poll(Service& service, PollActivityExecutionRequest& request, const CallPtr& call) {
  shard::HistoryRequest wait;
  FL_TRY_ASSIGN(wait.run, find(service, request));
  wait.wait_new_event = true;
  wait.close_event_only = true;
  wait.wait_until = hold_until(service, *call);
  service.engine.read_history(
      std::move(wait), answer<shard::HistoryPage>(call, [](const shard::HistoryPage& page) {
        std::string body;
        // Nothing: it is not over, and the caller comes again.
        if (page.history.empty()) return body;
        wire::Writer writer(&body);
        writer.string(PollActivityExecutionResponse::kRunIdFieldNumber, page.run_id);
        writer.bytes(PollActivityExecutionResponse::kOutcomeFieldNumber,
                     encode_outcome(page.history));
        return body;
      }));
  return absl::OkStatus();
}

// If no worker has it, the reason is all that is told of the cancellation.
std::string canceled_door(const std::string& reason) {
  std::string door;
  wire::Writer writer(&door);
  write_json_text(writer, history_api::ActivityTaskCanceledEventAttributes::kDetailsFieldNumber,
                  reason);
  return door;
}

template <typename Request>
absl::Status stop(Service& service, Request& request, const CallPtr& call) {
  const auto& limits = service.options.limits;
  shard::StopStandalone asked;
  FL_TRY_ASSIGN(asked.run, find(service, request));
  FL_TRY(check_length_of(request.request_id(), "request ID", limits.id_bytes));
  FL_TRY(check_length_of(request.identity(), "identity", limits.id_bytes));
  FL_TRY(check_length_of(request.reason(), "reason", limits.blob_bytes));
  asked.terminates = std::is_same_v<Request, TerminateActivityExecutionRequest>;
  asked.by.identity = request.identity();
  asked.by.reason = request.reason();
  asked.by.request_id = request.request_id();
  if (!asked.terminates) asked.by.door = canceled_door(request.reason());
  service.engine.stop_standalone(std::move(asked), answer_done(call));
  return absl::OkStatus();
}

absl::Status erase(Service& service, DeleteActivityExecutionRequest& request, const CallPtr& call) {
  FL_TRY_ASSIGN(auto run, find(service, request));
  service.engine.delete_workflow(std::move(run), answer_done(call));
  return absl::OkStatus();
}

}  // namespace

void add_standalone_handlers(Registrar& registrar) {
  registrar.serve(start);
  registrar.serve(describe);
  registrar.serve(poll);
  registrar.serve(stop<RequestCancelActivityExecutionRequest>);
  registrar.serve(stop<TerminateActivityExecutionRequest>);
  registrar.serve(erase);
}

}  // namespace fairlead::api
