#pragma once

#include "absl/functional/any_invocable.h"
#include "base/time.h"
#include "history/callbacks.h"
#include "history/codec.h"

namespace fairlead::shard {

// Tells people outside of the server what they asked to hear. It has threads of its own: a network
// may be slow, and shards never wait.
class Caller {
 public:
  using Done = absl::AnyInvocable<void(history::CallbackOutcome)>;

  virtual ~Caller() = default;
  // `done` is called once, from any thread, at `until` or before; never if the caller is stopped.
  virtual void call(history::Outgoing request, TimeNs until, Done done) = 0;
};

}  // namespace fairlead::shard
