// Bodies of what operators look at and change.

#include "api/durable/openapi.h"

namespace fairlead::durable {

const char kOperatorSchemas[] = R"json({
"Worker": {
  "type": "object",
  "required": ["worker_id", "namespace", "task_queue", "runtime", "sdk_version", "build_id",
               "supported_workflow_types", "supported_activity_types", "workflow_definition_fingerprints",
               "max_concurrent_workflow_tasks", "max_concurrent_activity_tasks", "status",
               "last_heartbeat_at", "registered_at", "updated_at", "task_slots", "process_metrics",
               "heartbeat_interval_seconds"],
  "properties": {"build_id": {"type": ["string", "null"]},
                 "supported_workflow_types": {"$ref": "#/components/schemas/Strings"},
                 "supported_activity_types": {"$ref": "#/components/schemas/Strings"},
                 "workflow_definition_fingerprints": {"type": "object"},
                 "max_concurrent_workflow_tasks": {"type": "integer", "minimum": 0},
                 "max_concurrent_activity_tasks": {"type": "integer", "minimum": 0},
                 "status": {"enum": ["active", "draining", "stale"]},
                 "task_slots": {
    "type": "object",
    "required": ["workflow_available", "workflow_capacity", "activity_available", "activity_capacity",
                 "session_available", "session_capacity"]},
                 "last_heartbeat_at": {"$ref": "#/components/schemas/Time"},
                 "registered_at": {"$ref": "#/components/schemas/Time"}}},
"Workers": {
  "type": "object", "required": ["namespace", "stale_after_seconds", "workers"],
  "properties": {"workers": {"type": "array", "items": {"$ref": "#/components/schemas/Worker"}}}},
"Deregistered": {
  "type": "object", "required": ["worker_id", "outcome", "recovered_workflow_task_count"],
  "properties": {"outcome": {"const": "deregistered"},
                 "recovered_workflow_task_count": {"type": "integer", "minimum": 0}}},
"TaskCounts": {
  "type": "object",
  "required": ["ready_count", "leased_count", "expired_lease_count", "added_last_minute",
               "dispatched_last_minute"],
  "additionalProperties": {"type": "integer", "minimum": 0}},
"QueueRecord": {
  "type": "object", "required": ["name", "stats", "admission", "repair"],
  "properties": {
    "name": {"type": "string"},
    "stats": {
      "type": "object",
      "required": ["approximate_backlog_count", "approximate_backlog_age", "oldest_ready_task",
                   "approximate_backlog_age_seconds", "workflow_tasks", "activity_tasks", "pollers",
                   "tasks_added_last_minute", "tasks_dispatched_last_minute"],
      "properties": {"approximate_backlog_count": {"type": "integer", "minimum": 0},
                     "workflow_tasks": {"$ref": "#/components/schemas/TaskCounts"},
                     "activity_tasks": {"$ref": "#/components/schemas/TaskCounts"},
                     "pollers": {"type": "object",
                                 "required": ["active_count", "stale_count", "stale_after_seconds"]}}},
    "admission": {"type": "object", "required": ["workflow_tasks", "activity_tasks", "query_tasks"]}}},
"TaskQueues": {
  "type": "object", "required": ["namespace", "task_queues"],
  "properties": {"task_queues": {"type": "array", "items": {"$ref": "#/components/schemas/QueueRecord"}}}},
"TaskQueue": {"allOf": [{"$ref": "#/components/schemas/QueueRecord"}, {
  "type": "object", "required": ["namespace", "pollers", "current_leases"],
  "properties": {"current_leases": {"type": "array", "maxItems": 50, "items": {
    "type": "object",
    "required": ["task_id", "task_type", "workflow_id", "run_id", "lease_owner", "lease_expires_at",
                 "is_expired"]}}, "pollers": {"type": "array", "items": {"allOf": [
    {"$ref": "#/components/schemas/Worker"},
    {"type": "object", "required": ["is_stale", "heartbeat_expires_at"]}]}}}}]},
"BuildChange": {
  "type": "object", "required": ["build_id"],
  "properties": {"build_id": {"type": ["string", "null"], "maxLength": 255}}},
"Build": {
  "type": "object",
  "required": ["namespace", "task_queue", "build_id", "drain_intent", "drained_at", "promoted_at",
               "new_start_selected"],
  "properties": {"build_id": {"type": ["string", "null"]},
                 "drain_intent": {"enum": ["active", "draining"]},
                 "drained_at": {"$ref": "#/components/schemas/TimeOrNull"}}},
"Builds": {
  "type": "object", "required": ["namespace", "task_queue", "stale_after_seconds", "build_ids"],
  "properties": {"build_ids": {"type": "array", "items": {
    "type": "object",
    "required": ["build_id", "rollout_status", "drain_intent", "drained_at", "active_worker_count",
                 "draining_worker_count", "stale_worker_count", "total_worker_count", "runtimes",
                 "sdk_versions", "last_heartbeat_at", "first_seen_at"],
    "properties": {"build_id": {"type": ["string", "null"]},
                   "rollout_status": {"enum": ["active", "active_with_draining", "draining", "stale_only",
                                               "no_workers"]},
                   "drain_intent": {"enum": ["active", "draining"]}}}}}},
"RunIds": {"type": "array", "maxItems": 200, "items": {"type": "string"}},
"RepairStatus": {
  "type": "object", "required": ["namespace", "policy", "candidates"],
  "properties": {"policy": {"type": "object"}, "candidates": {
    "type": "object", "required": ["total_candidates", "blocked_runs", "missing_tasks", "expired_leases",
                                   "run_ids", "is_complete"],
    "properties": {"total_candidates": {"type": "integer", "minimum": 0},
                   "run_ids": {"$ref": "#/components/schemas/RunIds"}}}}},
"RepairPass": {
  "type": "object", "properties": {"run_ids": {"$ref": "#/components/schemas/Strings"},
                                   "instance_id": {"type": "string"}}},
"RepairPassed": {
  "type": "object",
  "required": ["namespace", "selected_candidates", "repaired_count", "repaired_run_ids", "is_complete"],
  "properties": {"repaired_run_ids": {"$ref": "#/components/schemas/RunIds"}}},
"RetentionStatus": {
  "type": "object",
  "required": ["namespace", "retention_days", "cutoff", "scan_limit", "expired_run_count", "expired_run_ids",
               "is_complete"],
  "properties": {"cutoff": {"$ref": "#/components/schemas/Time"},
                 "expired_run_ids": {"$ref": "#/components/schemas/RunIds"}}},
"RetentionPass": {
  "type": "object", "properties": {"run_ids": {"$ref": "#/components/schemas/Strings"},
                                   "limit": {"type": "integer", "minimum": 1}}},
"RetentionPassed": {
  "type": "object", "required": ["namespace", "retention_days", "cutoff", "processed", "pruned_run_ids"],
  "properties": {"pruned_run_ids": {"$ref": "#/components/schemas/RunIds"}}},
"TimeoutStatus": {
  "type": "object", "required": ["namespace", "enforcement", "expired_count", "expired_execution_ids"],
  "properties": {"expired_count": {"const": 0}}},
"TimeoutPass": {
  "type": "object", "properties": {"execution_ids": {"$ref": "#/components/schemas/Strings"},
                                   "limit": {"type": "integer", "minimum": 1}}},
"TimeoutsPassed": {
  "type": "object", "required": ["namespace", "enforcement", "processed", "enforced", "skipped", "results"],
  "properties": {"enforced": {"const": 0}}},
"SearchAttributes": {
  "type": "object", "required": ["system_attributes", "custom_attributes"],
  "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}}},
"NewSearchAttribute": {
  "type": "object", "required": ["name", "type"],
  "properties": {"name": {"type": "string", "pattern": "^[a-zA-Z][a-zA-Z0-9_]{0,127}$"},
                 "type": {"enum": ["keyword", "text", "int", "double", "bool", "datetime", "keyword_list"]}}},
"SearchAttributeChange": {
  "type": "object", "required": ["name", "outcome"],
  "properties": {"name": {"type": "string"}, "outcome": {"enum": ["created", "deleted"]}}},
"HistoryBundle": {
  "type": "object",
  "required": ["schema", "schema_version", "exported_at", "workflow", "payloads", "history_events", "commands",
               "signals", "updates", "tasks", "activities", "timers", "failures", "links", "redaction",
               "codec_schemas", "payload_manifest", "integrity"],
  "properties": {
    "schema": {"const": "durable-workflow.v2.history-export"},
    "workflow": {"type": "object", "required": ["instance_id", "run_id", "workflow_type"]},
    "history_events": {"type": "array", "items": {
      "type": "object", "required": ["id", "sequence", "type", "recorded_at", "payload"]}},
    "integrity": {"type": "object", "required": ["canonicalization", "checksum_algorithm", "checksum"]}}},
"NewNamespace": {
  "type": "object", "required": ["name"],
  "properties": {"name": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
                 "description": {"type": ["string", "null"], "maxLength": 1000},
                 "retention_days": {"type": "integer", "minimum": 1, "maximum": 365}}},
"NamespaceChange": {
  "type": "object",
  "properties": {"description": {"type": ["string", "null"], "maxLength": 1000},
                 "retention_days": {"type": "integer", "minimum": 1, "maximum": 365}}},
"Namespace": {
  "type": "object",
  "required": ["name", "description", "retention_days", "status", "external_payload_storage", "created_at",
               "updated_at"],
  "properties": {"name": {"type": "string"}, "description": {"type": ["string", "null"]},
                 "retention_days": {"type": "integer"}, "status": {"enum": ["active", "deprecated"]}}},
"WorkflowDebug": {
  "type": "object",
  "required": ["workflow_id", "run_id", "diagnostic_status", "execution", "pending_workflow_tasks",
               "pending_activities", "findings"],
  "properties": {
    "workflow_id": {"type": "string"}, "run_id": {"type": "string"},
    "diagnostic_status": {"enum": ["healthy", "attention", "closed"]},
    "execution": {"type": "object", "required": ["status", "workflow_type", "task_queue"]},
    "pending_workflow_tasks": {"type": "array", "items": {
      "type": "object", "required": ["task_id", "task_status", "current_attempt"]}},
    "pending_activities": {"type": "array", "items": {
      "type": "object", "required": ["activity_execution_id", "activity_type", "status"]}},
    "findings": {"type": "array", "items": {
      "type": "object", "required": ["severity", "code", "message"]}}}},
"DeletedNamespace": {
  "type": "object", "required": ["name", "status", "deleted", "deleted_is_complete"],
  "properties": {"name": {"type": "string"}, "status": {"const": "deleted"},
                 "deleted": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
                 "deleted_is_complete": {"type": "boolean"}}},
"Namespaces": {
  "type": "object", "required": ["namespaces"],
  "properties": {"namespaces": {"type": "array", "items": {"$ref": "#/components/schemas/Namespace"}}}}
})json";

}  // namespace fairlead::durable
