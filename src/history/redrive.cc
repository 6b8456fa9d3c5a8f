#include "history/redrive.h"

#include "history/chain.h"
#include "history/lifecycle.h"

namespace fairlead::history {

model::RunState redriven_run(const model::RunState& failed, const std::string& run_id) {
  Successor successor;
  successor.run_id = run_id;
  successor.initiator = model::BY_WORKFLOW;
  model::RunState next;
  continue_chain(failed, successor, {}, &next);
  next.clear_execution_expiration_ns();
  next.clear_parent();
  next.clear_root();
  // Signals that its code has not looked at are still to come.
  for (const auto& message : failed.durable().messages()) {
    if (!message.is_update()) *next.mutable_durable()->add_messages() = message;
  }
  return next;
}

void redrive_run(Transaction& tx, Redrive redrive) {
  Beginning beginning;
  beginning.door = std::move(redrive.start_door);
  start_run(tx, beginning);
  for (auto& event : redrive.events) tx.append(std::move(event));
  tx.state().mutable_durable()->set_steps(redrive.steps);
}

}  // namespace fairlead::history
