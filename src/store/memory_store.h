#pragma once

#include <mutex>

#include "store/image.h"
#include "store/store.h"

namespace fairlead::store {

// A store that forgets everything when it is destroyed. For tests: every write counts as durable,
// and nothing ever fails.
class MemoryStore final : public Store {
 public:
  absl::StatusOr<std::optional<std::string>> get(std::string_view key) const override;
  absl::Status scan(std::string_view begin, std::string_view end,
                    const Visit& visit) const override;
  absl::Status scan_reverse(std::string_view begin, std::string_view end,
                            const Visit& visit) const override;
  absl::Status write(const WriteBatch& batch) override;
  absl::Status sync() override;

 private:
  // Recursive so that a visitor may read: a scan holds the lock to see one moment of the store.
  mutable std::recursive_mutex mutex_;
  Image image_;
};

}  // namespace fairlead::store
