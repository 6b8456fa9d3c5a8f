#pragma once

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "api/temporal/call.h"
#include "api/temporal/refusals.h"
#include "api/temporal/stream.h"

// What the kinds of call of the gRPC transport share. Nobody else includes this.
namespace fairlead::api {

enum class GrpcEvent : uintptr_t { kArrived = 0, kMessage = 1, kClosed = 2, kSent = 3 };

// Something that has operations in flight. A completion queue hands back a tag and a success bit;
// our tag is the address of one of these with the kind of event in its low bits.
class GrpcOperation {
 public:
  virtual void on_event(GrpcEvent event, bool ok) = 0;

  static void dispatch(void* tag, bool ok) {
    const auto bits = reinterpret_cast<uintptr_t>(tag);
    reinterpret_cast<GrpcOperation*>(bits & ~kEventMask)
        ->on_event(static_cast<GrpcEvent>(bits & kEventMask), ok);
  }

 protected:
  ~GrpcOperation() = default;
  void* tag(GrpcEvent event) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(this) |
                                   static_cast<uintptr_t>(event));
  }

 private:
  static constexpr uintptr_t kEventMask = 3;
};

// Counts the calls that gRPC still knows. A completion queue may be shut down only at zero: a reply
// that starts an operation on a queue that was shut down aborts the process.
class LiveCalls {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int64_t count_ = 0;
};

// A completion queue and the one thread that serves it. All events of a call come from the same
// port, so a call's events never overlap.
struct GrpcPort {
  grpc_server* server = nullptr;
  grpc_completion_queue* queue = nullptr;
  LiveCalls live;
  RefusalCounts* refusals = nullptr;
};

// Where the calls of one method enter a port. Either `handler` or `stream` is set.
struct GrpcLane {
  GrpcPort* port = nullptr;
  std::string method;
  void* registration = nullptr;
  const Handler* handler = nullptr;
  const StreamHandler* stream = nullptr;
};

// Owns a message that came in, and shows it in one piece.
class GrpcBody {
 public:
  GrpcBody() = default;
  GrpcBody(const GrpcBody&) = delete;
  GrpcBody& operator=(const GrpcBody&) = delete;
  ~GrpcBody() { release(); }

  // Where gRPC puts a message; null stays there if the client sent none.
  grpc_byte_buffer** slot() { return &buffer_; }
  bool has_message() const { return buffer_ != nullptr; }
  // Makes `view` ready. False if the message cannot be read.
  bool open();
  std::string_view view() const { return view_; }
  void release();

 private:
  grpc_byte_buffer* buffer_ = nullptr;
  grpc_slice joined_ = grpc_empty_slice();
  std::string_view view_;
};

// Gathers the operations of one batch. What it points to must live until `start` returns.
class GrpcBatch {
 public:
  void send_initial_metadata() { add(GRPC_OP_SEND_INITIAL_METADATA); }
  void send_message(std::string body);
  void send_status(const RpcStatus& status);
  void recv_message(grpc_byte_buffer** buffer) {
    add(GRPC_OP_RECV_MESSAGE).data.recv_message.recv_message = buffer;
  }
  void recv_close(int* is_cancelled) {
    add(GRPC_OP_RECV_CLOSE_ON_SERVER).data.recv_close_on_server.cancelled = is_cancelled;
  }

  void start(grpc_call* call, void* tag);

 private:
  grpc_op& add(grpc_op_type type);

  grpc_op ops_[4];
  size_t count_ = 0;
  grpc_byte_buffer* message_ = nullptr;
  grpc_slice status_message_ = grpc_empty_slice();
  grpc_slice details_value_ = grpc_empty_slice();
  grpc_metadata details_;
};

// Lets the next call of `lane` in.
void request_unary(const GrpcLane& lane);
void request_stream(const GrpcLane& lane);

}  // namespace fairlead::api
