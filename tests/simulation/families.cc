// Chains and families: what the histories of different runs say about each other.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "simulation/auditor.h"
#include "temporal/api/enums/v1/event_type.pb.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;
using temporal::api::history::v1::HistoryEvent;

namespace {

// Longer than anything that news between two runs may take: a crash, the time the server is down.
constexpr DurationNs kNews = kMinute;

std::string successor_of(const HistoryEvent& closing) {
  switch (closing.event_type()) {
    case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
      return closing.workflow_execution_completed_event_attributes().new_execution_run_id();
    case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
      return closing.workflow_execution_failed_event_attributes().new_execution_run_id();
    case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
      return closing.workflow_execution_timed_out_event_attributes().new_execution_run_id();
    case EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
      return closing.workflow_execution_continued_as_new_event_attributes().new_execution_run_id();
    default:
      return "";
  }
}

// How a parent tells of such an end.
EventType told_as(EventType closing) {
  switch (closing) {
    case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
      return EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED;
    case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
      return EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED;
    case EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
      return EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED;
    case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
      return EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT;
    default:
      return EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED;
  }
}

bool is_ended_by_reset(const HistoryEvent& closing) {
  return closing.workflow_execution_terminated_event_attributes().identity() == "history-resetter";
}

// Calls `visit` with the initiated event's id and the last run of each child whose end is told.
template <typename Visit>
void for_each_end(const Events& history, Visit visit) {
  const auto call = [&](const HistoryEvent& event, const auto& attributes) {
    visit(event, attributes.initiated_event_id(), attributes.workflow_execution().run_id());
  };
  for (const auto& event : history) {
    switch (event.event_type()) {
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
        call(event, event.child_workflow_execution_completed_event_attributes());
        break;
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
        call(event, event.child_workflow_execution_failed_event_attributes());
        break;
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
        call(event, event.child_workflow_execution_canceled_event_attributes());
        break;
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
        call(event, event.child_workflow_execution_timed_out_event_attributes());
        break;
      case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
        call(event, event.child_workflow_execution_terminated_event_attributes());
        break;
      default:
        break;
    }
  }
}

}  // namespace

void Auditor::settle_families() {
  if (has_failed()) return;
  for (const auto& [run_id, run] : runs_) {
    if (run.history.empty()) continue;
    settle_reset(run_id, run);
    settle_chain(run_id, run);
    settle_child(run_id, run);
    for (const auto& event : run.history) {
      if (event.event_type() == EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED) {
        probes_->hit(Probe::kChildNotStarted);
      }
      if (event.event_type() == EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED) {
        probes_->hit(Probe::kSignalFromRun);
      }
    }
    for_each_end(run.history, [&](const HistoryEvent& event, int64_t, const std::string& child) {
      const auto found = runs_.find(child);
      // A child that no worker ever saw is not known here.
      if (found == runs_.end() || found->second.history.empty()) return;
      probes_->hit(Probe::kChildReported);
      const auto& last = found->second.history.back();
      if (told_as(last.event_type()) != event.event_type() || !successor_of(last).empty()) {
        fail(absl::StrCat("event ", event.event_id(), " of run ", run_id, " tells of child ", child,
                          " what is not so"));
      }
    });
  }
}

// A run that goes on names the next one, and that one names it back.
void Auditor::settle_chain(const std::string& run_id, const Run& run) {
  const auto& started = run.history[0].workflow_execution_started_event_attributes();
  if (started.original_execution_run_id() != origin_of(run_id)) {
    fail("a run does not know its own id");
  }
  const auto next_id = successor_of(run.history.back());
  if (!next_id.empty() && runs_.contains(next_id) && !runs_[next_id].history.empty()) {
    const auto& next = runs_[next_id].history[0].workflow_execution_started_event_attributes();
    if (next.continued_execution_run_id() != run_id ||
        next.first_execution_run_id() != started.first_execution_run_id()) {
      fail(absl::StrCat("run ", next_id, " follows ", run_id, " and does not know it"));
    }
    const auto& before = started.parent_workflow_execution();
    if (next.parent_workflow_execution().run_id() != before.run_id()) {
      fail(absl::StrCat("run ", next_id, " has lost its parent"));
    }
    if (next.priority().fairness_key() != started.priority().fairness_key()) {
      fail(absl::StrCat("run ", next_id, " has lost its priority"));
    }
    if (started.attempt() < next.attempt()) probes_->hit(Probe::kRunRetried);
  }
  const auto& last_id = started.continued_execution_run_id();
  if (last_id.empty() || origin_of(run_id) != run_id) return;
  const auto last = runs_.find(last_id);
  if (last != runs_.end() && !last->second.history.empty() &&
      successor_of(last->second.history.back()) != run_id) {
    fail(absl::StrCat("run ", run_id, " follows ", last_id, ", which says otherwise"));
  }
}

// The end of a child's chain is told to its parent once, unless the parent has closed before.
void Auditor::settle_child(const std::string& run_id, const Run& run) {
  const auto& started = run.history[0].workflow_execution_started_event_attributes();
  if (!started.has_parent_workflow_execution()) return;
  const auto& last = run.history.back();
  const auto parent = runs_.find(started.parent_workflow_execution().run_id());
  if (parent == runs_.end() || parent->second.history.empty()) {
    return fail(absl::StrCat("run ", run_id, " has a parent that nobody knows"));
  }
  const auto& initiated_id = started.parent_initiated_event_id();
  const auto& asked = parent->second.history[static_cast<size_t>(initiated_id) - 1]
                          .start_child_workflow_execution_initiated_event_attributes();
  if (asked.workflow_id() != run.workflow_id) {
    return fail(absl::StrCat("run ", run_id, " is a child that its parent did not ask for"));
  }
  const auto& of_parent = parent->second.history[0].workflow_execution_started_event_attributes();
  if (started.priority().fairness_key() != of_parent.priority().fairness_key()) {
    fail(absl::StrCat("run ", run_id, " has not inherited its parent's priority"));
  }
  const auto parents = holders_of(parent->second, initiated_id);
  if (parents.size() > 1) probes_->hit(Probe::kChildOfAReset);
  // What a reset ends leaves its children alone: those that it shares with the new run go on with
  // that one, and the others by themselves.
  std::optional<TimeNs> parent_closed;
  for (const auto* holder : parents) {
    const auto& end = holder->history.back();
    if (!is_ended_by_reset(end)) {
      parent_closed = std::max(parent_closed.value_or(0), time_of(end));
    }
  }
  if (asked.parent_close_policy() == PARENT_CLOSE_POLICY_TERMINATE && parent_closed.has_value() &&
      time_of(last) > *parent_closed + kNews) {
    fail(absl::StrCat("run ", run_id, " has outlived its parent"));
  }
  if (!successor_of(last).empty()) return;
  for (const auto* holder : parents) {
    int told = 0;
    for_each_end(holder->history,
                 [&](const HistoryEvent&, int64_t initiated, const std::string& child) {
                   if (initiated == initiated_id) told += child == run_id ? 1 : 2;
                 });
    if (told == 0) probes_->hit(Probe::kChildOfClosedParent);
    if (told > 1 || (told == 0 && time_of(holder->history.back()) > time_of(last) + kNews)) {
      fail(absl::StrCat("the end of run ", run_id, " was told to its parent ", told, " times"));
    }
  }
}

// The run that asked for a child, and those that resets have made of it since.
std::vector<const Auditor::Run*> Auditor::holders_of(const Run& parent, int64_t initiated_id) {
  const auto index = static_cast<size_t>(initiated_id) - 1;
  const auto asked = parent.history[index].SerializeAsString();
  std::vector<const Run*> holders;
  for (const auto& [run_id, run] : runs_) {
    if (run.workflow_id == parent.workflow_id && run.history.size() > index &&
        run.history[index].SerializeAsString() == asked) {
      holders.push_back(&run);
    }
  }
  return holders;
}

}  // namespace fairlead::sim
