// Worker sessions in the words of the API.

#include "api/durable/sessions.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fairlead::durable {

namespace {

constexpr size_t kTextMax = 255;
constexpr size_t kRequirementsMax = 16;
constexpr int64_t kSecondsMax = 365 * 24 * 3600;
constexpr int64_t kActivitiesMax = 10'000;

// A name that can stand in the key of a row, between others.
bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kTextMax &&
         std::none_of(text.begin(), text.end(), [](char c) { return absl::ascii_iscntrl(c); });
}

bool read_number(const json::object& asked, const char* name, int64_t max, int64_t* value) {
  if (member(asked, name) == nullptr) return true;
  const auto given = integer_of(asked, name);
  if (!given.has_value() || *given < 1 || *given > max) return false;
  *value = *given;
  return true;
}

bool read_flag(const json::object& asked, const char* name, bool* value) {
  const auto* given = member(asked, name);
  if (given == nullptr) return true;
  if (!given->is_bool()) return false;
  *value = given->as_bool();
  return true;
}

const char* status_word(admission::Session::Status status) {
  switch (status) {
    case admission::Session::Status::kActive:
      return "active";
    case admission::Session::Status::kClosed:
      return "closed";
    case admission::Session::Status::kExpired:
      return "expired";
    case admission::Session::Status::kOrphaned:
      return "orphaned";
  }
  return "";
}

}  // namespace

std::optional<SessionFault> read_session(const json::object& asked, model::SessionTerms* terms) {
  const std::string id(absl::StripAsciiWhitespace(text_of(asked, "session_id")));
  if (!is_name(id)) {
    return SessionFault{"session_id", "session_id must be 1 to 255 bytes without control signs"};
  }
  terms->set_session_id(id);
  if (const auto* given = member(asked, "requirements")) {
    if (!given->is_array() || given->as_array().size() > kRequirementsMax) {
      return SessionFault{"requirements",
                          absl::StrCat("requirements must be a list of up to ", kRequirementsMax)};
    }
    for (const auto& each : given->as_array()) {
      const std::string name =
          each.is_string() ? std::string(absl::StripAsciiWhitespace(to_std(each.as_string()))) : "";
      if (!is_name(name)) {
        return SessionFault{"requirements",
                            "a requirement must be 1 to 255 bytes without control signs"};
      }
      const auto& known = terms->requirements();
      if (std::find(known.begin(), known.end(), name) == known.end()) terms->add_requirements(name);
    }
  }
  admission::SessionTerms read;
  struct Number {
    const char* name;
    int64_t max;
    int64_t* value;
  };
  for (const auto& [name, max, value] :
       {Number{"lease_seconds", kSecondsMax, &read.lease_s},
        Number{"ttl_seconds", kSecondsMax, &read.ttl_s},
        Number{"max_concurrent_activities", kActivitiesMax, &read.activities_max}}) {
    if (!read_number(asked, name, max, value)) {
      return SessionFault{name, absl::StrCat(name, " must be a whole number from 1 to ", max)};
    }
  }
  for (const auto& [name, value] : {std::pair{"create_if_missing", &read.creates},
                                    std::pair{"allow_reacquire_after_failure", &read.reacquires}}) {
    if (!read_flag(asked, name, value)) {
      return SessionFault{name, absl::StrCat(name, " must be true or false")};
    }
  }
  terms->set_lease_s(read.lease_s);
  terms->set_ttl_s(read.ttl_s);
  terms->set_activities_max(read.activities_max);
  terms->set_creates(read.creates);
  terms->set_reacquires(read.reacquires);
  return std::nullopt;
}

json::object session_terms_record(const admission::SessionTerms& terms) {
  json::array requirements;
  for (const auto& each : terms.requirements) requirements.emplace_back(to_json(each));
  return {{"session_id", terms.id},
          {"requirements", std::move(requirements)},
          {"lease_seconds", terms.lease_s},
          {"ttl_seconds", terms.ttl_s},
          {"max_concurrent_activities", terms.activities_max},
          {"create_if_missing", terms.creates},
          {"allow_reacquire_after_failure", terms.reacquires}};
}

json::object session_of_task(const admission::SessionTerms& terms,
                             const std::optional<admission::Session>& session) {
  auto record = session_terms_record(terms);
  if (!session.has_value()) return record;
  record["status"] = status_word(session->status);
  record["lease_owner"] = session->owner;
  record["lease_expires_at"] = format_time(session->lease_ends);
  record["ttl_expires_at"] = format_time(session->ttl_ends);
  return record;
}

json::object session_contract() {
  const json::array statuses{"active", "closed", "expired", "failed", "orphaned"};
  return {
      {"feature", "worker_sessions"},
      {"contract_version", "1.0"},
      {"minimum_protocol_version", "1.8"},
      {"command_field", "worker_session"},
      {"activity_options_field", "worker_session"},
      {"verbs", json::array{"create", "heartbeat", "close"}},
      {"lifecycle",
       {{"creation", "lazy_create_on_first_admitted_activity_or_explicit_worker_create"},
        {"renewal", "activity_heartbeat_or_explicit_session_heartbeat"},
        {"close", "explicit_holder_close"},
        {"lease_expiry", "session_expires_when_lease_is_not_renewed"},
        {"ttl_expiry", "absolute_session_ttl_is_terminal_for_that_session_id"}}},
      {"ownership", "single_worker_lease_owner"},
      {"lease",
       {{"scope", "namespace_session_id"},
        {"owner", "registered_worker_id"},
        {"activity_attempt_leases_remain_independent", true}}},
      {"admission",
       {{"queue_routing_first", true},
        {"requires_registered_worker", true},
        {"requires_capabilities", true},
        {"create_if_missing_default", true},
        {"allow_reacquire_after_failure_default", true}}},
      {"limits",
       {{"max_concurrent_worker_sessions", "worker_registration"},
        {"max_concurrent_activities", "session"}}},
      {"default_max_concurrent_activities", 1},
      {"renewal",
       {{"activity_heartbeat_renews_session", true}, {"explicit_session_heartbeat", true}}},
      {"failure_detection", json::array{"lease_expiry", "registered_worker_heartbeat_staleness"}},
      {"holder_loss",
       {{"in_flight_activities_keep_at_least_once_attempt_semantics", true},
        {"replacement_worker_must_reacquire_session", true},
        {"process_local_state_must_be_rebuilt_after_reacquire", true}}},
      {"cancellation",
       {{"workflow_cancellation_observed_through_activity_heartbeat", true},
        {"session_lease_does_not_override_activity_cancel_requested", true},
        {"planned_shutdown_should_close_sessions", true}}},
      {"routing", json::array{"queue", "connection", "requirements"}},
      {"visibility", statuses},
      {"statuses", statuses},
      {"terminal_statuses", json::array{"closed"}},
      {"terminal_conditions",
       json::array{"explicit_close", "ttl_expired", "allow_reacquire_after_failure_false"}},
      {"authoring_guidance",
       json::array{"for steps that reuse what one worker keeps, and can rebuild it"}}};
}

}  // namespace fairlead::durable
