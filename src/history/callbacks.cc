#include "history/callbacks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"

namespace fairlead::history {

namespace {

using model::CallbackState;

// Beyond the time that an attempt has: whoever makes it tells of its end in time.
constexpr DurationNs kGrace = 5 * kSecond;

int64_t next_number(const Run& run) {
  return run.callbacks.empty() ? 1 : run.callbacks.rbegin()->first + 1;
}

void add_callback(Transaction& tx, const std::string& door, const std::string& request_id,
                  bool attached) {
  CallbackState callback;
  callback.set_number(next_number(tx.run()));
  callback.set_door(door);
  callback.set_request_id(request_id);
  callback.set_attached(attached);
  callback.set_registered_ns(tx.now);
  tx.run().touched_callbacks.insert(callback.number());
  tx.run().add_loaded(std::move(callback));
}

void call(Transaction& tx, CallbackState& callback) {
  callback.set_stage(CallbackState::SCHEDULED);
  callback.set_due_ns(add_saturated(tx.now, tx.limits.callback_timeout + kGrace));
  tx.run().touched_callbacks.insert(callback.number());
  tx.call(callback.number());
}

// Doubles with every attempt that failed, up to a limit.
DurationNs pause_after(const Limits& limits, int32_t attempts) {
  DurationNs pause = limits.callback_retry_first;
  for (int32_t i = 1; i < attempts && pause < limits.callback_retry_longest; ++i) pause *= 2;
  return std::min(pause, limits.callback_retry_longest);
}

bool is_waiting(const CallbackState& callback) {
  return callback.stage() == CallbackState::SCHEDULED ||
         callback.stage() == CallbackState::BACKING_OFF;
}

}  // namespace

void begin_callbacks(Transaction& tx, const std::vector<std::string>& callbacks) {
  for (const auto& door : callbacks) {
    add_callback(tx, door, tx.state().start_request_id(), false);
  }
}

std::vector<std::string> inherited_callbacks(const Run& run, model::Initiator initiator) {
  std::vector<std::string> inherited;
  // A run that follows by its schedule is another one: the end of the first was the end.
  if (initiator == model::BY_CRON) return inherited;
  for (const auto& [number, callback] : run.callbacks) {
    if (callback.stage() == CallbackState::STANDBY) inherited.push_back(callback.door());
  }
  return inherited;
}

absl::Status attach(Transaction& tx, Attachment attachment) {
  auto& run = tx.run();
  if (!run.is_open()) return errors::workflow_completed();
  if (run.requests.contains(attachment.request_id)) return absl::OkStatus();
  const auto there = static_cast<int64_t>(run.callbacks.size());
  if (there + static_cast<int64_t>(attachment.callbacks.size()) > tx.limits.callbacks) {
    return errors::failed_precondition(absl::StrCat("cannot attach more than ", tx.limits.callbacks,
                                                    " callbacks to a workflow (", there,
                                                    " callbacks already attached)"));
  }
  model::Event event;
  event.set_kind(model::WORKFLOW_OPTIONS_UPDATED);
  event.set_door(std::move(attachment.door));
  event.set_envelope(std::move(attachment.envelope));
  auto* said = event.mutable_workflow_options_updated();
  said->set_attached_request_id(attachment.request_id);
  for (auto& door : attachment.callbacks) {
    add_callback(tx, door, attachment.request_id, true);
    said->add_attached_callbacks(std::move(door));
  }
  if (!attachment.request_id.empty()) {
    run.requests[attachment.request_id].set_request_id(attachment.request_id);
    run.touched_requests.insert(attachment.request_id);
  }
  tx.record(std::move(event));
  return absl::OkStatus();
}

void note_attached(Transaction& tx, const model::Event& event) {
  auto& run = tx.run();
  const auto found = run.requests.find(event.workflow_options_updated().attached_request_id());
  if (found == run.requests.end()) return;
  found->second.set_event_id(event.id());
  run.touched_requests.insert(found->first);
}

void fire_callbacks(Transaction& tx) {
  for (auto& [number, callback] : tx.run().callbacks) {
    if (callback.stage() == CallbackState::STANDBY) call(tx, callback);
  }
}

void pass_callback_time(Transaction& tx) {
  for (auto& [number, callback] : tx.run().callbacks) {
    if (is_waiting(callback) && callback.due_ns() <= tx.now) call(tx, callback);
  }
}

TimeNs callback_deadline(const Run& run) {
  TimeNs next = kNever;
  for (const auto& [number, callback] : run.callbacks) {
    if (is_waiting(callback)) next = std::min(next, callback.due_ns());
  }
  return next;
}

bool awaits_callback(const Run& run, int64_t number, int32_t attempts) {
  const auto found = run.callbacks.find(number);
  return found != run.callbacks.end() && found->second.stage() == CallbackState::SCHEDULED &&
         found->second.attempts() == attempts;
}

void end_callback(Transaction& tx, int64_t number, const CallbackOutcome& outcome) {
  auto& callback = tx.run().callbacks[number];
  FL_ASSERT(callback.stage() == CallbackState::SCHEDULED, "an attempt that is under way ends");
  callback.set_attempts(callback.attempts() + 1);
  callback.set_attempt_ended_ns(tx.now);
  callback.set_failure(outcome.failure);
  callback.set_due_ns(0);
  switch (outcome.kind) {
    case CallbackOutcome::Kind::kDelivered:
      callback.set_stage(CallbackState::SUCCEEDED);
      break;
    case CallbackOutcome::Kind::kRefused:
      callback.set_stage(CallbackState::FAILED);
      break;
    case CallbackOutcome::Kind::kFailed:
      callback.set_stage(CallbackState::BACKING_OFF);
      callback.set_due_ns(add_saturated(tx.now, pause_after(tx.limits, callback.attempts())));
      break;
  }
  tx.run().touched_callbacks.insert(number);
}

}  // namespace fairlead::history
