#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "history/options.h"
#include "history/transaction.h"

// Activities without a workflow. Each is a run of its own with exactly one activity and no workflow
// tasks: attempts, retries, timeouts and commands are those of any activity (activity.h,
// deadlines.h, operate.h), and its end is the end of the run.
//
// Nobody reads its history, which is two events long: how it was scheduled (with its input) and how
// it ended (with its outcome).
namespace fairlead::history {

inline bool is_standalone(const model::RunState& state) {
  return state.flavour() == model::STANDALONE;
}

// The event that scheduled the activity, by which it is found.
inline constexpr int64_t kStandaloneScheduledId = 1;

// What is said of a run that is not there, of one that has closed, and of an attempt that the
// caller does not have.
absl::Status missing_run(model::Flavour flavour, const std::string& id, const std::string& run_id);
absl::Status closed_run(const model::RunState& state);
absl::Status missing_attempt(const model::RunState& state);
// Who names an activity that has ended in order to complete it.
absl::Status cannot_complete(const model::RunState& state);

// Begins the run: `draft` is the normalised activity. After the delay its first attempt is offered.
void start_standalone(Transaction& tx, model::Event draft, DurationNs start_delay);

// Writes an event of such a run. One that ends the activity closes the run.
int64_t record_standalone(Transaction& tx, model::Event event);
// What is told of an activity that has ended is kept with its run, which has no other.
void keep_ended_activity(Transaction& tx, const model::ActivityState& activity);
void note_standalone_start(Transaction& tx);
void note_standalone_heartbeat(Transaction& tx);

// Whether there is something to do: not for a request that was carried out before.
absl::StatusOr<bool> may_cancel(const Run& run, const Stopper& by);
absl::StatusOr<bool> may_terminate(const Run& run, const Stopper& by);
// The worker hears of it with its next heartbeat; an attempt that nobody has is canceled at once.
void cancel_standalone(Transaction& tx, const Stopper& by);
void terminate_standalone(Transaction& tx, const Stopper& by);

}  // namespace fairlead::history
