#pragma once

#include <cstdint>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "model/model.pb.h"

namespace fairlead::history {

// One run in memory: its state, its pending activities and timers, and which of their rows a step
// has changed. Ordered maps: a simulation that is replayed must meet things in the same order.
struct Run {
  model::RunState state;
  absl::btree_map<int64_t, model::ActivityState> activities;  // by scheduled event id
  absl::btree_map<std::string, int64_t> activity_ids;         // activity id -> scheduled event id
  absl::btree_map<int64_t, model::TimerState> timers;         // by started event id
  absl::btree_map<std::string, int64_t> timer_ids;
  absl::btree_map<int64_t, model::ChildState> children;      // by initiated event id
  absl::btree_map<int64_t, model::ExternalState> externals;  // by initiated event id
  absl::btree_map<std::string, model::UpdateState> updates;  // accepted ones, also when completed
  absl::btree_map<int64_t, model::CallbackState> callbacks;  // by number
  absl::btree_map<std::string, model::AttachedRequest> requests;

  // Rows to be written (still in the map above) or erased (no longer there) with the present step.
  absl::btree_set<int64_t> touched_activities;
  absl::btree_set<int64_t> touched_timers;
  absl::btree_set<int64_t> touched_children;
  absl::btree_set<int64_t> touched_externals;
  absl::btree_set<std::string> touched_updates;
  absl::btree_set<int64_t> touched_callbacks;
  absl::btree_set<std::string> touched_requests;

  bool has_pending_rows() const {
    return !activities.empty() || !timers.empty() || !children.empty() || !externals.empty() ||
           !updates.empty() || !callbacks.empty() || !requests.empty();
  }
  bool is_open() const { return state.status() == model::RUNNING; }
  bool has_started_task() const {
    return state.has_workflow_task() && state.workflow_task().started_id() != 0;
  }
  bool is_sticky() const { return state.has_sticky(); }

  model::ActivityState* find_activity(int64_t scheduled_id) {
    const auto found = activities.find(scheduled_id);
    return found == activities.end() ? nullptr : &found->second;
  }
  model::ActivityState* find_activity(const std::string& activity_id) {
    const auto found = activity_ids.find(activity_id);
    return found == activity_ids.end() ? nullptr : find_activity(found->second);
  }

  // Rebuilds the indexes after the rows were loaded.
  void add_loaded(model::ActivityState activity) {
    activity_ids[activity.scheduled().activity_id()] = activity.scheduled_id();
    activities[activity.scheduled_id()] = std::move(activity);
  }
  void add_loaded(model::TimerState timer) {
    timer_ids[timer.timer_id()] = timer.started_id();
    timers[timer.started_id()] = std::move(timer);
  }
  void add_loaded(model::ChildState child) { children[child.initiated_id()] = std::move(child); }
  void add_loaded(model::UpdateState update) { updates[update.update_id()] = std::move(update); }
  void add_loaded(model::CallbackState callback) {
    callbacks[callback.number()] = std::move(callback);
  }
  void add_loaded(model::AttachedRequest request) {
    requests[request.request_id()] = std::move(request);
  }
  void add_loaded(model::ExternalState external) {
    externals[external.initiated_id()] = std::move(external);
  }
};

}  // namespace fairlead::history
