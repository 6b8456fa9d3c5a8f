#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "simulation/replay.h"
#include "simulation/world.h"

namespace fairlead::sim {

// A process that runs workflow code: it polls, keeps what it knows of each run or replays it from
// the beginning, and answers. It may fail, forget, be slow, or die with a task in its hands.
class WorkflowWorker {
 public:
  struct Options {
    std::string name;
    bool is_sticky = true;
    int polls = 2;
  };
  WorkflowWorker(const World* world, Options options);

  void start();
  void die();
  // Says goodbye first, as a worker does that is being redeployed.
  void shut_down();
  bool is_alive() const { return process_->is_alive; }

 private:
  using Task = temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse;
  using TaskPtr = std::shared_ptr<Task>;

  void poll(bool on_sticky_queue);
  void take(TaskPtr task);
  void check_slice(const Task& task);
  // Reads the run's history from the first event, then calls `work`.
  void read_whole(const TaskPtr& task, std::string page_token, std::shared_ptr<Events> events,
                  int tries);
  void replay(const TaskPtr& task, std::unique_ptr<Replay> run, const Events& events);
  void decide(const TaskPtr& task, std::unique_ptr<Replay> run);
  void complete(const TaskPtr& task, std::unique_ptr<Replay> run, std::vector<Command> commands);
  void completed(const TaskPtr& task, std::shared_ptr<Replay> run, bool has_closed,
                 const Outcome& outcome);
  void answer_updates(
      const Task& task, const Replay& run,
      temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest* request);
  static void answer_update(
      const temporal::api::update::v1::Request& asked, const std::string& message_id,
      temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest* request);
  void roll_back(const Task& task, int64_t event_id);
  void fail(const TaskPtr& task);

  const World& world_;
  const Options options_;
  const std::string sticky_queue_;
  const ProcessPtr process_;
  absl::btree_map<std::string, std::unique_ptr<Replay>> cache_;  // by run id
  // What was in the cache before the task at hand, in case that it never was.
  absl::btree_map<std::string, std::unique_ptr<Replay>> before_;
};

}  // namespace fairlead::sim
