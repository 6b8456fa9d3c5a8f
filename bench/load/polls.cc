#include <algorithm>
#include <unordered_set>

#include "load/scenarios.h"

namespace fairlead::load {

namespace {

constexpr DurationNs kPollTimeout = kMinute;
constexpr DurationNs kRampStep = 50 * kMillisecond;

// Many polls on one queue that nobody feeds.
//
// A poll that the server refuses is sent again a second later, one that ran out at once. `parked`
// is how many wait right now.
class ParkedPolls {
 public:
  explicit ParkedPolls(Bench* bench) : bench_(bench) {}

  // Gradually, as a fleet of workers comes up; a burst would measure the server's admission.
  void ramp_up(int64_t count, int64_t per_s) {
    const int64_t step = std::max<int64_t>(per_s * kRampStep / kSecond, 1);
    for (int64_t i = 0; i < std::min(step, count); ++i) park();
    if (count <= step) return;
    bench_->transport->after(kRampStep,
                             [this, count, step, per_s] { ramp_up(count - step, per_s); });
  }

  int64_t parked() const { return parked_; }
  int64_t woken() const { return woken_; }
  int64_t ran_out() const { return ran_out_; }

 private:
  void park() {
    ++parked_;
    bench_->transport->call(Method::kPollWorkflowTask, bench_->requests->poll_workflow(),
                            kPollTimeout, [this](const Reply& reply) { ended(reply); });
  }

  void ended(const Reply& reply) {
    --parked_;
    if (!reply.is_ok()) {
      bench_->errors.note(reply);
      bench_->transport->after(kSecond, [this] { park(); });
      return;
    }
    const WorkflowTask task = read_workflow_task(reply.bytes);
    if (task.token.empty()) {
      ++ran_out_;
      park();
      return;
    }
    ++woken_;
    bench_->transport->call(Method::kCompleteWorkflowTask,
                            bench_->requests->complete_workflow(task.token), 10 * kSecond,
                            [this](const Reply& answer) {
                              if (!answer.is_ok()) bench_->errors.note(answer);
                            });
  }

  Bench* bench_;
  int64_t parked_ = 0;
  int64_t woken_ = 0;
  int64_t ran_out_ = 0;
};

}  // namespace

bool run_polls(Bench* bench, const PollsOptions& options) {
  ParkedPolls polls(bench);
  // The first poll loads the queue, which is not what a poll costs.
  polls.ramp_up(1, 1);
  bench->transport->run_for(kSecond);
  const auto before = read_process(bench->server_pid);

  polls.ramp_up(options.count - 1, options.ramp_per_s);
  bench->transport->run_until([&] { return polls.parked() == options.count; }, bench->timeout);
  // Parked means that the server has seen it and did not answer.
  bench->transport->run_for(3 * kSecond);
  const int64_t parked = polls.parked();
  const auto after = read_process(bench->server_pid);
  bench->report.count("polls", parked);
  if (before && after) {
    bench->report.number("server_kib_per_poll",
                         static_cast<double>(after->rss_bytes - before->rss_bytes) / 1024.0 /
                             static_cast<double>(std::max<int64_t>(parked, 1)));
  }

  Meter meter(bench->server_pid);
  bench->transport->run_for(options.seconds * kSecond);
  meter.stop();
  meter.report_load(&bench->report);
  bench->report.count("ran_out", polls.ran_out());

  const TimeNs started_at = monotonic_now();
  start_workflow(bench, 0, [] {});
  bench->transport->run_until([&] { return polls.woken() > 0; }, 20 * kSecond);
  bench->report.number("wake_ms", static_cast<double>(monotonic_now() - started_at) / kMillisecond);
  bench->transport->run_for(kSecond);
  bench->report.count("woken", polls.woken());
  return parked == options.count && polls.woken() == 1;
}

bool run_idle(Bench* bench, const IdleOptions& options) {
  Meter meter(bench->server_pid);
  bench->transport->run_for(options.seconds * kSecond);
  meter.stop();
  bench->report.number("seconds", meter.seconds());
  meter.report_load(&bench->report);
  return true;
}

}  // namespace fairlead::load
