#pragma once

#include <string>

#include "base/wire.h"
#include "history/codec.h"

namespace fairlead::api {

// Writes engine events as temporal.api.history.v1.HistoryEvent, each framed as an element of
// History.events, so that stored batches laid end to end are a serialised History.
class TemporalCodec final : public history::Codec {
 public:
  void append_event(const model::Event& event, std::string* history) const override;
  model::Event read_event(std::string_view framed) const override;
  model::ContinueAsNew begin_again(std::string_view first_event,
                                   const model::Event& closing) const override;
  std::string name_update(std::string_view request, const std::string& id) const override;
  std::string update_outcome(std::string_view completed_event) const override;
  std::string tell_parent(const model::Event& closing) const override;
  history::Outgoing call_back(const history::Ended& ended) const override;
};

// temporal.api.failure.v1.Failure: a worker's own bytes, or one built from what the server knows.
std::string encode_failure(const model::Failure& failure);
void write_retry_policy(wire::Writer& writer, uint32_t field, const model::RetryPolicy& policy);
void write_priority(wire::Writer& writer, uint32_t field, const model::Priority& priority);

}  // namespace fairlead::api
