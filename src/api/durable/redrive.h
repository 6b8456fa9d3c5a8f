#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "history/redrive.h"

namespace fairlead::durable {

// What a run takes over from the failed one with this history: everything before the step whose
// failure has ended it. Refused, with kLeaseRefused and one of these words, if that is not known or
// cannot be taken over:
//
//   redrive_step_unknown     it was not an activity's failure that the workflow let pass
//   redrive_open_operations  an earlier step had not ended: its end would never come
//   redrive_not_supported    the run was asked to stop
absl::StatusOr<history::Redrive> cut_history(std::string_view history);

}  // namespace fairlead::durable
