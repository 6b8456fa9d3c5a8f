#pragma once

#include <memory>
#include <string>

#include "shard/namespaces.h"
#include "shard/queue_requests.h"
#include "shard/requests.h"

namespace fairlead::shard {

class AdmissionDesk;
class NamespaceRegistry;

// The whole server but its doors. Every call may come from any thread; every reply is given exactly
// once, after the step behind it is durable.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual TimeNs now() = 0;
  virtual NamespaceRegistry& namespaces() = 0;

  virtual void start_workflow(StartRequest request, Reply<StartResult> reply) = 0;
  virtual void signal_workflow(SignalRequest request, Reply<Signaled> reply) = 0;
  virtual void cancel_workflow(CancelRequest request, Reply<Done> reply) = 0;
  virtual void terminate_workflow(TerminateRequest request, Reply<Done> reply) = 0;
  virtual void reset_workflow(ResetRequest request, Reply<ResetResult> reply) = 0;
  virtual void describe_workflow(RunRef run, Reply<RunView> reply) = 0;
  // Answered with the run's priority as it is now.
  virtual void change_run_options(ChangeRunOptions request, Reply<model::Priority> reply) = 0;
  // Ends the run if it is open. Its rows go soon after the answer.
  virtual void delete_workflow(RunRef run, Reply<Done> reply) = 0;
  // It is gone with the answer, and answered with what it is called now. Its runs follow.
  virtual void delete_namespace(std::string name, Reply<NamespacePtr> reply) = 0;

  virtual void read_history(HistoryRequest request, Reply<HistoryPage> reply) = 0;
  // Newest first: events below `from_event` (0: from the end).
  virtual void read_history_reverse(HistoryRequest request, Reply<HistoryPage> reply) = 0;

  virtual PollId poll_workflow_task(PollRequest request, Reply<WorkflowTask> reply) = 0;
  virtual PollId poll_activity_task(PollRequest request, Reply<ActivityTask> reply) = 0;
  // The caller of a poll is gone. If a task was handed to it meanwhile, that comes back through
  // `return_*`, not through this.
  virtual void cancel_poll(PollId poll) = 0;
  // The answer to a poll could not be delivered: give the task to somebody else.
  virtual void return_workflow_task(TaskToken token) = 0;
  virtual void return_activity_task(TaskToken token) = 0;
  virtual void return_query(std::string query_id) = 0;

  virtual void complete_workflow_task(CompleteWorkflowTask request,
                                      Reply<CompleteWorkflowTaskResult> reply) = 0;
  virtual void fail_workflow_task(FailWorkflowTask request, Reply<Done> reply) = 0;
  virtual void reset_sticky(RunRef run, Reply<Done> reply) = 0;

  virtual void complete_activity(CompleteActivity request, Reply<Done> reply) = 0;
  virtual void fail_activity(FailActivity request, Reply<Done> reply) = 0;
  virtual void cancel_activity(CancelActivity request, Reply<Done> reply) = 0;
  virtual void heartbeat_activity(HeartbeatActivity request, Reply<HeartbeatResult> reply) = 0;

  virtual void stop_standalone(StopStandalone request, Reply<Done> reply) = 0;

  virtual void pause_activities(PauseActivities request, Reply<Done> reply) = 0;
  virtual void unpause_activities(UnpauseActivities request, Reply<Done> reply) = 0;
  virtual void reset_activities(ResetActivities request, Reply<Done> reply) = 0;
  // Answered with the options of the last activity concerned, as they are now.
  virtual void change_activities(ChangeActivities request,
                                 Reply<model::ActivityScheduled> reply) = 0;

  virtual void query_workflow(QueryRequest request, Reply<QueryResult> reply) = 0;
  virtual void answer_query(std::string query_id, QueryAnswer answer, Reply<Done> reply) = 0;

  // Sends an update to a run and waits for a stage of it, or asks after one.
  virtual void update_workflow(UpdateRequest request, Reply<UpdateResult> reply) = 0;
  // An error means that there was no start; what became of the update is in the result.
  virtual void update_with_start(UpdateWithStart request, Reply<UpdateWithStartResult> reply) = 0;

  virtual AdmissionDesk& admission() = 0;
  virtual void describe_admission(AdmissionRequest request, Reply<admission::Payload> reply) = 0;
  virtual void describe_queue(QueueRef queue, Reply<QueueView> reply) = 0;
  virtual void change_rules(ChangeRules request, Reply<model::QueueRules> reply) = 0;
  virtual void list_keys(KeysRequest request, Reply<KeysView> reply) = 0;
  virtual void list_queues(ListQueuesRequest request, Reply<std::vector<QueueSummary>> reply) = 0;
  virtual void purge_key(PurgeKey request, Reply<Purged> reply) = 0;
  virtual void explain(ExplainRequest request, Reply<Explanation> reply) = 0;

  virtual void shutdown_worker(ShutdownWorkerRequest request, Reply<Done> reply) = 0;
};

}  // namespace fairlead::shard
