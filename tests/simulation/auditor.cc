#include "simulation/auditor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "temporal/api/enums/v1/event_type.pb.h"

namespace fairlead::sim {

using namespace temporal::api::enums::v1;

void Auditor::fail(const std::string& what) {
  if (has_failed()) return;
  failure_ = what;
  trace_->note(absl::StrCat("AUDIT: ", what));
}

void Auditor::told_started(const std::string& workflow_id, const std::string& request_id,
                           const std::string& run_id, const std::string& input) {
  const auto [known, is_new] = requests_.emplace(request_id, run_id);
  if (!is_new) {
    probes_->hit(Probe::kStartDeduplicated);
    if (known->second != run_id) {
      fail(absl::StrCat("start request ", request_id, " of ", workflow_id, " made run ",
                        known->second, " and then run ", run_id));
    }
  }
  runs_[run_id].workflow_id = workflow_id;
  runs_[run_id].input = input;
}

void Auditor::sends_signal(const std::string& run_id, const std::string& payload) {
  runs_[run_id].signals.emplace(payload, false);
}

void Auditor::told_signaled(const std::string& run_id, const std::string& payload) {
  runs_[run_id].signals[payload] = true;
}

int Auditor::signals_told(const std::string& run_id) {
  int told = 0;
  for (const auto& [payload, is_told] : runs_[run_id].signals) told += is_told ? 1 : 0;
  return told;
}

void Auditor::sends_update(const std::string& run_id, const std::string& id) {
  runs_[run_id].updates.emplace(id, Fate::kUnknown);
}

void Auditor::told_update(const std::string& run_id, const std::string& id, Fate fate) {
  auto& known = runs_[run_id].updates[id];
  if (known != Fate::kUnknown && known != fate) {
    fail(absl::StrCat("update ", id, " of run ", run_id, " ended in two ways"));
  }
  known = fate;
  probes_->hit(fate == Fate::kCompleted  ? Probe::kUpdateCompleted
               : fate == Fate::kRejected ? Probe::kUpdateRejected
                                         : Probe::kUpdateCutShort);
}

void Auditor::told_canceled(const std::string& run_id) {
  auto& told = runs_[run_id].cancel_told;
  if (!told.has_value()) told = clock_->now();
}

void Auditor::told_terminated(const std::string& run_id, const std::string& reason) {
  runs_[run_id].terminate_reason = reason;
  told_closed(run_id);
}

void Auditor::told_closed(const std::string& run_id) {
  auto& told = runs_[run_id].closed_told;
  told = std::min(told, clock_->now());
}

void Auditor::given_workflow_task(const std::string& run_id, const std::string& workflow_id,
                                  int64_t started_id, int32_t attempt, TimeNs started) {
  auto& run = runs_[run_id];
  run.workflow_id = workflow_id;
  if (!run.tasks.insert({started_id, attempt, started}).second) {
    fail(absl::StrCat("workflow task ", started_id, "/", attempt, " of run ", run_id,
                      " was handed out twice"));
  }
  if (attempt > 1) probes_->hit(Probe::kVirtualTask);
}

void Auditor::told_task_completed(const std::string& run_id, int64_t started_id) {
  runs_[run_id].tasks_completed.insert(started_id);
}

void Auditor::given_activity(const std::string& run_id, const GivenActivity& given) {
  if (given.is_lone) runs_[run_id].is_lone = true;
  auto& activity = runs_[run_id].activities[given.scheduled_id];
  const auto& meddling = runs_[run_id].meddled[given.activity_id];
  const std::string name = absl::StrCat("activity ", given.scheduled_id, " of run ", run_id);
  if (!activity.attempts.insert(given.attempt).second && !meddling.may_be_reset) {
    fail(absl::StrCat("attempt ", given.attempt, " of ", name, " was handed out twice"));
  }
  // Not merely received: a task may be on its way while somebody else ends the activity by its id.
  if (given.started > activity.end_told) {
    fail(absl::StrCat(name, " was handed out again after its end was acknowledged"));
  }
  if (given.started > meddling.paused_told) {
    fail(absl::StrCat(name, " was handed out while it was paused"));
  }
  if (given.attempt > activity.heartbeat_attempt && given.heartbeat < activity.heartbeat &&
      !meddling.may_be_reset) {
    fail(absl::StrCat(name, " lost heartbeat ", activity.heartbeat, ": it got ", given.heartbeat));
  }
}

void Auditor::told_paused(const std::string& run_id, const std::string& activity_id) {
  runs_[run_id].meddled[activity_id].paused_told = clock_->now();
}

void Auditor::lets_go(const std::string& run_id, const std::string& activity_id, bool resets) {
  auto& meddling = runs_[run_id].meddled[activity_id];
  meddling.paused_told = kNever;
  meddling.may_be_reset |= resets;
}

void Auditor::told_activity_completed(const std::string& run_id, int64_t scheduled_id,
                                      const std::string& result) {
  auto& activity = runs_[run_id].activities[scheduled_id];
  activity.result = result;
  activity.end_told = clock_->now();
}

void Auditor::told_activity_canceled(const std::string& run_id, int64_t scheduled_id) {
  auto& activity = runs_[run_id].activities[scheduled_id];
  activity.is_canceled = true;
  activity.end_told = clock_->now();
}

void Auditor::told_heartbeat(const std::string& run_id, int64_t scheduled_id, int32_t attempt,
                             int64_t heartbeat) {
  auto& activity = runs_[run_id].activities[scheduled_id];
  if (attempt < activity.heartbeat_attempt) return;
  activity.heartbeat_attempt = attempt;
  activity.heartbeat = std::max(activity.heartbeat, heartbeat);
}

void Auditor::saw_events(const std::string& run_id, const Events& events) {
  auto& run = runs_[run_id];
  for (const auto& event : without_virtual(events)) {
    const auto index = static_cast<size_t>(event.event_id() - 1);
    if (run.events.size() <= index) run.events.resize(index + 1);
    auto& known = run.events[index];
    auto bytes = event.SerializeAsString();
    if (!known.empty() && known != bytes) {
      temporal::api::history::v1::HistoryEvent before;
      before.ParseFromString(known);
      fail(absl::StrCat("event ", event.event_id(), " of run ", run_id, " was\n",
                        before.ShortDebugString(), "\nand now is\n", event.ShortDebugString()));
    }
    known = std::move(bytes);
    if (is_closing(event)) told_closed(run_id);
  }
}

void Auditor::saw_history(const std::string& run_id, const Events& events, TimeNs asked) {
  saw_events(run_id, events);
  const auto error = check_history(events, clock_->now(), probes_);
  if (!error.empty()) fail(absl::StrCat("the history of run ", run_id, " is broken: ", error));
  const auto& run = runs_[run_id];
  if (asked > run.closed_told && (events.empty() || !is_closing(events.back()))) {
    fail(absl::StrCat("run ", run_id, " was closed and is open again"));
  }
}

void Auditor::settle(const std::string& run_id, const Events& events) {
  saw_history(run_id, events, clock_->now());
  const auto& run = runs_[run_id];
  const std::string name = absl::StrCat("run ", run_id, " of ", run.workflow_id);
  if (events.empty() || !is_closing(events.back())) return fail(name + " has not closed");
  if (run.events.size() > events.size()) return fail(name + " has lost events that were read");
  const auto& input = events[0].workflow_execution_started_event_attributes().input();
  if (!run.input.empty() && input.payloads(0).data() != run.input) fail(name + " lost its input");

  settle_signals(run, name, events);
  settle_updates(run, run_id, events);
  settle_activities(run, name, events);
  absl::btree_set<int64_t> completed;
  bool is_cancel_requested = false;
  for (const auto& event : events) {
    if (event.has_workflow_task_completed_event_attributes()) {
      completed.insert(event.workflow_task_completed_event_attributes().started_event_id());
    }
    is_cancel_requested |= event.has_workflow_execution_cancel_requested_event_attributes();
  }
  for (const int64_t started : run.tasks_completed) {
    if (!completed.contains(started)) {
      fail(absl::StrCat(name, " lost the completion of workflow task ", started));
    }
  }
  if (run.cancel_told.has_value() && !is_cancel_requested &&
      time_of(events.back()) > *run.cancel_told) {
    fail(name + " lost a request to cancel");
  }
  const auto& end = events.back().workflow_execution_terminated_event_attributes();
  if (!run.terminate_reason.empty() && end.reason() != run.terminate_reason) {
    fail(name + " was terminated and says otherwise");
  }
  count_ending(events);
  runs_[run_id].history = events;
}

void Auditor::saw_start(const std::string& fairness_key, TimeNs started) {
  starts_[fairness_key].push_back(started);
}

void Auditor::settle_limits() {
  const auto check = [&](std::vector<TimeNs> starts, const Limit& limit, const std::string& whose) {
    std::erase_if(starts, [&](TimeNs start) { return start < limit.since; });
    std::sort(starts.begin(), starts.end());
    for (size_t from = 0; from < starts.size(); ++from) {
      for (size_t to = from; to < starts.size(); ++to) {
        // The queue counts when it decides; the attempt's start is stamped a message later.
        const double seconds =
            static_cast<double>(starts[to] - starts[from] + message_time) / kSecond;
        if (static_cast<double>(to - from + 1) <= limit.per_second * (seconds + 1) + 1 + 1e-6) {
          continue;
        }
        return fail(absl::StrCat(to - from + 1, " activities of ", whose, " started in ", seconds,
                                 " s under a limit of ", limit.per_second, " a second"));
      }
    }
    if (starts.size() > 10) probes_->hit(Probe::kLimitHeld);
  };
  std::vector<TimeNs> all;
  for (const auto& [key, starts] : starts_) {
    all.insert(all.end(), starts.begin(), starts.end());
    if (key_limit_.has_value()) check(starts, *key_limit_, absl::StrCat("key '", key, "'"));
  }
  if (limit_.has_value()) check(all, *limit_, "the queue");
}

void Auditor::settle_signals(const Run& run, const std::string& name, const Events& events) {
  absl::btree_map<std::string, int> seen;
  for (const auto& event : events) {
    if (!event.has_workflow_execution_signaled_event_attributes()) continue;
    ++seen[event.workflow_execution_signaled_event_attributes().input().payloads(0).data()];
  }
  for (const auto& [payload, is_told] : run.signals) {
    const auto found = seen.find(payload);
    const int times = found == seen.end() ? 0 : found->second;
    if (times > 1) fail(absl::StrCat(name, " got signal ", payload, " ", times, " times"));
    if (is_told && times == 0) fail(absl::StrCat(name, " lost signal ", payload));
  }
}

void Auditor::settle_updates(const Run& run, const std::string& run_id, const Events& events) {
  const std::string name = absl::StrCat("run ", run_id, " of ", run.workflow_id);
  // A run that a reset has made is given updates that were sent to another one.
  const bool is_reset = reset_event(events, run_id) != nullptr;
  absl::btree_map<std::string, temporal::api::update::v1::Request> admitted;
  absl::btree_map<int64_t, std::string> accepted;  // by event id
  absl::btree_set<std::string> known;
  absl::btree_set<std::string> completed;
  for (const auto& event : events) {
    if (event.has_workflow_execution_update_admitted_event_attributes()) {
      const auto& asked = event.workflow_execution_update_admitted_event_attributes().request();
      if (!is_reset) fail(name + " admitted an update that nobody has reset");
      if (!admitted.emplace(asked.meta().update_id(), asked).second) {
        fail(absl::StrCat(name, " admitted update ", asked.meta().update_id(), " twice"));
      }
    } else if (event.has_workflow_execution_update_accepted_event_attributes()) {
      const auto& about = event.workflow_execution_update_accepted_event_attributes();
      const auto& id = about.protocol_instance_id();
      if (!known.insert(id).second) fail(absl::StrCat(name, " accepted update ", id, " twice"));
      if (!run.updates.contains(id) && !is_reset) {
        fail(absl::StrCat(name, " accepted a stray update: ", id));
      }
      // The request is in the history once.
      if (admitted.contains(id) == about.has_accepted_request()) {
        fail(absl::StrCat(name, " has the request of update ", id, " twice or not at all"));
      }
      const auto& asked = admitted.contains(id) ? admitted[id] : about.accepted_request();
      if (asked.meta().update_id() != id || asked.input().name() != "poke") {
        fail(absl::StrCat(name, " lost the request of update ", id));
      }
      accepted[event.event_id()] = id;
    } else if (event.has_workflow_execution_update_completed_event_attributes()) {
      const auto& about = event.workflow_execution_update_completed_event_attributes();
      const auto& id = about.meta().update_id();
      const auto found = accepted.find(about.accepted_event_id());
      if (found == accepted.end() || found->second != id) {
        fail(absl::StrCat(name, " completed update ", id, " that it had not accepted"));
      }
      if (!completed.insert(id).second) fail(absl::StrCat(name, " completed ", id, " twice"));
    }
  }
  for (const auto& [id, fate] : run.updates) {
    const bool is_right =
        fate == Fate::kUnknown || (fate == Fate::kCompleted && completed.contains(id)) ||
        (fate == Fate::kRejected && !known.contains(id)) ||
        (fate == Fate::kCutShort && known.contains(id) && !completed.contains(id));
    if (!is_right) fail(absl::StrCat(name, ": update ", id, " is not as its client was told"));
  }
}

void Auditor::settle_activities(const Run& run, const std::string& name, const Events& events) {
  absl::btree_map<int64_t, std::string> results;
  absl::btree_set<int64_t> canceled;
  for (const auto& event : events) {
    if (event.has_activity_task_completed_event_attributes()) {
      const auto& completed = event.activity_task_completed_event_attributes();
      results[completed.scheduled_event_id()] = completed.result().payloads(0).data();
    } else if (event.has_activity_task_canceled_event_attributes()) {
      canceled.insert(event.activity_task_canceled_event_attributes().scheduled_event_id());
    }
  }
  for (const auto& [id, activity] : run.activities) {
    if (activity.result.has_value() && results[id] != *activity.result) {
      fail(absl::StrCat(name, " lost the result of activity ", id));
    }
    if (activity.is_canceled && !canceled.contains(id)) {
      fail(absl::StrCat(name, " lost the cancellation of activity ", id));
    }
  }
}

void Auditor::count_ending(const Events& events) {
  const auto& last = events.back();
  switch (last.event_type()) {
    case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
      return probes_->hit(Probe::kRunTimedOut);
    case EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
      return probes_->hit(Probe::kRunTerminated);
    case EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
      return probes_->hit(Probe::kRunCanceled);
    case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
      return probes_->hit(Probe::kRunFailed);
    case EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
      return probes_->hit(Probe::kContinuedAsNew);
    default:
      return;
  }
}

std::vector<std::string> Auditor::runs() const {
  std::vector<std::string> runs;
  for (const auto& [run_id, run] : runs_) {
    if (!run.is_lone) runs.push_back(run_id);
  }
  return runs;
}

bool Auditor::is_closed(const std::string& run_id) const {
  const auto found = runs_.find(run_id);
  return found != runs_.end() && found->second.closed_told != kNever;
}

}  // namespace fairlead::sim
