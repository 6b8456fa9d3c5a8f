#include "history/commands.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "history/activity.h"
#include "history/children.h"
#include "history/durable.h"
#include "history/lifecycle.h"
#include "history/selection.h"

namespace fairlead::history {

namespace {

bool is_closing(model::EventKind kind) {
  return kind == model::WORKFLOW_COMPLETED || kind == model::WORKFLOW_FAILED ||
         kind == model::WORKFLOW_CANCELED || kind == model::WORKFLOW_CONTINUED_AS_NEW;
}

// A retried task's own two events are written together with its completion, just before it.
int64_t id_of_completion(const model::RunState& state) {
  return state.next_event_id() + (state.workflow_task().virtual_events() ? 2 : 0);
}

// What the commands before the one being looked at will have changed.
class Foresight {
 public:
  Foresight(const Run& run, const Limits& limits)
      : run_(run),
        limits_(limits),
        activities_(static_cast<int64_t>(run.activities.size())),
        children_(static_cast<int64_t>(run.children.size())),
        buffered_(run.state.buffered_size()),
        event_id_(id_of_completion(run.state)) {
    for (const auto& [id, external] : run.externals) {
      ++(external.kind() == model::SIGNAL_EXTERNAL_INITIATED ? signals_ : cancels_);
    }
  }

  std::optional<CommandRefusal> check(model::Event* command) {
    if (command->kind() != model::UPDATE_REJECTED) ++event_id_;
    switch (command->kind()) {
      case model::ACTIVITY_SCHEDULED:
        return schedule_activity(command->mutable_activity_scheduled());
      case model::ACTIVITY_CANCEL_REQUESTED:
        return cancel_activity(command->activity_cancel_requested().scheduled_id());
      case model::TIMER_STARTED:
        return start_timer(command->timer_started().timer_id());
      case model::TIMER_CANCELED:
        return cancel_timer(command->timer_ended().timer_id());
      case model::CHILD_INITIATED:
        new_children_.insert(command->child_initiated().workflow_id());
        return count(FailedCause::kPendingChildrenLimit, "PendingChildWorkflowsLimitExceeded",
                     "child workflow executions", &children_, limits_.pending_children);
      case model::SIGNAL_EXTERNAL_INITIATED:
        return count(FailedCause::kPendingSignalsLimit, "PendingSignalsLimitExceeded",
                     "pending signals to external workflows", &signals_, limits_.pending_signals);
      case model::CANCEL_EXTERNAL_INITIATED:
        return cancel_external(command->external_event());
      case model::UPDATE_ACCEPTED:
        return accept_update(command->update_event().update_id());
      case model::UPDATE_COMPLETED:
        return complete_update(command->update_event().update_id());
      case model::UPDATE_REJECTED:
        return is_accepted(command->update_event().update_id())
                   ? bad_update(command->update_event().update_id(), "was accepted already")
                   : std::nullopt;
      default:
        if (is_closing(command->kind()) && buffered_ > 0) {
          return CommandRefusal{FailedCause::kUnhandledCommand, "UnhandledCommand"};
        }
        return std::nullopt;
    }
  }

 private:
  std::optional<CommandRefusal> schedule_activity(model::ActivityScheduled* activity) {
    if (!normalize_activity(activity, run_.state)) {
      return CommandRefusal{FailedCause::kBadScheduleActivity,
                            "BadScheduleActivityAttributes: A valid StartToClose or "
                            "ScheduleToCloseTimeout is not set on ScheduleActivityTaskCommand."};
    }
    new_activity_events_.insert(event_id_);
    const auto& id = activity->activity_id();
    if (run_.activity_ids.contains(id) || !new_activities_.insert(id).second) {
      return CommandRefusal{
          FailedCause::kScheduleActivityDuplicateId,
          absl::StrCat("ScheduleActivityDuplicateId: activity ", id, " is pending already")};
    }
    return count(FailedCause::kPendingActivitiesLimit, "PendingActivitiesLimitExceeded",
                 "pending activities", &activities_, limits_.pending_activities);
  }

  static std::optional<CommandRefusal> count(FailedCause cause, const char* name, const char* what,
                                             int64_t* pending, int64_t pending_max) {
    if (++*pending <= pending_max) return std::nullopt;
    return CommandRefusal{cause,
                          absl::StrCat(name, ": the number of ", what, ", ", *pending - 1,
                                       ", has reached the per-workflow limit of ", pending_max)};
  }

  std::optional<CommandRefusal> cancel_external(const model::ExternalEvent& cancel) {
    if (new_children_.contains(cancel.run().workflow_id())) {
      return CommandRefusal{
          FailedCause::kBadRequestCancelExternal,
          "BadRequestCancelExternalWorkflowExecutionAttributes: Start and "
          "RequestCancel for child workflow is not allowed in same workflow task."};
    }
    return count(FailedCause::kPendingCancelsLimit, "PendingRequestCancelLimitExceeded",
                 "pending requests to cancel external workflows", &cancels_,
                 limits_.pending_cancels);
  }

  std::optional<CommandRefusal> cancel_activity(int64_t scheduled_id) {
    const auto found = run_.activities.find(scheduled_id);
    if (found != run_.activities.end()) {
      const bool is_first = canceled_.insert(scheduled_id).second;
      // Nobody has begun the work: the first command ends it, and the next one finds its end.
      const bool ends_at_once = found->second.started_ns() == 0;
      if (!found->second.cancel_requested() && (is_first || ends_at_once)) return std::nullopt;
    } else if (new_activity_events_.contains(scheduled_id) || finish_is_buffered(scheduled_id)) {
      return std::nullopt;
    }
    return CommandRefusal{FailedCause::kBadRequestCancelActivity,
                          absl::StrCat("BadRequestCancelActivityAttributes: activity with "
                                       "scheduled event id ",
                                       scheduled_id, " is not pending")};
  }

  std::optional<CommandRefusal> start_timer(const std::string& id) {
    const bool was_canceled = canceled_timers_.contains(id);
    if ((run_.timer_ids.contains(id) && !was_canceled) || !new_timers_.insert(id).second) {
      return CommandRefusal{FailedCause::kStartTimerDuplicateId,
                            absl::StrCat("StartTimerDuplicateId: timer ", id, " is pending")};
    }
    return std::nullopt;
  }

  std::optional<CommandRefusal> cancel_timer(const std::string& id) {
    if (new_timers_.erase(id) > 0) return std::nullopt;
    if (run_.timer_ids.contains(id) && canceled_timers_.insert(id).second) return std::nullopt;
    if (buffered_timer_fired(run_, id) && canceled_timers_.insert(id).second) {
      // The fired event is taken back, which may leave nothing that a closing command would miss.
      --buffered_;
      return std::nullopt;
    }
    return CommandRefusal{FailedCause::kBadCancelTimer,
                          absl::StrCat("BadCancelTimerAttributes: timer ", id, " is not pending")};
  }

  bool is_accepted(const std::string& id) const {
    const auto found = run_.updates.find(id);
    return (found != run_.updates.end() && found->second.accepted_id() != 0) ||
           new_updates_.contains(id);
  }
  static std::optional<CommandRefusal> bad_update(const std::string& id, const char* what) {
    return CommandRefusal{
        FailedCause::kBadUpdateMessage,
        absl::StrCat("BadUpdateWorkflowExecutionMessage: update ", id, " ", what)};
  }
  std::optional<CommandRefusal> accept_update(const std::string& id) {
    if (is_accepted(id)) return bad_update(id, "was accepted already");
    new_updates_.insert(id);
    return std::nullopt;
  }
  std::optional<CommandRefusal> complete_update(const std::string& id) {
    const auto found = run_.updates.find(id);
    const bool is_complete = found != run_.updates.end() && found->second.completed_id() != 0;
    if (!is_accepted(id)) return bad_update(id, "is completed and was not accepted");
    if (is_complete || !completed_updates_.insert(id).second) {
      return bad_update(id, "was completed already");
    }
    return std::nullopt;
  }

  bool finish_is_buffered(int64_t scheduled_id) const {
    return std::any_of(run_.state.buffered().begin(), run_.state.buffered().end(),
                       [&](const model::Event& event) {
                         return event.has_activity_ended() &&
                                event.activity_ended().scheduled_id() == scheduled_id;
                       });
  }

  static bool buffered_timer_fired(const Run& run, const std::string& id) {
    return std::any_of(
        run.state.buffered().begin(), run.state.buffered().end(), [&](const model::Event& event) {
          return event.kind() == model::TIMER_FIRED && event.timer_ended().timer_id() == id;
        });
  }

  const Run& run_;
  const Limits& limits_;
  int64_t activities_;
  int64_t children_;
  int64_t signals_ = 0;
  int64_t cancels_ = 0;
  int buffered_;
  int64_t event_id_;  // of the event that the command will become
  absl::flat_hash_set<std::string> new_activities_;
  // The ids that the scheduled events of this completion will have.
  absl::flat_hash_set<int64_t> new_activity_events_;
  absl::flat_hash_set<int64_t> canceled_;
  absl::flat_hash_set<std::string> new_timers_;
  absl::flat_hash_set<std::string> canceled_timers_;
  absl::flat_hash_set<std::string> new_children_;
  absl::flat_hash_set<std::string> new_updates_;
  absl::flat_hash_set<std::string> completed_updates_;
};

void cancel_activity_command(Transaction& tx, const model::ActivityCancelRequested& asked,
                             int64_t completed_id) {
  const int64_t scheduled_id = asked.scheduled_id();
  if (auto* activity = tx.run().find_activity(scheduled_id)) {
    request_cancel_activity(tx, *activity, asked.identity(), completed_id);
    return;
  }
  // It ended while this task was out: the request is recorded, the end is already in the buffer.
  model::Event event;
  event.set_kind(model::ACTIVITY_CANCEL_REQUESTED);
  event.mutable_activity_cancel_requested()->set_scheduled_id(scheduled_id);
  event.mutable_activity_cancel_requested()->set_workflow_task_completed_id(completed_id);
  tx.append(std::move(event));
}

void start_timer_command(Transaction& tx, model::Event draft, int64_t completed_id) {
  model::TimerState timer;
  timer.set_timer_id(draft.timer_started().timer_id());
  timer.set_fire_ns(add_saturated(tx.now, draft.timer_started().start_to_fire_ns()));
  if (draft.timer_started().has_step()) *timer.mutable_step() = draft.timer_started().step();
  draft.mutable_timer_started()->set_workflow_task_completed_id(completed_id);
  timer.set_started_id(tx.append(std::move(draft)));
  tx.add_timer(std::move(timer));
}

// The id of the timer's started event; takes back a fired event that is still in the buffer.
int64_t forget_timer(Transaction& tx, const std::string& id) {
  const auto pending = tx.run().timer_ids.find(id);
  if (pending != tx.run().timer_ids.end()) {
    const int64_t started_id = pending->second;
    tx.erase_timer(started_id);
    return started_id;
  }
  auto* buffered = tx.state().mutable_buffered();
  const auto fired = std::find_if(buffered->begin(), buffered->end(), [&](const model::Event& e) {
    return e.kind() == model::TIMER_FIRED && e.timer_ended().timer_id() == id;
  });
  FL_ASSERT(fired != buffered->end(), "the command was checked");
  const int64_t started_id = fired->timer_ended().started_id();
  tx.state().set_buffered_bytes(tx.state().buffered_bytes() -
                                static_cast<int64_t>(fired->ByteSizeLong()));
  buffered->erase(fired);
  return started_id;
}

void cancel_timer_command(Transaction& tx, model::Event draft, int64_t completed_id) {
  auto* ended = draft.mutable_timer_ended();
  ended->set_started_id(forget_timer(tx, ended->timer_id()));
  ended->set_workflow_task_completed_id(completed_id);
  tx.append(std::move(draft));
}

// What the worker says of an update. A rejected one leaves no event: only those who wait hear of
// it.
void answer_update(Transaction& tx, model::Event draft) {
  auto* about = draft.mutable_update_event();
  const std::string id = about->update_id();
  const auto kind = draft.kind();
  tx.update_changes().push_back({id, kind, std::move(*about->mutable_outcome())});
  if (kind == model::UPDATE_REJECTED) {
    forget_update(tx, id);
    return;
  }
  auto& update = tx.run().updates[id];
  update.set_update_id(id);
  // What was admitted has its request in the history.
  if (update.admitted_id() != 0) about->clear_request();
  update.clear_request();
  if (kind == model::UPDATE_COMPLETED) about->set_accepted_id(update.accepted_id());
  const int64_t event_id = tx.append(std::move(draft));
  kind == model::UPDATE_ACCEPTED ? update.set_accepted_id(event_id)
                                 : update.set_completed_id(event_id);
  tx.run().touched_updates.insert(id);
}

void apply_command(Transaction& tx, model::Event draft, int64_t completed_id) {
  const auto kind = draft.kind();
  switch (kind) {
    case model::ACTIVITY_SCHEDULED:
      draft.mutable_activity_scheduled()->set_workflow_task_completed_id(completed_id);
      schedule_activity(tx, std::move(draft));
      return;
    case model::ACTIVITY_CANCEL_REQUESTED:
      cancel_activity_command(tx, draft.activity_cancel_requested(), completed_id);
      return;
    case model::TIMER_STARTED:
      start_timer_command(tx, std::move(draft), completed_id);
      return;
    case model::TIMER_CANCELED:
      cancel_timer_command(tx, std::move(draft), completed_id);
      return;
    case model::CHILD_INITIATED:
      initiate_child(tx, std::move(draft), completed_id);
      return;
    case model::SIGNAL_EXTERNAL_INITIATED:
    case model::CANCEL_EXTERNAL_INITIATED:
      initiate_external(tx, std::move(draft), completed_id);
      return;
    case model::WAIT_OPENED:
      open_wait(tx, std::move(draft));
      return;
    case model::SELECTION_CANCELED:
      cancel_selected(tx, draft.selection());
      return;
    case model::UPDATE_APPLIED:
      end_update(tx, std::move(draft));
      return;
    case model::UPDATE_ACCEPTED:
    case model::UPDATE_COMPLETED:
    case model::UPDATE_REJECTED:
      if (is_durable(tx.state())) {
        end_update(tx, std::move(draft));
      } else {
        answer_update(tx, std::move(draft));
      }
      return;
    case model::SEARCH_ATTRIBUTES_UPSERTED:
    case model::PROPERTIES_MODIFIED:
      upsert(draft, &tx.state());
      if (is_durable(tx.state())) {
        *draft.mutable_command_recorded()->mutable_merged() =
            kind == model::PROPERTIES_MODIFIED ? tx.state().memo() : tx.state().search_attributes();
      }
      [[fallthrough]];
    case model::MARKER_RECORDED:
      draft.mutable_command_recorded()->set_workflow_task_completed_id(completed_id);
      tx.append(std::move(draft));
      return;
    default:
      FL_ASSERT(is_closing(kind), "a draft is one of the kinds that commands may ask for");
      draft.mutable_workflow_closed()->set_workflow_task_completed_id(completed_id);
      close_run(tx, std::move(draft));
  }
}

}  // namespace

void upsert(const model::Event& event, model::RunState* state) {
  auto* fields = event.kind() == model::PROPERTIES_MODIFIED ? state->mutable_memo()
                                                            : state->mutable_search_attributes();
  for (const auto& [key, value] : event.command_recorded().upserts()) {
    if (value.empty()) {
      fields->erase(key);
    } else {
      (*fields)[key] = value;
    }
  }
}

std::optional<CommandRefusal> check_commands(const Run& run, const Limits& limits,
                                             std::vector<model::Event>* commands) {
  Foresight foresight(run, limits);
  for (auto& command : *commands) {
    if (auto refusal = foresight.check(&command)) return refusal;
  }
  return std::nullopt;
}

void forget_update(Transaction& tx, const std::string& id) {
  if (tx.run().updates.erase(id) > 0) tx.run().touched_updates.insert(id);
}

void apply_commands(Transaction& tx, std::vector<model::Event> commands,
                    int64_t workflow_task_completed_id) {
  tx.begin_commands();
  for (auto& command : commands) {
    apply_command(tx, std::move(command), workflow_task_completed_id);
  }
  tx.end_commands();
}

}  // namespace fairlead::history
