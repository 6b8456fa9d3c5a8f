#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "http/client.h"
#include "load/report.h"

namespace fairlead::http_load {

// What every scenario works with: a server with its door open to everyone.
struct Bench {
  Client* client;
  int port;
  int server_pid;
  DurationNs timeout;
  std::string stem;  // of names that no earlier run has used
  load::Report report;
};

// ---- what a worker says
// --------------------------------------------------------------------------

void register_worker(Bench* bench, const std::string& worker, const std::string& queue,
                     std::function<void()> then);
void start(Bench* bench, const std::string& id, const std::string& queue,
           std::function<void()> then);
// `then` gets the task, or null: nothing came within the time.
using Task = const json::object*;
void poll(Bench* bench, const char* kind, const std::string& worker, const std::string& queue,
          int64_t seconds, std::function<void(Task)> then);
// Ends the workflow, or schedules an activity on the queue.
void finish_workflow(Bench* bench, const json::object& task, std::function<void()> then);
void schedule_activity(Bench* bench, const json::object& task, const std::string& queue);
void complete_activity(Bench* bench, const json::object& task);

std::string text(const json::object& object, std::string_view name);
// Makes sure of `count` things, some at a time. `one` does a thing and tells when it is done.
bool repeat(Bench* bench, int64_t count, int64_t at_once,
            const std::function<void(int64_t, std::function<void()>)>& one);

// ---- scenarios: true if all was done
// -------------------------------------------------------------

struct WorkflowsOptions {
  int64_t count = 5000;
  int64_t concurrency = 64;
  int64_t warmup = 200;
  int64_t pollers = 32;
};
bool run_workflows(Bench* bench, const WorkflowsOptions& options);

struct ReadsOptions {
  std::string what = "describe";  // describe, history, queue
  int64_t count = 20'000;
  int64_t concurrency = 32;
};
bool run_reads(Bench* bench, const ReadsOptions& options);

struct PollsOptions {
  int64_t count = 1000;
  int64_t seconds = 10;
};
bool run_polls(Bench* bench, const PollsOptions& options);

// The queue `storm` must have a cap on leases, or the workers drain it.
struct StormOptions {
  int64_t workers = 1000;
  int64_t backlog = 5000;
  int64_t rounds = 4;  // with and without the storm, taking turns
  int64_t seconds = 10;
  int64_t queues = 16;
  int64_t starts_per_s = 100;
  int64_t cap = 0;      // tasks that its workers may have at once; 0: not checked
  bool drains = false;  // in the end every task of it has run, once
};
bool run_storm(Bench* bench, const StormOptions& options);

}  // namespace fairlead::http_load
