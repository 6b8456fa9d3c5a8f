#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/executor.h"
#include "base/strong.h"
#include "history/run.h"
#include "shard/alarms.h"
#include "shard/requests.h"
#include "shard/runs_ahead.h"
#include "store/store.h"

namespace fairlead::shard {

// Someone who waits for a run's next event, or for its last one.
struct HistoryWaiter {
  uint64_t number = 0;
  HistoryRequest request;
  Reply<HistoryPage> reply;
  Alarms::Handle alarm;
};

// An update that no worker has answered yet. Mostly it lives in memory only: who sent it sends it
// again.
struct LiveUpdate {
  std::string id;
  std::string request;
  bool is_delivered = false;  // with the task that a worker holds
  bool is_durable = false;    // admitted by a reset: it has a row
};

// Someone who waits for a stage of an update.
struct UpdateWaiter {
  uint64_t number = 0;
  std::string update_id;
  UpdateStage stage = UpdateStage::kCompleted;
  Reply<UpdateResult> reply;
  Alarms::Handle alarm;
};

// A run in memory: its state, its newest events, and who waits for it. While `is_locked` a step on
// it is under way that had to ask another executor; what arrives meanwhile queues up in `waiting`.
struct RunEntry {
  std::string key;  // the run id's 16 bytes
  history::Run run;
  bool is_locked = false;
  bool is_new = false;  // not written yet
  std::deque<Job> waiting;
  // The last batches of events with their first ids, so that a worker that follows closely costs no
  // read.
  std::deque<std::pair<int64_t, std::string>> recent;
  size_t recent_bytes = 0;
  void remember_recent(int64_t first_id, const std::string& events);
  std::vector<HistoryWaiter> waiters;
  std::vector<std::string> queries;  // ids of those that travel with the next workflow task
  std::vector<LiveUpdate> updates;   // in the order in which they came
  std::vector<UpdateWaiter> update_waiters;
  size_t bytes = 0;
  std::list<RunEntry*>::iterator lru;

  // Updates that were admitted again and not answered yet wait for the next task.
  void recall_updates();

  bool is_pinned() const {
    return is_locked || is_new || !waiting.empty() || !waiters.empty() || !queries.empty() ||
           !updates.empty() || !update_waiters.empty();
  }
};

// The runs of a shard that are in memory. Bounded by bytes: the ones not used for longest go,
// unless someone waits for them.
class RunCache {
 public:
  RunCache(ShardId shard, const store::Store* store, size_t bytes_max)
      : shard_(shard), store_(store), bytes_max_(bytes_max), ahead_(shard, store) {}

  // The run with these 16 bytes, read from the store if need be; null if there is none.
  RunEntry* find(const std::string& key);
  RunEntry* create(const std::string& key);
  void erase(RunEntry* entry);
  // After a step: the entry's size may have changed. Never evicts the entry itself.
  void resize(RunEntry* entry);

 private:
  void load_pending(RunEntry& entry) const;
  RunEntry* insert(std::unique_ptr<RunEntry> entry);
  void evict(const RunEntry* except);

  const ShardId shard_;
  const store::Store* const store_;
  const size_t bytes_max_;
  size_t bytes_ = 0;
  absl::flat_hash_map<std::string, std::unique_ptr<RunEntry>> entries_;
  std::list<RunEntry*> lru_;  // most recently used first, closed ones last
  RunsAhead ahead_;
};

}  // namespace fairlead::shard
