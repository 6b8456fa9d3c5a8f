// The end of a run's rows: because an operator wants it, or because its retention is over.

#include <string>
#include <vector>

#include "base/error.h"
#include "history/lifecycle.h"
#include "shard/shard.h"
#include "store/keys.h"

namespace fairlead::shard {

// Deleting is closing with no retention: the run's wake-up, which is in the same write, does the
// rest, after a crash as well.
void Shard::delete_workflow(RunRef run, Reply<Done> reply) {
  with_chain_run(run, "", std::move(reply), [this](RunEntry& entry, Reply<Done> answer) {
    auto step = begin(entry);
    auto& tx = step->parts[0]->tx;
    if (entry.run.is_open()) history::terminate_by_server(tx, "Delete workflow execution");
    tx.state().set_delete_at_ns(tx.now);
    reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
    finish(std::move(step));
  });
}

void Shard::erase_run(RunEntry& entry) {
  const auto& state = entry.run.state;
  const auto gone = history::missing_run(state.flavour(), state.workflow_id(), state.run_id());
  store::WriteBatch batch;
  wakeups_.disarm(state.armed_ns(), entry.key, &batch);
  const auto current = current_row(state);
  const auto row = world_.store->get(current);
  if (row.ok() && row->has_value() && **row == entry.key) batch.erase(current);
  batch.erase(store::keys::run(id_, entry.key));
  for (const auto& range :
       {store::keys::events(id_, entry.key), store::keys::request_ids(id_, entry.key),
        store::keys::pending(id_, entry.key)}) {
    batch.erase_range(range.begin, range.end);
  }
  world_.commits->write(batch);
  ++stats_.runs_deleted;
  auto waiters = std::move(entry.waiters);
  for (auto& waiter : waiters) {
    alarms_.cancel(waiter.alarm);
    waiter.reply(gone);
  }
  for (auto& waiter : entry.update_waiters) {
    alarms_.cancel(waiter.alarm);
    waiter.reply(gone);
  }
  // Those that travel with a workflow task and those that wait for a worker on their own.
  std::vector<std::string> queries;
  for (const auto& [id, query] : queries_) {
    if (query.run == entry.key) queries.push_back(id);
  }
  for (const auto& id : queries) finish_query(id, gone);
  runs_.erase(&entry);
}

}  // namespace fairlead::shard
