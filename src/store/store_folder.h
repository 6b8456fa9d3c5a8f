#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fairlead::store {

// The folder of an embedded store, held by one process at a time.
//
//   lock           flock()ed while open; holds the owner's pid as text
//   synced         how far the store is durable, see below
//   rocksdb/       the database. It exists only once it is completely initialised
//   rocksdb.new/   a database that is being initialised; leftovers are removed
//
// The synced mark is the last sequence number known to be durable. It is written after every sync,
// and never synced itself: a crash of the process cannot lose it, and a power failure can only set
// it back a little. So it is a lower bound, and a database that ends before it has lost
// acknowledged changes. Without it a log that was cut short is indistinguishable from one whose end
// was never promised to anyone.
class StoreFolder {
 public:
  // Makes the folder when it is missing, and refuses one that another process holds.
  static absl::StatusOr<std::unique_ptr<StoreFolder>> open(std::string path);
  ~StoreFolder();
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string database() const { return path_ + "/rocksdb"; }
  std::string new_database() const { return path_ + "/rocksdb.new"; }
  std::string synced_mark() const { return path_ + "/synced"; }

  absl::StatusOr<bool> has_database() const;
  // Removes what an interrupted initialisation left.
  absl::Status clear_new_database();
  // Makes the new database the database, durably.
  absl::Status adopt_new_database();

  // Nothing when the mark is missing or unreadable: it then claims nothing.
  std::optional<uint64_t> read_synced() const;
  absl::Status write_synced(uint64_t sequence);

 private:
  StoreFolder(std::string path, int lock_fd, int synced_fd)
      : path_(std::move(path)), lock_fd_(lock_fd), synced_fd_(synced_fd) {}

  const std::string path_;
  const int lock_fd_;
  const int synced_fd_;
};

}  // namespace fairlead::store
