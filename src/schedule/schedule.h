#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "model/schedules.pb.h"
#include "schedule/calendar.h"

// What happens to one schedule.
//
//              time comes, trigger, backfill
//                          │
//      paused, no run left ┼──────────────► skipped
//                          │
//             nothing open ┼──────────────► open: a start is asked for ──► started ──► closed
//                          │ policy                    ▲        └──► refused │
//                          └─► skipped, buffered ──────┘◄────────────────────┘
//                                         when nothing is open
//
// A fire is counted and written into the history when its run is known to have started.
namespace fairlead::schedule {

// Fires that wait for their turn; beyond it they are skipped.
inline constexpr int kBufferedMax = 1000;
// Runs that are watched. With more of them open, the oldest no longer hold others back.
inline constexpr int kOpenMax = 100;
inline constexpr int kRecentMax = 10;
inline constexpr int kBackfillMax = 1000;
// Lines of history that are kept.
inline constexpr int64_t kEventsMax = 1000;
// Times that went by unseen are counted up to here.
inline constexpr int64_t kMissedMax = 10'000;

// Why a fire did not happen. They are on disk, and clients know some of them.
inline constexpr char kNotTriggerable[] = "status_not_triggerable";
inline constexpr char kExhausted[] = "remaining_actions_exhausted";
inline constexpr char kOverlaps[] = "overlap_policy_skip";
inline constexpr char kBufferFull[] = "buffer_full";
inline constexpr char kMissed[] = "missed";
inline constexpr char kStartFailed[] = "start_failed";
inline constexpr char kAlreadyStarted[] = "already_started";
// Why a schedule ended.
inline constexpr char kDeleted[] = "deleted";
inline constexpr char kMaxRuns[] = "max_runs_exhausted";

// What became of one fire.
struct Fired {
  enum class Outcome { kAsked, kBuffered, kBufferFull, kSkipped, kStarted, kFailed };
  Outcome outcome = Outcome::kSkipped;
  TimeNs nominal = 0;
  int64_t number = 0;  // of a start that was asked for
  std::string workflow_id;
  std::string run_id;
  std::string reason;
  std::string message;
  int buffered = 0;
};

// Asks that an open run be stopped.
struct Stop {
  int64_t number = 0;  // of the letter
  model::ScheduleFire fire;
  model::EventKind kind = model::EVENT_UNSPECIFIED;
};

// One step on one schedule. Afterwards `schedule` is what its row says, and the rest is to be done
// with the same write.
class Step {
 public:
  using MakeId = absl::FunctionRef<std::string()>;

  Step(model::Schedule* schedule, const Calendar* calendar, TimeNs now, MakeId make_run_id)
      : now(now), schedule_(*schedule), calendar_(calendar), make_run_id_(make_run_id) {}

  const TimeNs now;
  std::vector<model::ScheduleEvent> events;
  std::vector<model::ScheduleFire> starts;
  std::vector<Stop> stops;

  // What people do comes after what time has done by then: a time that is due when a pause begins
  // is not lost in it.

  // A new one; definition and ids are there.
  void create(bool is_paused);
  // `calendar` is that of the new definition.
  void update(const model::ScheduleDefinition& definition, const Calendar* calendar,
              const std::vector<std::string>& changed);
  // False: it was so already.
  bool pause(const std::string& note);
  bool resume(const std::string& note);
  void remove(const std::string& reason);

  void pass_time();
  Fired trigger(model::OverlapPolicy policy);
  // Every time from `from` on and before `to`; InvalidArgument if they are too many.
  absl::StatusOr<std::vector<Fired>> backfill(TimeNs from, TimeNs to, model::OverlapPolicy policy);

  // A start that was asked for has happened, in the run of this id, or was refused.
  Fired settle(int64_t number, const absl::StatusOr<std::string>& run_id);
  // The last run of the chain that a fire has started is closed. Says so if that is also the first
  // that is heard of its start.
  std::optional<Fired> close(int64_t number);

  // When the schedule has to be looked at next; kNever if only others can change it.
  static TimeNs next_look(const model::Schedule& schedule);

 private:
  bool is_active() const { return schedule_.paused_ns() == 0 && schedule_.deleted_ns() == 0; }
  bool is_exhausted() const;
  Fired fire(model::ScheduleFire fire);
  Fired ask(model::ScheduleFire fire);
  Fired skip(const model::ScheduleFire& fire, const char* reason, std::string message = "");
  void stop(model::ScheduleFire* fire, model::EventKind kind);
  // Starts what waits if nothing is open.
  void drain();
  void end_if_exhausted();
  void plan(TimeNs after) { plan_at(calendar_->next(after)); }
  void plan_at(TimeNs nominal);
  void bound_open();
  model::ScheduleEvent& note(model::ScheduleEventKind kind);
  model::ScheduleFire* find_open(int64_t number);
  void forget_open(int64_t number);
  model::OverlapPolicy policy_or_own(model::OverlapPolicy policy) const;

  model::Schedule& schedule_;
  const Calendar* calendar_;
  const MakeId make_run_id_;
};

// The id of the workflow that a fire starts: the same for the same fire, of at most 128 letters,
// digits and signs ._:-, whatever the schedule is called.
std::string workflow_id_of(const std::string& schedule_id, model::FireCause cause, TimeNs nominal);

}  // namespace fairlead::schedule
