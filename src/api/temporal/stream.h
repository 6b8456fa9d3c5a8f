#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "api/temporal/call.h"

namespace fairlead::api {

// The answering side of one streaming call. Both functions may be called from any thread and after
// the call has ended, when they do nothing.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void send(std::string message) = 0;
  // Ends the call once everything sent before has left.
  virtual void finish(RpcStatus status) = 0;
};

// The asking side. It lives as long as the call and is used by one transport thread only; being
// destroyed is how it learns that the client has gone or the call has ended.
class StreamSession {
 public:
  virtual ~StreamSession() = default;
  virtual void on_message(std::string_view message) = 0;
  // The client has nothing more to ask.
  virtual void on_half_close() = 0;
};

using StreamHandler = std::function<std::unique_ptr<StreamSession>(std::shared_ptr<Stream>)>;

// As MethodTable, for the few methods that stream: reflection and health's Watch.
class StreamTable {
 public:
  void add(std::string method, StreamHandler handler) {
    handlers_.insert_or_assign(std::move(method), std::move(handler));
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [method, handler] : handlers_) visit(method, handler);
  }

 private:
  absl::flat_hash_map<std::string, StreamHandler> handlers_;
};

}  // namespace fairlead::api
