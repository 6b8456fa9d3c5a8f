#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/strong.h"
#include "store/store.h"

namespace fairlead::shard {

// Rows of runs that will be asked for soon, as they stand in the store.
//
// A backlog that is worked off asks for runs in the order in which they were made, and their ids
// sort that way:
//
//    R shard  run 1  run 2  run 3  run 4 …        the first one is searched for,
//    E shard  1a 1b  2a     3a     4a …           the others are read by going on from there
//
// Going on costs a tenth of a search. It is done when the run that is missing was made right after
// the one that was missing before it, and not for a while when that guess was wrong. Runs made in
// the same moment are asked for in any order: so what was read before the last time is kept, too.
//
// A run's rows are changed only by whoever has it in memory, and what is taken from here is gone
// from here. So what is kept is what the store has.
class RunsAhead {
 public:
  struct Rows {
    std::string state;
    std::string first_events;  // its first batch of events; empty if it was not read
  };

  RunsAhead(ShardId shard, const store::Store* store) : shard_(shard), store_(store) {}

  // The rows of a run that is not in memory; nullopt if there is none. `is_in_memory` is asked of
  // those behind it.
  std::optional<Rows> take(const std::string& run,
                           absl::FunctionRef<bool(const std::string&)> is_in_memory);

 private:
  std::optional<Rows> read_one(const std::string& run) const;
  void read_on(const std::string& run, absl::FunctionRef<bool(const std::string&)> is_in_memory);
  // Whether the run was made right after the last one that was missing.
  bool follows(const std::string& run);

  const ShardId shard_;
  const store::Store* const store_;
  using Page = absl::flat_hash_map<std::string, Rows>;
  Page page_;
  Page page_before_;   // none of them is in both
  std::string begin_;  // of the page
  uint64_t last_missing_ms_ = 0;
  int wrong_ = 0;  // how many more are read one by one
};

}  // namespace fairlead::shard
