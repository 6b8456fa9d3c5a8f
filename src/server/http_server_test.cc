#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <future>
#include <thread>

namespace fairlead::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using testing::HasSubstr;

// A connection that blocks, as simple clients do.
class TestConnection {
 public:
  explicit TestConnection(int port) : socket_(io_) {
    socket_.connect(tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)));
  }

  void send(http::verb method, const std::string& target, const std::string& body = "") {
    http::request<http::string_body> request(method, target, 11);
    request.set(http::field::host, "localhost");
    request.body() = body;
    request.prepare_payload();
    http::write(socket_, request);
  }
  void send_raw(const std::string& bytes) {
    boost::system::error_code ignored;
    asio::write(socket_, asio::buffer(bytes), ignored);
  }
  http::response<http::string_body> receive() {
    http::response<http::string_body> response;
    http::read(socket_, buffer_, response);
    return response;
  }
  http::response<http::string_body> get(const std::string& target) {
    send(http::verb::get, target);
    return receive();
  }
  bool is_closed_by_peer() {
    char byte;
    boost::system::error_code error;
    socket_.read_some(asio::buffer(&byte, 1), error);
    return error == asio::error::eof || error == asio::error::connection_reset;
  }

 private:
  asio::io_context io_;
  tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
};

class HttpServerTest : public testing::Test {
 protected:
  void start(HttpOptions options = {}) {
    options.port = 0;
    HttpRoutes routes;
    add_operator_routes([this] { return is_healthy_.load(); }, metrics_, &routes);
    routes.add_route("POST", "/later", [this](std::shared_ptr<const HttpRequest>, HttpReply reply) {
      later_.set_value(std::move(reply));
    });
    routes.add_route("POST", "/watched",
                     [this](std::shared_ptr<const HttpRequest> request, HttpReply reply) {
                       request->on_gone = [this] { gone_.set_value(); };
                       later_.set_value(std::move(reply));
                     });
    routes.add_route("POST", "/echo/*",
                     [](std::shared_ptr<const HttpRequest> request, HttpReply reply) {
                       reply({201, request->path + "?" + request->query + ":" + request->body +
                                       std::string(request->header("HOST"))});
                     });
    auto started = HttpServer::start(options, std::move(routes));
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = std::move(*started);
  }

  std::atomic<bool> is_healthy_ = true;
  std::shared_ptr<prometheus::Registry> metrics_ = std::make_shared<prometheus::Registry>();
  std::promise<HttpReply> later_;
  std::promise<void> gone_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, HealthFollowsTheServerOnOneConnection) {
  start();
  TestConnection connection(server_->port());
  auto response = connection.get("/healthz");
  EXPECT_EQ(response.result_int(), 200u);
  EXPECT_EQ(response.body(), "ok\n");
  is_healthy_ = false;
  EXPECT_EQ(connection.get("/healthz").result_int(), 503u);
}

TEST_F(HttpServerTest, MetricsAreInPrometheusText) {
  start();
  prometheus::BuildCounter()
      .Name("tasks_total")
      .Help("Tasks")
      .Register(*metrics_)
      .Add({})
      .Increment(3);
  const auto response = TestConnection(server_->port()).get("/metrics");
  EXPECT_EQ(response.result_int(), 200u);
  EXPECT_THAT(std::string(response[http::field::content_type]), HasSubstr("version=0.0.4"));
  EXPECT_THAT(response.body(), HasSubstr("tasks_total 3"));
}

TEST_F(HttpServerTest, RoutesBelowAPathSeeTheWholeRequest) {
  start();
  TestConnection connection(server_->port());
  connection.send(http::verb::post, "/echo/a/b?c=%20d", "body@");
  const auto response = connection.receive();
  EXPECT_EQ(response.result_int(), 201u);
  EXPECT_EQ(response.body(), "/echo/a/b?c=%20d:body@localhost");
}

TEST_F(HttpServerTest, WrongPathAndWrongMethodAreTold) {
  start();
  TestConnection connection(server_->port());
  EXPECT_EQ(connection.get("/nowhere").result_int(), 404u);
  EXPECT_EQ(connection.get("/echo").result_int(), 404u);
  connection.send(http::verb::delete_, "/healthz");
  const auto response = connection.receive();
  EXPECT_EQ(response.result_int(), 405u);
  EXPECT_EQ(std::string(response[http::field::allow]), "GET");
}

// A long poll over HTTP: the answer is made elsewhere, while others are served.
TEST_F(HttpServerTest, AnswerMayComeLaterFromAnotherThread) {
  start();
  TestConnection waiting(server_->port());
  waiting.send(http::verb::post, "/later");
  HttpReply reply = later_.get_future().get();
  EXPECT_EQ(TestConnection(server_->port()).get("/healthz").result_int(), 200u);
  std::thread([&] { reply({200, "at last"}); }).join();
  EXPECT_EQ(waiting.receive().body(), "at last");
}

// A worker that was killed must not be given the next task.
TEST_F(HttpServerTest, AHandlerHearsOfAClientThatHangsUp) {
  start();
  HttpReply reply;
  {
    TestConnection waiting(server_->port());
    waiting.send(http::verb::post, "/watched");
    reply = later_.get_future().get();
  }
  gone_.get_future().get();
  reply({200, "to nobody"});
  EXPECT_EQ(TestConnection(server_->port()).get("/healthz").result_int(), 200u);
}

TEST_F(HttpServerTest, AWatchedClientIsAnsweredAndMayGoOn) {
  start();
  TestConnection waiting(server_->port());
  waiting.send(http::verb::post, "/watched");
  later_.get_future().get()({200, "first"});
  EXPECT_EQ(waiting.receive().body(), "first");
  EXPECT_EQ(waiting.get("/healthz").result_int(), 200u);
}

TEST_F(HttpServerTest, LimitsAreKept) {
  start({.header_bytes_max = 1000, .body_bytes_max = 100, .connections_max = 2});
  TestConnection big_body(server_->port());
  big_body.send_raw("POST /echo/x HTTP/1.1\r\nContent-Length: 101\r\n\r\n");
  EXPECT_EQ(big_body.receive().result_int(), 413u);
  EXPECT_TRUE(big_body.is_closed_by_peer());
  TestConnection big_header(server_->port());
  big_header.send_raw("GET /healthz HTTP/1.1\r\nX: " + std::string(1000, 'x') + "\r\n\r\n");
  EXPECT_EQ(big_header.receive().result_int(), 431u);
  EXPECT_TRUE(big_header.is_closed_by_peer());

  TestConnection first(server_->port());
  TestConnection second(server_->port());
  EXPECT_EQ(first.get("/healthz").result_int(), 200u);
  EXPECT_EQ(second.get("/healthz").result_int(), 200u);
  EXPECT_TRUE(TestConnection(server_->port()).is_closed_by_peer());
}

TEST_F(HttpServerTest, GarbageIsRefusedAndSilenceTimesOut) {
  start({.idle_timeout_ns = 50 * kMillisecond});
  TestConnection garbage(server_->port());
  garbage.send_raw("\x16\x03\x01 hello\r\n\r\n");
  EXPECT_EQ(garbage.receive().result_int(), 400u);
  TestConnection silent(server_->port());
  EXPECT_TRUE(silent.is_closed_by_peer());
  TestConnection half(server_->port());
  half.send_raw("GET /heal");
  EXPECT_TRUE(half.is_closed_by_peer());
}

TEST_F(HttpServerTest, StopAnswersWhatIsInHandAndDropsTheRest) {
  start();
  TestConnection idle(server_->port());
  EXPECT_EQ(idle.get("/healthz").result_int(), 200u);
  TestConnection waiting(server_->port());
  waiting.send(http::verb::post, "/later");
  HttpReply reply = later_.get_future().get();
  std::thread stopper([&] { server_->stop(kMinute); });
  EXPECT_TRUE(idle.is_closed_by_peer());
  reply({200, "just in time"});
  const auto response = waiting.receive();
  EXPECT_EQ(response.body(), "just in time");
  EXPECT_FALSE(response.keep_alive());
  stopper.join();
}

TEST_F(HttpServerTest, AnswerAfterTheEndGoesNowhere) {
  start();
  TestConnection waiting(server_->port());
  waiting.send(http::verb::post, "/later");
  HttpReply reply = later_.get_future().get();
  server_->stop(0);
  EXPECT_TRUE(waiting.is_closed_by_peer());
  server_.reset();
  reply({200, "too late"});
}

TEST_F(HttpServerTest, SecondServerOnThePortIsRefusedByName) {
  start();
  const auto second = HttpServer::start({.port = server_->port()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(std::to_string(server_->port())));
  EXPECT_FALSE(HttpServer::start({.bind_address = "everywhere"}, {}).ok());
}

}  // namespace
}  // namespace fairlead::server
