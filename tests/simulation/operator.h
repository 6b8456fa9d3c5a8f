#pragma once

#include <string>
#include <utility>

#include "absl/container/btree_set.h"
#include "simulation/world.h"

namespace fairlead::sim {

// Somebody at a desk who meddles with runs while they go on: pauses an activity and lets it go some
// time later, or sets it back, changes its options, gives runs another priority, and caps how many
// tasks are with workers at a time.
class Operator {
 public:
  Operator(const World* world, std::string name);

  void meddle(const std::string& workflow_id, const std::string& run_id);
  // Caps what runs at a time, of both kinds, and changes these caps now and then.
  void set_caps();
  // Lets go whatever is still paused.
  void calm_down();

 private:
  using RunName = std::pair<std::string, std::string>;  // workflow id, run id

  void give_priority(const RunName& run);
  void choose_activity(const RunName& run, int patience);
  void pause(const RunName& run, const std::string& activity_id);
  void let_go(const RunName& run, const std::string& activity_id);
  void change_options(const RunName& run, const std::string& activity_id);

  const World& world_;
  const ProcessPtr process_;
  bool is_calm_ = false;
  absl::btree_set<RunName> runs_;
  absl::btree_set<std::pair<std::string, std::string>> activities_;  // run id, activity id
};

}  // namespace fairlead::sim
