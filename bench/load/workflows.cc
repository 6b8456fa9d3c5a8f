#include <memory>
#include <vector>

#include "load/scenarios.h"

namespace fairlead::load {

namespace {

// A closed loop of workflows with one activity each: as one finishes the next is started.
//
//   start ──▶ workflow task ──▶ activity task ──▶ workflow task ──▶ finished
//     │             │                                                  │
//     └─ first task ┘                                                  │
//     └─ finished: the answer to the last workflow task is acknowledged┘
class WorkflowLoop {
 public:
  WorkflowLoop(Bench* bench, int pollers, DurationNs pause)
      : bench_(bench),
        pause_(pause),
        workers_(bench->transport, bench->requests, &bench->errors, {.pollers = pollers}) {
    workers_.on_workflow_task = [this](const WorkflowTask& task) { return answer(task); };
    workers_.on_workflow_acked = [this](int64_t index, bool is_completion) {
      if (is_completion) finished(index);
    };
    workers_.start_workflow_workers();
    workers_.start_activity_worker();
  }

  // Runs `count` more workflows, or as many as can be started until `start_until`.
  bool run(int64_t count, int64_t concurrency, TimeNs start_until) {
    start_max_ = next_ + count;
    start_until_ = start_until;
    first_task = {};
    finish = {};
    for (int64_t i = 0; i < concurrency && may_start(); ++i) start_next();
    return bench_->transport->run_until([this] { return in_flight_ == 0 && !may_start(); },
                                        bench_->timeout);
  }

  int64_t finished_count() const { return finished_; }

  // Of the last `run`.
  Latencies first_task;
  Latencies finish;

 private:
  struct Workflow {
    TimeNs started_at = 0;
    bool is_first_task_seen = false;
    bool is_finished = false;
  };

  bool may_start() const { return next_ < start_max_ && monotonic_now() < start_until_; }

  void start_next() {
    const int64_t index = next_++;
    ++in_flight_;
    workflows_.push_back({.started_at = monotonic_now()});
    start_workflow(bench_, index, [] {});
  }

  WorkerSet::Answer answer(const WorkflowTask& task) {
    if (task.has_activity_result) return {bench_->requests->complete_workflow(task.token), true};
    Workflow& workflow = workflows_.at(static_cast<size_t>(task.index));
    if (!workflow.is_first_task_seen) first_task.add(monotonic_now() - workflow.started_at);
    workflow.is_first_task_seen = true;
    return {bench_->requests->schedule_activities(task.token, 1), false};
  }

  void finished(int64_t index) {
    Workflow& workflow = workflows_.at(static_cast<size_t>(index));
    if (workflow.is_finished) return;
    workflow.is_finished = true;
    finish.add(monotonic_now() - workflow.started_at);
    ++finished_;
    if (!may_start()) {
      --in_flight_;
    } else if (pause_ == 0) {
      --in_flight_;
      start_next();
    } else {
      bench_->transport->after(pause_, [this] {
        --in_flight_;
        start_next();
      });
    }
  }

  Bench* bench_;
  DurationNs pause_;
  std::vector<Workflow> workflows_;
  int64_t next_ = 0;
  int64_t start_max_ = 0;
  TimeNs start_until_ = 0;
  int64_t in_flight_ = 0;
  int64_t finished_ = 0;
  WorkerSet workers_;
};

}  // namespace

bool run_workflows(Bench* bench, const WorkflowsOptions& options) {
  WorkflowLoop loop(bench, options.pollers, 0);
  const bool is_warm = loop.run(options.warmup, options.concurrency, kNever);
  const int64_t warmed_up = loop.finished_count();
  bench->report.count("warmup_workflows", warmed_up);
  if (!is_warm) return false;

  Meter meter(bench->server_pid);
  const TimeNs start_until = monotonic_now() + options.seconds_max * kSecond;
  const bool is_complete = loop.run(options.count, options.concurrency, start_until);
  meter.stop();

  const int64_t finished = loop.finished_count() - warmed_up;
  bench->report.count("workflows", finished);
  bench->report.count("concurrency", options.concurrency);
  meter.report(&bench->report, "workflow", finished);
  loop.first_task.report(&bench->report, "first_task");
  loop.finish.report(&bench->report, "finished");
  return is_complete;
}

bool run_latency(Bench* bench, const LatencyOptions& options) {
  WorkflowLoop loop(bench, options.pollers, options.pause_ms * kMillisecond);
  // The polls are parked before the first workflow starts.
  bench->transport->run_for(500 * kMillisecond);
  if (!loop.run(options.warmup, 1, kNever)) return false;
  const int64_t warmed_up = loop.finished_count();

  bench->transport->run_for(500 * kMillisecond);
  const bool is_complete = loop.run(options.count, 1, kNever);
  bench->report.count("workflows", loop.finished_count() - warmed_up);
  loop.first_task.report(&bench->report, "first_task");
  loop.finish.report(&bench->report, "finished");
  return is_complete;
}

}  // namespace fairlead::load
