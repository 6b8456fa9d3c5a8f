#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/hash.h"
#include "model/model.pb.h"

namespace fairlead::queue {

// How many levels a queue has unless told otherwise, and at most.
inline constexpr uint32_t kLevelsDefault = 5;
inline constexpr uint32_t kLevelsMax = 64;
// The most that a level may leave to those below it, in hundredths of its turns.
inline constexpr uint32_t kLowerLevelShareMax = 50;
constexpr uint32_t default_level(uint32_t levels) { return (levels + 1) / 2; }
inline constexpr uint32_t kDefaultLevel = default_level(kLevelsDefault);
inline constexpr size_t kFairnessKeyBytesMax = 64;

// The level a task waits in: 1 is most urgent. Keys beyond the last level belong to the last one.
inline uint32_t effective_level(const model::Priority& priority, uint32_t levels) {
  if (priority.priority_key() <= 0) return default_level(levels);
  return std::min(static_cast<uint32_t>(priority.priority_key()), levels);
}

// What a client may ask for.
inline absl::Status check_priority(const model::Priority& priority) {
  if (priority.priority_key() < 0)
    return errors::invalid_argument("priority key can't be negative");
  if (priority.fairness_key().size() > kFairnessKeyBytesMax) {
    return errors::invalid_argument("fairness key length exceeds limit");
  }
  // Written as "not at least zero" so that NaN, which compares false with everything, is refused
  // too.
  if (!(priority.fairness_weight() >= 0) || std::isinf(priority.fairness_weight())) {
    return errors::invalid_argument("must be greater than zero");
  }
  return absl::OkStatus();
}

// Keys beyond those that a queue may have share this many lines.
inline constexpr uint64_t kSharedLines = 65'536;
inline constexpr std::string_view kSharedLinePrefix = "/_sys/shared/";

// The line that a key shares with others. DO NOT CHANGE: rows are found by it.
inline std::string shared_line(std::string_view key) {
  return absl::StrCat(std::string(kSharedLinePrefix), stable_hash(key) % kSharedLines);
}

inline bool is_shared_line(std::string_view line) { return line.starts_with(kSharedLinePrefix); }

}  // namespace fairlead::queue
