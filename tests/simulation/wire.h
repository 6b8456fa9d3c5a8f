#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/temporal/call.h"
#include "google/protobuf/message.h"
#include "simulation/probes.h"
#include "simulation/scheduler.h"
#include "simulation/server.h"
#include "simulation/trace.h"

namespace fairlead::sim {

// gRPC's numbers.
enum Code {
  kOk = 0,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnavailable = 14,
};

// How a call looked to the one who made it.
struct Outcome {
  int code = kUnavailable;
  std::string message;
  std::string body;

  bool ok() const { return code == kOk; }
  // The call may or may not have had its effect.
  bool is_unknown() const { return code == kUnavailable || code == kDeadlineExceeded; }
};

// A program on another machine. When it dies its calls end without anyone to hear of it.
struct Process {
  std::string name;
  bool is_alive = true;
};
using ProcessPtr = std::shared_ptr<Process>;

// How often things go wrong between a client and the server; all zero once the weather is calm.
struct Weather {
  double request_lost = 0;
  double reply_lost = 0;
  double late = 0;  // by seconds
};

// Carries calls between processes and whichever server is up, late and sometimes not at all.
class Wire {
 public:
  using Done = std::function<void(Outcome)>;

  Wire(Scheduler* scheduler, Trace* trace, Probes* probes)
      : scheduler_(scheduler), trace_(trace), probes_(probes) {}

  Weather weather;
  // Told of a call that the server forgot to answer.
  std::function<void(const std::string&)> complain = [](const std::string&) {};

  void connect(Server* server) { server_ = server; }
  // The server is gone: whoever still waits finds the connection closed.
  void disconnect();
  // The process is gone. The server may notice at once, later, or only when it writes.
  void hang_up(Process& process);

  void send(ProcessPtr from, const std::string& method, const google::protobuf::Message& request,
            DurationNs timeout, Done done);
  // Through the second door, below /api. A refusal has the HTTP status as its code, and the answer
  // as its message.
  void send_http(ProcessPtr from, const std::string& method, const std::string& path,
                 std::string body, DurationNs timeout, Done done);

 private:
  struct Exchange;
  class SimCall;
  using ExchangePtr = std::shared_ptr<Exchange>;

  DurationNs way() const;
  void depart(const ExchangePtr& exchange, const std::string& name, DurationNs timeout);
  void arrive_http(const ExchangePtr& exchange);
  void arrive(const ExchangePtr& exchange);
  void answer(const ExchangePtr& exchange, api::RpcStatus status, std::string body,
              api::Delivered delivered);
  void finish(const ExchangePtr& exchange, Outcome outcome);
  void notice_absence(const ExchangePtr& exchange);
  void forget_finished();

  Scheduler* const scheduler_;
  Trace* const trace_;
  Probes* const probes_;
  Server* server_ = nullptr;
  uint64_t last_ = 0;
  std::vector<ExchangePtr> open_;
  size_t open_max_ = 64;
};

}  // namespace fairlead::sim
