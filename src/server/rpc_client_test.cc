#include "server/rpc_client.h"

#include "absl/strings/str_cat.h"
#include "api/temporal/call.h"
#include "api/temporal/grpc_transport.h"
#include "gtest/gtest.h"

namespace fairlead::server {
namespace {

class RpcClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api::MethodTable methods;
    methods.add("/x.X/Echo", [](const std::shared_ptr<api::Call>& call) {
      call->reply({}, "<" + std::string(call->body()) + ">");
    });
    methods.add("/x.X/Refuse", [](const std::shared_ptr<api::Call>& call) {
      call->reply({5, "no such thing", ""}, {});
    });
    methods.add("/x.X/Never", [](const std::shared_ptr<api::Call>& call) {
      call->on_cancel([call] { call->reply({}, {}); });
    });
    auto transport = api::GrpcTransport::start({.port = 0}, std::move(methods), {});
    ASSERT_TRUE(transport.ok()) << transport.status();
    transport_ = std::move(*transport);
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", transport_->port()); }

  std::unique_ptr<api::GrpcTransport> transport_;
};

TEST_F(RpcClientTest, CarriesRequestsAndAnswers) {
  RpcClient client(address(), 30 * kSecond);
  EXPECT_EQ(*client.call("/x.X/Echo", "a"), "<a>");
  const std::string large(100'000, 'b');
  EXPECT_EQ(*client.call("/x.X/Echo", large), "<" + large + ">");
}

TEST_F(RpcClientTest, KeepsTheServersCodeAndText) {
  RpcClient client(address(), 30 * kSecond);
  const auto refused = client.call("/x.X/Refuse", "");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(refused.status().message(), "no such thing");
}

TEST_F(RpcClientTest, GivesUpWhenItsTimeIsOver) {
  RpcClient client(address(), 50 * kMillisecond);
  EXPECT_EQ(client.call("/x.X/Never", "").status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RpcClientTest, WithoutAServerItSaysSo) {
  const std::string nobody = address();
  transport_->shutdown(0);
  transport_.reset();
  RpcClient client(nobody, 30 * kSecond);
  EXPECT_EQ(client.call("/x.X/Echo", "").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace fairlead::server
