#include "queue/window.h"

#include <cstring>

#include "base/assert.h"

namespace fairlead::queue {

namespace {

char* put(char* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

const char* get(const char* from, uint64_t* value) {
  *value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(*from++);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return from;
  }
}

const char* pass(const char* from) {
  while ((static_cast<uint8_t>(*from) & 0x80) != 0) ++from;
  return from + 1;
}

// A difference that may be negative, small either way. Wraps around like its operands.
uint64_t zigzag(uint64_t difference) {
  return difference << 1 ^ (difference >> 63 != 0 ? ~uint64_t{0} : 0);
}
uint64_t unzigzag(uint64_t coded) { return coded >> 1 ^ ((coded & 1) != 0 ? ~uint64_t{0} : 0); }

// A first task, counted from itself, with an id and a stamp below 64 and no weight: 24 with room.
constexpr size_t kFirstBytes = 24;
// A block is not made smaller below this.
constexpr size_t kSmallBytes = 256;

// What a record has, beside the shard's number.
constexpr uint64_t kHasWeight = 1;
constexpr uint64_t kIsPinned = 2;
constexpr uint64_t kHasType = 4;
constexpr int kFlagBits = 3;

size_t optional_bytes(uint64_t flags) {
  return ((flags & kHasWeight) != 0 ? sizeof(float) : 0) +
         ((flags & kHasType) != 0 ? sizeof(TaskType) : 0);
}

// Blocks that an allocator hands out anyway.
size_t rounded(size_t bytes) { return (bytes + 7) / 16 * 16 + 8; }

}  // namespace

uint32_t Window::encode(const Numbered& task, char* to) const {
  uint64_t flags = 0;
  if (task.task.weight != 0) flags |= kHasWeight;
  if (task.task.is_pinned) flags |= kIsPinned;
  if (task.task.type != TaskType()) flags |= kHasType;
  char* at = to;
  std::memcpy(at, task.task.run.data(), task.task.run.size());
  at += task.task.run.size();
  at = put(at, zigzag(task.seq.value() - header().base_seq));
  at = put(at, zigzag(static_cast<uint64_t>(task.task.created_ns) -
                      static_cast<uint64_t>(header().base_created)));
  at = put(at, static_cast<uint64_t>(task.task.shard.value()) << kFlagBits | flags);
  at = put(at, zigzag(static_cast<uint64_t>(task.task.scheduled_id)));
  at = put(at, task.task.stamp);
  if ((flags & kHasWeight) != 0) {
    std::memcpy(at, &task.task.weight, sizeof(float));
    at += sizeof(float);
  }
  if ((flags & kHasType) != 0) {
    std::memcpy(at, &task.task.type, sizeof(TaskType));
    at += sizeof(TaskType);
  }
  return static_cast<uint32_t>(at - to);
}

uint32_t Window::decode(uint32_t from, Numbered* task) const {
  const char* at = block_.get() + from;
  std::memcpy(task->task.run.data(), at, task->task.run.size());
  at += task->task.run.size();
  uint64_t seq = 0;
  uint64_t created = 0;
  uint64_t shard = 0;
  uint64_t id = 0;
  at = get(get(get(get(get(at, &seq), &created), &shard), &id), &task->task.stamp);
  task->seq = TaskSeq(header().base_seq + unzigzag(seq));
  task->task.created_ns =
      static_cast<TimeNs>(static_cast<uint64_t>(header().base_created) + unzigzag(created));
  task->task.shard = ShardId(static_cast<uint16_t>(shard >> kFlagBits));
  task->task.is_pinned = (shard & kIsPinned) != 0;
  task->task.scheduled_id = static_cast<int64_t>(unzigzag(id));
  task->task.weight = 0;
  if ((shard & kHasWeight) != 0) {
    std::memcpy(&task->task.weight, at, sizeof(float));
    at += sizeof(float);
  }
  task->task.type = TaskType();
  if ((shard & kHasType) != 0) {
    std::memcpy(&task->task.type, at, sizeof(TaskType));
    at += sizeof(TaskType);
  }
  return static_cast<uint32_t>(at - block_.get());
}

uint32_t Window::skip(uint32_t from, TaskSeq* seq) const {
  uint64_t coded = 0;
  uint64_t shard = 0;
  const char* at = get(block_.get() + from + sizeof(Task::run), &coded);
  at = pass(pass(get(pass(at), &shard)));
  *seq = TaskSeq(header().base_seq + unzigzag(coded));
  return static_cast<uint32_t>(static_cast<size_t>(at - block_.get()) + optional_bytes(shard));
}

Numbered Window::front() const {
  FL_ASSERT(!empty(), "an empty window has no first task");
  Numbered task;
  decode(header().begin, &task);
  return task;
}

// Into a block of another size, with the tasks at its begin.
void Window::move_to(size_t capacity) {
  std::unique_ptr<char[]> block(new char[capacity]);
  Header moved = header();
  const uint32_t bytes = moved.end - moved.begin;
  std::memcpy(block.get() + sizeof(Header), block_.get() + moved.begin, bytes);
  moved.begin = sizeof(Header);
  moved.end = moved.begin + bytes;
  moved.capacity = static_cast<uint32_t>(capacity);
  std::memcpy(block.get(), &moved, sizeof(Header));
  block_ = std::move(block);
}

// Starts a block for a first task, from which all others are counted.
void Window::begin_at(const Numbered& task) {
  const size_t capacity = rounded(sizeof(Header) + kFirstBytes);
  block_.reset(new char[capacity]);
  const Header first{0,
                     sizeof(Header),
                     sizeof(Header),
                     static_cast<uint32_t>(capacity),
                     task.seq.value(),
                     task.task.created_ns};
  std::memcpy(block_.get(), &first, sizeof(Header));
}

void Window::push_back(const Numbered& task) {
  if (empty()) begin_at(task);
  char record[kRecordMax];
  const uint32_t length = encode(task, record);
  if (header().end + length > header().capacity) {
    const size_t needed = sizeof(Header) + (header().end - header().begin) + length;
    move_to(rounded(needed + needed / 8));
  }
  std::memcpy(block_.get() + header().end, record, length);
  header().end += length;
  ++header().count;
}

void Window::pop_front() {
  TaskSeq seq;
  remove(header().begin, skip(header().begin, &seq));
}

void Window::insert(const Numbered& task) {
  if (empty()) {
    push_back(task);
    return;
  }
  char record[kRecordMax];
  const uint32_t length = encode(task, record);
  uint32_t at = find(task.seq).first;
  if (at == header().begin && at >= sizeof(Header) + length) {
    // A task that comes back, where it was.
    header().begin -= length;
    at = header().begin;
  } else {
    if (header().end + length > header().capacity) {
      at -= header().begin - static_cast<uint32_t>(sizeof(Header));
      const size_t needed = sizeof(Header) + (header().end - header().begin) + length;
      move_to(rounded(needed + needed / 8));
    }
    std::memmove(block_.get() + at + length, block_.get() + at, header().end - at);
    header().end += length;
  }
  std::memcpy(block_.get() + at, record, length);
  ++header().count;
}

void Window::remove(uint32_t from, uint32_t to) {
  auto& now = header();
  if (--now.count == 0) {
    block_.reset();
    return;
  }
  if (from == now.begin) {
    now.begin = to;
  } else {
    std::memmove(block_.get() + from, block_.get() + to, now.end - to);
    now.end -= to - from;
  }
  const size_t used = sizeof(Header) + (now.end - now.begin);
  if (now.capacity > kSmallBytes && used * 4 < now.capacity) move_to(rounded(used));
}

bool Window::erase(TaskSeq seq) {
  if (empty()) return false;
  const uint32_t at = find(seq).first;
  if (at == header().end) return false;
  TaskSeq found;
  const uint32_t end = skip(at, &found);
  if (found != seq) return false;
  remove(at, end);
  return true;
}

TaskSeq Window::trim(size_t count) {
  FL_ASSERT(!empty() && count > 0, "a window is trimmed to its first tasks");
  TaskSeq last;
  uint32_t at = header().begin;
  uint32_t kept = 0;
  while (kept < header().count && kept < count) {
    at = skip(at, &last);
    ++kept;
  }
  if (kept < header().count) {
    header().count = kept;
    header().end = at;
    move_to(rounded(sizeof(Header) + (at - header().begin)));
  }
  return last;
}

std::pair<uint32_t, size_t> Window::find(TaskSeq wanted) const {
  uint32_t at = header().begin;
  for (size_t before = 0;; ++before) {
    if (at == header().end) return {at, before};
    TaskSeq seq;
    const uint32_t end = skip(at, &seq);
    if (!(seq < wanted)) return {at, before};
    at = end;
  }
}

size_t Window::before(TaskSeq seq) const { return empty() ? 0 : find(seq).second; }

}  // namespace fairlead::queue
