#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "queue/heap.h"
#include "queue/slab.h"
#include "queue/weight.h"

namespace fairlead::queue {

using Member = uint32_t;

// How a domain orders its members.
enum class Order : uint8_t {
  kFair,      // by what each has had, against its weight
  kInFlight,  // by what each has running, against its weight
  kFifo,      // by who came first
};

// Whose turn it is: earliest eligible virtual deadline first, with an exact virtual clock.
//
// A member has a start tag S and a weight w. One task costs it 1/w of virtual time. The clock V is
// the weighted mean of all members' start tags:
//
//        ┌ eligible: S <= V, has not had more than its share ── smallest deadline S + 1/w goes
//        first
//    V ──┤
//        └ ahead:    S >  V, has had more than its share ────── waits until V gets there
//
// Each dispatch moves V by one task divided by the sum of all weights: that is the clock of an
// ideal server that works on all members at once in proportion to their weights. A member that runs
// out of tasks while it is ahead stays until V reaches it, so that coming back gains nothing; one
// that is not ahead leaves and starts anew at V. From this follows that nobody who waits is ever
// more than one task from its ideal share.
//
// All arithmetic is on integers. Tags are 64 bits, wrap around and are compared by their signed
// difference. `pick` is a proposal that is followed by `next` or `rest`, and later by `commit` or
// `undo`.
class Domain {
 public:
  explicit Domain(Order order = Order::kFair);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  // A place for a member. It takes no part before it is active.
  Member add();
  // Gives the place back. The member must have left, and its row must be gone.
  void free(Member member);
  bool can_free(Member member) const {
    const auto& account = accounts_[member];
    return !account.is_active && !is_member(member) && !account.is_unsaved && !account.has_row;
  }

  // The member has a task, and nothing holds it back. `head` is the task's number.
  void activate(Member member, Weight weight, uint64_t head);
  // It has none any more, or something holds it back.
  void rest(Member member);
  bool is_active(Member member) const { return accounts_[member].is_active; }
  // In the books: active, or resting with more than its share.
  bool is_member(Member member) const { return accounts_[member].weight.fixed() != 0; }

  // The active member whose turn it is, charged with one task. It is in no order until `next` or
  // `rest` says how it goes on.
  std::optional<Member> pick();
  // Charges a member with a task that goes out past the order. Call `rest` or `next` after it too.
  void charge(Member member, Weight weight);
  // The picked member has another task.
  void next(Member member, Weight weight, uint64_t head);

  // Fetches the accounts of those whose turn may come soon, and names them: `next(member)` for the
  // one who is first in line, `soon(member)` for those behind it. A hint; the order is `pick`'s.
  template <typename Next, typename Soon>
  void fetch_ahead(Next next, Soon soon) const;

  void commit(Member member);
  void undo(Member member);
  // Another weight from now on: what it is owed stays the same, in tasks.
  void reweigh(Member member, Weight weight);
  // Its head task changed without a pick.
  void set_head(Member member, Weight weight, uint64_t head);
  void set_running(Member member, uint32_t running);

  Order order() const { return order_; }
  // New members get their first task within a few picks: every second one may go to them.
  void set_prompt(bool prompt) { is_prompt_ = prompt; }
  bool is_prompt() const { return is_prompt_; }
  bool toggle() const { return toggle_; }
  void set_toggle(bool toggle) { toggle_ = toggle; }

  size_t actives() const { return actives_; }
  size_t members() const { return members_; }
  uint64_t clock() const;
  // Tasks that a member is behind (positive) or ahead of (negative) its ideal share.
  double lag(Member member) const;
  // The part of all dispatches that is a member's due while everyone goes on waiting.
  double share(Member member) const;
  // Active members that get a task before this one's next.
  size_t before(Member member) const;

  // What is remembered of a member on disk; `commit`s only.
  struct Saved {
    uint64_t start = 0;
    uint64_t weight = 0;
    bool is_fresh = false;
  };
  // Calls `write(member, saved)` for each member whose row has to change; nullopt: the row goes. A
  // lone member needs no row, unless it matters that it is not fresh: its start is the clock.
  // Calls `left(member)` for each that has left and has no row any more: it can be freed.
  template <typename Write, typename Left>
  void save(Write write, Left left);
  template <typename Write>
  void save(Write write) {
    save(write, [](Member) {});
  }
  bool has_unsaved() const { return !unsaved_.empty(); }
  // The clock moved without a pick: those who came before that must not be remembered as if they
  // came after.
  bool is_save_due() const { return is_save_due_ && members_ > 1; }
  // At load, before anything else: every saved member; `head` of those that are active. Then
  // `restored`.
  void restore(Member member, const Saved& saved, std::optional<uint64_t> head);
  void restored();
  // Everyone leaves and the order may be another one. Rows of those who had one have to go.
  void reset(Order order);

 private:
  enum class Where : uint8_t { kNowhere, kEligible, kAhead };
  // Two fill a cache line. What one task costs is a division away and needs no room.
  struct alignas(32) Account {
    uint64_t start = 0;
    Weight weight = Weight::from_fixed(0);  // 0: not a member
    uint64_t head = 0;
    uint32_t running = 0;
    uint16_t uncommitted = 0;
    Where where = Where::kNowhere;
    bool is_active : 1 = false;
    bool is_fresh : 1 = false;
    bool is_unsaved : 1 = false;
    bool has_row : 1 = false;
    uint64_t stride() const { return weight.stride(); }
  };
  static_assert(sizeof(Account) == 32);
  struct Rule {
    Domain* domain;
    bool before(const HeapEntry& a, const HeapEntry& b) const;
    void moved(uint32_t item, uint32_t place) const { domain->places_[item] = place; }
  };

  static bool is_after(uint64_t a, uint64_t b) { return static_cast<int64_t>(a - b) > 0; }
  bool is_due(const Account& account) const;  // S <= V
  void enter(Member member, Weight weight);   // the books, at V
  void leave(Member member);
  void scale(Member member, Weight weight);
  void move_start(Account& account, uint64_t start);
  void insert(Member member);  // into the heap where it belongs
  uint32_t order_of(uint64_t head);
  void take_out(Member member);
  void settle();
  void follow();
  void set_fresh(Member member, bool fresh);
  void mark(Member member);

  Slab<Account> accounts_;
  std::vector<uint32_t> places_;  // in their heaps: apart, because a heap moves many at a time
  Heap<Rule> eligible_;
  Heap<Rule> ahead_;
  absl::btree_set<std::pair<uint64_t, Member>> fresh_;  // by their heads
  std::vector<Member> unsaved_;
  Order order_;
  bool is_prompt_ = false;
  bool toggle_ = false;
  bool is_save_due_ = false;
  size_t actives_ = 0;
  size_t members_ = 0;
  uint64_t order_base_ = 0;  // heads in heap entries are counted from here
  uint64_t base_ = 0;
  uint64_t weights_ = 0;  // of all members
  __int128 moment_ = 0;   // sum of weight * (start - base)
};

template <typename Next, typename Soon>
void Domain::fetch_ahead(Next next, Soon soon) const {
  for (const auto* heap : {&eligible_, &ahead_}) {
    if (heap->empty()) continue;
    if (heap == &eligible_) next(heap->top().item);
    heap->for_children_of_top([&](Member member) {
      accounts_.fetch(member);
      if (heap == &eligible_) soon(member);
    });
  }
}

template <typename Write, typename Left>
void Domain::save(Write write, Left left) {
  settle();
  is_save_due_ = false;
  size_t kept = 0;
  for (const Member member : unsaved_) {
    auto& account = accounts_[member];
    if (!account.is_unsaved) continue;
    if (!is_member(member)) {
      account.is_unsaved = false;
      if (account.has_row) write(member, std::nullopt);
      account.has_row = false;
      left(member);
    } else if (members_ == 1 && !is_prompt_) {
      unsaved_[kept++] = member;
    } else {
      account.is_unsaved = false;
      account.has_row = true;
      write(member,
            std::optional<Saved>(Saved{account.start - account.uncommitted * account.stride(),
                                       account.weight.fixed(), account.is_fresh}));
    }
  }
  unsaved_.resize(kept);
}

}  // namespace fairlead::queue
