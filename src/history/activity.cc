#include "history/activity.h"

#include <algorithm>

#include "base/assert.h"
#include "history/durable.h"
#include "history/retry.h"
#include "history/standalone.h"

namespace fairlead::history {

namespace {

DurationNs capped(DurationNs value, DurationNs cap) {
  return cap > 0 && (value == 0 || value > cap) ? cap : value;
}

// A failure that is kept only to be shown must not make the state grow without bound.
void shorten_failure(model::Failure* failure, int64_t bytes_max) {
  if (static_cast<int64_t>(failure->heartbeat_details().size()) > bytes_max) {
    failure->clear_heartbeat_details();  // the activity itself keeps them
  }
  if (static_cast<int64_t>(failure->door().size()) <= bytes_max) return;
  model::Failure shortened;
  shortened.set_kind(model::Failure::SERVER);
  shortened.set_message("the failure of the last attempt is too large to be kept");
  *failure = std::move(shortened);
}

// Workers replay no success and no failure of an activity that was not started. A timeout or a
// cancellation may come to one that was only scheduled.
bool needs_start(model::EventKind outcome) {
  return outcome == model::ACTIVITY_COMPLETED || outcome == model::ACTIVITY_FAILED;
}

// The started event of the attempt that ended, shown only now. 0 if it went to the buffer or there
// is none. Who ends an attempt that no worker has is shown as its starter.
int64_t record_started(Transaction& tx, const model::ActivityState& activity,
                       model::EventKind outcome, const std::string& ended_by) {
  const bool was_started = activity.started_ns() != 0;
  if (!was_started && !needs_start(outcome)) return 0;
  model::Event event;
  event.set_kind(model::ACTIVITY_STARTED);
  event.set_time_ns(was_started ? activity.started_ns() : tx.now);
  auto* started = event.mutable_activity_started();
  started->set_scheduled_id(activity.scheduled_id());
  started->set_identity(was_started ? activity.started_identity() : ended_by);
  started->set_request_id(activity.request_id());
  started->set_attempt(activity.attempt());
  if (activity.has_last_failure()) *started->mutable_last_failure() = activity.last_failure();
  if (activity.scheduled().has_step()) *started->mutable_step() = activity.scheduled().step();
  return tx.record(std::move(event));
}

// Writes the outcome and forgets the activity.
void end_activity(Transaction& tx, model::ActivityState& activity, model::EventKind kind,
                  model::ActivityEnded ended, std::string door) {
  const int64_t scheduled_id = activity.scheduled_id();
  ended.set_scheduled_id(scheduled_id);
  if (activity.scheduled().has_step()) {
    *ended.mutable_step() = activity.scheduled().step();
    ended.set_attempt(activity.attempt());
  }
  ended.set_started_id(record_started(tx, activity, kind, ended.identity()));
  model::Event event;
  event.set_kind(kind);
  event.set_door(std::move(door));
  *event.mutable_activity_ended() = std::move(ended);
  // Erased first: writing the event may close the run if it breaks a limit.
  tx.erase_activity(scheduled_id);
  tx.record(std::move(event));
}

// The last attempt has failed. Of an activity without a workflow that is told after its end, too.
void note_last_failure(Transaction& tx, model::ActivityState& activity, model::Failure failure) {
  if (!is_standalone(tx.state())) return;
  shorten_failure(&failure, tx.limits.last_failure_bytes);
  *activity.mutable_last_failure() = std::move(failure);
  activity.set_last_attempt_complete_ns(tx.now);
}

// While it is paused nothing is tried, so neither attempts nor time run out. An operator who pauses
// an activity on its last attempt does not make it fail.
RetryDecision decide(const Transaction& tx, const model::ActivityState& activity,
                     const model::Failure& failure) {
  if (activity.cancel_requested()) return {model::RETRY_CANCEL_REQUESTED};
  const int32_t failures = activity.attempt() - activity.lost_attempts();
  const auto decision = decide_retry(activity.scheduled().retry_policy(), failures, failure, tx.now,
                                     gives_up_at(activity));
  const bool ran_out = decision.state == model::RETRY_MAXIMUM_ATTEMPTS_REACHED ||
                       decision.state == model::RETRY_TIMEOUT;
  if (activity.has_pause() && ran_out) return {model::RETRY_IN_PROGRESS};
  return decision;
}

void retry_later(Transaction& tx, model::ActivityState& activity, DurationNs interval,
                 model::Failure failure) {
  tx.touch(activity);
  tx.give_back(activity);
  shorten_failure(&failure, tx.limits.last_failure_bytes);
  *activity.mutable_last_failure() = std::move(failure);
  activity.set_last_worker_identity(activity.started_identity());
  activity.set_last_attempt_complete_ns(tx.now);
  activity.set_attempt(activity.attempt() + 1);
  activity.set_scheduled_ns(add_saturated(tx.now, interval));
  activity.set_started_ns(0);
  activity.clear_started_identity();
  activity.clear_request_id();
  if (activity.reset_heartbeat()) forget_heartbeat(activity);
  activity.set_reset(false);
  activity.set_reset_heartbeat(false);
  activity.set_backing_off(true);
  if (interval == 0 && !activity.has_pause()) offer_activity(tx, activity);
}

}  // namespace

void forget_heartbeat(model::ActivityState& activity) {
  activity.clear_heartbeat_details();
  // While a worker has the attempt, its time goes on from the last one.
  if (activity.started_ns() == 0) activity.clear_heartbeat_ns();
}

TimeNs gives_up_at(const model::ActivityState& activity) {
  const DurationNs limit = activity.scheduled().schedule_to_close_ns();
  return limit > 0 ? add_saturated(activity.first_scheduled_ns(), limit) : kNever;
}

bool normalize_activity(model::ActivityScheduled* activity, const model::RunState& run) {
  if (is_durable(run)) {
    if (activity->task_queue().empty()) activity->set_task_queue(run.task_queue());
    return true;
  }
  const DurationNs run_timeout = run.run_timeout_ns();
  DurationNs to_close = activity->schedule_to_close_ns();
  DurationNs to_start = activity->schedule_to_start_ns();
  DurationNs attempt = activity->start_to_close_ns();
  if (to_close > 0) {
    to_start = capped(to_start, to_close);
    attempt = capped(attempt, to_close);
  } else if (attempt > 0) {
    to_close = run_timeout;
    if (to_start == 0) to_start = run_timeout;
  } else {
    return false;
  }
  if (run_timeout > 0) {
    to_close = capped(to_close, run_timeout);
    to_start = capped(to_start, run_timeout);
    attempt = capped(attempt, run_timeout);
    if (activity->heartbeat_ns() > 0) {
      activity->set_heartbeat_ns(std::min(activity->heartbeat_ns(), run_timeout));
    }
  }
  activity->set_schedule_to_close_ns(to_close);
  activity->set_schedule_to_start_ns(to_start);
  activity->set_start_to_close_ns(attempt);
  if (activity->heartbeat_ns() > attempt) activity->set_heartbeat_ns(attempt);
  if (activity->task_queue().empty()) activity->set_task_queue(run.task_queue());
  apply_retry_defaults(activity->mutable_retry_policy());
  return true;
}

model::Priority merge_priority(const model::Priority& base, const model::Priority& over) {
  model::Priority merged = base;
  if (over.priority_key() != 0) merged.set_priority_key(over.priority_key());
  if (!over.fairness_key().empty()) merged.set_fairness_key(over.fairness_key());
  if (over.fairness_weight() != 0) merged.set_fairness_weight(over.fairness_weight());
  return merged;
}

void offer_activity(Transaction& tx, model::ActivityState& activity) {
  FL_ASSERT(!activity.has_pause(), "nothing of a paused activity goes to a queue");
  tx.touch(activity);
  activity.set_backing_off(false);
  activity.set_stamp(tx.next_stamp());
  model::QueueTarget queue;
  queue.set_name(activity.scheduled().task_queue());
  tx.offer({model::ACTIVITY_TASK, std::move(queue), activity.scheduled_id(), activity.stamp(),
            merge_priority(tx.state().priority(), activity.scheduled().priority())});
}

void schedule_activity(Transaction& tx, model::Event draft, DurationNs delay) {
  const bool is_eager = draft.activity_scheduled().eager() &&
                        draft.activity_scheduled().task_queue() == tx.state().task_queue();
  draft.mutable_activity_scheduled()->clear_eager();
  model::ActivityState activity;
  *activity.mutable_scheduled() = draft.activity_scheduled();
  const int64_t id = tx.append(std::move(draft));
  activity.set_scheduled_id(id);
  activity.set_attempt(1);
  activity.set_first_scheduled_ns(add_saturated(tx.now, delay));
  activity.set_scheduled_ns(activity.first_scheduled_ns());
  activity.set_backing_off(delay > 0);
  tx.run().add_loaded(std::move(activity));
  if (delay > 0) {
    tx.touch(tx.run().activities[id]);
    return;
  }
  offer_activity(tx, tx.run().activities[id]);
  tx.offers().back().is_eager = is_eager;
}

const model::ActivityState* start_activity(Transaction& tx, int64_t scheduled_id, uint64_t stamp,
                                           const Taker& taker) {
  if (!tx.run().is_open()) return nullptr;
  auto* activity = tx.run().find_activity(scheduled_id);
  if (activity == nullptr || activity->stamp() != stamp || activity->started_ns() != 0 ||
      activity->has_pause()) {
    return nullptr;
  }
  tx.touch(*activity);
  activity->clear_place();
  activity->set_started_ns(tx.now);
  activity->set_started_identity(taker.identity);
  activity->set_last_worker_identity(taker.identity);
  activity->set_request_id(taker.request_id);
  activity->set_started_attempt(activity->attempt());
  activity->set_renewed_ns(0);
  if (is_standalone(tx.state())) note_standalone_start(tx);
  return activity;
}

void lose_activity(Transaction& tx, model::ActivityState& activity) {
  activity.set_attempt(activity.attempt() + 1);
  activity.set_lost_attempts(activity.lost_attempts() + 1);
  return_activity(tx, activity);
}

void return_activity(Transaction& tx, model::ActivityState& activity) {
  tx.touch(activity);
  tx.give_back(activity);
  activity.set_started_ns(0);
  activity.clear_started_identity();
  activity.clear_request_id();
  if (activity.reset_heartbeat()) forget_heartbeat(activity);
  activity.set_reset(false);
  activity.set_reset_heartbeat(false);
  if (!activity.has_pause()) offer_activity(tx, activity);
}

void complete_activity(Transaction& tx, model::ActivityState& activity, const std::string& identity,
                       std::string door) {
  activity.set_last_attempt_complete_ns(tx.now);
  model::ActivityEnded ended;
  ended.set_identity(identity);
  end_activity(tx, activity, model::ACTIVITY_COMPLETED, std::move(ended), std::move(door));
}

void fail_activity(Transaction& tx, model::ActivityState& activity, const std::string& identity,
                   model::Failure failure) {
  const auto decision = decide(tx, activity, failure);
  if (decision.state == model::RETRY_IN_PROGRESS) {
    retry_later(tx, activity, decision.interval, std::move(failure));
    return;
  }
  note_last_failure(tx, activity, failure);
  model::ActivityEnded ended;
  ended.set_identity(identity);
  ended.set_retry_state(decision.state);
  *ended.mutable_failure() = std::move(failure);
  end_activity(tx, activity, model::ACTIVITY_FAILED, std::move(ended), "");
}

void cancel_activity(Transaction& tx, model::ActivityState& activity, const std::string& identity,
                     std::string door) {
  model::ActivityEnded ended;
  ended.set_identity(identity);
  ended.set_latest_cancel_requested_id(activity.cancel_requested_id());
  end_activity(tx, activity, model::ACTIVITY_CANCELED, std::move(ended), std::move(door));
}

namespace {

const char* timeout_name(model::TimeoutType type) {
  switch (type) {
    case model::START_TO_CLOSE:
      return "activity StartToClose timeout";
    case model::SCHEDULE_TO_START:
      return "activity ScheduleToStart timeout";
    case model::SCHEDULE_TO_CLOSE:
      return "activity ScheduleToClose timeout";
    case model::HEARTBEAT:
      return "activity Heartbeat timeout";
    default:
      return "activity timeout";
  }
}

model::Failure timeout_failure(const model::ActivityState& activity, model::TimeoutType type) {
  model::Failure failure;
  failure.set_kind(model::Failure::TIMEOUT);
  failure.set_message(timeout_name(type));
  failure.set_timeout_type(type);
  failure.set_heartbeat_details(activity.heartbeat_details());
  return failure;
}

}  // namespace

void time_out_activity(Transaction& tx, model::ActivityState& activity, model::TimeoutType type) {
  auto failure = timeout_failure(activity, type);
  const auto decision = decide(tx, activity, failure);
  if (decision.state == model::RETRY_IN_PROGRESS) {
    retry_later(tx, activity, decision.interval, std::move(failure));
    return;
  }
  const bool ends_attempt = type == model::START_TO_CLOSE || type == model::HEARTBEAT;
  const auto last_failure = ends_attempt ? failure : model::Failure();
  const bool would_retry = ends_attempt || !is_standalone(tx.state());
  if (decision.state == model::RETRY_TIMEOUT && type != model::SCHEDULE_TO_START && would_retry) {
    // It would have been tried again, were there time: what is reported is the lack of time.
    failure = timeout_failure(activity, model::SCHEDULE_TO_CLOSE);
    failure.set_message(
        "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up "
        "retrying");
  }
  if (activity.has_last_failure()) *failure.mutable_cause() = activity.last_failure();
  if (ends_attempt) note_last_failure(tx, activity, last_failure);
  model::ActivityEnded ended;
  ended.set_retry_state(decision.state);
  *ended.mutable_failure() = std::move(failure);
  end_activity(tx, activity, model::ACTIVITY_TIMED_OUT, std::move(ended), "");
}

void heartbeat_activity(Transaction& tx, model::ActivityState& activity, std::string details) {
  tx.touch(activity);
  activity.set_heartbeat_ns(tx.now);
  activity.set_heartbeat_details(std::move(details));
  if (is_standalone(tx.state())) note_standalone_heartbeat(tx);
}

TimeNs lease_end(const model::ActivityState& activity) {
  const DurationNs lease = activity.scheduled().lease_ns();
  if (lease <= 0) return kNever;
  return add_saturated(
      std::max({activity.started_ns(), activity.heartbeat_ns(), activity.renewed_ns()}), lease);
}

void renew_activity(Transaction& tx, model::ActivityState& activity) {
  tx.touch(activity).set_renewed_ns(tx.now);
}

void request_cancel_activity(Transaction& tx, model::ActivityState& activity,
                             const std::string& identity, int64_t workflow_task_completed_id) {
  model::Event event;
  event.set_kind(model::ACTIVITY_CANCEL_REQUESTED);
  event.mutable_activity_cancel_requested()->set_scheduled_id(activity.scheduled_id());
  event.mutable_activity_cancel_requested()->set_workflow_task_completed_id(
      workflow_task_completed_id);
  const int64_t id = tx.append(std::move(event));
  tx.touch(activity);
  activity.set_cancel_requested(true);
  activity.set_cancel_requested_id(id);
  if (activity.started_ns() != 0) return;
  model::ActivityEnded ended;
  ended.set_latest_cancel_requested_id(id);
  ended.set_canceled_before_start(true);
  ended.set_identity(identity);
  end_activity(tx, activity, model::ACTIVITY_CANCELED, std::move(ended), "");
}

}  // namespace fairlead::history
