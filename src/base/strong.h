#pragma once

#include <compare>
#include <cstdint>
#include <utility>

namespace fairlead {

// Makes two integers of different meaning different types, so that swapping them does not compile.
template <typename Rep, typename Tag>
class Strong {
 public:
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr Strong next() const { return Strong(value_ + 1); }
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

  template <typename H>
  friend H AbslHashValue(H state, const Strong& strong) {
    return H::combine(std::move(state), strong.value_);
  }

 private:
  Rep value_{};
};

// Which slice of the state a row or a message belongs to.
using ShardId = Strong<uint16_t, struct ShardIdTag>;
// A namespace's short number, used in keys. Given once, never reused.
using NamespaceNum = Strong<uint32_t, struct NamespaceNumTag>;
// A place in the sequence of writes. A write is durable once its place has been synced.
using CommitSeq = Strong<uint64_t, struct CommitSeqTag>;
// A task's place in its queue's line.
using TaskSeq = Strong<uint64_t, struct TaskSeqTag>;

}  // namespace fairlead
