#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shard/commit_log.h"
#include "shard/requests.h"
#include "store/store.h"

namespace fairlead::shard {

struct ListedRun {
  model::RunState run;
  std::string first_events;  // the run's first batch, in the door's bytes
};

struct ListRuns {
  NamespaceNum ns;
  model::Flavour flavour = model::DURABLE;
  std::string before;  // a run id: those that were made before it; empty: from the newest
  size_t max = 50;
  // What costs little to know goes first: for the others the first events are read.
  std::function<bool(const model::RunState&)> may_match;
  std::function<bool(const ListedRun&)> matches;
};

struct RunPage {
  std::vector<ListedRun> runs;  // newest first
  std::string next;             // `before` of the next page; empty: there is none
};

// Lists workflows by their last runs, without an index: a run's id begins with the time at which it
// was made, so its row stands where its age puts it. A page reads a bounded number of rows, and may
// therefore be short, or empty, and still not be the last one.
//
// Reads the store and nothing else; from any thread. What it tells is durable when it is told.
class RunList {
 public:
  RunList(const store::Store* store, CommitLog* commits, uint16_t shards)
      : store_(*store), commits_(*commits), shards_(shards) {}

  void list(const ListRuns& request, Reply<RunPage> reply) const;

  // Rows of each shard that a page reads at most.
  static constexpr size_t kRowsMax = 500;

 private:
  struct Part;
  Part list_shard(ShardId shard, const ListRuns& request) const;

  const store::Store& store_;
  CommitLog& commits_;
  const uint16_t shards_;
};

}  // namespace fairlead::shard
