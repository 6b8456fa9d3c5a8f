#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/strong.h"

namespace fairlead::queue {

// The type of the workflow or activity that a task is for. 0: not said, and whoever polls may have
// it.
using TaskType = Strong<uint64_t, struct TaskTypeTag>;

// DO NOT CHANGE: rows have it. Names are hashed because a row is small and a name may not be.
inline TaskType task_type(std::string_view name) {
  const uint64_t hash = stable_hash(name);
  return TaskType(hash == 0 ? 1 : hash);
}

// The types that a worker takes.
class TypeList {
 public:
  TypeList() = default;
  explicit TypeList(std::vector<TaskType> types) : types_(std::move(types)) {
    std::sort(types_.begin(), types_.end());
    types_.erase(std::unique(types_.begin(), types_.end()), types_.end());
  }
  bool contains(TaskType type) const {
    return std::binary_search(types_.begin(), types_.end(), type);
  }
  size_t size() const { return types_.size(); }
  auto begin() const { return types_.begin(); }
  auto end() const { return types_.end(); }
  friend auto operator<=>(const TypeList&, const TypeList&) = default;

 private:
  std::vector<TaskType> types_;
};

// Null: every type. Many polls share one list.
using TypeListPtr = std::shared_ptr<const TypeList>;

inline bool takes(const TypeListPtr& list, TaskType type) {
  return list == nullptr || type == TaskType() || list->contains(type);
}
inline bool is_same(const TypeListPtr& a, const TypeListPtr& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

}  // namespace fairlead::queue
