#include "load/transport.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include <chrono>

#include "absl/synchronization/mutex.h"
#include "base/assert.h"

namespace fairlead::load {

namespace {

#define FL_SERVICE "/temporal.api.workflowservice.v1.WorkflowService/"
constexpr const char* kMethodPaths[] = {
    FL_SERVICE "GetSystemInfo",
    FL_SERVICE "StartWorkflowExecution",
    FL_SERVICE "PollWorkflowTaskQueue",
    FL_SERVICE "RespondWorkflowTaskCompleted",
    FL_SERVICE "PollActivityTaskQueue",
    FL_SERVICE "RespondActivityTaskCompleted",
    FL_SERVICE "TerminateWorkflowExecution",
    FL_SERVICE "DescribeTaskQueue",
    FL_SERVICE "UpdateTaskQueueConfig",
    FL_SERVICE "RegisterNamespace",
};
#undef FL_SERVICE
static_assert(std::size(kMethodPaths) == static_cast<size_t>(Method::kCount));

gpr_timespec from_now(DurationNs duration) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(duration, GPR_TIMESPAN));
}

std::string_view view(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// A message that arrived. Nearly all lie in one slice and are read where they are.
class Message {
 public:
  explicit Message(grpc_byte_buffer* buffer) : buffer_(buffer) {
    if (buffer_ == nullptr || !grpc_byte_buffer_reader_init(&reader_, buffer_)) return;
    is_reading_ = true;
    grpc_slice* first = nullptr;
    if (!grpc_byte_buffer_reader_peek(&reader_, &first)) return;
    if (GRPC_SLICE_LENGTH(*first) == grpc_byte_buffer_length(buffer_)) {
      bytes_ = view(*first);
      return;
    }
    joined_.assign(view(*first));
    while (grpc_byte_buffer_reader_peek(&reader_, &first)) joined_.append(view(*first));
    bytes_ = joined_;
  }
  ~Message() {
    if (is_reading_) grpc_byte_buffer_reader_destroy(&reader_);
    if (buffer_ != nullptr) grpc_byte_buffer_destroy(buffer_);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  grpc_byte_buffer* buffer_;
  grpc_byte_buffer_reader reader_{};
  bool is_reading_ = false;
  std::string joined_;
  std::string_view bytes_;
};

grpc_channel* open_channel(const std::string& address) {
  grpc_arg args[4];
  // Without this, channels to one address share one socket.
  args[0] = {GRPC_ARG_INTEGER, const_cast<char*>(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL), {}};
  args[0].value.integer = 1;
  // We retry where it makes sense, and then it is counted.
  args[1] = {GRPC_ARG_INTEGER, const_cast<char*>(GRPC_ARG_ENABLE_RETRIES), {}};
  args[1].value.integer = 0;
  args[2] = {GRPC_ARG_INTEGER, const_cast<char*>(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION), {}};
  args[2].value.integer = 1;
  // Leaves out filters that we have no use for, a tenth of the cost. Deadlines still travel to the
  // server, but only the server keeps them: every wait of ours has a limit of its own.
  args[3] = {GRPC_ARG_INTEGER, const_cast<char*>(GRPC_ARG_MINIMAL_STACK), {}};
  args[3].value.integer = 1;
  const grpc_channel_args all{std::size(args), args};
  grpc_channel_credentials* plain = grpc_insecure_credentials_create();
  grpc_channel* channel = grpc_channel_create(address.c_str(), plain, &all);
  grpc_channel_credentials_release(plain);
  return channel;
}

}  // namespace

bool Reply::is_unimplemented() const { return code == GRPC_STATUS_UNIMPLEMENTED; }

bool Reply::is_not_found() const { return code == GRPC_STATUS_NOT_FOUND; }

bool Reply::is_transient() const {
  return code == GRPC_STATUS_UNAVAILABLE || code == GRPC_STATUS_RESOURCE_EXHAUSTED ||
         code == GRPC_STATUS_DEADLINE_EXCEEDED || code == GRPC_STATUS_ABORTED;
}

std::string Reply::describe() const {
  return "gRPC code " + std::to_string(code) + ": " + std::string(message);
}

TimeNs monotonic_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One call in flight: what gRPC writes its answer into, and whom to tell.
struct Transport::Call {
  grpc_call* call = nullptr;
  grpc_metadata_array initial_metadata{};
  grpc_metadata_array trailing_metadata{};
  grpc_byte_buffer* received = nullptr;
  grpc_status_code status = GRPC_STATUS_UNKNOWN;
  grpc_slice details{};
  Done done;
};

Transport::Transport(const std::string& address, int connections) {
  // Debian's Abseil is built with the deadlock detector on, and gRPC's locks would all pay for it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc_init();
  queue_ = grpc_completion_queue_create_for_next(nullptr);
  for (int i = 0; i < connections; ++i) {
    Channel channel;
    channel.channel = open_channel(address);
    for (int m = 0; m < static_cast<int>(Method::kCount); ++m) {
      channel.methods[m] =
          grpc_channel_register_call(channel.channel, kMethodPaths[m], nullptr, nullptr);
    }
    channels_.push_back(channel);
  }
}

Transport::~Transport() {
  timers_ = {};
  for (Call* call : open_) {
    call->done = [](const Reply&) {};
    grpc_call_cancel(call->call, nullptr);
  }
  run_until([this] { return open_.empty(); }, 10 * kSecond);
  for (Channel& channel : channels_) grpc_channel_destroy(channel.channel);
  grpc_completion_queue_shutdown(queue_);
  while (grpc_completion_queue_next(queue_, from_now(10 * kSecond), nullptr).type ==
         GRPC_OP_COMPLETE) {
  }
  grpc_completion_queue_destroy(queue_);
  grpc_shutdown();
}

Transport::Call* Transport::call(Method method, std::string_view request, DurationNs timeout,
                                 Done done) {
  turn_ = turn_ + 1 < channels_.size() ? turn_ + 1 : 0;
  return call_on(channels_[turn_], method, request, timeout, std::move(done));
}

Transport::Call* Transport::call_on(Channel& channel, Method method, std::string_view request,
                                    DurationNs timeout, Done done) {
  std::unique_ptr<Call> owned;
  if (spare_.empty()) {
    owned = std::make_unique<Call>();
  } else {
    owned = std::move(spare_.back());
    spare_.pop_back();
  }
  Call* call = owned.release();
  open_.insert(call);
  call->done = std::move(done);
  call->received = nullptr;
  call->details = grpc_empty_slice();
  grpc_metadata_array_init(&call->initial_metadata);
  grpc_metadata_array_init(&call->trailing_metadata);
  call->call = grpc_channel_create_registered_call(
      channel.channel, nullptr, GRPC_PROPAGATE_DEFAULTS, queue_,
      channel.methods[static_cast<int>(method)], from_now(timeout), nullptr);

  grpc_slice slice = grpc_slice_from_copied_buffer(request.data(), request.size());
  grpc_byte_buffer* message = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_op ops[6] = {};
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[1].op = GRPC_OP_SEND_MESSAGE;
  ops[1].data.send_message.send_message = message;
  ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
  ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &call->initial_metadata;
  ops[4].op = GRPC_OP_RECV_MESSAGE;
  ops[4].data.recv_message.recv_message = &call->received;
  ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  ops[5].data.recv_status_on_client.trailing_metadata = &call->trailing_metadata;
  ops[5].data.recv_status_on_client.status = &call->status;
  ops[5].data.recv_status_on_client.status_details = &call->details;
  const grpc_call_error error =
      grpc_call_start_batch(call->call, ops, std::size(ops), call, nullptr);
  FL_ASSERT(error == GRPC_CALL_OK, "the batch of a unary call is always the same and always legal");
  grpc_byte_buffer_destroy(message);
  grpc_slice_unref(slice);
  return call;
}

void Transport::cancel(Call* call) { grpc_call_cancel(call->call, nullptr); }

void Transport::after(DurationNs delay, std::function<void()> what) {
  timers_.push({monotonic_now() + delay, timers_made_++, std::move(what)});
}

// Gives gRPC's objects back first: the callback is free to make the next call with this record.
void Transport::finish(Call* call) {
  const Message message(call->received);
  const grpc_slice details = call->details;
  const Reply reply{call->status, message.bytes(), view(details)};
  const Done done = std::move(call->done);
  grpc_metadata_array_destroy(&call->initial_metadata);
  grpc_metadata_array_destroy(&call->trailing_metadata);
  grpc_call_unref(call->call);
  open_.erase(call);
  spare_.emplace_back(call);
  done(reply);
  grpc_slice_unref(details);
}

void Transport::fire_timers() {
  while (!timers_.empty() && timers_.top().at <= monotonic_now()) {
    const auto what = timers_.top().what;
    timers_.pop();
    what();
  }
}

bool Transport::run_until(const std::function<bool()>& is_done, DurationNs timeout) {
  const TimeNs deadline = add_saturated(monotonic_now(), timeout);
  while (!is_done()) {
    const TimeNs now = monotonic_now();
    if (now >= deadline) return false;
    const TimeNs next = timers_.empty() ? deadline : std::min(deadline, timers_.top().at);
    const grpc_event event =
        grpc_completion_queue_next(queue_, from_now(std::max<DurationNs>(next - now, 0)), nullptr);
    if (event.type == GRPC_OP_COMPLETE) finish(static_cast<Call*>(event.tag));
    fire_timers();
  }
  return true;
}

bool Transport::connect_all(DurationNs timeout) {
  const TimeNs deadline = monotonic_now() + timeout;
  size_t connected = 0;
  std::function<void(Channel&)> greet = [&](Channel& channel) {
    call_on(channel, Method::kGetSystemInfo, "", kSecond, [&](const Reply& reply) {
      if (reply.is_ok()) {
        ++connected;
      } else if (monotonic_now() < deadline) {
        after(100 * kMillisecond, [&] { greet(channel); });
      }
    });
  };
  for (Channel& channel : channels_) greet(channel);
  const bool is_connected =
      run_until([&] { return connected == channels_.size(); }, timeout + 2 * kSecond);
  return is_connected;
}

}  // namespace fairlead::load
