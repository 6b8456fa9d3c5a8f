#include <algorithm>

#include "load/scenarios.h"

namespace fairlead::load {

namespace {

void report_enqueued(Bench* bench, const Meter& meter, const char* unit, int64_t units) {
  bench->report.count(std::string(unit) + "s", units);
  bench->report.number("enqueued_per_s", static_cast<double>(units) / meter.seconds());
}

// N workflows wait for their first workflow task; each is answered with its completion.
bool drain_workflow_tasks(Bench* bench, const BacklogOptions& options) {
  Meter enqueue(bench->server_pid);
  if (!start_all(bench, options.count, options.concurrency)) return false;
  enqueue.stop();
  report_enqueued(bench, enqueue, "task", options.count);

  int64_t drained = 0;
  WorkerSet workers(bench->transport, bench->requests, &bench->errors,
                    {.pollers = options.pollers});
  workers.on_workflow_task = [&](const WorkflowTask& task) -> WorkerSet::Answer {
    return {bench->requests->complete_workflow(task.token), true};
  };
  workers.on_workflow_acked = [&](int64_t, bool) { ++drained; };
  Meter drain(bench->server_pid);
  workers.start_workflow_workers();
  const bool is_complete =
      bench->transport->run_until([&] { return drained >= options.count; }, bench->timeout);
  drain.stop();
  drain.report(&bench->report, "task", drained);
  workers.stop();
  bench->transport->run_for(100 * kMillisecond);
  return is_complete;
}

// Few workflows schedule N activities between them; the activity tasks wait and are then completed.
// Nobody works on the workflows meanwhile, and they are terminated at the end.
bool drain_activity_tasks(Bench* bench, const BacklogOptions& options) {
  const int64_t per_workflow = options.activities_per_workflow;
  const int64_t workflows = (options.count + per_workflow - 1) / per_workflow;
  int64_t scheduled_by = 0;
  int64_t drained = 0;
  WorkerSet workers(bench->transport, bench->requests, &bench->errors,
                    {.pollers = options.pollers});
  workers.on_workflow_task = [&](const WorkflowTask& task) -> WorkerSet::Answer {
    const int64_t left = options.count - task.index * per_workflow;
    return {bench->requests->schedule_activities(task.token, std::min(left, per_workflow)), false};
  };
  workers.on_workflow_acked = [&](int64_t, bool) { ++scheduled_by; };
  workers.on_activity_acked = [&] { ++drained; };

  Meter enqueue(bench->server_pid);
  workers.start_workflow_workers();
  if (!start_all(bench, workflows, options.concurrency) ||
      !bench->transport->run_until([&] { return scheduled_by >= workflows; }, bench->timeout)) {
    return false;
  }
  enqueue.stop();
  report_enqueued(bench, enqueue, "task", options.count);
  workers.stop_workflow_workers();
  bench->transport->run_for(500 * kMillisecond);

  Meter drain(bench->server_pid);
  workers.start_activity_worker();
  const bool is_complete =
      bench->transport->run_until([&] { return drained >= options.count; }, bench->timeout);
  drain.stop();
  drain.report(&bench->report, "task", drained);
  workers.stop();
  terminate_all(bench, workflows);
  return is_complete;
}

}  // namespace

bool run_backlog(Bench* bench, const BacklogOptions& options) {
  bench->report.text("kind", options.is_activity ? "activity" : "workflow");
  return options.is_activity ? drain_activity_tasks(bench, options)
                             : drain_workflow_tasks(bench, options);
}

}  // namespace fairlead::load
