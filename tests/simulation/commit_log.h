#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "shard/commit_log.h"
#include "simulation/probes.h"
#include "simulation/scheduler.h"
#include "store/simulated_store.h"

namespace fairlead::sim {

// Faults that the server must never have. Each is put in on purpose to see that the auditor sees
// it.
enum class Sabotage {
  kNone,
  kReplyBeforeDurable,  // tells before it syncs
  kKeepTaskRows,        // a started task's row stays in its queue
  kForgetWakeups,       // the rows that bring a run back in time are not written
  kForgetLetters,
  kSplitBatches,    // a step's tasks reach the disk a moment after the rest of it
  kForgetRunning,   // after a restart queues do not know which workflow tasks are with workers
  kForgetAccounts,  // what a key has had is not written
  kForgetWeights,   // all keys weigh the same
  kForgetKeys,      // first come, first served
  kInvertLevels,    // every other turn goes to those who are less urgent
};

// Makes writes durable as the real commit thread does: in groups, some time after they were
// written, telling everyone in order from a place that is no executor. Whether the disk was safe at
// the beginning of a sync or only at its end is left to chance; neither may matter.
class SimCommitLog final : public shard::CommitLog {
 public:
  SimCommitLog(Scheduler* scheduler, Owner owner, store::SimulatedStore* store, Probes* probes,
               Sabotage sabotage)
      : scheduler_(scheduler), owner_(owner), store_(store), probes_(probes), sabotage_(sabotage) {}

  // Sees every batch before it is written.
  std::function<void(const store::WriteBatch&)> watch;

  void write(const store::WriteBatch& batch) override;
  void after_durable(Job effect) override;
  void clear() {
    waiting_.clear();
    syncing_.clear();
  }

 private:
  void begin_sync();
  void end_sync(uint64_t target);
  void tell_next();
  void write_sabotaged(const store::WriteBatch& batch);

  Scheduler* const scheduler_;
  const Owner owner_;
  store::SimulatedStore* const store_;
  Probes* const probes_;
  const Sabotage sabotage_;
  uint64_t written_ = 0;
  uint64_t durable_ = 0;
  bool is_busy_ = false;
  store::WriteBatch rest_;  // of a batch that was split
  std::deque<Job> waiting_;
  std::deque<Job> syncing_;
};

}  // namespace fairlead::sim
