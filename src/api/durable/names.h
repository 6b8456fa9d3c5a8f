#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/queue_name.h"
#include "shard/requests.h"

namespace fairlead::durable {

// Where the tasks of this door wait.
std::string engine_queue(std::string_view name);
inline std::string known_queue(std::string_view name) { return std::string(shown_queue(name)); }

// A task is named by what finds it again: its kind, its number in the run, the run. Such a name is
// good for as long as the task, whatever restarts meanwhile.
//
//   wt.7.01890a5d-ac96-774b-bcce-b302099a8057.order-1
struct TaskName {
  char kind = 'w';  // w: workflow task, a: activity task
  int64_t number = 0;
  std::string run_id;
  std::string workflow_id;

  std::string text() const;
  static std::optional<TaskName> parse(std::string_view text);
};

// "execution:3", the third attempt at an activity.
std::string attempt_name(std::string_view execution, int32_t attempt);
std::optional<int32_t> attempt_of(std::string_view attempt_name, std::string_view execution);

// 1 to 128 of letters, digits, and ._:-
bool is_workflow_id(std::string_view text);

}  // namespace fairlead::durable
