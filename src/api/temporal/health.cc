#include "api/temporal/health.h"

#include <grpc/status.h>

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/wire.h"

namespace fairlead::api {

namespace {

// grpc.health.v1.HealthCheckResponse.ServingStatus. On the wire: do not change.
enum ServingStatus : uint64_t { kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

bool is_known(std::string_view service) {
  return service.empty() || service == "temporal.api.workflowservice.v1.WorkflowService" ||
         service == "temporal.api.operatorservice.v1.OperatorService";
}

// HealthCheckRequest { string service = 1; }
std::optional<std::string> parse_service(std::string_view request) {
  std::string service;
  wire::Reader reader(request);
  while (reader.next()) {
    if (reader.field() == 1) service = reader.bytes();
  }
  if (!reader.ok()) return std::nullopt;
  return service;
}

// HealthCheckResponse { ServingStatus status = 1; }
std::string answer(ServingStatus status) {
  std::string out;
  wire::Writer(&out).varint(1, status);
  return out;
}

RpcStatus malformed() {
  return {GRPC_STATUS_INVALID_ARGUMENT, "the request is not a HealthCheckRequest", ""};
}

}  // namespace

class Health::State {
 public:
  ServingStatus status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }

  // Tells watchers in the order of the changes: the lock is held while they are told.
  void set(ServingStatus status) {
    const std::lock_guard lock(mutex_);
    if (status == status_) return;
    status_ = status;
    for (const auto& watcher : watchers_) watcher->send(answer(status));
  }

  void watch(std::shared_ptr<Stream> stream) {
    const std::lock_guard lock(mutex_);
    stream->send(answer(status_));
    watchers_.push_back(std::move(stream));
  }

  void unwatch(const Stream* stream) {
    const std::lock_guard lock(mutex_);
    std::erase_if(watchers_, [stream](const auto& other) { return other.get() == stream; });
  }

 private:
  std::mutex mutex_;
  ServingStatus status_ = kNotServing;
  std::vector<std::shared_ptr<Stream>> watchers_;
};

class Health::Watcher final : public StreamSession {
 public:
  Watcher(std::shared_ptr<State> state, std::shared_ptr<Stream> stream)
      : state_(std::move(state)), stream_(std::move(stream)) {}
  ~Watcher() override { state_->unwatch(stream_.get()); }

  void on_message(std::string_view message) override {
    if (std::exchange(has_asked_, true)) return;
    const auto service = parse_service(message);
    if (!service) return stream_->finish(malformed());
    if (is_known(*service)) return state_->watch(stream_);
    // The protocol keeps the stream open: the service might be added later. Ours never are.
    stream_->send(answer(kServiceUnknown));
  }

  void on_half_close() override {
    if (!has_asked_) stream_->finish(malformed());
  }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<Stream> stream_;
  bool has_asked_ = false;
};

Health::Health() : state_(std::make_shared<State>()) {}

void Health::set_serving(bool is_serving) { state_->set(is_serving ? kServing : kNotServing); }

bool Health::is_serving() const { return state_->status() == kServing; }

void Health::add_to(MethodTable* methods, StreamTable* streams) const {
  methods->add("/grpc.health.v1.Health/Check", [state = state_](std::shared_ptr<Call> call) {
    const auto service = parse_service(call->body());
    if (!service) return call->reply(malformed(), "");
    if (!is_known(*service)) {
      return call->reply({GRPC_STATUS_NOT_FOUND, absl::StrCat("unknown service ", *service), ""},
                         "");
    }
    call->reply({}, answer(state->status()));
  });
  streams->add("/grpc.health.v1.Health/Watch", [state = state_](std::shared_ptr<Stream> stream) {
    return std::make_unique<Watcher>(state, std::move(stream));
  });
}

}  // namespace fairlead::api
