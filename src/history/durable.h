#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "history/transaction.h"
#include "history/workflow_task.h"

// The rules of Durable Workflow runs, where they differ from Temporal's:
//
//   - Workflow tasks leave no events. A task has a number that it keeps over all its attempts, and
//     whoever has it holds a lease that can be renewed.
//   - What happens is written at once, also while a worker has the task. It was shown the events
//     before `shown_until` and no others. Two things wait for the task's end, because the worker
//     decides about the wait that the workflow is in and replays must decide alike: signals, which
//     it has not seen, and the timeout of the wait itself.
//   - A worker replays everything and answers with new commands only, so it may be woken only when
//     it has something to go on with: not while a part of a parallel group is still open, and by a
//     signal only when the workflow waits for a condition.
//   - Commands carry no ids. Each takes the run's next step, a number without gaps that workers
//     predict.
namespace fairlead::history {

inline bool is_durable(const model::RunState& state) { return state.flavour() == model::DURABLE; }

// Whether the workflow can go on because of this event, which is about to be written. What it ends
// is no longer pending.
bool wakes_durable(const Run& run, const model::Event& event);

// Writes the event, with what follows from it for the workflow.
int64_t record_durable(Transaction& tx, model::Event event);

// The step that a command takes; null if it takes none.
model::Step* mutable_step(model::Event* command);

// Makes the next task, if there is a reason for one.
void schedule_durable_task(Transaction& tx);
bool start_durable_task(Transaction& tx, uint64_t stamp, const Taker& taker);
// Gives the task to the next one who asks, as another attempt, not before `available`. 0: now.
void retry_durable_task(Transaction& tx, TimeNs available);
// The worker could not do it: somebody tries again, after a pause that grows with the attempts.
void fail_durable_task(Transaction& tx);
// The time of a task has come: its lease is over, or the pause before its next attempt.
void pass_durable_task_time(Transaction& tx);
TimeNs durable_task_deadline(const model::WorkflowTaskState& task);

// What a worker says that it holds.
struct LeaseClaim {
  int64_t number = 0;
  int32_t attempt = 0;
  std::string owner;
};
// Whether it does. The error says in which way it does not.
absl::Status check_lease(const Run& run, const LeaseClaim& claim, TimeNs now);

// Why an attempt at an activity, which was asked for by these numbers, is not the caller's.
absl::Status refuse_attempt(const Run& run, int64_t scheduled_id, int32_t attempt);

void renew_durable_task(Transaction& tx);
// The task goes to another worker, after this pause: the one that has it cannot do it.
void pass_on_durable_task(Transaction& tx, DurationNs pause);
// Ends a timer of the workflow or of one of its waits.
void cancel_durable_timer(Transaction& tx, int64_t started_id);
// Whether the timer may fire now, or has to wait for a worker's decision.
bool is_held_back(const Run& run, const model::TimerState& timer);
// Writes the signals that came while a worker had the task. False if there were none.
bool flush_signals(Transaction& tx);
// The worker cannot replay the run: no more tasks until `repair_run`.
void park_durable_task(Transaction& tx, const std::string& reason);
// Makes a task for a run that has none. False if it needs none.
bool repair_run(Transaction& tx);

// Gives the commands their steps, as they would be taken. A refusal tells which expectation of the
// worker is wrong.
absl::Status number_steps(const model::RunState& state, std::vector<model::Event>* commands);
// Ends the task and carries out its commands, which are numbered and were checked. With none, the
// workflow waits for what it has started already.
void complete_durable_task(Transaction& tx, std::vector<model::Event> commands);

// Takes a signal: it is written at once, and wakes the workflow if that waits for a condition.
void signal_durable(Transaction& tx, const std::string& id, const std::string& name,
                    std::string door);
// Takes an update: it is accepted at once, and a task will carry it to the workflow.
void accept_update(Transaction& tx, const std::string& id, const std::string& name,
                   std::string door);

// Carries out the commands that only these runs have.
void open_wait(Transaction& tx, model::Event draft);
void end_update(Transaction& tx, model::Event draft);
// The wait's timer has fired.
void time_out_wait(Transaction& tx, const std::string& wait_id);

}  // namespace fairlead::history
