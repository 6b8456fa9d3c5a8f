#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/time.h"

namespace fairlead::server {

// Asks a server over gRPC, one call at a time.
class RpcClient {
 public:
  // An address is host:port. Nothing is sent before the first call.
  RpcClient(const std::string& address, DurationNs timeout);
  ~RpcClient();

  // `method` is a full name, "/package.Service/Method". A refusal keeps the server's code and text.
  absl::StatusOr<std::string> call(const std::string& method, const std::string& body);

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
  DurationNs timeout_;
};

}  // namespace fairlead::server
