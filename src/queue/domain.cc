#include "queue/domain.h"

#include <limits>

#include "base/assert.h"

namespace fairlead::queue {

Domain::Domain(Order order) : eligible_(Rule{this}), ahead_(Rule{this}), order_(order) {}

bool Domain::Rule::before(const HeapEntry& a, const HeapEntry& b) const {
  const auto difference = static_cast<int64_t>(a.tag - b.tag);
  if (difference != 0) return difference < 0;
  const bool is_in_flight = domain->order_ == Order::kInFlight;
  if (!is_in_flight && a.order != b.order) return a.order < b.order;
  const auto& x = domain->accounts_[a.item];
  const auto& y = domain->accounts_[b.item];
  if (is_in_flight) {
    // As many running for their weight: then by what they have had.
    const auto had = static_cast<int64_t>((x.start + x.stride()) - (y.start + y.stride()));
    if (had != 0) return had < 0;
  }
  return x.head < y.head;
}

// A head's number in the 32 bits that an entry has for it. Whoever is so old that it does not fit
// gets 0, and a rule that meets two of those looks at their accounts: the order is exact always,
// and fast among the last billions of tasks.
uint32_t Domain::order_of(uint64_t head) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if (head > order_base_ && head - order_base_ > kMost) {
    order_base_ = head - kMost / 2;
    const auto renumber = [&](HeapEntry& entry) {
      const uint64_t own = accounts_[entry.item].head;
      entry.order = own <= order_base_ ? 0 : static_cast<uint32_t>(own - order_base_);
    };
    eligible_.for_each(renumber);
    ahead_.for_each(renumber);
  }
  return head <= order_base_ ? 0 : static_cast<uint32_t>(head - order_base_);
}

Member Domain::add() {
  const Member member = accounts_.add();
  if (places_.size() <= member) places_.resize(member + 1);
  return member;
}

void Domain::free(Member member) {
  FL_ASSERT(can_free(member), "a member leaves, and its row goes, before its place is freed");
  accounts_.free(member);
}

void Domain::mark(Member member) {
  auto& account = accounts_[member];
  if (account.is_unsaved) return;
  account.is_unsaved = true;
  unsaved_.push_back(member);
}

// (S - base) * W <= M says the same as S <= V without a division.
bool Domain::is_due(const Account& account) const {
  return static_cast<__int128>(static_cast<int64_t>(account.start - base_)) * weights_ <= moment_;
}

uint64_t Domain::clock() const {
  if (weights_ == 0) return base_;
  __int128 mean = moment_ / weights_;
  if (moment_ % weights_ < 0) --mean;  // towards minus infinity
  return base_ + static_cast<uint64_t>(mean);
}

// Keeps the sum small. Nothing that is compared changes.
void Domain::follow() {
  constexpr __int128 kFar = static_cast<__int128>(1) << 40;
  if (moment_ < kFar * weights_) return;
  const uint64_t clock_now = clock();
  moment_ -= static_cast<__int128>(clock_now - base_) * weights_;
  base_ = clock_now;
}

void Domain::enter(Member member, Weight weight) {
  auto& account = accounts_[member];
  account.start = clock();
  account.weight = weight;
  weights_ += weight.fixed();
  moment_ += static_cast<__int128>(static_cast<int64_t>(account.start - base_)) * weight.fixed();
  ++members_;
  mark(member);
}

void Domain::leave(Member member) {
  auto& account = accounts_[member];
  const uint64_t clock_now = clock();
  moment_ -=
      static_cast<__int128>(static_cast<int64_t>(account.start - base_)) * account.weight.fixed();
  weights_ -= account.weight.fixed();
  account.weight = Weight::from_fixed(0);
  set_fresh(member, false);
  account.uncommitted = 0;
  --members_;
  if (weights_ == 0) {
    base_ = clock_now;
    moment_ = 0;
  }
  mark(member);
}

void Domain::move_start(Account& account, uint64_t start) {
  moment_ +=
      static_cast<__int128>(static_cast<int64_t>(start - account.start)) * account.weight.fixed();
  account.start = start;
}

void Domain::insert(Member member) {
  auto& account = accounts_[member];
  const uint32_t order = order_of(account.head);
  if (order_ == Order::kFifo) {
    account.where = Where::kEligible;
    eligible_.push({account.head, order, member});
  } else if (order_ == Order::kInFlight && account.is_active) {
    account.where = Where::kEligible;
    eligible_.push({account.running * account.stride(), order, member});
  } else if (account.is_active && is_due(account)) {
    account.where = Where::kEligible;
    eligible_.push({account.start + account.stride(), order, member});
  } else {
    account.where = Where::kAhead;
    ahead_.push({account.start, order, member});
  }
}

void Domain::take_out(Member member) {
  auto& account = accounts_[member];
  if (account.where == Where::kEligible) eligible_.erase(places_[member]);
  if (account.where == Where::kAhead) ahead_.erase(places_[member]);
  account.where = Where::kNowhere;
}

// Lets go of those whom the clock has reached.
void Domain::settle() {
  while (!ahead_.empty()) {
    const Member member = ahead_.top().item;
    auto& account = accounts_[member];
    if (!is_due(account)) break;
    ahead_.pop();
    account.where = Where::kNowhere;
    if (account.is_active) {
      insert(member);
    } else {
      leave(member);
    }
  }
  follow();
}

void Domain::activate(Member member, Weight weight, uint64_t head) {
  auto& account = accounts_[member];
  FL_ASSERT(!account.is_active, "an active member is told of a new head, not of a first one");
  settle();
  ++actives_;
  if (order_ == Order::kFair && account.where == Where::kAhead && account.weight == weight) {
    // It comes back before its turn: only its task is another one.
    account.is_active = true;
    account.head = head;
    ahead_.update(places_[member], {account.start, order_of(head), member});
    return;
  }
  take_out(member);
  account.is_active = true;
  account.head = head;
  if (order_ == Order::kFifo) {
    insert(member);
    return;
  }
  if (!is_member(member)) {
    enter(member, weight);
    if (is_prompt_) set_fresh(member, true);
  } else {
    scale(member, weight);
  }
  insert(member);
}

void Domain::rest(Member member) {
  auto& account = accounts_[member];
  if (account.is_active) --actives_;
  account.is_active = false;
  take_out(member);
  if (!is_member(member)) return;
  set_fresh(member, false);
  if (is_due(account)) {
    is_save_due_ = true;  // what it was owed is shared out: the clock moves
    leave(member);
  } else {
    insert(member);
  }
}

void Domain::set_fresh(Member member, bool fresh) {
  auto& account = accounts_[member];
  if (account.is_fresh) fresh_.erase({account.head, member});
  account.is_fresh = fresh;
  if (fresh) fresh_.insert({account.head, member});
}

std::optional<Member> Domain::pick() {
  settle();
  std::optional<Member> found;
  if (is_prompt_ && order_ == Order::kFair) {
    if (toggle_ && !fresh_.empty()) found = fresh_.begin()->second;
  }
  while (!found.has_value() && !eligible_.empty()) {
    const Member member = eligible_.top().item;
    auto& account = accounts_[member];
    if (order_ == Order::kFair && !is_due(account)) {
      // The clock went back when a pick was undone.
      take_out(member);
      insert(member);
      continue;
    }
    found = member;
  }
  if (!found.has_value()) return std::nullopt;
  charge(*found, accounts_[*found].weight);
  return found;
}

void Domain::charge(Member member, Weight weight) {
  auto& account = accounts_[member];
  take_out(member);
  if (order_ == Order::kFifo) return;
  if (!is_member(member)) {
    settle();
    enter(member, weight);
  } else {
    scale(member, weight);
  }
  uint64_t start = account.start + account.stride();
  if (order_ == Order::kInFlight) {
    // What runs is counted while it runs; of what has ended only the last task is held against it.
    const uint64_t most = clock() + account.stride();
    if (is_after(start, most)) start = most;
  }
  move_start(account, start);
  ++account.uncommitted;
  set_fresh(member, false);
  mark(member);
}

void Domain::next(Member member, Weight weight, uint64_t head) {
  auto& account = accounts_[member];
  FL_ASSERT(account.where == Where::kNowhere, "only a picked member goes on");
  account.head = head;
  if (order_ != Order::kFifo) scale(member, weight);
  insert(member);
}

void Domain::commit(Member member) {
  auto& account = accounts_[member];
  toggle_ = !toggle_;
  if (account.uncommitted > 0) --account.uncommitted;
  if (is_member(member)) mark(member);
}

void Domain::undo(Member member) {
  auto& account = accounts_[member];
  if (!is_member(member) || account.uncommitted == 0) return;
  --account.uncommitted;
  const bool was_placed = account.where != Where::kNowhere;
  take_out(member);
  move_start(account, account.start - account.stride());
  mark(member);
  if (account.is_active) {
    if (was_placed) insert(member);
  } else {
    rest(member);
  }
}

void Domain::reweigh(Member member, Weight weight) {
  settle();
  scale(member, weight);
}

void Domain::scale(Member member, Weight weight) {
  auto& account = accounts_[member];
  if (!is_member(member) || account.weight == weight) return;
  const bool was_placed = account.where != Where::kNowhere;
  take_out(member);
  is_save_due_ = true;
  // S' = V + (S - V) * w / w', rounded up so that the clock never goes back.
  const uint64_t clock_now = clock();
  const auto owed = static_cast<__int128>(static_cast<int64_t>(account.start - clock_now)) *
                    account.weight.fixed();
  __int128 scaled = owed / weight.fixed();
  if (owed % weight.fixed() > 0) ++scaled;
  moment_ -=
      static_cast<__int128>(static_cast<int64_t>(account.start - base_)) * account.weight.fixed();
  weights_ = weights_ - account.weight.fixed() + weight.fixed();
  account.start = clock_now + static_cast<uint64_t>(scaled);
  account.weight = weight;
  moment_ += static_cast<__int128>(static_cast<int64_t>(account.start - base_)) * weight.fixed();
  mark(member);
  if (was_placed) insert(member);
}

void Domain::set_head(Member member, Weight weight, uint64_t head) {
  settle();
  auto& account = accounts_[member];
  take_out(member);
  const bool was_fresh = account.is_fresh;
  set_fresh(member, false);
  account.head = head;
  set_fresh(member, was_fresh);
  if (order_ != Order::kFifo) scale(member, weight);
  insert(member);
}

void Domain::set_running(Member member, uint32_t running) {
  auto& account = accounts_[member];
  account.running = running;
  if (order_ != Order::kInFlight || account.where != Where::kEligible) return;
  eligible_.update(places_[member], {running * account.stride(), order_of(account.head), member});
}

double Domain::lag(Member member) const {
  const auto& account = accounts_[member];
  if (!is_member(member)) return 0;
  return static_cast<double>(static_cast<int64_t>(clock() - account.start)) /
         static_cast<double>(account.stride());
}

double Domain::share(Member member) const {
  if (!is_active(member) || weights_ == 0) return 0;
  return static_cast<double>(accounts_[member].weight.fixed()) / static_cast<double>(weights_);
}

size_t Domain::before(Member member) const {
  const auto& account = accounts_[member];
  if (account.where == Where::kNowhere) return actives_;
  const Rule rule{const_cast<Domain*>(this)};
  size_t count = 0;
  if (account.where == Where::kEligible) {
    const auto& own = eligible_.at(places_[member]);
    eligible_.for_each([&](const HeapEntry& entry) { count += rule.before(entry, own) ? 1 : 0; });
    return count;
  }
  // Everyone whose turn has come, and those whose turn comes sooner.
  count = eligible_.size();
  const auto& own = ahead_.at(places_[member]);
  ahead_.for_each([&](const HeapEntry& entry) {
    if (accounts_[entry.item].is_active && rule.before(entry, own)) ++count;
  });
  return count;
}

void Domain::restore(Member member, const Saved& saved, std::optional<uint64_t> head) {
  auto& account = accounts_[member];
  FL_ASSERT(!is_member(member), "a member is restored once");
  account.has_row = true;
  if (order_ == Order::kFifo) {
    mark(member);  // a row of another order
    return;
  }
  if (members_ == 0) base_ = saved.start;
  account.start = saved.start;
  account.weight = Weight::from_fixed(saved.weight);
  weights_ += saved.weight;
  moment_ += static_cast<__int128>(static_cast<int64_t>(saved.start - base_)) * saved.weight;
  ++members_;
  if (head.has_value()) {
    account.is_active = true;
    account.head = *head;
    set_fresh(member, saved.is_fresh && is_prompt_);
    ++actives_;
  }
  // Everyone is let in or let go when the clock is known.
  if (order_ == Order::kInFlight && account.is_active) {
    insert(member);
  } else {
    account.where = Where::kAhead;
    ahead_.push({account.start, order_of(account.head), member});
  }
}

void Domain::restored() { settle(); }

void Domain::reset(Order order) {
  eligible_.clear();
  ahead_.clear();
  fresh_.clear();
  order_ = order;
  actives_ = 0;
  members_ = 0;
  weights_ = 0;
  moment_ = 0;
  for (Member member = 0; member < accounts_.size(); ++member) {
    auto& account = accounts_[member];
    account.weight = Weight::from_fixed(0);
    account.where = Where::kNowhere;
    account.is_active = false;
    account.is_fresh = false;
    account.uncommitted = 0;
    if (account.has_row) mark(member);
  }
}

}  // namespace fairlead::queue
