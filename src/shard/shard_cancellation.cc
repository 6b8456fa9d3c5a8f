// Runs of Durable Workflow that are asked to stop and may clean up; see history/cancellation.h.

#include "base/error.h"
#include "history/cancellation.h"
#include "history/durable.h"
#include "history/hosted.h"
#include "shard/shard.h"

namespace fairlead::shard {

void Shard::ask_to_stop(AskToStop request, Reply<AskedToStop> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<AskedToStop> answer) mutable {
        if (history::is_asked_to_stop(entry.run.state)) {
          world_.commits->after_durable(
              [answer = std::move(answer), asked = AskedToStop{false, entry.run.state}]() mutable {
                answer(std::move(asked));
              });
          return;
        }
        const auto seen = look_for_receipt(entry, request.run, "", "", true);
        if (!seen.ok()) {
          answer(seen.status());
          return;
        }
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        const auto receipt = note_command(*step, entry, "", "");
        model::CancellationContext context;
        auto* link = context.add_lineage();
        link->set_request_id(receipt.command_id);
        link->set_workflow_id(tx.state().workflow_id());
        link->set_run_id(tx.state().run_id());
        if (request.reason.has_value()) context.set_reason(*request.reason);
        context.set_requester("client");
        context.set_source("control_plane");
        context.set_requested_ns(tx.now);
        context.set_deadline_ns(add_saturated(tx.now, request.cleanup_time));
        history::ask_to_stop(tx, std::move(context));
        reply_after(*step,
                    [answer = std::move(answer), asked = AskedToStop{true, tx.state()}]() mutable {
                      answer(std::move(asked));
                    });
        finish(std::move(step));
      });
}

void Shard::deliver_cancellation(DeliverCancellation request, Reply<CancellationDelivered> reply) {
  const auto token = request.token;
  with_lease<CancellationDelivered>(
      token, std::move(reply),
      [this, request = std::move(request)](RunEntry& entry,
                                           Reply<CancellationDelivered> answer) mutable {
        const auto status =
            history::check_delivery(entry.run, request.request_id, request.at, now());
        if (!status.ok()) {
          answer(status);
          return;
        }
        auto step = begin(entry);
        const CancellationDelivered done{
            entry.run.state.run_id(),
            history::deliver_cancellation(step->parts[0]->tx, request.at)};
        reply_after(*step, [answer = std::move(answer), done]() mutable { answer(done); });
        finish(std::move(step));
      });
}

// What is told of a stop is durable: a worker acts on it.
void Shard::stop_of_activity(StopOfActivity request, Reply<ActivityStopped> reply) {
  const auto run = request.token.run();
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<ActivityStopped> answer) mutable {
        const auto& token = request.token;
        const auto& state = entry.run.state;
        const auto* stopped = history::find_stopped(state, token.scheduled_id, token.attempt);
        if (stopped == nullptr) {
          answer(errors::lease_refused("activity_cancellation_not_recorded"));
          return;
        }
        if (stopped->owner() != token.owner) {
          answer(errors::lease_refused("lease_owner_mismatch", stopped->owner()));
          return;
        }
        const auto& cancellation = state.durable().cancellation();
        const auto& known = history::cancellation_request_id(cancellation);
        if (request.acknowledges && request.request_id != known) {
          answer(errors::lease_refused("cancellation_request_mismatch"));
          return;
        }
        ActivityStopped told{*stopped, cancellation.context(), false};
        if (!request.acknowledges || stopped->acknowledged_id() != 0) {
          world_.commits->after_durable(
              [answer = std::move(answer), told = std::move(told)]() mutable {
                answer(std::move(told));
              });
          return;
        }
        auto step = begin(entry);
        told.is_new =
            history::acknowledge_stop(step->parts[0]->tx, token.scheduled_id, token.attempt);
        told.activity = *history::find_stopped(state, token.scheduled_id, token.attempt);
        reply_after(*step, [answer = std::move(answer), told = std::move(told)]() mutable {
          answer(std::move(told));
        });
        finish(std::move(step));
      });
}

}  // namespace fairlead::shard
