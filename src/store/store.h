#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fairlead::store {

// A set of changes that become visible together, and survive a crash together or not at all.
class WriteBatch {
 public:
  enum class Kind : uint8_t { kPut, kErase, kEraseRange };
  struct Op {
    Kind kind;
    std::string key;
    std::string value;  // the end of the range for kEraseRange
  };

  void put(std::string key, std::string value) {
    ops_.push_back({Kind::kPut, std::move(key), std::move(value)});
  }
  void erase(std::string key) { ops_.push_back({Kind::kErase, std::move(key), {}}); }
  // Everything in [begin, end).
  void erase_range(std::string begin, std::string end) {
    ops_.push_back({Kind::kEraseRange, std::move(begin), std::move(end)});
  }

  const std::vector<Op>& ops() const { return ops_; }
  bool empty() const { return ops_.empty(); }

 private:
  std::vector<Op> ops_;
};

// An ordered map from bytes to bytes, on disk or in memory.
//
// `write` makes a batch visible to every later read at once. It is durable only when a `sync` that
// was called after the write has returned OK. Batches reach the disk in the order in which they
// were written: after a crash the store holds all batches up to some point and nothing of any later
// one, and that point is never before the last successful sync.
//
// Reads and writes may come from any thread. A failed write or sync is final: the store refuses
// everything that follows, because what is on disk is no longer known.
class Store {
 public:
  virtual ~Store() = default;

  virtual absl::StatusOr<std::optional<std::string>> get(std::string_view key) const = 0;

  // Calls `visit` for each row of [begin, end) in ascending order until it returns false. The scan
  // sees the store as it was when it began. `visit` may read the store, but must not write to it.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  virtual absl::Status scan(std::string_view begin, std::string_view end,
                            const Visit& visit) const = 0;
  // The same in descending order, starting just below `end`.
  virtual absl::Status scan_reverse(std::string_view begin, std::string_view end,
                                    const Visit& visit) const = 0;

  virtual absl::Status write(const WriteBatch& batch) = 0;
  virtual absl::Status sync() = 0;
};

}  // namespace fairlead::store
