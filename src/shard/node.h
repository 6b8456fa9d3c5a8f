#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/random.h"
#include "history/codec.h"
#include "history/limits.h"
#include "shard/commit_log.h"
#include "shard/durable_engine.h"
#include "shard/engine.h"
#include "shard/schedule_engine.h"
#include "shard/shard.h"
#include "shard/stored_namespaces.h"
#include "store/store.h"

namespace fairlead::shard {

struct NodeOptions {
  uint16_t shards = 16;
  size_t cache_bytes = 64 << 20;
  // Requests under way; beyond it the answer is RESOURCE_EXHAUSTED. Parked polls do not count.
  size_t requests_max = 20'000;
  history::Limits limits;
  queue::Settings queue_settings;
  std::vector<queue::Exception> queue_exceptions;  // they speak before namespaces do
  std::shared_ptr<const admission::Policies> policies = std::make_shared<admission::Policies>();
};

// All shards of a store, behind the interface that doors use.
class Node final : public Engine, public DurableEngine, public ScheduleEngine, private Peers {
 public:
  struct Parts {
    store::Store* store = nullptr;
    CommitLog* commits = nullptr;
    Clock* clock = nullptr;
    const history::Codec* codec = nullptr;
    const history::Codec* durable_codec = nullptr;  // without it no such run can be started
    std::vector<Executor*> executors;               // shards are dealt out over them
    Caller* caller = nullptr;                       // without it no run can have callbacks
    QueueObserver* observer = nullptr;
  };
  Node(NodeOptions options, Parts parts, Random random);
  ~Node() override;

  // Reads the namespaces and begins to follow time.
  absl::Status open();
  // What holds for queues from now on, as far as neither their namespace nor they say otherwise.
  void set_queue_settings(const queue::Settings& settings,
                          const std::vector<queue::Exception>& exceptions);
  // Answers everyone who waits. `done` is called when every shard has.
  void close(std::function<void()> done);

  TimeNs now() override { return parts_.clock->now(); }
  NamespaceRegistry& namespaces() override { return namespaces_; }
  const std::vector<std::unique_ptr<Shard>>& shards() const { return shards_; }
  size_t requests() const { return requests_; }
  // Of all queues in use, asked of their shards. Blocks: for a thread that is none of the node's.
  std::vector<MeasuredQueue> queue_metrics(size_t queues_max, size_t keys_max) const;

  void start_workflow(StartRequest request, Reply<StartResult> reply) override;
  void signal_workflow(SignalRequest request, Reply<Signaled> reply) override;
  void cancel_workflow(CancelRequest request, Reply<Done> reply) override;
  void terminate_workflow(TerminateRequest request, Reply<Done> reply) override;
  void reset_workflow(ResetRequest request, Reply<ResetResult> reply) override;
  void describe_workflow(RunRef run, Reply<RunView> reply) override;
  void change_run_options(ChangeRunOptions request, Reply<model::Priority> reply) override;
  void delete_workflow(RunRef run, Reply<Done> reply) override;
  void delete_namespace(std::string name, Reply<NamespacePtr> reply) override;
  void read_history(HistoryRequest request, Reply<HistoryPage> reply) override;
  void read_history_reverse(HistoryRequest request, Reply<HistoryPage> reply) override;
  PollId poll_workflow_task(PollRequest request, Reply<WorkflowTask> reply) override;
  PollId poll_activity_task(PollRequest request, Reply<ActivityTask> reply) override;
  void cancel_poll(PollId poll) override;
  void return_workflow_task(TaskToken token) override;
  void return_activity_task(TaskToken token) override;
  void return_query(std::string query_id) override;
  void complete_workflow_task(CompleteWorkflowTask request,
                              Reply<CompleteWorkflowTaskResult> reply) override;
  void fail_workflow_task(FailWorkflowTask request, Reply<Done> reply) override;
  void reset_sticky(RunRef run, Reply<Done> reply) override;
  void complete_activity(CompleteActivity request, Reply<Done> reply) override;
  void fail_activity(FailActivity request, Reply<Done> reply) override;
  void cancel_activity(CancelActivity request, Reply<Done> reply) override;
  void heartbeat_activity(HeartbeatActivity request, Reply<HeartbeatResult> reply) override;
  void stop_standalone(StopStandalone request, Reply<Done> reply) override;
  void pause_activities(PauseActivities request, Reply<Done> reply) override;
  void unpause_activities(UnpauseActivities request, Reply<Done> reply) override;
  void reset_activities(ResetActivities request, Reply<Done> reply) override;
  void change_activities(ChangeActivities request, Reply<model::ActivityScheduled> reply) override;
  void query_workflow(QueryRequest request, Reply<QueryResult> reply) override;
  void answer_query(std::string query_id, QueryAnswer answer, Reply<Done> reply) override;
  void update_workflow(UpdateRequest request, Reply<UpdateResult> reply) override;
  void update_with_start(UpdateWithStart request, Reply<UpdateWithStartResult> reply) override;
  AdmissionDesk& admission() override { return *desk_; }
  SessionDesk& sessions() override { return *sessions_; }
  void describe_admission(AdmissionRequest request, Reply<admission::Payload> reply) override;
  void describe_queue(QueueRef queue, Reply<QueueView> reply) override;
  void change_rules(ChangeRules request, Reply<model::QueueRules> reply) override;
  void list_keys(KeysRequest request, Reply<KeysView> reply) override;
  void list_queues(ListQueuesRequest request, Reply<std::vector<QueueSummary>> reply) override;
  void purge_key(PurgeKey request, Reply<Purged> reply) override;
  void explain(ExplainRequest request, Reply<Explanation> reply) override;
  void shutdown_worker(ShutdownWorkerRequest request, Reply<Done> reply) override;

  void complete_task(CompleteTask request, Reply<TaskCompleted> reply) override;
  void fail_task(FailTask request, Reply<TaskCompleted> reply) override;
  void renew_task(RenewTask request, Reply<TaskLease> reply) override;
  void observe_activity(ObserveActivity request, Reply<ActivityClaim> reply) override;
  void signal_run(SignalRun request, Reply<Receipt> reply) override;
  void update_run(UpdateRun request, Reply<UpdateResult> reply) override;
  void stop_run(StopRun request, Reply<Receipt> reply) override;
  void repair_run(RunRef run, Reply<Repaired> reply) override;
  void archive_run(ArchiveRun request, Reply<Archived> reply) override;
  void ask_to_stop(AskToStop request, Reply<AskedToStop> reply) override;
  void deliver_cancellation(DeliverCancellation request,
                            Reply<CancellationDelivered> reply) override;
  void redrive_run(RedriveRun request, Reply<Redriven> reply) override;
  void stop_of_activity(StopOfActivity request, Reply<ActivityStopped> reply) override;

  void create_schedule(CreateSchedule request, Reply<Done> reply) override;
  void describe_schedule(ScheduleRef schedule, Reply<model::Schedule> reply) override;
  void update_schedule(UpdateSchedule request, Reply<Done> reply) override;
  void pause_schedule(PauseSchedule request, Reply<Done> reply) override;
  void delete_schedule(ScheduleRef schedule, Reply<Done> reply) override;
  void trigger_schedule(TriggerSchedule request, Reply<schedule::Fired> reply) override;
  void backfill_schedule(BackfillSchedule request,
                         Reply<std::vector<schedule::Fired>> reply) override;
  void read_schedule_history(ScheduleHistoryRequest request,
                             Reply<ScheduleHistoryPage> reply) override;

 private:
  // Counts what workers have and what was dispatched lately.
  absl::Status restore_admission();
  // Deletes all runs of a namespace that is deleted, shard by shard.
  void purge(NamespaceNum ns);
  Shard& shard(ShardId id) override { return *shards_[id.value()]; }
  ShardId shard_of_queue(NamespaceNum ns, model::TaskKind kind,
                         const std::string& normal_name) const override;
  ShardId shard_of_workflow(NamespaceNum ns, const std::string& workflow_id) const override;
  ShardId shard_of_schedule(NamespaceNum ns, const std::string& schedule_id) const override;
  Shard& shard_of_run(NamespaceNum ns, const std::string& workflow_id);
  // A query's id begins with the number of the shard that asks. Null: it is no query's id.
  Shard* shard_of_query(const std::string& query_id);

  // Sends a request to the shard of its run, unless too many are under way already.
  template <typename Request, typename Result>
  void send(Shard& shard, void (Shard::*method)(Request, Reply<Result>), Request request,
            Reply<Result> reply);
  // Sends a request to the schedules of the shard that has this one.
  template <typename Method, typename Request, typename Result>
  void send_schedule(const ScheduleRef& schedule, Method method, Request request,
                     Reply<Result> reply);
  // Nothing if too many requests are under way.
  template <typename Result>
  std::optional<Reply<Result>> counted(Reply<Result> reply);
  template <typename Result>
  PollId send_poll(PollRequest request, Reply<Result> reply);

  const NodeOptions options_;
  const Parts parts_;
  StoredNamespaces namespaces_;
  std::shared_ptr<AdmissionDesk> desk_;
  std::shared_ptr<SessionDesk> sessions_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::atomic<size_t> requests_{0};
  std::atomic<uint64_t> last_poll_{0};
};

}  // namespace fairlead::shard
