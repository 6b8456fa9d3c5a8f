#include "queue/task_queue.h"

#include "base/assert.h"

namespace fairlead::queue {

Place TaskQueue::push(uint32_t number, const Task& task) {
  FL_ASSERT(number >= 1 && number <= kLevels, "levels are clipped before they get here");
  const Place place{number, next_seq_};
  next_seq_ = next_seq_.next();
  auto& line = level(number);
  if (line.on_disk == 0 && line.window.size() < window_tasks_max_) {
    line.window.emplace(place.seq, task);
    line.loaded_to = place.seq;
  } else {
    ++line.on_disk;
  }
  return place;
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
  if (place.seq > line.loaded_to) {
    FL_ASSERT(line.on_disk > 0, "a task beyond the window is counted");
    --line.on_disk;
  }
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
  for (const auto& row : rows) {
    line.window.emplace(row.place.seq, row.task);
    line.loaded_to = row.place.seq;
    --line.on_disk;
  }
  FL_ASSERT(line.on_disk >= 0, "no more rows than were counted");
  FL_ASSERT(!is_last || line.on_disk == 0, "the rows on disk are those that were counted");
}

void TaskQueue::set_on_disk(uint32_t number, int64_t tasks) { level(number).on_disk = tasks; }

int64_t TaskQueue::size() const {
  int64_t tasks = 0;
  for (const auto& line : levels_) tasks += static_cast<int64_t>(line.window.size()) + line.on_disk;
  return tasks;
}

}  // namespace fairlead::queue
