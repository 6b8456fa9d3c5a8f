#include "history/hosted.h"

#include "base/assert.h"
#include "history/activity.h"

namespace fairlead::history {

namespace {

model::EventKind closing_kind(model::EventKind end) {
  switch (end) {
    case model::ACTIVITY_COMPLETED:
      return model::WORKFLOW_COMPLETED;
    case model::ACTIVITY_CANCELED:
      return model::WORKFLOW_CANCELED;
    default:
      FL_ASSERT(end == model::ACTIVITY_FAILED || end == model::ACTIVITY_TIMED_OUT,
                "an activity ends in one of four ways");
      return model::WORKFLOW_FAILED;
  }
}

}  // namespace

void start_hosted(Transaction& tx, const Beginning& beginning, model::Event draft) {
  auto& state = tx.state();
  auto* durable = state.mutable_durable();
  durable->set_hosts_activity(true);
  start_run(tx, beginning);
  auto* activity = draft.mutable_activity_scheduled();
  durable->set_steps(1);
  activity->mutable_step()->set_sequence(1);
  normalize_activity(activity, state);
  schedule_activity(tx, std::move(draft));
}

int64_t end_hosted(Transaction& tx, model::Event event) {
  model::Event closing;
  closing.set_kind(closing_kind(event.kind()));
  closing.set_door(tx.codec().end_host(event));
  closing.mutable_workflow_closed();
  const int64_t id = tx.append(std::move(event));
  close_run(tx, std::move(closing));
  return id;
}

}  // namespace fairlead::history
