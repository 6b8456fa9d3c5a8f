#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "admission/policy.h"
#include "base/random.h"
#include "store/store.h"

namespace fairlead::sim {

// Some budgets for the queues of a simulation, or none.
std::shared_ptr<const admission::Policies> draw_policies(Random& random);

struct BudgetCount {
  int full = 0;  // budgets that are used up
};

// Which budget the rows of a store exceed, or nothing. It holds at every moment and after any
// crash, because a task is counted before its row is written and until after that is erased.
std::string check_budgets(const store::Store& store, uint16_t shards,
                          const admission::Policies& policies, BudgetCount* count);

}  // namespace fairlead::sim
