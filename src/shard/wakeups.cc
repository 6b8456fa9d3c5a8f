#include "shard/wakeups.h"

#include <algorithm>

#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {
// How far ahead of the present the window reaches.
constexpr DurationNs kAhead = kMinute;
// A horizon's run: smaller than any run id, so that the entry stands before all rows of its time.
constexpr char kBeforeAll[] = "";
}  // namespace

void Wakeups::arm(TimeNs at, const std::string& run, store::WriteBatch* batch) {
  batch->put(store::keys::wakeup(shard_, at, run), "");
  Entry entry{at, run};
  if (entry < horizon_) window_.insert(std::move(entry));
  if (window_.size() > 2 * window_max_) {
    // The far half goes back to being rows only.
    auto keep_to = std::next(window_.begin(), static_cast<std::ptrdiff_t>(window_max_));
    horizon_ = *keep_to;
    window_.erase(keep_to, window_.end());
    reload_at_ = std::min(reload_at_, horizon_.first);
  }
}

void Wakeups::disarm(TimeNs at, const std::string& run, store::WriteBatch* batch) {
  batch->erase(store::keys::wakeup(shard_, at, run));
  window_.erase({at, run});
}

void Wakeups::load(TimeNs now) {
  const TimeNs to = add_saturated(now, kAhead);
  const auto rows = store::keys::wakeups(shard_);
  const std::string begin =
      horizon_.second.empty()
          ? std::max(rows.begin, store::keys::wakeup(shard_, horizon_.first, std::string(16, '\0')))
          : store::keys::wakeup(shard_, horizon_.first, horizon_.second);
  const std::string end = store::keys::wakeup(shard_, to, std::string(16, '\0'));
  Entry reached{to, kBeforeAll};
  if (begin < end) {
    const auto status = store_->scan(begin, end, [&](std::string_view key, std::string_view) {
      const auto row = store::keys::parse_wakeup(key);
      if (window_.size() >= window_max_) {
        reached = {row.at, row.run};
        return false;
      }
      window_.insert({row.at, row.run});
      return true;
    });
    FL_ASSERT(status.ok(), "the store can be read");
  }
  horizon_ = std::max(horizon_, reached);
  // Look again before the window's end comes near, or when a full window has been worked off.
  reload_at_ = horizon_.first == to ? now + kAhead / 2 : horizon_.first;
}

std::vector<Wakeups::Due> Wakeups::take_due(TimeNs now, size_t count_max) {
  if (now >= reload_at_) load(now);
  std::vector<Due> due;
  while (!window_.empty() && window_.begin()->first <= now && due.size() < count_max) {
    due.push_back({window_.begin()->first, window_.begin()->second});
    window_.erase(window_.begin());
  }
  return due;
}

TimeNs Wakeups::next() const {
  return window_.empty() ? reload_at_ : std::min(window_.begin()->first, reload_at_);
}

}  // namespace fairlead::shard
