#pragma once

#include <string>

#include "api/temporal/search_attributes.h"
#include "google/protobuf/map.h"
#include "temporal/api/history/v1/message.pb.h"

// What a workflow asks for, out of its command or out of the event that records the command: both
// have the same fields.
namespace fairlead::api {

// Memo fields or search attributes as the engine keeps them.
template <typename Fields>
void keep_fields(const Fields& fields, google::protobuf::Map<std::string, std::string>* kept) {
  for (const auto& [name, payload] : fields) {
    if (!removes_key(payload)) (*kept)[name] = payload.SerializeAsString();
  }
}

// What an upsert changes; empty: removed.
template <typename Fields>
void note_upserts(const Fields& fields, google::protobuf::Map<std::string, std::string>& upserts) {
  for (const auto& [name, payload] : fields) {
    upserts[name] = removes_key(payload) ? std::string() : payload.SerializeAsString();
  }
}

// The door's part of the new run's started event. The parts are copied: the event that records the
// command holds them too.
template <typename Asked>
std::string started_door(const Asked& asked, const std::string& workflow_id) {
  temporal::api::history::v1::WorkflowExecutionStartedEventAttributes door;
  if (asked.has_input()) *door.mutable_input() = asked.input();
  if (asked.has_header()) *door.mutable_header() = asked.header();
  if (asked.has_memo()) *door.mutable_memo() = asked.memo();
  if (asked.has_search_attributes()) *door.mutable_search_attributes() = asked.search_attributes();
  door.set_workflow_id(workflow_id);
  if constexpr (requires { asked.last_completion_result(); }) {
    if (asked.has_last_completion_result()) {
      *door.mutable_last_completion_result() = asked.last_completion_result();
    }
    if (asked.has_failure()) *door.mutable_continued_failure() = asked.failure();
  }
  return door.SerializeAsString();
}

// The door's part of the event that tells a parent of its child's start.
template <typename Asked>
std::string child_started_door(const Asked& asked) {
  temporal::api::history::v1::ChildWorkflowExecutionStartedEventAttributes door;
  if (asked.has_header()) *door.mutable_header() = asked.header();
  return door.SerializeAsString();
}

// A child's envelope: it is called what its parent calls it.
inline std::string started_envelope(const std::string& user_metadata) {
  temporal::api::history::v1::HistoryEvent envelope;
  if (!user_metadata.empty()) envelope.mutable_user_metadata()->ParseFromString(user_metadata);
  return envelope.SerializeAsString();
}

// The door's part of the signaled event of the run that is signaled.
template <typename Asked>
std::string signaled_door(const Asked& asked) {
  temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes door;
  door.set_signal_name(asked.signal_name());
  if (asked.has_input()) *door.mutable_input() = asked.input();
  if (asked.has_header()) *door.mutable_header() = asked.header();
  return door.SerializeAsString();
}

// The same of a cancel request.
template <typename Asked>
std::string cancel_door(const Asked& asked) {
  temporal::api::history::v1::WorkflowExecutionCancelRequestedEventAttributes door;
  door.set_cause(asked.reason());
  return door.SerializeAsString();
}

}  // namespace fairlead::api
