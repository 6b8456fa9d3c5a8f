#include "simulation/scheduler.h"

#include <algorithm>

namespace fairlead::sim {

void Scheduler::at(TimeNs when, Owner owner, Job job) {
  const Key key{std::max(when, now_), static_cast<uint32_t>(random_.next()), ++last_};
  events_.emplace(key, Event{owner, std::move(job)});
}

bool Scheduler::step(TimeNs end) {
  if (events_.empty() || std::get<0>(events_.begin()->first) > end) {
    now_ = std::max(now_, end);
    return false;
  }
  const auto first = events_.begin();
  now_ = std::get<0>(first->first);
  Job job = std::move(first->second.job);
  events_.erase(first);
  ++steps_;
  job();
  return true;
}

void Scheduler::drop(Owner owner) {
  for (auto event = events_.begin(); event != events_.end();) {
    event = event->second.owner == owner ? events_.erase(event) : std::next(event);
  }
}

void SimExecutor::post(Job job) {
  jobs_.push_back(std::move(job));
  if (jobs_.size() == 1) wait_for_turn();
}

void SimExecutor::post_at(TimeNs at, Job job) {
  scheduler_->at(at, owner_, [this, job = std::move(job)]() mutable { post(std::move(job)); });
}

void SimExecutor::wait_for_turn() {
  const bool is_held_up = scheduler_->random().chance(scheduler_->threads_held_up);
  scheduler_->after(scheduler_->between(1'000, is_held_up ? 50 * kMillisecond : 30'000), owner_,
                    [this] {
                      const SimExecutor* const before = std::exchange(*current_, this);
                      jobs_.front()();
                      *current_ = before;
                      // Taken out only now: a job posted by this one must not find the line empty
                      // and ask for a second turn.
                      jobs_.pop_front();
                      if (!jobs_.empty()) wait_for_turn();
                    });
}

}  // namespace fairlead::sim
