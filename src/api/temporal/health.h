#pragma once

#include <memory>

#include "api/temporal/call.h"
#include "api/temporal/stream.h"

namespace fairlead::api {

// grpc.health.v1.Health: what load balancers and SDKs ask before they send anything else.
//
// Begins as not serving; whoever opened the store says otherwise. All services of this server come
// and go together.
class Health {
 public:
  Health();

  void add_to(MethodTable* methods, StreamTable* streams) const;
  void set_serving(bool is_serving);
  bool is_serving() const;

 private:
  class State;
  class Watcher;
  // Shared with the handlers, which may outlive us by as long as the transport does.
  std::shared_ptr<State> state_;
};

}  // namespace fairlead::api
