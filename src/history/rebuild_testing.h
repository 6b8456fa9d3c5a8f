#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "history/rebuild.h"

namespace fairlead::history {

// What a history does not tell: what waits where, who was reached, and the server's own accounts.
inline void forget_untold(Run* run) {
  auto& state = run->state;
  if (state.workflow_task().virtual_events()) state.clear_workflow_task();
  if (state.has_workflow_task()) {
    auto* task = state.mutable_workflow_task();
    task->clear_stamp();
    task->clear_place();
    task->clear_schedule_to_start_deadline_ns();
    task->clear_original_scheduled_ns();
    task->clear_lease_key();
    // A task that its sticky worker never came for was offered to everyone without an event.
    task->clear_queue();
  }
  if (state.priority().ByteSizeLong() == 0) state.clear_priority();
  state.clear_task_attempt();
  state.clear_sticky();
  state.clear_last_stamp();
  state.clear_state_transitions();
  state.clear_batches();
  state.clear_has_no_pending();
  state.clear_armed_ns();
  state.clear_close_refused();
  state.clear_delete_at_ns();
  state.clear_next_run_id();
  state.clear_start_request_id();
  state.clear_start_door();
  // An answer that came during a task is written after its end.
  for (auto& point : *state.mutable_reset_points()) point.clear_is_resettable();
  if (state.ancestors_size() > 0) {
    // A reset run counts its time from the reset.
    state.clear_start_ns();
    state.clear_original_start_ns();
    state.clear_execution_ns();
    state.clear_execution_expiration_ns();
    state.clear_run_expiration_ns();
  }
  for (auto& [id, activity] : run->activities) {
    model::ActivityState told;
    told.set_scheduled_id(activity.scheduled_id());
    *told.mutable_scheduled() =
        activity.has_original() ? activity.original() : activity.scheduled();
    if (told.scheduled().priority().ByteSizeLong() == 0) told.mutable_scheduled()->clear_priority();
    // In a reset run it is anew, unless the workflow has asked for it since.
    if (state.ancestors_size() == 0) told.set_first_scheduled_ns(activity.first_scheduled_ns());
    told.set_cancel_requested_id(activity.cancel_requested_id());
    activity = std::move(told);
  }
  for (auto& [number, callback] : run->callbacks) {
    model::CallbackState told;
    told.set_number(number);
    told.set_door(callback.door());
    told.set_attached(callback.attached());
    told.set_registered_ns(callback.registered_ns());
    if (callback.attached()) told.set_request_id(callback.request_id());
    callback = std::move(told);
  }
  for (auto& [id, external] : run->externals) external.mutable_event()->clear_namespace_name();
  for (auto& [id, child] : run->children) {
    if (child.initiated().priority().ByteSizeLong() == 0) {
      child.mutable_initiated()->clear_priority();
    }
  }
}

template <typename Rows>
std::string rows_text(const Rows& rows) {
  std::string text;
  for (const auto& [id, row] : rows) absl::StrAppend(&text, id, ": ", row.ShortDebugString(), "\n");
  return text;
}

// Everything of a run that its history tells, for comparison.
inline std::string told_by_history(Run run) {
  forget_untold(&run);
  return absl::StrCat(run.state.DebugString(), rows_text(run.activities), rows_text(run.timers),
                      rows_text(run.children), rows_text(run.externals), rows_text(run.updates),
                      rows_text(run.callbacks), rows_text(run.requests));
}

// Whether the comparison makes sense: what is buffered is in the state and not in the history.
inline bool is_told_completely(const Run& run) { return run.state.buffered_size() == 0; }

// Who a run is, for a rebuild of it.
inline model::RunState identity_of(const model::RunState& state) {
  model::RunState who;
  who.set_namespace_num(state.namespace_num());
  who.set_namespace_id(state.namespace_id());
  who.set_workflow_id(state.workflow_id());
  who.set_run_id(state.run_id());
  who.set_flavour(state.flavour());
  who.set_user_metadata(state.user_metadata());
  *who.mutable_ancestors() = state.ancestors();
  who.set_reset_run_id(state.reset_run_id());
  who.set_reset_request_id(state.reset_request_id());
  return who;
}

}  // namespace fairlead::history
