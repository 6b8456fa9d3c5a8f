// What workers and clients answer to activity tasks.

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "history/activity.h"
#include "shard/shard.h"

namespace fairlead::shard {

namespace {

model::Failure size_limit_failure(const char* message) {
  model::Failure failure;
  failure.set_kind(model::Failure::SERVER);
  failure.set_message(message);
  failure.set_non_retryable(true);
  return failure;
}

}  // namespace

void Shard::note_sign_of_life(Step& step, const model::ActivityState& activity) {
  if (activity.lease().session_id().empty()) return;
  const NamespaceNum ns(step.parts[0]->entry->run.state.namespace_num());
  step.sign_of_life = {ns, activity.lease().session_id(), activity.started_identity()};
}

void Shard::complete_activity(CompleteActivity request, Reply<Done> reply) {
  const auto token = request.token;
  // Found by its id, an activity may be completed before any worker has taken it.
  const bool must_be_started = token.scheduled_id != 0;
  with_activity(
      token, must_be_started, std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, model::ActivityState& activity,
                                           Reply<Done> answer) mutable {
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        if (static_cast<int64_t>(request.door.size()) > world_.limits->blob_bytes) {
          history::fail_activity(tx, activity, request.identity,
                                 size_limit_failure("Complete result exceeds size limit."));
        } else {
          history::complete_activity(tx, activity, request.identity, std::move(request.door));
        }
        reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
        finish(std::move(step));
      });
}

void Shard::fail_activity(FailActivity request, Reply<Done> reply) {
  const auto token = request.token;
  with_activity(token, true, std::move(reply),
                [this, request = std::move(request)](
                    RunEntry& entry, model::ActivityState& activity, Reply<Done> answer) mutable {
                  auto step = begin(entry);
                  auto& tx = step->parts[0]->tx;
                  if (request.heartbeat_details.has_value()) {
                    activity.set_heartbeat_details(std::move(*request.heartbeat_details));
                  }
                  history::fail_activity(tx, activity, request.identity,
                                         std::move(request.failure));
                  reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
                  finish(std::move(step));
                });
}

void Shard::cancel_activity(CancelActivity request, Reply<Done> reply) {
  const auto token = request.token;
  with_activity(token, true, std::move(reply),
                [this, request = std::move(request)](
                    RunEntry& entry, model::ActivityState& activity, Reply<Done> answer) mutable {
                  if (!activity.cancel_requested()) {
                    answer(errors::invalid_argument(
                        history::is_standalone(entry.run.state)
                            ? "unable to mark activity as canceled without activity being request "
                              "canceled first"
                            : "the activity's cancellation was not requested; complete or fail "
                              "it"));
                    return;
                  }
                  auto step = begin(entry);
                  history::cancel_activity(step->parts[0]->tx, activity, request.identity,
                                           std::move(request.door));
                  reply_after(*step, [answer = std::move(answer)]() mutable { answer(Done{}); });
                  finish(std::move(step));
                });
}

void Shard::heartbeat_activity(HeartbeatActivity request, Reply<HeartbeatResult> reply) {
  const auto token = request.token;
  with_activity(
      token, true, std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, model::ActivityState& activity,
                                           Reply<HeartbeatResult> answer) mutable {
        auto step = begin(entry);
        auto& tx = step->parts[0]->tx;
        HeartbeatResult result{activity.cancel_requested(), activity.has_pause(), activity.reset()};
        if (request.oversize) {
          result.cancel_requested = true;
          history::fail_activity(tx, activity, activity.started_identity(),
                                 size_limit_failure("Heartbeat details exceed size limit."));
        } else {
          history::heartbeat_activity(tx, activity, std::move(request.details));
          note_sign_of_life(*step, activity);
          result.beat_ns = tx.now;
          result.lease_end_ns = history::lease_end(activity);
        }
        reply_after(*step, [answer = std::move(answer), result]() mutable { answer(result); });
        finish(std::move(step));
      });
}

// What is seen is durable when it is told: an attempt that a crash takes back must not be
// confirmed.
void Shard::observe_activity(ObserveActivity request, Reply<ActivityClaim> reply) {
  const auto token = request.token;
  with_activity(token, true, std::move(reply),
                [this, renews = request.renews](RunEntry& entry, model::ActivityState& activity,
                                                Reply<ActivityClaim> answer) mutable {
                  ActivityClaim claim;
                  claim.expires_ns = history::lease_end(activity);
                  claim.seen_ns = now();
                  if (claim.expires_ns <= claim.seen_ns) {
                    answer(errors::lease_refused("lease_expired", activity.started_identity(),
                                                 absl::StrCat(claim.expires_ns)));
                    return;
                  }
                  if (!renews || activity.cancel_requested()) {
                    claim.activity = activity;
                    world_.commits->after_durable(
                        [answer = std::move(answer), claim = std::move(claim)]() mutable {
                          answer(std::move(claim));
                        });
                    return;
                  }
                  auto step = begin(entry);
                  history::renew_activity(step->parts[0]->tx, activity);
                  note_sign_of_life(*step, activity);
                  claim.expires_ns = history::lease_end(activity);
                  claim.activity = activity;
                  reply_after(*step,
                              [answer = std::move(answer), claim = std::move(claim)]() mutable {
                                answer(std::move(claim));
                              });
                  finish(std::move(step));
                });
}

void Shard::return_activity_task(TaskToken token) {
  with_activity(token, true, Reply<Done>([](absl::StatusOr<Done>) {}),
                [this](RunEntry& entry, model::ActivityState& activity, Reply<Done>) {
                  auto step = begin(entry);
                  history::return_activity(step->parts[0]->tx, activity);
                  finish(std::move(step));
                });
}

}  // namespace fairlead::shard
