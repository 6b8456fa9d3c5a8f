#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fairlead::queue {

// A 4-ary heap that knows where each of its items is, so that any of them can be moved or taken
// out.
//
// `Rule` gives the order and keeps the places:
//   bool before(const Entry& a, const Entry& b) const
//   void moved(uint32_t item, uint32_t place)
struct HeapEntry {
  uint64_t tag = 0;    // compared first, by signed difference: tags may wrap around
  uint64_t order = 0;  // breaks ties
  uint32_t item = 0;
};

inline bool tag_before(const HeapEntry& a, const HeapEntry& b) {
  const auto difference = static_cast<int64_t>(a.tag - b.tag);
  return difference != 0 ? difference < 0 : a.order < b.order;
}

template <typename Rule>
class Heap {
 public:
  explicit Heap(Rule rule) : rule_(rule) {}

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const HeapEntry& top() const { return entries_.front(); }
  const std::vector<HeapEntry>& entries() const { return entries_; }

  void push(const HeapEntry& entry) {
    entries_.push_back(entry);
    rise(static_cast<uint32_t>(entries_.size() - 1), entry);
  }

  void erase(uint32_t place) {
    const HeapEntry last = entries_.back();
    entries_.pop_back();
    if (place < entries_.size()) settle(place, last);
  }

  void pop() { erase(0); }

  // The entry at this place has other tags now.
  void update(uint32_t place, const HeapEntry& entry) { settle(place, entry); }

  void clear() { entries_.clear(); }
  void shrink() {
    if (entries_.capacity() > 1024 && entries_.size() * 4 < entries_.capacity()) {
      entries_.shrink_to_fit();
    }
  }

 private:
  void put(uint32_t place, const HeapEntry& entry) {
    entries_[place] = entry;
    rule_.moved(entry.item, place);
  }

  void settle(uint32_t place, const HeapEntry& entry) {
    if (place > 0 && rule_.before(entry, entries_[(place - 1) / 4])) {
      rise(place, entry);
    } else {
      sink(place, entry);
    }
  }

  void rise(uint32_t place, const HeapEntry& entry) {
    while (place > 0) {
      const uint32_t parent = (place - 1) / 4;
      if (!rule_.before(entry, entries_[parent])) break;
      put(place, entries_[parent]);
      place = parent;
    }
    put(place, entry);
  }

  void sink(uint32_t place, const HeapEntry& entry) {
    const auto size = static_cast<uint32_t>(entries_.size());
    while (true) {
      const uint32_t first = 4 * place + 1;
      if (first >= size) break;
      uint32_t best = first;
      const uint32_t end = first + 4 < size ? first + 4 : size;
      for (uint32_t child = first + 1; child < end; ++child) {
        if (rule_.before(entries_[child], entries_[best])) best = child;
      }
      if (!rule_.before(entries_[best], entry)) break;
      put(place, entries_[best]);
      place = best;
    }
    put(place, entry);
  }

  Rule rule_;
  std::vector<HeapEntry> entries_;
};

}  // namespace fairlead::queue
