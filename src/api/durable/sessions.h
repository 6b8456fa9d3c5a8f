#pragma once

#include <optional>
#include <string>

#include "admission/sessions.h"
#include "api/durable/json.h"
#include "model/model.pb.h"

namespace fairlead::durable {

struct SessionFault {
  std::string field;  // within the session's object
  std::string text;
};

// The session that a command or a worker asks for; a fault if it cannot be had so.
std::optional<SessionFault> read_session(const json::object& asked, model::SessionTerms* terms);
// The same as people wrote it, with what they left out.
json::object session_terms_record(const admission::SessionTerms& terms);
// What a worker is told of the session that its task belongs to.
json::object session_of_task(const admission::SessionTerms& terms,
                             const std::optional<admission::Session>& session);
// What this server does with sessions, for those who ask what it can do.
json::object session_contract();

}  // namespace fairlead::durable
