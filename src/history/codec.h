#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/model.pb.h"

namespace fairlead::history {

// What someone is sent who wants to hear how a run ended.
struct Outgoing {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// A run that has closed, and one of its callbacks.
struct Ended {
  const model::RunState& run;
  const std::string& namespace_name;
  std::string_view closing_event;  // as it was appended
  const model::CallbackState& callback;
};

// How events look to the clients of one door. The engine decides what happened; a codec writes it
// down in the exact bytes that clients will read.
class Codec {
 public:
  virtual ~Codec() = default;
  // Appends one finished event, framed so that appended events together are one history.
  virtual void append_event(const model::Event& event, std::string* history) const = 0;
  // The inverse, of one framed event: what the engine has to know to go on from there. The rest
  // stays among the door's bytes, so that appending it again gives the same event.
  virtual model::Event read_event(std::string_view framed) const = 0;
  // What a run that follows another one, as a retry or by its schedule, begins with: the other
  // one's memo, search attributes and the bytes of its started event that are the door's.
  // `first_event` is the other run's, as it was appended; `closing` is the draft of the event that
  // ends it.
  virtual model::ContinueAsNew begin_again(std::string_view first_event,
                                           const model::Event& closing) const = 0;
  // The request for an update, with the id that the engine has given it.
  virtual std::string name_update(std::string_view request, const std::string& id) const = 0;
  // How an update ended, out of its completed event as it was appended.
  virtual std::string update_outcome(std::string_view completed_event) const = 0;
  // What the event that an accepted update was carried out begins with.
  virtual std::string applied_update(std::string_view accepted_event) const { return ""; }
  // What a run begins with that a schedule starts under this id, out of what the schedule keeps.
  virtual std::string name_start(std::string_view kept, const std::string& workflow_id) const {
    return std::string(kept);
  }
  // How a parent's event about the end of its child begins.
  virtual std::string tell_parent(const model::Event& closing) const = 0;
  // How the event begins that ends a run with the activity which it was made for.
  virtual std::string end_host(const model::Event& ended) const { return ended.door(); }
  // How whoever asked for it is told of the end of a run. Only of doors that take callbacks.
  virtual Outgoing call_back(const Ended& ended) const { return {}; }
};

}  // namespace fairlead::history
