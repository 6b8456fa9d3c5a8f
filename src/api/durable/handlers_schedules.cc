// Schedules: making, changing, pausing and firing them, and what has become of them.

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/durable/desk.h"
#include "api/durable/schedules.h"
#include "base/error.h"

namespace fairlead::durable {

namespace {

using Outcome = schedule::Fired::Outcome;

constexpr size_t kIdMax = 128;
constexpr int64_t kEventsDefault = 100;
constexpr int64_t kEventsMax = 500;

bool is_schedule_id(const std::string& id) {
  return !id.empty() && id.size() <= kIdMax && std::none_of(id.begin(), id.end(), [](char c) {
    return c == '/' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
}

void refuse_field(Call& call, const ScheduleFault& fault) {
  call.invalid(fault.field, fault.text, fault.reason);
}

void refuse_schedule(Call& call, const absl::Status& status) {
  const std::string message(status.message());
  if (absl::IsAlreadyExists(status)) return call.refuse(409, "schedule_already_exists", message);
  if (error_detail(status).kind == ErrorKind::kNotFound) {
    return call.refuse(404, "schedule_not_found", message);
  }
  call.refuse(status);
}

// False after a refusal.
bool read_policy(Call& call, model::OverlapPolicy* policy) {
  if (read_overlap(call.body, policy)) return true;
  call.invalid("overlap_policy", "overlap_policy is not one of the six");
  return false;
}

// How a list is refused: its SDK has an error of its own for that.
void refuse_list(Call& call, int status, std::string_view reason, std::string_view field,
                 std::string_view text) {
  json::object errors;
  errors[to_json(field)] = json::array{to_json(text)};
  call.refuse(status, reason, text,
              {{"field", to_json(field)},
               {"errors", errors},
               {"validation_errors", errors},
               {"last_safe_cursor", nullptr}});
}

json::object fired_record(const schedule::Fired& fired) {
  json::object record{{"fire_time", format_time(fired.nominal)},
                      {"workflow_id", nullptr},
                      {"outcome", "skipped"},
                      {"reason", nullptr}};
  if (!fired.workflow_id.empty()) record["workflow_id"] = fired.workflow_id;
  if (!fired.reason.empty()) record["reason"] = fired.reason;
  if (fired.outcome == Outcome::kStarted) record["outcome"] = "started";
  if (fired.outcome == Outcome::kFailed) record["outcome"] = "failed";
  return record;
}

}  // namespace

shard::ScheduleRef Door::Impl::schedule_of(const Call& call) {
  return {call.ns_num(), call.arg(0)};
}

shard::Reply<shard::Done> Door::Impl::schedule_done(CallPtr call, const char* outcome) {
  return here<shard::Done>([call, outcome](const absl::StatusOr<shard::Done>& done) {
    if (!done.ok()) return refuse_schedule(*call, done.status());
    call->answer(200, {{"schedule_id", call->arg(0)}, {"outcome", outcome}});
  });
}

void Door::Impl::create_schedule(CallPtr call) {
  shard::CreateSchedule request;
  auto& ref = request.schedule;
  ref.ns = call->ns_num();
  ref.schedule_id = text_of(call->body, "schedule_id");
  if (member(call->body, "schedule_id") == nullptr) ref.schedule_id = make_id();
  if (!is_schedule_id(ref.schedule_id)) {
    return call->invalid("schedule_id",
                         "schedule_id must be 1 to 128 bytes without control characters and /");
  }
  const auto* paused = member(call->body, "paused");
  if (paused != nullptr && !paused->is_bool()) {
    return call->invalid("paused", "paused must be true or false");
  }
  request.is_paused = paused != nullptr && paused->as_bool();
  std::vector<std::string> said;
  const ScheduleOwner owner{ref.schedule_id, call->ns->id()};
  if (const auto fault =
          read_schedule(call->body, true, owner, options_, &request.definition, &said)) {
    return refuse_field(*call, *fault);
  }
  if (!schedules_.has_fewer(ref.ns, options_.schedules_max)) {
    return call->invalid("schedule_id",
                         absl::StrCat("the namespace has ", options_.schedules_max,
                                      " schedules, and may not have more"),
                         "schedule_limit_reached");
  }
  const auto id = ref.schedule_id;
  scheduling_.create_schedule(
      std::move(request), here<shard::Done>([call, id](const absl::StatusOr<shard::Done>& done) {
        if (!done.ok()) return refuse_schedule(*call, done.status());
        call->answer(201, {{"schedule_id", id}, {"outcome", "created"}});
      }));
}

void Door::Impl::list_schedules(CallPtr call) {
  int64_t page_size = 50;
  const std::string asked = call->parameter("page_size");
  if (!asked.empty() &&
      (!absl::SimpleAtoi(asked, &page_size) || page_size < 1 || page_size > 200)) {
    return refuse_list(*call, 422, "validation_failed", "page_size",
                       "page_size must be from 1 to 200");
  }
  const std::string status = call->parameter("status");
  if (!status.empty() && status != "active" && status != "paused") {
    return refuse_list(*call, 422, "validation_failed", "status",
                       "status must be active or paused");
  }
  shard::ListSchedules request;
  request.ns = call->ns_num();
  request.max = static_cast<size_t>(page_size);
  const std::string token = call->parameter("next_page_token");
  std::string last;
  if (!token.empty()) {
    if (absl::WebSafeBase64Unescape(token, &last)) request.before = uuid_to_bytes(last);
    if (request.before.empty()) {
      return refuse_list(*call, 400, "malformed_schedule_page_token", "next_page_token",
                         "the page token is not one of this server's");
    }
  }
  request.matches = [status, type = call->parameter("workflow_type"),
                     text = call->parameter("query")](const model::Schedule& schedule) {
    const bool is_paused = schedule.paused_ns() != 0;
    return (status.empty() || is_paused == (status == "paused")) &&
           (type.empty() || schedule.definition().start().workflow_type() == type) &&
           (text.empty() || schedule.schedule_id().find(text) != std::string::npos);
  };
  schedules_.list(request, here<shard::SchedulePage>([call](auto page) {
                    json::array schedules;
                    for (const auto& each : page->schedules) {
                      schedules.emplace_back(schedule_record(call->ns->name(), each));
                    }
                    const auto count = static_cast<int64_t>(schedules.size());
                    json::object answer{{"schedules", std::move(schedules)},
                                        {"schedule_count", count},
                                        {"next_page_token", nullptr}};
                    if (!page->next.empty()) {
                      answer["next_page_token"] =
                          absl::WebSafeBase64Escape(uuid_from_bytes(page->next));
                    }
                    call->answer(200, std::move(answer));
                  }));
}

void Door::Impl::describe_schedule(CallPtr call) {
  scheduling_.describe_schedule(
      schedule_of(*call), here<model::Schedule>([call](absl::StatusOr<model::Schedule> found) {
        if (!found.ok()) return refuse_schedule(*call, found.status());
        call->answer(200, schedule_detail(call->ns->name(), *found));
      }));
}

void Door::Impl::update_schedule(CallPtr call) {
  shard::UpdateSchedule request;
  request.schedule = schedule_of(*call);
  const auto fault = std::make_shared<std::optional<ScheduleFault>>();
  const ScheduleOwner owner{call->arg(0), call->ns->id()};
  request.change = [body = call->body, owner, options = options_, fault](
                       model::ScheduleDefinition& definition, std::vector<std::string>* changed) {
    *fault = read_schedule(body, false, owner, options, &definition, changed);
    return fault->has_value() ? absl::InvalidArgumentError((*fault)->text) : absl::OkStatus();
  };
  scheduling_.update_schedule(
      std::move(request), here<shard::Done>([call, fault](const absl::StatusOr<shard::Done>& done) {
        if (fault->has_value()) return refuse_field(*call, **fault);
        if (!done.ok()) return refuse_schedule(*call, done.status());
        call->answer(200, {{"schedule_id", call->arg(0)}, {"outcome", "updated"}});
      }));
}

void Door::Impl::delete_schedule(CallPtr call) {
  scheduling_.delete_schedule(schedule_of(*call), schedule_done(call, "deleted"));
}

void Door::Impl::change_pause(CallPtr call, bool pauses) {
  const auto* note = member(call->body, "note");
  if (note != nullptr && (!note->is_string() || note->as_string().size() > 1000)) {
    return call->invalid("note", "note must be a string of at most 1000 bytes");
  }
  scheduling_.pause_schedule({schedule_of(*call), pauses, text_of(call->body, "note")},
                             schedule_done(call, pauses ? "paused" : "resumed"));
}

void Door::Impl::trigger_schedule(CallPtr call) {
  shard::TriggerSchedule request{schedule_of(*call)};
  if (!read_policy(*call, &request.policy)) return;
  scheduling_.trigger_schedule(
      std::move(request), here<schedule::Fired>([call](absl::StatusOr<schedule::Fired> fired) {
        if (!fired.ok()) return refuse_schedule(*call, fired.status());
        json::object answer{{"schedule_id", call->arg(0)}};
        switch (fired->outcome) {
          case Outcome::kStarted:
            answer["outcome"] = "triggered";
            answer["workflow_id"] = fired->workflow_id;
            answer["run_id"] = fired->run_id;
            break;
          case Outcome::kBuffered:
            answer["outcome"] = "buffered";
            answer["buffer_depth"] = fired->buffered;
            break;
          case Outcome::kBufferFull:
            answer["outcome"] = "buffer_full";
            answer["reason"] = fired->reason;
            break;
          case Outcome::kFailed:
            answer["outcome"] = "trigger_failed";
            return call->refuse(500, "trigger_failed", fired->message, std::move(answer));
          default:
            answer["outcome"] = "skipped";
            answer["reason"] = fired->reason;
        }
        call->answer(200, std::move(answer));
      }));
}

void Door::Impl::backfill_schedule(CallPtr call) {
  shard::BackfillSchedule request{schedule_of(*call)};
  for (const auto& [name, time] :
       {std::pair("start_time", &request.from), std::pair("end_time", &request.to)}) {
    const auto read = read_iso_time(text_of(call->body, name));
    if (!read.has_value() || *read < 0) {
      return call->invalid(name, absl::StrCat(name, " must be a time of ISO 8601 after 1970"));
    }
    *time = *read;
  }
  if (request.to <= request.from) {
    return call->invalid("end_time", "end_time must be after start_time", "invalid_time_range");
  }
  if (!read_policy(*call, &request.policy)) return;
  using AllFired = std::vector<schedule::Fired>;
  scheduling_.backfill_schedule(
      std::move(request), here<AllFired>([call](absl::StatusOr<AllFired> fired) {
        if (absl::IsInvalidArgument(fired.status())) {
          return call->invalid("end_time", std::string(fired.status().message()),
                               "invalid_time_range");
        }
        if (!fired.ok()) return refuse_schedule(*call, fired.status());
        json::array results;
        for (const auto& each : *fired) results.emplace_back(fired_record(each));
        const auto count = static_cast<int64_t>(results.size());
        call->answer(200, {{"schedule_id", call->arg(0)},
                           {"outcome", "backfill_started"},
                           {"fires_attempted", count},
                           {"results", std::move(results)}});
      }));
}

void Door::Impl::schedule_history(CallPtr call) {
  shard::ScheduleHistoryRequest request;
  request.schedule = schedule_of(*call);
  request.max = kEventsDefault;
  int64_t limit = 0;
  if (absl::SimpleAtoi(call->parameter("limit"), &limit) && limit > 0) {
    request.max = std::min(limit, kEventsMax);
  }
  const std::string after = call->parameter("after_sequence");
  if (!after.empty() && (!absl::SimpleAtoi(after, &request.after_sequence) ||
                         request.after_sequence < 0 || request.after_sequence == kNever)) {
    return call->invalid("after_sequence", "after_sequence must be a whole number, at least 0",
                         "invalid_after_sequence");
  }
  scheduling_.read_schedule_history(
      std::move(request),
      here<shard::ScheduleHistoryPage>([call](absl::StatusOr<shard::ScheduleHistoryPage> page) {
        if (!page.ok()) return refuse_schedule(*call, page.status());
        json::array events;
        for (const auto& event : page->events) {
          events.emplace_back(schedule_event_record(call->arg(0), event));
        }
        json::object answer{{"schedule_id", call->arg(0)},
                            {"namespace", call->ns->name()},
                            {"events", std::move(events)},
                            {"has_more", page->has_more},
                            {"next_cursor", nullptr}};
        if (page->has_more) answer["next_cursor"] = page->events.back().sequence();
        call->answer(200, std::move(answer));
      }));
}

}  // namespace fairlead::durable
