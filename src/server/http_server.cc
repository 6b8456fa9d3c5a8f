#include "server/http_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fairlead::server {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Between two tries to accept when the first one failed.
constexpr std::chrono::milliseconds kAcceptPause{100};

class Session;

// What the sessions and the server share. Everything in it belongs to the server's thread, but for
// `io`, to which anyone may post for as long as they hold this.
//
// It owns the sessions, by `sessions` and by the callbacks that wait in `io`; so a session may
// point back to it, and an answer that is still to come must not hold a session.
struct Core : std::enable_shared_from_this<Core> {
  Core(const HttpOptions& given, HttpRoutes table)
      : options(given), routes(std::move(table)), acceptor(io), retry_timer(io), grace_timer(io) {}

  HttpOptions options;
  HttpRoutes routes;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer retry_timer;
  asio::steady_timer grace_timer;
  std::unordered_set<std::shared_ptr<Session>> sessions;
  bool is_stopping = false;
};

// One connection: read, handle, write, again.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Core* core, tcp::socket socket) : core_(core), stream_(std::move(socket)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read();
  bool is_idle() const { return !is_busy_; }
  void close() {
    stream_.close();
    core_->sessions.erase(shared_from_this());
    if (core_->is_stopping && core_->sessions.empty()) core_->grace_timer.cancel();
  }

 private:
  void on_read(error_code error);
  void handle(http::request<http::string_body> message);
  void refuse(error_code error);
  void watch();
  void write(HttpResponse response);
  void on_write(error_code error);
  void limit_time() {
    stream_.expires_after(std::chrono::nanoseconds(core_->options.idle_timeout_ns));
  }

  Core* core_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  std::shared_ptr<const HttpRequest> waiting_;  // unanswered, of a handler that wants to hear
  bool is_busy_ = false;
  bool is_keep_alive_ = false;
};

void Session::read() {
  if (core_->is_stopping) return close();
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(core_->options.header_bytes_max));
  parser_->body_limit(core_->options.body_bytes_max);
  limit_time();
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code error, size_t) { self->on_read(error); });
}

void Session::on_read(error_code error) {
  if (error) return refuse(error);
  is_busy_ = true;
  is_keep_alive_ = parser_->keep_alive();
  stream_.expires_never();
  handle(parser_->release());
}

// Tells a client what was wrong with its request, if there is a client and it made one.
void Session::refuse(error_code error) {
  is_keep_alive_ = false;
  if (error == http::error::header_limit) {
    return write({431, absl::StrCat("headers are larger than ", core_->options.header_bytes_max,
                                    " bytes\n")});
  }
  if (error == http::error::body_limit) {
    return write(
        {413, absl::StrCat("the body is larger than ", core_->options.body_bytes_max, " bytes\n")});
  }
  const bool is_malformed = error.category() == make_error_code(http::error::bad_method).category();
  if (is_malformed && error != http::error::end_of_stream &&
      error != http::error::partial_message) {
    return write({400, absl::StrCat("not a valid HTTP request: ", error.message(), "\n")});
  }
  close();
}

void Session::handle(http::request<http::string_body> message) {
  auto request = std::make_shared<HttpRequest>();
  const std::string_view target(message.target().data(), message.target().size());
  const size_t question = target.find('?');
  request->method.assign(message.method_string().data(), message.method_string().size());
  request->path = target.substr(0, question);
  if (question != target.npos) request->query = target.substr(question + 1);
  for (const auto& field : message) {
    request->headers.emplace_back(
        std::string(field.name_string().data(), field.name_string().size()),
        std::string(field.value().data(), field.value().size()));
  }
  request->body = std::move(message.body());

  const HttpRoutes::Match match = core_->routes.find(request->method, request->path);
  if (match.handler == nullptr && match.allowed.empty()) {
    return write({404, absl::StrCat("nothing at ", request->path, "\n")});
  }
  if (match.handler == nullptr) {
    HttpResponse refusal{405, absl::StrCat(request->path, " takes ", match.allowed, "\n")};
    refusal.headers.emplace_back("Allow", match.allowed);
    return write(std::move(refusal));
  }
  // The answer travels back to our thread; a late one must still find `io` there.
  (*match.handler)(request, [core = core_->shared_from_this(),
                             weak = weak_from_this()](HttpResponse response) mutable {
    asio::post(core->io, [weak = std::move(weak), response = std::move(response)]() mutable {
      if (const auto self = weak.lock()) self->write(std::move(response));
    });
  });
  if (request->on_gone == nullptr) return;
  waiting_ = std::move(request);
  watch();
}

// Waits for the client's next byte. If it is the end of the stream, nobody waits for the answer.
void Session::watch() {
  stream_.socket().async_wait(
      tcp::socket::wait_read,
      [weak = weak_from_this(), watched = std::weak_ptr(waiting_)](error_code error) {
        const auto self = weak.lock();
        if (self == nullptr || error || self->waiting_ == nullptr) return;
        if (self->waiting_ != watched.lock()) return;
        char byte = 0;
        error_code failed;
        auto& socket = self->stream_.socket();
        socket.non_blocking(true, failed);
        const size_t read =
            socket.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, failed);
        if (failed == asio::error::would_block) return self->watch();
        if (!failed && read > 0) return;  // its next request: it is there
        const auto gone = std::move(self->waiting_);
        self->close();
        gone->on_gone();
      });
}

void Session::write(HttpResponse response) {
  is_busy_ = true;
  waiting_ = nullptr;
  response_ = {static_cast<http::status>(response.status), 11};
  response_.set(http::field::server, "fairlead");
  response_.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) response_.set(name, value);
  response_.body() = std::move(response.body);
  response_.keep_alive(is_keep_alive_ && !core_->is_stopping);
  response_.prepare_payload();
  limit_time();
  http::async_write(stream_, response_, [self = shared_from_this()](error_code error, size_t) {
    self->on_write(error);
  });
}

void Session::on_write(error_code error) {
  is_busy_ = false;
  if (error) return close();
  if (response_.keep_alive()) return read();
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  close();
}

class Server final : public HttpServer {
 public:
  Server(const HttpOptions& options, HttpRoutes routes)
      : core_(std::make_shared<Core>(options, std::move(routes))) {}
  ~Server() override { stop(0); }

  absl::Status listen();
  int port() const override { return port_; }
  void stop(DurationNs grace) override;

 private:
  void accept();

  std::shared_ptr<Core> core_;
  int port_ = 0;
  std::thread thread_;
};

absl::Status Server::listen() {
  const HttpOptions& options = core_->options;
  error_code error;
  const auto address = asio::ip::make_address(options.bind_address, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat("\"", options.bind_address,
                                                   "\" is not an address to listen on for HTTP; "
                                                   "use one like 127.0.0.1, 0.0.0.0 or ::"));
  }
  const tcp::endpoint endpoint(address, static_cast<uint16_t>(options.port));
  tcp::acceptor& acceptor = core_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options.bind_address, ":", options.port, " for HTTP: ",
        error.message(), ". Stop the other server, or choose another port or bind address"));
  }
  port_ = acceptor.local_endpoint().port();
  accept();
  thread_ = std::thread([core = core_.get()] { core->io.run(); });
  return absl::OkStatus();
}

void Server::accept() {
  Core* core = core_.get();
  core->acceptor.async_accept([this, core](error_code error, tcp::socket socket) {
    if (core->is_stopping) return;
    if (error) {
      // Most likely out of descriptors, which passes; asking again at once would burn a core.
      core->retry_timer.expires_after(kAcceptPause);
      return core->retry_timer.async_wait([this, core](error_code) {
        if (!core->is_stopping) accept();
      });
    }
    if (core->sessions.size() < core->options.connections_max) {
      const auto session = std::make_shared<Session>(core, std::move(socket));
      core->sessions.insert(session);
      session->read();
    }
    accept();
  });
}

void Server::stop(DurationNs grace) {
  if (!thread_.joinable()) return;
  asio::post(core_->io, [core = core_.get(), grace] {
    core->is_stopping = true;
    error_code ignored;
    core->acceptor.close(ignored);
    core->grace_timer.expires_after(std::chrono::nanoseconds(grace));
    core->grace_timer.async_wait([core](error_code) { core->io.stop(); });
    const auto sessions = core->sessions;
    for (const auto& session : sessions) {
      if (session->is_idle()) session->close();
    }
    if (core->sessions.empty()) core->grace_timer.cancel();
  });
  thread_.join();
  core_->sessions.clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(const HttpOptions& options,
                                                              HttpRoutes routes) {
  auto server = std::make_unique<Server>(options, std::move(routes));
  if (absl::Status status = server->listen(); !status.ok()) return status;
  return server;
}

}  // namespace fairlead::server
