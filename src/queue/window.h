#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "queue/task.h"

namespace fairlead::queue {

// The first tasks of a line, in order, packed. A queue may have a million lines and half a million
// tasks in memory, so an empty window is a pointer and a task is about thirty bytes:
//
//   header │ free │ run:16 seq created shard+flags id stamp [weight:4] [type:8] │ run:16 …  │ free
//                 begin                                                                    end
//
// Numbers are of variable length and counted from the first task that the window got, so what is
// close together is short, and nothing is too large. Tasks are found by looking at all before them:
// windows are kept short (kTasksMax) by whoever fills them.
class Window {
 public:
  static constexpr size_t kTasksMax = 1024;

  bool empty() const { return block_ == nullptr; }
  size_t size() const { return block_ == nullptr ? 0 : header().count; }
  Numbered front() const;

  // After all others.
  void push_back(const Numbered& task);
  void pop_front();
  void insert(const Numbered& task);
  bool erase(TaskSeq seq);
  // Keeps the first `count` and gives the number of the last of them. At least one is kept.
  TaskSeq trim(size_t count);
  // How many stand before this number.
  size_t before(TaskSeq seq) const;

  // Asks the processor for the first task, which will be wanted soon.
  void fetch() const { __builtin_prefetch(block_.get()); }

 private:
  struct Header {
    uint32_t count;
    uint32_t begin;  // of the first task and behind the last one, in bytes from the block's begin
    uint32_t end;
    uint32_t capacity;
    uint64_t base_seq;
    TimeNs base_created;
  };
  static constexpr size_t kRecordMax = 16 + 10 + 10 + 4 + 10 + 10 + 4 + 8;

  Header& header() { return *reinterpret_cast<Header*>(block_.get()); }
  const Header& header() const { return *reinterpret_cast<const Header*>(block_.get()); }
  uint32_t encode(const Numbered& task, char* to) const;
  // Reads a task, or only its number, and gives where the next one begins.
  uint32_t decode(uint32_t at, Numbered* task) const;
  uint32_t skip(uint32_t at, TaskSeq* seq) const;
  // The first task that does not stand before this number; and how many do.
  std::pair<uint32_t, size_t> find(TaskSeq seq) const;
  void begin_at(const Numbered& task);
  void move_to(size_t capacity);
  void remove(uint32_t from, uint32_t to);

  std::unique_ptr<char[]> block_;
};

}  // namespace fairlead::queue
