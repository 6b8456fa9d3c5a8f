#include <grpc/grpc.h>
#include <grpc/status.h>

#include <deque>
#include <mutex>
#include <utility>

#include "api/temporal/grpc_port.h"

namespace fairlead::api {

namespace {

// One streaming call. `close` is in flight from the beginning; besides it at most one read and one
// write are. The next message is read only when everything sent has left, so a client that asks and
// does not listen fills its own buffers and not ours.
class GrpcStream final : public Stream,
                         public GrpcOperation,
                         public std::enable_shared_from_this<GrpcStream> {
 public:
  static void request(const GrpcLane& lane) {
    auto stream = std::make_shared<GrpcStream>(lane);
    GrpcStream* raw = stream.get();
    raw->self_ = std::move(stream);
    const grpc_call_error error = grpc_server_request_registered_call(
        lane.port->server, lane.registration, &raw->call_, &raw->deadline_, &raw->headers_, nullptr,
        lane.port->queue, lane.port->queue, raw->tag(GrpcEvent::kArrived));
    if (error != GRPC_CALL_OK) raw->self_.reset();
  }

  explicit GrpcStream(const GrpcLane& lane) : lane_(lane) { grpc_metadata_array_init(&headers_); }
  ~GrpcStream() override { grpc_metadata_array_destroy(&headers_); }

  void send(std::string message) override {
    const std::lock_guard lock(mutex_);
    if (is_closed_ || is_finishing_) return;
    outbox_.push_back(std::move(message));
    advance();
  }

  void finish(RpcStatus status) override {
    const std::lock_guard lock(mutex_);
    if (is_closed_ || is_finishing_) return;
    is_finishing_ = true;
    status_ = std::move(status);
    advance();
  }

  void on_event(GrpcEvent event, bool ok) override;

 private:
  void arrived();
  void hear(bool ok);
  // Starts what can be started. The mutex is held.
  void advance();

  const GrpcLane& lane_;
  std::shared_ptr<GrpcStream> self_;  // set while gRPC holds our address
  grpc_call* call_ = nullptr;
  gpr_timespec deadline_{};
  grpc_metadata_array headers_{};
  GrpcBody inbox_;
  std::unique_ptr<StreamSession> session_;

  std::mutex mutex_;
  std::deque<std::string> outbox_;
  RpcStatus status_;
  int is_cancelled_ = 0;
  int batches_ = 0;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_greeted_ = false;      // initial metadata has been sent
  bool is_half_closed_ = false;  // the client has said all it will say
  bool is_finishing_ = false;
  bool is_status_sent_ = false;
  bool is_closed_ = false;
};

void GrpcStream::on_event(GrpcEvent event, bool ok) {
  if (event == GrpcEvent::kArrived) {
    if (!ok) return self_.reset();
    request(lane_);
    return arrived();
  }
  if (event == GrpcEvent::kMessage) hear(ok);

  {
    const std::lock_guard lock(mutex_);
    --batches_;
    if (event == GrpcEvent::kMessage) is_reading_ = false;
    if (event == GrpcEvent::kSent) is_writing_ = false;
    if (event == GrpcEvent::kClosed) is_closed_ = true;
    advance();
    if (batches_ > 0) return;
  }
  const auto self = std::exchange(self_, nullptr);
  session_.reset();
  grpc_call_unref(std::exchange(call_, nullptr));
  lane_.port->live.leave();
}

void GrpcStream::arrived() {
  lane_.port->live.enter();
  session_ = (*lane_.stream)(shared_from_this());
  const std::lock_guard lock(mutex_);
  ++batches_;
  GrpcBatch batch;
  batch.recv_close(&is_cancelled_);
  batch.start(call_, tag(GrpcEvent::kClosed));
  advance();
}

void GrpcStream::hear(bool ok) {
  if (ok && inbox_.has_message() && inbox_.open()) {
    session_->on_message(inbox_.view());
    inbox_.release();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    is_half_closed_ = true;
  }
  if (ok) session_->on_half_close();
}

void GrpcStream::advance() {
  if (is_closed_ || batches_ == 0) return;
  if (!is_writing_ && !is_status_sent_ && (!outbox_.empty() || is_finishing_)) {
    GrpcBatch batch;
    if (!std::exchange(is_greeted_, true)) batch.send_initial_metadata();
    if (!outbox_.empty()) {
      batch.send_message(std::move(outbox_.front()));
      outbox_.pop_front();
    } else {
      batch.send_status(status_);
      is_status_sent_ = true;
    }
    is_writing_ = true;
    ++batches_;
    batch.start(call_, tag(GrpcEvent::kSent));
  } else if (!is_writing_ && !is_reading_ && !is_half_closed_ && !is_finishing_) {
    GrpcBatch batch;
    batch.recv_message(inbox_.slot());
    is_reading_ = true;
    ++batches_;
    batch.start(call_, tag(GrpcEvent::kMessage));
  }
}

}  // namespace

void request_stream(const GrpcLane& lane) { GrpcStream::request(lane); }

}  // namespace fairlead::api
