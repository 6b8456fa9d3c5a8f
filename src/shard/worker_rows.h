#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "shard/commit_log.h"
#include "store/store.h"

namespace fairlead::shard {

// What a door's rows are about.
enum class WorkerRow {
  kWorker,  // one that registered: its SDK does not register again when the server comes back
  kBuild,   // what an operator wants of all workers of a build
};

// The workers of a door, on disk. A row belongs to the door, which alone knows what is in it.
class WorkerRows {
 public:
  WorkerRows(store::Store* store, CommitLog* commits) : store_(*store), commits_(*commits) {}

  // By the names that they were put under.
  std::vector<std::pair<std::string, std::string>> load(WorkerRow kind) const;
  // `done` is called when the change is durable, on any thread.
  void put(WorkerRow kind, const std::string& name, const std::string& row, Job done);
  // `done` is called when all that was written until now is durable, on any thread.
  void when_durable(Job done) { commits_.after_durable(std::move(done)); }
  void erase(
      WorkerRow kind, const std::string& name, Job done = [] {});

 private:
  store::Store& store_;
  CommitLog& commits_;
};

}  // namespace fairlead::shard
