#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "store/store.h"

namespace fairlead::store {

// DO NOT CHANGE without a migration: what the keys and values of a store look like. A store keeps
// the version it was made with in its row keys::meta("format").
inline constexpr uint32_t kFormatVersion = 2;

struct RocksDbOptions {
  // For a new store. One that exists keeps the count it was made with.
  uint16_t shard_count = 64;
  // Changes are gathered in memory up to this size, then written to a sorted file; one such table
  // may be filling while another is being written. Memory is taken as it fills, not before.
  size_t memtable_bytes = size_t{64} << 20;
  size_t block_cache_bytes = size_t{32} << 20;
  // The logs kept for recovery: bounds the disk they take and the time a start takes.
  size_t wal_bytes_max = size_t{256} << 20;
};

// A store in a folder of this machine, on RocksDB.
//
// Thread-safe. `write` touches memory only; `sync` writes the log to the disk and waits for it, so
// one thread should call it for everyone. Destroying the store syncs it.
class RocksDbStore : public Store {
 public:
  virtual uint16_t shard_count() const = 0;
};

// Opens the store in the folder `dir`, or makes one there.
//
//   FailedPrecondition   in use by another process, not a folder, read-only, or of a format that
//                        this version does not know
//   PermissionDenied     the folder belongs to someone else
//   DataLoss             damaged: acknowledged changes cannot be read. Nothing has been altered
//   ResourceExhausted    no space left
absl::StatusOr<std::unique_ptr<RocksDbStore>> open_rocksdb(std::string dir, RocksDbOptions options);

}  // namespace fairlead::store
