#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "api/durable/json.h"
#include "simulation/schedule_crowd.h"
#include "simulation/world.h"

namespace fairlead::sim {

namespace json = boost::json;

// What the second door has promised, to clients and to workers.
//
// A task's attempt is handed out once, and not at all once an earlier attempt's answer was taken. A
// run ends once. What was acknowledged is in its history, once. A run that was asked to stop is
// told so once and ends as cancelled, or its time to clean up ends it, or it had ended before it
// was told.
class DurablePromises {
 public:
  DurablePromises(Auditor* auditor, Probes* probes) : auditor_(*auditor), probes_(probes) {}

  void told_started(const std::string& workflow_id, const std::string& run_id);
  // `poll` is the poll's own name: a repeated poll is given the same again.
  void given(const std::string& task, int64_t attempt, const std::string& poll);
  void told_taken(const std::string& task, int64_t attempt);
  void sends_signal(const std::string& workflow_id, const std::string& name);
  void told_signaled(const std::string& workflow_id, const std::string& name);
  void told_activity_completed(const std::string& workflow_id, const std::string& execution);
  void told_asked_to_stop(const std::string& workflow_id, const std::string& request_id);
  void told_delivered(const std::string& workflow_id);
  // At the end, with the whole history.
  void settle(const std::string& workflow_id, const json::array& events);

  std::vector<std::pair<std::string, std::string>> runs() const;

 private:
  struct Run {
    std::string run_id;
    absl::btree_map<std::string, bool> signals;  // whether it was acknowledged
    absl::btree_set<std::string> completed;      // activities
    std::string stop;                            // the request's id; empty: not asked
    bool is_delivered = false;
  };
  void settle_stop(const std::string& workflow_id, const json::array& events);
  struct Task {
    absl::btree_map<int64_t, std::string> given;  // attempts, and the poll of each
    std::optional<int64_t> taken;
  };

  Auditor& auditor_;
  Probes* probes_;
  absl::btree_map<std::string, Run> runs_;
  absl::btree_map<std::string, Task> tasks_;
};

// A process that runs workflows and activities of the second door, as unreliable as those of the
// first.
class DurableWorker {
 public:
  // Which types of workflows and activities it takes; none: all.
  DurableWorker(const World* world, DurablePromises* promises, std::string name, json::array types);

  void start();
  void die();
  bool is_alive() const { return process_->is_alive; }

 private:
  void register_now();
  void poll(bool is_workflow, std::string again = "");
  // It is of a type that the worker takes.
  void check_type(const json::object& task, bool is_workflow);
  void take_workflow(const json::object& task);
  void take_activity(const json::object& task);
  void complete_workflow(const json::object& task);
  void deliver_stop(const json::object& task, int64_t sequence, const char* kind);
  void answer_workflow(const json::object& task, const json::object& command);
  void complete_activity(const json::object& task);
  // Tells an end that may not be wanted any more. `then` runs if it was taken.
  void tell(const std::string& path, json::object body, int attempts, std::function<void()> then);

  const World& world_;
  DurablePromises& promises_;
  const std::string name_;
  const json::array types_;
  const ProcessPtr process_;
  int polls_ = 0;
};

// All programs of the second door: a client and its workers, who share budgets with the first.
class DurableCrowd {
 public:
  explicit DurableCrowd(const World* world);

  void start(int runs, DurationNs spread);
  void calm_down();
  void die();
  // Reads every history, in the time that follows.
  void settle();
  bool is_settled() const { return schedules_.is_settled() && settled_ == promises_.runs().size(); }

 private:
  void begin(const std::string& workflow_id);
  void signal(const std::string& workflow_id, const std::string& name);
  void ask_to_stop(const std::string& workflow_id);
  void add_worker(json::array types);
  json::array some_types() const;
  void trouble();
  void read(const std::string& workflow_id, const std::string& run_id);

  const World& world_;
  DurablePromises promises_;
  const ProcessPtr client_;
  ScheduleCrowd schedules_;
  std::vector<std::unique_ptr<DurableWorker>> workers_;
  bool is_stormy_ = true;
  size_t settled_ = 0;
};

}  // namespace fairlead::sim
