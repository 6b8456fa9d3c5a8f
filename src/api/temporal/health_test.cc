#include "api/temporal/health.h"

#include <gtest/gtest.h>

#include "api/temporal/grpc_client_for_test.h"
#include "api/temporal/grpc_transport.h"

namespace fairlead::api {
namespace {

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
// HealthCheckResponse with its only field. These bytes are on the wire.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";
constexpr char kServiceUnknown[] = "\x08\x03";

std::string ask(const std::string& service) {
  return service.empty() ? ""
                         : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
}

class HealthTest : public testing::Test {
 protected:
  void SetUp() override {
    MethodTable methods;
    StreamTable streams;
    health_.add_to(&methods, &streams);
    auto started = GrpcTransport::start({.port = 0}, std::move(methods), std::move(streams));
    ASSERT_TRUE(started.ok()) << started.status();
    transport_ = std::move(*started);
  }

  Health health_;
  std::unique_ptr<GrpcTransport> transport_;
};

// Java asks for the service by name before it connects, load balancers ask for "".
TEST_F(HealthTest, CheckFollowsTheSwitch) {
  TestClient client(transport_->port());
  for (const char* service : {"", "temporal.api.workflowservice.v1.WorkflowService",
                              "temporal.api.operatorservice.v1.OperatorService"}) {
    health_.set_serving(false);
    EXPECT_EQ(client.call(kCheck, ask(service)).second, kNotServing);
    health_.set_serving(true);
    EXPECT_EQ(client.call(kCheck, ask(service)).second, kServing);
  }
}

TEST_F(HealthTest, UnknownServiceIsNotFound) {
  TestClient client(transport_->port());
  const auto status = client.call(kCheck, ask("nobody")).first;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(client.call(kCheck, "\x0a\x7f").first.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(HealthTest, WatchTellsEveryChange) {
  TestClient client(transport_->port());
  TestClient::Stream stream(&client, kWatch);
  ASSERT_TRUE(stream.write(ask("")));
  stream.writes_done();
  std::string message;
  ASSERT_TRUE(stream.read(&message));
  EXPECT_EQ(message, kNotServing);
  health_.set_serving(true);
  health_.set_serving(true);  // not a change
  health_.set_serving(false);
  ASSERT_TRUE(stream.read(&message));
  EXPECT_EQ(message, kServing);
  ASSERT_TRUE(stream.read(&message));
  EXPECT_EQ(message, kNotServing);
  stream.cancel();
  EXPECT_EQ(stream.finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthTest, WatchOfAnUnknownServiceStaysOpen) {
  TestClient client(transport_->port());
  TestClient::Stream stream(&client, kWatch);
  ASSERT_TRUE(stream.write(ask("nobody")));
  std::string message;
  ASSERT_TRUE(stream.read(&message));
  EXPECT_EQ(message, kServiceUnknown);
  // The server goes down with the watcher still there.
  transport_->shutdown(0);
  EXPECT_FALSE(stream.finish().ok());
}

}  // namespace
}  // namespace fairlead::api
