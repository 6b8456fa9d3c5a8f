// Workers that take some types only: which lists of types there are, and when they are told apart.

#include <algorithm>
#include <bit>

#include "shard/queue_host.h"

namespace fairlead::shard {

namespace {

// Lists that nobody has polled with for this long, while others did, are forgotten.
constexpr DurationNs kTypesKept = 10 * kMinute;
constexpr DurationNs kOthersPoll = kMinute;
// Lists that are remembered, with and without a slot.
constexpr size_t kListsMax = 64;
// A list with a slot is part of the queue's rules.
constexpr size_t kTypesMax = 4096;

}  // namespace

void QueueHost::remember_types(Line& line, const PollRequest& request) {
  const TimeNs now = env_.clock->now();
  if (request.types == nullptr) {
    line.all_types_polled = now;
    return;
  }
  auto& known = line.types_polled;
  if (known.size() >= kListsMax && !known.contains(*request.types)) {
    known.erase(std::min_element(known.begin(), known.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
  known[*request.types] = now;
}

// Whoever polled before this process began may still come.
TimeNs QueueHost::last_polled(const Line& line, const queue::TypeList& types) {
  const auto found = line.types_polled.find(types);
  return found == line.types_polled.end() ? line.loaded_at : found->second;
}

TimeNs QueueHost::last_polled(const Line& line, queue::TaskType type) {
  TimeNs last = line.all_types_polled;
  for (const auto& [types, at] : line.types_polled) {
    if (types.contains(type)) last = std::max(last, at);
  }
  return last;
}

// Without a slot a poll is still never given what it does not take: it looks at the first task of
// each source, and goes on if that is not for it.
bool QueueHost::tell_apart(const QueueAddress& queue, const queue::TypeList& types) {
  auto& owner = line(queue);
  const auto& waiting = tasks(queue);
  if (types.size() > kTypesMax || waiting.slot_of(types).has_value()) return false;
  const auto free = static_cast<uint32_t>(std::countr_one(waiting.type_slots()));
  if (free < queue::TaskQueue::kTypeListsMax) {
    set_type_list(queue, free, &types);
    return true;
  }
  std::optional<uint32_t> oldest;
  TimeNs seen = env_.clock->now() - kTypesKept;
  for (const auto& [slot, list] : waiting.type_lists()) {
    const TimeNs at = last_polled(owner, list);
    if (at >= seen) continue;
    oldest = slot;
    seen = at;
  }
  if (!oldest.has_value()) return false;
  set_type_list(queue, *oldest, &types);
  return true;
}

// Rows of tasks stay as they are: what is written says which lists there are, and the accounts of
// whom that has moved.
void QueueHost::set_type_list(const QueueAddress& queue, uint32_t slot,
                              const queue::TypeList* types) {
  auto& owner = stored(queue);
  owner.tasks().set_type_list(slot, types);
  store::WriteBatch batch;
  owner.add_rows(&batch);
  env_.write(batch);
}

// A list that is gone would keep types apart that the same workers take.
void QueueHost::forget_types(const QueueAddress& queue, Line& line) {
  const TimeNs now = env_.clock->now();
  absl::erase_if(line.types_polled,
                 [&](const auto& entry) { return entry.second + kTypesKept < now; });
  if (line.stored == nullptr || line.last_poll + kOthersPoll < now) return;
  std::vector<uint32_t> unused;
  for (const auto& [slot, list] : line.stored->tasks().type_lists()) {
    if (last_polled(line, list) + kTypesKept < now) unused.push_back(slot);
  }
  for (const uint32_t slot : unused) set_type_list(queue, slot, nullptr);
}

}  // namespace fairlead::shard
