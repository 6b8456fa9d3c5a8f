// What operators do to runs and to their pending activities.

#include "base/error.h"
#include "history/operate.h"
#include "shard/shard.h"

namespace fairlead::shard {

template <typename T, typename Decide>
void Shard::operate(const RunRef& run, Reply<T> reply, Decide decide) {
  with_chain_run(run, "", std::move(reply),
                 [this, decide = std::move(decide)](RunEntry& entry, Reply<T> answer) mutable {
                   auto step = begin(entry);
                   absl::StatusOr<T> result = decide(step->parts[0]->tx);
                   if (!result.ok()) {
                     unlock(entry);
                     answer(result.status());
                     return;
                   }
                   reply_after(*step,
                               [answer = std::move(answer), result = std::move(result)]() mutable {
                                 answer(std::move(result));
                               });
                   finish(std::move(step));
                 });
}

namespace {

absl::StatusOr<Done> done(const absl::Status& status) {
  if (!status.ok()) return status;
  return Done{};
}

}  // namespace

DurationNs Shard::draw(DurationNs jitter) {
  if (jitter <= 0) return 0;
  return static_cast<DurationNs>(random_.below(static_cast<uint64_t>(jitter)));
}

void Shard::pause_activities(PauseActivities request, Reply<Done> reply) {
  const auto run = request.run;
  operate(run, std::move(reply), [request = std::move(request)](history::Transaction& tx) {
    return done(history::pause_activities(tx, request.which, request.pause));
  });
}

void Shard::unpause_activities(UnpauseActivities request, Reply<Done> reply) {
  const auto run = request.run;
  operate(run, std::move(reply), [this, request = std::move(request)](history::Transaction& tx) {
    return done(history::unpause_activities(tx, request.which, request.how,
                                            [&] { return draw(request.jitter); }));
  });
}

void Shard::reset_activities(ResetActivities request, Reply<Done> reply) {
  const auto run = request.run;
  operate(run, std::move(reply), [this, request = std::move(request)](history::Transaction& tx) {
    return done(history::reset_activities(tx, request.which, request.how,
                                          [&] { return draw(request.jitter); }));
  });
}

void Shard::change_activities(ChangeActivities request, Reply<model::ActivityScheduled> reply) {
  const auto run = request.run;
  operate(run, std::move(reply), [request = std::move(request)](history::Transaction& tx) {
    return request.change.has_value()
               ? history::change_activities(tx, request.which, *request.change)
               : history::restore_activities(tx, request.which);
  });
}

void Shard::change_run_options(ChangeRunOptions request, Reply<model::Priority> reply) {
  const auto run = request.run;
  with_chain_run(
      run, "", std::move(reply),
      [this, request = std::move(request)](RunEntry& entry, Reply<model::Priority> answer) mutable {
        const auto& present = entry.run.state.priority();
        const auto priority = history::changed(present, request.priority);
        const bool is_same = priority.SerializeAsString() == present.SerializeAsString();
        if (!entry.run.is_open()) {
          answer(errors::workflow_completed());
        } else if (is_same) {
          world_.commits->after_durable(
              [answer = std::move(answer), priority]() mutable { answer(priority); });
        } else {
          auto step = begin(entry);
          history::change_priority(step->parts[0]->tx, priority, std::move(request.door),
                                   std::move(request.envelope));
          reply_after(*step,
                      [answer = std::move(answer), priority]() mutable { answer(priority); });
          finish(std::move(step));
        }
      });
}

}  // namespace fairlead::shard
