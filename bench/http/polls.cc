#include <algorithm>

#include "http/scenarios.h"
#include "load/process_stats.h"
#include "load/transport.h"

namespace fairlead::http_load {

bool run_polls(Bench* bench, const PollsOptions& options) {
  const std::string queue = bench->stem + "-polls";
  const std::string worker = queue + "-worker";
  int64_t parked = 0;
  int64_t woken = 0;
  const std::function<void()> park = [&] {
    ++parked;
    poll(bench, "workflow", worker, queue, 60, [&](Task task) {
      --parked;
      if (task == nullptr) return park();
      ++woken;
      finish_workflow(bench, *task, [] {});
    });
  };
  repeat(bench, 1, 1, [&](int64_t, std::function<void()> done) {
    register_worker(bench, worker, queue, std::move(done));
  });
  // The first poll loads the queue, which is not what a poll costs.
  park();
  bench->client->run_for(kSecond);
  const auto before = load::read_process(bench->server_pid);
  // A fleet comes up over some seconds.
  for (int64_t left = options.count - 1; left > 0; left -= 50) {
    for (int64_t i = 0; i < std::min<int64_t>(left, 50); ++i) park();
    bench->client->run_for(25 * kMillisecond);
  }
  bench->client->run_for(3 * kSecond);
  const auto after = load::read_process(bench->server_pid);
  const int64_t count = parked;
  bench->report.count("polls", count);
  if (before && after) {
    bench->report.number("server_kib_per_poll",
                         static_cast<double>(after->rss_bytes - before->rss_bytes) / 1024.0 /
                             static_cast<double>(std::max<int64_t>(count, 1)));
  }
  load::Meter meter(bench->server_pid);
  bench->client->run_for(options.seconds * kSecond);
  meter.stop();
  meter.report_load(&bench->report);

  const TimeNs started = load::monotonic_now();
  start(bench, queue + "-1", queue, [] {});
  bench->client->run_until([&] { return woken > 0; }, 20 * kSecond);
  bench->report.number("wake_ms",
                       static_cast<double>(load::monotonic_now() - started) / kMillisecond);
  bench->client->run_for(kSecond);
  bench->report.count("woken", woken);
  return count == options.count && woken == 1 && bench->client->errors() == 0;
}

}  // namespace fairlead::http_load
