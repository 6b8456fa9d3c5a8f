#include "server/http_caller.h"

#include <future>

#include "gtest/gtest.h"
#include "server/http_routes.h"
#include "server/http_server.h"

namespace fairlead::server {
namespace {

using history::CallbackOutcome;
using Kind = CallbackOutcome::Kind;

// A receiver on this machine, and a caller that reaches it.
class HttpCallerTest : public testing::Test {
 protected:
  void SetUp() override {
    HttpOptions options;
    options.port = 0;
    HttpRoutes routes;
    routes.add_route(
        "POST", "/*", [this](std::shared_ptr<const HttpRequest> request, HttpReply reply) {
          if (request->path == "/never") {
            held_.push_back(std::move(reply));
            return;
          }
          HttpResponse response;
          response.status = request->path == "/redirect" ? 307 : request->path == "/no" ? 404 : 200;
          if (request->path == "/redirect") response.headers = {{"Location", "/yes"}};
          if (request->path == "/maybe") {
            response.status = 404;
            response.headers = {{"Nexus-Request-Retryable", "true"}};
          }
          seen_ = request;
          reply(std::move(response));
        });
    auto started = HttpServer::start(options, std::move(routes));
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = std::move(*started);
  }

  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + path;
  }

  CallbackOutcome call(history::Outgoing request, DurationNs time = kMinute) {
    std::promise<CallbackOutcome> told;
    caller_.call(std::move(request), clock_.now() + time,
                 [&](CallbackOutcome outcome) { told.set_value(std::move(outcome)); });
    return told.get_future().get();
  }

  SystemClock clock_;
  std::vector<HttpReply> held_;
  std::shared_ptr<const HttpRequest> seen_;
  std::unique_ptr<HttpServer> server_;
  HttpCaller caller_{&clock_};
};

TEST_F(HttpCallerTest, ACallbackIsAPostWithItsHeaders) {
  const auto outcome =
      call({url("/yes?q=1"), {{"token", "T"}, {"empty", ""}, {"content-type", "text/x"}}, "body"});
  EXPECT_EQ(outcome.kind, Kind::kDelivered) << outcome.failure;
  ASSERT_NE(seen_, nullptr);
  EXPECT_EQ(seen_->query, "q=1");
  EXPECT_EQ(seen_->body, "body");
  EXPECT_EQ(seen_->header("token"), "T");
  EXPECT_EQ(seen_->header("content-type"), "text/x");
}

TEST_F(HttpCallerTest, WithoutABodyThereIsNoContentType) {
  EXPECT_EQ(call({url("/yes"), {}, ""}).kind, Kind::kDelivered);
  EXPECT_EQ(seen_->body, "");
  EXPECT_EQ(seen_->header("content-type"), "");
}

TEST_F(HttpCallerTest, TheReceiverMayRefuse) {
  EXPECT_EQ(call({url("/no"), {}, "x"}).kind, Kind::kRefused);
  EXPECT_EQ(call({url("/maybe"), {}, "x"}).kind, Kind::kFailed);
}

// Whoever answers could send the server where nobody has allowed it to go.
TEST_F(HttpCallerTest, RedirectsAreNotFollowed) {
  const auto outcome = call({url("/redirect"), {}, "x"});
  EXPECT_EQ(outcome.kind, Kind::kFailed);
  EXPECT_EQ(outcome.failure, "unexpected response status: \"307 Temporary Redirect\"");
  EXPECT_EQ(seen_->path, "/redirect");
}

TEST_F(HttpCallerTest, WhoIsNotThereIsTriedAgainLater) {
  EXPECT_EQ(call({"http://127.0.0.1:1/", {}, "x"}).kind, Kind::kFailed);
  EXPECT_EQ(call({"file:///etc/passwd", {}, "x"}).kind, Kind::kFailed);
}

TEST_F(HttpCallerTest, AReceiverThatDoesNotAnswerIsGivenUp) {
  EXPECT_EQ(call({url("/never"), {}, "x"}, 50 * kMillisecond).kind, Kind::kFailed);
  EXPECT_EQ(call({url("/yes"), {}, "x"}, 0).kind, Kind::kFailed);
}

TEST_F(HttpCallerTest, AfterTheEndNobodyIsTold) {
  bool is_told = false;
  caller_.call({url("/never"), {}, "x"}, clock_.now() + kMinute,
               [&](const CallbackOutcome&) { is_told = true; });
  caller_.stop();
  caller_.call({url("/yes"), {}, "x"}, clock_.now() + kMinute,
               [&](const CallbackOutcome&) { is_told = true; });
  EXPECT_FALSE(is_told);
}

}  // namespace
}  // namespace fairlead::server
