// Bodies of what schedules are made of and tell.

#include "api/durable/openapi.h"

namespace fairlead::durable {

const char kScheduleSchemas[] = R"json({
"OverlapPolicy": {"enum": ["skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other",
                           "allow_all"]},
"ScheduleSpec": {
  "type": "object",
  "description": "Needs a cron expression or an interval.",
  "properties": {
    "cron_expressions": {"$ref": "#/components/schemas/Strings"},
    "intervals": {"type": "array", "items": {
      "type": "object", "required": ["every"],
      "properties": {
        "every": {"type": "string", "pattern": "^P([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$"},
        "offset": {"type": "string", "pattern": "^P([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$"}}}},
    "timezone": {"type": "string"}}},
"ScheduleAction": {
  "type": "object",
  "properties": {
    "workflow_type": {"$ref": "#/components/schemas/Text"},
    "task_queue": {"type": "string", "maxLength": 255},
    "input": {"$ref": "#/components/schemas/Arguments"},
    "execution_timeout_seconds": {"type": "integer", "minimum": 1},
    "run_timeout_seconds": {"type": "integer", "minimum": 1},
    "workflow_execution_timeout": {"type": "integer", "minimum": 1},
    "workflow_run_timeout": {"type": "integer", "minimum": 1},
    "priority": {"anyOf": [{"$ref": "#/components/schemas/Priority"}, {"type": "integer"}]}}},
"ScheduleChange": {
  "type": "object",
  "properties": {
    "spec": {"$ref": "#/components/schemas/ScheduleSpec"},
    "action": {"$ref": "#/components/schemas/ScheduleAction"},
    "overlap_policy": {"$ref": "#/components/schemas/OverlapPolicy"},
    "jitter_seconds": {"type": "integer", "minimum": 0, "maximum": 3600},
    "max_runs": {"type": "integer", "minimum": 1},
    "memo": {"type": "object"}, "search_attributes": {"type": "object"},
    "note": {"type": ["string", "null"], "maxLength": 1000}}},
"NewSchedule": {"allOf": [{"$ref": "#/components/schemas/ScheduleChange"}, {
  "type": "object", "required": ["spec", "action"],
  "properties": {"schedule_id": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^/]+$"},
                 "paused": {"type": "boolean"},
                 "action": {"type": "object", "required": ["workflow_type"]}}}]},
"ScheduleNote": {
  "type": "object", "properties": {"note": {"type": ["string", "null"], "maxLength": 1000}}},
"ScheduleChanged": {
  "type": "object", "required": ["schedule_id", "outcome"],
  "properties": {"schedule_id": {"type": "string"},
                 "outcome": {"enum": ["created", "updated", "deleted", "paused", "resumed"]}}},
"Schedule": {
  "type": "object",
  "required": ["schedule_id", "workflow_type", "status", "paused", "spec", "action", "overlap_policy", "note",
               "memo", "search_attributes", "next_fire", "next_fire_at", "last_fire", "last_fired_at",
               "fires_count", "failures_count", "jitter_seconds", "max_runs", "remaining_actions",
               "latest_workflow_instance_id", "paused_at", "created_at", "updated_at"],
  "properties": {
    "status": {"enum": ["active", "paused"]}, "paused": {"type": "boolean"},
    "spec": {"$ref": "#/components/schemas/ScheduleSpec"},
    "action": {"$ref": "#/components/schemas/ScheduleAction"},
    "overlap_policy": {"$ref": "#/components/schemas/OverlapPolicy"},
    "next_fire_at": {"$ref": "#/components/schemas/TimeOrNull"},
    "last_fired_at": {"$ref": "#/components/schemas/TimeOrNull"},
    "paused_at": {"$ref": "#/components/schemas/TimeOrNull"},
    "fires_count": {"type": "integer", "minimum": 0},
    "failures_count": {"type": "integer", "minimum": 0},
    "max_runs": {"type": ["integer", "null"]}, "remaining_actions": {"type": ["integer", "null"]},
    "created_at": {"$ref": "#/components/schemas/Time"},
    "updated_at": {"$ref": "#/components/schemas/Time"}}},
"ScheduleDetail": {"allOf": [{"$ref": "#/components/schemas/Schedule"}, {
  "type": "object", "required": ["state", "info"],
  "properties": {
    "state": {"type": "object", "required": ["status", "paused", "note"]},
    "info": {"type": "object",
             "required": ["next_fire", "last_fire", "fires_count", "failures_count", "recent_actions",
                          "buffered_actions", "running_actions", "skipped_trigger_count",
                          "last_skip_reason", "last_skipped_at"]}}}]},
"Schedules": {
  "type": "object", "required": ["schedules", "schedule_count", "next_page_token"],
  "properties": {"schedules": {"type": "array", "items": {"$ref": "#/components/schemas/Schedule"}},
                 "next_page_token": {"type": ["string", "null"]}}},
"ListRefused": {"anyOf": [{"$ref": "#/components/schemas/Error"}, {
  "type": "object", "required": ["reason", "message", "field", "errors", "validation_errors",
                                 "last_safe_cursor"]}]},
"ScheduleTrigger": {
  "type": "object", "properties": {"overlap_policy": {"$ref": "#/components/schemas/OverlapPolicy"}}},
"ScheduleTriggered": {
  "type": "object", "required": ["schedule_id", "outcome"],
  "properties": {"outcome": {"enum": ["triggered", "buffered", "buffer_full", "skipped"]},
                 "workflow_id": {"type": "string"}, "run_id": {"type": "string"},
                 "buffer_depth": {"type": "integer", "minimum": 1}, "reason": {"type": "string"}}},
"ScheduleBackfill": {
  "type": "object", "required": ["start_time", "end_time"],
  "properties": {"start_time": {"type": "string"}, "end_time": {"type": "string"},
                 "overlap_policy": {"$ref": "#/components/schemas/OverlapPolicy"}}},
"ScheduleBackfilled": {
  "type": "object", "required": ["schedule_id", "outcome", "fires_attempted", "results"],
  "properties": {"outcome": {"const": "backfill_started"},
                 "fires_attempted": {"type": "integer", "minimum": 0},
                 "results": {"type": "array", "items": {
    "type": "object", "required": ["fire_time", "workflow_id", "outcome", "reason"],
    "properties": {"fire_time": {"$ref": "#/components/schemas/Time"},
                   "workflow_id": {"type": ["string", "null"]},
                   "outcome": {"enum": ["started", "skipped", "failed"]},
                   "reason": {"type": ["string", "null"]}}}}}},
"ScheduleHistory": {
  "type": "object", "required": ["schedule_id", "namespace", "events", "has_more", "next_cursor"],
  "properties": {"has_more": {"type": "boolean"}, "next_cursor": {"type": ["integer", "null"]},
                 "events": {"type": "array", "maxItems": 500, "items": {
    "type": "object",
    "required": ["id", "sequence", "event_type", "payload", "workflow_instance_id", "workflow_run_id",
                 "recorded_at"],
    "properties": {"sequence": {"type": "integer", "minimum": 1},
                   "event_type": {"enum": ["ScheduleCreated", "SchedulePaused", "ScheduleResumed",
                                           "ScheduleUpdated", "ScheduleTriggered",
                                           "ScheduleTriggerSkipped", "ScheduleDeleted"]},
                   "payload": {"type": "object"},
                   "recorded_at": {"$ref": "#/components/schemas/Time"}}}}}}
})json";

}  // namespace fairlead::durable
