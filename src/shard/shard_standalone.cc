// What only activities without a workflow are asked: to stop. Everything else is asked of them as
// of any run or any activity.

#include "base/error.h"
#include "history/standalone.h"
#include "shard/shard.h"

namespace fairlead::shard {

void Shard::stop_standalone(StopStandalone request, Reply<Done> reply) {
  const auto run = request.run;
  // One without an id is asked for anew each time.
  if (request.by.request_id.empty()) request.by.request_id = make_uuid(random_, now());
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<Done> answer) mutable {
        const auto is_new = request.terminates ? history::may_terminate(entry.run, request.by)
                                               : history::may_cancel(entry.run, request.by);
        if (!is_new.ok()) {
          answer(is_new.status());
          return;
        }
        if (!*is_new) {
          world_.commits->after_durable([answer = std::move(answer)]() mutable { answer(Done{}); });
          return;
        }
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        if (request.terminates) {
          history::terminate_standalone(tx, request.by);
        } else {
          history::cancel_standalone(tx, request.by);
        }
        reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
        finish(std::move(step));
      });
}

}  // namespace fairlead::shard
