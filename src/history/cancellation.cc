#include "history/cancellation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/activity.h"
#include "history/children.h"
#include "history/durable.h"
#include "history/lifecycle.h"
#include "history/selection.h"

namespace fairlead::history {

namespace {

// The exception that workflow code is told with, as it is named when the code lets it pass.
constexpr char kToldException[] = "WorkflowCancelled";

struct Range {
  int64_t base = 0;
  int64_t span = 1;
  bool contains(int64_t step) const { return base <= step && step < base + span; }
};

// What the call waits for.
Range range_of(const model::CancellationDelivery& at) {
  if (at.operation_sequence() != 0) return {at.operation_sequence(), at.operation_span()};
  return {at.sequence(), at.span()};
}

bool is_same(const model::CancellationDelivery& a, const model::CancellationDelivery& b) {
  return a.sequence() == b.sequence() && a.span() == b.span() && a.call_kind() == b.call_kind() &&
         a.operation_sequence() == b.operation_sequence() &&
         a.operation_span() == b.operation_span();
}

model::CancellationPolicy policy_of(const model::ActivityState& activity) {
  const auto policy = activity.scheduled().cancellation_policy();
  return policy == model::CANCELLATION_UNSPECIFIED ? model::CANCELLATION_TRY : policy;
}

model::CancellationPolicy policy_of(const model::ChildState& child) {
  const auto policy = child.initiated().cancellation_policy();
  return policy == model::CANCELLATION_UNSPECIFIED ? model::CANCELLATION_ABANDON : policy;
}

void note_open_steps(const Run& run, model::Cancellation* cancellation) {
  std::vector<int64_t> open;
  for (const auto& [id, activity] : run.activities) {
    open.push_back(activity.scheduled().step().sequence());
  }
  for (const auto& [id, timer] : run.timers) open.push_back(timer.step().sequence());
  for (const auto& [id, child] : run.children) open.push_back(child.initiated().step().sequence());
  for (const auto& wait : run.state.durable().waits()) open.push_back(wait.step().sequence());
  std::sort(open.begin(), open.end());
  open.erase(std::unique(open.begin(), open.end()), open.end());
  for (const int64_t step : open) cancellation->add_open_steps(step);
}

// Whether the call could wait for something when the request came: what had ended by then is the
// workflow's, and so is the call behind it.
bool was_open(const model::Cancellation& cancellation, const Range& range) {
  if (range.base > cancellation.steps()) return true;
  const auto& open = cancellation.open_steps();
  return std::any_of(open.begin(), open.end(), [&](int64_t step) { return range.contains(step); });
}

// Whether what stands at this step, if it has not ended, is what the worker takes it for.
bool fits(const Run& run, const std::string& kind, int64_t step) {
  if (kind == "parallel" || kind == "selection_handle") return true;
  const auto any = [&](const auto& map, const auto& step_of) {
    return std::any_of(map.begin(), map.end(),
                       [&](const auto& each) { return step_of(each.second) == step; });
  };
  const auto& waits = run.state.durable().waits();
  const bool is_wait = std::any_of(
      waits.begin(), waits.end(), [&](const auto& wait) { return wait.step().sequence() == step; });
  if (is_wait) return kind == "condition";
  if (any(run.activities, [](const auto& each) { return each.scheduled().step().sequence(); })) {
    return kind == "activity";
  }
  if (any(run.timers, [](const auto& each) { return each.step().sequence(); })) {
    return kind == "timer";
  }
  if (any(run.children, [](const auto& each) { return each.initiated().step().sequence(); })) {
    return kind == "child";
  }
  return true;
}

// Nothing of the group that the operation was in matters any more.
void set_apart(model::Step* step) {
  step->set_selects(false);
  step->set_group_base(0);
}

void stop_activities(Transaction& tx, const Range& range) {
  std::vector<int64_t> ids;
  for (auto& [id, activity] : tx.run().activities) {
    if (!range.contains(activity.scheduled().step().sequence())) continue;
    set_apart(tx.touch(activity).mutable_scheduled()->mutable_step());
    if (policy_of(activity) != model::CANCELLATION_ABANDON) ids.push_back(id);
  }
  for (const int64_t id : ids) {
    auto& activity = *tx.run().find_activity(id);
    model::StoppedActivity stopped;
    stopped.set_scheduled_id(id);
    stopped.set_activity_id(activity.scheduled().activity_id());
    stopped.set_attempt(activity.started_attempt());
    stopped.set_owner(activity.started_identity());
    stopped.set_step(activity.scheduled().step().sequence());
    stopped.set_is_awaited(policy_of(activity) == model::CANCELLATION_WAIT);
    const bool is_running = activity.started_ns() != 0;
    cancel_activity(tx, activity, "", "");
    if (!is_running) continue;  // nobody has to be told
    stopped.set_canceled_id(tx.state().next_event_id() - 1);
    *tx.state().mutable_durable()->mutable_cancellation()->add_stopped() = std::move(stopped);
  }
}

void stop_waiting(Transaction& tx, const Range& range) {
  std::vector<int64_t> timers;
  for (const auto& [id, timer] : tx.run().timers) {
    if (range.contains(timer.step().sequence())) timers.push_back(id);
  }
  for (const int64_t id : timers) cancel_durable_timer(tx, id);
  auto* waits = tx.state().mutable_durable()->mutable_waits();
  waits->erase(
      std::remove_if(waits->begin(), waits->end(),
                     [&](const auto& wait) { return range.contains(wait.step().sequence()); }),
      waits->end());
}

void stop_children(Transaction& tx, const Range& range) {
  std::vector<int64_t> ids;
  for (auto& [id, child] : tx.run().children) {
    if (!range.contains(child.initiated().step().sequence())) continue;
    set_apart(tx.touch(child).mutable_initiated()->mutable_step());
    if (policy_of(child) != model::CANCELLATION_ABANDON) ids.push_back(id);
  }
  for (const int64_t id : ids) {
    ask_child_to_stop(tx, tx.run().children.at(id));
    // One that was not started yet never is, and nothing will be heard of it.
    if (!tx.run().children.at(id).is_started()) tx.erase_child(id);
  }
}

std::optional<Delivery> awaited(const Run& run) {
  const auto& cancellation = run.state.durable().cancellation();
  for (const auto& stopped : cancellation.stopped()) {
    if (stopped.is_awaited() && stopped.acknowledged_id() == 0) return Delivery::kWaitsForActivity;
  }
  const auto range = range_of(cancellation.delivery());
  for (const auto& [id, child] : run.children) {
    if (range.contains(child.initiated().step().sequence()) &&
        policy_of(child) == model::CANCELLATION_WAIT) {
      return Delivery::kWaitsForChild;
    }
  }
  return std::nullopt;
}

model::Event cancellation_event(model::EventKind kind, const model::Cancellation& cancellation) {
  model::Event event;
  event.set_kind(kind);
  *event.mutable_cancellation()->mutable_context() = cancellation.context();
  return event;
}

void write_request(Transaction& tx) {
  auto* durable = tx.state().mutable_durable();
  auto* cancellation = durable->mutable_cancellation();
  cancellation->set_asked_ns(tx.now);
  cancellation->set_steps(durable->steps());
  note_open_steps(tx.run(), cancellation);
  cancellation->set_asked_id(
      tx.append(cancellation_event(model::CANCELLATION_REQUESTED, *cancellation)));
  durable->set_wakes(true);
}

model::CancellationEnd end_of(const model::Cancellation& cancellation, bool is_late) {
  model::CancellationEnd end;
  end.set_request_id(cancellation_request_id(cancellation));
  end.set_deadline_ns(cancellation.context().deadline_ns());
  end.set_delivered_id(cancellation.delivered_id());
  if (cancellation.delivered_id() != 0) {
    end.set_delivery_sequence(cancellation.delivery().sequence());
  }
  end.set_is_late(is_late);
  return end;
}

bool blocks(model::EventKind kind) {
  return kind == model::ACTIVITY_SCHEDULED || kind == model::TIMER_STARTED ||
         kind == model::CHILD_INITIATED || kind == model::WAIT_OPENED;
}

}  // namespace

bool is_asked_to_stop(const model::RunState& state) { return state.durable().has_cancellation(); }

const std::string& cancellation_request_id(const model::Cancellation& cancellation) {
  FL_ASSERT(cancellation.context().lineage_size() > 0, "a request names its run");
  return cancellation.context().lineage().rbegin()->request_id();
}

void ask_to_stop(Transaction& tx, model::CancellationContext context) {
  FL_ASSERT(!is_asked_to_stop(tx.state()), "a run is asked once");
  *tx.state().mutable_durable()->mutable_cancellation()->mutable_context() = std::move(context);
  write_request(tx);
}

void write_inherited_request(Transaction& tx) {
  if (is_asked_to_stop(tx.state())) write_request(tx);
}

void inherit_request(const model::RunState& last, model::RunState* next) {
  const auto& cancellation = last.durable().cancellation();
  if (!is_asked_to_stop(last) || cancellation.delivered_id() != 0) return;
  auto* context = next->mutable_durable()->mutable_cancellation()->mutable_context();
  *context = cancellation.context();
  context->mutable_lineage()->rbegin()->set_run_id(next->run_id());
}

model::CancellationContext context_for_child(const model::RunState& parent, TimeNs now) {
  if (is_asked_to_stop(parent)) return parent.durable().cancellation().context();
  model::CancellationContext context;
  auto* link = context.add_lineage();
  link->set_request_id(absl::StrCat(parent.run_id(), "/closed"));
  link->set_workflow_id(parent.workflow_id());
  link->set_run_id(parent.run_id());
  context.set_requester("workflow");
  context.set_source("parent_close_policy");
  context.set_requested_ns(now);
  context.set_deadline_ns(add_saturated(now, kCleanupTime));
  return context;
}

absl::Status check_delivery(const Run& run, const std::string& request_id,
                            const model::CancellationDelivery& at, TimeNs now) {
  const auto& state = run.state;
  const auto& cancellation = state.durable().cancellation();
  if (!is_asked_to_stop(state) || cancellation_request_id(cancellation) != request_id) {
    return errors::lease_refused("cancellation_request_mismatch");
  }
  if (cancellation.context().deadline_ns() <= now) {
    return errors::lease_refused("cancellation_deadline_expired");
  }
  if (cancellation.has_delivery()) {
    if (is_same(cancellation.delivery(), at)) return absl::OkStatus();
    return errors::lease_refused("cancellation_delivery_mismatch");
  }
  const int64_t steps = state.durable().steps();
  const auto range = range_of(at);
  const bool is_next = at.sequence() == steps + 1;
  const bool is_there = at.sequence() <= steps && at.span() <= steps - at.sequence() + 1;
  const bool names_earlier = at.operation_sequence() == 0 || range.base + range.span <= steps + 1;
  if ((!is_next && !is_there) || !names_earlier) {
    return errors::lease_refused("cancellation_delivery_sequence_mismatch");
  }
  if (!was_open(cancellation, range)) {
    return errors::lease_refused("cancellation_delivery_not_eligible");
  }
  if (!fits(run, at.call_kind(), at.sequence())) {
    return errors::lease_refused("cancellation_delivery_shape_mismatch");
  }
  return absl::OkStatus();
}

Delivery deliver_cancellation(Transaction& tx, const model::CancellationDelivery& at) {
  auto* durable = tx.state().mutable_durable();
  auto* cancellation = durable->mutable_cancellation();
  if (cancellation->delivered_id() != 0) return Delivery::kDelivered;
  if (!cancellation->has_delivery()) {
    *cancellation->mutable_delivery() = at;
    const auto range = range_of(at);
    interrupt_selections(durable, range.base, range.span);
    stop_activities(tx, range);
    stop_waiting(tx, range);
    stop_children(tx, range);
  }
  if (const auto waits = awaited(tx.run())) {
    complete_durable_task(tx, {});
    durable->set_wakes(false);  // nothing else can make its code go on
    return *waits;
  }
  durable->set_steps(std::max(durable->steps(), at.sequence() + at.span() - 1));
  auto event = cancellation_event(model::CANCELLATION_DELIVERED, *cancellation);
  *event.mutable_cancellation()->mutable_delivery() = at;
  cancellation->set_delivered_id(tx.append(std::move(event)));
  auto* task = tx.state().mutable_workflow_task();
  task->set_shown_until(tx.state().next_event_id());
  task->set_renewed_ns(tx.now);
  durable->set_wakes(false);
  return Delivery::kDelivered;
}

void show_request(Transaction& tx) {
  auto* durable = tx.state().mutable_durable();
  auto* task = tx.state().mutable_workflow_task();
  const auto& cancellation = durable->cancellation();
  if (!durable->has_cancellation() || cancellation.delivered_id() != 0 ||
      cancellation.asked_id() < task->shown_until()) {
    return;
  }
  task->set_shown_until(tx.state().next_event_id());
  durable->set_wakes(false);
}

std::optional<bool> wakes_stopping(const Run& run, const model::Step& step) {
  const auto& cancellation = run.state.durable().cancellation();
  if (!cancellation.has_delivery()) return std::nullopt;
  if (!range_of(cancellation.delivery()).contains(step.sequence())) return std::nullopt;
  return cancellation.delivered_id() == 0 && !awaited(run).has_value();
}

bool repeats_open_group(const model::RunState& state, std::vector<model::Event>& commands) {
  if (!is_asked_to_stop(state) || commands.empty()) return false;
  return std::all_of(commands.begin(), commands.end(), [&](model::Event& command) {
    const auto* step = mutable_step(&command);
    return step != nullptr && step->group_base() != 0 && !step->selects() &&
           step->sequence() != 0 && step->sequence() <= state.durable().steps();
  });
}

bool goes_on_to_deliver(const model::RunState& state, const std::vector<model::Event>& commands) {
  if (!is_asked_to_stop(state) || state.durable().cancellation().delivered_id() != 0) return false;
  return !commands.empty() && std::none_of(commands.begin(), commands.end(), [](const auto& each) {
    return blocks(each.kind()) || each.has_update_event() || each.has_workflow_closed();
  });
}

void close_as_canceled(const model::RunState& state, model::Event* closing) {
  const auto& cancellation = state.durable().cancellation();
  if (!is_asked_to_stop(state) || cancellation.delivered_id() == 0) return;
  const auto& failure = closing->workflow_closed().failure();
  // Cleaning up may fail, and then that is how the run has ended.
  if (closing->kind() == model::WORKFLOW_FAILED && failure.type() != kToldException) return;
  model::Event canceled;
  canceled.set_kind(model::WORKFLOW_CANCELED);
  canceled.mutable_workflow_closed()->set_reason(cancellation.context().reason());
  *canceled.mutable_workflow_closed()->mutable_cancellation() = end_of(cancellation, false);
  *closing = std::move(canceled);
}

TimeNs cancellation_deadline(const model::RunState& state) {
  return is_asked_to_stop(state) ? state.durable().cancellation().context().deadline_ns() : kNever;
}

void expire_cancellation(Transaction& tx) {
  const auto& cancellation = tx.state().durable().cancellation();
  model::Event closing;
  closing.set_kind(model::WORKFLOW_CANCELED);
  closing.mutable_workflow_closed()->set_reason(cancellation.context().reason());
  *closing.mutable_workflow_closed()->mutable_cancellation() = end_of(cancellation, true);
  terminate_run(tx, std::move(closing));
}

const model::StoppedActivity* find_stopped(const model::RunState& state, int64_t scheduled_id,
                                           int32_t attempt) {
  for (const auto& stopped : state.durable().cancellation().stopped()) {
    if (stopped.scheduled_id() == scheduled_id && stopped.attempt() == attempt) return &stopped;
  }
  return nullptr;
}

bool acknowledge_stop(Transaction& tx, int64_t scheduled_id, int32_t attempt) {
  auto* durable = tx.state().mutable_durable();
  auto* all = durable->mutable_cancellation()->mutable_stopped();
  const auto stopped = std::find_if(all->begin(), all->end(), [&](const auto& each) {
    return each.scheduled_id() == scheduled_id && each.attempt() == attempt;
  });
  FL_ASSERT(stopped != all->end(), "a stop was looked for before");
  if (stopped->acknowledged_id() != 0) return false;
  stopped->set_acknowledged_ns(tx.now);
  if (!tx.run().is_open()) {
    // Nothing follows the closing event: the cancellation of the attempt stands for it.
    stopped->set_acknowledged_id(stopped->canceled_id());
    return true;
  }
  auto event = cancellation_event(model::ACTIVITY_STOP_ACKNOWLEDGED, durable->cancellation());
  *event.mutable_cancellation()->mutable_stopped() = *stopped;
  stopped->set_acknowledged_id(tx.append(std::move(event)));
  model::Step step;
  step.set_sequence(stopped->step());
  if (stopped->is_awaited() && wakes_stopping(tx.run(), step).value_or(false)) {
    durable->set_wakes(true);
  }
  return true;
}

}  // namespace fairlead::history
