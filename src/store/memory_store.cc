#include "store/memory_store.h"

namespace fairlead::store {

absl::StatusOr<std::optional<std::string>> MemoryStore::get(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  return image_.get(key);
}

absl::Status MemoryStore::scan(std::string_view begin, std::string_view end,
                               const Visit& visit) const {
  const std::lock_guard lock(mutex_);
  image_.scan(begin, end, visit);
  return absl::OkStatus();
}

absl::Status MemoryStore::scan_reverse(std::string_view begin, std::string_view end,
                                       const Visit& visit) const {
  const std::lock_guard lock(mutex_);
  image_.scan_reverse(begin, end, visit);
  return absl::OkStatus();
}

absl::Status MemoryStore::write(const WriteBatch& batch) {
  const std::lock_guard lock(mutex_);
  image_.apply(batch);
  return absl::OkStatus();
}

absl::Status MemoryStore::sync() { return absl::OkStatus(); }

}  // namespace fairlead::store
