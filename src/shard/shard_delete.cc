// The end of a run's rows: because an operator wants it, or no longer wants its namespace, or
// because its retention is over.

#include <memory>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/error.h"
#include "history/lifecycle.h"
#include "shard/shard.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {
// What a turn may read, and how long others have the shard to themselves then.
constexpr size_t kRowsPerTurn = 256;
constexpr DurationNs kTurnEvery = 10 * kMillisecond;
constexpr DurationNs kPassEvery = kSecond;
}  // namespace

// Deleting is closing with no retention: the run's wake-up, which is in the same write, does the
// rest, after a crash as well.
void Shard::delete_workflow(RunRef run, Reply<Done> reply) {
  with_chain_run(run, "", std::move(reply), [this](RunEntry& entry, Reply<Done> answer) {
    delete_entry(entry, [answer = std::move(answer)]() mutable { answer(Done{}); });
  });
}

void Shard::delete_entry(RunEntry& entry, Job then) {
  auto step = begin(entry);
  auto& tx = step->parts[0]->tx;
  if (entry.run.is_open()) history::terminate_by_server(tx, "Delete workflow execution");
  tx.state().set_delete_at_ns(tx.now);
  reply_after(*step, std::move(then));
  finish(std::move(step));
}

// One pass after the other over all runs, until one finds nothing: what was under way when the
// namespace was deleted may have started a run behind the pass.
struct Shard::Purge {
  NamespaceNum ns;
  std::function<void()> done;
  std::string from;  // the next row; empty: a new pass
  bool has_found = false;
};

void Shard::purge_namespace(NamespaceNum ns, std::function<void()> done) {
  go_on(std::make_shared<Purge>(Purge{ns, std::move(done), "", false}));
}

void Shard::go_on(const std::shared_ptr<Purge>& purge) {
  if (is_closed_) return;
  const auto range = store::keys::runs(id_);
  std::vector<std::string> found;
  size_t rows = 0;
  std::string rest;
  const auto visit = [&](std::string_view key, std::string_view value) {
    if (rows++ == kRowsPerTurn) {
      rest = key;
      return false;
    }
    model::RunState state;
    FL_ASSERT(state.ParseFromArray(value.data(), static_cast<int>(value.size())),
              "a run's row is a run's state");
    if (state.namespace_num() == purge->ns.value()) {
      found.emplace_back(key.substr(range.begin.size()));
    }
    return true;
  };
  const auto status =
      world_.store->scan(purge->from.empty() ? range.begin : purge->from, range.end, visit);
  FL_ASSERT(status.ok(), "the store can be read");
  for (const auto& key : found) {
    with_entry(
        key, [this](RunEntry& entry) { delete_entry(entry, [] {}); }, [] {});
  }
  // Schedules first, so that they do not start what is deleted here.
  if (purge->from.empty()) purge->has_found |= schedules_.purge(purge->ns);
  purge->from = rest;
  purge->has_found |= !found.empty();
  const bool is_over = rest.empty();
  if (is_over && !purge->has_found) {
    purge->done();
    return;
  }
  if (is_over) purge->has_found = false;
  alarms_.set(now() + (is_over ? kPassEvery : kTurnEvery), [this, purge] { go_on(purge); });
  schedule_tick();
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
