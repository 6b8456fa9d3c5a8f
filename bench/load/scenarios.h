#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/order_audit.h"
#include "load/report.h"
#include "load/requests.h"
#include "load/transport.h"
#include "load/worker.h"

namespace fairlead::load {

// What every scenario works with.
struct Bench {
  Transport* transport;
  Requests* requests;
  int server_pid;
  // A run that takes longer has failed.
  DurationNs timeout;
  Report report;
  Errors errors;
};

struct WorkflowsOptions {
  int64_t count = 1000;
  int64_t concurrency = 64;
  int64_t warmup = 100;
  int pollers = 32;
  // No workflow is started later than this; the run then has fewer than `count`.
  int64_t seconds_max = 60;
};

struct LatencyOptions {
  int64_t count = 200;
  int64_t warmup = 20;
  int pollers = 5;
  // Rest between two workflows, so that the server has nothing else left to do.
  int64_t pause_ms = 20;
};

struct BacklogOptions {
  int64_t count = 1000;
  int64_t concurrency = 64;
  int pollers = 32;
  bool is_activity = false;
  int64_t activities_per_workflow = 100;
};

struct PollsOptions {
  int64_t count = 1000;
  int64_t seconds = 10;
  int64_t ramp_per_s = 1000;
};

// A backlog under fairness keys, handed out one task at a time.
struct FairnessOptions {
  std::vector<KeyGroup> groups;
  int64_t activities_per_workflow = 1000;
  // For the dispatches; what did not go out by then is reported as missing.
  int64_t seconds_max = 120;

  // What happens in the middle, after this many dispatches.
  int64_t turn_after = 0;
  QueueSettings settings;
  bool has_restart = false;
  int64_t more_tasks_per_key = 0;
};

struct IdleOptions {
  int64_t seconds = 10;
};

// Each fills `bench->report` and says whether the run did all that it should have.
bool run_workflows(Bench* bench, const WorkflowsOptions& options);
bool run_latency(Bench* bench, const LatencyOptions& options);
bool run_backlog(Bench* bench, const BacklogOptions& options);
bool run_polls(Bench* bench, const PollsOptions& options);
bool run_fairness(Bench* bench, const FairnessOptions& options);
bool run_idle(Bench* bench, const IdleOptions& options);

// Makes a call and waits for it. What came back lies in `bytes`; no answer is UNAVAILABLE.
Reply ask(Bench* bench, Method method, const std::string& request, std::string* bytes);

// Registers the namespace if it is not there. False when the server does not know it after a
// minute.
bool make_namespace(Bench* bench);

// Starts workflow `index` and tries again while the server is busy; the request id makes that safe.
// `acked` is told when the server has it. Any other error ends up in `bench->errors` only.
void start_workflow(Bench* bench, int64_t index, std::function<void()> acked);

// Starts the workflows [0, count), `concurrency` at a time. False when the time ran out.
bool start_all(Bench* bench, int64_t count, int64_t concurrency);
// Terminates the workflows [0, count), as well as it can.
void terminate_all(Bench* bench, int64_t count);

}  // namespace fairlead::load
