#include <array>
#include <charconv>
#include <cstdio>
#include <memory>

#include "load/scenarios.h"

namespace fairlead::load {

namespace {

// A backlog is complete when it has the right size and has not changed for so long.
constexpr DurationNs kSettled = 2 * kSecond;
// How long a backlog may stand still below its size before we give up on the rest.
constexpr DurationNs kStuck = 20 * kSecond;
// Settings reach a queue some time after they were acknowledged, at least elsewhere.
constexpr DurationNs kSettingsTravel = 2 * kSecond;
// More keys than this are too many to list one by one.
constexpr int kKeysListed = 3;

double in_seconds(DurationNs duration) { return static_cast<double>(duration) / kSecond; }

// One queue's experiment: build a backlog, hand it out with a single poll, audit the order.
class Experiment {
 public:
  Experiment(Bench* bench, const FairnessOptions& options)
      : bench_(bench), options_(options), audit_(options.groups) {}

  bool run();

 private:
  bool schedule_from(int64_t first);
  bool await_backlog();
  bool turn();
  bool configure();
  void drain(int64_t until);
  void take(std::string_view bytes);
  void report();

  Bench* bench_;
  const FairnessOptions& options_;
  OrderAudit audit_;
  // The workflows' first tasks: each schedules up to the next one's.
  std::vector<int64_t> first_tasks_;
  // Workers stay until the transport has forgotten their calls.
  std::vector<std::unique_ptr<Worker>> workers_;
  // When the dispatches began. What happens in the middle takes no part of their time: it moves
  // this forward.
  TimeNs began_ = 0;
  // When, since then, a key's last task came. For the first keys only.
  std::array<DurationNs, kKeysListed> last_after_{};
  DurationNs last_after_any_ = 0;
  // The longest time without a task: a queue that stands still would show here.
  DurationNs gap_max_ = 0;
  int64_t repeated_ = 0;
  std::string answer_;
};

// One workflow after the other, so that tasks are queued in their order.
bool Experiment::schedule_from(int64_t first) {
  int64_t scheduled_by = static_cast<int64_t>(first_tasks_.size());
  WorkerSet workers(bench_->transport, bench_->requests, &bench_->errors, {.pollers = 2});
  workers.on_workflow_task = [&](const WorkflowTask& task) -> WorkerSet::Answer {
    const int64_t begin = first_tasks_[static_cast<size_t>(task.index)];
    const int64_t end = std::min(begin + options_.activities_per_workflow, audit_.arrived());
    std::vector<KeyedActivity> activities;
    for (int64_t id = begin; id < end; ++id) {
      const int key = audit_.key_of(id);
      activities.push_back({id, key, audit_.weight(key), audit_.priority(key)});
    }
    return {bench_->requests->schedule_keyed(task.token, activities), false};
  };
  workers.on_workflow_acked = [&](int64_t, bool) { ++scheduled_by; };
  workers.start_workflow_workers();
  bool is_done = true;
  for (; is_done && first < audit_.arrived(); first += options_.activities_per_workflow) {
    const auto workflow = static_cast<int64_t>(first_tasks_.size());
    first_tasks_.push_back(first);
    start_workflow(bench_, workflow, [] {});
    is_done =
        bench_->transport->run_until([&] { return scheduled_by > workflow; }, bench_->timeout);
  }
  workers.stop();
  bench_->transport->run_for(500 * kMillisecond);
  return is_done && await_backlog();
}

// A server may acknowledge tasks before they are in their queue. An experiment that began earlier
// would blame it for tasks that it did not have.
bool Experiment::await_backlog() {
  const int64_t expected = audit_.arrived() - audit_.dispatched();
  int64_t waiting = -1;
  for (TimeNs changed_at = monotonic_now();;) {
    const Reply reply =
        ask(bench_, Method::kDescribeTaskQueue, bench_->requests->count_backlog(), &answer_);
    // Then it is taken at its word.
    if (reply.is_unimplemented()) return true;
    const int64_t now = reply.is_ok() ? read_backlog(reply.bytes) : -1;
    if (now != waiting) changed_at = monotonic_now();
    waiting = now;
    const DurationNs still = monotonic_now() - changed_at;
    if (waiting >= expected && still >= kSettled) return true;
    if (still >= kStuck) {
      bench_->report.count("never_queued", expected - waiting);
      return false;
    }
    bench_->transport->run_for(kSecond / 2);
  }
}

void Experiment::take(std::string_view bytes) {
  const ActivityTask task = read_activity_task(bytes);
  int64_t number = -1;
  std::from_chars(task.id.data(), task.id.data() + task.id.size(), number);
  if (number < 0 || number >= audit_.arrived()) return;
  if (!audit_.dispatch(number)) {
    ++repeated_;
    return;
  }
  const DurationNs after = monotonic_now() - began_;
  gap_max_ = std::max(gap_max_, after - last_after_any_);
  last_after_any_ = after;
  const int key = audit_.key_of(number);
  if (key < kKeysListed) last_after_[static_cast<size_t>(key)] = after;
}

// A single poll at a time: with two, nobody could tell which task the server had chosen first. The
// tasks are not answered; a server that is busy with answers might be pushed out of its order, and
// the order of dispatches is all that counts here.
void Experiment::drain(int64_t until) {
  bool is_done = audit_.dispatched() >= until;
  if (is_done) return;
  workers_.push_back(std::make_unique<Worker>(
      bench_->transport, &bench_->errors, Method::kPollActivityTask,
      bench_->requests->poll_activity(), Worker::Options{.pollers = 1, .in_hand_max = 1},
      [&](std::string_view bytes) {
        take(bytes);
        is_done = audit_.dispatched() >= until;
        // From inside, so that no further poll leaves.
        if (is_done) workers_.back()->stop();
        workers_.back()->answered();
      }));
  workers_.back()->start();
  const TimeNs deadline = began_ + options_.seconds_max * kSecond;
  bench_->transport->run_until([&] { return is_done; }, deadline - monotonic_now());
  workers_.back()->stop();
}

bool Experiment::configure() {
  if (options_.settings.weights.empty() && options_.settings.key_rps == 0) return true;
  const Reply reply = ask(bench_, Method::kUpdateTaskQueueConfig,
                          bench_->requests->configure_queue(options_.settings), &answer_);
  const bool is_set = reply.is_ok() && has_settings(reply.bytes, options_.settings);
  bench_->report.text("settings", is_set ? "set" : "not supported");
  bench_->transport->run_for(kSettingsTravel);
  audit_.reweight(options_.settings.weights);
  return is_set;
}

bool Experiment::turn() {
  const TimeNs paused_at = monotonic_now();
  if (options_.has_restart) {
    std::printf("restart the server on the same data, then press Enter\n");
    std::fflush(stdout);
    if (std::getchar() == EOF || !bench_->transport->connect_all(kMinute)) return false;
  }
  if (!configure()) return false;
  if (options_.more_tasks_per_key > 0) {
    const int64_t first = audit_.arrived();
    audit_.arrive(options_.more_tasks_per_key);
    if (!schedule_from(first)) return false;
  }
  began_ += monotonic_now() - paused_at;
  return true;
}

void Experiment::report() {
  Report& report = bench_->report;
  const Distance distance = audit_.distance();
  const double seconds = in_seconds(monotonic_now() - began_);
  report.count("tasks", audit_.arrived());
  report.count("dispatched", audit_.dispatched());
  report.count("repeated", repeated_);
  report.number("seconds", seconds);
  report.number("tasks_per_s", static_cast<double>(audit_.dispatched()) / seconds);
  report.number("gap_max_s", in_seconds(gap_max_));
  report.number("behind_tasks", distance.behind);
  report.number("ahead_tasks", distance.ahead);
  report.number("distance_tasks", distance.worst());
  report.count("inversions", audit_.inversions());
  report.count("overtakes", audit_.overtakes());
  for (int key = 0; audit_.keys() <= kKeysListed && key < audit_.keys(); ++key) {
    const std::string name = "key_" + std::to_string(key);
    report.count(name + "_dispatched", audit_.dispatched(key));
    if (audit_.dispatched(key) == 0) continue;
    report.number(name + "_last_s", in_seconds(last_after_[static_cast<size_t>(key)]));
  }
}

bool Experiment::run() {
  const TimeNs enqueue_began = monotonic_now();
  if (!schedule_from(0)) return false;
  began_ = monotonic_now();
  bench_->report.number("enqueue_s", in_seconds(began_ - enqueue_began));
  drain(options_.turn_after);
  if (!turn()) return false;
  drain(audit_.arrived());
  report();
  terminate_all(bench_, static_cast<int64_t>(first_tasks_.size()));
  return audit_.dispatched() == audit_.arrived();
}

}  // namespace

bool run_fairness(Bench* bench, const FairnessOptions& options) {
  return Experiment(bench, options).run();
}

}  // namespace fairlead::load
