#pragma once

#include <functional>
#include <utility>

#include "shard/caller.h"
#include "simulation/scheduler.h"

namespace fairlead::sim {

// What somebody outside makes of a callback that reaches them.
using Receiver = std::function<history::CallbackOutcome(const history::Outgoing&)>;

// The server's way to them. What is under way when the server dies arrives or not, and nobody is
// told.
class SimCaller final : public shard::Caller {
 public:
  SimCaller(Scheduler* scheduler, Owner owner, Receiver receiver)
      : scheduler_(scheduler), owner_(owner), receiver_(std::move(receiver)) {}

  void call(history::Outgoing request, TimeNs, Done done) override {
    scheduler_->after(scheduler_->between(kMillisecond, 2 * kSecond), owner_,
                      [this, request = std::move(request), done = std::move(done)]() mutable {
                        auto outcome = receiver_(request);
                        scheduler_->after(
                            scheduler_->between(kMillisecond, 2 * kSecond), owner_,
                            [outcome = std::move(outcome), done = std::move(done)]() mutable {
                              done(std::move(outcome));
                            });
                      });
  }

 private:
  Scheduler* const scheduler_;
  const Owner owner_;
  const Receiver receiver_;
};

}  // namespace fairlead::sim
