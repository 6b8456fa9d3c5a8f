// Which tasks are in memory: the first ones of each line, within a bound for the whole queue.

#include <algorithm>

#include "queue/task_queue.h"

namespace fairlead::queue {

namespace {

constexpr size_t kPageMax = 256;
constexpr size_t kPageMin = 2;

}  // namespace

void TaskQueue::set_beyond(Line& line, uint32_t beyond) {
  if (line.beyond > 0) --deep_lines_;
  line.beyond = beyond;
  if (line.beyond > 0) ++deep_lines_;
}

size_t TaskQueue::share() const {
  const size_t lines = std::max<size_t>(deep_lines_, 1);
  return std::clamp(settings_.tasks_in_memory_max / lines, kPageMin, Window::kTasksMax);
}

// With more lines than tasks that may be in memory a line keeps no task, only what is known of its
// first one: when its turn comes, that is read again, with the next.
//
// Rows of tasks that are out for a start must not be read again, so a line with such tasks waits
// until they are gone. All others stand at or behind its head.
void TaskQueue::keep_bound(Line& line) {
  if (in_memory_ <= settings_.tasks_in_memory_max || line.picks > 0 || line.window.empty()) return;
  const size_t dropped = line.window.size();
  line.loaded_to = line.head - 1;
  line.window = Window();
  set_beyond(line, line.beyond + static_cast<uint32_t>(dropped));
  in_memory_ -= dropped;
}

// What a line gives up is read again when its turn comes.
void TaskQueue::trim_windows(size_t tasks_max) {
  refills_ = 0;
  for_each_lane([&](LaneId lane) {
    auto& owner = at(lane);
    for (Member member = 0; member < owner.lines.size(); ++member) {
      auto& line = owner.lines[member];
      // A task that is out for a start still has its row and must not be read again: it may stand
      // behind those in the window if they were put back, or came late.
      if (line.picks > 0 || line.window.size() <= tasks_max) continue;
      const size_t dropped = line.window.size() - tasks_max;
      line.loaded_to = line.window.trim(tasks_max).value();
      set_beyond(line, line.beyond + static_cast<uint32_t>(dropped));
      in_memory_ -= dropped;
    }
  });
}

// Reads the next tasks of a line whose window is empty. False if there are none.
//
// Reading costs a search in the store, however little is read. So every line gets its share of what
// may be in memory, and none keeps more while others run short.
bool TaskQueue::load_window(LaneId lane, Line& line) {
  if (line.beyond == 0) return false;
  const auto room = [&] {
    return settings_.tasks_in_memory_max > in_memory_ ? settings_.tasks_in_memory_max - in_memory_
                                                      : 0;
  };
  // Looking at all lines is paid for by as many refills.
  if (room() < share() && ++refills_ > deep_lines_) trim_windows(share());
  const size_t page = std::clamp(std::min(room(), share()), kPageMin, kPageMax);
  TaskSeq from(std::max(line.loaded_to + 1, line.head));
  const int64_t was = line.count();
  while (true) {
    const auto rows = read_line(lane, keys_[line.key].name, from, page);
    for (const auto& row : rows.rows) {
      // A row may be seen before its writer, on another thread, has told of it: it will. One of a
      // task that is out for a start may be seen if the routing has changed since.
      if (reserved_.contains(row.seq.value()) || picked_.contains(row.seq.value())) continue;
      line.window.push_back(row);
      ++in_memory_;
      if (line.beyond > 0) set_beyond(line, line.beyond - 1);
    }
    if (rows.is_last) {
      // Rows that are gone are told of later; there is nothing beyond.
      line.loaded_to = next_seq_ - 1;
      set_beyond(line, 0);
      break;
    }
    line.loaded_to = rows.to;
    if (!line.window.empty()) break;
    from = TaskSeq(rows.to + 1);
  }
  const int64_t missing = was - line.count();
  size_ -= missing;
  at(lane).waiting -= missing;
  return !line.window.empty();
}

// Rows come line by line, and how many lines there are is known at the end: the first ones keep
// much and give half of it up whenever there is no room for others. A line that two streams feed
// gets the rows of one after those of the other.
void TaskQueue::keep_loaded(Line& line, const Numbered& task) {
  const size_t tasks_max = settings_.tasks_in_memory_max;
  if (task.seq.value() < line.loaded_to) {
    line.window.insert(task);
    ++in_memory_;
    if (line.window.size() <= load_share_) return;
    line.loaded_to = line.window.trim(load_share_).value();
    set_beyond(line, line.beyond + 1);
    --in_memory_;
    return;
  }
  const auto fits = [&] { return line.beyond == 0 && line.window.size() < load_share_; };
  while (fits() && in_memory_ >= tasks_max && load_share_ > 1) trim_windows(load_share_ /= 2);
  if (fits() && in_memory_ < tasks_max && task.seq.value() > line.loaded_to) {
    line.window.push_back(task);
    line.loaded_to = task.seq.value();
    ++in_memory_;
  } else {
    set_beyond(line, line.beyond + 1);
  }
}

}  // namespace fairlead::queue
