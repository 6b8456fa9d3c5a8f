// Beginning a run again from one of its workflow tasks.
//
//   step    base, or the current run:  terminated, unless it is closed
//           base:                      remembers the new run
//           new run:                   the shared events as they are, then what history/reset.h
//           adds
//
// One batch, as always: there is no moment at which the workflow has no run, or two.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/lifecycle.h"
#include "history/operate.h"
#include "shard/shard.h"
#include "shard/stored_events.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

// Keeps a run in memory while others are looked for.
class Pin {
 public:
  explicit Pin(RunEntry* entry) : entry_(entry), was_locked_(entry->is_locked) {
    entry_->is_locked = true;
  }
  ~Pin() { entry_->is_locked = was_locked_; }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  RunEntry* const entry_;
  const bool was_locked_;
};

// The first event that a run does not share with this ancestor; 0: it is none.
int64_t shared_below(const model::RunState& state, const std::string& ancestor_run_id) {
  for (const auto& ancestor : state.ancestors()) {
    if (ancestor.run_id() == ancestor_run_id) return ancestor.events_below();
  }
  return 0;
}

void operate_on_new_run(history::Transaction& tx, const ChangeRunOptions& change) {
  const auto priority = history::changed(tx.state().priority(), change.priority);
  if (priority.SerializeAsString() == tx.state().priority().SerializeAsString()) return;
  history::change_priority(tx, priority, change.door, change.envelope);
}

void operate_on_new_run(history::Transaction& tx, const SignalRequest& signal) {
  // More than a run may have were refused.
  (void)history::signal_run(tx, signal.door, signal.envelope);
}

}  // namespace

void Shard::reset_workflow(ResetRequest request, Reply<ResetResult> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& base, Reply<ResetResult> answer) mutable {
        auto* current = current_beside(base);
        if (current != nullptr && current->is_locked) {
          current->waiting.push_back(
              [this, request = std::move(request), answer = std::move(answer)]() mutable {
                reset_workflow(std::move(request), std::move(answer));
              });
          return;
        }
        if (current == nullptr) current = &base;
        auto known = made_before(request.request_id, *current, base);
        if (known.empty()) return fork_run(base, *current, request, std::move(answer));
        world_.commits->after_durable(
            [answer = std::move(answer), known = std::move(known)]() mutable {
              answer(ResetResult{std::move(known)});
            });
      });
}

// The workflow's current run if that is another one.
RunEntry* Shard::current_beside(RunEntry& base) {
  const Pin stays(&base);
  const auto& state = base.run.state;
  const auto key = current_run(NamespaceNum(state.namespace_num()), state.workflow_id());
  return key.ok() && *key != base.key ? runs_.find(*key) : nullptr;
}

// The run that this request has made when it was heard before, or nothing.
std::string Shard::made_before(const std::string& request_id, RunEntry& current, RunEntry& base) {
  if (current.run.state.reset_request_id() == request_id) return current.run.state.run_id();
  if (base.run.state.reset_run_id().empty()) return "";
  const Pin base_stays(&base);
  const Pin current_stays(&current);
  const auto* last = runs_.find(uuid_to_bytes(base.run.state.reset_run_id()));
  if (last == nullptr || last->run.state.reset_request_id() != request_id) return "";
  return last->run.state.run_id();
}

void Shard::fork_run(RunEntry& base, RunEntry& current, const ResetRequest& request,
                     Reply<ResetResult> reply) {
  const auto& state = base.run.state;
  if (request.event_id <= 1 || request.event_id >= state.next_event_id()) {
    reply(errors::invalid_argument(
        "Workflow task finish ID must be > 1 && <= workflow last event ID."));
    return;
  }
  const history::Fork fork{state.run_id(), make_uuid(random_, now()), request.request_id,
                           request.reason, request.namespace_name};
  history::Rebuild rebuild(history::descendant(state, request.event_id, fork));
  auto step = std::make_unique<Step>();
  const auto key = uuid_to_bytes(fork.run_id);
  int64_t batches = 0;
  each_batch(base.key, 1, [&](int64_t first_id, std::string_view batch) {
    size_t shared = 0;
    for_each_event(batch, first_id, [&](int64_t id, std::string_view framed) {
      if (id >= request.event_id) return;
      rebuild.apply(world_.codec->read_event(framed), static_cast<int64_t>(framed.size()));
      shared += framed.size();
    });
    if (shared == 0) return false;
    ++batches;
    step->batch.put(store::keys::events(id_, key, first_id), std::string(batch.substr(0, shared)));
    return shared == batch.size();
  });
  if (!history::may_begin_again(rebuild.run())) {
    reply(errors::invalid_argument(
        absl::StrCat("Can only reset workflow to event ID in range [WorkflowTaskScheduled +1, "
                     "WorkflowTaskStarted + 1]: ",
                     request.event_id)));
    return;
  }
  const auto signals = std::count_if(
      request.operations.begin(), request.operations.end(),
      [](const auto& operation) { return std::holds_alternative<SignalRequest>(operation); });
  if (signals > 0 && state.signals() + signals > world_.limits->signals) {
    reply(errors::invalid_argument("exceeded workflow execution limit for signal events"));
    return;
  }
  absl::btree_map<int64_t, std::string> promised;
  for (const auto& [id, event] : rebuild.unanswered()) {
    const auto row = world_.store->get(store::keys::letter(id_, base.key, id));
    model::Letter letter;
    if (row.ok() && row->has_value() && letter.ParseFromString(**row) && letter.has_start_child()) {
      promised[id] = letter.to().run_id();
    }
  }

  const auto heir = state.reset_run_id();
  if (current.run.is_open()) history::end_for_reset(add_part(*step, current).tx, fork);
  if (!base.is_locked) add_part(*step, base);
  base.run.state.set_reset_run_id(fork.run_id);

  auto* entry = runs_.create(key);
  entry->run = std::move(rebuild.run());
  entry->run.state.set_batches(batches);
  starting_[current_row(request.run.ns, request.run.workflow_id, request.run.flavour)] = key;
  auto& tx = add_part(*step, *entry).tx;
  history::begin_again(tx, rebuild, fork);
  reapply_chain(*step, tx, base, request);
  reapply_heirs(*step, tx, heir, request.event_id);
  for (const auto& operation : request.operations) {
    std::visit([&tx](const auto& asked) { operate_on_new_run(tx, asked); }, operation);
  }
  history::ask_again(tx, rebuild, promised);
  entry->recall_updates();
  ++stats_.runs_started;
  reply_after(*step, [reply = std::move(reply), run_id = fork.run_id]() mutable {
    reply(ResetResult{std::move(run_id)});
  });
  finish(std::move(step));
}

// Gives the new run once more what its base has been given since, and those that continued it.
void Shard::reapply_chain(Step& step, history::Transaction& tx, const RunEntry& base,
                          const ResetRequest& request) {
  history::Reapply wanted;
  wanted.signals = !request.skips_signals;
  wanted.updates = !request.skips_updates;
  wanted.answers_below = request.event_id;
  reapply_run(step, tx, base.key, request.event_id, wanted);
  copy_request_ids(step, tx, base.key);
  wanted.answers_below = 0;
  const auto* last = &base.run.state;
  while (last->status() == model::CONTINUED_AS_NEW) {
    auto* next = runs_.find(uuid_to_bytes(last->next_run_id()));
    if (next == nullptr) return;
    reapply_run(step, tx, next->key, 1, wanted);
    copy_request_ids(step, tx, next->key);
    last = &next->run.state;
  }
}

// Earlier resets of the same run have made heirs of it, one after the other. What the base had
// asked for and was answered later was told to them.
void Shard::reapply_heirs(Step& step, history::Transaction& tx, std::string heir,
                          int64_t event_id) {
  const auto base_run_id = tx.state().ancestors(0).run_id();
  while (!heir.empty() && heir != tx.state().run_id()) {
    const auto* entry = runs_.find(uuid_to_bytes(heir));
    if (entry == nullptr) return;
    const int64_t shared = shared_below(entry->run.state, base_run_id);
    heir = entry->run.state.reset_run_id();
    if (shared == 0) continue;
    const history::Reapply answers{false, false, false, std::min(shared, event_id)};
    reapply_run(step, tx, entry->key, shared, answers);
  }
}

void Shard::reapply_run(Step& step, history::Transaction& tx, const std::string& key, int64_t from,
                        const history::Reapply& wanted) {
  const auto reapply = [&](int64_t first_id, std::string_view batch) {
    for_each_event(batch, first_id, [&](int64_t id, std::string_view framed) {
      if (id >= from) history::reapply(tx, world_.codec->read_event(framed), wanted);
    });
    return true;
  };
  each_batch(key, from, reapply);
  // What its end, in this very step, has brought to light.
  for (const auto& part : step.parts) {
    if (part->entry->key != key || part->tx.events().empty()) continue;
    reapply(part->tx.first_event_id(), part->tx.events());
  }
}

// Who sends a signal again that was heard of before is told so.
void Shard::copy_request_ids(Step& step, history::Transaction& tx, const std::string& key) {
  const auto seen = store::keys::request_ids(id_, key);
  const auto mine = store::keys::request_ids(id_, uuid_to_bytes(tx.state().run_id()));
  const auto status =
      world_.store->scan(seen.begin, seen.end, [&](std::string_view row, std::string_view value) {
        step.batch.put(mine.begin + std::string(row.substr(seen.begin.size())), std::string(value));
        return true;
      });
  FL_ASSERT(status.ok(), "the store can be read");
}

// The run that goes on with the first events of this one, if there is one: what belongs to such an
// event is its matter now.
RunRef Shard::heir_of(RunRef run, int64_t event_id) {
  const auto key = current_run(run.ns, run.workflow_id);
  const auto* current = key.ok() ? runs_.find(*key) : nullptr;
  if (current == nullptr) return run;
  if (event_id < shared_below(current->run.state, run.run_id)) {
    run.run_id = current->run.state.run_id();
  }
  return run;
}

}  // namespace fairlead::shard
