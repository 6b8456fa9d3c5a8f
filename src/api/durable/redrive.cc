#include "api/durable/redrive.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "api/durable/json.h"
#include "base/error.h"
#include "base/wire.h"

namespace fairlead::durable {

namespace {

// Of the event that a run begins with: the new run has its own.
constexpr const char* kOwnFields[] = {"workflow_run_id",
                                      "workflow_type",
                                      "workflow_class",
                                      "payload_codec",
                                      "run_number",
                                      "execution_timeout_seconds",
                                      "run_timeout_seconds",
                                      "execution_deadline_at",
                                      "priority",
                                      "timestamp",
                                      "continued_from_run_id",
                                      "parent_workflow_instance_id",
                                      "parent_workflow_run_id"};

struct Past {
  std::string type;
  int64_t id = 0;
  std::string recorded_at;
  json::object payload;
  int64_t step() const { return integer_of(payload, "sequence").value_or(0); }
};

TimeNs time_of(const std::string& text) {
  absl::Time time;
  return absl::ParseTime(absl::RFC3339_full, text, &time, nullptr) ? absl::ToUnixNanos(time) : 0;
}

std::vector<Past> read_history(std::string_view history) {
  std::vector<Past> past;
  wire::Reader reader(history);
  while (reader.next()) {
    const auto parsed = parse_json(reader.bytes());
    if (!parsed.has_value() || !parsed->is_object()) continue;
    const auto& event = parsed->as_object();
    past.push_back({text_of(event, "event_type"), integer_of(event, "sequence").value_or(0),
                    text_of(event, "recorded_at"), object_member(event, "payload")});
  }
  return past;
}

bool begins(const Past& event) {
  const bool is_wait_timer =
      event.type == "TimerScheduled" && event.payload.contains("condition_wait_id");
  return !is_wait_timer &&
         (event.type == "ActivityScheduled" || event.type == "TimerScheduled" ||
          event.type == "ChildWorkflowScheduled" || event.type == "ConditionWaitOpened");
}

bool ends(const Past& event) {
  for (const char* type : {"ActivityCompleted", "ActivityFailed", "ActivityTimedOut",
                           "ActivityCancelled", "TimerFired", "ChildRunCompleted", "ChildRunFailed",
                           "ChildRunCancelled", "ChildRunTerminated", "ConditionWaitSatisfied"}) {
    if (event.type == type) return true;
  }
  return event.type == "TimerCancelled" && !event.payload.contains("condition_wait_id");
}

// The first step of the group that the step is done in: a group is done as a whole.
int64_t group_base(const std::vector<Past>& past, int64_t step) {
  for (const auto& event : past) {
    if (event.step() != step || !begins(event)) continue;
    const auto* path = member(event.payload, "parallel_group_path");
    if (path != nullptr && path->is_array() && !path->as_array().empty() &&
        path->as_array()[0].is_object()) {
      return integer_of(path->as_array()[0].as_object(), "parallel_group_base_sequence")
          .value_or(step);
    }
    return integer_of(event.payload, "parallel_group_base_sequence").value_or(step);
  }
  return step;
}

// Which updates were applied: the others are their callers' to send again.
std::set<std::string> applied_updates(const std::vector<Past>& past) {
  std::set<std::string> applied;
  for (const auto& event : past) {
    if (event.type == "UpdateApplied") applied.insert(text_of(event.payload, "update_id"));
  }
  return applied;
}

bool is_kept(const Past& event, int64_t cut, const std::set<std::string>& applied) {
  if (event.type == "SignalReceived") return true;
  if (event.type.starts_with("Update"))
    return applied.contains(text_of(event.payload, "update_id"));
  if (event.type == "SelectionResolved" || event.type == "SelectionOperationCancelled") {
    return integer_of(event.payload, "member_base_sequence").value_or(cut) < cut;
  }
  const int64_t step = event.step();
  return step > 0 && step < cut;
}

bool has_open_step(const std::vector<Past>& past, int64_t cut) {
  std::set<int64_t> open;
  for (const auto& event : past) {
    if (event.step() >= cut) continue;
    if (begins(event)) open.insert(event.step());
    if (ends(event)) open.erase(event.step());
    if (event.type == "SelectionOperationCancelled") {
      const int64_t base = integer_of(event.payload, "member_base_sequence").value_or(0);
      const int64_t size = integer_of(event.payload, "member_size").value_or(0);
      for (int64_t step = base; step < base + size; ++step) open.erase(step);
    }
  }
  return !open.empty();
}

std::string start_door(const Past& started) {
  json::object fields = started.payload;
  for (const char* name : kOwnFields) fields.erase(name);
  // The workflow's clock: replays of what it did before must read the same.
  const auto* clock = member(started.payload, "timestamp");
  fields["timestamp"] = clock != nullptr ? *clock : json::value(started.recorded_at);
  return members_of(fields);
}

}  // namespace

absl::StatusOr<history::Redrive> cut_history(std::string_view history) {
  const auto past = read_history(history);
  int64_t failed_step = 0;
  const Past* started = nullptr;
  for (const auto& event : past) {
    if (event.type == "WorkflowStarted") started = &event;
    if (event.type == "WorkflowFailed") {
      failed_step = integer_of(event.payload, "failed_step_sequence").value_or(0);
    }
    if (event.type == "CooperativeCancellationRequested") {
      return errors::lease_refused("redrive_not_supported");
    }
  }
  if (started == nullptr || failed_step < 1) return errors::lease_refused("redrive_step_unknown");
  const int64_t cut = group_base(past, failed_step);
  if (has_open_step(past, cut)) return errors::lease_refused("redrive_open_operations");
  const auto applied = applied_updates(past);
  history::Redrive redrive;
  redrive.start_door = start_door(*started);
  redrive.steps = cut - 1;
  std::map<std::string, std::string> names;  // of events, there and here
  for (const auto& event : past) {
    if (!is_kept(event, cut, applied)) continue;
    names[absl::StrCat("event-", event.id)] =
        absl::StrCat("event-", redrive.events.size() + 2);  // behind the one that it starts with
    json::object payload = event.payload;
    if (const auto name = names.find(text_of(payload, "resolution_event_id"));
        name != names.end()) {
      payload["resolution_event_id"] = name->second;
    }
    model::Event draft;
    draft.set_kind(model::MARKER_RECORDED);
    draft.mutable_command_recorded()->set_name(event.type);
    draft.set_time_ns(time_of(event.recorded_at));
    draft.set_door(members_of(payload));
    redrive.events.push_back(std::move(draft));
  }
  return redrive;
}

}  // namespace fairlead::durable
