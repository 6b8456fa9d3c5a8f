#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::api {

inline grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

inline std::string to_string(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);
  std::string out;
  for (const grpc::Slice& slice : slices) {
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return out;
}

// A unary call that the test has started and will hear of.
struct ClientCall {
  grpc::ClientContext context;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

// An ordinary gRPC client that speaks bytes. Used by one thread, and only while that one is in
// `wait`, `wait_until` or a stream's function does anything move on its connection.
class TestClient {
 public:
  explicit TestClient(int port, grpc::ChannelArguments arguments = {}) {
    // A connection of its own, so that dropping the client drops the connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
  }
  ~TestClient() {
    stub_.reset();
    queue_.Shutdown();
    Event event;
    while (queue_.Next(&event.tag, &event.ok)) {
    }
  }

  void start(ClientCall* call, const std::string& method, const std::string& body) {
    call->reader = stub_->PrepareUnaryCall(&call->context, method, to_buffer(body), &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->reply, &call->status, call);
  }

  // The next call that has ended.
  ClientCall* wait() { return static_cast<ClientCall*>(next().tag); }

  // Waits for something else.
  template <typename Condition>
  void wait_until(Condition is_met) {
    while (!is_met()) {
      Event event;
      const auto soon = std::chrono::system_clock::now() + std::chrono::milliseconds(2);
      if (queue_.AsyncNext(&event.tag, &event.ok, soon) == grpc::CompletionQueue::GOT_EVENT) {
        events_.push_back(event);
      }
    }
  }
  void wait_for(std::promise<void>* promise) {
    const auto future = promise->get_future();
    wait_until(
        [&] { return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  }

  std::pair<grpc::Status, std::string> call(const std::string& method, const std::string& body) {
    ClientCall call;
    start(&call, method, body);
    wait();
    return {call.status, to_string(call.reply)};
  }

  // A streaming call, one operation at a time.
  class Stream {
   public:
    Stream(TestClient* client, const std::string& method) : client_(client) {
      stream_ = client->stub_->PrepareCall(&context_, method, &client->queue_);
      stream_->StartCall(nullptr);
      await();
    }
    bool write(const std::string& body) {
      stream_->Write(to_buffer(body), nullptr);
      return await();
    }
    bool read(std::string* body) {
      grpc::ByteBuffer buffer;
      stream_->Read(&buffer, nullptr);
      if (!await()) return false;
      *body = to_string(buffer);
      return true;
    }
    void writes_done() {
      stream_->WritesDone(nullptr);
      await();
    }
    grpc::Status finish() {
      grpc::Status status;
      stream_->Finish(&status, nullptr);
      await();
      return status;
    }
    void cancel() { context_.TryCancel(); }

   private:
    bool await() { return client_->next().ok; }

    TestClient* client_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  };

 private:
  struct Event {
    void* tag = nullptr;
    bool ok = false;
  };

  Event next() {
    Event event;
    if (events_.empty()) {
      (void)queue_.Next(&event.tag, &event.ok);
      return event;
    }
    event = events_.front();
    events_.pop_front();
    return event;
  }

  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
  std::deque<Event> events_;  // that came while something else was waited for
};

}  // namespace fairlead::api
