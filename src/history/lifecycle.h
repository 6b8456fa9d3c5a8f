#pragma once

#include <string>

#include "absl/status/status.h"
#include "history/transaction.h"

namespace fairlead::history {

// The beginning of a run. `run->state` already holds what the client asked for (ids, type, queue,
// timeouts as requested); this computes the effective values and writes the first events.
struct Beginning {
  DurationNs start_delay = 0;
  std::string door;
  std::string envelope;
};
void start_run(Transaction& tx, const Beginning& beginning);

absl::Status signal_run(Transaction& tx, std::string door, std::string envelope);
void request_cancel(Transaction& tx, std::string door, std::string envelope);

// Ends the run whatever it is doing. `closing` is the event's draft.
void terminate_run(Transaction& tx, model::Event closing);
void terminate_by_server(Transaction& tx, const std::string& reason,
                         const std::string& details = "");
void time_out_run(Transaction& tx);

}  // namespace fairlead::history
