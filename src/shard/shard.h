#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/error.h"
#include "base/executor.h"
#include "base/random.h"
#include "history/codec.h"
#include "history/commands.h"
#include "history/durable.h"
#include "history/limits.h"
#include "history/reset.h"
#include "history/standalone.h"
#include "history/workflow_task.h"
#include "queue/exceptions.h"
#include "shard/alarms.h"
#include "shard/caller.h"
#include "shard/commit_log.h"
#include "shard/durable_engine.h"
#include "shard/namespaces.h"
#include "shard/queue_host.h"
#include "shard/requests.h"
#include "shard/runs.h"
#include "shard/schedule_host.h"
#include "shard/step.h"
#include "shard/wakeups.h"

namespace fairlead::shard {

class Shard;

// How shards find each other.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual Shard& shard(ShardId id) = 0;
  virtual ShardId shard_of_queue(NamespaceNum ns, model::TaskKind kind,
                                 const std::string& normal_name) const = 0;
  virtual ShardId shard_of_workflow(NamespaceNum ns, const std::string& workflow_id) const = 0;
  virtual ShardId shard_of_schedule(NamespaceNum ns, const std::string& schedule_id) const = 0;
};

// What a shard needs of the world.
struct World {
  store::Store* store = nullptr;
  CommitLog* commits = nullptr;
  Clock* clock = nullptr;
  const history::Codec* codec = nullptr;
  const history::Codec* durable_codec = nullptr;
  const history::Limits* limits = nullptr;
  const NamespaceRegistry* namespaces = nullptr;
  Peers* peers = nullptr;
  size_t cache_bytes = 16 << 20;
  queue::Settings queue_settings;
  std::vector<queue::Exception> queue_exceptions;
  AdmissionDesk* desk = nullptr;
  SessionDesk* sessions = nullptr;
  Caller* caller = nullptr;  // without it no run can have callbacks
  QueueObserver* observer = nullptr;
};

// Counters for operators; written by the shard's executor, read by anyone.
struct ShardStats {
  std::atomic<uint64_t> runs_started{0};
  std::atomic<uint64_t> runs_closed{0};
  std::atomic<uint64_t> runs_deleted{0};
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> workflow_tasks_started{0};
  std::atomic<uint64_t> activity_tasks_started{0};
  std::atomic<uint64_t> tasks_matched_at_once{0};
  std::atomic<uint64_t> stale_tasks{0};
  std::atomic<uint64_t> polls_parked{0};
};

// One slice of the runs and queues. All methods run on the shard's executor.
class Shard {
 public:
  Shard(ShardId id, Executor* executor, World world, Random random);

  ShardId id() const { return id_; }
  Executor& executor() { return *executor_; }
  QueueHost& queues() { return queues_; }
  ScheduleHost& schedules() { return schedules_; }
  const ShardStats& stats() const { return stats_; }

  // Begins to follow time. Call once.
  void open();
  // Answers everyone who waits; after that no job of this shard does anything new.
  void close();
  // What holds for queues from now on, as far as neither their namespace nor they say otherwise.
  void set_queue_settings(const queue::Settings& settings,
                          std::vector<queue::Exception> exceptions);

  void start_workflow(StartRequest request, Reply<StartResult> reply);
  void signal_workflow(SignalRequest request, Reply<Signaled> reply);
  void cancel_workflow(CancelRequest request, Reply<Done> reply);
  void terminate_workflow(TerminateRequest request, Reply<Done> reply);
  void reset_workflow(ResetRequest request, Reply<ResetResult> reply);
  void describe_workflow(RunRef run, Reply<RunView> reply);
  void change_run_options(ChangeRunOptions request, Reply<model::Priority> reply);
  void delete_workflow(RunRef run, Reply<Done> reply);
  // Deletes every run of a namespace that is deleted, a part at a time. `done` is called when there
  // is none.
  void purge_namespace(NamespaceNum ns, std::function<void()> done);
  void read_history(HistoryRequest request, Reply<HistoryPage> reply);
  void read_history_reverse(HistoryRequest request, Reply<HistoryPage> reply);

  void complete_workflow_task(CompleteWorkflowTask request,
                              Reply<CompleteWorkflowTaskResult> reply);
  void fail_workflow_task(FailWorkflowTask request, Reply<Done> reply);
  void return_workflow_task(TaskToken token);
  void reset_sticky(RunRef run, Reply<Done> reply);

  void complete_activity(CompleteActivity request, Reply<Done> reply);
  void fail_activity(FailActivity request, Reply<Done> reply);
  void cancel_activity(CancelActivity request, Reply<Done> reply);
  void heartbeat_activity(HeartbeatActivity request, Reply<HeartbeatResult> reply);
  void stop_standalone(StopStandalone request, Reply<Done> reply);
  void pause_activities(PauseActivities request, Reply<Done> reply);
  void unpause_activities(UnpauseActivities request, Reply<Done> reply);
  void reset_activities(ResetActivities request, Reply<Done> reply);
  void change_activities(ChangeActivities request, Reply<model::ActivityScheduled> reply);
  void return_activity_task(TaskToken token);

  void query_workflow(QueryRequest request, Reply<QueryResult> reply);
  void return_query(const std::string& query_id);
  void answer_query(const std::string& query_id, QueryAnswer answer, Reply<Done> reply);

  void update_workflow(UpdateRequest request, Reply<UpdateResult> reply);
  void update_with_start(UpdateWithStart request, Reply<UpdateWithStartResult> reply);

  // Durable Workflow's runs; see durable_engine.h.
  void complete_task(CompleteTask request, Reply<TaskCompleted> reply);
  void fail_task(FailTask request, Reply<TaskCompleted> reply);
  void renew_task(RenewTask request, Reply<TaskLease> reply);
  void observe_activity(ObserveActivity request, Reply<ActivityClaim> reply);
  void signal_run(SignalRun request, Reply<Receipt> reply);
  void update_run(UpdateRun request, Reply<UpdateResult> reply);
  void stop_run(StopRun request, Reply<Receipt> reply);
  void repair_run(RunRef run, Reply<Repaired> reply);
  void archive_run(ArchiveRun request, Reply<Archived> reply);
  void ask_to_stop(AskToStop request, Reply<AskedToStop> reply);
  void deliver_cancellation(DeliverCancellation request, Reply<CancellationDelivered> reply);
  void redrive_run(RedriveRun request, Reply<Redriven> reply);
  void stop_of_activity(StopOfActivity request, Reply<ActivityStopped> reply);

  void describe_queue(QueueRef queue, Reply<QueueView> reply);
  void change_rules(ChangeRules request, Reply<model::QueueRules> reply);
  // Of one kind of tasks: how many wait.
  void count_ready(QueueRef queue, Reply<int64_t> reply);
  void look_again(const QueueName& queue);
  void list_keys(KeysRequest request, Reply<KeysView> reply);
  void list_queues(ListQueuesRequest request, Reply<std::vector<QueueSummary>> reply);
  void purge_key(PurgeKey request, Reply<Purged> reply);
  void explain(ExplainRequest request, Reply<Explanation> reply);

  void poll(PollPtr poll);
  void cancel_poll(uint64_t number);
  void shut_down_worker(const ShutdownWorkerRequest& request);

  // From a queue's owner: a poll meets a task, or a query, of one of this shard's runs.
  void start_task(PollPtr poll, QueueAddress queue, ShardId owner, queue::Waiting waiting);
  void start_query(PollPtr poll, QueueAddress queue, DirectQuery query);
  void release_sticky_task(const queue::Task& task);

  // A letter from a run to one of this shard's runs, and what became of one of its own.
  struct Sender {
    ShardId shard;
    std::string run;  // key
    int64_t event_id = 0;
  };
  struct Outcome {
    absl::Status status;
    std::string run_id;  // of a child that was started
  };
  void receive(const Sender& sender, model::Letter letter);
  void settle(const Sender& sender, const model::Letter& letter, const Outcome& outcome);

 private:
  struct Query {
    std::string id;
    std::string run;
    std::string query;
    Reply<QueryResult> reply;
    Alarms::Handle deadline{};
    Alarms::Handle sticky_deadline{};
    Alarms::Handle last_call{};            // a moment before the deadline
    std::optional<QueueAddress> waits_in;  // as a direct query
  };

  // Runs. `use` is called with the run when no other step is under way on it.
  using Use = absl::AnyInvocable<void(RunEntry&)>;
  using Refuse = absl::AnyInvocable<void(const absl::Status&)>;
  void with_run(RunRef run, Use use, Refuse refuse);
  void with_entry(const std::string& key, Use use, absl::AnyInvocable<void()> absent);
  absl::StatusOr<std::string> resolve(const RunRef& run);
  absl::StatusOr<std::string> current_run(NamespaceNum ns, const std::string& workflow_id,
                                          model::Flavour flavour = model::TEMPORAL);
  // The row that names the current run of an id.
  std::string current_row(NamespaceNum ns, const std::string& workflow_id,
                          model::Flavour flavour) const;
  std::string current_row(const model::RunState& state) const;
  // Calls `then` with the run, or with the chain's current run when a first run id is given.
  template <typename T, typename Then>
  void with_chain_run(RunRef run, const std::string& first_run_id, Reply<T> reply, Then then);

  // Steps.
  using StepPtr = std::unique_ptr<Step>;
  StepPtr begin(RunEntry& entry);
  Step::Part& add_part(Step& step, RunEntry& entry);
  void finish(StepPtr step);
  void offer_tasks(StepPtr step);
  // How whoever is answered by the step would like to have a new task, if it would.
  static std::optional<QueueHost::Along> along(const Step& step, const Step::Part& part,
                                               const history::TaskOffer& offer);
  // Whom a task is for.
  static queue::Stream stream_of(const Step::Part& part, const history::TaskOffer& offer);
  void settle_offer(Step& step, Step::Part& part, const history::TaskOffer& offer,
                    const QueueAddress& queue, QueueHost::Offered offered);
  bool begin_taken_task(Step::Part& part, const std::string& identity, model::TaskKind kind,
                        int64_t scheduled_id, uint64_t stamp, bool from_sticky);
  void answer_taken_task(Step& step, Step::Part& part, PollPtr poll, model::TaskKind kind,
                         int64_t scheduled_id, bool from_sticky, int64_t backlog);
  void drop_tasks(Step& step, Step::Part& part);
  static void note_sign_of_life(Step& step, const model::ActivityState& activity);
  void lease(Step& step, Step::Part& part, const QueueAddress& queue, const std::string& key,
             int64_t scheduled_id);
  void write(StepPtr step);
  void commit(Step& step);
  void after_write(StepPtr step);
  void write_part(Step& step, Step::Part& part);
  void release_task(Step& step, Step::Part& part);
  void arm(Step& step, RunEntry& entry);
  void unlock(RunEntry& entry);
  void reply_after(Step& step, Job effect) { step.effects.push_back(std::move(effect)); }

  // Chains.
  void add_successor(Step& step, size_t part);

  // Resets.
  RunEntry* current_beside(RunEntry& base);
  std::string made_before(const std::string& request_id, RunEntry& current, RunEntry& base);
  void fork_run(RunEntry& base, RunEntry& current, const ResetRequest& request,
                Reply<ResetResult> reply);
  void reapply_run(Step& step, history::Transaction& tx, const std::string& key, int64_t from,
                   const history::Reapply& wanted);
  void reapply_chain(Step& step, history::Transaction& tx, const RunEntry& base,
                     const ResetRequest& request);
  void reapply_heirs(Step& step, history::Transaction& tx, std::string heir, int64_t event_id);
  void copy_request_ids(Step& step, history::Transaction& tx, const std::string& key);
  RunRef heir_of(RunRef run, int64_t event_id);

  // Letters.
  void post_letters(Step& step, Step::Part& part);
  void deliver(const Sender& sender, model::Letter letter);
  void deliver_later(const Sender& sender, model::Letter letter);
  void resume_letters(std::string from);
  void receive_start_child(const Sender& sender, const model::Letter& letter);
  void receive_child_closed(const Sender& sender, const model::Letter& letter);
  void receive_parent_closed(const Sender& sender, const model::Letter& letter);
  void receive_external(const Sender& sender, const model::Letter& letter);
  void receive_start(const Sender& sender, const model::Letter& letter);
  void receive_stop(const Sender& sender, const model::Letter& letter);
  void receive_scheduled_closed(const Sender& sender, const model::Letter& letter);
  // What a sender who has the right to wants of the run.
  void end_asked(RunEntry& entry, bool is_cancel, const std::string& reason,
                 const model::Origin& origin, Job then);
  void answer_letter(const Sender& sender, const model::Letter& letter, Outcome outcome);

  // Callbacks.
  void make_calls(Step& step, Step::Part& part);
  void end_call(const std::string& run, int64_t number, int32_t attempts,
                const history::CallbackOutcome& outcome);
  void attach_to(RunEntry& entry, StartRequest request, Reply<StartResult> reply);

  // Answers.
  WorkflowTask make_workflow_task(RunEntry& entry, bool from_sticky);
  ActivityTask make_activity_task(RunEntry& entry, int64_t scheduled_id);
  TaskToken make_token(const RunEntry& entry) const;

  // History.
  struct Slice {
    std::string history;
    int64_t next_event = 0;
  };
  Slice collect(const RunEntry& entry, int64_t from, int max_batches);
  // The stored events of a run, batch by batch, the first of which holds `from`.
  void each_batch(const std::string& key, int64_t from,
                  absl::FunctionRef<bool(int64_t first_id, std::string_view batch)> visit);
  std::string event_bytes(const RunEntry& entry, int64_t event_id);
  HistoryPage make_page(RunEntry& entry, const HistoryRequest& request);
  bool has_page(const RunEntry& entry, const HistoryRequest& request) const;
  void wake_waiters(Step& step, RunEntry& entry);

  // Queries.
  // Its deadline is near, and it may wait where nobody polls.
  void last_call(const std::string& id);
  void route_query(RunEntry& entry, const std::string& id, bool may_use_sticky);
  void finish_query(const std::string& id, absl::StatusOr<QueryResult> result);
  void finish_queries(std::vector<std::pair<std::string, QueryAnswer>> answers);
  void reroute_queries(RunEntry& entry);
  void drop_sticky(RunEntry& entry);

  // Updates.
  void try_update_with_start(UpdateWithStart request, Reply<UpdateWithStartResult> reply,
                             bool is_last_try);
  bool knows_update(const RunEntry& entry, const std::string& id) const;
  bool has_new_updates(const RunEntry& entry) const;
  absl::Status check_update(const RunEntry& entry, const UpdateRequest& request) const;
  void admit_update(RunEntry& entry, UpdateRequest request, Reply<UpdateResult> reply);
  std::optional<history::CommandRefusal> attach_updates(const RunEntry& entry,
                                                        std::vector<model::Event>* commands) const;
  void end_update_wait(RunEntry& entry, uint64_t number);
  void redeliver_updates(RunEntry& entry);
  UpdateResult look_at_update(const RunEntry& entry, const std::string& id);
  void wait_for_update(RunEntry& entry, UpdateRequest request, Reply<UpdateResult> reply);
  bool wants_update_task(const RunEntry& entry, history::Transaction& tx) const;
  void settle_updates(Step& step, RunEntry& entry,
                      const std::vector<history::UpdateChange>& changes, bool rejects_ignored);
  void forget_ignored_updates(const RunEntry& entry, history::Transaction& tx) const;
  void abort_updates(Step& step, RunEntry& entry);
  void refuse_updates(Step& step, RunEntry& entry);
  void tell_update_waiters(Step& step, RunEntry& entry, const std::string& id,
                           const absl::StatusOr<UpdateResult>& result);

  // Durable Workflow's runs.
  template <typename T, typename Then>
  void with_lease(const TaskToken& token, Reply<T> reply, Then then);
  absl::StatusOr<std::optional<model::CommandReceipt>> look_for_receipt(
      const RunEntry& entry, const RunRef& run, const std::string& request_id,
      const std::string& intent, bool needs_code);
  Receipt note_command(Step& step, RunEntry& entry, const std::string& request_id,
                       const std::string& intent);
  void complete_leased(RunEntry& entry, CompleteTask request, Reply<TaskCompleted> answer);

  // Workflow tasks.
  void take_along(Step::Part& part, const history::Taker& taker, const std::string& key);
  void refuse_completion(RunEntry& entry, const CommandError& error, const std::string& identity,
                         Reply<CompleteWorkflowTaskResult> reply);

  // Activities. `then` gets the pending activity that the token means.
  template <typename T, typename Then>
  void with_activity(const TaskToken& token, bool must_be_started, Reply<T> reply, Then then);

  // One step that `decide` may refuse, if it has changed nothing.
  template <typename T, typename Decide>
  void operate(const RunRef& run, Reply<T> reply, Decide decide);
  DurationNs draw(DurationNs jitter);

  void purge_task(const queue::Task& task, model::TaskKind kind, const PurgeKey& request,
                  absl::AnyInvocable<void(bool)> done);
  queue::Settings settings_of(const QueueName& queue) const;

  void create_run(StepPtr step, StartRequest request, Reply<StartResult> reply);
  static Reply<StartResult> give_back_unused(Shard& owner, QueueAddress queue, std::string key,
                                             Reply<StartResult> reply);
  void ask_for_first_task(StepPtr step, StartRequest request, Reply<StartResult> reply);
  void show_left_open(const std::string& key, RunView* view);
  void signal_existing(RunEntry& entry, StartRequest request, Reply<StartResult> reply);

  // Time.
  void tick();
  void schedule_tick();
  void wake(const Wakeups::Due& due);
  void erase_run(RunEntry& entry);
  struct Purge;
  void go_on(const std::shared_ptr<Purge>& purge);
  void delete_entry(RunEntry& entry, Job then);

  DurationNs retention(const RunEntry& entry) const;
  const history::Codec& codec_of(const RunEntry& entry) const {
    return *(entry.run.state.flavour() == model::DURABLE ? world_.durable_codec : world_.codec);
  }
  TimeNs now() const { return world_.clock->now(); }
  // Runs `job` where the shard lives: at once if that is here.
  void run_on(ShardId shard, absl::AnyInvocable<void(Shard&)> job);
  ShardId owner_of(const QueueAddress& queue) const;

  const ShardId id_;
  Executor* const executor_;
  World world_;
  Random random_;
  ShardStats stats_;
  Alarms alarms_;
  RunCache runs_;
  Wakeups wakeups_;
  QueueHost queues_;
  ScheduleHost schedules_;
  // Runs being started, by the row of theirs that is not written yet.
  absl::flat_hash_map<std::string, std::string> starting_;
  absl::btree_map<std::string, Query> queries_;
  uint64_t last_query_ = 0;
  uint64_t last_waiter_ = 0;
  TimeNs tick_at_ = kNever;
  TimeNs sweep_at_ = 0;
  bool is_closed_ = false;
};

template <typename T, typename Then>
void Shard::with_chain_run(RunRef run, const std::string& first_run_id, Reply<T> reply, Then then) {
  if (!first_run_id.empty()) run.run_id.clear();
  auto shared = std::make_shared<Reply<T>>(std::move(reply));
  with_run(
      run,
      [first_run_id, shared, then = std::move(then)](RunEntry& entry) mutable {
        if (!first_run_id.empty() && entry.run.state.first_run_id() != first_run_id) {
          (*shared)(errors::not_found("workflow execution not found"));
          return;
        }
        then(entry, std::move(*shared));
      },
      [shared](const absl::Status& status) { (*shared)(status); });
}

// Calls `then` with the run whose task the caller holds.
template <typename T, typename Then>
void Shard::with_lease(const TaskToken& token, Reply<T> reply, Then then) {
  with_chain_run(token.run(), "", std::move(reply),
                 [this, token, then = std::move(then)](RunEntry& entry, Reply<T> answer) mutable {
                   const auto status = history::check_lease(
                       entry.run, {token.scheduled_id, token.attempt, token.owner}, now());
                   if (!status.ok()) {
                     answer(status);
                     return;
                   }
                   then(entry, std::move(answer));
                 });
}

template <typename T, typename Then>
void Shard::with_activity(const TaskToken& token, bool must_be_started, Reply<T> reply, Then then) {
  with_chain_run(
      token.run(), "", std::move(reply),
      [token, must_be_started, then = std::move(then)](RunEntry& entry, Reply<T> answer) mutable {
        const bool is_durable = history::is_durable(entry.run.state);
        if (!entry.run.is_open() && is_durable) {
          answer(history::refuse_attempt(entry.run, token.scheduled_id, token.attempt));
          return;
        }
        if (!entry.run.is_open()) {
          const auto& state = entry.run.state;
          answer(must_be_started ? history::closed_run(state) : history::cannot_complete(state));
          return;
        }
        auto* activity = token.scheduled_id != 0 ? entry.run.find_activity(token.scheduled_id)
                                                 : entry.run.find_activity(token.activity_id);
        const bool is_started = activity != nullptr && activity->started_ns() != 0;
        // A start is also known by its time: after a reset the same numbers come again.
        const bool is_this_attempt =
            activity != nullptr &&
            (token.scheduled_id == 0 ||
             (activity->started_attempt() == token.attempt &&
              (activity->started_ns() == token.started_ns || token.started_ns == 0)));
        if (activity == nullptr || !is_this_attempt || (must_be_started && !is_started)) {
          answer(is_durable ? history::refuse_attempt(entry.run, token.scheduled_id, token.attempt)
                            : history::missing_attempt(entry.run.state));
          return;
        }
        if (!token.owner.empty() && activity->started_identity() != token.owner) {
          answer(errors::lease_refused("lease_owner_mismatch", activity->started_identity()));
          return;
        }
        then(entry, *activity, std::move(answer));
      });
}

}  // namespace fairlead::shard
