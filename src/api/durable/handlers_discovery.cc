// What a client asks before anything else: is it there, and what does it speak?

#include "api/durable/desk.h"
#include "api/durable/sessions.h"

namespace fairlead::durable {

json::object server_capabilities(const Options& options) {
  return {
      {"query_tasks", true},
      {"query_task_authority", true},
      {"activity_lease_renewal", true},
      {"cooperative_cancellation", true},
      {"long_poll_timeout", options.poll_timeout / kSecond},
      {"history_page_size_default", options.history_page_default},
      {"history_page_size_max", options.history_page_max},
      {"workflow_task_poll_request_idempotency", true},
      {"activity_retry_policy", true},
      {"activity_timeouts", true},
      {"child_workflow_retry_policy", true},
      {"child_workflow_timeouts", true},
      {"parent_close_policy", true},
      {"non_retryable_failures", true},
      {"supported_workflow_task_commands",
       {"complete_workflow", "fail_workflow", "continue_as_new", "schedule_activity", "start_timer",
        "start_child_workflow", "complete_update", "fail_update", "record_side_effect",
        "record_version_marker", "upsert_search_attributes", "upsert_memo", "open_condition_wait",
        "record_local_activity", "cancel_selection_operation"}},
      {"workflow_memo_updates", {{"supported", true}}},
      {"update_validation_tasks", true},
      {"worker_session_verbs", json::array{"create", "heartbeat", "close"}},
      {"synchronous_update_validation",
       {{"supported", true},
        {"acceptance_boundary", "validator_approved"},
        {"worker_capability", "update_validation_tasks"},
        {"workflow_contract_field", "update_validators"},
        {"task_poll",
         {{"strategy", "multiplexed"},
          {"endpoint", "/worker/workflow-tasks/poll"},
          {"request_field", "task_kinds"},
          {"response_discriminator", "task.task_kind"},
          {"task_kinds", json::array{"workflow", "update_validation"}}}}}}};
}

void Door::Impl::health(CallPtr call) {
  const bool is_up = is_serving_();
  call->answer(is_up ? 200 : 503, {{"status", is_up ? "serving" : "degraded"},
                                   {"timestamp", format_time(now())},
                                   {"checks", {{"database", is_up ? "ok" : "unavailable"}}}});
}

void Door::Impl::ready(CallPtr call) {
  const bool is_up = is_serving_();
  call->answer(is_up ? 200 : 503, {{"status", is_up ? "ready" : "not_ready"},
                                   {"timestamp", format_time(now())},
                                   {"checks", {{"database", is_up ? "ok" : "unavailable"}}}});
}

void Door::Impl::cluster_info(CallPtr call) {
  const json::object update{
      {"fields", {{"wait_for", {{"canonical_values", {"accepted", "completed"}}}}}}};
  const json::object start{
      {"fields", {{"duplicate_policy", {{"canonical_values", {"fail", "use-existing"}}}}}}};
  const json::object list{
      {"fields", {{"status", {{"canonical_values", {"running", "completed", "failed"}}}}}}};
  const json::object environment{{"server_url", "DURABLE_WORKFLOW_SERVER_URL"},
                                 {"namespace", "DURABLE_WORKFLOW_NAMESPACE"},
                                 {"auth_token", "DURABLE_WORKFLOW_AUTH_TOKEN"},
                                 {"tls_verify", "DURABLE_WORKFLOW_TLS_VERIFY"},
                                 {"profile", "DW_ENV"}};
  json::object info;
  info["server_id"] = options_.server_id;
  info["version"] = "2.8.0";
  info["server"] = {{"name", "fairlead"}, {"version", options_.version}};
  info["default_namespace"] = options_.default_namespace;
  info["capabilities"] = {{"payload_codecs", json::array{"avro"}},
                          {"response_compression", json::array{}}};
  if (options_.compression_enabled == "true") {
    info["capabilities"].at("response_compression").as_array().emplace_back("gzip");
  }
  const auto& run = options_.run_limits;
  info["limits"] = {{"max_payload_bytes", options_.payload_bytes_max},
                    {"max_memo_bytes", options_.memo_bytes_max},
                    {"max_history_events", run.history_events},
                    {"max_pending_activities", run.pending_activities},
                    {"max_pending_children", run.pending_children},
                    {"max_pending_timers", run.pending_timers},
                    {"max_pending_signals", run.pending_signals},
                    {"max_pending_updates", run.pending_updates},
                    {"max_command_batch_size", options_.command_batch_max},
                    {"max_schedules", options_.schedules_max}};
  info["control_plane"] = {
      {"version", kControlVersion},
      {"header", kControlHeader},
      {"request_contract",
       {{"schema", "durable-workflow.v2.control-plane-request.contract"},
        {"version", 1},
        {"operations", {{"update", update}, {"start", start}, {"list", list}}}}}};
  auto capabilities = capabilities_;
  capabilities["worker_sessions"] = session_contract();
  info["worker_protocol"] = {{"version", kProtocolVersion},
                             {"server_capabilities", std::move(capabilities)}};
  info["auth_composition_contract"] = {
      {"schema", "durable-workflow.v2.auth-composition.contract"},
      {"version", 1},
      {"precedence",
       {{"connection_values", {"flag", "environment", "selected_profile", "default"}},
        {"profile_selection", {"flag_env", "DW_ENV", "current_profile", "default_profile"}}}},
      {"canonical_environment", environment},
      {"auth_material",
       {{"token", {{"status", "supported"}, {"effective_config_value", "redacted"}}},
        {"mtls", {{"status", "reserved"}}},
        {"signed_headers", {{"status", "reserved"}}}}},
      {"effective_config",
       {{"required_fields", {"server_url", "namespace", "profile", "auth", "tls", "identity"}}}},
      {"redaction",
       {{"never_echo", {"bearer_tokens", "private_keys", "raw_authorization_headers"}}}}};
  call->answer(200, std::move(info));
}

}  // namespace fairlead::durable
