#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/random.h"
#include "history/codec.h"
#include "schedule/schedule.h"
#include "shard/commit_log.h"
#include "shard/namespaces.h"
#include "shard/schedule_engine.h"
#include "shard/wakeups.h"
#include "store/store.h"

namespace fairlead::shard {

// Counters for operators.
struct ScheduleStats {
  std::atomic<uint64_t> fires{0};
  std::atomic<uint64_t> skips{0};
};

// The schedules of a shard. Nothing of them is kept in memory: a step reads the row, decides, and
// writes it back in one batch with the lines of history, the wake-up, and the letters that ask
// for runs and for their end.
//
//   time, people ─► step ─► batch: row, history, wake-up + letter ─► the run's shard
//                                                                        │
//                   step ◄──────────── started, refused ◄────────────────┤
//                     └─► batch: row, history − letter                   │
//                   step ◄──────────── closed (a letter of the run's) ◄──┘
//
// A letter that comes again finds the run by the id that it was promised.
class ScheduleHost {
 public:
  struct Env {
    ShardId shard;
    const store::Store* store = nullptr;
    CommitLog* commits = nullptr;
    Clock* clock = nullptr;
    Wakeups* wakeups = nullptr;
    const NamespaceRegistry* namespaces = nullptr;
    std::function<std::string()> make_id;
    std::function<const history::Codec&(model::Flavour)> codec;
    // A letter was written, under this number of this schedule.
    std::function<void(const std::string& key, int64_t number, model::Letter letter)> deliver;
    std::function<void()> armed;  // there may be an earlier wake-up now
  };
  explicit ScheduleHost(Env env) : env_(std::move(env)) {}

  const ScheduleStats& stats() const { return stats_; }

  void create(CreateSchedule request, Reply<Done> reply);
  void describe(const ScheduleRef& ref, Reply<model::Schedule> reply);
  void update(UpdateSchedule request, Reply<Done> reply);
  void pause(const PauseSchedule& request, Reply<Done> reply);
  void remove(const ScheduleRef& ref, Reply<Done> reply);
  void trigger(const TriggerSchedule& request, Reply<schedule::Fired> reply);
  void backfill(const BackfillSchedule& request, Reply<std::vector<schedule::Fired>> reply);
  void read_history(const ScheduleHistoryRequest& request, Reply<ScheduleHistoryPage> reply);

  // The time of a wake-up row has come. False: it is not of a schedule.
  bool wake(const std::string& key, TimeNs at);
  // What became of the letter that asked for a start.
  void settle(const std::string& key, int64_t number, const absl::StatusOr<std::string>& run_id);
  // A run has ended. `done` is called when that is durable.
  void close_run(const model::ScheduleName& name, Job done);
  // Erases the schedules of a namespace; whether there were any.
  bool purge(NamespaceNum ns);
  // Answers who waits.
  void close();

 private:
  TimeNs now() const { return env_.clock->now(); }
  std::optional<model::Schedule> load(const std::string& key) const;
  std::optional<std::string> key_of(const ScheduleRef& ref) const;
  absl::StatusOr<model::Schedule> find(const ScheduleRef& ref) const;
  bool is_of_deleted_namespace(const model::Schedule& schedule) const;

  // Lets `act` take a step on the schedule and writes what it leaves. The job that it gives back is
  // done when that is durable.
  template <typename Act>
  void step(model::Schedule& schedule, Act act);
  void write(model::Schedule& schedule, schedule::Step& step, store::WriteBatch batch, Job then);
  model::Letter start_letter(const model::Schedule& schedule,
                             const model::ScheduleFire& fire) const;
  static model::Letter stop_letter(const model::Schedule& schedule, const schedule::Stop& stop);
  void arm(model::Schedule& schedule, store::WriteBatch* batch);
  void erase(const model::Schedule& schedule, store::WriteBatch* batch);
  // Somebody waits to hear whether a run has started.
  void await(const std::string& key, int64_t number, Reply<schedule::Fired> heard);
  Job tell(const std::string& key, int64_t number, absl::StatusOr<schedule::Fired> fired);

  const Env env_;
  ScheduleStats stats_;
  bool is_closed_ = false;
  absl::flat_hash_map<std::pair<std::string, int64_t>, Reply<schedule::Fired>> waiting_;
};

}  // namespace fairlead::shard
