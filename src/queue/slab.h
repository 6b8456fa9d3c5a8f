#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fairlead::queue {

// Items by number in chunks: growing never copies and never doubles, so a million items cost what
// they weigh. Freed numbers are used again.
template <typename T>
class Slab {
 public:
  uint32_t add() {
    if (!free_.empty()) {
      const uint32_t item = free_.back();
      free_.pop_back();
      return item;
    }
    if (size_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<T[]>(kChunk));
    return size_++;
  }
  void free(uint32_t item) {
    (*this)[item] = T{};
    free_.push_back(item);
  }
  T& operator[](uint32_t item) { return chunks_[item / kChunk][item % kChunk]; }
  const T& operator[](uint32_t item) const { return chunks_[item / kChunk][item % kChunk]; }
  // Asks the processor for an item that will be wanted soon.
  void fetch(uint32_t item) const {
    const auto* first = reinterpret_cast<const char*>(&(*this)[item]);
    for (size_t at = 0; at < sizeof(T); at += 64) __builtin_prefetch(first + at, 1);
    __builtin_prefetch(first + sizeof(T) - 1, 1);
  }
  // Numbers given out so far, free ones among them.
  uint32_t size() const { return size_; }
  size_t used() const { return size_ - free_.size(); }

 private:
  static constexpr uint32_t kChunk = 256;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<uint32_t> free_;
  uint32_t size_ = 0;
};

}  // namespace fairlead::queue
