// Starting, signalling, cancelling, terminating and describing runs.

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/hosted.h"
#include "history/lifecycle.h"
#include "shard/shard.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

absl::Status already_started(const model::RunState& run, std::string_view message) {
  if (history::is_standalone(run)) {
    return errors::activity_already_started(run.start_request_id(), run.run_id());
  }
  return errors::workflow_already_started(message, run.start_request_id(), run.run_id(),
                                          run.first_run_id());
}

void keep_permit(StartRequest* request, std::optional<QueueHost::Handed> handed) {
  request->eager_granted = handed.has_value();
  if (!handed.has_value()) return;
  request->eager_permit = std::make_shared<Permit>(std::move(handed->permit));
  request->eager_key = std::move(handed->key);
}

std::string ids_of(const model::RunState& run) {
  return absl::StrCat(" WorkflowId: ", run.workflow_id(), ", RunId: ", run.run_id(), ".");
}

queue::Stream stream_of(const StartRequest& request) {
  return {request.version, ramp_slot(request.workflow_id)};
}

// Whether the reuse policy lets a new run follow this closed one.
absl::Status check_reuse(const model::RunState& closed, ReusePolicy policy) {
  if (policy == ReusePolicy::kRejectDuplicate) {
    return already_started(
        closed, absl::StrCat("Workflow execution already finished.", ids_of(closed),
                             " Workflow Id reuse policy: reject duplicate workflow Id."));
  }
  if (policy == ReusePolicy::kAllowDuplicateFailedOnly && closed.status() == model::COMPLETED) {
    return already_started(
        closed,
        absl::StrCat("Workflow execution already finished successfully.", ids_of(closed),
                     " Workflow Id reuse policy: allow duplicate workflow Id if last run failed."));
  }
  return absl::OkStatus();
}

StartResult result_of(const model::RunState& run, bool started) {
  return {run.run_id(), run.first_run_id(), started, run.status()};
}

void fill_state(model::RunState* state, const StartRequest& request, const std::string& run_id) {
  state->set_namespace_num(request.ns.value());
  state->set_namespace_id(request.namespace_id);
  state->set_workflow_id(request.workflow_id);
  state->set_run_id(run_id);
  state->set_first_run_id(run_id);
  state->set_workflow_type(request.workflow_type);
  state->set_task_queue(request.task_queue);
  state->set_execution_timeout_ns(request.execution_timeout);
  state->set_run_timeout_ns(request.run_timeout);
  state->set_task_timeout_ns(request.task_timeout);
  state->set_next_event_id(1);
  state->set_flavour(request.flavour);
  state->set_start_request_id(request.request_id);
  *state->mutable_priority() = request.priority;
  if (request.retry_policy.has_value()) *state->mutable_retry_policy() = *request.retry_policy;
  state->set_cron_schedule(request.cron_schedule);
  state->set_version(request.version);
  if (request.parent.has_value()) {
    *state->mutable_parent() = *request.parent;
    *state->mutable_root() = request.root;
  }
  if (request.schedule.has_value()) *state->mutable_schedule() = *request.schedule;
  state->set_user_metadata(request.user_metadata);
  for (const auto& [key, value] : request.memo) (*state->mutable_memo())[key] = value;
  for (const auto& [key, value] : request.search_attributes) {
    (*state->mutable_search_attributes())[key] = value;
  }
}

}  // namespace

void Shard::start_workflow(StartRequest request, Reply<StartResult> reply) {
  const auto current = current_run(request.ns, request.workflow_id, request.flavour);
  if (!current.ok() && !absl::IsNotFound(current.status())) {
    reply(current.status());
    return;
  }
  auto* entry = current.ok() ? runs_.find(*current) : nullptr;
  if (entry == nullptr) {
    create_run(std::make_unique<Step>(), std::move(request), std::move(reply));
    return;
  }
  if (entry->is_locked) {
    entry->waiting.push_back(
        [this, request = std::move(request), reply = std::move(reply)]() mutable {
          start_workflow(std::move(request), std::move(reply));
        });
    return;
  }

  const auto& run = entry->run.state;
  // The answer speaks of what an earlier step wrote, so it waits for that to be durable.
  const auto answer = [&](absl::StatusOr<StartResult> result) {
    world_.commits->after_durable([reply = std::move(reply), result = std::move(result)]() mutable {
      reply(std::move(result));
    });
  };
  if (!request.request_id.empty() && run.start_request_id() == request.request_id) {
    auto result = result_of(run, !history::is_standalone(run));
    result.run_id = run.first_run_id();
    // The first task of a start that was not heard of is given once more while it may still be
    // done.
    if (request.eager_identity.has_value() && entry->run.has_started_task() &&
        run.last_completed_task_started_id() == 0 && run.workflow_task().attempt() == 1) {
      result.eager_task = std::make_shared<WorkflowTask>(make_workflow_task(*entry, false));
    }
    answer(std::move(result));
  } else if (entry->run.requests.contains(request.request_id)) {
    auto result = result_of(run, false);
    result.attached = true;
    answer(std::move(result));
  } else if (entry->run.is_open() && run.flavour() != request.flavour) {
    answer(
        already_started(run, absl::StrCat("Workflow execution is already running.", ids_of(run))));
  } else if (!entry->run.is_open()) {
    if (const auto status = check_reuse(run, request.reuse); !status.ok()) {
      answer(status);
      return;
    }
    create_run(std::make_unique<Step>(), std::move(request), std::move(reply));
  } else if (request.conflict == ConflictPolicy::kUseExisting && request.signal.has_value()) {
    signal_existing(*entry, std::move(request), std::move(reply));
  } else if (request.conflict == ConflictPolicy::kUseExisting && request.attach.has_value()) {
    attach_to(*entry, std::move(request), std::move(reply));
  } else if (request.conflict == ConflictPolicy::kUseExisting) {
    answer(result_of(run, false));
  } else if (request.conflict == ConflictPolicy::kTerminateExisting) {
    create_run(begin(*entry), std::move(request), std::move(reply));
  } else {
    answer(
        already_started(run, absl::StrCat("Workflow execution is already running.", ids_of(run))));
  }
}

// Starts a new run. `step` may hold the run that it replaces, which is terminated in the same
// write.
void Shard::create_run(StepPtr step, StartRequest request, Reply<StartResult> reply) {
  if (request.eager_identity.has_value() && !request.eager_granted.has_value()) {
    ask_for_first_task(std::move(step), std::move(request), std::move(reply));
    return;
  }
  const std::string run_id = request.run_id.empty() ? make_uuid(random_, now()) : request.run_id;
  if (!step->parts.empty()) {
    history::terminate_by_server(step->parts[0]->tx, "TerminateIfRunning WorkflowIdReusePolicy",
                                 absl::StrCat("terminated by new runID: ", run_id));
  }
  if (request.request_id.empty()) request.request_id = make_uuid(random_, now());
  auto* entry = runs_.create(uuid_to_bytes(run_id));
  fill_state(&entry->run.state, request, run_id);
  starting_[current_row(entry->run.state)] = entry->key;
  auto& part = add_part(*step, *entry);
  const bool is_eager = request.eager_granted.value_or(false);
  if (request.activity.has_value() && request.flavour == model::DURABLE) {
    history::start_hosted(part.tx,
                          {0, std::move(request.door), std::move(request.envelope), false, {}},
                          std::move(*request.activity));
  } else if (request.activity.has_value()) {
    history::start_standalone(part.tx, std::move(*request.activity), request.start_delay);
  } else {
    history::start_run(part.tx,
                       {request.start_delay, std::move(request.door), std::move(request.envelope),
                        is_eager, std::move(request.callbacks)});
  }
  if (request.signal.has_value()) {
    (void)history::signal_run(part.tx, std::move(request.signal->door),
                              std::move(request.signal->envelope));
    step->batch.put(store::keys::request_id(id_, entry->key, request.request_id), "");
  }
  if (request.first_update != nullptr) {
    admit_update(*entry, std::move(request.first_update->request),
                 std::move(request.first_update->reply));
  }
  ++stats_.runs_started;
  auto result = std::make_shared<StartResult>(result_of(entry->run.state, true));
  if (is_eager) {
    part.tx.schedule_wanted_task();
    step->permits.push_back(std::move(*request.eager_permit));
    // Its queue has been asked.
    std::erase_if(part.tx.offers(), [](const history::TaskOffer& offer) {
      return offer.kind == model::WORKFLOW_TASK;
    });
    take_along(part, {*request.eager_identity, entry->run.state.start_request_id(), false},
               request.eager_key);
    step->after_write.push_back([this, entry, result] {
      result->eager_task = std::make_shared<WorkflowTask>(make_workflow_task(*entry, false));
    });
  }
  reply_after(*step, [reply = std::move(reply), result]() mutable { reply(std::move(*result)); });
  finish(std::move(step));
}

// Asks the queue of a new run's first task whether the caller may have it at once. A queue of
// another thread answers later, and then the start is looked at anew.
void Shard::ask_for_first_task(StepPtr step, StartRequest request, Reply<StartResult> reply) {
  model::QueueTarget target;
  target.set_name(request.task_queue);
  const auto queue = address_of(request.ns, model::WORKFLOW_TASK, target);
  Shard& owner = world_.peers->shard(owner_of(queue));
  const bool waits = request.start_delay > 0 || !request.cron_schedule.empty();
  if (waits || owner.executor().is_current()) {
    keep_permit(&request,
                waits ? std::nullopt
                      : owner.queues_.hand_over(queue, request.priority, shard::stream_of(request),
                                                {}, {&step->batch}));
    create_run(std::move(step), std::move(request), std::move(reply));
    return;
  }
  for (auto& part : step->parts) unlock(*part->entry);
  owner.executor().post(
      [this, &owner, queue, request = std::move(request), reply = std::move(reply)]() mutable {
        keep_permit(&request, owner.queues_.hand_over(queue, request.priority,
                                                      shard::stream_of(request), {}, {}));
        if (*request.eager_granted) {
          reply = give_back_unused(owner, queue, request.eager_key, std::move(reply));
        }
        executor_->post([this, request = std::move(request), reply = std::move(reply)]() mutable {
          start_workflow(std::move(request), std::move(reply));
        });
      });
}

// The place that the queue keeps for a first task is free again if the start comes to nothing.
Reply<StartResult> Shard::give_back_unused(Shard& owner, QueueAddress queue, std::string key,
                                           Reply<StartResult> reply) {
  return [&owner, queue = std::move(queue), key = std::move(key),
          reply = std::move(reply)](absl::StatusOr<StartResult> result) mutable {
    if (!result.ok() || result->eager_task == nullptr) {
      owner.executor().post([&owner, queue = std::move(queue), key = std::move(key)] {
        owner.queues_.release(queue, key);
        owner.schedule_tick();
      });
    }
    reply(std::move(result));
  };
}

// Signals the open run that a start with a signal found. Unlike a signal of its own it also ends
// the wait for the first task.
void Shard::signal_existing(RunEntry& entry, StartRequest request, Reply<StartResult> reply) {
  const auto run = entry.run.state.run_id();
  const auto result = result_of(entry.run.state, false);
  SignalRequest signal{{request.ns, request.workflow_id, run},
                       std::move(request.request_id),
                       std::move(request.signal->door),
                       std::move(request.signal->envelope)};
  signal.ends_delay = true;
  signal_workflow(std::move(signal),
                  [reply = std::move(reply), result](absl::StatusOr<Signaled> done) mutable {
                    if (!done.ok()) {
                      reply(done.status());
                    } else {
                      reply(result);
                    }
                  });
}

void Shard::signal_workflow(SignalRequest request, Reply<Signaled> reply) {
  const auto run = request.run;
  auto shared = std::make_shared<Reply<Signaled>>(std::move(reply));
  with_run(
      run,
      [this, request = std::move(request), shared](RunEntry& entry) mutable {
        auto& answer = *shared;
        const Signaled signaled{entry.run.state.run_id()};
        const auto seen_key = store::keys::request_id(id_, entry.key, request.request_id);
        // Also of a run that has closed since: the signal was taken, and its sender hears so.
        if (!request.request_id.empty()) {
          const auto seen = world_.store->get(seen_key);
          if (seen.ok() && seen->has_value()) {
            world_.commits->after_durable([shared, signaled] { (*shared)(signaled); });
            return;
          }
        }
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        const auto status =
            history::signal_run(tx, std::move(request.door), std::move(request.envelope),
                                request.origin.has_value() ? &*request.origin : nullptr);
        if (!status.ok()) {
          unlock(entry);
          answer(status);
          return;
        }
        if (request.ends_delay) tx.state().set_first_task_at_ns(0);
        if (!request.request_id.empty()) step->batch.put(seen_key, "");
        reply_after(*step, [shared, signaled] { (*shared)(signaled); });
        finish(std::move(step));
      },
      [shared](const absl::Status& status) { (*shared)(status); });
}

void Shard::cancel_workflow(CancelRequest request, Reply<Done> reply) {
  const auto run = request.run;
  const auto first_run_id = request.first_run_id;
  with_chain_run(
      run, first_run_id, std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<Done> answer) mutable {
        if (!entry.run.is_open() || entry.run.state.cancel_requested()) {
          world_.commits->after_durable([answer = std::move(answer)]() mutable { answer(Done{}); });
          return;
        }
        auto step = begin(entry);
        history::request_cancel(step->parts[0]->tx, std::move(request.door),
                                std::move(request.envelope),
                                request.origin.has_value() ? &*request.origin : nullptr);
        reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
        finish(std::move(step));
      });
}

void Shard::terminate_workflow(TerminateRequest request, Reply<Done> reply) {
  const auto run = request.run;
  const auto first_run_id = request.first_run_id;
  with_chain_run(run, first_run_id, std::move(reply),
                 [this, request = std::move(request)](RunEntry& entry, Reply<Done> answer) mutable {
                   if (!entry.run.is_open()) {
                     answer(errors::workflow_completed());
                     return;
                   }
                   auto step = begin(entry);
                   model::Event closing;
                   closing.set_kind(model::WORKFLOW_TERMINATED);
                   closing.set_door(std::move(request.door));
                   closing.set_envelope(std::move(request.envelope));
                   closing.mutable_workflow_closed();
                   history::terminate_run(step->parts[0]->tx, std::move(closing));
                   reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
                   finish(std::move(step));
                 });
}

void Shard::describe_workflow(RunRef run, Reply<RunView> reply) {
  with_chain_run(run, "", std::move(reply), [this](RunEntry& entry, Reply<RunView> answer) {
    RunView view;
    view.run = entry.run.state;
    view.run.clear_buffered();
    for (const auto& [id, activity] : entry.run.activities) view.activities.push_back(activity);
    for (const auto& [id, child] : entry.run.children) view.children.push_back(child);
    for (const auto& [number, callback] : entry.run.callbacks) view.callbacks.push_back(callback);
    for (const auto& [id, request] : entry.run.requests) view.requests.push_back(request);
    if (!entry.run.is_open()) show_left_open(entry.key, &view);
    if (history::is_standalone(entry.run.state)) {
      view.scheduled_event = event_bytes(entry, history::kStandaloneScheduledId);
      if (!entry.run.is_open()) view.ended_event = event_bytes(entry, view.run.next_event_id() - 1);
    }
    world_.commits->after_durable([view = std::move(view), answer = std::move(answer)]() mutable {
      answer(std::move(view));
    });
  });
}

// What was pending at the end is shown as it was.
void Shard::show_left_open(const std::string& key, RunView* view) {
  const auto row = world_.store->get(store::keys::left_open(id_, key));
  FL_ASSERT(row.ok(), "the store can be read");
  model::LeftOpen left;
  if (!row->has_value()) return;
  FL_ASSERT(left.ParseFromString(**row), "a row holds what its key says");
  view->activities.assign(left.activities().begin(), left.activities().end());
  view->children.assign(left.children().begin(), left.children().end());
  if (left.has_workflow_task()) *view->run.mutable_workflow_task() = left.workflow_task();
}

void Shard::reset_sticky(RunRef run, Reply<Done> reply) {
  with_chain_run(run, "", std::move(reply), [this](RunEntry& entry, Reply<Done> answer) {
    if (!entry.run.is_open()) {
      answer(errors::workflow_completed());
      return;
    }
    auto step = begin(entry);
    step->parts[0]->tx.state().clear_sticky();
    reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
    finish(std::move(step));
  });
}

}  // namespace fairlead::shard
