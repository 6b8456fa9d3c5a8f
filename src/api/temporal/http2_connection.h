#pragma once

#include <nghttp2/nghttp2.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "api/temporal/http2_call.h"
#include "api/temporal/refusals.h"
#include "base/time.h"

// One client's connection. Nobody but the transport includes this.
namespace fairlead::api {

// What all connections share and none changes.
struct Http2Settings {
  GrpcRoutes routes;
  size_t receive_bytes_max = 4 << 20;
  RefusalCounts* refusals = nullptr;
};

class Http2Connection;

// Who keeps connections alive and hears of what the transport counts.
class Http2Keeper {
 public:
  virtual void on_call_opened() = 0;
  virtual void on_call_ended() = 0;
  virtual void on_connection_closed(Http2Connection* connection) = 0;

 protected:
  ~Http2Keeper() = default;
};

// Speaks HTTP/2 with one client. All of it belongs to the thread that runs the socket's context,
// but for `wake`, by which answers come in from other threads: they gather while that thread is
// busy, and leave together in one write.
//
// The library keeps the protocol: frames, headers, windows, order. It asks for the bytes of an
// answer when there is room for them, so what waits for a slow client is kept once, in its call.
class Http2Connection final : public Http2Carrier,
                              public std::enable_shared_from_this<Http2Connection> {
 public:
  Http2Connection(const Http2Settings& settings, Http2Keeper* keeper,
                  boost::asio::ip::tcp::socket socket, TimeNs now);
  ~Http2Connection();
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  void start();
  // Looks for calls whose time is over, in case the client does not say so, and for connections
  // that say nothing at all.
  void tick(TimeNs now);
  // Tells the client to go elsewhere; calls in hand may end.
  void leave();
  // Ends all calls and says goodbye.
  void cancel();
  // Ends everything at once.
  void close();

  void wake(std::shared_ptr<Http2Call> call) override;

 private:
  struct Stream;
  struct Callbacks;

  void read();
  void drain();
  void flush();
  void on_written(bool is_ok);

  void read_header(Stream* stream, std::string_view name, std::string_view value);
  void open(Stream* stream);
  void hear(Stream* stream);
  void send(Stream* stream, Outgoing outgoing);
  void refuse_http(Stream* stream, std::string_view http_status);
  ssize_t fill(Stream* stream, uint8_t* out, size_t room, uint32_t* flags);
  void submit_trailers(Stream* stream);
  void on_stream_closed(Stream* stream);
  Stream* find(int32_t stream_id);

  const Http2Settings& settings_;
  Http2Keeper* const keeper_;
  boost::asio::ip::tcp::socket socket_;
  nghttp2_session* session_ = nullptr;
  absl::flat_hash_map<int32_t, std::unique_ptr<Stream>> streams_;
  TimeNs now_;  // as of the last tick or read
  const TimeNs opened_at_;
  TimeNs terminated_at_ = 0;

  std::array<char, 16 << 10> in_;
  std::string out_;
  std::vector<std::shared_ptr<Http2Call>> serialised_;  // ended in what will be written next
  std::vector<std::shared_ptr<Http2Call>> written_;     // ended in what is being written
  std::vector<int32_t> emptied_;                        // streams that have room for another answer
  bool is_greeted_ = false;  // the client has shown that it speaks HTTP/2
  bool is_writing_ = false;
  bool is_leaving_ = false;
  bool is_terminated_ = false;
  bool is_closed_ = false;

  std::mutex mutex_;
  std::vector<std::shared_ptr<Http2Call>> ready_;
  bool is_woken_ = false;  // someone will drain `ready_`
};

}  // namespace fairlead::api
