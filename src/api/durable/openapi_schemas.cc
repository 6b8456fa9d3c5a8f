// What bodies look like: JSON Schema, as OpenAPI 3.1 has it. Members that are not named here may be
// there as well; a `required` member of an answer always is.

#include "api/durable/openapi.h"
#include "base/assert.h"

namespace fairlead::durable {

namespace {

constexpr char kShared[] = R"json({
"Nothing": {"type": "object"},
"Anything": {"type": "object"},
"OpenApi": {"type": "object", "required": ["openapi", "info", "paths", "components"]},
"Text": {"type": "string", "minLength": 1, "maxLength": 255},
"Time": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z$"},
"TimeOrNull": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]},
"Strings": {"type": "array", "items": {"type": "string"}},
"Errors": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Strings"}},
"Error": {
  "type": "object", "required": ["reason", "message"],
  "properties": {"reason": {"type": "string", "minLength": 1}, "message": {"type": "string"}}},
"WorkerError": {
  "type": "object", "required": ["reason", "message", "error"],
  "properties": {"reason": {"type": "string", "minLength": 1}, "message": {"type": "string"},
                 "error": {"type": "string"}}},
"ValidationError": {
  "type": "object", "required": ["reason", "message", "errors", "validation_errors"],
  "properties": {"reason": {"type": "string"}, "message": {"type": "string"},
                 "errors": {"$ref": "#/components/schemas/Errors"},
                 "validation_errors": {"$ref": "#/components/schemas/Errors"}}},
"UpdateRefused": {"anyOf": [{"$ref": "#/components/schemas/ValidationError"}, {
  "type": "object", "required": ["reason", "message", "update_id", "update_status", "failure_message"],
  "properties": {"update_status": {"const": "failed"}, "failure_message": {"type": "string"}}}]},
"WorkerAnswer": {
  "type": "object", "required": ["protocol_version", "server_capabilities"],
  "properties": {"protocol_version": {"const": "1.20"}, "server_capabilities": {"type": "object"}}},
"ControlAnswer": {
  "type": "object", "required": ["control_plane"],
  "properties": {"control_plane": {
    "type": "object", "required": ["schema", "version", "operation", "contract"],
    "properties": {"schema": {"const": "durable-workflow.v2.control-plane-response"},
                   "version": {"const": 1}, "operation": {"type": "string"},
                   "contract": {"type": "object", "required": ["required_fields", "success_fields"]}}}}},
"Payload": {
  "type": "object", "required": ["codec", "blob"],
  "properties": {"codec": {"const": "avro"}, "blob": {"type": "string", "minLength": 1}}},
"PayloadOrNull": {"anyOf": [{"$ref": "#/components/schemas/Payload"}, {"type": "null"}]},
"Arguments": {"anyOf": [{"$ref": "#/components/schemas/Payload"}, {"type": "array"}, {"type": "null"}]},
"Priority": {
  "type": "object",
  "properties": {"priority_key": {"type": ["integer", "null"], "minimum": 1, "maximum": 5},
                 "fairness_key": {"type": ["string", "null"], "maxLength": 64},
                 "fairness_weight": {"type": ["number", "null"], "exclusiveMinimum": 0}}},
"Event": {
  "type": "object", "required": ["id", "sequence", "event_type", "timestamp", "recorded_at", "payload"],
  "properties": {"id": {"type": "string"}, "sequence": {"type": "integer", "minimum": 1},
                 "event_type": {"type": "string"}, "timestamp": {"$ref": "#/components/schemas/Time"},
                 "payload": {"type": "object"}}},
"Health": {
  "type": "object", "required": ["status", "timestamp", "checks"],
  "properties": {"status": {"enum": ["serving", "degraded", "ready", "not_ready"]},
                 "timestamp": {"$ref": "#/components/schemas/Time"}, "checks": {"type": "object"}}},
"ClusterInfo": {
  "type": "object",
  "required": ["server_id", "version", "default_namespace", "capabilities", "limits", "control_plane",
               "worker_protocol", "auth_composition_contract"]}
})json";

constexpr char kRuns[] = R"json({
"StartWorkflow": {
  "type": "object", "required": ["workflow_type"],
  "properties": {
    "workflow_type": {"$ref": "#/components/schemas/Text"},
    "workflow_id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
    "task_queue": {"type": "string", "maxLength": 255, "default": "default"},
    "input": {"$ref": "#/components/schemas/Arguments"},
    "execution_timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 315360000},
    "run_timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 315360000},
    "duplicate_policy": {"enum": ["fail", "use-existing"]},
    "memo": {"type": "object"},
    "search_attributes": {"type": "object"},
    "business_key": {"type": "string", "maxLength": 255},
    "priority": {"anyOf": [{"$ref": "#/components/schemas/Priority"}, {"type": "integer"}]}}},
"RunStarted": {
  "type": "object",
  "required": ["workflow_id", "run_id", "workflow_type", "namespace", "task_queue", "status", "outcome",
               "payload_codec", "business_key"],
  "properties": {"workflow_id": {"type": "string"}, "run_id": {"type": "string"},
                 "workflow_type": {"type": "string"}, "status": {"enum": ["pending", "running"]},
                 "outcome": {"enum": ["started_new", "returned_existing_active"]}}},
"RunStatus": {"enum": ["pending", "running", "waiting", "completed", "failed", "cancelled", "terminated"]},
"Run": {
  "type": "object",
  "required": ["workflow_id", "run_id", "namespace", "workflow_type", "business_key", "status",
               "status_bucket", "is_terminal", "closed_reason", "task_queue", "run_number", "run_count",
               "is_current_run", "payload_codec", "input_envelope", "output_envelope", "started_at",
               "closed_at", "wait_kind", "priority", "memo", "search_attributes", "actions"],
  "properties": {
    "workflow_id": {"type": "string"}, "run_id": {"type": "string"},
    "business_key": {"type": ["string", "null"]},
    "status": {"$ref": "#/components/schemas/RunStatus"},
    "status_bucket": {"enum": ["running", "completed", "failed"]},
    "is_terminal": {"type": "boolean"}, "closed_reason": {"type": ["string", "null"]},
    "run_number": {"type": "integer", "minimum": 1}, "run_count": {"type": ["integer", "null"]},
    "input_envelope": {"$ref": "#/components/schemas/PayloadOrNull"},
    "output_envelope": {"$ref": "#/components/schemas/PayloadOrNull"},
    "started_at": {"$ref": "#/components/schemas/Time"},
    "closed_at": {"$ref": "#/components/schemas/TimeOrNull"},
    "priority": {"$ref": "#/components/schemas/Priority"},
    "memo": {"type": "object"}, "search_attributes": {"type": "object"},
    "actions": {"type": "object", "additionalProperties": {"type": "boolean"}}}},
"Workflows": {
  "type": "object", "required": ["workflows", "workflow_count", "next_page_token"],
  "properties": {"workflow_count": {"type": "integer", "minimum": 0},
                 "next_page_token": {"type": ["string", "null"]},
                 "workflows": {"type": "array", "items": {
    "type": "object",
    "required": ["workflow_id", "run_id", "workflow_type", "business_key", "status", "status_bucket",
                 "task_queue", "is_terminal", "started_at", "closed_at", "search_attributes", "memo",
                 "namespace", "payload_codec", "priority"],
    "properties": {"status": {"$ref": "#/components/schemas/RunStatus"},
                   "business_key": {"type": ["string", "null"]},
                   "started_at": {"$ref": "#/components/schemas/Time"},
                   "closed_at": {"$ref": "#/components/schemas/TimeOrNull"}}}}}},
"Runs": {
  "type": "object", "required": ["workflow_id", "run_count", "runs"],
  "properties": {"run_count": {"type": "integer", "minimum": 1}, "runs": {"type": "array", "items": {
    "type": "object",
    "required": ["run_id", "run_number", "workflow_type", "status", "task_queue", "started_at", "closed_at"],
    "properties": {"status": {"$ref": "#/components/schemas/RunStatus"},
                   "started_at": {"$ref": "#/components/schemas/Time"},
                   "closed_at": {"$ref": "#/components/schemas/TimeOrNull"}}}}}},
"History": {
  "type": "object", "required": ["workflow_id", "run_id", "events", "next_page_token"],
  "properties": {"events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
                 "next_page_token": {"type": ["string", "null"]}}},
"Command": {
  "type": "object",
  "properties": {"input": {"$ref": "#/components/schemas/Arguments"},
                 "request_id": {"type": "string", "maxLength": 255}}},
"Stop": {
  "type": "object",
  "properties": {"reason": {"type": "string", "maxLength": 1000},
                 "request_id": {"type": "string", "maxLength": 255}}},
"CommandReceipt": {
  "type": "object",
  "required": ["workflow_id", "run_id", "command_id", "command_sequence", "command_status", "outcome",
               "reason"],
  "properties": {"command_sequence": {"type": "integer", "minimum": 1},
                 "command_status": {"const": "accepted"},
                 "outcome": {"enum": ["signal_received", "cancelled", "terminated"]}}},
"Repaired": {
  "type": "object", "required": ["workflow_id", "run_id", "outcome"],
  "properties": {"outcome": {"enum": ["repair_dispatched", "repair_not_needed"]}}},
"Query": {
  "type": "object", "properties": {"input": {"$ref": "#/components/schemas/Arguments"}}},
"QueryResult": {
  "type": "object",
  "required": ["workflow_id", "run_id", "query_name", "target_scope", "result", "result_envelope", "reason"],
  "properties": {"result_envelope": {"$ref": "#/components/schemas/PayloadOrNull"}}},
"Update": {
  "type": "object",
  "properties": {"input": {"$ref": "#/components/schemas/Arguments"},
                 "wait_for": {"enum": ["accepted", "completed"]},
                 "wait_timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 3600},
                 "request_id": {"type": "string", "maxLength": 255}}},
"UpdateResult": {
  "type": "object",
  "required": ["workflow_id", "run_id", "update_id", "update_name", "update_status", "outcome", "wait_for",
               "wait_timed_out", "wait_timeout_seconds", "result", "result_envelope"],
  "properties": {"update_status": {"enum": ["accepted", "completed"]},
                 "result_envelope": {"$ref": "#/components/schemas/PayloadOrNull"}}}
})json";

constexpr char kOperators[] = R"json({
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
"Namespaces": {
  "type": "object", "required": ["namespaces"],
  "properties": {"namespaces": {"type": "array", "items": {"$ref": "#/components/schemas/Namespace"}}}}
})json";

constexpr char kWorkers[] = R"json({
"Registration": {
  "type": "object", "required": ["task_queue", "runtime"],
  "properties": {
    "worker_id": {"$ref": "#/components/schemas/Text"},
    "task_queue": {"$ref": "#/components/schemas/Text"},
    "runtime": {"type": "string", "minLength": 1, "maxLength": 64},
    "sdk_version": {"type": "string", "maxLength": 64},
    "build_id": {"type": "string", "maxLength": 255},
    "supported_workflow_types": {"$ref": "#/components/schemas/Strings"},
    "supported_activity_types": {"$ref": "#/components/schemas/Strings"},
    "workflow_definition_fingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    "workflow_command_contracts": {"type": "object"},
    "capabilities": {"$ref": "#/components/schemas/Strings"},
    "capability_manifest": {"type": "object"},
    "max_concurrent_workflow_tasks": {"type": "integer", "minimum": 0},
    "max_concurrent_activity_tasks": {"type": "integer", "minimum": 0},
    "task_slots": {"type": "object"}, "process_metrics": {"type": "object"}}},
"Registered": {
  "type": "object",
  "required": ["worker_id", "registered", "namespace", "task_queue", "status", "heartbeat_interval_seconds"],
  "properties": {"registered": {"const": true}, "heartbeat_interval_seconds": {"type": "integer", "minimum": 1}}},
"WorkerHeartbeat": {
  "type": "object", "required": ["worker_id"],
  "properties": {"worker_id": {"$ref": "#/components/schemas/Text"}, "task_slots": {"type": "object"},
                 "process_metrics": {"type": "object"}}},
"WorkerAcknowledged": {
  "type": "object", "required": ["worker_id", "acknowledged", "heartbeat_interval_seconds"],
  "properties": {"acknowledged": {"const": true}}},
"Poll": {
  "type": "object", "required": ["worker_id", "task_queue"],
  "properties": {
    "worker_id": {"$ref": "#/components/schemas/Text"},
    "task_queue": {"$ref": "#/components/schemas/Text"},
    "poll_request_id": {"type": "string", "maxLength": 255},
    "timeout_seconds": {"type": "integer", "minimum": 0, "maximum": 60},
    "history_page_size": {"type": "integer", "minimum": 1, "maximum": 1000},
    "build_id": {"type": "string", "maxLength": 255}}},
"PollStatus": {"enum": ["leased", "empty", "throttled", "unavailable", "draining"]},
"WorkflowTaskPolled": {
  "type": "object", "required": ["task", "poll_status"],
  "properties": {"poll_status": {"$ref": "#/components/schemas/PollStatus"}, "task": {"anyOf": [
    {"type": "null"},
    {"type": "object",
     "required": ["task_id", "workflow_id", "run_id", "workflow_type", "workflow_task_attempt",
                  "payload_codec", "arguments", "history_events", "next_history_page_token",
                  "total_history_events", "task_queue", "lease_owner", "lease_expires_at"],
     "properties": {"workflow_task_attempt": {"type": "integer", "minimum": 1},
                    "arguments": {"$ref": "#/components/schemas/PayloadOrNull"},
                    "history_events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
                    "next_history_page_token": {"type": ["string", "null"]},
                    "lease_expires_at": {"$ref": "#/components/schemas/Time"}}}]}}},
"ActivityTaskPolled": {
  "type": "object", "required": ["task", "poll_status"],
  "properties": {"poll_status": {"$ref": "#/components/schemas/PollStatus"}, "task": {"anyOf": [
    {"type": "null"},
    {"type": "object",
     "required": ["task_id", "workflow_id", "run_id", "activity_execution_id", "activity_attempt_id",
                  "attempt_number", "activity_type", "payload_codec", "arguments", "retry_policy",
                  "task_queue", "lease_owner", "lease_expires_at", "priority", "idempotency_key"],
     "properties": {"attempt_number": {"type": "integer", "minimum": 1},
                    "arguments": {"$ref": "#/components/schemas/PayloadOrNull"},
                    "priority": {"$ref": "#/components/schemas/Priority"},
                    "lease_expires_at": {"$ref": "#/components/schemas/Time"}}}]}}},
"QueryTaskPolled": {
  "type": "object", "required": ["task", "poll_status"],
  "properties": {"poll_status": {"$ref": "#/components/schemas/PollStatus"}, "task": {"anyOf": [
    {"type": "null"},
    {"type": "object",
     "required": ["query_task_id", "query_task_attempt", "workflow_id", "run_id", "workflow_type",
                  "query_name", "payload_codec", "workflow_arguments", "query_arguments",
                  "history_events", "task_queue", "lease_owner", "lease_expires_at"]}]}}},
"Lease": {
  "type": "object", "required": ["lease_owner", "workflow_task_attempt"],
  "properties": {"lease_owner": {"$ref": "#/components/schemas/Text"},
                 "workflow_task_attempt": {"type": "integer", "minimum": 1, "maximum": 2147483647}}},
"TaskHeartbeat": {"$ref": "#/components/schemas/Lease"},
"TaskHistory": {"allOf": [{"$ref": "#/components/schemas/Lease"}, {
  "type": "object", "required": ["next_history_page_token"],
  "properties": {"next_history_page_token": {"type": "string"},
                 "history_page_size": {"type": "integer", "minimum": 1, "maximum": 1000}}}]},
"TaskHistoryPage": {
  "type": "object",
  "required": ["task_id", "workflow_task_attempt", "history_events", "next_history_page_token",
               "total_history_events"],
  "properties": {"history_events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
                 "next_history_page_token": {"type": ["string", "null"]}}},
"TaskCommand": {
  "type": "object", "required": ["type"],
  "properties": {
    "type": {"enum": ["schedule_activity", "start_timer", "start_child_workflow", "open_condition_wait",
                      "record_side_effect", "record_version_marker", "upsert_search_attributes",
                      "upsert_memo", "record_local_activity", "complete_update", "fail_update",
                      "complete_workflow", "fail_workflow", "continue_as_new"]},
    "activity_type": {"type": "string"}, "workflow_type": {"type": "string"}, "queue": {"type": "string"},
    "arguments": {"$ref": "#/components/schemas/PayloadOrNull"},
    "delay_seconds": {"type": "integer", "minimum": 0}, "message": {"type": "string"},
    "priority": {"$ref": "#/components/schemas/Priority"},
    "retry_policy": {"type": "object", "properties": {
      "max_attempts": {"type": "integer", "minimum": 1},
      "backoff_seconds": {"type": "array", "items": {"type": "integer", "minimum": 0}},
      "non_retryable_error_types": {"$ref": "#/components/schemas/Strings"}}}}},
"TaskCompletion": {"allOf": [{"$ref": "#/components/schemas/Lease"}, {
  "type": "object", "required": ["commands"],
  "properties": {"commands": {"type": "array", "minItems": 1, "maxItems": 1000,
                              "items": {"$ref": "#/components/schemas/TaskCommand"}}}}]},
"TaskCompleted": {
  "type": "object",
  "required": ["task_id", "workflow_task_attempt", "outcome", "recorded", "run_id", "run_status",
               "created_task_ids"],
  "properties": {"outcome": {"const": "completed"}, "run_status": {"$ref": "#/components/schemas/RunStatus"},
                 "created_task_ids": {"$ref": "#/components/schemas/Strings"}}},
"Failure": {
  "type": "object", "required": ["message"],
  "properties": {"message": {"type": "string", "minLength": 1}, "type": {"type": "string"},
                 "reason": {"type": "string"}, "stack_trace": {"type": "string"},
                 "non_retryable": {"type": "boolean"}}},
"TaskFailure": {"allOf": [{"$ref": "#/components/schemas/Lease"}, {
  "type": "object", "required": ["failure"],
  "properties": {"failure": {"$ref": "#/components/schemas/Failure"}}}]},
"TaskFailed": {
  "type": "object", "required": ["task_id", "workflow_task_attempt", "outcome", "recorded", "next_task_id"],
  "properties": {"outcome": {"enum": ["failed", "waiting_for_history"]},
                 "next_task_id": {"type": ["string", "null"]}}},
"TaskRenewed": {
  "type": "object",
  "required": ["task_id", "lease_owner", "workflow_task_attempt", "renewed", "lease_expires_at"],
  "properties": {"renewed": {"const": true}, "lease_expires_at": {"$ref": "#/components/schemas/Time"}}},
"Attempt": {
  "type": "object", "required": ["lease_owner", "activity_attempt_id"],
  "properties": {"lease_owner": {"$ref": "#/components/schemas/Text"},
                 "activity_attempt_id": {"type": "string", "minLength": 1}}},
"ActivityCompletion": {"allOf": [{"$ref": "#/components/schemas/Attempt"}, {
  "type": "object", "properties": {"result": {"$ref": "#/components/schemas/PayloadOrNull"}}}]},
"ActivityFailure": {"allOf": [{"$ref": "#/components/schemas/Attempt"}, {
  "type": "object", "required": ["failure"],
  "properties": {"failure": {"$ref": "#/components/schemas/Failure"}}}]},
"ActivityHeartbeat": {"allOf": [{"$ref": "#/components/schemas/Attempt"}, {
  "type": "object", "properties": {"details": {"type": "object"}}}]},
"ActivityEnded": {
  "type": "object", "required": ["task_id", "activity_attempt_id", "outcome", "recorded"],
  "properties": {"outcome": {"enum": ["completed", "failed"]}}},
"ActivityBeaten": {
  "type": "object",
  "required": ["task_id", "activity_attempt_id", "lease_owner", "cancel_requested", "can_continue",
               "heartbeat_recorded", "lease_expires_at", "last_heartbeat_at"],
  "properties": {"cancel_requested": {"type": "boolean"}, "can_continue": {"type": "boolean"}}},
"QueryLease": {
  "type": "object", "required": ["lease_owner", "query_task_attempt"],
  "properties": {"lease_owner": {"$ref": "#/components/schemas/Text"},
                 "query_task_attempt": {"type": "integer", "minimum": 1}}},
"QueryCompletion": {"allOf": [{"$ref": "#/components/schemas/QueryLease"}, {
  "type": "object", "properties": {"result_envelope": {"$ref": "#/components/schemas/PayloadOrNull"}}}]},
"QueryFailure": {"allOf": [{"$ref": "#/components/schemas/QueryLease"}, {
  "type": "object", "required": ["failure"],
  "properties": {"failure": {"$ref": "#/components/schemas/Failure"}}}]},
"QueryEnded": {
  "type": "object", "required": ["query_task_id", "query_task_attempt", "outcome"],
  "properties": {"outcome": {"enum": ["completed", "failed"]}}}
})json";

constexpr char kParameters[] = R"json({
"ControlVersion": {"name": "X-Durable-Workflow-Control-Plane-Version", "in": "header", "required": true,
                   "schema": {"type": "string", "const": "2"}},
"WorkerVersion": {"name": "X-Durable-Workflow-Protocol-Version", "in": "header", "required": true,
                  "description": "1.0 to 1.20",
                  "schema": {"type": "string", "pattern": "^1[.](1?[0-9]|20)$"}},
"Namespace": {"name": "X-Namespace", "in": "header", "required": false,
              "description": "The server's default if neither this nor the parameter `namespace` is there.",
              "schema": {"type": "string"}},
"history_page_size": {"name": "page_size", "in": "query", "required": false,
                      "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}},
"next_page_token": {"name": "next_page_token", "in": "query", "required": false,
                    "schema": {"type": "string"}},
"workflow_page_size": {"name": "page_size", "in": "query", "required": false,
                       "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}},
"workflow_type": {"name": "workflow_type", "in": "query", "required": false, "schema": {"type": "string"}},
"run_status": {"name": "status", "in": "query", "required": false,
               "schema": {"enum": ["running", "completed", "failed"]}},
"query": {"name": "query", "in": "query", "required": false,
          "description": "A part of the workflow id or of the business key.", "schema": {"type": "string"}},
"wait_new_event": {"name": "wait_new_event", "in": "query", "required": false,
                   "schema": {"type": "boolean", "default": false}},
"task_queue": {"name": "task_queue", "in": "query", "required": false, "schema": {"type": "string"}},
"worker_status": {"name": "status", "in": "query", "required": false,
                  "schema": {"enum": ["active", "draining", "stale"]}}
})json";

json::object parsed(std::string_view text) {
  auto value = parse_json(text);
  FL_ASSERT(value.has_value() && value->is_object(), "the schemas of this file are JSON");
  return std::move(value->as_object());
}

}  // namespace

json::object openapi_components() {
  json::object schemas;
  for (const std::string_view part : {std::string_view(kShared), std::string_view(kRuns),
                                      std::string_view(kOperators), std::string_view(kWorkers)}) {
    for (auto& entry : parsed(part)) schemas[entry.key()] = entry.value();
  }
  return {
      {"schemas", std::move(schemas)},
      {"parameters", parsed(kParameters)},
      {"securitySchemes",
       {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
        {"signature",
         {{"type", "apiKey"},
          {"in", "header"},
          {"name", "X-Signature"},
          {"description", "The body's HMAC-SHA256 with a key of the server, in small hex."}}}}}};
}

}  // namespace fairlead::durable
