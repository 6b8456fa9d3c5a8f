#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "base/strong.h"
#include "base/time.h"
#include "history/options.h"
#include "model/model.pb.h"
#include "queue/task_type.h"

// What doors may ask of the engine, and what they get back, in words that belong to no door. Doors
// check the form of a request (lengths, missing fields, sizes); the engine checks its meaning.
namespace fairlead::shard {

// Told once, from any thread, and only after everything the answer speaks of is durable.
template <typename T>
using Reply = absl::AnyInvocable<void(absl::StatusOr<T>)>;

struct Done {};
class Permit;

// A run, or with an empty `run_id` the current run of the workflow id.
struct RunRef {
  NamespaceNum ns;
  std::string workflow_id;
  std::string run_id;
  model::Flavour flavour = model::TEMPORAL;  // a door sees the runs of its own flavour
};

enum class ReusePolicy { kAllowDuplicate, kAllowDuplicateFailedOnly, kRejectDuplicate };
enum class ConflictPolicy { kFail, kUseExisting, kTerminateExisting };

// The numbers are those of the Temporal API.
enum class UpdateStage { kNone = 0, kAdmitted = 1, kAccepted = 2, kCompleted = 3 };

struct UpdateRequest {
  RunRef run;
  std::string first_run_id;
  std::string update_id;  // empty: the engine makes one
  std::string request;    // door's encoding; empty: only ask after an update that is there
  UpdateStage wait_for = UpdateStage::kCompleted;
  TimeNs wait_until = 0;
};

struct UpdateResult {
  std::string run_id;
  std::string update_id;
  UpdateStage stage = UpdateStage::kNone;
  std::string outcome;  // door's encoding; set when it is completed
  // Completed without an outcome of the worker's, because...
  enum class Lost { kNo, kRunClosed, kUnprocessed } lost = Lost::kNo;
  bool retained = false;  // Durable Workflow's: the request id had brought it before
};

// The update that a new run begins with.
struct FirstUpdate {
  UpdateRequest request;
  Reply<UpdateResult> reply;
};

struct StartRequest {
  NamespaceNum ns;
  std::string namespace_id;
  std::string workflow_id;
  std::string workflow_type;
  std::string task_queue;
  std::string request_id;  // empty: the engine makes one
  DurationNs execution_timeout = 0;
  DurationNs run_timeout = 0;
  DurationNs task_timeout = 0;
  DurationNs start_delay = 0;
  DurationNs retention = 0;  // the namespace's at this moment is looked up again at close
  ReusePolicy reuse = ReusePolicy::kAllowDuplicate;
  ConflictPolicy conflict = ConflictPolicy::kFail;
  model::Priority priority;
  std::optional<model::RetryPolicy> retry_policy;
  std::string cron_schedule;
  // A child: who started it, and the run id that it was promised.
  std::optional<model::Parent> parent;
  model::RunName root;
  std::string run_id;
  std::optional<model::ScheduleName> schedule;  // that starts it
  std::vector<std::pair<std::string, std::string>> memo;
  std::vector<std::pair<std::string, std::string>> search_attributes;
  std::string user_metadata;
  // A signal for the run: the first thing in a new one, or one more in a run that is kept.
  struct Signal {
    std::string door;
    std::string envelope;
  };
  std::optional<Signal> signal;
  std::shared_ptr<FirstUpdate> first_update;  // for a new run only
  std::vector<std::string> callbacks;         // who wants to hear of the end, in the door's words
  // What a start that uses the run that it finds leaves with it.
  struct Attach {
    bool request_id = false;
    bool callbacks = false;
    std::string envelope;  // of the event that says so
  };
  std::optional<Attach> attach;
  // Who takes the first workflow task along with the answer, if nothing that waits has a better
  // claim to be served; and whether the queue has agreed.
  std::optional<std::string> eager_identity;
  std::optional<bool> eager_granted;
  std::shared_ptr<Permit> eager_permit;  // if it was
  std::string eager_key;                 // under which its queue counts it then
  // Of an activity without a workflow: its scheduled event, normalised. The workflow id is its own.
  std::optional<model::Event> activity;
  std::string door;      // attributes of the started event that only the door understands
  std::string envelope;  // fields of the event around them
  model::Flavour flavour = model::TEMPORAL;
  std::string version;  // the only workers that its tasks may go to; empty: any
};

struct WorkflowTask;
struct StartResult {
  std::string run_id;
  std::string first_run_id;
  bool started = true;
  model::Status status = model::RUNNING;
  std::shared_ptr<WorkflowTask> eager_task;
  bool attached = false;  // the run was there already and knows of this request
};

struct UpdateWithStart {
  StartRequest start;
  UpdateRequest update;
};

struct UpdateWithStartResult {
  StartResult start;
  absl::StatusOr<UpdateResult> update;
};

struct SignalRequest {
  RunRef run;
  std::string request_id;
  std::string door;
  std::string envelope;
  std::optional<model::Origin> origin;  // set: it comes from another run
  bool ends_delay = false;              // of a start that waits for its time
};

struct Signaled {
  std::string run_id;
};

struct CancelRequest {
  RunRef run;
  std::string first_run_id;  // set: the current run must belong to this chain
  std::string door;
  std::string envelope;
  std::optional<model::Origin> origin;  // set: it comes from another run
};

struct TerminateRequest {
  RunRef run;
  std::string first_run_id;
  std::string door;
  std::string envelope;
};

// Begins a run again from one of its workflow tasks, as a new run. The one that is current ends.
struct ChangeRunOptions {
  RunRef run;
  history::PriorityChange priority;
  std::string door;
  std::string envelope;
};

struct ResetRequest {
  RunRef run;
  std::string namespace_name;
  std::string request_id;
  int64_t event_id = 0;  // the first event that the new run does not share
  std::string reason;
  // What came in later and is not given to the new run once more.
  bool skips_signals = false;
  bool skips_updates = false;
  // What the new run begins with beyond that, in this order; their `run` is it.
  std::vector<std::variant<ChangeRunOptions, SignalRequest>> operations;
};

struct ResetResult {
  std::string run_id;
};

// Everything that finds a handed-out task again. Tokens that clients hold are this, encoded by the
// door; it must be enough after any number of restarts.
struct TaskToken {
  NamespaceNum ns;
  std::string workflow_id;
  std::string run_id;
  int64_t scheduled_id = 0;
  int64_t started_id = 0;  // workflow tasks only
  int32_t attempt = 0;
  TimeNs started_ns = 0;
  std::string activity_id;  // activities only; with scheduled_id 0 the activity is found by this id
  model::Flavour flavour = model::TEMPORAL;
  std::string owner;  // of the lease; Durable Workflow's tasks only

  RunRef run() const { return {ns, workflow_id, run_id, flavour}; }
};

struct PollRequest {
  NamespaceNum ns;
  model::TaskKind kind = model::WORKFLOW_TASK;
  model::QueueTarget queue;  // for a sticky queue, normal_name is set
  std::string identity;
  std::string worker_instance_key;
  TimeNs hold_until = 0;                       // then an empty answer
  std::optional<double> max_tasks_per_second;  // of activities: the limit that the worker asks for
  std::string about;    // the worker, in its door's words: kept for whoever describes the queue
  std::string version;  // of the worker; empty: it has none
  bool takes_unversioned = false;  // what is for workers without a version is for it, too
  bool takes_sessions = false;     // so is what sessions hold that it has, or may have
  queue::TypeListPtr types;        // that its worker takes; null: every one
};

// Names a parked poll so that it can be withdrawn.
struct PollId {
  ShardId shard;
  uint64_t number = 0;
};

struct AttachedQuery {
  std::string id;
  std::string query;  // door's encoding
};

// An update that travels with a workflow task.
struct AttachedUpdate {
  std::string id;
  std::string request;  // door's encoding
};

// Why a poll ended without a task.
enum class PollEnd {
  kNothing,      // there was none, or none that might go
  kThrottled,    // a budget of the queue is used up
  kUnavailable,  // nobody knows how much of it is used
};

// An empty workflow_id means that the poll ended without a task.
struct WorkflowTask {
  TaskToken token;
  PollEnd end = PollEnd::kNothing;
  std::string workflow_type;
  int64_t previous_started_id = 0;
  std::string history;             // events in the door's bytes
  int64_t next_history_event = 0;  // not 0: the history goes on there, to be read by a history call
  std::string task_queue;          // the normal queue
  std::string version;             // the only workers that the run's tasks go to; empty: any
  TimeNs scheduled_ns = 0;
  TimeNs started_ns = 0;
  int64_t backlog_hint = 0;
  int poller_delta = 0;  // advice: more polls, fewer, or nothing said
  std::vector<AttachedQuery> queries;
  std::vector<AttachedUpdate> updates;
  // A direct query: no workflow task, the token is answered by `answer_query`.
  std::optional<AttachedQuery> query;
  // Of Durable Workflow's tasks: what it is for, when its lease ends, where its history does.
  model::QueuedMessage message;
  TimeNs expires_ns = 0;
  int64_t history_end = 0;
  model::Cancellation cancellation;  // if the run was asked to stop
};

struct ActivityTask {
  TaskToken token;
  PollEnd end = PollEnd::kNothing;
  std::string namespace_id;
  std::string workflow_type;
  model::ActivityState activity;
  model::Priority priority;     // merged with the workflow's
  std::string scheduled_event;  // the event in the door's bytes: holds input and header
  int poller_delta = 0;         // advice: more polls, fewer, or nothing said
};

struct QueryAnswer {
  bool answered = false;
  std::string result;  // door's encoding
  std::string error_message;
  std::string failure;  // door's encoding
};

// A command or a whole completion that the door found wrong. `cause` is the API's failed cause.
struct CommandError {
  int cause = 0;
  std::string message;      // "<CauseName>: <detail>"
  bool terminates = false;  // a size limit was broken: the run ends
};

struct CompleteWorkflowTask {
  TaskToken token;
  std::vector<model::Event> commands;  // drafts, in order; see history/commands.h
  std::optional<CommandError> bad_command;
  std::optional<model::StickyState> sticky;
  std::string identity;
  std::string door;  // of the completed event
  model::Build build;
  bool force_new_task = false;
  bool return_new_task = false;
  bool rereads = false;  // the worker can go back behind events that it has seen
  std::vector<std::pair<std::string, QueryAnswer>> query_answers;
};

struct CompleteWorkflowTaskResult {
  std::optional<WorkflowTask> new_task;
  std::vector<ActivityTask> activities;  // new ones that the worker wanted at once
  int64_t reset_to_event = 0;  // not 0: the task never was; the worker goes back to this event
};

struct FailWorkflowTask {
  TaskToken token;
  int cause = 0;
  model::Failure failure;
  std::string identity;
  std::string door;
};

struct CompleteActivity {
  TaskToken token;
  std::string identity;
  std::string door;  // the result
};

struct FailActivity {
  TaskToken token;
  std::string identity;
  model::Failure failure;
  std::optional<std::string> heartbeat_details;
};

struct CancelActivity {
  TaskToken token;
  std::string identity;
  std::string door;  // the details
};

struct HeartbeatActivity {
  TaskToken token;
  std::string details;
  bool oversize = false;  // the details broke the size limit: the activity fails
};

struct HeartbeatResult {
  bool cancel_requested = false;
  bool is_paused = false;
  bool is_reset = false;
  TimeNs beat_ns = 0;       // when it was noted
  TimeNs lease_end_ns = 0;  // until when the worker has the attempt without another
};

// What operators do to pending activities. The jitter is the longest time that each of them waits,
// by chance, before it is tried again.
struct PauseActivities {
  RunRef run;
  history::ActivitySelector which;
  model::ActivityPause pause;
};

struct UnpauseActivities {
  RunRef run;
  history::ActivitySelector which;
  history::Unpause how;
  DurationNs jitter = 0;
};

struct ResetActivities {
  RunRef run;
  history::ActivitySelector which;
  history::Reset how;
  DurationNs jitter = 0;
};

// Without a change: back to what the workflow asked for.
struct ChangeActivities {
  RunRef run;
  history::ActivitySelector which;
  std::optional<history::ActivityChange> change;
};

// Cancels or terminates an activity without a workflow.
struct StopStandalone {
  RunRef run;
  history::Stopper by;
  bool terminates = false;
};

enum class QueryReject { kNone, kNotOpen, kNotCompletedCleanly };

struct QueryRequest {
  RunRef run;
  std::string query;
  QueryReject reject = QueryReject::kNone;
  TimeNs deadline = kNever;
};

struct QueryResult {
  std::string result;
  model::Status rejected = model::STATUS_UNSPECIFIED;  // set: the reject condition held
};

struct HistoryRequest {
  RunRef run;
  int64_t from_event = 1;
  int max_batches = 256;
  bool wait_new_event = false;
  bool close_event_only = false;
  TimeNs wait_until = 0;
  // Set: no events are wanted, only a sign that the run has made more steps than these.
  std::optional<int64_t> transitions_seen;
};

struct HistoryPage {
  std::string run_id;
  std::string history;
  int64_t next_event = 0;  // where the next page begins
  bool at_end = true;      // nothing beyond `history` exists now
  bool is_open = false;
};

struct RunView {
  model::RunState run;
  std::vector<model::ActivityState> activities;
  std::vector<model::ChildState> children;
  std::vector<model::CallbackState> callbacks;
  std::vector<model::AttachedRequest> requests;
  // Of an activity without a workflow: how it was scheduled, and how it ended, in the door's bytes.
  std::string scheduled_event;
  std::string ended_event;
};

struct ShutdownWorkerRequest {
  NamespaceNum ns;
  std::string sticky_queue;
  std::string task_queue;
  std::string worker_instance_key;
  std::string identity;
};

}  // namespace fairlead::shard
