#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulation/operator.h"
#include "simulation/world.h"

namespace fairlead::sim {

// A user's program: starts workflows, and pokes each of them with whatever the API has until it
// closes. Every call is repeated with its request id until the answer is certain.
class Client {
 public:
  Client(const World* world, std::string name);

  // Starts `count` workflows within `time`, and troubles them during it.
  void start(int count, DurationNs time);
  // No more trouble from now on.
  void calm_down() {
    is_calm_ = true;
    operator_.calm_down();
  }

 private:
  struct Flow {
    std::string workflow_id;
    std::string run_id;
    int signals = 0;
    int updates = 0;
    int runs = 0;
    int resets = 0;
    int attached = 0;
    bool is_starting = false;
    bool is_repeated = false;  // its first start may be asked for again, so no other may follow it
  };
  using FlowPtr = std::shared_ptr<Flow>;

  void start_run(const FlowPtr& flow);
  void signal_with_start(const FlowPtr& flow);
  void live(const FlowPtr& flow);
  void poke(const FlowPtr& flow);
  void add_callback(
      temporal::api::workflowservice::v1::StartWorkflowExecutionRequest& request) const;
  void attach(const FlowPtr& flow);
  void signal(const FlowPtr& flow);
  void update(const FlowPtr& flow);
  void await_update(const FlowPtr& flow, const std::string& run_id, const std::string& id);
  void cancel(const FlowPtr& flow);
  void terminate(const FlowPtr& flow);
  void reset(const FlowPtr& flow);
  void reset_to(const FlowPtr& flow, int64_t event_id);
  void query(const FlowPtr& flow);
  void describe(const FlowPtr& flow);
  void read_history(const FlowPtr& flow, const std::string& run_id, std::string page_token,
                    std::shared_ptr<Events> events, bool waits);
  void read_backwards(const FlowPtr& flow, const std::string& run_id, std::string page_token,
                      std::shared_ptr<Events> events);
  void await_end(const FlowPtr& flow, const std::string& run_id, std::string page_token);

  const World& world_;
  const ProcessPtr process_;
  Operator operator_;
  bool is_calm_ = false;
};

}  // namespace fairlead::sim
