#include "admission/dispatch_window.h"

#include <algorithm>

#include "base/assert.h"

namespace fairlead::admission {

namespace {

// An emptied ring larger than this is given back.
constexpr size_t kRingKept = 64;

}  // namespace

TimeNs DispatchWindow::advance(TimeNs now, std::vector<uint32_t>* freed) {
  if (size_ > 0 && entry(size_ - 1).at > now) {
    if (entry(size_ - 1).at - now > kMinute) step_back(now);
    now = entry(size_ - 1).at;
  }
  while (size_ > 0 && entry(0).at <= now - kMinute) {
    if (freed != nullptr) freed->push_back(entry(0).slot);
    head_ = (head_ + 1) & (ring_.size() - 1);
    --size_;
  }
  if (size_ == 0 || minute_of(now) > minute_) {
    minute_ = minute_of(now);
    in_minute_ = 0;
  }
  if (size_ == 0 && ring_.size() > kRingKept) {
    ring_ = {};
    head_ = 0;
  }
  return now;
}

// The clock was set back by more than a minute: the newest dispatch was just now.
void DispatchWindow::step_back(TimeNs now) {
  const DurationNs ahead = entry(size_ - 1).at - now;
  for (size_t i = 0; i < size_; ++i) entry(i).at -= ahead;
  minute_ = minute_of(now);
}

TimeNs DispatchWindow::next_free(Span span, int64_t max) const {
  if (used(span) < max) return 0;
  if (span == Span::kFixed) return (minute_ + 1) * kMinute;
  return entry(size_ - static_cast<size_t>(max)).at + kMinute;
}

void DispatchWindow::take(TimeNs time, uint32_t slot) {
  FL_ASSERT(size_ == 0 || entry(size_ - 1).at <= time, "dispatches are taken in the order of time");
  push({time, slot});
  if (minute_of(time) > minute_) {
    minute_ = minute_of(time);
    in_minute_ = 0;
  }
  ++in_minute_;
}

size_t DispatchWindow::find(TimeNs time, uint32_t slot) const {
  for (size_t i = size_; i-- > 0;) {
    if (slot != kNoSlot && entry(i).slot == slot) return i;
    if (slot == kNoSlot && entry(i).at <= time) return entry(i).at == time ? i : size_;
  }
  return size_;
}

bool DispatchWindow::give_back(TimeNs time, uint32_t slot) {
  const size_t found = find(time, slot);
  if (found == size_) return false;
  time = entry(found).at;
  for (size_t i = found; i + 1 < size_; ++i) entry(i) = entry(i + 1);
  --size_;
  if (minute_of(time) == minute_ && in_minute_ > 0) --in_minute_;
  return true;
}

void DispatchWindow::push(const Dispatch& dispatch) {
  if (size_ == ring_.size()) {
    std::vector<Dispatch> larger(std::max<size_t>(4, 2 * ring_.size()));
    for (size_t i = 0; i < size_; ++i) larger[i] = entry(i);
    ring_ = std::move(larger);
    head_ = 0;
  }
  ++size_;
  entry(size_ - 1) = dispatch;
}

void DispatchWindow::loaded() {
  if (size_ == 0) return;
  std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(head_), ring_.end());
  head_ = 0;
  const auto end = ring_.begin() + static_cast<std::ptrdiff_t>(size_);
  std::sort(ring_.begin(), end, [](const Dispatch& a, const Dispatch& b) { return a.at < b.at; });
  minute_ = minute_of(entry(size_ - 1).at);
  in_minute_ = std::count_if(ring_.begin(), end, [&](const Dispatch& dispatch) {
    return minute_of(dispatch.at) == minute_;
  });
}

}  // namespace fairlead::admission
