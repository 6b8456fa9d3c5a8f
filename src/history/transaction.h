#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "history/codec.h"
#include "history/limits.h"
#include "history/run.h"

namespace fairlead::history {

// A task that a step brought into being. Who gets it, and whether it has to wait, is the queue's
// decision.
struct TaskOffer {
  model::TaskKind kind = model::TASK_UNSPECIFIED;
  model::QueueTarget queue;
  int64_t scheduled_id = 0;
  uint64_t stamp = 0;
  model::Priority priority;
  bool is_eager = false;  // whoever caused the step would like to take it along
};

// A task that a step made pointless while it waited in a queue.
struct TaskDrop {
  model::TaskKind kind = model::TASK_UNSPECIFIED;
  model::TaskPlace place;
};

// A running task that a worker has no longer.
struct LeaseEnd {
  int64_t scheduled_id = 0;
  model::Lease lease;
};

// What a run has to tell another run. No letter: what was to be told is settled.
struct Posted {
  int64_t event_id = 0;
  std::optional<model::Letter> letter;
};

// What became of an update.
struct UpdateChange {
  std::string update_id;
  model::EventKind kind = model::EVENT_UNSPECIFIED;  // accepted, completed or rejected
  std::string outcome;                               // in the door's bytes
};

// The run that follows the one that closes.
struct Successor {
  std::string run_id;
  model::Initiator initiator = model::INITIATOR_UNSPECIFIED;
  int32_t attempt = 1;
  DurationNs backoff = 0;
  model::Event closing;  // the draft of the event that closed the run before it
};

// One step on one run. Functions of this room take it, change the run and leave here what has to be
// written or told: the events in their final bytes, new tasks, tasks to remove.
//
// A step is opened, one input is applied, and `finish` is called once before the rows are written.
class Transaction {
 public:
  Transaction(Run* run, const Codec* codec, const Limits* limits, TimeNs now, DurationNs retention)
      : now(now), limits(*limits), run_(*run), codec_(*codec), retention_(retention) {}

  const TimeNs now;
  const Limits& limits;
  // The id of the run that follows this one, if one does. Set it when one may.
  std::string successor_run_id;

  Run& run() { return run_; }
  model::RunState& state() { return run_.state; }

  // Writes the event at the end of the history and gives its id.
  int64_t append(model::Event event);
  // Writes the event, or buffers it while a worker holds the workflow task (nothing may come
  // between a task's start and its end). Gives the id, or 0 if it was buffered.
  int64_t record(model::Event event);
  // Writes what was buffered: arrival order, but the ends of activities after everything else.
  void flush_buffered();

  // The run needs a workflow task; `finish` schedules one unless there is one already.
  void want_task() { task_wanted_ = true; }

  // Around the commands of a completed task: what they cause beside their own events is written
  // after them, because replay expects one event per command, in order and without gaps.
  void begin_commands() { in_commands_ = true; }
  void end_commands();

  model::ActivityState& touch(model::ActivityState& activity);
  void erase_activity(int64_t scheduled_id);
  void add_timer(model::TimerState timer);
  void erase_timer(int64_t started_id);
  model::ChildState& touch(model::ChildState& child);
  void add_child(model::ChildState child);
  void erase_child(int64_t initiated_id);
  void add_external(model::ExternalState external);
  void erase_external(int64_t initiated_id);

  // Someone who wants to hear of the run's end is called once this step is durable.
  void call(int64_t callback) { calls_.push_back(callback); }

  // Leaves a letter to another run, in the place of an earlier one of the same event.
  void post(int64_t event_id, model::Letter letter) {
    posted_.push_back({event_id, std::move(letter)});
  }
  void settle_letter(int64_t event_id) { posted_.push_back({event_id, std::nullopt}); }

  uint64_t next_stamp();
  void offer(TaskOffer offer) { offers_.push_back(std::move(offer)); }
  // Takes the task out of the queue it waits in, if it does.
  void drop(model::TaskKind kind, model::TaskPlace* place);
  // No worker has the activity any more.
  void give_back(model::ActivityState& activity);

  // Ends the run: everything pending goes, the time of deletion is set. Use close_run
  // (lifecycle.h), which also writes the closing event and decides what follows.
  void close(model::Status status);
  void follow_with(Successor successor) { successor_ = std::move(successor); }
  // Makes the workflow task that events asked for, if there is none yet.
  void schedule_wanted_task();
  // The step is not counted among those that change the run.
  void hide_step() { is_hidden_ = true; }
  // Settles what the input left open: limits, the next workflow task. Call once, last.
  void finish();

  const std::string& events() const { return events_; }
  int64_t first_event_id() const { return first_event_id_; }
  std::vector<TaskOffer>& offers() { return offers_; }
  const std::vector<TaskDrop>& drops() const { return drops_; }
  const std::vector<LeaseEnd>& lease_ends() const { return lease_ends_; }
  bool closed_now() const { return closed_now_; }
  std::vector<UpdateChange>& update_changes() { return update_changes_; }
  // The workflow task ended without an answer that counts: what it carried has to be sent again.
  void note_lost_task() { lost_task_ = true; }
  bool lost_task() const { return lost_task_; }
  const std::vector<Posted>& posted() const { return posted_; }
  const std::vector<int64_t>& calls() const { return calls_; }
  // What was pending when this step closed the run.
  const model::LeftOpen& left_open() const { return left_open_; }
  const std::optional<Successor>& successor() const { return successor_; }
  const Codec& codec() const { return codec_; }

 private:
  void keep_left_open();
  void enforce_history_limits();
  bool is_state_too_large() const;

  Run& run_;
  const Codec& codec_;
  const DurationNs retention_;
  std::string events_;
  int64_t first_event_id_ = 0;
  bool task_wanted_ = false;
  bool in_commands_ = false;
  bool closed_now_ = false;
  std::vector<TaskOffer> offers_;
  std::vector<TaskDrop> drops_;
  std::vector<LeaseEnd> lease_ends_;
  std::vector<Posted> posted_;
  std::vector<int64_t> calls_;
  model::LeftOpen left_open_;
  std::vector<UpdateChange> update_changes_;
  bool lost_task_ = false;
  bool is_hidden_ = false;
  std::optional<Successor> successor_;
};

// Whether an event of this kind waits in the buffer while a workflow task is with a worker.
bool is_buffered_kind(model::EventKind kind);
// Whether the workflow code has to hear of such an event, so that it needs a task.
bool wakes_workflow(model::Flavour flavour, model::EventKind kind);

}  // namespace fairlead::history
