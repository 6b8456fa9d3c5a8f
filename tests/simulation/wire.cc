#include "simulation/wire.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"

namespace fairlead::sim {

namespace {
constexpr char kService[] = "/temporal.api.workflowservice.v1.WorkflowService/";
}  // namespace

// One call and its answer, as both ends and the cable between them know it.
struct Wire::Exchange {
  uint64_t number = 0;
  ProcessPtr from;
  std::string method;
  std::string body;
  TimeNs deadline = 0;
  Done done;
  bool is_finished = false;   // for the client
  Owner server = kNobody;     // that took the call
  bool is_answered = false;   // by the server
  bool is_abandoned = false;  // and the server knows
  absl::AnyInvocable<void()> gone;
  std::shared_ptr<const durable::Request> http;  // through the second door
};

class Wire::SimCall final : public api::Call {
 public:
  SimCall(Wire* wire, ExchangePtr exchange) : wire_(wire), exchange_(std::move(exchange)) {}
  ~SimCall() override {
    const bool is_served =
        wire_->server_ != nullptr && wire_->server_->owner() == exchange_->server;
    if (!is_served || exchange_->is_answered || exchange_->is_abandoned) return;
    wire_->complain("a call was dropped without an answer: " + exchange_->method);
  }

  const std::string& method() const override { return exchange_->method; }
  std::string_view body() const override { return exchange_->body; }
  TimeNs deadline() const override { return exchange_->deadline; }
  std::string_view header(std::string_view) const override { return {}; }
  void release_body() override {
    // Not only emptied but overwritten: whoever still looks there finds rubbish.
    std::fill(exchange_->body.begin(), exchange_->body.end(), '\xff');
    std::string().swap(exchange_->body);
  }
  void on_cancel(absl::AnyInvocable<void()> gone) override {
    if (exchange_->is_abandoned) return gone();
    exchange_->gone = std::move(gone);
  }
  void reply(api::RpcStatus status, std::string body, api::Delivered delivered) override {
    wire_->answer(exchange_, std::move(status), std::move(body), std::move(delivered));
  }

 private:
  Wire* const wire_;
  const ExchangePtr exchange_;
};

void Wire::send(ProcessPtr from, const std::string& method,
                const google::protobuf::Message& request, DurationNs timeout, Done done) {
  FL_ASSERT(from->is_alive, "the dead make no calls");
  auto exchange = std::make_shared<Exchange>();
  exchange->from = std::move(from);
  exchange->method = method.starts_with("/") ? method : absl::StrCat(kService, method);
  exchange->body = request.SerializeAsString();
  exchange->done = std::move(done);
  depart(exchange, method, timeout);
}

void Wire::send_http(ProcessPtr from, const std::string& method, const std::string& path,
                     std::string body, DurationNs timeout, Done done) {
  FL_ASSERT(from->is_alive, "the dead make no calls");
  auto request = std::make_shared<durable::Request>();
  request->method = method;
  request->path = absl::StrCat("/api/", path.substr(0, path.find('?')));
  if (path.find('?') != path.npos) request->query = path.substr(path.find('?') + 1);
  if (method != "GET") request->body = std::move(body);
  request->headers = {{"Content-Type", "application/json"},
                      {"X-Durable-Workflow-Control-Plane-Version", "2"},
                      {"X-Durable-Workflow-Protocol-Version", "1.20"}};
  auto exchange = std::make_shared<Exchange>();
  exchange->from = std::move(from);
  exchange->method = absl::StrCat(method, " ", path);
  exchange->http = std::move(request);
  exchange->done = std::move(done);
  depart(exchange, exchange->method, timeout);
}

void Wire::depart(const ExchangePtr& exchange, const std::string& name, DurationNs timeout) {
  exchange->number = ++last_;
  exchange->deadline = add_saturated(scheduler_->now(), timeout);
  open_.push_back(exchange);
  trace_->note(absl::StrCat("#", exchange->number, " ", exchange->from->name, " -> ", name));

  if (scheduler_->random().chance(weather.request_lost)) {
    scheduler_->after(way(), kNobody, [this, exchange] {
      finish(exchange, {kUnavailable, "the request was lost", ""});
    });
  } else {
    scheduler_->after(way(), kNobody, [this, exchange] { arrive(exchange); });
  }
  scheduler_->at(exchange->deadline, kNobody, [this, exchange] {
    if (exchange->is_finished) return;
    notice_absence(exchange);
    finish(exchange, {kDeadlineExceeded, "the client's patience ended", ""});
  });
}

DurationNs Wire::way() const {
  const bool is_late = scheduler_->random().chance(weather.late);
  return scheduler_->between(20'000, is_late ? 3 * kSecond : 400'000);
}

void Wire::arrive(const ExchangePtr& exchange) {
  if (exchange->is_finished) return;
  if (server_ == nullptr) {
    finish(exchange, {kUnavailable, "connection refused", ""});
    return;
  }
  if (exchange->http != nullptr) return arrive_http(exchange);
  const api::Handler* handler = server_->find(exchange->method);
  FL_ASSERT(handler != nullptr, "every method is served");
  exchange->server = server_->owner();
  (*handler)(std::make_shared<SimCall>(this, exchange));
}

void Wire::arrive_http(const ExchangePtr& exchange) {
  exchange->server = server_->owner();
  exchange->gone = [door = &server_->door(), request = exchange->http] { door->forget(request); };
  server_->door().handle(exchange->http, [this, exchange](durable::Response response) {
    api::RpcStatus status;
    if (response.status < 200 || response.status >= 300) {
      status.code = response.status == 503 ? kUnavailable : response.status;
      status.message = response.body;
    }
    answer(exchange, std::move(status), std::move(response.body), nullptr);
  });
}

void Wire::answer(const ExchangePtr& exchange, api::RpcStatus status, std::string body,
                  api::Delivered delivered) {
  FL_ASSERT(!exchange->is_answered, "a call is answered once");
  exchange->is_answered = true;
  exchange->gone = nullptr;
  trace_->fold(body);
  auto& random = scheduler_->random();
  // Writing to a connection whose other end has gone may fail or seem to succeed.
  const bool is_written =
      !exchange->is_abandoned &&
      ((exchange->from->is_alive && !exchange->is_finished) || random.chance(0.5));
  if (delivered) {
    if (!is_written) probes_->hit(Probe::kTaskReturned);
    scheduler_->after(
        scheduler_->between(1'000, 50'000), exchange->server,
        [is_written, delivered = std::move(delivered)]() mutable { delivered(is_written); });
  }
  if (!is_written) return;
  Outcome outcome{status.code, std::move(status.message), std::move(body)};
  if (random.chance(weather.reply_lost)) {
    probes_->hit(Probe::kReplyLost);
    outcome = {kUnavailable, "the reply was lost", ""};
  }
  scheduler_->after(way(), kNobody,
                    [this, exchange, outcome = std::move(outcome)] { finish(exchange, outcome); });
}

void Wire::finish(const ExchangePtr& exchange, Outcome outcome) {
  if (exchange->is_finished) return;
  exchange->is_finished = true;
  if (open_.size() >= open_max_) forget_finished();
  if (!exchange->from->is_alive) return;
  trace_->note(absl::StrCat("#", exchange->number, " ", exchange->from->name, " <- ", outcome.code,
                            " ", outcome.message));
  auto done = std::move(exchange->done);
  done(std::move(outcome));
}

void Wire::forget_finished() {
  open_.erase(std::remove_if(open_.begin(), open_.end(),
                             [](const ExchangePtr& exchange) {
                               return exchange->is_finished &&
                                      (exchange->is_answered || exchange->is_abandoned);
                             }),
              open_.end());
  open_max_ = 2 * open_.size() + 64;
}

// The server's end learns that nobody waits for this answer any more.
void Wire::notice_absence(const ExchangePtr& exchange) {
  if (exchange->is_answered || exchange->is_abandoned) return;
  exchange->is_abandoned = true;
  const bool same_server = server_ != nullptr && server_->owner() == exchange->server;
  if (same_server && exchange->gone) {
    probes_->hit(Probe::kPollWithdrawn);
    auto gone = std::move(exchange->gone);
    gone();
  }
}

void Wire::disconnect() {
  const Owner dead = server_->owner();
  server_ = nullptr;
  for (const auto& exchange : open_) {
    if (exchange->server != dead) continue;
    exchange->is_abandoned = true;
    exchange->gone = nullptr;
    if (exchange->is_finished) continue;
    probes_->hit(Probe::kCrashWithCallsOpen);
    scheduler_->after(scheduler_->between(0, 50 * kMillisecond), kNobody, [this, exchange] {
      finish(exchange, {kUnavailable, "connection reset", ""});
    });
  }
}

void Wire::hang_up(Process& process) {
  process.is_alive = false;
  for (const auto& exchange : open_) {
    if (exchange->from.get() != &process || exchange->is_finished) continue;
    exchange->is_finished = true;
    if (scheduler_->random().chance(0.3)) continue;  // only a write will tell
    scheduler_->after(scheduler_->between(0, 2 * kSecond), kNobody,
                      [this, exchange] { notice_absence(exchange); });
  }
}

}  // namespace fairlead::sim
