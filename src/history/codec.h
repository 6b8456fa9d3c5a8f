#pragma once

#include <string>

#include "model/model.pb.h"

namespace fairlead::history {

// How events look to the clients of one door. The engine decides what happened; a codec writes it
// down in the exact bytes that clients will read.
class Codec {
 public:
  virtual ~Codec() = default;
  // Appends one finished event, framed so that appended events together are one history.
  virtual void append_event(const model::Event& event, std::string* history) const = 0;
};

}  // namespace fairlead::history
