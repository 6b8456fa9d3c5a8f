#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "history/cancellation.h"
#include "history/redrive.h"
#include "shard/requests.h"

// What the Durable Workflow door asks of its runs beyond what every door does. Tokens carry the
// task's number, attempt and owner; run references carry the flavour.
namespace fairlead::shard {

class SessionDesk;

// What a run may have open at once, as its door's operator wants it. A request that would exceed
// one of these is refused as a whole: "structural_limit_exceeded", with the kind, and then how many
// there would be and the limit.
struct RunLimits {
  int64_t history_events = 50'000;
  int64_t pending_activities = 2'000;
  int64_t pending_children = 2'000;
  int64_t pending_timers = 2'000;
  int64_t pending_signals = 5'000;
  int64_t pending_updates = 500;
};

struct CompleteTask {
  TaskToken token;
  RunLimits limits;
  // Drafts, in order; see history/commands.h and history/durable.h. None: the workflow waits.
  std::vector<model::Event> commands;
};

struct FailTask {
  TaskToken token;
  bool parks = false;  // the code cannot replay the run: an operator has to look
  // Not 0: this worker is not one that can do it, and after this pause another may.
  DurationNs passes_on = 0;
  std::string reason;
};

struct RenewTask {
  TaskToken token;
  // Its worker is told that the run was asked to stop, and reads the history again.
  bool shows_request = false;
};

// A run's lease on a task, or what became of the task.
struct TaskLease {
  std::string run_id;
  TimeNs expires_ns = 0;
  int64_t history_end = 0;
  model::Cancellation cancellation;  // if the run was asked to stop
};

// A worker asks whether it still has an attempt at an activity.
struct ObserveActivity {
  TaskToken token;
  bool renews = false;  // its lease, and no other time limit
};

struct ActivityClaim {
  model::ActivityState activity;
  TimeNs expires_ns = 0;  // the lease
  TimeNs seen_ns = 0;     // when this was so
};

struct TaskCompleted {
  model::RunState run;    // without what is buffered in it
  int64_t next_task = 0;  // number of the task that the run has now; 0: none
};

// What a client tells a run. With the same request id and intent it gets the same receipt.
struct SignalRun {
  RunRef run;
  std::string request_id;
  std::string intent;  // what two requests of one id must have in common
  std::string name;
  std::string door;
  // Set: makes the door's bytes, once it is known which of the run's commands this is.
  std::function<std::string(int64_t sequence)> make_door;
  RunLimits limits;
};

struct UpdateRun {
  RunRef run;
  RunLimits limits;
  std::string request_id;
  std::string intent;
  std::string name;
  std::string door;
  UpdateStage wait_for = UpdateStage::kAccepted;
  TimeNs wait_until = 0;
  // Only to an update that this request id has brought before; else "request_not_seen".
  bool attaches = false;
};

struct StopRun {
  RunRef run;
  std::string request_id;
  model::EventKind kind = model::WORKFLOW_TERMINATED;  // or canceled
  std::string door;
};

// A client asks a run to stop; it may clean up for so long.
struct AskToStop {
  RunRef run;
  std::optional<std::string> reason;
  DurationNs cleanup_time = history::kCleanupTime;
};

struct AskedToStop {
  bool is_new = false;  // else it was asked before, and that holds
  model::RunState run;
};

// A worker tells the workflow at this call.
struct DeliverCancellation {
  TaskToken token;
  std::string request_id;
  model::CancellationDelivery at;
};

struct CancellationDelivered {
  std::string run_id;
  history::Delivery outcome = history::Delivery::kDelivered;
};

// An attempt at an activity that a request has taken from its worker, who may say that it stopped.
struct StopOfActivity {
  TaskToken token;
  std::string request_id;
  bool acknowledges = false;
};

struct ActivityStopped {
  model::StoppedActivity activity;
  model::CancellationContext context;
  bool is_new = false;  // it is acknowledged for the first time
};

// A failed run goes on in another one. `cut` is told its whole history; it has no state of its own.
struct RedriveRun {
  RunRef run;
  std::function<absl::StatusOr<history::Redrive>(std::string_view history)> cut;
};

struct Redriven {
  std::string run_id;
  bool is_new = false;  // else it was asked for before
};

struct Receipt {
  std::string run_id;
  std::string command_id;
  int64_t sequence = 0;   // among the run's commands
  bool retained = false;  // the request id had brought it before
};

struct ArchiveRun {
  RunRef run;
  std::string reason;
};

struct Archived {
  std::string run_id;
  bool was_needed = false;
  TimeNs at_ns = 0;  // the first time
};

struct Repaired {
  std::string run_id;
  bool was_needed = false;
};

// Errors beside those of Engine: kLeaseRefused with the reasons of history::check_lease, and with
// "run_not_active", "historical_run_command_rejected", "no_workflow_code" (of a run that is only
// there for an activity) and "request_id_conflict" (then the earlier command's id).
class DurableEngine {
 public:
  virtual ~DurableEngine() = default;

  virtual void complete_task(CompleteTask request, Reply<TaskCompleted> reply) = 0;
  virtual void fail_task(FailTask request, Reply<TaskCompleted> reply) = 0;
  virtual void renew_task(RenewTask request, Reply<TaskLease> reply) = 0;
  virtual void observe_activity(ObserveActivity request, Reply<ActivityClaim> reply) = 0;
  virtual void signal_run(SignalRun request, Reply<Receipt> reply) = 0;
  virtual void update_run(UpdateRun request, Reply<UpdateResult> reply) = 0;
  virtual void stop_run(StopRun request, Reply<Receipt> reply) = 0;
  virtual void repair_run(RunRef run, Reply<Repaired> reply) = 0;
  // Marks a closed run; "run_not_closed" of an open one.
  virtual void archive_run(ArchiveRun request, Reply<Archived> reply) = 0;
  virtual void ask_to_stop(AskToStop request, Reply<AskedToStop> reply) = 0;
  virtual void deliver_cancellation(DeliverCancellation request,
                                    Reply<CancellationDelivered> reply) = 0;
  // "run_not_failed" of any other; else what `cut` says.
  virtual void redrive_run(RedriveRun request, Reply<Redriven> reply) = 0;
  virtual void stop_of_activity(StopOfActivity request, Reply<ActivityStopped> reply) = 0;
  virtual SessionDesk& sessions() = 0;
};

}  // namespace fairlead::shard
