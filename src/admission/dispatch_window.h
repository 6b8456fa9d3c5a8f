#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "admission/policy.h"
#include "base/time.h"

namespace fairlead::admission {

// The dispatches that a budget per minute counts: those of the wall clock's minute and, one by one,
// those of the last sixty seconds. Both are kept, so that switching between the two spans at a
// reload forgets nothing.
//
// Time may step back. A little, and the window's own present stands still until the world has
// caught up; by more than a minute, and its dispatches move along, because no record of the future
// should close a budget for longer than that. Neither way lets more through.
class DispatchWindow {
 public:
  struct Dispatch {
    TimeNs at = 0;
    uint32_t slot = kNoSlot;  // of its row, in a window that owns rows
  };
  static constexpr uint32_t kNoSlot = 0xffffffff;

  // Forgets what is over and gives back the window's present. Slots of forgotten rows go to
  // `freed`.
  TimeNs advance(TimeNs now, std::vector<uint32_t>* freed = nullptr);

  // As of the last `advance`.
  int64_t used(Span span) const {
    return span == Span::kFixed ? in_minute_ : static_cast<int64_t>(size_);
  }
  // When a full budget has room again.
  TimeNs next_free(Span span, int64_t max) const;

  // `time` is what `advance` gave back, or later.
  void take(TimeNs time, uint32_t slot = kNoSlot);
  // It was not dispatched after all. False if the window has forgotten it already.
  bool give_back(TimeNs time, uint32_t slot = kNoSlot);
  bool contains(uint32_t slot) const { return find(0, slot) < size_; }

  // Rows come in any order; then `loaded`.
  void load(const Dispatch& dispatch) { push(dispatch); }
  void loaded();

  bool is_empty() const { return size_ == 0; }

 private:
  static int64_t minute_of(TimeNs time) { return time / kMinute; }

  Dispatch& entry(size_t i) { return ring_[(head_ + i) & (ring_.size() - 1)]; }
  const Dispatch& entry(size_t i) const { return ring_[(head_ + i) & (ring_.size() - 1)]; }
  // Its place, or beyond the end. A slot says more than a time, which may have been moved.
  size_t find(TimeNs time, uint32_t slot) const;
  void push(const Dispatch& dispatch);
  void step_back(TimeNs now);

  std::vector<Dispatch> ring_;  // its size is a power of two, or 0
  size_t head_ = 0;
  size_t size_ = 0;
  int64_t minute_ = 0;
  int64_t in_minute_ = 0;
};

}  // namespace fairlead::admission
