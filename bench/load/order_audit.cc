#include "load/order_audit.h"

#include <algorithm>
#include <charconv>

#include "base/assert.h"

namespace fairlead::load {

namespace {

constexpr int kMiddlePriority = 3;

// Reads one number and the x behind it, if there is more.
template <typename Number>
bool take(const char** at, const char* end, Number* value) {
  const auto [next, error] = std::from_chars(*at, end, *value);
  if (error != std::errc() || !(*value > 0)) return false;
  *at = next;
  if (next == end) return true;
  if (*next != 'x' || next + 1 == end) return false;
  *at = next + 1;
  return true;
}

}  // namespace

bool KeyGroup::parse(const std::string& text, KeyGroup* group) {
  const char* at = text.data();
  const char* const end = at + text.size();
  *group = {};
  if (!take(&at, end, &group->keys) || at == end || !take(&at, end, &group->tasks)) return false;
  if (at != end && !take(&at, end, &group->weight)) return false;
  if (at != end && !take(&at, end, &group->priority)) return false;
  return at == end;
}

OrderAudit::OrderAudit(const std::vector<KeyGroup>& groups) {
  for (const KeyGroup& group : groups) {
    for (int64_t i = 0; i < group.keys; ++i) {
      keys_.push_back({group.priority, group.weight, {}});
      add(keys() - 1, group.tasks);
    }
  }
}

void OrderAudit::arrive(int64_t tasks_per_key) {
  ++batch_;
  for (int key = 0; key < keys(); ++key) add(key, tasks_per_key);
}

void OrderAudit::add(int number, int64_t tasks) {
  Key& key = keys_[static_cast<size_t>(number)];
  tasks_.insert(tasks_.end(), static_cast<size_t>(tasks), {number, batch_});
  key.waiting.push_back(tasks);
  Level& level = level_of(key);
  level.waiting += tasks;
  level.shares.arrive(number, key.weight, tasks);
}

OrderAudit::Level& OrderAudit::level_of(const Key& key) {
  return levels_[key.priority == 0 ? kMiddlePriority : key.priority];
}

void OrderAudit::reweight(const std::vector<double>& weights) {
  for (size_t number = 0; number < weights.size() && number < keys_.size(); ++number) {
    Key& key = keys_[number];
    key.weight = weights[number];
    level_of(key).shares.set_weight(static_cast<int>(number), key.weight);
  }
}

bool OrderAudit::dispatch(int64_t number) {
  FL_ASSERT(number >= 0 && number < arrived(), "only what came can leave");
  Task& task = tasks_[static_cast<size_t>(number)];
  if (task.is_gone) return false;
  task.is_gone = true;
  Key& key = keys_[static_cast<size_t>(task.key)];
  const auto own = key.waiting.begin() + task.batch;
  if (std::any_of(key.waiting.begin(), own, [](int64_t tasks) { return tasks > 0; })) {
    ++overtakes_;
  }
  --*own;

  Level& home = level_of(key);
  // The map begins with the most urgent level.
  for (const auto& [priority, level] : levels_) {
    if (&level == &home) break;
    if (level.waiting == 0) continue;
    ++inversions_;
    break;
  }
  --home.waiting;
  home.shares.dispatch(task.key);
  ++key.dispatched;
  ++dispatched_;
  return true;
}

Distance OrderAudit::distance() const {
  Distance worst;
  for (const auto& [priority, level] : levels_) worst.include(level.shares.distance());
  return worst;
}

}  // namespace fairlead::load
