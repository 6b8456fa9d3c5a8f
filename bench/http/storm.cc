#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "http/scenarios.h"
#include "load/transport.h"

namespace fairlead::http_load {

namespace {

// How long a worker of the storm keeps a task, and how long its polls wait: a poll that is refused
// comes again a second later.
constexpr DurationNs kWork = 50 * kMillisecond;
constexpr int64_t kPollSeconds = 1;

// Many workers of one queue that may not have what they ask for. They have a thread and connections
// of their own: nobody else waits behind them here, so what others notice they notice in the
// server.
class Storm {
 public:
  Storm(const Bench& bench, int64_t workers)
      : client_("127.0.0.1", bench.port),
        bench_{&client_, bench.port, 0, bench.timeout, bench.stem, {}},
        workers_(workers) {}
  ~Storm() { end(); }

  bool prepare(int64_t backlog) {
    return repeat(&bench_, workers_, 32,
                  [this](int64_t i, std::function<void()> done) {
                    register_worker(&bench_, worker(i), kQueue, std::move(done));
                  }) &&
           repeat(&bench_, backlog, 64, [this](int64_t i, std::function<void()> done) {
             start(&bench_, bench_.stem + "-storm-" + std::to_string(i), kQueue, std::move(done));
           });
  }
  // Workers come one after the other within the time that a poll takes, as a fleet does.
  void begin() {
    is_on_ = true;
    for (int64_t i = 0; i < workers_; ++i) {
      client_.after(i * kPollSeconds * kSecond / workers_, [this, i] { ask(i); });
    }
    thread_ = std::thread(
        [this] { client_.run_until([this] { return !is_on_ && busy_ == 0; }, bench_.timeout); });
  }
  // Goes on until all tasks that waited have run.
  bool drain(int64_t backlog) {
    begin();
    const TimeNs end = load::monotonic_now() + bench_.timeout;
    while (tasks_ < backlog && load::monotonic_now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    this->end();
    return tasks_ == backlog;
  }
  void end() {
    is_on_ = false;
    if (thread_.joinable()) thread_.join();
  }
  int64_t errors() const { return client_.errors(); }
  const std::string& first_error() const { return client_.first_error(); }
  int64_t polls() const { return polls_; }
  int64_t tasks() const { return tasks_; }
  int64_t held_max() const { return held_max_; }
  int64_t repeated() const { return repeated_; }

 private:
  static constexpr const char* kQueue = "storm";
  std::string worker(int64_t i) const { return bench_.stem + "-storm-" + std::to_string(i); }

  void ask(int64_t i) {
    if (!is_on_) return;
    ++busy_;
    ++polls_;
    poll(&bench_, "workflow", worker(i), kQueue, kPollSeconds, [this, i](Task task) {
      if (task == nullptr) {
        --busy_;
        return ask(i);
      }
      ++tasks_;
      // The server may give the place away once it has been told, so it is free here before that.
      held_max_ = std::max(held_max_, ++held_);
      if (!seen_.insert(text(*task, "task_id")).second) ++repeated_;
      client_.after(kWork, [this, i, task = json::object(*task)] {
        --held_;
        finish_workflow(&bench_, task, [this, i] {
          --busy_;
          ask(i);
        });
      });
    });
  }

  Client client_;
  Bench bench_;
  const int64_t workers_;
  std::thread thread_;
  std::atomic<bool> is_on_ = false;
  int64_t busy_ = 0;
  int64_t held_ = 0;
  int64_t held_max_ = 0;
  int64_t repeated_ = 0;
  std::set<std::string> seen_;
  std::atomic<int64_t> polls_ = 0;
  std::atomic<int64_t> tasks_ = 0;
};

// The others: queues with a parked poll each, and a start at a time.
class Others {
 public:
  Others(Bench* bench, int64_t queues) : bench_(bench), queues_(queues) {}

  bool prepare() {
    if (!repeat(bench_, queues_, 16, [this](int64_t i, std::function<void()> done) {
          register_worker(bench_, queue(i), queue(i), std::move(done));
        })) {
      return false;
    }
    for (int64_t i = 0; i < queues_; ++i) ask(i);
    return true;
  }

  void measure(DurationNs time, int64_t per_s, load::Latencies* latencies) {
    latencies_ = latencies;
    is_on_ = true;
    begin_next(kSecond / per_s);
    bench_->client->run_for(time);
    is_on_ = false;
    bench_->client->run_until([this] { return started_.empty(); }, bench_->timeout);
    latencies_ = nullptr;
  }
  bool is_idle() const { return started_.empty(); }

 private:
  std::string queue(int64_t i) const { return bench_->stem + "-other-" + std::to_string(i); }

  void begin_next(DurationNs pause) {
    if (!is_on_) return;
    const std::string id = bench_->stem + "-other-run-" + std::to_string(++last_);
    started_[id] = load::monotonic_now();
    start(bench_, id, queue(last_ % queues_), [] {});
    bench_->client->after(pause, [this, pause] { begin_next(pause); });
  }

  void ask(int64_t i) {
    poll(bench_, "workflow", queue(i), queue(i), 30, [this, i](Task task) {
      if (task == nullptr) return ask(i);
      const auto begun = started_.extract(text(*task, "workflow_id"));
      if (!begun.empty() && latencies_ != nullptr) {
        latencies_->add(load::monotonic_now() - begun.mapped());
      }
      finish_workflow(bench_, *task, [] {});
      ask(i);
    });
  }

  Bench* const bench_;
  const int64_t queues_;
  bool is_on_ = false;
  int64_t last_ = 0;
  std::map<std::string, TimeNs> started_;
  load::Latencies* latencies_ = nullptr;
};

}  // namespace

bool run_storm(Bench* bench, const StormOptions& options) {
  Storm storm(*bench, options.workers);
  Others others(bench, options.queues);
  if (!storm.prepare(options.backlog) || !others.prepare()) return false;
  {
    load::Latencies warmup;
    others.measure(2 * kSecond, options.starts_per_s, &warmup);
  }
  bench->report.count("workers", options.workers);
  for (int64_t round = 1; round <= 2 * options.rounds; ++round) {
    const bool is_storm = round % 2 == 0;
    if (is_storm) {
      storm.begin();
      // Until all have come.
      bench->client->run_for(2 * kSecond);
    }
    const std::string name = (is_storm ? "storm_" : "quiet_") + std::to_string((round + 1) / 2);
    load::Latencies latencies;
    const int64_t polls = storm.polls();
    const int64_t tasks = storm.tasks();
    load::Meter meter(bench->server_pid);
    others.measure(options.seconds * kSecond, options.starts_per_s, &latencies);
    meter.stop();
    latencies.report(&bench->report, name);
    bench->report.number(name + "_server_cpu_percent", meter.server_cpu_percent());
    if (is_storm) {
      bench->report.number(name + "_polls_per_s",
                           static_cast<double>(storm.polls() - polls) / meter.seconds());
      bench->report.number(name + "_tasks_per_s",
                           static_cast<double>(storm.tasks() - tasks) / meter.seconds());
      storm.end();
    }
  }
  const bool is_drained = !options.drains || storm.drain(options.backlog);
  bench->report.count("storm_tasks", storm.tasks());
  bench->report.count("storm_tasks_at_once_max", storm.held_max());
  bench->report.count("storm_tasks_repeated", storm.repeated());
  bench->report.count("storm_errors", storm.errors());
  if (storm.errors() > 0) bench->report.text("storm_first_error", storm.first_error());
  const bool is_in_bounds = options.cap == 0 || storm.held_max() <= options.cap;
  return is_drained && is_in_bounds && storm.repeated() == 0 && others.is_idle() &&
         bench->client->errors() == 0 && storm.errors() == 0;
}

}  // namespace fairlead::http_load
