#include "simulation/simulation.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulation/budget_check.h"
#include "simulation/store_check.h"

namespace fairlead::sim {

using namespace temporal::api::workflowservice::v1;

namespace {

constexpr DurationNs kStorm = 60 * kSecond;
// Long enough for the longest chain of timeouts a program can make.
constexpr DurationNs kPatience = 4 * kHour;
constexpr DurationNs kRetention = 3 * kDay;
// The largest weight that a key gets.
constexpr double kWeightMax = 4;
// Steps from one look at the budgets to the next.
constexpr uint64_t kLookAtBudgets = 100;

}  // namespace

Simulation::Simulation(const SimulationOptions& options, Probes* probes)
    : options_(options),
      probes_(probes),
      scheduler_(options.seed),
      trace_(&scheduler_, options.prints_trace),
      wire_(&scheduler_, &trace_, probes),
      auditor_(&scheduler_, &trace_, probes),
      watch_(&scheduler_, probes, [this](const std::string& what) { auditor_.fail(what); }),
      fair_watch_([this](const std::string& what) { auditor_.fail(what); }),
      reader_(std::make_shared<Process>(Process{"reader"})) {
  world_.scheduler = &scheduler_;
  world_.wire = &wire_;
  world_.auditor = &auditor_;
  world_.probes = probes;
  world_.trace = &trace_;
  wire_.complain = [this](const std::string& what) { auditor_.fail(what); };
  auto& random = scheduler_.random();
  server_options_.shards = static_cast<uint16_t>(1 + random.below(6));
  server_options_.executors = static_cast<int>(1 + random.below(3));
  // Often so small that runs are read from the store again and again.
  server_options_.cache_bytes = random.chance(0.5) ? 4 << 10 : 4 << 20;
  server_options_.sabotage = options.sabotage;
  server_options_.policies = draw_policies(random);
  server_options_.watch = &watch_;
  server_options_.fair_watch = &fair_watch_;
  server_options_.receiver = [this](const auto& request) { return receive(request); };
  // On a machine that is much too busy, messages between threads meet a world that has moved on.
  if (random.chance(0.3)) {
    scheduler_.threads_held_up = 0.8;
    auditor_.message_time = 2 * kSecond;
  }
  world_.is_plain = random.chance(0.4);
  world_.weights_seed = random.next();
}

Simulation::~Simulation() {
  if (server_ != nullptr) wire_.disconnect();
}

SimulationResult Simulation::run() {
  const TimeNs begin = scheduler_.now();
  storm();
  if (!auditor_.has_failed()) calm();
  if (!auditor_.has_failed()) settle();
  if (!auditor_.has_failed()) silence();
  return {auditor_.failure(), trace_.hash(), scheduler_.steps(),
          auditor_.started(), crashes_,      scheduler_.now() - begin,
          fair_watch_.count()};
}

void Simulation::storm() {
  world_.mood = Mood::storm();
  wire_.weather = {0.02, 0.02, 0.02};
  open_server();
  client_ = std::make_unique<Client>(&world_, "client");
  auto& random = scheduler_.random();
  const bool is_crowded = random.chance(0.2);
  client_->start(static_cast<int>(10 + random.below(is_crowded ? 150 : 40)), kStorm * 3 / 4);
  lone_client_ = std::make_unique<LoneClient>(&world_, "lone-client");
  lone_client_->start(static_cast<int>(random.below(20)), kStorm * 3 / 4);
  if (world_.is_plain) {
    const bool is_early = random.chance(0.5);
    lone_client_->rush(static_cast<int>(20 + random.below(60)),
                       scheduler_.between(0, is_early ? kSecond : kStorm / 2));
  }
  durable_ = std::make_unique<DurableCrowd>(&world_);
  durable_->start(static_cast<int>(random.below(is_crowded ? 40 : 15)), kStorm * 3 / 4);
  // Sometimes the workers come late, and find that much has piled up.
  const auto hire = [this](auto add) {
    const bool is_late = scheduler_.random().chance(0.3);
    scheduler_.after(scheduler_.between(0, is_late ? 20 * kSecond : kSecond), kNobody, add);
  };
  for (int i = 0; i < 3; ++i) {
    hire([this] { add_workflow_worker(); });
    hire([this] { add_activity_worker(); });
  }
  trouble_workers();
  if (!world_.is_plain) set_rules();
  plan_crash();
  run_until(scheduler_.now() + kStorm);
}

// An operator limits the activities, weighs keys, and changes their mind about weights.
void Simulation::set_rules() {
  auto& random = scheduler_.random();
  UpdateTaskQueueConfigRequest request;
  request.set_namespace_(kNamespace);
  request.set_task_queue(kActivityQueue);
  request.set_task_queue_type(temporal::api::enums::v1::TASK_QUEUE_TYPE_ACTIVITY);
  const double limit = random.chance(0.3) ? static_cast<double>(2 + random.below(20)) : 0;
  // Programs weigh their keys up to 4.
  const double key_limit = random.chance(0.3) ? static_cast<double>(1 + random.below(8)) : 0;
  if (limit > 0) {
    request.mutable_update_queue_rate_limit()->mutable_rate_limit()->set_requests_per_second(
        static_cast<float>(limit));
  }
  if (key_limit > 0) {
    request.mutable_update_fairness_key_rate_limit_default()
        ->mutable_rate_limit()
        ->set_requests_per_second(static_cast<float>(key_limit));
  }
  world_.insist<UpdateTaskQueueConfigResponse>(
      reader_, "UpdateTaskQueueConfig", request, 1000,
      [this, limit, key_limit](const Outcome& outcome, const UpdateTaskQueueConfigResponse&) {
        if (!outcome.ok()) return auditor_.fail("rules are refused: " + outcome.message);
        if (limit > 0) auditor_.told_limit(limit);
        if (key_limit > 0) auditor_.told_key_limit(key_limit * kWeightMax);
      });
  reweigh_keys();
}

void Simulation::reweigh_keys() {
  if (!is_stormy_) return;
  auto& random = scheduler_.random();
  UpdateTaskQueueConfigRequest request;
  request.set_namespace_(kNamespace);
  const bool is_activity = random.chance(0.5);
  request.set_task_queue(is_activity ? kActivityQueue : kFlowQueue);
  request.set_task_queue_type(is_activity ? temporal::api::enums::v1::TASK_QUEUE_TYPE_ACTIVITY
                                          : temporal::api::enums::v1::TASK_QUEUE_TYPE_WORKFLOW);
  const std::string key(1, static_cast<char>('a' + random.below(4)));
  if (random.chance(0.3)) {
    request.add_unset_fairness_weight_overrides(key);
  } else {
    (*request.mutable_set_fairness_weight_overrides())[key] =
        static_cast<float>(1 + random.below(static_cast<uint64_t>(2 * kWeightMax))) / 2;
  }
  world_.ask<UpdateTaskQueueConfigResponse>(
      reader_, "UpdateTaskQueueConfig", request, 10 * kSecond,
      [this](const Outcome& outcome, const UpdateTaskQueueConfigResponse&) {
        if (!outcome.ok() && !outcome.is_unknown()) {
          auditor_.fail("weights are refused: " + outcome.message);
        }
      });
  scheduler_.after(scheduler_.between(100 * kMillisecond, 10 * kSecond), kNobody,
                   [this] { reweigh_keys(); });
}

void Simulation::calm() {
  is_stormy_ = false;
  crash_at_step_ = 0;
  world_.mood = {};
  wire_.weather = {};
  client_->calm_down();
  lone_client_->calm_down();
  durable_->calm_down();
  add_workflow_worker();
  add_activity_worker();
  const TimeNs end = scheduler_.now() + kPatience;
  while (scheduler_.now() < end && !auditor_.has_failed()) {
    run_until(scheduler_.now() + kMinute);
    std::vector<std::string> open;
    for (const auto& run_id : auditor_.runs()) {
      // A client waits for the end of what it started, and of nothing else.
      if (auditor_.was_asked_for(run_id) && !auditor_.is_closed(run_id)) {
        open.push_back(absl::StrCat(auditor_.workflow_of(run_id), " ", run_id));
      }
    }
    StoreCount count;
    check_store(store_, server_options_.shards, &count);
    if (open.empty() && count.open_runs == 0 && count.letters == 0 && count.callbacks == 0) return;
    if (scheduler_.now() >= end) {
      auditor_.fail(absl::StrCat(count.open_runs, " workflows never end, ", count.letters,
                                 " letters and ", count.callbacks,
                                 " callbacks never arrive: ", absl::StrJoin(open, ", ")));
    }
  }
}

// Reads every history once more and holds it against what was promised.
void Simulation::settle() {
  check_rows("after the last workflow ended", true);
  const auto runs = auditor_.runs();
  lone_client_->read_all();
  for (const auto& run_id : runs) read_to_end(run_id, "", std::make_shared<Events>());
  durable_->settle();
  run_until(scheduler_.now() + kMinute);
  if (settled_ != runs.size() || !durable_->is_settled()) {
    auditor_.fail("a history cannot be read at the end");
  }
  auditor_.settle_limits();
  auditor_.settle_lone();
  auditor_.settle_families();
  auditor_.settle_callbacks();
}

void Simulation::read_to_end(const std::string& run_id, std::string page_token,
                             std::shared_ptr<Events> events) {
  GetWorkflowExecutionHistoryRequest request;
  request.set_namespace_(kNamespace);
  request.mutable_execution()->set_workflow_id(auditor_.workflow_of(run_id));
  request.mutable_execution()->set_run_id(run_id);
  request.set_next_page_token(page_token);
  request.set_maximum_page_size(7);
  world_.ask<GetWorkflowExecutionHistoryResponse>(
      reader_, "GetWorkflowExecutionHistory", request, 30 * kSecond,
      [this, run_id, events](const Outcome& outcome,
                             const GetWorkflowExecutionHistoryResponse& page) {
        if (!outcome.ok()) {
          return auditor_.fail(absl::StrCat("run ", run_id, " is lost: ", outcome.message));
        }
        events->insert(events->end(), page.history().events().begin(),
                       page.history().events().end());
        if (!page.next_page_token().empty()) {
          return read_to_end(run_id, page.next_page_token(), events);
        }
        auditor_.settle(run_id, *events);
        ++settled_;
      });
}

void Simulation::silence() {
  for (auto& worker : workflow_workers_) {
    if (worker->is_alive()) worker->die();
  }
  for (auto& worker : activity_workers_) {
    if (worker->is_alive()) worker->die();
  }
  durable_->die();
  delete_by_hand();
  run_until(scheduler_.now() + kRetention + kHour);
  if (auditor_.has_failed()) return;
  StoreCount count;
  const auto error = check_store(store_, server_options_.shards, &count);
  if (!error.empty()) auditor_.fail("after the retention time: " + error);
  const int rows =
      count.runs + count.tasks + count.pending + count.wakeups + count.letters + count.other;
  if (rows != 0) {
    auditor_.fail(absl::StrCat(rows, " rows are left after the retention time, ", count.runs,
                               " of them runs"));
  } else {
    probes_->hit(Probe::kRunDeleted);
  }
}

// An operator deletes some of the closed runs and some that are open and wait for a worker. Of
// these nothing is left, and all others stay, also if the server crashes meanwhile.
void Simulation::delete_by_hand() {
  for (int i = 0; i < 5; ++i) {
    StartWorkflowExecutionRequest request;
    request.set_namespace_(kNamespace);
    request.set_workflow_id(absl::StrCat("doomed-", i));
    request.mutable_workflow_type()->set_name("program");
    request.mutable_task_queue()->set_name(kFlowQueue);
    request.set_request_id(request.workflow_id());
    world_.insist<StartWorkflowExecutionResponse>(
        reader_, "StartWorkflowExecution", request, 1000,
        [this, id = request.workflow_id()](const Outcome& outcome,
                                           const StartWorkflowExecutionResponse& response) {
          if (!outcome.ok()) return auditor_.fail("a start was refused: " + outcome.message);
          delete_run(id, response.run_id());
        });
  }
  StoreCount before;
  check_store(store_, server_options_.shards, &before);
  int doomed = 0;
  for (const auto& run_id : auditor_.runs()) {
    if (!scheduler_.random().chance(0.3)) continue;
    ++doomed;
    delete_run(auditor_.workflow_of(run_id), run_id);
  }
  if (options_.has_crashes && scheduler_.random().chance(0.5)) {
    run_until(scheduler_.now() + scheduler_.between(0, 100 * kMillisecond));
    if (!auditor_.has_failed()) crash();
  }
  run_until(scheduler_.now() + 2 * kMinute);
  if (auditor_.has_failed()) return;
  StoreCount count;
  const auto error = check_store(store_, server_options_.shards, &count);
  if (!error.empty()) auditor_.fail("after runs were deleted: " + error);
  if (count.runs != before.runs - doomed || count.tasks != 0) {
    auditor_.fail(absl::StrCat(before.runs, " runs without ", doomed, " that were deleted are ",
                               count.runs, ", and ", count.tasks, " tasks wait"));
  }
}

// Repeated until it is certain: then the run is not there any more.
void Simulation::delete_run(const std::string& workflow_id, const std::string& run_id) {
  DeleteWorkflowExecutionRequest request;
  request.set_namespace_(kNamespace);
  request.mutable_workflow_execution()->set_workflow_id(workflow_id);
  request.mutable_workflow_execution()->set_run_id(run_id);
  world_.insist<DeleteWorkflowExecutionResponse>(
      reader_, "DeleteWorkflowExecution", request, 1000,
      [this, run_id](const Outcome& outcome, const DeleteWorkflowExecutionResponse&) {
        if (outcome.ok()) return probes_->hit(Probe::kDeletedByHand);
        if (outcome.code != kNotFound) {
          auditor_.fail(absl::StrCat("run ", run_id, " cannot be deleted: ", outcome.message));
        }
      });
}

void Simulation::run_until(TimeNs end) {
  while (!auditor_.has_failed() && scheduler_.step(end)) {
    const bool is_time = crash_at_step_ != 0 && scheduler_.steps() >= crash_at_step_;
    if (is_time && (!crash_wants_risk_ || store_.unsynced_batches() > 0)) crash();
    if (is_stormy_ && scheduler_.steps() % kLookAtBudgets == 0) check_rows_of_budgets();
  }
}

// Someone outside hears how a workflow ended, or has other things to do.
history::CallbackOutcome Simulation::receive(const history::Outgoing& request) {
  using Kind = history::CallbackOutcome::Kind;
  if (world_.chance(world_.mood.callback_refused)) {
    probes_->hit(Probe::kCallbackRefused);
    auditor_.refuses_callback(request.url);
    return {Kind::kRefused, "do not care"};
  }
  const bool is_lost = world_.chance(world_.mood.callback_lost);
  // Perhaps it is only the answer that is lost.
  if (!is_lost || world_.chance(0.5)) auditor_.hears_callback(request);
  probes_->hit(is_lost ? Probe::kCallbackMadeAgain : Probe::kCallbackDelivered);
  return is_lost ? history::CallbackOutcome{Kind::kFailed, "not reached"}
                 : history::CallbackOutcome();
}

void Simulation::open_server() {
  server_ = std::make_unique<Server>(&scheduler_, ++last_server_, &store_, probes_, server_options_,
                                     Random(scheduler_.random().next()));
  wire_.connect(server_.get());
  trace_.note("the server is up");
}

// Counted in steps and not in time: a server is busy for moments and idle for seconds, and it is
// the busy moments that are worth interrupting. Most crashes also wait for a write to be lost.
void Simulation::plan_crash() {
  if (!options_.has_crashes) return;
  crash_at_step_ = scheduler_.steps() + 1 + scheduler_.random().below(2'000);
  crash_wants_risk_ = scheduler_.random().chance(0.6);
}

void Simulation::crash() {
  crash_at_step_ = 0;
  ++crashes_;
  auto& random = scheduler_.random();
  const uint64_t at_risk = store_.unsynced_batches();
  trace_.note(absl::StrCat("CRASH with ", at_risk, " batches unsynced"));
  if (at_risk > 0) probes_->hit(Probe::kUnsyncedWritesLost);
  wire_.disconnect();
  server_.reset();
  const uint64_t lost = store_.crash(random);
  check_rows("after a crash", false);
  check_rows_of_budgets();
  watch_.read_again(store_, server_options_.shards);
  fair_watch_.read_again(store_, server_options_.shards, lost);
  const DurationNs down =
      scheduler_.between(kMillisecond, random.chance(0.2) ? 8 * kSecond : 500 * kMillisecond);
  scheduler_.after(down, kNobody, [this] {
    open_server();
    if (is_stormy_) plan_crash();
  });
}

void Simulation::check_rows(const char* when, bool all_closed) {
  StoreCount count;
  const auto error = check_store(store_, server_options_.shards, &count);
  if (!error.empty()) auditor_.fail(absl::StrCat(when, ": ", error));
  if (all_closed && (count.tasks != 0 || count.pending != 0 || count.wakeups != count.runs)) {
    auditor_.fail(absl::StrCat(when, ": ", count.tasks, " tasks and ", count.pending,
                               " pending rows are left, and ", count.wakeups, " wake-ups of ",
                               count.runs, " runs"));
  }
}

void Simulation::check_rows_of_budgets() {
  BudgetCount count;
  const auto error =
      check_budgets(store_, server_options_.shards, *server_options_.policies, &count);
  if (!error.empty()) auditor_.fail("a budget is exceeded: " + error);
  probes_->hit(Probe::kBudgetFull, static_cast<uint64_t>(count.full));
}

void Simulation::add_workflow_worker() {
  WorkflowWorker::Options options;
  options.name = absl::StrCat("flow-worker-", workflow_workers_.size());
  options.is_sticky = scheduler_.random().chance(0.7);
  options.polls = static_cast<int>(1 + scheduler_.random().below(3));
  workflow_workers_.push_back(std::make_unique<WorkflowWorker>(&world_, options));
  workflow_workers_.back()->start();
}

void Simulation::add_activity_worker() {
  const auto name = absl::StrCat("activity-worker-", activity_workers_.size());
  const int polls = static_cast<int>(1 + scheduler_.random().below(3));
  activity_workers_.push_back(std::make_unique<ActivityWorker>(&world_, name, polls));
  activity_workers_.back()->start();
}

// Every now and then a worker goes, politely or not, and another comes.
void Simulation::trouble_workers() {
  scheduler_.after(scheduler_.between(0, 8 * kSecond), kNobody, [this] {
    if (!is_stormy_) return;
    auto& random = scheduler_.random();
    for (auto& worker : workflow_workers_) {
      if (!worker->is_alive() || !random.chance(0.2)) continue;
      random.chance(0.5) ? worker->die() : worker->shut_down();
    }
    for (auto& worker : activity_workers_) {
      if (worker->is_alive() && random.chance(0.2)) worker->die();
    }
    int alive = 0;
    for (const auto& worker : workflow_workers_) alive += worker->is_alive() ? 1 : 0;
    if (alive < 3) add_workflow_worker();
    alive = 0;
    for (const auto& worker : activity_workers_) alive += worker->is_alive() ? 1 : 0;
    if (alive < 3) add_activity_worker();
    trouble_workers();
  });
}

}  // namespace fairlead::sim
