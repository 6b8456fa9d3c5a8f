#pragma once

#include <optional>
#include <string>

#include "history/transaction.h"

// A chain is a sequence of runs with one workflow id: each continues as new, is a retry of the one
// before, or follows a schedule. To its parent and to those who wait for its result it is one.
namespace fairlead::history {

// Whether and how the run goes on after `closing`, whose retry state is set on the way.
std::optional<Successor> decide_successor(Transaction& tx, model::Event* closing);

// What the next run takes over from the last one, and from the command that asked for it or from
// Codec::begin_again.
void continue_chain(const model::RunState& last, const Successor& successor,
                    const model::ContinueAsNew& asked, model::RunState* next);

// How long to wait for the next time of a cron schedule that is later than `last` and not before
// `now`, in whole seconds; nothing if there is none.
std::optional<DurationNs> cron_delay(const std::string& schedule, TimeNs last, TimeNs now);

}  // namespace fairlead::history
