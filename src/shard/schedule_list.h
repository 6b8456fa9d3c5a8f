#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/schedules.pb.h"
#include "shard/commit_log.h"
#include "shard/requests.h"
#include "store/store.h"

namespace fairlead::shard {

struct ListSchedules {
  NamespaceNum ns;
  std::string before;  // a schedule's key: those that were made before it; empty: from the newest
  size_t max = 50;
  std::function<bool(const model::Schedule&)> matches;
};

struct SchedulePage {
  std::vector<model::Schedule> schedules;  // newest first
  std::string next;                        // `before` of the next page; empty: there is none
};

// Lists the schedules of a namespace. Their number is limited, so their names are gone through;
// rows are read as far as a page needs them.
//
// Reads the store and nothing else; from any thread. What it tells is durable when it is told.
class ScheduleList {
 public:
  ScheduleList(const store::Store* store, CommitLog* commits, uint16_t shards)
      : store_(*store), commits_(*commits), shards_(shards) {}

  void list(const ListSchedules& request, Reply<SchedulePage> reply) const;
  // Those that are not deleted.
  int64_t count(NamespaceNum ns) const;
  bool has_fewer(NamespaceNum ns, int64_t max) const;

 private:
  struct Named {
    std::string key;
    ShardId shard;
  };
  std::vector<Named> names(NamespaceNum ns) const;
  std::optional<model::Schedule> load(const Named& named) const;

  const store::Store& store_;
  CommitLog& commits_;
  const uint16_t shards_;
};

}  // namespace fairlead::shard
