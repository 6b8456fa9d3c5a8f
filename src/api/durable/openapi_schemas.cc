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
"RetryPolicy": {
  "type": "object",
  "properties": {"max_attempts": {"type": "integer", "minimum": 1},
                 "backoff_seconds": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                 "non_retryable_error_types": {"$ref": "#/components/schemas/Strings"}}},
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
"CancellationRequest": {
  "type": "object",
  "properties": {"reason": {"type": ["string", "null"], "maxLength": 1000},
                 "cleanup_timeout_seconds": {"type": ["integer", "null"], "minimum": 1, "maximum": 3600}}},
"AskedToStop": {
  "type": "object",
  "required": ["request_id", "requested_at", "cleanup_deadline_at", "delivery_sequence",
               "history_refresh_page_token"],
  "properties": {"request_id": {"type": "string", "minLength": 1},
                 "requested_at": {"$ref": "#/components/schemas/Time"},
                 "cleanup_deadline_at": {"$ref": "#/components/schemas/Time"},
                 "delivery_sequence": {"type": ["integer", "null"]}}},
"CancellationAccepted": {
  "type": "object",
  "required": ["workflow_id", "run_id", "accepted", "duplicate", "run_status", "outcome",
               "cancellation_request", "reason"],
  "properties": {"accepted": {"const": true}, "duplicate": {"type": "boolean"},
                 "outcome": {"const": "cancellation_requested"},
                 "cancellation_request": {"$ref": "#/components/schemas/AskedToStop"}}},
"StreamMessage": {
  "type": "object", "required": ["message_id"],
  "properties": {"message_id": {"type": "string", "minLength": 1, "maxLength": 200},
                 "input": {"$ref": "#/components/schemas/Arguments"}}},
"MessageAppended": {
  "type": "object",
  "required": ["workflow_id", "run_id", "stream_name", "message_id", "position", "outcome", "command_id"],
  "properties": {"outcome": {"const": "message_appended"}, "position": {"type": "integer", "minimum": 1}}},
"BridgeEvent": {
  "type": "object", "required": ["action", "idempotency_key", "target"],
  "properties": {"action": {"enum": ["start_workflow", "signal_workflow", "update_workflow"]},
                 "idempotency_key": {"type": "string", "minLength": 1, "maxLength": 255},
                 "target": {"type": "object"},
                 "input": {"type": ["object", "array"]},
                 "correlation": {"type": "object"}}},
"BridgeOutcome": {
  "type": "object",
  "required": ["schema", "version", "adapter", "action", "accepted", "outcome", "reason",
               "idempotency_key", "target"],
  "properties": {"schema": {"const": "durable-workflow.v2.bridge-adapter-outcome.contract"},
                 "version": {"const": 1},
                 "accepted": {"type": "boolean"},
                 "outcome": {"enum": ["accepted", "duplicate", "rejected"]},
                 "target": {"type": "object"},
                 "control_plane_outcome": {"type": ["string", "null"]}}},
"Redrive": {"type": "object", "properties": {"request_id": {"type": "string", "maxLength": 255}}},
"Redriven": {
  "type": "object",
  "required": ["workflow_id", "run_id", "redriven_from_run_id", "command_status", "outcome", "duplicate"],
  "properties": {"outcome": {"const": "redriven"}, "duplicate": {"type": "boolean"}}},
"Archived": {
  "type": "object", "required": ["workflow_id", "run_id", "command_status", "outcome", "archived_at", "reason"],
  "properties": {"outcome": {"enum": ["archived", "archive_not_needed"]},
                 "command_status": {"const": "accepted"},
                 "archived_at": {"$ref": "#/components/schemas/Time"}}},
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
"StartActivity": {
  "type": "object", "required": ["activity_type", "task_queue"],
  "properties": {
    "activity_type": {"$ref": "#/components/schemas/Text"},
    "task_queue": {"$ref": "#/components/schemas/Text"},
    "activity_id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
    "input": {"$ref": "#/components/schemas/Arguments"},
    "business_key": {"type": "string", "maxLength": 255},
    "retry_policy": {"$ref": "#/components/schemas/RetryPolicy"},
    "start_to_close_timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 315360000},
    "schedule_to_start_timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 315360000},
    "schedule_to_close_timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 315360000},
    "heartbeat_timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 315360000},
    "priority": {"anyOf": [{"$ref": "#/components/schemas/Priority"}, {"type": "integer"}]}}},
"ActivityStarted": {
  "type": "object",
  "required": ["activity_id", "workflow_run_id", "activity_execution_id", "workflow_type", "activity_type",
               "task_queue", "namespace", "status", "outcome", "payload_codec", "business_key"],
  "properties": {"status": {"const": "pending"}, "outcome": {"const": "started_new"}}},
"Activity": {
  "type": "object",
  "required": ["activity_id", "workflow_run_id", "activity_execution_id", "workflow_type", "activity_type",
               "activity_class", "task_queue", "namespace", "status", "activity_status", "closed_reason",
               "business_key", "payload_codec", "priority", "started_at", "closed_at", "last_progress_at",
               "last_heartbeat_at", "schedule_to_start_deadline_at", "schedule_to_close_deadline_at",
               "attempt_count", "result"],
  "properties": {
    "status": {"$ref": "#/components/schemas/RunStatus"},
    "activity_status": {"enum": ["pending", "running", "completed", "failed", "cancelled"]},
    "closed_reason": {"type": ["string", "null"]}, "business_key": {"type": ["string", "null"]},
    "priority": {"$ref": "#/components/schemas/Priority"},
    "started_at": {"$ref": "#/components/schemas/Time"},
    "closed_at": {"$ref": "#/components/schemas/TimeOrNull"},
    "last_heartbeat_at": {"$ref": "#/components/schemas/TimeOrNull"},
    "attempt_count": {"type": "integer", "minimum": 0},
    "result": {"$ref": "#/components/schemas/PayloadOrNull"}}},
"Activities": {
  "type": "object", "required": ["activities", "activity_count", "next_page_token"],
  "properties": {"activity_count": {"type": "integer", "minimum": 0},
                 "next_page_token": {"type": ["string", "null"]},
                 "activities": {"type": "array", "items": {"$ref": "#/components/schemas/Activity"}}}},
"UpdateResult": {
  "type": "object",
  "required": ["workflow_id", "run_id", "update_id", "update_name", "update_status", "outcome", "wait_for",
               "wait_timed_out", "wait_timeout_seconds", "result", "result_envelope"],
  "properties": {"update_status": {"enum": ["accepted", "completed"]},
                 "result_envelope": {"$ref": "#/components/schemas/PayloadOrNull"}}}
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
"schedule_status": {"name": "status", "in": "query", "required": false,
                    "schema": {"enum": ["active", "paused"]}},
"schedule_query": {"name": "query", "in": "query", "required": false,
                   "description": "A part of the schedule id.", "schema": {"type": "string"}},
"event_limit": {"name": "limit", "in": "query", "required": false,
                "schema": {"type": "integer", "minimum": 1, "default": 100}},
"after_sequence": {"name": "after_sequence", "in": "query", "required": false,
                   "schema": {"type": "integer", "minimum": 0}},
"wait_new_event": {"name": "wait_new_event", "in": "query", "required": false,
                   "schema": {"type": "boolean", "default": false}},
"lease_owner": {"name": "lease_owner", "in": "query", "required": true,
                "schema": {"$ref": "#/components/schemas/Text"}},
"query_task_attempt": {"name": "query_task_attempt", "in": "query", "required": true,
                       "schema": {"type": "integer", "minimum": 1}},
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
  for (const std::string_view part :
       {std::string_view(kShared), std::string_view(kRuns), std::string_view(kOperatorSchemas),
        std::string_view(kWorkerSchemas), std::string_view(kScheduleSchemas)}) {
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
