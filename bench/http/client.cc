#include "http/client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <utility>

#include "load/transport.h"

namespace fairlead::http_load {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// The server hangs up on connections that are silent for half a minute.
constexpr DurationNs kIdleMax = 10 * kSecond;

}  // namespace

class Client::Connection : public std::enable_shared_from_this<Client::Connection> {
 public:
  explicit Connection(asio::io_context* io) : socket(*io) {}

  using Done = std::function<void(Answer)>;

  void ask(http::request<http::string_body> request, const tcp::endpoint& server, Done done) {
    request_ = std::move(request);
    done_ = std::move(done);
    if (socket.is_open()) return write();
    socket.async_connect(server, [self = shared_from_this()](error_code error) {
      if (error) return self->fail(error);
      error_code ignored;
      self->socket.set_option(tcp::no_delay(true), ignored);
      self->write();
    });
  }

  tcp::socket socket;
  TimeNs used_at = 0;

 private:
  void write() {
    http::async_write(socket, request_, [self = shared_from_this()](error_code error, size_t) {
      if (error) return self->fail(error);
      self->read();
    });
  }

  void read() {
    response_ = {};
    http::async_read(socket, buffer_, response_,
                     [self = shared_from_this()](error_code error, size_t) {
                       if (error) return self->fail(error);
                       self->finish();
                     });
  }

  void finish() {
    Answer answer;
    answer.status = response_.result_int();
    error_code error;
    auto body = json::parse(response_.body(), error);
    if (!error && body.is_object()) answer.body = std::move(body.as_object());
    if (!answer.is_ok()) answer.error = response_.body();
    if (!response_.keep_alive()) socket.close(error);
    used_at = load::monotonic_now();
    std::exchange(done_, nullptr)(std::move(answer));
  }

  void fail(error_code error) {
    error_code ignored;
    socket.close(ignored);
    Answer answer;
    answer.error = error.message();
    std::exchange(done_, nullptr)(std::move(answer));
  }

  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
  beast::flat_buffer buffer_;
  Done done_;
};

Client::Client(const std::string& host, int port)
    : server_(asio::ip::make_address(host), static_cast<uint16_t>(port)) {}

Client::~Client() = default;

void Client::ask(const char* method, const std::string& path, std::string body, Then then) {
  std::shared_ptr<Connection> connection;
  while (!idle_.empty() && connection == nullptr) {
    connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->used_at + kIdleMax < load::monotonic_now()) connection = nullptr;
  }
  if (connection == nullptr) connection = std::make_shared<Connection>(&io_);
  http::request<http::string_body> request{http::string_to_verb(method), "/api/" + path, 11};
  request.set(http::field::host, "localhost");
  request.set(http::field::content_type, "application/json");
  request.set("X-Durable-Workflow-Control-Plane-Version", "2");
  request.set("X-Durable-Workflow-Protocol-Version", "1.20");
  request.body() = std::move(body);
  request.prepare_payload();
  connection->ask(std::move(request), server_,
                  [this, connection, then = std::move(then)](Answer answer) {
                    ended(connection, std::move(answer), then);
                  });
}

void Client::ended(const std::shared_ptr<Connection>& connection, Answer answer, const Then& then) {
  ++answered_;
  if (!answer.is_ok()) {
    if (errors_++ == 0) first_error_ = answer.error;
  }
  if (connection->socket.is_open()) idle_.push_back(connection);
  then(std::move(answer));
}

void Client::after(DurationNs delay, std::function<void()> then) {
  auto timer = std::make_shared<asio::steady_timer>(io_, std::chrono::nanoseconds(delay));
  timer->async_wait([timer, then = std::move(then)](error_code) { then(); });
}

bool Client::run_until(const std::function<bool()>& is_done, DurationNs timeout) {
  const TimeNs deadline = load::monotonic_now() + timeout;
  while (!is_done()) {
    const TimeNs left = deadline - load::monotonic_now();
    if (left <= 0) return false;
    io_.restart();
    io_.run_one_for(std::chrono::nanoseconds(left));
  }
  return true;
}

}  // namespace fairlead::http_load
