// Bodies of the worker plane.

#include "api/durable/openapi.h"

namespace fairlead::durable {

const char kWorkerSchemas[] = R"json({
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
    "max_concurrent_worker_sessions": {"type": "integer", "minimum": 0},
    "task_slots": {"type": "object"}, "process_metrics": {"type": "object"}}},
"SessionTerms": {
  "type": "object", "required": ["session_id"],
  "properties": {
    "session_id": {"$ref": "#/components/schemas/Text"},
    "queue": {"type": ["string", "null"], "minLength": 1, "maxLength": 255},
    "requirements": {"type": "array", "maxItems": 16, "items": {"$ref": "#/components/schemas/Text"}},
    "lease_seconds": {"type": "integer", "minimum": 1, "maximum": 31536000, "default": 120},
    "ttl_seconds": {"type": "integer", "minimum": 1, "maximum": 31536000, "default": 1800},
    "max_concurrent_activities": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1},
    "create_if_missing": {"type": "boolean", "default": true},
    "allow_reacquire_after_failure": {"type": "boolean", "default": true}}},
"SessionOfTask": {"allOf": [{"$ref": "#/components/schemas/SessionTerms"}, {
  "type": "object",
  "properties": {"status": {"enum": ["active", "closed", "expired", "orphaned"]},
                 "lease_owner": {"type": "string"},
                 "lease_expires_at": {"$ref": "#/components/schemas/Time"},
                 "ttl_expires_at": {"$ref": "#/components/schemas/Time"}}}]},
"SessionCreation": {"allOf": [{"$ref": "#/components/schemas/SessionTerms"}, {
  "type": "object", "required": ["worker_id"],
  "properties": {"worker_id": {"$ref": "#/components/schemas/Text"}}}]},
"SessionHeartbeat": {
  "type": "object", "required": ["worker_id"],
  "properties": {"worker_id": {"$ref": "#/components/schemas/Text"},
                 "lease_seconds": {"type": "integer", "minimum": 1, "maximum": 31536000}}},
"SessionClosing": {
  "type": "object", "required": ["worker_id"],
  "properties": {"worker_id": {"$ref": "#/components/schemas/Text"}, "reason": {"type": "string"}}},
"SessionHeld": {
  "type": "object", "required": ["admitted", "outcome", "session", "status", "reason"],
  "properties": {
    "admitted": {"const": true},
    "outcome": {"enum": ["created", "reused", "reacquired", "heartbeat_recorded", "closed", "already_closed"]},
    "session": {"allOf": [{"$ref": "#/components/schemas/SessionOfTask"}, {
      "type": "object",
      "required": ["namespace", "queue", "status", "lease_owner", "holder", "lease_expires_at",
                   "ttl_expires_at", "closed_at", "failure_reason", "active_activity_count",
                   "last_heartbeat_at", "created_at", "updated_at"],
      "properties": {"failure_reason": {"enum": [null, "ttl_expired", "lease_expired", "worker_heartbeat_stale"]},
                     "active_activity_count": {"type": "integer", "minimum": 0}}}]}}},
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
    "task_kinds": {"$ref": "#/components/schemas/Strings"},
    "build_id": {"type": "string", "maxLength": 255}}},
"PollStatus": {"enum": ["leased", "empty", "throttled", "unavailable", "draining"]},
"ValidationTask": {
  "type": "object",
  "required": ["task_kind", "update_validation_task_id", "update_validation_attempt", "workflow_id", "run_id",
               "workflow_type", "update_name", "payload_codec", "workflow_arguments", "update_arguments",
               "history_events", "task_queue", "lease_owner", "lease_expires_at"],
  "properties": {"task_kind": {"const": "update_validation"}}},
"ValidationPolled": {
  "type": "object", "required": ["task", "poll_status"],
  "properties": {"poll_status": {"$ref": "#/components/schemas/PollStatus"}, "task": {"anyOf": [
    {"type": "null"}, {"$ref": "#/components/schemas/ValidationTask"}]}}},
"ValidationLease": {
  "type": "object", "required": ["lease_owner", "update_validation_attempt"],
  "properties": {"lease_owner": {"$ref": "#/components/schemas/Text"},
                 "update_validation_attempt": {"type": "integer", "minimum": 1}}},
"ValidationRejection": {"allOf": [{"$ref": "#/components/schemas/ValidationLease"}, {
  "type": "object", "required": ["failure"],
  "properties": {"failure": {"$ref": "#/components/schemas/Failure"}}}]},
"ValidationEnded": {
  "type": "object", "required": ["update_validation_task_id", "update_validation_attempt", "outcome"],
  "properties": {"outcome": {"enum": ["approved", "rejected"]}}},
"WorkflowTaskPolled": {
  "type": "object", "required": ["task", "poll_status"],
  "properties": {"poll_status": {"$ref": "#/components/schemas/PollStatus"}, "task": {"anyOf": [
    {"type": "null"}, {"$ref": "#/components/schemas/ValidationTask"},
    {"type": "object",
     "required": ["task_id", "workflow_id", "run_id", "workflow_type", "workflow_task_attempt",
                  "payload_codec", "arguments", "history_events", "next_history_page_token",
                  "total_history_events", "task_queue", "lease_owner", "lease_expires_at"],
     "properties": {"workflow_task_attempt": {"type": "integer", "minimum": 1},
                    "arguments": {"$ref": "#/components/schemas/PayloadOrNull"},
                    "history_events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
                    "next_history_page_token": {"type": ["string", "null"]},
                    "cancellation_request": {"$ref": "#/components/schemas/AskedToStop"},
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
                    "worker_session": {"$ref": "#/components/schemas/SessionOfTask"},
                    "lease_expires_at": {"$ref": "#/components/schemas/Time"}}}]}}},
"QueryTaskPolled": {
  "type": "object", "required": ["task", "poll_status"],
  "properties": {"poll_status": {"$ref": "#/components/schemas/PollStatus"}, "task": {"anyOf": [
    {"type": "null"},
    {"type": "object",
     "required": ["query_task_id", "query_task_attempt", "workflow_id", "run_id", "workflow_type",
                  "query_name", "payload_codec", "workflow_arguments", "query_arguments",
                  "history_events", "task_queue", "lease_owner", "lease_expires_at", "query_admitted_at",
                  "query_deadline_at", "server_time"]}]}}},
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
    "worker_session": {"$ref": "#/components/schemas/SessionTerms"},
    "retry_policy": {"$ref": "#/components/schemas/RetryPolicy"}}},
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
  "properties": {"renewed": {"const": true}, "lease_expires_at": {"$ref": "#/components/schemas/Time"},
                 "cancellation_request": {"$ref": "#/components/schemas/AskedToStop"}}},
"CancellationDelivery": {"allOf": [{"$ref": "#/components/schemas/Lease"}, {
  "type": "object", "required": ["request_id", "sequence", "call_kind"],
  "properties": {
    "request_id": {"$ref": "#/components/schemas/Text"},
    "sequence": {"type": "integer", "minimum": 1},
    "call_kind": {"enum": ["activity", "local_activity", "timer", "condition", "child", "parallel",
                           "selection_handle"]},
    "sequence_span": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000},
    "operation_sequence": {"type": ["integer", "null"], "minimum": 1},
    "operation_sequence_span": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000}}}]},
"CancellationDelivered": {
  "type": "object",
  "required": ["delivered", "task_id", "workflow_run_id", "request_id", "sequence", "call_kind",
               "sequence_span", "operation_sequence", "operation_sequence_span", "claim_released", "reason"],
  "properties": {"delivered": {"type": "boolean"}, "claim_released": {"type": "boolean"},
                 "reason": {"enum": ["cancellation_waiting_for_activity", "cancellation_waiting_for_child",
                                     null]}}},
"StopAcknowledgement": {"allOf": [{"$ref": "#/components/schemas/Attempt"}, {
  "type": "object", "required": ["request_id"],
  "properties": {"request_id": {"$ref": "#/components/schemas/Text"}}}]},
"StopAcknowledged": {
  "type": "object",
  "required": ["task_id", "activity_attempt_id", "lease_owner", "request_id", "acknowledged", "duplicate",
               "heartbeat_recorded", "history_event_id", "reason"],
  "properties": {"acknowledged": {"const": true}, "duplicate": {"type": "boolean"},
                 "heartbeat_recorded": {"const": false}}},
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
               "heartbeat_recorded", "lease_expires_at", "last_heartbeat_at", "reason"],
  "properties": {"cancel_requested": {"type": "boolean"}, "can_continue": {"type": "boolean"},
                 "heartbeat_recorded": {"type": "boolean"}, "reason": {"type": ["string", "null"]},
                 "lease_expires_at": {"$ref": "#/components/schemas/TimeOrNull"},
                 "last_heartbeat_at": {"$ref": "#/components/schemas/TimeOrNull"}}},
"ActivityObserved": {"allOf": [{"$ref": "#/components/schemas/ActivityBeaten"}, {
  "type": "object", "required": ["workflow_task_id", "workflow_instance_id", "workflow_run_id",
                                 "attempt_number", "server_time"],
  "properties": {"heartbeat_recorded": {"const": false},
                 "cancellation_acknowledgement": {
                   "type": "object",
                   "required": ["request_id", "root_request_id", "cleanup_deadline_at",
                                "cancellation_history_event_id", "callback_state"],
                   "properties": {"callback_state": {"enum": ["unknown", "stopped"]}}},
                 "server_time": {"$ref": "#/components/schemas/Time"}}}]},
"ActivityRenewed": {"allOf": [{"$ref": "#/components/schemas/ActivityObserved"}, {
  "type": "object", "required": ["lease_renewed", "activity_execution_id"],
  "properties": {"lease_renewed": {"type": "boolean"}, "activity_execution_id": {"type": "string"},
                 "lease_expires_at": {"$ref": "#/components/schemas/Time"}}}]},
"QueryLease": {
  "type": "object", "required": ["lease_owner", "query_task_attempt"],
  "properties": {"lease_owner": {"$ref": "#/components/schemas/Text"},
                 "query_task_attempt": {"type": "integer", "minimum": 1}}},
"QueryCompletion": {"allOf": [{"$ref": "#/components/schemas/QueryLease"}, {
  "type": "object", "properties": {"result_envelope": {"$ref": "#/components/schemas/PayloadOrNull"}}}]},
"QueryFailure": {"allOf": [{"$ref": "#/components/schemas/QueryLease"}, {
  "type": "object", "required": ["failure"],
  "properties": {"failure": {"$ref": "#/components/schemas/Failure"}}}]},
"QueryObserved": {
  "type": "object",
  "required": ["query_task_id", "query_task_attempt", "query_task_status", "lease_owner", "can_continue", "reason",
               "lease_expires_at", "query_admitted_at", "query_deadline_at", "server_time"],
  "properties": {"query_task_status": {"const": "leased"}, "can_continue": {"const": true},
                 "lease_expires_at": {"$ref": "#/components/schemas/Time"},
                 "query_deadline_at": {"$ref": "#/components/schemas/Time"}}},
"QueryEnded": {
  "type": "object", "required": ["query_task_id", "query_task_attempt", "outcome"],
  "properties": {"outcome": {"enum": ["completed", "failed"]}}}
})json";

}  // namespace fairlead::durable
