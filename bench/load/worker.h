#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "load/requests.h"
#include "load/transport.h"

namespace fairlead::load {

// How the calls of a run went wrong. A run with errors still counts, but they are printed beside
// it.
struct Errors {
  int64_t calls = 0;
  std::string first;

  void note(const Reply& reply) {
    if (calls++ == 0) first = reply.describe();
  }
};

// Keeps polls parked on one queue and hands over the tasks that they bring, as an SDK's worker
// does: the next poll leaves when a task has arrived, not when it was answered, until too many
// tasks are in hand. Whoever handles a task calls `answered` once for it.
class Worker {
 public:
  struct Options {
    int pollers = 1;
    int in_hand_max = 1000;
  };
  // Gets the answer to a poll that was not empty.
  using Handler = std::function<void(std::string_view task)>;

  Worker(Transport* transport, Errors* errors, Method method, std::string_view poll,
         const Options& options, Handler handler);

  void start() { top_up(); }
  // Cancels the parked polls. Tasks in hand may still be answered.
  void stop();
  void answered();
  int parked() const { return static_cast<int>(parked_.size()); }

 private:
  void top_up();
  void poll();

  Transport* transport_;
  Errors* errors_;
  Method method_;
  std::string_view poll_;
  Options options_;
  Handler handler_;
  std::unordered_set<Transport::Call*> parked_;
  int backing_off_ = 0;
  int in_hand_ = 0;
  bool is_stopped_ = false;
};

// The three workers of an SDK's worker process: workflow tasks of the normal queue, of the
// process's own sticky queue, and activities. The scenario says how to answer a workflow task.
class WorkerSet {
 public:
  // The bytes have to live until the next task.
  struct Answer {
    std::string_view bytes;
    bool is_completion = false;
  };
  // Told when the server has acknowledged an answer.
  using WorkflowAcked = std::function<void(int64_t index, bool is_completion)>;
  using ActivityAcked = std::function<void()>;

  WorkerSet(Transport* transport, Requests* requests, Errors* errors,
            const Worker::Options& options);

  std::function<Answer(const WorkflowTask&)> on_workflow_task;
  WorkflowAcked on_workflow_acked = [](int64_t, bool) {};
  ActivityAcked on_activity_acked = [] {};

  void start_workflow_workers();
  void stop_workflow_workers();
  void start_activity_worker() { activity_.start(); }
  void stop();

 private:
  void handle_workflow(Worker* worker, std::string_view bytes);
  void handle_activity(std::string_view bytes);

  Transport* transport_;
  Requests* requests_;
  Errors* errors_;
  Worker normal_;
  Worker sticky_;
  Worker activity_;
};

}  // namespace fairlead::load
