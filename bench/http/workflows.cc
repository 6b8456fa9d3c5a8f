#include <map>

#include "http/scenarios.h"
#include "load/transport.h"

namespace fairlead::http_load {

namespace {

constexpr int64_t kPollSeconds = 30;

// Workflows with one activity and the worker that runs them: a start, three polls, three
// completions.
class Workflows {
 public:
  Workflows(Bench* bench, int64_t pollers)
      : bench_(bench), queue_(bench->stem + "-workflows"), worker_(queue_ + "-worker") {
    repeat(bench_, 1, 1, [this](int64_t, std::function<void()> done) {
      register_worker(bench_, worker_, queue_, std::move(done));
    });
    for (int64_t i = 0; i < pollers; ++i) {
      poll_workflow();
      poll_activity();
    }
  }

  bool run(int64_t count, int64_t concurrency, load::Latencies* latencies) {
    latencies_ = latencies;
    return repeat(bench_, count, concurrency, [this](int64_t, std::function<void()> done) {
      const std::string id = queue_ + "-" + std::to_string(++last_);
      open_[id] = {load::monotonic_now(), std::move(done)};
      start(bench_, id, queue_, [] {});
    });
  }
  void stop() { is_over_ = true; }

 private:
  struct Open {
    TimeNs started;
    std::function<void()> done;
  };

  void poll_workflow() {
    if (is_over_) return;
    poll(bench_, "workflow", worker_, queue_, kPollSeconds, [this](Task task) {
      poll_workflow();
      if (task == nullptr) return;
      // Two events are those of the start.
      if (task->at("total_history_events").to_number<int64_t>() <= 2) {
        return schedule_activity(bench_, *task, queue_);
      }
      finish_workflow(bench_, *task, [this, id = text(*task, "workflow_id")] {
        const auto ended = open_.extract(id);
        if (ended.empty()) return;
        if (latencies_ != nullptr) {
          latencies_->add(load::monotonic_now() - ended.mapped().started);
        }
        ended.mapped().done();
      });
    });
  }

  void poll_activity() {
    if (is_over_) return;
    poll(bench_, "activity", worker_, queue_, kPollSeconds, [this](Task task) {
      poll_activity();
      if (task != nullptr) complete_activity(bench_, *task);
    });
  }

  Bench* const bench_;
  const std::string queue_;
  const std::string worker_;
  std::map<std::string, Open> open_;
  int64_t last_ = 0;
  load::Latencies* latencies_ = nullptr;
  bool is_over_ = false;
};

}  // namespace

bool run_workflows(Bench* bench, const WorkflowsOptions& options) {
  Workflows workflows(bench, options.pollers);
  if (!workflows.run(options.warmup, options.concurrency, nullptr)) return false;
  load::Latencies latencies;
  const int64_t answered = bench->client->answered();
  load::Meter meter(bench->server_pid);
  const bool is_done = workflows.run(options.count, options.concurrency, &latencies);
  meter.stop();
  workflows.stop();
  bench->report.count("workflows", options.count);
  meter.report(&bench->report, "workflow", options.count);
  bench->report.number("requests_per_s",
                       static_cast<double>(bench->client->answered() - answered) / meter.seconds());
  bench->report.number("requests_per_workflow",
                       static_cast<double>(bench->client->answered() - answered) /
                           static_cast<double>(options.count));
  latencies.report(&bench->report, "finished");
  return is_done;
}

bool run_reads(Bench* bench, const ReadsOptions& options) {
  constexpr int64_t kRuns = 100;
  const std::string queue = bench->stem + "-reads";
  std::vector<std::string> runs(kRuns);
  const bool is_ready = repeat(bench, kRuns, 16, [&](int64_t i, std::function<void()> done) {
    const std::string id = queue + "-" + std::to_string(i);
    bench->client->post("workflows",
                        {{"workflow_id", id}, {"workflow_type", "bench"}, {"task_queue", queue}},
                        [&runs, i, done = std::move(done)](const Answer& answer) {
                          if (!answer.is_ok()) return;
                          runs[static_cast<size_t>(i)] = text(answer.body, "run_id");
                          done();
                        });
  });
  if (!is_ready) return false;
  const auto path = [&](int64_t i) {
    if (options.what == "queue") return "task-queues/" + queue;
    const std::string id = queue + "-" + std::to_string(i % kRuns);
    if (options.what == "describe") return "workflows/" + id;
    return "workflows/" + id + "/runs/" + runs[static_cast<size_t>(i % kRuns)] + "/history";
  };
  load::Latencies latencies;
  load::Meter meter(bench->server_pid);
  const bool is_done =
      repeat(bench, options.count, options.concurrency, [&](int64_t i, std::function<void()> done) {
        bench->client->get(path(i), [&latencies, asked = load::monotonic_now(),
                                     done = std::move(done)](const Answer& answer) {
          if (!answer.is_ok()) return;
          latencies.add(load::monotonic_now() - asked);
          done();
        });
      });
  meter.stop();
  bench->report.text("what", options.what);
  bench->report.count("requests", options.count);
  meter.report(&bench->report, "request", options.count);
  latencies.report(&bench->report, "answered");
  return is_done;
}

}  // namespace fairlead::http_load
