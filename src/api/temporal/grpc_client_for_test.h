#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
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

// An ordinary gRPC client that speaks bytes. Used by one thread.
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
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  void start(ClientCall* call, const std::string& method, const std::string& body) {
    call->reader = stub_->PrepareUnaryCall(&call->context, method, to_buffer(body), &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->reply, &call->status, call);
  }

  // The next call that has ended.
  ClientCall* wait() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return static_cast<ClientCall*>(tag);
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
    Stream(TestClient* client, const std::string& method) : queue_(&client->queue_) {
      stream_ = client->stub_->PrepareCall(&context_, method, queue_);
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
    bool await() {
      void* tag;
      bool ok = false;
      return queue_->Next(&tag, &ok) && ok;
    }

    grpc::CompletionQueue* queue_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  };

 private:
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
};

}  // namespace fairlead::api
