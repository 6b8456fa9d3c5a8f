#include "absl/strings/str_cat.h"
#include "simulation/durable_crowd.h"

namespace fairlead::sim {

using durable::member;
using durable::text_of;

void DurablePromises::told_started(const std::string& workflow_id, const std::string& run_id) {
  auto& run = runs_[workflow_id];
  if (!run.run_id.empty() && run.run_id != run_id) {
    auditor_.fail(absl::StrCat(workflow_id, " is run ", run.run_id, " and run ", run_id));
  }
  run.run_id = run_id;
}

void DurablePromises::given(const std::string& task, int64_t attempt, const std::string& poll) {
  auto& known = tasks_[task];
  const auto [at, is_new] = known.given.emplace(attempt, poll);
  if (!is_new && at->second != poll) {
    auditor_.fail(absl::StrCat("attempt ", attempt, " at task ", task, " was handed out twice"));
  }
  if (known.taken.has_value() && attempt > *known.taken) {
    auditor_.fail(absl::StrCat("task ", task, " is handed out again after its end"));
  }
}

void DurablePromises::told_taken(const std::string& task, int64_t attempt) {
  auto& known = tasks_[task];
  known.taken = attempt;
  if (!known.given.empty() && known.given.rbegin()->first > attempt) {
    auditor_.fail(absl::StrCat("attempt ", attempt, " at task ", task,
                               " was taken while another worker had the next"));
  }
}

void DurablePromises::sends_signal(const std::string& workflow_id, const std::string& name) {
  runs_[workflow_id].signals.emplace(name, false);
}

void DurablePromises::told_signaled(const std::string& workflow_id, const std::string& name) {
  runs_[workflow_id].signals[name] = true;
}

void DurablePromises::told_activity_completed(const std::string& workflow_id,
                                              const std::string& execution) {
  runs_[workflow_id].completed.insert(execution);
}

void DurablePromises::settle(const std::string& workflow_id, const json::array& events) {
  const auto& run = runs_[workflow_id];
  absl::btree_map<std::string, int> signals;
  absl::btree_map<std::string, int> activities;
  int ends = 0;
  int64_t sequence = 0;
  for (const auto& value : events) {
    const auto& event = value.as_object();
    const auto type = text_of(event, "event_type");
    const auto* payload = member(event, "payload");
    const auto fields =
        payload != nullptr && payload->is_object() ? payload->as_object() : json::object();
    if (durable::integer_of(event, "sequence") != ++sequence) {
      return auditor_.fail(absl::StrCat(workflow_id, " has a gap before event ", sequence));
    }
    if (ends > 0) return auditor_.fail(absl::StrCat(workflow_id, " goes on after its end"));
    if (type == "SignalReceived") ++signals[text_of(fields, "signal_name")];
    if (type == "ActivityCompleted") ++activities[text_of(fields, "activity_execution_id")];
    // Only a schedule stops its runs.
    const bool is_scheduled = workflow_id.starts_with("schedule:");
    const bool is_stopped = type == "WorkflowCancelled" || type == "WorkflowTerminated";
    if (type == "WorkflowCompleted" || (is_scheduled && is_stopped)) ++ends;
  }
  if (ends != 1) auditor_.fail(absl::StrCat(workflow_id, " has ended ", ends, " times"));
  for (const auto& [name, is_told] : run.signals) {
    if (signals[name] > 1) auditor_.fail(absl::StrCat(workflow_id, " got ", name, " twice"));
    if (is_told && signals[name] == 0) auditor_.fail(absl::StrCat(workflow_id, " lost ", name));
  }
  for (const auto& execution : run.completed) {
    if (activities[execution] != 1) {
      auditor_.fail(absl::StrCat(workflow_id, " has the result of activity ", execution, " ",
                                 activities[execution], " times"));
    }
  }
}

std::vector<std::pair<std::string, std::string>> DurablePromises::runs() const {
  std::vector<std::pair<std::string, std::string>> runs;
  for (const auto& [workflow_id, run] : runs_) {
    if (!run.run_id.empty()) runs.emplace_back(workflow_id, run.run_id);
  }
  return runs;
}

}  // namespace fairlead::sim
