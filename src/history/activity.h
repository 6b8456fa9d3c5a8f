#pragma once

#include <string>

#include "absl/status/status.h"
#include "history/transaction.h"
#include "history/workflow_task.h"

namespace fairlead::history {

// Fills in the timeouts and the retry policy that a command left open, as the scheduled event shows
// them. False if it names no timeout that ends an attempt.
bool normalize_activity(model::ActivityScheduled* activity, const model::RunState& run);

// Priority of an activity: its own fields where set, else the workflow's.
model::Priority merge_priority(const model::Priority& base, const model::Priority& over);

// Writes the scheduled event (a normalised draft) and offers the first attempt, after a delay if
// there is one. The time of the activity as a whole begins with that attempt.
void schedule_activity(Transaction& tx, model::Event draft, DurationNs delay = 0);

// When the whole activity runs out of time; kNever if it does not.
TimeNs gives_up_at(const model::ActivityState& activity);

// Gives an attempt to a worker; null if it is no longer the one with this stamp, or paused. Writes
// no event: the start shows in the history together with the outcome.
const model::ActivityState* start_activity(Transaction& tx, int64_t scheduled_id, uint64_t stamp,
                                           const Taker& taker);
// Nobody has heard of the worker for as long as its lease goes: another one gets the next attempt.
void lose_activity(Transaction& tx, model::ActivityState& activity);
// The attempt never reached its worker: it waits again, as if it had not been taken.
void return_activity(Transaction& tx, model::ActivityState& activity);

// The ends of an attempt. `activity` must be pending.
void complete_activity(Transaction& tx, model::ActivityState& activity, const std::string& identity,
                       std::string door);
void fail_activity(Transaction& tx, model::ActivityState& activity, const std::string& identity,
                   model::Failure failure);
void cancel_activity(Transaction& tx, model::ActivityState& activity, const std::string& identity,
                     std::string door);
void time_out_activity(Transaction& tx, model::ActivityState& activity, model::TimeoutType type);

void heartbeat_activity(Transaction& tx, model::ActivityState& activity, std::string details);

// When the worker that has the attempt loses it without another sign of life; kNever: never.
TimeNs lease_end(const model::ActivityState& activity);
// Its worker keeps it, and says nothing of progress: no other time limit moves.
void renew_activity(Transaction& tx, model::ActivityState& activity);

// A command asks for the activity to be canceled: at once if no worker has it, else the worker
// hears of it with its next heartbeat.
void request_cancel_activity(Transaction& tx, model::ActivityState& activity,
                             const std::string& identity, int64_t workflow_task_completed_id);

// The back-off is over: offers the next attempt. A paused activity has none to offer.
void offer_activity(Transaction& tx, model::ActivityState& activity);
// The next attempt begins without what the last heartbeat said.
void forget_heartbeat(model::ActivityState& activity);

}  // namespace fairlead::history
