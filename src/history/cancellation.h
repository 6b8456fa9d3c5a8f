#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "history/transaction.h"

// A run of Durable Workflow that is asked to stop and may clean up first.
//
//   asked       CANCELLATION_REQUESTED, the workflow is woken; from now on there is a deadline
//   delivered   a worker names the call that its code stands at: what that waits for is stopped,
//               CANCELLATION_DELIVERED is written, and replays throw at that call
//   cleaned up  whatever the code ends with, the run closes as canceled
//   too late    at the deadline the run closes as canceled, whoever has its task
//
// An operation whose policy says so has to have stopped before the workflow is told: then the
// worker gives its task back, and the workflow is woken when it has.
namespace fairlead::history {

// How long a run has whose parent asks it to stop without having been asked itself.
inline constexpr DurationNs kCleanupTime = 600 * kSecond;

bool is_asked_to_stop(const model::RunState& state);
const std::string& cancellation_request_id(const model::Cancellation& cancellation);

// Asks the run; it has not been asked before. The last link of the context is the run itself.
void ask_to_stop(Transaction& tx, model::CancellationContext context);
// The same for a run whose chain was asked: its state says so already.
void write_inherited_request(Transaction& tx);
// What the run that continues `last` inherits: a request that its code has not been told of.
void inherit_request(const model::RunState& last, model::RunState* next);
// What a child is asked with, but for its own link.
model::CancellationContext context_for_child(const model::RunState& parent, TimeNs now);

// Whether the workflow can be told at this call. The error is one of the API's words.
absl::Status check_delivery(const Run& run, const std::string& request_id,
                            const model::CancellationDelivery& at, TimeNs now);
enum class Delivery { kDelivered, kWaitsForActivity, kWaitsForChild };
// Tells it, or gives the task back because something has to stop first. Checked before.
Delivery deliver_cancellation(Transaction& tx, const model::CancellationDelivery& at);
// The worker is told of the request on its way: from now on it may see what has come since.
void show_request(Transaction& tx);

// Whether the end of an operation of this step wakes a workflow that was asked to stop; nothing if
// that is for the usual rules to say.
std::optional<bool> wakes_stopping(const Run& run, const model::Step& step);
// Whether the commands are those of a group that is under way already. A worker that is woken while
// its code protects itself from the request cannot help sending them again.
bool repeats_open_group(const model::RunState& state, std::vector<model::Event>& commands);
// What a completed task leaves to do: the worker that sent these commands may have stopped before a
// call at which it will tell its code.
bool goes_on_to_deliver(const model::RunState& state, const std::vector<model::Event>& commands);
// How the run closes, if its code was told to stop: `closing` is what the code asks for.
void close_as_canceled(const model::RunState& state, model::Event* closing);

TimeNs cancellation_deadline(const model::RunState& state);
void expire_cancellation(Transaction& tx);

// The attempt, if a request has taken it from its worker.
const model::StoppedActivity* find_stopped(const model::RunState& state, int64_t scheduled_id,
                                           int32_t attempt);
// Its worker says that it has stopped. False if it said so before.
bool acknowledge_stop(Transaction& tx, int64_t scheduled_id, int32_t attempt);

}  // namespace fairlead::history
