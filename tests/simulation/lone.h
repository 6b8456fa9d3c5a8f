#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulation/world.h"

namespace fairlead::sim {

// A user's program that has no workflows: it starts activities on their own, looks at some, stops
// some, and waits for the outcome of each.
class LoneClient {
 public:
  LoneClient(const World* world, std::string name);

  // Starts `count` activities within `time`.
  void start(int count, DurationNs time);
  // Many at once, of few levels.
  void rush(int count, DurationNs after);
  // No more trouble from now on.
  void calm_down() { is_calm_ = true; }
  // Asks once more for every outcome.
  void read_all();

 private:
  struct Errand {
    std::string activity_id;
    std::string run_id;
    bool is_in_rush = false;
  };
  using ErrandPtr = std::shared_ptr<Errand>;

  void start_one(const ErrandPtr& errand);
  void await_end(const ErrandPtr& errand);
  void trouble(const ErrandPtr& errand);
  void describe(const ErrandPtr& errand);
  void cancel(const ErrandPtr& errand);
  void terminate(const ErrandPtr& errand);

  const World& world_;
  const ProcessPtr process_;
  std::vector<ErrandPtr> errands_;
  bool is_calm_ = false;
};

}  // namespace fairlead::sim
