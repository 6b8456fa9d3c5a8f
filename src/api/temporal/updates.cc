#include "api/temporal/updates.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "temporal/api/history/v1/message.pb.h"
#include "temporal/api/update/v1/message.pb.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
namespace history_api = temporal::api::history::v1;
namespace update = temporal::api::update::v1;

model::Event draft_of(model::EventKind kind, const std::string& update_id) {
  model::Event draft;
  draft.set_kind(kind);
  draft.mutable_update_event()->set_update_id(update_id);
  return draft;
}

model::Event accepted(const std::string& id, update::Acceptance& acceptance) {
  auto draft = draft_of(model::UPDATE_ACCEPTED, id);
  history_api::WorkflowExecutionUpdateAcceptedEventAttributes door;
  door.set_protocol_instance_id(id);
  door.set_accepted_request_message_id(acceptance.accepted_request_message_id());
  door.set_accepted_request_sequencing_event_id(acceptance.accepted_request_sequencing_event_id());
  if (acceptance.has_accepted_request()) {
    draft.mutable_update_event()->set_request(acceptance.accepted_request().SerializeAsString());
  }
  draft.set_door(door.SerializeAsString());
  return draft;
}

model::Event completed(const std::string& id, update::Response& response) {
  auto draft = draft_of(model::UPDATE_COMPLETED, id);
  draft.mutable_update_event()->set_outcome(response.outcome().SerializeAsString());
  history_api::WorkflowExecutionUpdateCompletedEventAttributes door;
  door.mutable_meta()->Swap(response.mutable_meta());
  door.mutable_outcome()->Swap(response.mutable_outcome());
  draft.set_door(door.SerializeAsString());
  return draft;
}

model::Event rejected(const std::string& id, update::Rejection& rejection) {
  auto draft = draft_of(model::UPDATE_REJECTED, id);
  update::Outcome outcome;
  outcome.mutable_failure()->Swap(rejection.mutable_failure());
  draft.mutable_update_event()->set_outcome(outcome.SerializeAsString());
  if (rejection.has_rejected_request()) {
    draft.mutable_update_event()->set_request(rejection.rejected_request().SerializeAsString());
  }
  return draft;
}

}  // namespace

absl::StatusOr<model::Event> read_update_answer(
    const temporal::api::protocol::v1::Message& message) {
  const auto& id = message.protocol_instance_id();
  if (id.empty()) return invalid_argument("protocol instance id is not set on a message");
  update::Acceptance acceptance;
  if (message.body().UnpackTo(&acceptance)) return accepted(id, acceptance);
  update::Response response;
  if (message.body().UnpackTo(&response)) return completed(id, response);
  update::Rejection rejection;
  if (message.body().UnpackTo(&rejection)) return rejected(id, rejection);
  return invalid_argument(absl::StrCat("message ", message.id(),
                                       " is of an unknown type: ", message.body().type_url()));
}

void write_update(wire::Writer& writer, uint32_t field, const shard::AttachedUpdate& attached,
                  int64_t event_id) {
  using Message = temporal::api::protocol::v1::Message;
  writer.message(field, [&](wire::Writer& message) {
    message.string(Message::kIdFieldNumber, absl::StrCat(attached.id, "/request"));
    message.string(Message::kProtocolInstanceIdFieldNumber, attached.id);
    message.integer(Message::kEventIdFieldNumber, event_id);
    message.message(Message::kBodyFieldNumber, [&](wire::Writer& body) {
      body.string(1, "type.googleapis.com/temporal.api.update.v1.Request");
      body.bytes(2, attached.request);
    });
  });
}

}  // namespace fairlead::api
