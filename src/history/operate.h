#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "history/options.h"
#include "history/transaction.h"

// What operators do to a run while it goes on. Of the commands to activities nothing is written to
// the history: they change when and how attempts are made, not what the workflow sees of them.
//
// A command that is refused has changed nothing, also if it concerns several activities.
namespace fairlead::history {

// How long an activity is to wait before it is tried again; asked for each one.
using Delay = absl::FunctionRef<DurationNs()>;

// No attempt is handed out from now on. One that a worker has goes on; its worker is told with the
// next heartbeat.
absl::Status pause_activities(Transaction& tx, const ActivitySelector& which,
                              const model::ActivityPause& pause);
// Those that are not paused are left alone.
absl::Status unpause_activities(Transaction& tx, const ActivitySelector& which, const Unpause& how,
                                Delay delay);
// Back to the first attempt. One that a worker has goes on as the first; its worker is told.
absl::Status reset_activities(Transaction& tx, const ActivitySelector& which, const Reset& how,
                              Delay delay);

// Both give the options of the last activity concerned, as they are now. A task whose queue or
// priority changes goes to the end of its new line.
absl::StatusOr<model::ActivityScheduled> change_activities(Transaction& tx,
                                                           const ActivitySelector& which,
                                                           const ActivityChange& change);
absl::StatusOr<model::ActivityScheduled> restore_activities(Transaction& tx,
                                                            const ActivitySelector& which);

model::Priority changed(model::Priority priority, const PriorityChange& change);
// Gives an open run another priority, which its tasks have from now on: its workflow task that
// waits, and every attempt at an activity that is yet to come.
void change_priority(Transaction& tx, const model::Priority& priority, std::string door,
                     std::string envelope);

}  // namespace fairlead::history
