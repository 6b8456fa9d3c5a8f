#include "api/temporal/grpc_transport.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "api/temporal/answers.h"
#include "api/temporal/grpc_client_for_test.h"
#include "api/temporal/grpc_wire.h"
#include "base/error.h"

namespace fairlead::api {
namespace {

using testing::HasSubstr;

constexpr char kEcho[] = "/test.Service/Echo";
constexpr char kFail[] = "/test.Service/Fail";
constexpr char kRefuse[] = "/test.Service/Refuse";
constexpr char kPark[] = "/test.Service/Park";

// Calls that the server keeps until the test says what becomes of them.
class CarPark {
 public:
  void put(std::shared_ptr<Call> call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    changed_.notify_all();
  }
  std::shared_ptr<Call> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !calls_.empty(); });
    auto call = std::move(calls_.front());
    calls_.pop_front();
    return call;
  }
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return calls_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Call>> calls_;
};

class GrpcTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    MethodTable methods;
    methods.add(kEcho, [](std::shared_ptr<Call> call) {
      std::string body(call->body());
      call->reply({}, std::move(body));
    });
    methods.add(kFail, [](std::shared_ptr<Call> call) {
      call->reply({5, "no such thing: Käse", std::string("\x08\x05\0detail", 9)}, "ignored");
    });
    methods.add(kRefuse, [](std::shared_ptr<Call> call) {
      call->reply(to_rpc_status(errors::concurrent_limit("too many")), "");
    });
    methods.add(kPark, [this](std::shared_ptr<Call> call) {
      call->release_body();
      park_.put(std::move(call));
    });
    methods.add("/test.Service/Headers", [](std::shared_ptr<Call> call) {
      std::string seen(call->header("temporal-namespace"));
      seen += "|" + std::string(call->header("absent")) + "|" + call->method();
      seen += call->deadline() == kNever ? "|never" : "|sometime";
      call->reply({}, std::move(seen));
    });
    auto started = GrpcTransport::start({.port = 0, .threads = threads(), .refusals = &refusals_},
                                        std::move(methods));
    ASSERT_TRUE(started.ok()) << started.status();
    transport_ = std::move(*started);
  }

  virtual int threads() { return 1; }

  // The next call that the server keeps.
  std::shared_ptr<Call> take_parked(TestClient* client) {
    client->wait_until([this] { return !park_.is_empty(); });
    return park_.take();
  }

  CarPark park_;
  RefusalCounts refusals_;
  std::unique_ptr<GrpcTransport> transport_;
};

TEST_F(GrpcTransportTest, RequestAndReplyPassUnchanged) {
  TestClient client(transport_->port());
  // Empty, small, larger than one read, and larger than what is copied on the way out.
  for (const size_t size : {0, 5, 446, 5'000, 3'000'000}) {
    std::string body(size, 'x');
    for (size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 7);
    const auto [status, reply] = client.call(kEcho, body);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(reply, body) << size;
  }
}

TEST_F(GrpcTransportTest, HeadersAndDeadlineReachTheHandler) {
  TestClient client(transport_->port());
  ClientCall with;
  with.context.AddMetadata("temporal-namespace", "default");
  with.context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  client.start(&with, "/test.Service/Headers", "");
  client.wait();
  EXPECT_EQ(to_string(with.reply), "default||/test.Service/Headers|sometime");
  EXPECT_EQ(client.call("/test.Service/Headers", "").second, "||/test.Service/Headers|never");
}

// Operators have alerts on calls that are turned away, by cause; other errors are callers' own.
TEST_F(GrpcTransportTest, CallsThatAreTurnedAwayAreCounted) {
  TestClient client(transport_->port());
  EXPECT_EQ(client.call(kFail, "").first.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(refusals_.list().empty());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.call(kRefuse, "").first.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  const auto counted = refusals_.list();
  ASSERT_EQ(counted.size(), 1U);
  EXPECT_EQ(counted[0].operation, "Refuse");
  EXPECT_EQ(counted[0].cause, "ConcurrentLimit");
  EXPECT_EQ(counted[0].scope, "Namespace");
  EXPECT_EQ(counted[0].count, 2U);
}

// SDKs tell errors apart by the details, so these must arrive byte for byte.
TEST_F(GrpcTransportTest, ErrorCarriesCodeTextAndDetails) {
  TestClient client(transport_->port());
  const auto [status, reply] = client.call(kFail, "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no such thing: Käse");
  EXPECT_EQ(status.error_details(), std::string("\x08\x05\0detail", 9));
  EXPECT_EQ(reply, "");
}

// Programs match on this text to learn that a server is too old for them.
TEST_F(GrpcTransportTest, UnknownMethodSaysWhichOfWhichService) {
  TestClient client(transport_->port());
  const auto status =
      client.call("/temporal.api.workflowservice.v1.WorkflowService/Fly", "x").first;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(),
            "unknown method Fly for service temporal.api.workflowservice.v1.WorkflowService");
  EXPECT_EQ(client.call("/nonsense", "x").first.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// Two thousand workers that wait for work are an ordinary evening.
TEST_F(GrpcTransportTest, ParkedCallsAreAnsweredFromAnotherThread) {
  constexpr int kCalls = 2000;
  TestClient client(transport_->port());
  std::vector<ClientCall> calls(kCalls);
  for (ClientCall& call : calls) client.start(&call, kPark, "poll");
  std::mutex mutex;
  int delivered = 0;
  std::promise<void> all_delivered;
  std::thread waker([&] {
    for (int i = 0; i < kCalls; ++i) {
      park_.take()->reply({}, "task", [&](bool is_delivered) {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(is_delivered);
        if (++delivered == kCalls) all_delivered.set_value();
      });
    }
  });
  for (int i = 0; i < kCalls; ++i) {
    const ClientCall* call = client.wait();
    ASSERT_TRUE(call->status.ok()) << call->status.error_message();
    ASSERT_EQ(to_string(call->reply), "task");
  }
  waker.join();
  all_delivered.get_future().wait();
}

// A poll that its client has given up must leave the queue before a task is lost on it.
TEST_F(GrpcTransportTest, CancellationIsNoticed) {
  TestClient client(transport_->port());
  ClientCall call;
  client.start(&call, kPark, "poll");
  const auto parked = take_parked(&client);
  std::promise<void> gone;
  parked->on_cancel([&] { gone.set_value(); });
  call.context.TryCancel();
  client.wait();
  client.wait_for(&gone);
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::CANCELLED);

  // Whoever registers late, or replies late, is told at once.
  bool told = false;
  parked->on_cancel([&] { told = true; });
  EXPECT_TRUE(told);
  bool is_delivered = true;
  parked->reply({}, "too late", [&](bool value) { is_delivered = value; });
  EXPECT_FALSE(is_delivered);
}

TEST_F(GrpcTransportTest, PassedDeadlineIsNoticed) {
  TestClient client(transport_->port());
  ClientCall call;
  call.context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  client.start(&call, kPark, "poll");
  const auto parked = take_parked(&client);
  std::promise<void> gone;
  parked->on_cancel([&] { gone.set_value(); });
  client.wait_for(&gone);
  client.wait();
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  parked->reply({}, "");
}

TEST_F(GrpcTransportTest, ReplyToAVanishedClientIsNotDelivered) {
  auto client = std::make_unique<TestClient>(transport_->port());
  auto call = std::make_unique<ClientCall>();
  client->start(call.get(), kPark, "poll");
  const auto parked = take_parked(client.get());
  std::promise<void> gone;
  parked->on_cancel([&] { gone.set_value(); });
  call->context.TryCancel();
  client->wait();
  call.reset();
  client.reset();
  gone.get_future().wait();
  std::promise<bool> delivered;
  parked->reply({}, "task", [&](bool value) { delivered.set_value(value); });
  EXPECT_FALSE(delivered.get_future().get());
}

// Reply and cancellation race; whichever wins, the outcome is told exactly once.
TEST_F(GrpcTransportTest, CancelDuringReplyIsToldOnce) {
  TestClient client(transport_->port());
  for (int round = 0; round < 200; ++round) {
    ClientCall call;
    client.start(&call, kPark, "poll");
    const auto parked = take_parked(&client);
    std::promise<bool> delivered;
    std::thread canceller([&] { call.context.TryCancel(); });
    parked->reply({}, "task", [&](bool value) { delivered.set_value(value); });
    canceller.join();
    client.wait();
    const bool is_delivered = delivered.get_future().get();
    // The converse is not promised: what was written may still be overtaken by the cancellation.
    if (call.status.ok()) EXPECT_TRUE(is_delivered);
  }
}

// Go and core turn this text into a failed workflow task instead of retrying for ever.
TEST_F(GrpcTransportTest, OversizedRequestIsRefusedByItsKnownText) {
  TestClient client(transport_->port());
  const auto status = client.call(kEcho, std::string((4 << 20) + 1, 'x')).first;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("message larger than max"));
  EXPECT_TRUE(client.call(kEcho, std::string(4 << 20, 'x')).first.ok());
}

TEST_F(GrpcTransportTest, CompressedRequestIsUnderstood) {
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  TestClient client(transport_->port(), arguments);
  const std::string body(100'000, 'x');
  const auto [status, reply] = client.call(kEcho, body);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply, body);
}

TEST_F(GrpcTransportTest, CallWithoutAMessageIsAnError) {
  TestClient client(transport_->port());
  TestClient::Stream stream(&client, kEcho);
  stream.writes_done();
  EXPECT_EQ(stream.finish().error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_TRUE(client.call(kEcho, "still here").first.ok());
}

TEST_F(GrpcTransportTest, SecondMessageAndMissingHalfCloseAreHarmless) {
  TestClient client(transport_->port());
  {
    TestClient::Stream stream(&client, kEcho);
    stream.write("one");
    stream.write("two");
    std::string reply;
    ASSERT_TRUE(stream.read(&reply));
    EXPECT_EQ(reply, "one");
    EXPECT_TRUE(stream.finish().ok());
  }
  EXPECT_EQ(client.call(kEcho, "next").second, "next");
}

TEST_F(GrpcTransportTest, ShutdownWaitsForCallsInHandAndCancelsTheRest) {
  TestClient client(transport_->port());
  ClientCall patient;
  ClientCall hopeless;
  client.start(&patient, kPark, "");
  const auto answered = take_parked(&client);
  client.start(&hopeless, kPark, "");
  const auto forgotten = take_parked(&client);
  std::promise<void> gone;
  forgotten->on_cancel([&] { gone.set_value(); });

  std::thread closer([&] { transport_->shutdown(200 * kMillisecond); });
  answered->reply({}, "in time");
  client.wait();
  EXPECT_EQ(to_string(patient.reply), "in time");
  client.wait_for(&gone);
  client.wait();
  EXPECT_FALSE(hopeless.status.ok());
  closer.join();
  bool is_delivered = true;
  forgotten->reply({}, "after the end", [&](bool value) { is_delivered = value; });
  EXPECT_FALSE(is_delivered);
}

TEST_F(GrpcTransportTest, ShutdownWithManyParkedCallsEnds) {
  constexpr int kCalls = 500;
  TestClient client(transport_->port());
  std::vector<ClientCall> calls(kCalls);
  for (ClientCall& call : calls) client.start(&call, kPark, "poll");
  std::vector<std::shared_ptr<Call>> parked;
  for (int i = 0; i < kCalls; ++i) parked.push_back(take_parked(&client));
  // Half of them are answered while the server is torn down.
  std::thread waker([&] {
    for (int i = 0; i < kCalls; i += 2) parked[i]->reply({}, "task");
  });
  transport_->shutdown(0);
  waker.join();
  for (int i = 0; i < kCalls; ++i) client.wait();
  for (int i = 1; i < kCalls; i += 2) parked[i]->reply({}, "task");
}

TEST_F(GrpcTransportTest, SecondServerOnThePortIsRefusedByName) {
  const auto second = GrpcTransport::start({.port = transport_->port()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(std::to_string(transport_->port())));
}

// Port scanners and browsers knock at every door.
TEST_F(GrpcTransportTest, GarbageOnThePortLeavesTheServerServing) {
  std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  preface += std::string("\0\0\0\4\0\0\0\0\0", 9);  // SETTINGS
  std::string noise(4096, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 131 + (i >> 3));
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), noise, preface + noise,
        preface + std::string("\xff\xff\xff\0\0\0\0\0\1", 9), std::string("PRI * HT")}) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(transport_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    (void)send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(fd, SHUT_WR);
    char drain[512];
    while (recv(fd, drain, sizeof(drain), 0) > 0) {
    }
    close(fd);
    TestClient client(transport_->port());
    ASSERT_EQ(client.call(kEcho, "hello").second, "hello");
  }
}

class TwoThreads : public GrpcTransportTest {
  int threads() override { return 2; }
};

TEST_F(TwoThreads, ServeManyConnections) {
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([this] {
      TestClient client(transport_->port());
      for (int n = 0; n < 200; ++n) {
        ASSERT_EQ(client.call(kEcho, std::to_string(n)).second, std::to_string(n));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(TwoThreads, ShutdownUnderLoadEnds) {
  std::vector<std::thread> clients;
  std::promise<void> first;
  std::once_flag once;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      TestClient client(transport_->port());
      while (client.call(kEcho, "again").first.ok()) {
        std::call_once(once, [&] { first.set_value(); });
      }
    });
  }
  first.get_future().wait();
  transport_->shutdown(0);
  for (std::thread& client : clients) client.join();
}

// A client that says how long it will wait, and then says nothing more.
TEST_F(GrpcTransportTest, DeadlineIsKeptByTheServerToo) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(transport_->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const auto literal = [](std::string_view name, std::string_view value) {
    std::string out(1, '\0');  // a header that is not to be remembered, with a new name
    for (const std::string_view text : {name, value}) {
      out.push_back(static_cast<char>(text.size()));
      out.append(text);
    }
    return out;
  };
  const std::string headers = "\x83\x86" + literal(":path", kPark) + literal(":authority", "x") +
                              literal("content-type", "application/grpc") +
                              literal("grpc-timeout", "1m");
  const auto frame = [](std::string_view payload, char type, char flags) {
    std::string out{'\0', '\0', static_cast<char>(payload.size()), type, flags, 0, 0, 0, 1};
    return out.append(payload);
  };
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  bytes += std::string("\0\0\0\4\0\0\0\0\0", 9);
  bytes += frame(headers, 1, 4) + frame(std::string(kMessagePrefixBytes, '\0'), 0, 1);
  ASSERT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  const auto parked = park_.take();
  std::promise<void> gone;
  parked->on_cancel([&] { gone.set_value(); });
  gone.get_future().wait();
  close(fd);
  parked->reply({}, "");
}

}  // namespace
}  // namespace fairlead::api
