#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/temporal/call.h"
#include "api/temporal/grpc_wire.h"
#include "api/temporal/stream.h"
#include "base/time.h"

// The handlers' side of calls that arrive over HTTP/2. Nobody but the transport includes this.
namespace fairlead::api {

// A method and who serves it: either `handler` or `stream` is set.
struct GrpcRoute {
  std::string method;
  const Handler* handler = nullptr;
  const StreamHandler* stream = nullptr;
};
using GrpcRoutes = absl::flat_hash_map<std::string, std::unique_ptr<const GrpcRoute>>;

// The headers of a request that are not the transport's own.
class RequestHeaders {
 public:
  void add(std::string_view name, std::string_view value);
  std::string_view find(std::string_view name) const;
  void clear() { *this = {}; }

 private:
  struct Entry {
    size_t name_end;
    size_t value_end;
  };
  std::string bytes_;  // names and values, one after the other
  std::vector<Entry> entries_;
};

class Http2Call;

// What a call knows of the connection that it came from.
class Http2Carrier {
 public:
  // From any thread: `call` has something to send. It is not called any more once the call has been
  // told its end.
  virtual void wake(std::shared_ptr<Http2Call> call) = 0;

 protected:
  ~Http2Carrier() = default;
};

// What a handler wants sent. With a status the call ends behind the messages.
struct Outgoing {
  std::vector<std::string> messages;
  std::optional<RpcStatus> status;
};

// One call between its handler, which may answer from any thread, and its connection, which runs
// the functions below on the thread that serves it.
class Http2Call : public std::enable_shared_from_this<Http2Call> {
 public:
  virtual ~Http2Call() = default;

  virtual void on_message(GrpcMessage message) = 0;
  virtual void on_half_close() = 0;
  // A message that comes now would be heard.
  virtual bool wants_message() = 0;
  virtual Outgoing take() = 0;
  // Someone wants to know how the answer fared.
  virtual bool wants_outcome() = 0;
  // The end, told once: the answer has been written, or else nobody hears us any more.
  virtual void on_end(bool is_delivered) = 0;

  int32_t stream_id() const { return stream_id_; }

 protected:
  Http2Call(Http2Carrier* carrier, int32_t stream_id) : carrier_(carrier), stream_id_(stream_id) {}

  Http2Carrier* const carrier_;  // not to be touched after on_end
  const int32_t stream_id_;
};

std::shared_ptr<Http2Call> make_unary_call(Http2Carrier* carrier, int32_t stream_id,
                                           const GrpcRoute& route, RequestHeaders headers,
                                           TimeNs deadline);
std::shared_ptr<Http2Call> make_stream_call(Http2Carrier* carrier, int32_t stream_id,
                                            const GrpcRoute& route);

}  // namespace fairlead::api
