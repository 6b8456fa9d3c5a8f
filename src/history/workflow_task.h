#pragma once

#include <string>

#include "absl/status/status.h"
#include "history/transaction.h"

namespace fairlead::history {

// The API's numbers for why a workflow task failed, as far as the engine itself gives them.
enum class FailedCause : int {
  kUnhandledCommand = 1,
  kBadScheduleActivity = 2,
  kBadRequestCancelActivity = 3,
  kBadStartTimer = 4,
  kBadCancelTimer = 5,
  kBadRequestCancelExternal = 10,
  kStartTimerDuplicateId = 12,
  kForceCloseCommand = 17,
  kFailoverCloseCommand = 18,
  kResetWorkflow = 20,
  kScheduleActivityDuplicateId = 22,
  kPendingChildrenLimit = 26,
  kPendingActivitiesLimit = 27,
  kPendingSignalsLimit = 28,
  kPendingCancelsLimit = 29,
  kBadUpdateMessage = 30,
  kGrpcMessageTooLarge = 36,
};

// What identifies a handed-out workflow task.
struct WorkflowTaskId {
  int64_t scheduled_id = 0;
  int64_t started_id = 0;
  int32_t attempt = 0;
  TimeNs started_ns = 0;
};

// Who takes a task.
struct Taker {
  std::string identity;
  std::string request_id;
  bool from_sticky_queue = false;
};

// Makes the run's next workflow task and offers it to a queue. After a failure it is a retry whose
// events are not written until it succeeds, so that a bug retried for a day leaves no trace.
void schedule_workflow_task(Transaction& tx);
// Makes a task for an update that waits. Its events are not written either until it leaves a trace:
// if the update is rejected there is none.
void schedule_speculative_task(Transaction& tx);
// Writes the events of a task that has only promised them so far.
void write_virtual_events(Transaction& tx);
// Forgets the speculative task that a worker holds, as if it had never been.
void discard_speculative_task(Transaction& tx);
// Whether the task may be forgotten. The worker then goes back to where it was before, and reads
// what was written since its last task once more; not every worker can (`rereads`).
bool may_discard_task(const Run& run, bool rereads);

// Gives the waiting task to a worker. False if it is no longer the task with this stamp.
bool start_workflow_task(Transaction& tx, uint64_t stamp, const Taker& taker);

// Whether this handed-out task is still the one that counts.
bool holds_workflow_task(const Run& run, const WorkflowTaskId& id);

// Writes the end of a task that succeeded; the run may then have another one. `build` is the code
// of the worker that completed it.
int64_t complete_workflow_task(Transaction& tx, const std::string& door,
                               const model::Build& build = {});

struct TaskFailure {
  int cause = 0;
  model::Failure failure;
  std::string identity;
  std::string door;
  // A reset: from which run to which.
  std::string base_run_id;
  std::string new_run_id;
};
// Whether the next task after one that failed so is like a first one.
bool begins_anew(FailedCause cause);
void fail_workflow_task(Transaction& tx, TaskFailure failure);
void time_out_workflow_task(Transaction& tx);
// The sticky worker did not come for the task: everyone may have it.
void time_out_sticky_task(Transaction& tx);
// The sticky queue is known to be dead: moves the waiting task to the normal queue, no event.
void release_sticky_task(Transaction& tx);
// Offers the waiting task anew: the run's priority has changed. A task made for an update keeps its
// place.
void offer_workflow_task_again(Transaction& tx);
// Too much was buffered behind a task: it is failed so that the buffer can be written.
void force_fail_workflow_task(Transaction& tx);
// A task that a worker holds ends because the run does.
void end_task_of_closing_run(Transaction& tx);

// The two events of a retry that are shown to workers and readers but not stored.
std::string virtual_events(const Run& run, const Codec& codec);

}  // namespace fairlead::history
