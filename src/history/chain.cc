#include "history/chain.h"

#include <algorithm>

#include "base/cron.h"
#include "history/cancellation.h"
#include "history/durable.h"
#include "history/reset_points.h"
#include "history/retry.h"

namespace fairlead::history {

namespace {

// A run that runs out of time is retried as if an attempt had.
model::Failure timeout_failure() {
  model::Failure failure;
  failure.set_kind(model::Failure::TIMEOUT);
  failure.set_timeout_type(model::START_TO_CLOSE);
  failure.set_message("workflow timeout");
  return failure;
}

bool has_expired(const model::RunState& state, TimeNs at) {
  return state.execution_expiration_ns() != 0 && state.execution_expiration_ns() <= at;
}

// A workflow that does nothing but begin again would otherwise keep a worker busy for nothing.
DurationNs spaced(Transaction& tx, const model::RunState& state, DurationNs backoff) {
  const DurationNs lived = std::max<DurationNs>(0, tx.now - state.execution_ns());
  return std::max(backoff, tx.limits.continue_as_new_spacing - lived);
}

Successor continue_as_new(Transaction& tx, const model::RunState& state,
                          const model::ContinueAsNew& next) {
  Successor successor;
  successor.initiator =
      next.initiator() == model::INITIATOR_UNSPECIFIED ? model::BY_WORKFLOW : next.initiator();
  successor.backoff = spaced(tx, state, next.backoff_ns());
  return successor;
}

std::optional<Successor> retry(Transaction& tx, const model::RunState& state,
                               model::Event* closing) {
  auto* closed = closing->mutable_workflow_closed();
  closed->set_retry_state(model::RETRY_POLICY_NOT_SET);
  if (!state.has_retry_policy()) return std::nullopt;
  if (is_asked_to_stop(state)) {
    closed->set_retry_state(model::RETRY_CANCEL_REQUESTED);
    return std::nullopt;
  }
  const auto failure =
      closing->kind() == model::WORKFLOW_TIMED_OUT ? timeout_failure() : closed->failure();
  const TimeNs expires =
      state.execution_expiration_ns() != 0 ? state.execution_expiration_ns() : kNever;
  const auto decision =
      decide_retry(state.retry_policy(), state.attempt(), failure, tx.now, expires);
  closed->set_retry_state(decision.state);
  if (decision.state != model::RETRY_IN_PROGRESS) return std::nullopt;
  Successor successor;
  successor.initiator = model::BY_RETRY;
  successor.attempt = state.attempt() + 1;
  successor.backoff = spaced(tx, state, decision.interval);
  return successor;
}

std::optional<Successor> follow_schedule(Transaction& tx, const model::RunState& state) {
  if (state.cron_schedule().empty()) return std::nullopt;
  const auto delay = cron_delay(state.cron_schedule(), state.execution_ns(), tx.now);
  if (!delay.has_value() || has_expired(state, add_saturated(tx.now, *delay))) return std::nullopt;
  Successor successor;
  successor.initiator = model::BY_CRON;
  successor.backoff = *delay;
  return successor;
}

}  // namespace

std::optional<DurationNs> cron_delay(const std::string& schedule, TimeNs last, TimeNs now) {
  const auto cron = Cron::parse(schedule);
  if (!cron.ok()) return std::nullopt;
  const TimeNs next = cron->next(last, now);
  if (next == kNever) return std::nullopt;
  return (next - now + kSecond - 1) / kSecond * kSecond;
}

std::optional<Successor> decide_successor(Transaction& tx, model::Event* closing) {
  const auto& state = tx.state();
  switch (closing->kind()) {
    case model::WORKFLOW_CONTINUED_AS_NEW:
      return continue_as_new(tx, state, closing->workflow_closed().next());
    case model::WORKFLOW_TIMED_OUT:
      if (has_expired(state, tx.now)) {
        closing->mutable_workflow_closed()->set_retry_state(model::RETRY_TIMEOUT);
        return std::nullopt;
      }
      [[fallthrough]];
    case model::WORKFLOW_FAILED:
      if (auto successor = retry(tx, state, closing)) return successor;
      [[fallthrough]];
    case model::WORKFLOW_COMPLETED:
      return follow_schedule(tx, state);
    default:
      return std::nullopt;
  }
}

void continue_chain(const model::RunState& last, const Successor& successor,
                    const model::ContinueAsNew& asked, model::RunState* next) {
  next->set_namespace_num(last.namespace_num());
  next->set_namespace_id(last.namespace_id());
  next->set_workflow_id(last.workflow_id());
  next->set_run_id(successor.run_id);
  next->set_first_run_id(last.first_run_id());
  next->set_continued_run_id(last.run_id());
  next->set_flavour(last.flavour());
  if (last.has_durable()) {
    next->mutable_durable()->set_run_number(last.durable().run_number() + 1);
    inherit_request(last, next);
  }
  next->set_next_event_id(1);
  next->set_initiator(successor.initiator);
  next->set_attempt(successor.attempt);
  next->set_execution_timeout_ns(last.execution_timeout_ns());
  next->set_execution_expiration_ns(last.execution_expiration_ns());
  if (last.has_parent()) *next->mutable_parent() = last.parent();
  if (last.has_schedule()) *next->mutable_schedule() = last.schedule();
  if (last.has_root()) *next->mutable_root() = last.root();
  if (last.has_priority()) *next->mutable_priority() = last.priority();
  hand_on_reset_points(last, next);
  // A client that asks for its start again finds what became of it.
  next->set_start_request_id(last.start_request_id());

  // A workflow that continues says itself whether it goes on being retried and scheduled.
  const bool is_asked = successor.closing.kind() == model::WORKFLOW_CONTINUED_AS_NEW;
  next->set_workflow_type(is_asked ? asked.workflow_type() : last.workflow_type());
  next->set_task_queue(is_asked ? asked.task_queue() : last.task_queue());
  // Another queue has other workers.
  if (next->task_queue() == last.task_queue()) next->set_version(last.version());
  next->set_run_timeout_ns(is_asked ? asked.run_timeout_ns() : last.run_timeout_ns());
  next->set_task_timeout_ns(is_asked ? asked.task_timeout_ns() : last.task_timeout_ns());
  next->set_cron_schedule(is_asked ? asked.cron_schedule() : last.cron_schedule());
  if (is_asked ? asked.has_retry_policy() : last.has_retry_policy()) {
    *next->mutable_retry_policy() = is_asked ? asked.retry_policy() : last.retry_policy();
  }
  // A door that writes them as they change leaves it to the engine to hand them on.
  const bool keeps = is_durable(last);
  *next->mutable_memo() = keeps ? last.memo() : asked.memo();
  *next->mutable_search_attributes() = keeps ? last.search_attributes() : asked.search_attributes();
}

}  // namespace fairlead::history
