#pragma once

#include <algorithm>
#include <vector>

#include "queue/task.h"

namespace fairlead::queue {

// The first tasks of a line, in order. Small when empty: a queue may have a million lines.
class Window {
 public:
  bool empty() const { return first_ == tasks_.size(); }
  size_t size() const { return tasks_.size() - first_; }
  const Numbered& front() const { return tasks_[first_]; }
  const Numbered& back() const { return tasks_.back(); }

  void push_back(const Numbered& task) { tasks_.push_back(task); }
  void pop_front() {
    ++first_;
    if (first_ == tasks_.size()) {
      tasks_.clear();
      first_ = 0;
    } else if (first_ >= 64 && first_ * 2 >= tasks_.size()) {
      tasks_.erase(tasks_.begin(), tasks_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }
  void insert(const Numbered& task) { tasks_.insert(find(task.seq), task); }
  bool erase(TaskSeq seq) {
    const auto found = find(seq);
    if (found == tasks_.end() || found->seq != seq) return false;
    tasks_.erase(found);
    if (empty()) {
      tasks_.clear();
      first_ = 0;
    }
    return true;
  }
  // How many stand before this number.
  size_t before(TaskSeq seq) { return static_cast<size_t>(find(seq) - tasks_.begin()) - first_; }

 private:
  std::vector<Numbered>::iterator find(TaskSeq seq) {
    return std::lower_bound(tasks_.begin() + static_cast<std::ptrdiff_t>(first_), tasks_.end(), seq,
                            [](const Numbered& task, TaskSeq wanted) { return task.seq < wanted; });
  }

  std::vector<Numbered> tasks_;
  size_t first_ = 0;
};

}  // namespace fairlead::queue
