#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/durable/json.h"
#include "simulation/world.h"

namespace fairlead::sim {

namespace json = boost::json;

// Somebody who makes schedules, meddles with them, and deletes them when it is calm.
//
// The promise: every time of a schedule that comes while it is not paused starts its run once, or
// its history says that it was skipped or missed. Nothing is started in a pause. The runs that the
// history tells of are those that are there.
class ScheduleCrowd {
 public:
  using Started = std::function<void(const std::string& workflow_id, const std::string& run_id)>;

  explicit ScheduleCrowd(const World* world);

  void start(int schedules, DurationNs spread);
  void calm_down();
  // Reads every schedule's history and runs, in the time that follows, and tells of the runs.
  void settle(Started started);
  bool is_settled() const { return settled_ == schedules_.size(); }

 private:
  struct Schedule {
    std::string id;
    int64_t every = 0;   // seconds
    int64_t jitter = 0;  // seconds
    bool is_made = false;
    bool is_over = false;
    std::map<std::string, std::string> told;  // workflows that a trigger was answered with
    json::array events;
    std::map<std::string, std::string> runs;
  };
  using SchedulePtr = std::shared_ptr<Schedule>;
  using Then = std::function<void(const Outcome&, const json::object&)>;

  void insist(const char* method, const std::string& path, const json::object& body, Then then);
  void make(const SchedulePtr& schedule);
  void meddle(const SchedulePtr& schedule);
  void ask(const SchedulePtr& schedule, const char* method, const std::string& verb,
           json::object body, std::function<void(const json::object&)> then);
  void remove(const SchedulePtr& schedule);
  void read_events(const SchedulePtr& schedule, const std::string& after);
  void read_runs(const SchedulePtr& schedule, const std::string& token);
  void check(const Schedule& schedule);
  void fail(const Schedule& schedule, const std::string& what);

  const World& world_;
  const ProcessPtr client_;
  std::vector<SchedulePtr> schedules_;
  bool is_stormy_ = true;
  size_t settled_ = 0;
  Started started_;
};

}  // namespace fairlead::sim
