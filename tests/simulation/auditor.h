#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "history/codec.h"
#include "simulation/history_check.h"
#include "simulation/probes.h"
#include "simulation/trace.h"
#include "temporal/api/activity/v1/message.pb.h"

namespace fairlead::sim {

// Remembers everything that the server has promised to anyone, and holds it to that.
//
// It only knows what reached a client: an answer that was lost on the way binds nobody. What it
// demands is said at each function. The first broken promise ends the simulation.
class Auditor {
 public:
  Auditor(Clock* clock, Trace* trace, Probes* probes)
      : clock_(clock), trace_(trace), probes_(probes) {}

  // Threads hardly get to run: what is stamped was decided up to this long ago.
  DurationNs message_time = 200 * kMillisecond;

  bool has_failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  void fail(const std::string& what);

  // --- What clients were told. Each stays true for ever.

  // A request id always means the same run.
  void told_started(const std::string& workflow_id, const std::string& request_id,
                    const std::string& run_id, const std::string& input);
  // The signal is in the history once; without the acknowledgement, at most once.
  void sends_signal(const std::string& run_id, const std::string& payload);
  void told_signaled(const std::string& run_id, const std::string& payload);
  int signals_told(const std::string& run_id);
  void told_canceled(const std::string& run_id);
  void told_terminated(const std::string& run_id, const std::string& reason);
  // An update is in the history once if its client was told so, and never if it was rejected.
  enum class Fate { kUnknown, kCompleted, kRejected, kCutShort };
  void sends_update(const std::string& run_id, const std::string& id);
  void told_update(const std::string& run_id, const std::string& id, Fate fate);
  // What a reset has made goes on where its base was begun again, and knows every signal of it.
  void told_reset(const std::string& base_run_id, const std::string& run_id);
  // A closed run stays closed.
  void told_closed(const std::string& run_id);

  // --- What workers were given and told.

  // No start of a workflow task is handed out twice.
  void given_workflow_task(const std::string& run_id, const std::string& workflow_id,
                           int64_t started_id, int32_t attempt, TimeNs started);
  void told_task_completed(const std::string& run_id, int64_t started_id);
  // No attempt is handed out twice, nor any after the end was acknowledged or while the activity is
  // paused; what was recorded by a heartbeat is there for the next attempt. Once an activity was
  // set back, its attempts are counted anew.
  struct GivenActivity {
    int64_t scheduled_id = 0;
    std::string activity_id;
    int32_t attempt = 0;
    TimeNs started = 0;
    int64_t heartbeat = 0;
    bool is_lone = false;  // it has no workflow
  };
  void given_activity(const std::string& run_id, const GivenActivity& given);
  // Nothing of the activity starts until somebody is about to let it go.
  void told_paused(const std::string& run_id, const std::string& activity_id);
  void lets_go(const std::string& run_id, const std::string& activity_id, bool resets);
  // From now on at most so many activities start in a second, or of each fairness key.
  void told_limit(double per_second) { limit_ = Limit{clock_->now(), per_second}; }
  void told_key_limit(double per_second) { key_limit_ = Limit{clock_->now(), per_second}; }
  void saw_start(const std::string& fairness_key, TimeNs started);
  // In every window of t seconds: rate * (t + 1) + 1 starts at most, across crashes.
  void settle_limits();
  void told_activity_completed(const std::string& run_id, int64_t scheduled_id,
                               const std::string& result);
  void told_activity_canceled(const std::string& run_id, int64_t scheduled_id);
  void told_heartbeat(const std::string& run_id, int64_t scheduled_id, int32_t attempt,
                      int64_t heartbeat);

  // --- Activities without a workflow.

  // Each has one outcome, which never changes.
  using LoneOutcome = temporal::api::activity::v1::ActivityExecutionOutcome;
  void told_lone_ended(const std::string& run_id, const LoneOutcome& outcome);
  void told_lone_terminated(const std::string& run_id);
  // At the end: every one has ended, and what workers and clients were told of it is its outcome.
  void settle_lone();

  // --- Callbacks.

  // Whoever was promised to hear of the end of a workflow does, or says that they do not care; and
  // what they hear is how the run ended that they hear of.
  void promised_callback(const std::string& url) { callbacks_[url].is_promised = true; }
  void refuses_callback(const std::string& url) { callbacks_[url].is_settled = true; }
  void hears_callback(const history::Outgoing& request);
  // The request is in the history of this run, once.
  void told_attached(const std::string& request_id, const std::string& run_id) {
    attached_[request_id] = run_id;
  }
  void settle_callbacks();

  // --- What anyone has read. An event that was seen never changes.

  void saw_events(const std::string& run_id, const Events& events);
  // All of them, from the first, as they were some time after `asked`.
  void saw_history(const std::string& run_id, const Events& events, TimeNs asked);

  // At the end, with the whole history of a run: every promise about it was kept.
  void settle(const std::string& run_id, const Events& events);

  // After all runs were settled: chains are linked, and parents and children agree.
  void settle_families();

  // Of workflows.
  std::vector<std::string> runs() const;
  bool is_closed(const std::string& run_id) const;
  bool was_asked_for(const std::string& run_id) { return !runs_[run_id].input.empty(); }
  const std::string& workflow_of(const std::string& run_id) { return runs_[run_id].workflow_id; }
  size_t started() const { return runs_.size(); }

 private:
  struct Callback {
    bool is_promised = false;
    bool is_settled = false;
    std::vector<std::pair<std::string, std::string>> heard;  // run, state
  };
  struct Limit {
    TimeNs since = 0;
    double per_second = 0;
  };
  struct Activity {
    absl::btree_set<int32_t> attempts;  // that were handed out
    int64_t heartbeat = 0;
    int32_t heartbeat_attempt = 0;
    std::optional<std::string> result;
    bool is_canceled = false;
    TimeNs end_told = kNever;
  };
  struct Meddling {
    TimeNs paused_told = kNever;
    bool may_be_reset = false;
  };
  struct Run {
    std::string workflow_id;
    std::string input;
    std::vector<std::string> events;             // by id - 1; empty: not seen
    absl::btree_map<std::string, bool> signals;  // payload -> acknowledged
    std::optional<TimeNs> cancel_told;
    std::string terminate_reason;
    TimeNs closed_told = kNever;
    absl::btree_map<std::string, Fate> updates;
    // Handed out: started event, attempt, time.
    absl::btree_set<std::tuple<int64_t, int32_t, TimeNs>> tasks;
    absl::btree_set<int64_t> tasks_completed;
    absl::btree_map<int64_t, Activity> activities;
    absl::btree_map<std::string, Meddling> meddled;  // by activity id
    Events history;                                  // once it was settled
    bool is_lone = false;
    bool is_lone_terminated = false;
    std::optional<LoneOutcome> lone_outcome;
  };

  void settle_signals(const Run& run, const std::string& name, const Events& events);
  void settle_updates(const Run& run, const std::string& run_id, const Events& events);
  void settle_activities(const Run& run, const std::string& name, const Events& events);
  void count_ending(const Events& events);
  void settle_reset(const std::string& run_id, const Run& run);
  void settle_given_again(const std::string& run_id, const Run& run, const Run& base);
  std::vector<const Run*> holders_of(const Run& parent, int64_t initiated_id);
  std::string origin_of(const std::string& run_id) const;
  void settle_chain(const std::string& run_id, const Run& run);
  void settle_child(const std::string& run_id, const Run& run);

  Clock* const clock_;
  Trace* const trace_;
  Probes* const probes_;
  std::string failure_;
  absl::btree_map<std::string, Run> runs_;
  absl::btree_map<std::string, std::string> requests_;  // start request id -> run id
  absl::btree_map<std::string, Callback> callbacks_;    // by URL
  absl::btree_map<std::string, std::string> attached_;  // request id -> run id
  std::optional<Limit> limit_;
  std::optional<Limit> key_limit_;
  absl::btree_map<std::string, std::vector<TimeNs>> starts_;  // of activities, by fairness key
};

}  // namespace fairlead::sim
