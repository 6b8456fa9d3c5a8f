#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "shard/commit_log.h"
#include "store/store.h"

namespace fairlead::shard {

// The workers that registered with a door, on disk: their SDK does not register again when the
// server comes back. A row belongs to the door, which alone knows what is in it.
class WorkerRows {
 public:
  WorkerRows(store::Store* store, CommitLog* commits) : store_(*store), commits_(*commits) {}

  // By the names that they were put under.
  std::vector<std::pair<std::string, std::string>> load() const;
  // `done` is called when the row is durable, on any thread.
  void put(const std::string& name, const std::string& row, Job done);
  void erase(const std::string& name);

 private:
  store::Store& store_;
  CommitLog& commits_;
};

}  // namespace fairlead::shard
