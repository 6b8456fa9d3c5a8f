#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "simulation/probes.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::sim {

using Events = std::vector<temporal::api::history::v1::HistoryEvent>;

TimeNs time_of(const temporal::api::history::v1::HistoryEvent& event);
bool is_closing(const temporal::api::history::v1::HistoryEvent& event);

// Leaves out the events of a waiting workflow task. They may be shown and not written, as those of
// a retry or of a task for an update are, and then look different the next time.
Events without_virtual(Events events);

// Where a reset has made this run: its task that failed, or nothing.
const temporal::api::history::v1::HistoryEvent* reset_event(const Events& events,
                                                            const std::string& run_id);

// What is wrong with a history that begins with its first event, or nothing.
std::string check_history(const Events& events, TimeNs now, Probes* probes);

}  // namespace fairlead::sim
