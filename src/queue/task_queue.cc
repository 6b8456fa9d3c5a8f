#include "queue/task_queue.h"

#include <algorithm>

#include "base/assert.h"

namespace fairlead::queue {

Place TaskQueue::reserve(uint32_t number) {
  FL_ASSERT(number >= 1 && number <= kLevels, "levels are clipped before they get here");
  const Place place{number, next_seq_};
  next_seq_ = next_seq_.next();
  reserved_.insert(place.seq);
  return place;
}

void TaskQueue::add(Place place, const Task& task) {
  auto& line = level(place.level);
  reserved_.erase(place.seq);
  const bool fits = line.on_disk == 0 && line.window.size() < window_tasks_max_;
  if (fits || place.seq <= line.loaded_to) {
    line.window.emplace(place.seq, task);
    line.loaded_to = std::max(line.loaded_to, place.seq);
  } else {
    ++line.on_disk;
  }
}

uint32_t TaskQueue::next_level() const {
  for (uint32_t number = 1; number <= kLevels; ++number) {
    const auto& line = levels_[number - 1];
    if (!line.window.empty() || line.on_disk > 0) return number;
  }
  return kLevels + 1;
}

std::optional<Waiting> TaskQueue::pick() {
  const uint32_t number = next_level();
  if (number > kLevels) return std::nullopt;
  auto& line = level(number);
  if (line.window.empty()) return std::nullopt;
  const auto head = line.window.begin();
  const Waiting waiting{{number, head->first}, head->second};
  line.window.erase(head);
  picked_.emplace(waiting.place, waiting.task);
  return waiting;
}

void TaskQueue::started(Place place) {
  const auto erased = picked_.erase(place);
  FL_ASSERT(erased == 1, "only a picked task can start");
}

void TaskQueue::put_back(const Waiting& waiting) {
  // It may have been removed while it was out.
  if (picked_.erase(waiting.place) == 1) {
    level(waiting.place.level).window.emplace(waiting.place.seq, waiting.task);
  }
}

void TaskQueue::remove(Place place) {
  if (picked_.erase(place) == 1) return;
  auto& line = level(place.level);
  if (line.window.erase(place.seq) == 1) return;
  if (place.seq > line.loaded_to && line.on_disk > 0) --line.on_disk;
}

std::optional<Place> TaskQueue::page_needed() const {
  for (uint32_t number = 1; number <= kLevels; ++number) {
    const auto& line = levels_[number - 1];
    if (!line.window.empty()) return std::nullopt;
    if (line.on_disk > 0) return Place{number, line.loaded_to};
  }
  return std::nullopt;
}

void TaskQueue::add_page(uint32_t number, const std::vector<Waiting>& rows, bool is_last) {
  auto& line = level(number);
  int64_t counted = 0;
  for (const auto& row : rows) {
    line.window.emplace(row.place.seq, row.task);
    line.loaded_to = std::max(line.loaded_to, row.place.seq);
    // A row may be read before its writer, on another thread, has said that it is there.
    if (!reserved_.contains(row.place.seq)) ++counted;
  }
  // Nor is a row's end always known here first: what was read is the truth.
  line.on_disk = is_last ? 0 : std::max<int64_t>(line.on_disk - counted, 0);
}

void TaskQueue::set_on_disk(uint32_t number, int64_t tasks) { level(number).on_disk = tasks; }

int64_t TaskQueue::size() const {
  int64_t tasks = 0;
  for (const auto& line : levels_) tasks += static_cast<int64_t>(line.window.size()) + line.on_disk;
  return tasks;
}

}  // namespace fairlead::queue
