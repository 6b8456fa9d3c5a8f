#include "admission/shared_budget.h"

#include <algorithm>

#include "base/assert.h"

namespace fairlead::admission {

void SharedBudget::end_lease() {
  FL_ASSERT(leases_ > 0, "a lease came back twice: the caller's bookkeeping is broken");
  --leases_;
}

SharedBudget::Kept SharedBudget::kept_from(const Waiter& asker) const {
  Kept kept;
  for (const auto* claimant : claimants_) {
    if (claimant == &asker) continue;
    ++kept.places;
    kept.until = std::min(kept.until, claimant->claim_until);
  }
  return kept;
}

void SharedBudget::wait(Waiter* waiter, int64_t max, Span span) {
  FL_ASSERT(waiter->waits_at == nullptr || waiter->waits_at == this, "a queue waits in one place");
  if (waiter->waits_at == nullptr) waiter->ticket = ++last_ticket_;
  if (waiter->claim_until != 0) std::erase(claimants_, waiter);
  waiter->waits_at = this;
  waiter->claim_until = 0;
  waiter->max = max;
  waiter->span = span;
  waiting_[waiter->ticket] = waiter;
  max_waited_for_ = std::max(max_waited_for_, max);
}

void SharedBudget::leave(Waiter* waiter) {
  FL_ASSERT(waiter->waits_at == this, "it waits elsewhere");
  if (waiter->claim_until != 0) {
    std::erase(claimants_, waiter);
  } else {
    waiting_.erase(waiter->ticket);
  }
  waiter->waits_at = nullptr;
  waiter->claim_until = 0;
}

void SharedBudget::call(TimeNs now, std::vector<Waiter*>* called) {
  if (!is_waited_for()) return;
  if (is_rate_) now = window_.advance(now);
  std::erase_if(claimants_, [&](Waiter* claimant) {
    // A clock that was set back does not make a promise longer.
    const bool is_over = claimant->claim_until <= now || claimant->claim_until > now + kClaim;
    if (is_over) {
      claimant->waits_at = nullptr;
      claimant->claim_until = 0;
    }
    return is_over;
  });
  const int64_t used_least = std::min(used(Span::kFixed), used(Span::kSliding));
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto claims = static_cast<int64_t>(claimants_.size());
    if (used_least + claims >= max_waited_for_) break;
    Waiter* const waiter = next->second;
    if (used(waiter->span) + claims >= waiter->max) {
      ++next;
      continue;
    }
    next = waiting_.erase(next);
    waiter->claim_until = now + kClaim;
    claimants_.push_back(waiter);
    called->push_back(waiter);
  }
  if (waiting_.empty()) max_waited_for_ = 0;
}

}  // namespace fairlead::admission
