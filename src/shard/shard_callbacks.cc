// Telling those outside how a run ended.
//
//   closing step   batch: the end, the callback's row (under way, until then), the wake-up
//   durable        the request goes out
//   answer         batch: the callback's row: delivered, refused, or when it is tried again
//
// A server that dies in between finds the wake-up, and the callback is made once more.

#include "base/assert.h"
#include "history/callbacks.h"
#include "shard/shard.h"
#include "store/keys.h"

namespace fairlead::shard {

void Shard::make_calls(Step& step, Step::Part& part) {
  if (part.tx.calls().empty()) return;
  struct Made {
    int64_t number = 0;
    int32_t attempts = 0;
    TimeNs until = 0;
    history::Outgoing request;
  };
  auto made = std::make_shared<std::vector<Made>>();
  step.after_write.push_back([this, made, entry = part.entry, numbers = part.tx.calls()] {
    const auto& run = entry->run;
    const auto ns = world_.namespaces->find_by_num(run.state.namespace_num());
    const std::string name = ns == nullptr ? "" : ns->name();
    const auto closing = event_bytes(*entry, run.state.next_event_id() - 1);
    const TimeNs until = now() + world_.limits->callback_timeout;
    for (const int64_t number : numbers) {
      const auto& callback = run.callbacks.at(number);
      made->push_back({number, callback.attempts(), until,
                       codec_of(*entry).call_back({run.state, name, closing, callback})});
    }
  });
  reply_after(step, [this, made, key = part.entry->key] {
    FL_ASSERT(world_.caller != nullptr, "who takes callbacks can make them");
    for (auto& one : *made) {
      world_.caller->call(std::move(one.request), one.until,
                          [this, key, number = one.number,
                           attempts = one.attempts](history::CallbackOutcome outcome) {
                            executor_->post([this, key, number, attempts, outcome] {
                              end_call(key, number, attempts, outcome);
                              schedule_tick();
                            });
                          });
    }
  });
}

void Shard::end_call(const std::string& run, int64_t number, int32_t attempts,
                     const history::CallbackOutcome& outcome) {
  if (is_closed_) return;
  with_entry(
      run,
      [this, number, attempts, outcome](RunEntry& entry) {
        if (!history::awaits_callback(entry.run, number, attempts)) return;
        auto step = begin(entry);
        history::end_callback(step->parts[0]->tx, number, outcome);
        finish(std::move(step));
      },
      [] {});  // deleted meanwhile
}

// A start has found the run open and leaves with it what it brought.
void Shard::attach_to(RunEntry& entry, StartRequest request, Reply<StartResult> reply) {
  StartResult result{entry.run.state.run_id(), entry.run.state.first_run_id(), false,
                     entry.run.state.status()};
  result.attached = request.attach->request_id;
  history::Attachment attachment;
  if (request.attach->request_id) attachment.request_id = std::move(request.request_id);
  if (request.attach->callbacks) attachment.callbacks = std::move(request.callbacks);
  attachment.envelope = std::move(request.attach->envelope);
  auto step = begin(entry);
  const auto status = history::attach(step->parts[0]->tx, std::move(attachment));
  if (!status.ok()) {
    unlock(entry);
    reply(status);
    return;
  }
  reply_after(*step, [reply = std::move(reply), result]() mutable { reply(std::move(result)); });
  finish(std::move(step));
}

}  // namespace fairlead::shard
