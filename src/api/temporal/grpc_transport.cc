#include "api/temporal/grpc_transport.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/status.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/grpc_port.h"

namespace fairlead::api {

namespace {

// Calls that are let in before anyone asks. Those that find no open door wait in gRPC's own line
// and are taken as soon as our thread comes round, so a few for each method are enough.
constexpr int kDoorsPerMethod = 8;
constexpr int kDoorsForUnknown = 4;

constexpr int kHeaderBytesMax = 64 << 10;
constexpr int kPingIntervalMinMs = 10'000;

std::string listen_address(const GrpcOptions& options) {
  const bool is_bare_v6 =
      options.bind_address.find(':') != std::string::npos && options.bind_address.front() != '[';
  return is_bare_v6 ? absl::StrCat("[", options.bind_address, "]:", options.port)
                    : absl::StrCat(options.bind_address, ":", options.port);
}

// "/package.Service/Method", which is what a well-behaved client sends.
std::string unknown_method_text(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (path.empty() || path.front() != '/' || slash == 0) {
    return absl::StrCat("malformed method name: \"", absl::string_view(path.data(), path.size()),
                        "\"");
  }
  const std::string method(path.substr(slash + 1));
  const std::string service(path.substr(1, slash - 1));
  return absl::StrCat("unknown method ", method, " for service ", service);
}

// A call of a method that nobody serves, answered before its message is read.
class UnknownCall final : public GrpcOperation {
 public:
  static void request(GrpcPort* port) {
    auto* call = new UnknownCall(port);
    const grpc_call_error error =
        grpc_server_request_call(port->server, &call->call_, &call->details_, &call->headers_,
                                 port->queue, port->queue, call->tag(GrpcEvent::kArrived));
    if (error != GRPC_CALL_OK) delete call;
  }

  explicit UnknownCall(GrpcPort* port) : port_(port) {
    grpc_call_details_init(&details_);
    grpc_metadata_array_init(&headers_);
  }
  ~UnknownCall() {
    grpc_call_details_destroy(&details_);
    grpc_metadata_array_destroy(&headers_);
  }

  void on_event(GrpcEvent event, bool ok) override {
    if (event == GrpcEvent::kArrived && ok) {
      request(port_);
      port_->live.enter();
      return refuse();
    }
    if (event == GrpcEvent::kSent) {
      grpc_call_unref(call_);
      port_->live.leave();
    }
    delete this;
  }

 private:
  void refuse() {
    const std::string_view path(
        reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(details_.method)),
        GRPC_SLICE_LENGTH(details_.method));
    const RpcStatus status{GRPC_STATUS_UNIMPLEMENTED, unknown_method_text(path), ""};
    GrpcBatch batch;
    batch.send_initial_metadata();
    batch.send_status(status);
    batch.recv_close(&is_cancelled_);
    batch.start(call_, tag(GrpcEvent::kSent));
  }

  GrpcPort* port_;
  grpc_call* call_ = nullptr;
  grpc_call_details details_;
  grpc_metadata_array headers_;
  int is_cancelled_ = 0;
};

class Transport final : public GrpcTransport {
 public:
  Transport(MethodTable methods, StreamTable streams)
      : methods_(std::move(methods)), streams_(std::move(streams)) {
    grpc_init();
  }
  ~Transport() override {
    shutdown(0);
    grpc_shutdown();
  }

  absl::Status listen(const GrpcOptions& options);
  int port() const override { return port_; }
  void shutdown(DurationNs grace) override;

 private:
  void create_server(const GrpcOptions& options);
  void register_methods();
  void run(GrpcPort* port);
  void stop_queues();

  MethodTable methods_;
  StreamTable streams_;
  int port_ = 0;
  grpc_server* server_ = nullptr;
  std::deque<GrpcPort> ports_;
  std::deque<GrpcLane> lanes_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable server_stopped_;
  bool is_server_stopped_ = false;
};

void Transport::create_server(const GrpcOptions& options) {
  const auto integer = [](const char* key, int value) {
    grpc_arg arg;
    arg.type = GRPC_ARG_INTEGER;
    arg.key = const_cast<char*>(key);
    arg.value.integer = value;
    return arg;
  };
  std::vector<grpc_arg> args = {
      // Two servers on one port would share its connections silently.
      integer(GRPC_ARG_ALLOW_REUSEPORT, 0),
      integer(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, options.receive_bytes_max),
      integer(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
      // Tokens in `authorization` can be long; gRPC's default is 8 KiB for all headers together.
      integer(GRPC_ARG_MAX_METADATA_SIZE, kHeaderBytesMax),
      // SDKs ping every 30 s, polls in hand or not; gRPC's default is to hang up on them.
      integer(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMinMs),
      integer(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
      integer(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 2),
      // Statistics that nobody would read.
      integer(GRPC_ARG_ENABLE_CHANNELZ, 0),
  };
  const grpc_channel_args channel_args{args.size(), args.data()};
  server_ = grpc_server_create(&channel_args, nullptr);
  for (int i = 0; i < std::max(1, options.threads); ++i) {
    GrpcPort& port = ports_.emplace_back();
    port.server = server_;
    port.refusals = options.refusals;
    port.queue = grpc_completion_queue_create_for_next(nullptr);
    grpc_server_register_completion_queue(server_, port.queue, nullptr);
  }
}

void Transport::register_methods() {
  const auto add = [this](const std::string& method, const Handler* handler,
                          const StreamHandler* stream) {
    void* registration = grpc_server_register_method(
        server_, method.c_str(), nullptr,
        handler != nullptr ? GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER : GRPC_SRM_PAYLOAD_NONE, 0);
    for (GrpcPort& port : ports_) {
      lanes_.push_back({&port, method, registration, handler, stream});
    }
  };
  methods_.for_each(
      [&](const std::string& method, const Handler& handler) { add(method, &handler, nullptr); });
  streams_.for_each([&](const std::string& method, const StreamHandler& handler) {
    add(method, nullptr, &handler);
  });
}

absl::Status Transport::listen(const GrpcOptions& options) {
  create_server(options);
  register_methods();
  const std::string address = listen_address(options);
  grpc_server_credentials* credentials = grpc_insecure_server_credentials_create();
  port_ = grpc_server_add_http2_port(server_, address.c_str(), credentials);
  grpc_server_credentials_release(credentials);
  if (port_ == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, " for gRPC: is another server running on port ",
                     options.port, "? Stop it, or choose another port or bind address"));
  }
  grpc_server_start(server_);
  for (const GrpcLane& lane : lanes_) {
    for (int i = 0; i < kDoorsPerMethod; ++i) {
      lane.handler != nullptr ? request_unary(lane) : request_stream(lane);
    }
  }
  for (GrpcPort& port : ports_) {
    for (int i = 0; i < kDoorsForUnknown; ++i) UnknownCall::request(&port);
    threads_.emplace_back([this, &port] { run(&port); });
  }
  return absl::OkStatus();
}

void Transport::run(GrpcPort* port) {
  const gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);
  for (;;) {
    const grpc_event event = grpc_completion_queue_next(port->queue, never, nullptr);
    if (event.type == GRPC_QUEUE_SHUTDOWN) return;
    if (event.tag == this) {
      const std::lock_guard lock(mutex_);
      is_server_stopped_ = true;
      server_stopped_.notify_all();
      continue;
    }
    GrpcOperation::dispatch(event.tag, event.success != 0);
  }
}

void Transport::shutdown(DurationNs grace) {
  if (server_ == nullptr) return;
  // A server that never listened has no threads; its queue is served here.
  if (threads_.empty()) {
    threads_.emplace_back([this] { run(&ports_.front()); });
  }
  grpc_server_shutdown_and_notify(server_, ports_.front().queue, this);
  {
    std::unique_lock lock(mutex_);
    const auto is_stopped = [this] { return is_server_stopped_; };
    if (!server_stopped_.wait_for(lock, std::chrono::nanoseconds(grace), is_stopped)) {
      grpc_server_cancel_all_calls(server_);
      server_stopped_.wait(lock, is_stopped);
    }
  }
  stop_queues();
  grpc_server_destroy(std::exchange(server_, nullptr));
}

void Transport::stop_queues() {
  for (GrpcPort& port : ports_) port.live.wait_for_none();
  for (GrpcPort& port : ports_) grpc_completion_queue_shutdown(port.queue);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (GrpcPort& port : ports_) grpc_completion_queue_destroy(port.queue);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcTransport>> GrpcTransport::start(const GrpcOptions& options,
                                                                    MethodTable methods,
                                                                    StreamTable streams) {
  auto transport = std::make_unique<Transport>(std::move(methods), std::move(streams));
  if (absl::Status status = transport->listen(options); !status.ok()) return status;
  return transport;
}

}  // namespace fairlead::api
