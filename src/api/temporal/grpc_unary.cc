#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpc/status.h>
#include <grpc/support/time.h>

#include <mutex>
#include <utility>

#include "api/temporal/grpc_port.h"
#include "base/assert.h"

namespace fairlead::api {

namespace {

TimeNs wall_time(gpr_timespec deadline) {
  const gpr_timespec real = gpr_convert_clock_type(deadline, GPR_CLOCK_REALTIME);
  if (gpr_time_cmp(real, gpr_inf_future(GPR_CLOCK_REALTIME)) == 0) return kNever;
  TimeNs seconds;
  if (__builtin_mul_overflow(real.tv_sec, kSecond, &seconds)) return kNever;
  return add_saturated(seconds, real.tv_nsec);
}

// One unary call, from the wish for it to its end.
//
//   requested ─► arrived ─► handler ─┬─ replies at once ─────► [send + close] ─► done
//                                    └─ returns ─► [close] ─┬─ reply ─► [send] ─► done
//                                                           └─ client gone ─► reply is dropped
//
// Brackets are batches that gRPC has in hand. A call that outlives its handler always has `close`
// in flight: it is how a vanished client, a passed deadline and a forced shutdown are noticed. A
// call that was answered inside its handler saves that batch and its event.
//
// gRPC's own part (some 10 KB) is freed by the last event, which is not later than the client's
// departure. Ours lives until the handler's side has let go of it as well.
class UnaryCall final : public Call,
                        public GrpcOperation,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  static void request(const GrpcLane& lane) {
    auto call = std::make_shared<UnaryCall>(lane);
    UnaryCall* raw = call.get();
    raw->self_ = std::move(call);
    const grpc_call_error error = grpc_server_request_registered_call(
        lane.port->server, lane.registration, &raw->call_, &raw->deadline_, &raw->headers_,
        raw->body_.slot(), lane.port->queue, lane.port->queue, raw->tag(GrpcEvent::kArrived));
    // Refused only when the queue is closing.
    if (error != GRPC_CALL_OK) raw->self_.reset();
  }

  explicit UnaryCall(const GrpcLane& lane) : lane_(lane) { grpc_metadata_array_init(&headers_); }
  ~UnaryCall() override { grpc_metadata_array_destroy(&headers_); }

  const std::string& method() const override { return lane_.method; }
  std::string_view body() const override { return body_.view(); }
  TimeNs deadline() const override { return wall_time(deadline_); }
  std::string_view header(std::string_view name) const override;
  void release_body() override { body_.release(); }
  void on_cancel(absl::AnyInvocable<void()> gone) override;
  void reply(RpcStatus status, std::string body, Delivered delivered) override;

  void on_event(GrpcEvent event, bool ok) override;

 private:
  void arrived();
  void watch_for_close();

  const GrpcLane& lane_;
  std::shared_ptr<UnaryCall> self_;  // set while gRPC holds our address
  grpc_call* call_ = nullptr;
  gpr_timespec deadline_{};
  grpc_metadata_array headers_{};
  GrpcBody body_;

  std::mutex mutex_;
  absl::AnyInvocable<void()> gone_;
  Delivered delivered_;
  int is_cancelled_ = 0;  // written by gRPC before kClosed
  uint8_t batches_ = 0;   // in gRPC's hands
  bool is_watched_ = false;
  bool is_replied_ = false;
  bool is_closed_ = false;
  bool is_sent_ = false;
};

void UnaryCall::on_event(GrpcEvent event, bool ok) {
  if (event == GrpcEvent::kArrived) {
    if (!ok) return self_.reset();
    request(lane_);
    return arrived();
  }

  absl::AnyInvocable<void()> gone;
  Delivered delivered;
  bool is_delivered = false;
  grpc_call* call = nullptr;
  {
    const std::lock_guard lock(mutex_);
    --batches_;
    if (event == GrpcEvent::kSent) is_sent_ = ok;
    if (event == GrpcEvent::kClosed && !is_replied_) {
      is_closed_ = true;
      gone = std::exchange(gone_, nullptr);
    }
    if (batches_ > 0) return;
    delivered = std::exchange(delivered_, nullptr);
    is_delivered = is_sent_ && is_cancelled_ == 0;
    call = std::exchange(call_, nullptr);
  }
  const auto self = std::exchange(self_, nullptr);
  grpc_call_unref(call);
  lane_.port->live.leave();
  if (gone) gone();
  if (delivered) delivered(is_delivered);
}

void UnaryCall::arrived() {
  lane_.port->live.enter();
  const auto self = self_;
  if (!body_.has_message()) {
    reply({GRPC_STATUS_INTERNAL, "the client closed the call without sending a request", ""}, "",
          {});
    return;
  }
  if (!body_.open()) {
    reply({GRPC_STATUS_INTERNAL, "the request could not be decompressed", ""}, "", {});
    return;
  }
  (*lane_.handler)(self);
  grpc_metadata_array_destroy(&headers_);
  grpc_metadata_array_init(&headers_);
  watch_for_close();
}

void UnaryCall::watch_for_close() {
  {
    const std::lock_guard lock(mutex_);
    if (is_replied_) return;
    is_watched_ = true;
    ++batches_;
  }
  GrpcBatch batch;
  batch.recv_close(&is_cancelled_);
  batch.start(call_, tag(GrpcEvent::kClosed));
}

std::string_view UnaryCall::header(std::string_view name) const {
  for (size_t i = 0; i < headers_.count; ++i) {
    const grpc_slice& key = headers_.metadata[i].key;
    if (std::string_view(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(key)),
                         GRPC_SLICE_LENGTH(key)) != name) {
      continue;
    }
    const grpc_slice& value = headers_.metadata[i].value;
    return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(value)), GRPC_SLICE_LENGTH(value)};
  }
  return {};
}

void UnaryCall::on_cancel(absl::AnyInvocable<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    if (is_replied_) return;
    if (!is_closed_) {
      gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

void UnaryCall::reply(RpcStatus status, std::string body, Delivered delivered) {
  absl::AnyInvocable<void()> unused;
  bool is_watched;
  bool is_closed;
  grpc_call* call;
  body_.release();
  {
    const std::lock_guard lock(mutex_);
    FL_ASSERT(!is_replied_, "a call was answered twice");
    is_replied_ = true;
    unused = std::exchange(gone_, nullptr);
    is_watched = is_watched_;
    is_closed = is_closed_;
    call = call_;
    if (!is_closed) {
      delivered_ = std::exchange(delivered, nullptr);
      ++batches_;
    }
  }
  if (is_closed) {
    if (delivered) delivered(false);
    return;
  }
  // Only now: a call that is closed may outlive its port.
  if (lane_.port->refusals != nullptr) lane_.port->refusals->count(lane_.method, status);
  GrpcBatch batch;
  batch.send_initial_metadata();
  if (status.code == GRPC_STATUS_OK) batch.send_message(std::move(body));
  batch.send_status(status);
  // With `close` in the same batch `ok` says nothing; whether the call was cancelled says it all.
  if (!is_watched) batch.recv_close(&is_cancelled_);
  batch.start(call, tag(GrpcEvent::kSent));
}

}  // namespace

void request_unary(const GrpcLane& lane) { UnaryCall::request(lane); }

}  // namespace fairlead::api
