// What people see of a schedule.

#include "absl/strings/str_cat.h"
#include "api/durable/schedules.h"
#include "base/assert.h"

namespace fairlead::durable {

namespace {

// DO NOT CHANGE: clients know these names.
const char* event_name(model::ScheduleEventKind kind) {
  switch (kind) {
    case model::SCHEDULE_CREATED:
      return "ScheduleCreated";
    case model::SCHEDULE_PAUSED:
      return "SchedulePaused";
    case model::SCHEDULE_RESUMED:
      return "ScheduleResumed";
    case model::SCHEDULE_UPDATED:
      return "ScheduleUpdated";
    case model::SCHEDULE_TRIGGERED:
      return "ScheduleTriggered";
    case model::SCHEDULE_TRIGGER_SKIPPED:
      return "ScheduleTriggerSkipped";
    case model::SCHEDULE_DELETED:
      return "ScheduleDeleted";
    default:
      FL_ASSERT(false, "an event of a schedule has a name");
      return "";
  }
}

const char* cause_name(model::FireCause cause) {
  return cause == model::FIRE_BY_HAND       ? "trigger"
         : cause == model::FIRE_BY_BACKFILL ? "backfill"
                                            : "schedule";
}

json::object fire_record(const model::ScheduleFire& fire) {
  json::object record{{"fire_time", format_time(fire.nominal_ns())},
                      {"cause", cause_name(fire.cause())}};
  if (fire.number() == 0) return record;
  record["workflow_id"] = fire.workflow_id();
  record["run_id"] = fire.run_id();
  record["fired_at"] = format_time(fire.fired_ns());
  return record;
}

// What a definition says, in the words in which it was said.
void put_definition(const model::ScheduleDefinition& definition, json::object* record) {
  auto kept = object_of(definition.door());
  (*record)["spec"] = object_member(kept, "spec");
  (*record)["action"] = object_member(kept, "action");
  (*record)["memo"] = object_member(kept, "memo");
  (*record)["search_attributes"] = object_member(kept, "search_attributes");
  (*record)["overlap_policy"] = to_json(overlap_name(definition.overlap()));
  (*record)["note"] = text_or_null(definition.note());
  (*record)["jitter_seconds"] = definition.spec().jitter_ns() / kSecond;
  (*record)["max_runs"] =
      definition.runs_max() == 0 ? json::value() : json::value(definition.runs_max());
}

void put_fire(const model::ScheduleFire& fire, json::object* payload) {
  (*payload)["cause"] = cause_name(fire.cause());
  (*payload)["occurrence_time"] = format_time(fire.nominal_ns());
  (*payload)["effective_overlap_policy"] = to_json(overlap_name(fire.policy()));
}

json::object payload_of(const std::string& schedule_id, const model::ScheduleEvent& event) {
  json::object payload{{"schedule_id", schedule_id},
                       {"next_fire_at", time_or_null(event.next_fire_ns())}};
  switch (event.kind()) {
    case model::SCHEDULE_CREATED:
    case model::SCHEDULE_UPDATED:
      put_definition(event.definition(), &payload);
      if (event.kind() == model::SCHEDULE_UPDATED) {
        json::array fields;
        for (const auto& field : event.changed()) fields.emplace_back(field);
        payload["changed_fields"] = std::move(fields);
      }
      break;
    case model::SCHEDULE_TRIGGERED:
      put_fire(event.fire(), &payload);
      payload["workflow_instance_id"] = event.fire().workflow_id();
      payload["workflow_run_id"] = event.fire().run_id();
      payload["fired_at"] = format_time(event.fire().fired_ns());
      payload["outcome"] = "scheduled";
      payload["trigger_number"] = event.fires();
      break;
    case model::SCHEDULE_TRIGGER_SKIPPED:
      payload["reason"] = event.reason();
      payload["message"] = text_or_null(event.message());
      payload["skipped_trigger_count"] = event.skips();
      payload["last_skipped_at"] = format_time(event.time_ns());
      if (event.missed() == 0) {
        put_fire(event.fire(), &payload);
      } else {
        payload["missed_count"] = event.missed();
        payload["missed_from"] = format_time(event.missed_from_ns());
        payload["missed_to"] = format_time(event.missed_to_ns());
      }
      break;
    default:
      payload["reason"] = text_or_null(event.reason());
  }
  return payload;
}

}  // namespace

json::object schedule_record(const std::string& ns, const model::Schedule& schedule) {
  const auto& definition = schedule.definition();
  const bool is_paused = schedule.paused_ns() != 0;
  json::object record{{"schedule_id", schedule.schedule_id()},
                      {"namespace", ns},
                      {"workflow_type", definition.start().workflow_type()},
                      {"status", is_paused ? "paused" : "active"},
                      {"paused", is_paused},
                      {"paused_at", time_or_null(schedule.paused_ns())},
                      {"next_fire", time_or_null(schedule.next_fire_ns())},
                      {"next_fire_at", time_or_null(schedule.next_fire_ns())},
                      {"last_fire", time_or_null(schedule.last_fire_ns())},
                      {"last_fired_at", time_or_null(schedule.last_fire_ns())},
                      {"fires_count", schedule.fires()},
                      {"failures_count", schedule.failures()},
                      {"remaining_actions", nullptr},
                      {"latest_workflow_instance_id", nullptr},
                      {"created_at", format_time(schedule.created_ns())},
                      {"updated_at", format_time(schedule.updated_ns())}};
  put_definition(definition, &record);
  if (definition.runs_max() > 0) record["remaining_actions"] = schedule.remaining_runs();
  if (schedule.recent_size() > 0) {
    record["latest_workflow_instance_id"] = schedule.recent().rbegin()->workflow_id();
  }
  return record;
}

json::object schedule_detail(const std::string& ns, const model::Schedule& schedule) {
  auto detail = schedule_record(ns, schedule);
  json::array recent;
  for (const auto& fire : schedule.recent()) recent.emplace_back(fire_record(fire));
  json::array buffered;
  for (const auto& fire : schedule.buffered()) buffered.emplace_back(fire_record(fire));
  json::array running;
  for (const auto& fire : schedule.open()) running.emplace_back(fire_record(fire));
  detail["state"] = {
      {"status", detail["status"]}, {"paused", detail["paused"]}, {"note", detail["note"]}};
  detail["info"] = {{"next_fire", detail["next_fire"]},
                    {"last_fire", detail["last_fire"]},
                    {"fires_count", detail["fires_count"]},
                    {"failures_count", detail["failures_count"]},
                    {"recent_actions", std::move(recent)},
                    {"buffered_actions", std::move(buffered)},
                    {"running_actions", std::move(running)},
                    {"skipped_trigger_count", schedule.skips()},
                    {"last_skip_reason", text_or_null(schedule.last_skip_reason())},
                    {"last_skipped_at", time_or_null(schedule.last_skip_ns())}};
  return detail;
}

json::object schedule_event_record(const std::string& schedule_id,
                                   const model::ScheduleEvent& event) {
  const bool is_start = event.kind() == model::SCHEDULE_TRIGGERED;
  return {{"id", absl::StrCat("schedule-event-", event.sequence())},
          {"sequence", event.sequence()},
          {"event_type", event_name(event.kind())},
          {"payload", payload_of(schedule_id, event)},
          {"workflow_instance_id", is_start ? json::value(event.fire().workflow_id()) : nullptr},
          {"workflow_run_id", is_start ? json::value(event.fire().run_id()) : nullptr},
          {"recorded_at", format_time(event.time_ns())}};
}

}  // namespace fairlead::durable
