#include "api/temporal/http2_call.h"

#include "base/assert.h"

namespace fairlead::api {

void RequestHeaders::add(std::string_view name, std::string_view value) {
  bytes_.append(name);
  const size_t name_end = bytes_.size();
  bytes_.append(value);
  entries_.push_back({name_end, bytes_.size()});
}

std::string_view RequestHeaders::find(std::string_view name) const {
  const std::string_view bytes = bytes_;
  size_t begin = 0;
  for (const Entry& entry : entries_) {
    if (bytes.substr(begin, entry.name_end - begin) == name) {
      return bytes.substr(entry.name_end, entry.value_end - entry.name_end);
    }
    begin = entry.value_end;
  }
  return {};
}

namespace {

// One unary call. Its handler runs when its message is there, whether or not the client has said
// that it will say no more; what else the client sends is ignored.
class UnaryCall final : public Call, public Http2Call {
 public:
  UnaryCall(Http2Carrier* carrier, int32_t stream_id, const GrpcRoute& route,
            RequestHeaders headers, TimeNs deadline)
      : Http2Call(carrier, stream_id),
        route_(route),
        headers_(std::move(headers)),
        deadline_(deadline) {}

  const std::string& method() const override { return route_.method; }
  std::string_view body() const override { return body_.view(); }
  TimeNs deadline() const override { return deadline_; }
  std::string_view header(std::string_view name) const override { return headers_.find(name); }
  void release_body() override { body_ = {}; }
  void on_cancel(absl::AnyInvocable<void()> gone) override;
  void reply(RpcStatus status, std::string body, Delivered delivered) override;

  void on_message(GrpcMessage message) override;
  void on_half_close() override;
  bool wants_message() override { return !is_heard_; }
  Outgoing take() override;
  bool wants_outcome() override;
  void on_end(bool is_delivered) override;

 private:
  const GrpcRoute& route_;
  RequestHeaders headers_;
  const TimeNs deadline_;
  GrpcMessage body_;
  bool is_heard_ = false;

  std::mutex mutex_;
  absl::AnyInvocable<void()> gone_;
  Delivered delivered_;
  Outgoing answer_;
  bool is_replied_ = false;
  bool is_over_ = false;
};

void UnaryCall::on_message(GrpcMessage message) {
  is_heard_ = true;
  body_ = std::move(message);
  (*route_.handler)(std::static_pointer_cast<UnaryCall>(shared_from_this()));
  headers_.clear();
}

void UnaryCall::on_half_close() {
  if (is_heard_) return;
  is_heard_ = true;
  reply({kInternal, "the client closed the call without sending a request", ""}, "", {});
}

void UnaryCall::on_cancel(absl::AnyInvocable<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    if (is_replied_) return;
    if (!is_over_) {
      gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

void UnaryCall::reply(RpcStatus status, std::string body, Delivered delivered) {
  absl::AnyInvocable<void()> unused;
  body_ = {};
  {
    const std::lock_guard lock(mutex_);
    FL_ASSERT(!is_replied_, "a call was answered twice");
    is_replied_ = true;
    unused = std::exchange(gone_, nullptr);
    if (!is_over_) {
      if (status.code == 0) answer_.messages.push_back(std::move(body));
      answer_.status = std::move(status);
      delivered_ = std::move(delivered);
      // Inside the lock: the carrier lives until on_end, which waits for it.
      carrier_->wake(shared_from_this());
      return;
    }
  }
  if (delivered) delivered(false);
}

Outgoing UnaryCall::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answer_, {});
}

bool UnaryCall::wants_outcome() {
  const std::lock_guard lock(mutex_);
  return static_cast<bool>(delivered_);
}

void UnaryCall::on_end(bool is_delivered) {
  absl::AnyInvocable<void()> gone;
  Delivered delivered;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    gone = std::exchange(gone_, nullptr);
    delivered = std::exchange(delivered_, nullptr);
  }
  if (gone) gone();
  if (delivered) delivered(is_delivered);
}

class StreamCall;

// What a streaming handler holds. It knows the call as long as that lasts.
class StreamHandle final : public Stream {
 public:
  explicit StreamHandle(std::weak_ptr<StreamCall> call) : call_(std::move(call)) {}
  void send(std::string message) override;
  void finish(RpcStatus status) override;

 private:
  const std::weak_ptr<StreamCall> call_;
};

// One streaming call. It hears the next message only when everything sent has left, so a client
// that asks and does not listen fills its own buffers and not ours.
class StreamCall final : public Http2Call {
 public:
  StreamCall(Http2Carrier* carrier, int32_t stream_id) : Http2Call(carrier, stream_id) {}

  void open(const StreamHandler& handler) {
    session_ = handler(
        std::make_shared<StreamHandle>(std::static_pointer_cast<StreamCall>(shared_from_this())));
  }

  void send(std::string message);
  void finish(RpcStatus status);

  void on_message(GrpcMessage message) override { session_->on_message(message.view()); }
  void on_half_close() override { session_->on_half_close(); }
  bool wants_message() override;
  Outgoing take() override;
  bool wants_outcome() override { return false; }
  void on_end(bool is_delivered) override;

 private:
  std::unique_ptr<StreamSession> session_;

  std::mutex mutex_;
  Outgoing outgoing_;
  bool is_finished_ = false;
  bool is_over_ = false;
};

void StreamHandle::send(std::string message) {
  if (const auto call = call_.lock()) call->send(std::move(message));
}

void StreamHandle::finish(RpcStatus status) {
  if (const auto call = call_.lock()) call->finish(std::move(status));
}

void StreamCall::send(std::string message) {
  const std::lock_guard lock(mutex_);
  if (is_over_ || is_finished_) return;
  outgoing_.messages.push_back(std::move(message));
  carrier_->wake(shared_from_this());
}

void StreamCall::finish(RpcStatus status) {
  const std::lock_guard lock(mutex_);
  if (is_over_ || is_finished_) return;
  is_finished_ = true;
  outgoing_.status = std::move(status);
  carrier_->wake(shared_from_this());
}

bool StreamCall::wants_message() {
  const std::lock_guard lock(mutex_);
  return outgoing_.messages.empty() && !is_finished_;
}

Outgoing StreamCall::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outgoing_, {});
}

void StreamCall::on_end(bool is_delivered) {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  session_.reset();
}

}  // namespace

std::shared_ptr<Http2Call> make_unary_call(Http2Carrier* carrier, int32_t stream_id,
                                           const GrpcRoute& route, RequestHeaders headers,
                                           TimeNs deadline) {
  return std::make_shared<UnaryCall>(carrier, stream_id, route, std::move(headers), deadline);
}

std::shared_ptr<Http2Call> make_stream_call(Http2Carrier* carrier, int32_t stream_id,
                                            const GrpcRoute& route) {
  auto call = std::make_shared<StreamCall>(carrier, stream_id);
  call->open(*route.stream);
  return call;
}

}  // namespace fairlead::api
