#pragma once

#include <string>
#include <string_view>

#include "history/codec.h"

namespace fairlead::durable {

// Writes events as the JSON that workers and clients read, one text for both: a page of history is
// these texts with commas between them.
class DurableCodec final : public history::Codec {
 public:
  void append_event(const model::Event& event, std::string* history) const override;
  // Runs of this door are not reset: nobody asks.
  model::Event read_event(std::string_view framed) const override;
  model::ContinueAsNew begin_again(std::string_view first_event,
                                   const model::Event& closing) const override;
  std::string name_update(std::string_view request, const std::string& id) const override;
  // The payload of the completed event.
  std::string update_outcome(std::string_view completed_event) const override;
  std::string applied_update(std::string_view accepted_event) const override;
  std::string name_start(std::string_view kept, const std::string& workflow_id) const override;
  std::string tell_parent(const model::Event& closing) const override;
  std::string end_host(const model::Event& ended) const override;
};

// The texts of framed events, joined by commas, at most `events_max` of them, and how many there
// were.
struct EventTexts {
  std::string joined;
  int64_t count = 0;
};
EventTexts join_events(std::string_view history, int64_t events_max);

// The payload of the first started event among framed ones.
std::string started_payload(std::string_view history);
// What the client called the run by; empty: nothing.
std::string business_key_of(std::string_view history);

}  // namespace fairlead::durable
