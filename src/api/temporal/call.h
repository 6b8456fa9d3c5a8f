#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "base/time.h"

namespace fairlead::api {

// How a call ended, ready for the wire. `details` is a serialised google.rpc.Status, or empty.
struct RpcStatus {
  int code = 0;
  std::string message;
  std::string details;
};

// Told once whether the answer was written to the client's connection.
using Delivered = absl::AnyInvocable<void(bool)>;

// One unary call as the door sees it: bytes in, bytes out. What carries it is the transport's
// matter.
//
// `reply` may be called from any thread and must be called exactly once. Until then the call costs
// memory but no thread.
class Call {
 public:
  virtual ~Call() = default;

  virtual const std::string& method() const = 0;
  virtual std::string_view body() const = 0;
  // When the client gives up; kNever if it did not say.
  virtual TimeNs deadline() const = 0;
  // A request header (its name in lower case), or empty. Headers are at hand only until the handler
  // returns: what is needed later is copied.
  virtual std::string_view header(std::string_view name) const = 0;

  // Frees the request's bytes; a parked poll has no use for them. `reply` does so too.
  virtual void release_body() = 0;

  // `gone` runs once, on a transport thread, if the client goes away before the reply. If it has
  // gone already, it runs at once.
  virtual void on_cancel(absl::AnyInvocable<void()> gone) = 0;

  virtual void reply(RpcStatus status, std::string body, Delivered delivered = {}) = 0;
};

using Handler = std::function<void(std::shared_ptr<Call>)>;

// Full method name ("/package.Service/Method") to the code that serves it.
class MethodTable {
 public:
  void add(std::string method, Handler handler) {
    handlers_.insert_or_assign(std::move(method), std::move(handler));
  }
  const Handler* find(std::string_view method) const {
    const auto found = handlers_.find(absl::string_view(method.data(), method.size()));
    return found == handlers_.end() ? nullptr : &found->second;
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [method, handler] : handlers_) visit(method, handler);
  }

 private:
  absl::flat_hash_map<std::string, Handler> handlers_;
};

}  // namespace fairlead::api
