#pragma once

#include <memory>
#include <string>

#include "simulation/world.h"

namespace fairlead::sim {

// A process that runs activities: it succeeds, fails, heartbeats, obeys a cancellation, answers too
// late or by id, forgets, or dies with the work in its hands.
class ActivityWorker {
 public:
  ActivityWorker(const World* world, std::string name, int polls);

  void start();
  void die();
  bool is_alive() const { return process_->is_alive; }

 private:
  using Task = temporal::api::workflowservice::v1::PollActivityTaskQueueResponse;
  // A task in hand, and where it stands in the history.
  struct Work {
    Task task;
    int64_t scheduled_id = 0;
    int64_t heartbeat = 0;
    TimeNs ends = 0;
  };
  using WorkPtr = std::shared_ptr<Work>;

  void poll();
  void take(Task task);
  void go_on(const WorkPtr& work);
  void heartbeat(const WorkPtr& work);
  void complete(const WorkPtr& work);
  void complete_by_id(const WorkPtr& work);
  void fail(const WorkPtr& work);
  void cancel(const WorkPtr& work);

  const World& world_;
  const std::string name_;
  const int polls_;
  const ProcessPtr process_;
};

}  // namespace fairlead::sim
