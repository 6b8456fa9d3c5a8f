#pragma once

#include <string>
#include <vector>

#include "shard/queue_requests.h"

namespace fairlead::api::queues {

// The level that a task waits in, came from or will go to.
uint32_t level_of(const shard::Explanation& why);

// What is behind an explanation, in the order in which an operator would ask: where the task is,
// who goes before it, what holds it, and whether anybody would take it. `rules` are its queue's.
std::vector<std::string> sentences_of(const shard::ExplainRequest& asked,
                                      const shard::Explanation& why, const model::QueueRules& rules,
                                      TimeNs now);

}  // namespace fairlead::api::queues
