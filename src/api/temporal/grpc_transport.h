#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "api/temporal/call.h"
#include "api/temporal/refusals.h"
#include "api/temporal/stream.h"
#include "base/time.h"

namespace fairlead::api {

struct GrpcOptions {
  std::string bind_address = "127.0.0.1";
  int port = 7233;  // 0 takes any free one
  // Each serves the connections that fall to it. One keeps two cores busy with our own work.
  int threads = 1;
  // gRPC's default, which clients know and react to.
  int receive_bytes_max = 4 << 20;
  RefusalCounts* refusals = nullptr;  // told of calls that end with RESOURCE_EXHAUSTED
};

// Serves a table of methods over gRPC.
//
// Handlers run on the transport's threads and must not block them. HTTP/2 is kept by nghttp2, what
// gRPC adds to it is ours (`grpc_wire.h`); so a parked call costs its two small objects, and the
// answers that a connection is owed leave in one write.
class GrpcTransport {
 public:
  static absl::StatusOr<std::unique_ptr<GrpcTransport>> start(const GrpcOptions& options,
                                                              MethodTable methods,
                                                              StreamTable streams = {});
  // As shutdown(0).
  virtual ~GrpcTransport() = default;

  // The port that clients connect to.
  virtual int port() const = 0;

  // Stops accepting, tells clients to go elsewhere, gives calls in hand `grace` to be answered and
  // cancels the rest. Returns when no thread of ours runs; calls that handlers still hold may be
  // answered later, to nobody.
  virtual void shutdown(DurationNs grace) = 0;
};

}  // namespace fairlead::api
