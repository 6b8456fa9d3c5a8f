#include "simulation/durable_crowd.h"

#include "absl/strings/str_cat.h"

namespace fairlead::sim {

using durable::integer_of;
using durable::member;
using durable::text_of;

namespace {

constexpr DurationNs kPollPatience = 40 * kSecond;
constexpr int64_t kHoldSeconds = 20;
constexpr int kNotFoundHttp = 404;
constexpr int kConflictHttp = 409;

// Types of workflows and activities, by name alone: their code is the same.
constexpr const char* kTypes[] = {"any", "red", "blue"};
const char* type_of(const std::string& workflow_id, int step) {
  return kTypes[static_cast<size_t>(workflow_id.back() - '0' + step) % std::size(kTypes)];
}

// The workflow's code: one step after the other, every third a timer. How many, is in its name.
int steps_of(const std::string& workflow_id) { return 1 + (workflow_id.back() - '0') % 4; }

bool begins(const std::string& type) {
  return type == "ActivityScheduled" || type == "TimerScheduled";
}

// Where the code stands that is asked to stop: the first call that had not ended by then. Told, it
// waits for a second and is done.
struct Stop {
  bool is_asked = false;
  bool is_told = false;
  bool has_cleaned = false;
  int ended_before = 0;
};

Stop stop_of(const json::array& history) {
  Stop stop;
  for (const auto& value : history) {
    const auto type = text_of(value.as_object(), "event_type");
    const bool ends = type == "TimerFired" || type == "ActivityCompleted" ||
                      type == "ActivityFailed" || type == "ActivityTimedOut";
    if (!stop.is_asked && ends) ++stop.ended_before;
    if (stop.is_told && begins(type)) stop.has_cleaned = true;
    stop.is_asked = stop.is_asked || type == "CooperativeCancellationRequested";
    stop.is_told = stop.is_told || type == "CooperativeCancellationDelivered";
  }
  return stop;
}

json::object cleanup_command() { return {{"type", "start_timer"}, {"delay_seconds", 1}}; }

json::object next_command(const std::string& workflow_id, const json::array& history) {
  const auto stop = stop_of(history);
  if (stop.is_told && !stop.has_cleaned) return cleanup_command();
  if (stop.is_told) return {{"type", "complete_workflow"}};
  int begun = 0;
  for (const auto& value : history) {
    begun += begins(text_of(value.as_object(), "event_type")) ? 1 : 0;
  }
  if (begun == steps_of(workflow_id)) return {{"type", "complete_workflow"}};
  if (begun % 3 == 2) return {{"type", "start_timer"}, {"delay_seconds", 1}};
  return {{"type", "schedule_activity"},
          {"activity_type", type_of(workflow_id, begun)},
          {"queue", kActivityQueue}};
}

}  // namespace

// ---- the worker
// ----------------------------------------------------------------------------------

DurableWorker::DurableWorker(const World* world, DurablePromises* promises, std::string name,
                             json::array types)
    : world_(*world),
      promises_(*promises),
      name_(std::move(name)),
      types_(std::move(types)),
      process_(std::make_shared<Process>(Process{name_})) {}

void DurableWorker::start() { register_now(); }

void DurableWorker::die() {
  world_.trace->note(absl::StrCat(name_, " dies"));
  world_.wire->hang_up(*process_);
}

// A worker belongs to one queue: this one is two.
void DurableWorker::register_now() {
  const bool can_stop = !world_.chance(0.25);
  for (const char* queue : {kFlowQueue, kActivityQueue}) {
    world_.insist_http(
        process_, "worker/register",
        {{"worker_id", absl::StrCat(name_, "-", queue)},
         {"task_queue", queue},
         {"runtime", "simulation"},
         {"supported_workflow_types", types_},
         {"supported_activity_types", types_},
         {"capabilities", can_stop ? json::array{"cooperative_cancellation"} : json::array{}}},
        1000, [this, queue](const Outcome& outcome, const json::object&) {
          if (!outcome.ok()) {
            return world_.auditor->fail("a worker is refused: " + outcome.message);
          }
          poll(queue == std::string_view(kFlowQueue));
        });
  }
}

void DurableWorker::poll(bool is_workflow, std::string again) {
  const char* queue = is_workflow ? kFlowQueue : kActivityQueue;
  std::string id = again.empty() ? absl::StrCat(name_, "-", ++polls_) : std::move(again);
  json::object body{{"worker_id", absl::StrCat(name_, "-", queue)},
                    {"task_queue", queue},
                    {"timeout_seconds", kHoldSeconds},
                    {"poll_request_id", id}};
  world_.ask_http(
      process_, "POST",
      absl::StrCat("worker/", is_workflow ? "workflow" : "activity", "-tasks/poll"), body,
      kPollPatience, [this, is_workflow, id](const Outcome& outcome, const json::object& answer) {
        if (outcome.code == 412) return world_.auditor->fail(name_ + " was forgotten");
        const auto* task = member(answer, "task");
        if (outcome.ok() && task != nullptr && task->is_object()) {
          const auto& given = task->as_object();
          const auto attempt =
              integer_of(given, is_workflow ? "workflow_task_attempt" : "attempt_number");
          promises_.given(text_of(given, "task_id"), attempt.value_or(0), id);
          check_type(given, is_workflow);
          is_workflow ? take_workflow(given) : take_activity(given);
          if (process_->is_alive) poll(is_workflow);
          return;
        }
        const bool repeats = outcome.is_unknown() && world_.chance(0.5);
        if (repeats) world_.probes->hit(Probe::kDurablePollRepeated);
        world_.later(process_, world_.scheduler->between(kMillisecond, 500 * kMillisecond),
                     [this, is_workflow, id = repeats ? id : ""] { poll(is_workflow, id); });
      });
}

void DurableWorker::check_type(const json::object& task, bool is_workflow) {
  const auto type = text_of(task, is_workflow ? "workflow_type" : "activity_type");
  if (types_.empty() || durable::has_text(types_, type)) return;
  world_.auditor->fail(absl::StrCat(name_, " is given a task of type ", type,
                                    " that it does not take: ", text_of(task, "task_id")));
}

void DurableWorker::take_workflow(const json::object& task) {
  if (world_.chance(world_.mood.dies_with_task)) return die();
  if (world_.chance(world_.mood.task_ignored)) return;
  const DurationNs slow = world_.chance(world_.mood.task_slow) ? 15 * kSecond : 20 * kMillisecond;
  world_.later(process_, world_.scheduler->between(0, slow), [this, task] {
    if (!world_.chance(world_.mood.task_failed)) return complete_workflow(task);
    tell(absl::StrCat("worker/workflow-tasks/", text_of(task, "task_id"), "/fail"),
         {{"lease_owner", task.at("lease_owner")},
          {"workflow_task_attempt", task.at("workflow_task_attempt")},
          {"failure", {{"message", "the worker stumbled"}}}},
         1, [] {});
  });
}

void DurableWorker::complete_workflow(const json::object& task) {
  const auto& history = task.at("history_events").as_array();
  const auto workflow_id = text_of(task, "workflow_id");
  const auto stop = stop_of(history);
  if (stop.is_asked && !stop.is_told && stop.ended_before < steps_of(workflow_id)) {
    return deliver_stop(task, stop.ended_before + 1,
                        stop.ended_before % 3 == 2 ? "timer" : "activity");
  }
  answer_workflow(task, next_command(workflow_id, history));
}

void DurableWorker::deliver_stop(const json::object& task, int64_t sequence, const char* kind) {
  tell(absl::StrCat("worker/workflow-tasks/", text_of(task, "task_id"), "/deliver-cancellation"),
       {{"lease_owner", task.at("lease_owner")},
        {"workflow_task_attempt", task.at("workflow_task_attempt")},
        {"request_id", task.at("cancellation_request").as_object().at("request_id")},
        {"sequence", sequence},
        {"call_kind", kind}},
       5, [this, task] {
         promises_.told_delivered(text_of(task, "workflow_id"));
         answer_workflow(task, cleanup_command());
       });
}

void DurableWorker::answer_workflow(const json::object& task, const json::object& command) {
  tell(absl::StrCat("worker/workflow-tasks/", text_of(task, "task_id"), "/complete"),
       {{"lease_owner", task.at("lease_owner")},
        {"workflow_task_attempt", task.at("workflow_task_attempt")},
        {"commands", json::array{command}}},
       5,
       [this, id = text_of(task, "task_id"),
        attempt = integer_of(task, "workflow_task_attempt").value_or(0)] {
         promises_.told_taken(id, attempt);
       });
}

void DurableWorker::take_activity(const json::object& task) {
  if (world_.chance(world_.mood.dies_with_task)) return die();
  if (world_.chance(world_.mood.activity_ignored)) return;
  const DurationNs work =
      world_.chance(world_.mood.activity_late) ? 40 * kSecond : 200 * kMillisecond;
  world_.later(process_, world_.scheduler->between(0, work), [this, task] {
    if (!world_.chance(world_.mood.activity_failed)) return complete_activity(task);
    tell(absl::StrCat("worker/activity-tasks/", text_of(task, "task_id"), "/fail"),
         {{"lease_owner", task.at("lease_owner")},
          {"activity_attempt_id", task.at("activity_attempt_id")},
          {"failure", {{"message", "the activity stumbled"}}}},
         5, [] {});
  });
}

void DurableWorker::complete_activity(const json::object& task) {
  tell(absl::StrCat("worker/activity-tasks/", text_of(task, "task_id"), "/complete"),
       {{"lease_owner", task.at("lease_owner")},
        {"activity_attempt_id", task.at("activity_attempt_id")}},
       5,
       [this, workflow_id = text_of(task, "workflow_id"), id = text_of(task, "task_id"),
        execution = text_of(task, "activity_execution_id"),
        attempt = integer_of(task, "attempt_number").value_or(0)] {
         promises_.told_taken(id, attempt);
         promises_.told_activity_completed(workflow_id, execution);
       });
}

void DurableWorker::tell(const std::string& path, json::object body, int attempts,
                         std::function<void()> then) {
  world_.insist_http(
      process_, path, std::move(body), attempts,
      [this, path, then = std::move(then)](const Outcome& outcome, const json::object&) {
        if (outcome.ok()) return then();
        if (outcome.is_unknown()) return;
        if (outcome.code == kConflictHttp || outcome.code == kNotFoundHttp) {
          return world_.probes->hit(Probe::kDurableLeaseLost);
        }
        world_.auditor->fail(absl::StrCat(path, " was refused: ", outcome.message));
      });
}

// ---- the crowd
// -----------------------------------------------------------------------------------

DurableCrowd::DurableCrowd(const World* world)
    : world_(*world),
      promises_(world->auditor, world->probes),
      client_(std::make_shared<Process>(Process{"durable-client"})),
      schedules_(world) {}

void DurableCrowd::start(int runs, DurationNs spread) {
  for (int i = 0; i < runs; ++i) {
    const auto id = absl::StrCat("durable-", i);
    world_.later(client_, world_.scheduler->between(0, spread), [this, id] { begin(id); });
  }
  schedules_.start(static_cast<int>(world_.random().below(4)), spread);
  for (int i = 0; i < 2; ++i) {
    world_.scheduler->after(world_.scheduler->between(0, 5 * kSecond), kNobody,
                            [this] { add_worker(some_types()); });
  }
  trouble();
}

void DurableCrowd::begin(const std::string& workflow_id) {
  world_.insist_http(client_, "workflows",
                     {{"workflow_id", workflow_id},
                      {"workflow_type", type_of(workflow_id, 0)},
                      {"task_queue", kFlowQueue},
                      {"duplicate_policy", "use-existing"}},
                     1000, [this, workflow_id](const Outcome& outcome, const json::object& answer) {
                       // It may have come and gone while its client tried again.
                       if (!outcome.ok() && outcome.code != kConflictHttp) {
                         return world_.auditor->fail("a start was refused: " + outcome.message);
                       }
                       promises_.told_started(workflow_id, text_of(answer, "run_id"));
                       if (world_.chance(0.25)) {
                         world_.later(client_, world_.scheduler->between(0, 20 * kSecond),
                                      [this, workflow_id] { ask_to_stop(workflow_id); });
                       }
                       for (int i = 0; i < 3; ++i) {
                         if (!world_.chance(0.3)) continue;
                         world_.later(client_, world_.scheduler->between(0, 5 * kSecond),
                                      [this, workflow_id, name = absl::StrCat("signal-", i)] {
                                        signal(workflow_id, name);
                                      });
                       }
                     });
}

void DurableCrowd::signal(const std::string& workflow_id, const std::string& name) {
  promises_.sends_signal(workflow_id, name);
  world_.insist_http(client_, absl::StrCat("workflows/", workflow_id, "/signal/", name),
                     {{"request_id", absl::StrCat(workflow_id, name)}}, 1000,
                     [this, workflow_id, name](const Outcome& outcome, const json::object&) {
                       if (outcome.ok()) return promises_.told_signaled(workflow_id, name);
                       if (outcome.code == kConflictHttp) return;  // the run is over
                       world_.auditor->fail("a signal was refused: " + outcome.message);
                     });
}

void DurableCrowd::ask_to_stop(const std::string& workflow_id) {
  world_.insist_http(
      client_, absl::StrCat("workflows/", workflow_id, "/request-cancellation"),
      {{"cleanup_timeout_seconds", world_.scheduler->between(2 * kSecond, 90 * kSecond) / kSecond}},
      1000, [this, workflow_id](const Outcome& outcome, const json::object& answer) {
        if (outcome.code == kConflictHttp) return;  // the run is over
        if (!outcome.ok()) {
          return world_.auditor->fail("a request to stop was refused: " + outcome.message);
        }
        promises_.told_asked_to_stop(
            workflow_id, text_of(answer.at("cancellation_request").as_object(), "request_id"));
      });
}

void DurableCrowd::add_worker(json::array types) {
  workers_.push_back(std::make_unique<DurableWorker>(
      &world_, &promises_, absl::StrCat("durable-worker-", workers_.size()), std::move(types)));
  workers_.back()->start();
}

// All, or some: what nobody of the moment takes waits for others.
json::array DurableCrowd::some_types() const {
  json::array types;
  if (world_.chance(0.3)) return types;
  for (const char* type : kTypes) {
    if (types.empty() || world_.chance(0.4)) types.push_back(type);
  }
  if (world_.chance(0.5)) types[0] = kTypes[world_.random().below(std::size(kTypes))];
  return types;
}

void DurableCrowd::trouble() {
  world_.scheduler->after(world_.scheduler->between(0, 10 * kSecond), kNobody, [this] {
    if (!is_stormy_) return;
    int alive = 0;
    for (auto& worker : workers_) {
      if (worker->is_alive() && world_.chance(0.2)) worker->die();
      alive += worker->is_alive() ? 1 : 0;
    }
    if (alive < 2) add_worker(some_types());
    trouble();
  });
}

void DurableCrowd::calm_down() {
  is_stormy_ = false;
  schedules_.calm_down();
  add_worker({});
}

void DurableCrowd::die() {
  for (auto& worker : workers_) {
    if (worker->is_alive()) worker->die();
  }
}

void DurableCrowd::settle() {
  for (const auto& [workflow_id, run_id] : promises_.runs()) read(workflow_id, run_id);
  schedules_.settle([this](const std::string& workflow_id, const std::string& run_id) {
    promises_.told_started(workflow_id, run_id);
    read(workflow_id, run_id);
  });
}

void DurableCrowd::read(const std::string& workflow_id, const std::string& run_id) {
  world_.ask_http(
      client_, "GET",
      absl::StrCat("workflows/", workflow_id, "/runs/", run_id, "/history?page_size=1000"), {},
      30 * kSecond, [this, workflow_id](const Outcome& outcome, const json::object& answer) {
        if (!outcome.ok()) {
          return world_.auditor->fail(absl::StrCat(workflow_id, " is lost: ", outcome.message));
        }
        promises_.settle(workflow_id, answer.at("events").as_array());
        world_.probes->hit(Probe::kDurableRun);
        ++settled_;
      });
}

}  // namespace fairlead::sim
