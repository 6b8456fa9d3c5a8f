#pragma once

#include <deque>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "simulation/program.h"
#include "temporal/api/command/v1/message.pb.h"
#include "temporal/api/history/v1/message.pb.h"
#include "temporal/api/update/v1/message.pb.h"

namespace fairlead::sim {

using temporal::api::command::v1::Command;
using temporal::api::history::v1::HistoryEvent;

// One run as a worker knows it: rebuilt from events alone, the way an SDK does it, and as strict.
// Anything that an SDK would call non-deterministic or that it could not digest is an error here.
class Replay {
 public:
  // The next event of the history. False after the first thing that is wrong; `error` says what.
  bool apply(const HistoryEvent& event);
  // At a workflow task: what the program does now. Call after the task's started event was applied.
  std::vector<Command> decide();

  const std::string& error() const { return error_; }
  int64_t next_event_id() const { return next_id_; }
  // Of the last task that was completed, as `previous_started_event_id` has it.
  int64_t completed_started_id() const { return completed_started_id_; }
  int64_t started_id() const { return started_id_; }
  int signals() const { return signals_; }
  // Updates that were accepted and have not been completed.
  const std::vector<std::string>& open_updates() const { return open_updates_; }
  // Updates that a reset has admitted since the last task that was completed: nobody has answered.
  const std::vector<temporal::api::update::v1::Request>& admitted() const { return admitted_; }
  bool is_closed() const { return is_closed_; }
  const std::string& input() const { return input_; }

 private:
  enum class State { kPending, kFired, kCanceled };
  struct Activity {
    int64_t scheduled_id = 0;
    bool has_ended = false;
    bool has_failed = false;
    bool is_cancel_asked = false;
  };
  struct Timer {
    int64_t started_id = 0;
    State state = State::kPending;
  };
  struct Child {
    int64_t initiated_id = 0;
    int64_t started_id = 0;
    bool has_ended = false;
  };

  void apply_task_event(const HistoryEvent& event);
  void apply_command_event(const HistoryEvent& event);
  bool apply_other_run_event(const HistoryEvent& event);
  bool apply_update_event(const HistoryEvent& event);
  Child* find_child(int64_t initiated_id);
  template <typename Attributes>
  void apply_child_end(const Attributes& attributes);
  void apply_activity_end(int64_t scheduled_id, bool has_failed);
  void expect_equal(int64_t got, int64_t wanted, const char* what);
  void fail(const std::string& what);

  // The program. Each returns whether the step is over.
  void run();
  bool run_step(const ProgramStep& step, size_t index, bool enters);
  void close(bool has_failed);
  void schedule_activity(const std::string& id, bool is_long);
  void start_timer(const std::string& id, DurationNs time);
  void start_child(const std::string& id);
  void continue_as_new();
  void cancel_timer(const std::string& id);
  Command& add(int type);

  std::string error_;
  std::string input_;
  std::string workflow_id_;
  Program program_;
  int64_t next_id_ = 1;
  int64_t scheduled_id_ = 0;
  int64_t started_id_ = 0;
  int64_t completed_id_ = 0;
  int64_t completed_started_id_ = 0;
  bool has_decided_ = false;
  std::vector<Command> commands_;
  std::deque<Command> expected_;

  size_t step_ = 0;
  bool has_entered_ = false;
  int signals_ = 0;
  std::vector<std::string> open_updates_;
  std::vector<temporal::api::update::v1::Request> admitted_;
  int signals_used_ = 0;
  bool is_cancel_requested_ = false;
  bool is_done_ = false;
  bool is_closed_ = false;
  absl::btree_map<std::string, Activity> activities_;
  absl::btree_map<std::string, Timer> timers_;
  absl::btree_map<std::string, Child> children_;
  absl::btree_map<int64_t, bool> sent_;  // signals to others by initiated event: has it ended
};

}  // namespace fairlead::sim
