#pragma once

#include <vector>

#include "base/time.h"
#include "history/transaction.h"

namespace fairlead::history {

// When time will next do something to this run: fire a timer, end an attempt, retry, delete it.
// kNever if it just waits.
TimeNs next_deadline(const Run& run);

// A task that waits in a queue and has to leave it, because nobody took it within its
// schedule-to-start timeout.
struct Expiring {
  model::TaskKind kind = model::TASK_UNSPECIFIED;
  model::QueueTarget queue;
};
// Those of which `pass_time` would say so now.
std::vector<Expiring> expiring_tasks(const Run& run, TimeNs now);

// Does everything that is due at `tx.now`, in the order in which it fell due. A run whose retention
// is over is not touched: removing it is the owner's business.
void pass_time(Transaction& tx);

}  // namespace fairlead::history
