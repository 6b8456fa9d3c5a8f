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

void DurablePromises::told_asked_to_stop(const std::string& workflow_id,
                                         const std::string& request_id) {
  auto& run = runs_[workflow_id];
  if (!run.stop.empty() && run.stop != request_id) {
    auditor_.fail(absl::StrCat(workflow_id, " was asked to stop by two requests"));
  }
  run.stop = request_id;
}

void DurablePromises::told_delivered(const std::string& workflow_id) {
  runs_[workflow_id].is_delivered = true;
}

void DurablePromises::settle_stop(const std::string& workflow_id, const json::array& events) {
  const auto& run = runs_[workflow_id];
  int asked = 0;
  int told = 0;
  std::string end;
  std::string outcome;
  for (const auto& value : events) {
    const auto& event = value.as_object();
    const auto type = text_of(event, "event_type");
    const auto& payload = event.at("payload").as_object();
    if (type == "CooperativeCancellationRequested") {
      ++asked;
      if (!run.stop.empty() && text_of(payload, "workflow_command_id") != run.stop) {
        auditor_.fail(absl::StrCat(workflow_id, " was asked to stop by another request"));
      }
    }
    if (type == "CooperativeCancellationDelivered") ++told;
    if (type == "WorkflowCompleted") end = "completed";
    if (type != "WorkflowCancelled") continue;
    end = "cancelled";
    outcome = text_of(payload.at("cancellation_cleanup").as_object(), "outcome");
  }
  if (asked > 1 || told > 1 || told > asked) {
    auditor_.fail(absl::StrCat(workflow_id, " was asked ", asked, " times and told ", told));
  }
  if (!run.stop.empty() && asked == 0) auditor_.fail(workflow_id + " lost the request to stop");
  if (run.is_delivered && told == 0)
    auditor_.fail(workflow_id + " forgot that it was told to stop");
  if (asked == 0 && end == "cancelled") auditor_.fail(workflow_id + " was cancelled by nobody");
  if (told == 1 && end != "cancelled") auditor_.fail(workflow_id + " was told to stop and did not");
  if (outcome == "completed" && told != 1) {
    auditor_.fail(workflow_id + " is cancelled, in time, and was never told");
  }
  if (told == 1) probes_->hit(Probe::kDurableStopDelivered);
  if (outcome == "deadline_expired") probes_->hit(Probe::kDurableStopExpired);
}

void DurablePromises::settle(const std::string& workflow_id, const json::array& events) {
  const auto& run = runs_[workflow_id];
  absl::btree_map<std::string, int> signals;
  absl::btree_map<std::string, int> activities;
  // Only a schedule stops its runs without asking them.
  const bool is_scheduled = workflow_id.starts_with("schedule:");
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
    if (type == "WorkflowCompleted" || type == "WorkflowCancelled" ||
        (is_scheduled && type == "WorkflowTerminated")) {
      ++ends;
    }
  }
  if (!is_scheduled) settle_stop(workflow_id, events);
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
