// A failed run of Durable Workflow goes on as another one; see history/redrive.h.

#include "base/error.h"
#include "history/redrive.h"
#include "shard/shard.h"

namespace fairlead::shard {

void Shard::redrive_run(RedriveRun request, Reply<Redriven> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& base, Reply<Redriven> answer) mutable {
        const auto& state = base.run.state;
        if (const auto& known = state.durable().redriven_run_id(); !known.empty()) {
          world_.commits->after_durable([answer = std::move(answer), known]() mutable {
            answer(Redriven{known, false});
          });
          return;
        }
        if (state.status() != model::FAILED) {
          answer(errors::lease_refused("run_not_failed"));
          return;
        }
        const auto current = current_run(request.run.ns, request.run.workflow_id);
        if (current.ok() && *current != base.key) {
          answer(errors::lease_refused("historical_run_command_rejected"));
          return;
        }
        std::string history;
        each_batch(base.key, 1, [&](int64_t, std::string_view batch) {
          history.append(batch);
          return static_cast<int64_t>(history.size()) < world_.limits->transaction_bytes;
        });
        // The new run's beginning is one write.
        if (static_cast<int64_t>(history.size()) >= world_.limits->transaction_bytes) {
          answer(errors::lease_refused("redrive_history_too_large"));
          return;
        }
        auto cut = request.cut(history);
        if (!cut.ok()) {
          answer(cut.status());
          return;
        }
        const std::string run_id = make_uuid(random_, now());
        auto step = begin(base);
        base.run.state.mutable_durable()->set_redriven_run_id(run_id);
        auto* entry = runs_.create(uuid_to_bytes(run_id));
        entry->run.state = history::redriven_run(state, run_id);
        starting_[current_row(request.run.ns, request.run.workflow_id, request.run.flavour)] =
            entry->key;
        history::redrive_run(add_part(*step, *entry).tx, *std::move(cut));
        ++stats_.runs_started;
        reply_after(*step, [answer = std::move(answer), run_id]() mutable {
          answer(Redriven{run_id, true});
        });
        finish(std::move(step));
      });
}

}  // namespace fairlead::shard
