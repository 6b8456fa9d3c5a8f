#include "api/temporal/grpc_transport.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/http2_connection.h"

namespace fairlead::api {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Between two tries to accept when the first one failed.
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::seconds kTickInterval{1};
// For clients to take our goodbye.
constexpr std::chrono::milliseconds kGoodbye{250};

// What shutdown waits for.
class LiveCount {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none(std::chrono::nanoseconds at_most) {
    std::unique_lock lock(mutex_);
    none_.wait_for(lock, at_most, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int64_t count_ = 0;
};

// A thread and the connections that it serves. All but `io` belongs to that thread.
class Loop final : public Http2Keeper {
 public:
  Loop(const Http2Settings& settings, LiveCount* calls, LiveCount* connections)
      : settings_(settings), live_calls_(calls), live_connections_(connections), timer_(io) {}

  void start() {
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "fl-grpc");
      io.run();
    });
  }
  // For what the thread has to do with each connection; those may go while it is done.
  template <typename Do>
  void for_each(Do act) {
    asio::post(io, [this, act] {
      std::vector<std::shared_ptr<Http2Connection>> all;
      for (const auto& [raw, connection] : connections_) all.push_back(connection);
      for (const auto& connection : all) act(*connection);
    });
  }
  void stop() {
    work_.reset();
    asio::post(io, [this] { timer_.cancel(); });
    if (thread_.joinable()) thread_.join();
  }

  void welcome(tcp::socket socket) {
    auto connection =
        std::make_shared<Http2Connection>(settings_, this, std::move(socket), clock_.now());
    connections_.emplace(connection.get(), connection);
    connection->start();
    if (connections_.size() == 1) tick();
  }

  void on_call_opened() override { live_calls_->enter(); }
  void on_call_ended() override { live_calls_->leave(); }
  void on_connection_closed(Http2Connection* connection) override {
    connections_.erase(connection);
    live_connections_->leave();
    if (connections_.empty()) timer_.cancel();
  }

  asio::io_context io{1};

 private:
  void tick() {
    timer_.expires_after(kTickInterval);
    timer_.async_wait([this](error_code error) {
      if (error || connections_.empty()) return;
      std::vector<std::shared_ptr<Http2Connection>> all;
      for (const auto& [raw, connection] : connections_) all.push_back(connection);
      for (const auto& connection : all) connection->tick(clock_.now());
      if (!connections_.empty()) tick();
    });
  }

  const Http2Settings& settings_;
  LiveCount* const live_calls_;
  LiveCount* const live_connections_;
  SystemClock clock_;
  asio::steady_timer timer_;
  absl::flat_hash_map<Http2Connection*, std::shared_ptr<Http2Connection>> connections_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io.get_executor()};
  std::thread thread_;
};

class Transport final : public GrpcTransport {
 public:
  Transport(const GrpcOptions& options, MethodTable methods, StreamTable streams);
  ~Transport() override { shutdown(0); }

  absl::Status listen(const GrpcOptions& options);
  int port() const override { return port_; }
  void shutdown(DurationNs grace) override;

 private:
  void accept();

  const MethodTable methods_;
  const StreamTable streams_;
  Http2Settings settings_;
  LiveCount live_calls_;
  LiveCount live_connections_;
  std::deque<Loop> loops_;
  size_t next_loop_ = 0;
  // Of the first loop's thread.
  tcp::acceptor acceptor_;
  asio::steady_timer retry_timer_;
  int port_ = 0;
  bool is_down_ = false;
};

Transport::Transport(const GrpcOptions& options, MethodTable methods, StreamTable streams)
    : methods_(std::move(methods)),
      streams_(std::move(streams)),
      acceptor_((loops_.emplace_back(settings_, &live_calls_, &live_connections_)).io),
      retry_timer_(loops_.front().io) {
  settings_.receive_bytes_max = static_cast<size_t>(options.receive_bytes_max);
  settings_.refusals = options.refusals;
  methods_.for_each([this](const std::string& method, const Handler& handler) {
    settings_.routes.emplace(method,
                             std::make_unique<GrpcRoute>(GrpcRoute{method, &handler, nullptr}));
  });
  streams_.for_each([this](const std::string& method, const StreamHandler& handler) {
    settings_.routes.emplace(method,
                             std::make_unique<GrpcRoute>(GrpcRoute{method, nullptr, &handler}));
  });
  while (loops_.size() < static_cast<size_t>(std::max(1, options.threads))) {
    loops_.emplace_back(settings_, &live_calls_, &live_connections_);
  }
}

absl::Status Transport::listen(const GrpcOptions& options) {
  error_code error;
  const auto address = asio::ip::make_address(options.bind_address, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat("\"", options.bind_address,
                                                   "\" is not an address to listen on for gRPC; "
                                                   "use one like 127.0.0.1, 0.0.0.0 or ::"));
  }
  const tcp::endpoint endpoint(address, static_cast<uint16_t>(options.port));
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options.bind_address, ":", options.port, " for gRPC: ",
        error.message(), ". Stop the other server, or choose another port or bind address"));
  }
  port_ = acceptor_.local_endpoint().port();
  accept();
  for (Loop& loop : loops_) loop.start();
  return absl::OkStatus();
}

void Transport::accept() {
  Loop& loop = loops_[next_loop_++ % loops_.size()];
  acceptor_.async_accept(loop.io, [this, &loop](error_code error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error) {
      // Out of files, most likely; they come back.
      retry_timer_.expires_after(kAcceptPause);
      retry_timer_.async_wait([this](error_code stopped) {
        if (!stopped && acceptor_.is_open()) accept();
      });
      return;
    }
    live_connections_.enter();
    asio::post(loop.io,
               [&loop, socket = std::move(socket)]() mutable { loop.welcome(std::move(socket)); });
    accept();
  });
}

void Transport::shutdown(DurationNs grace) {
  if (std::exchange(is_down_, true)) return;
  if (port_ != 0) {
    asio::post(loops_.front().io, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      retry_timer_.cancel();
    });
    for (Loop& loop : loops_) loop.for_each([](Http2Connection& c) { c.leave(); });
    live_calls_.wait_for_none(std::chrono::nanoseconds(grace));
    for (Loop& loop : loops_) loop.for_each([](Http2Connection& c) { c.cancel(); });
    live_connections_.wait_for_none(kGoodbye);
    for (Loop& loop : loops_) loop.for_each([](Http2Connection& c) { c.close(); });
  }
  for (Loop& loop : loops_) loop.stop();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcTransport>> GrpcTransport::start(const GrpcOptions& options,
                                                                    MethodTable methods,
                                                                    StreamTable streams) {
  auto transport = std::make_unique<Transport>(options, std::move(methods), std::move(streams));
  if (absl::Status status = transport->listen(options); !status.ok()) return status;
  return transport;
}

}  // namespace fairlead::api
