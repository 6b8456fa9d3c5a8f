#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "server/http_routes.h"

namespace fairlead::server {

struct HttpOptions {
  std::string bind_address = "127.0.0.1";
  int port = 8233;  // 0 takes any free one
  size_t header_bytes_max = 16 << 10;
  size_t body_bytes_max = 4 << 20;
  // Each parked poll of Durable Workflow's door is one.
  size_t connections_max = 16'384;
  // For a client that is silent, or slow to send or to take. A handler may take as long as it
  // likes.
  DurationNs idle_timeout_ns = 30 * kSecond;
};

// Serves HTTP/1.1 on one thread of its own. Handlers run on that thread and must not block it;
// their answers may come later and from anywhere.
class HttpServer {
 public:
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(const HttpOptions& options,
                                                           HttpRoutes routes);
  // As stop(0).
  virtual ~HttpServer() = default;

  virtual int port() const = 0;

  // Closes the door and idle connections, gives requests in hand `grace` to be answered, and drops
  // the rest. An answer that comes after that goes nowhere.
  virtual void stop(DurationNs grace) = 0;
};

}  // namespace fairlead::server
