#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fairlead::queue {

struct HeapEntry {
  uint64_t tag = 0;    // compared first, by signed difference: tags may wrap around
  uint32_t order = 0;  // breaks ties, as far as it goes; the rule knows the rest
  uint32_t item = 0;
};
static_assert(sizeof(HeapEntry) == 16);

// A 4-ary heap that knows where each of its items is, so that any of them can be moved or taken
// out.
//
//   block    0           1           2           3
//          [· · · 0]   [1 2 3 4]   [5 6 7 8]   [9 …      the children of place p are block p + 1
//
// A block is a cache line: choosing among four children is one miss and not two or three, and while
// it is made, the blocks of all grandchildren are on their way. With a million items that is most
// of what a heap costs.
//
// `Rule` gives the order and keeps the places:
//   bool before(const HeapEntry& a, const HeapEntry& b) const
//   void moved(uint32_t item, uint32_t place)
template <typename Rule>
class Heap {
 public:
  explicit Heap(Rule rule) : rule_(rule) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  const HeapEntry& top() const { return at(0); }
  const HeapEntry& at(uint32_t place) const { return blocks_[(place + 3) / 4][(place + 3) % 4]; }
  template <typename Visit>
  void for_each(Visit visit) {
    for (uint32_t place = 0; place < size_; ++place) visit(slot(place));
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (uint32_t place = 0; place < size_; ++place) visit(at(place));
  }

  // Items that come soon after the top: one of them is next.
  template <typename Visit>
  void for_children_of_top(Visit visit) const {
    const uint32_t count = size_ < 5 ? size_ : 5;
    for (uint32_t place = 1; place < count; ++place) visit(at(place).item);
  }

  void push(const HeapEntry& entry) {
    const uint32_t place = size_++;
    if ((place + 3) / 4 >= blocks_.size()) blocks_.emplace_back();
    rise(place, entry);
  }

  void erase(uint32_t place) {
    const HeapEntry last = at(--size_);
    if ((size_ + 3) % 4 == 0) blocks_.pop_back();
    if (place < size_) settle(place, last);
  }

  void pop() { erase(0); }

  // The entry at this place has other tags now.
  void update(uint32_t place, const HeapEntry& entry) { settle(place, entry); }

  void clear() {
    blocks_.clear();
    size_ = 0;
  }

 private:
  struct alignas(64) Block : std::array<HeapEntry, 4> {};

  HeapEntry& slot(uint32_t place) { return blocks_[(place + 3) / 4][(place + 3) % 4]; }

  void put(uint32_t place, const HeapEntry& entry) {
    slot(place) = entry;
    rule_.moved(entry.item, place);
  }

  void settle(uint32_t place, const HeapEntry& entry) {
    if (place > 0 && rule_.before(entry, at((place - 1) / 4))) {
      rise(place, entry);
    } else {
      sink(place, entry);
    }
  }

  void rise(uint32_t place, const HeapEntry& entry) {
    while (place > 0) {
      const uint32_t parent = (place - 1) / 4;
      if (!rule_.before(entry, at(parent))) break;
      put(place, at(parent));
      place = parent;
    }
    put(place, entry);
  }

  void sink(uint32_t place, const HeapEntry& entry) {
    while (true) {
      const uint32_t first = 4 * place + 1;
      if (first >= size_) break;
      const Block& children = blocks_[place + 1];
      const uint32_t count = size_ - first < 4 ? size_ - first : 4;
      for (uint32_t child = 0; child < count; ++child) {
        const size_t grandchildren = static_cast<size_t>(first) + child + 1;
        if (grandchildren < blocks_.size()) __builtin_prefetch(&blocks_[grandchildren], 1);
      }
      uint32_t best = 0;
      for (uint32_t child = 1; child < count; ++child) {
        if (rule_.before(children[child], children[best])) best = child;
      }
      if (!rule_.before(children[best], entry)) break;
      put(place, children[best]);
      place = first + best;
    }
    put(place, entry);
  }

  Rule rule_;
  std::vector<Block> blocks_;
  uint32_t size_ = 0;
};

}  // namespace fairlead::queue
