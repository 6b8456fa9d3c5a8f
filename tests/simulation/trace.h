#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/time.h"

namespace fairlead::sim {

// What happened, as one number and, if wanted, as lines. Two runs of a seed that differ anywhere
// differ in the number.
class Trace {
 public:
  Trace(Clock* clock, bool prints) : clock_(clock), start_(clock->now()), prints_(prints) {}

  void note(std::string_view line) {
    const TimeNs now = clock_->now();
    hash_ = stable_hash(line, hash_ ^ static_cast<uint64_t>(now));
    if (!prints_) return;
    std::printf("%12.6f  %.*s\n", static_cast<double>(now - start_) / kSecond,
                static_cast<int>(line.size()), line.data());
  }
  // Bytes that count but would be unreadable.
  void fold(std::string_view bytes) { hash_ = stable_hash(bytes, hash_); }
  uint64_t hash() const { return hash_; }
  bool prints() const { return prints_; }

 private:
  Clock* const clock_;
  const TimeNs start_;
  const bool prints_;
  uint64_t hash_ = 0;
};

}  // namespace fairlead::sim
