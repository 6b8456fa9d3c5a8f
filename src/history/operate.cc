#include "history/operate.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "history/activity.h"
#include "history/retry.h"
#include "history/standalone.h"
#include "history/workflow_task.h"

namespace fairlead::history {

namespace {

// Ids, not places in memory: an activity that ends moves the others.
using Ids = std::vector<int64_t>;

absl::StatusOr<Ids> select(const Run& run, const ActivitySelector& which) {
  if (!run.is_open()) {
    // It can still be described, so it cannot be said not to exist.
    if (is_standalone(run.state)) {
      return errors::failed_precondition("activity execution is not running");
    }
    return closed_run(run.state);
  }
  Ids found;
  for (const auto& [id, activity] : run.activities) {
    const auto& scheduled = activity.scheduled();
    const bool is_meant =
        which.by == ActivitySelector::By::kAll ||
        (which.by == ActivitySelector::By::kType ? scheduled.activity_type() == which.name
                                                 : scheduled.activity_id() == which.name);
    if (is_meant) found.push_back(id);
  }
  if (found.empty()) return errors::pending_activity_not_found();
  return found;
}

// Does something to each of them, until the run breaks a limit and closes.
template <typename Act>
void for_each(Run& run, const Ids& ids, Act act) {
  for (const int64_t id : ids) {
    auto* activity = run.find_activity(id);
    if (activity != nullptr) act(*activity);
  }
}

// How long an activity without a workflow that was started with a delay still waits for its time.
DurationNs delay_left(Transaction& tx) {
  const auto& state = tx.state();
  return is_standalone(state) ? std::max<DurationNs>(state.execution_ns() - tx.now, 0) : 0;
}

bool is_started(const model::ActivityState& activity) { return activity.started_ns() != 0; }

// Takes the attempt out of its queue, and away from a poll that is just about to get it.
void withdraw(Transaction& tx, model::ActivityState& activity) {
  tx.touch(activity);
  tx.drop(model::ACTIVITY_TASK, activity.mutable_place());
  activity.clear_place();
  activity.set_stamp(tx.next_stamp());
}

// The activity is tried again after the delay, unless its time ran out while nothing was tried.
void try_again(Transaction& tx, model::ActivityState& activity, DurationNs delay) {
  withdraw(tx, activity);
  if (gives_up_at(activity) <= tx.now) {
    time_out_activity(tx, activity, model::SCHEDULE_TO_CLOSE);
    return;
  }
  activity.set_scheduled_ns(add_saturated(tx.now, delay));
  activity.set_backing_off(true);
  if (delay == 0) offer_activity(tx, activity);
}

void change_retry(const RetryChange& change, model::RetryPolicy* policy) {
  if (change.initial_interval) policy->set_initial_interval_ns(*change.initial_interval);
  if (change.backoff_coefficient) policy->set_backoff_coefficient(*change.backoff_coefficient);
  if (change.maximum_interval) policy->set_maximum_interval_ns(*change.maximum_interval);
  if (change.maximum_attempts) policy->set_maximum_attempts(*change.maximum_attempts);
  if (change.non_retryable_error_types) {
    policy->mutable_non_retryable_error_types()->Assign(change.non_retryable_error_types->begin(),
                                                        change.non_retryable_error_types->end());
  }
}

// The options that the change makes of the present ones.
absl::StatusOr<model::ActivityScheduled> options_after(const model::RunState& run,
                                                       model::ActivityScheduled options,
                                                       const ActivityChange& change) {
  if (change.task_queue) options.set_task_queue(*change.task_queue);
  if (change.schedule_to_close) options.set_schedule_to_close_ns(*change.schedule_to_close);
  if (change.schedule_to_start) options.set_schedule_to_start_ns(*change.schedule_to_start);
  if (change.start_to_close) options.set_start_to_close_ns(*change.start_to_close);
  if (change.heartbeat) options.set_heartbeat_ns(*change.heartbeat);
  change_retry(change.retry, options.mutable_retry_policy());
  *options.mutable_priority() = changed(options.priority(), change.priority);
  if (const auto status = check_retry_policy(options.retry_policy()); !status.ok()) return status;
  if (!normalize_activity(&options, run)) {
    return errors::invalid_argument(absl::StrCat(
        "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. "
        "ActivityId=",
        options.activity_id(), " ActivityType=", options.activity_type()));
  }
  return options;
}

bool is_same(const google::protobuf::MessageLite& a, const google::protobuf::MessageLite& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Timeouts are counted from what they were counted from before. A task that waits moves if it now
// belongs elsewhere; a back-off has the length that the new policy gives it.
void set_options(Transaction& tx, model::ActivityState& activity,
                 model::ActivityScheduled options) {
  tx.touch(activity);
  const auto before = activity.scheduled();
  *activity.mutable_scheduled() = std::move(options);
  const auto& now = activity.scheduled();
  if (is_started(activity) || activity.has_pause()) return;
  if (activity.backing_off()) {
    const bool is_retry = activity.attempt() > 1;
    if (!is_retry || is_same(before.retry_policy(), now.retry_policy())) return;
    const DurationNs interval = retry_interval(now.retry_policy(), activity.attempt() - 1);
    activity.set_scheduled_ns(add_saturated(activity.last_attempt_complete_ns(), interval));
    if (activity.scheduled_ns() <= tx.now) offer_activity(tx, activity);
    return;
  }
  if (before.task_queue() == now.task_queue() && is_same(before.priority(), now.priority())) return;
  withdraw(tx, activity);
  offer_activity(tx, activity);
}

// The run's priority is another one: attempts that wait and take a part of theirs from it go to the
// end of the line where they belong now.
void move_heirs(Transaction& tx, const model::Priority& before) {
  const auto& now = tx.state().priority();
  for (auto& offer : tx.offers()) {
    const auto* activity =
        offer.kind == model::ACTIVITY_TASK ? tx.run().find_activity(offer.scheduled_id) : nullptr;
    if (activity == nullptr) continue;
    offer.priority = merge_priority(now, activity->scheduled().priority());
  }
  for (auto& [id, activity] : tx.run().activities) {
    const auto& own = activity.scheduled().priority();
    if (!activity.has_place() || is_same(merge_priority(before, own), merge_priority(now, own))) {
      continue;
    }
    withdraw(tx, activity);
    offer_activity(tx, activity);
  }
}

void restore_options(Transaction& tx, model::ActivityState& activity) {
  if (!activity.has_original()) return;
  auto original = std::move(*activity.mutable_original());
  activity.clear_original();
  set_options(tx, activity, std::move(original));
}

void reset(Transaction& tx, model::ActivityState& activity, const Reset& how, Delay delay) {
  tx.touch(activity);
  const bool was_paused = activity.has_pause();
  activity.set_attempt(1);
  if (how.restore_options) restore_options(tx, activity);
  if (!how.keep_paused) activity.clear_pause();
  if (is_started(activity)) {
    activity.set_reset(true);
    if (how.reset_heartbeat) activity.set_reset_heartbeat(true);
    return;
  }
  if (how.reset_heartbeat) forget_heartbeat(activity);
  if (activity.has_pause()) return;
  // The history of a workflow would tell of it; without one, only the activity itself can.
  if (!is_standalone(tx.state())) activity.clear_last_failure();
  // One that waits in its queue keeps its place there.
  if (was_paused || activity.backing_off()) try_again(tx, activity, delay());
}

}  // namespace

absl::Status pause_activities(Transaction& tx, const ActivitySelector& which,
                              const model::ActivityPause& pause) {
  const auto found = select(tx.run(), which);
  if (!found.ok()) return found.status();
  for (const int64_t id : *found) {
    const auto& activity = *tx.run().find_activity(id);
    if (activity.has_pause() && activity.pause().request_id() != pause.request_id()) {
      return errors::failed_precondition("activity is already paused");
    }
  }
  for_each(tx.run(), *found, [&](model::ActivityState& activity) {
    if (activity.has_pause()) return;
    if (!is_started(activity)) withdraw(tx, activity);
    *tx.touch(activity).mutable_pause() = pause;
    activity.mutable_pause()->set_since_ns(tx.now);
  });
  return absl::OkStatus();
}

absl::Status unpause_activities(Transaction& tx, const ActivitySelector& which, const Unpause& how,
                                Delay delay) {
  const auto found = select(tx.run(), which);
  if (!found.ok()) return found.status();
  for_each(tx.run(), *found, [&](model::ActivityState& activity) {
    if (!activity.has_pause()) return;
    tx.touch(activity).clear_pause();
    if (how.reset_attempts) activity.set_attempt(1);
    if (how.reset_heartbeat) forget_heartbeat(activity);
    if (!is_started(activity)) try_again(tx, activity, std::max(delay(), delay_left(tx)));
  });
  return absl::OkStatus();
}

absl::Status reset_activities(Transaction& tx, const ActivitySelector& which, const Reset& how,
                              Delay delay) {
  const auto found = select(tx.run(), which);
  if (!found.ok()) return found.status();
  for_each(tx.run(), *found,
           [&](model::ActivityState& activity) { reset(tx, activity, how, delay); });
  return absl::OkStatus();
}

absl::StatusOr<model::ActivityScheduled> change_activities(Transaction& tx,
                                                           const ActivitySelector& which,
                                                           const ActivityChange& change) {
  const auto found = select(tx.run(), which);
  if (!found.ok()) return found.status();
  std::vector<model::ActivityScheduled> options;
  for (const int64_t id : *found) {
    auto after = options_after(tx.state(), tx.run().find_activity(id)->scheduled(), change);
    if (!after.ok()) return after.status();
    options.push_back(std::move(*after));
  }
  for (size_t i = 0; i < found->size(); ++i) {
    auto& activity = *tx.run().find_activity((*found)[i]);
    if (!activity.has_original()) *activity.mutable_original() = activity.scheduled();
    set_options(tx, activity, options[i]);
  }
  return std::move(options.back());
}

absl::StatusOr<model::ActivityScheduled> restore_activities(Transaction& tx,
                                                            const ActivitySelector& which) {
  const auto found = select(tx.run(), which);
  if (!found.ok()) return found.status();
  for_each(tx.run(), *found,
           [&](model::ActivityState& activity) { restore_options(tx, activity); });
  return tx.run().find_activity(found->back())->scheduled();
}

model::Priority changed(model::Priority priority, const PriorityChange& change) {
  if (change.priority_key) priority.set_priority_key(*change.priority_key);
  if (change.fairness_key) priority.set_fairness_key(*change.fairness_key);
  if (change.fairness_weight) priority.set_fairness_weight(*change.fairness_weight);
  return priority;
}

void change_priority(Transaction& tx, const model::Priority& priority, std::string door,
                     std::string envelope) {
  const auto before = tx.state().priority();
  model::Event event;
  event.set_kind(model::WORKFLOW_OPTIONS_UPDATED);
  event.set_door(std::move(door));
  event.set_envelope(std::move(envelope));
  *event.mutable_workflow_options_updated()->mutable_priority() = priority;
  *tx.state().mutable_priority() = priority;
  tx.record(std::move(event));
  offer_workflow_task_again(tx);
  move_heirs(tx, before);
}

}  // namespace fairlead::history
