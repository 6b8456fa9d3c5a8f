#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "history/transaction.h"

namespace fairlead::history {

// Who it was when nobody asked: shown on events that the server writes by itself.
inline constexpr char kServerIdentity[] = "history-service";

// The beginning of a run. `run->state` already holds what the client asked for (ids, type, queue,
// timeouts as requested), or what its chain or its parent hands down; this computes the effective
// values and writes the first events.
struct Beginning {
  DurationNs start_delay = 0;  // without it a schedule says when to begin
  std::string door;
  std::string envelope;
  bool eager_accepted = false;  // the first task goes to the caller at once
  std::vector<std::string> callbacks = {};
};
void start_run(Transaction& tx, const Beginning& beginning);

// When the run's own time is up, given its other times; 0: never.
TimeNs run_expiration(const model::RunState& state);
model::Status closing_status(model::EventKind kind);

// The timeout of a run's workflow tasks, given what was asked for.
DurationNs effective_task_timeout(const Limits& limits, DurationNs asked, DurationNs run_timeout);

absl::Status signal_run(Transaction& tx, std::string door, std::string envelope,
                        const model::Origin* origin = nullptr);
void request_cancel(Transaction& tx, std::string door, std::string envelope,
                    const model::Origin* origin = nullptr);

// Ends the run with this event, its draft, unless it goes on as another run: then the successor is
// left in `tx`. Everybody who has to hear of it does.
void close_run(Transaction& tx, model::Event closing);

// Ends the run whatever it is doing. `closing` is the event's draft.
void terminate_run(Transaction& tx, model::Event closing);
void terminate_by_server(Transaction& tx, const std::string& reason,
                         const std::string& details = "");
void time_out_run(Transaction& tx);

}  // namespace fairlead::history
