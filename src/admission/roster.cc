#include "admission/roster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fairlead::admission {

Roster::Worker* Roster::find(const Place& place, const std::string& worker) {
  const auto queue = queues_.find(place);
  if (queue == queues_.end()) return nullptr;
  const auto found = queue->second.find(worker);
  return found == queue->second.end() ? nullptr : &found->second;
}

absl::Status Roster::put(const Place& place, const std::string& worker, const SlotsSaid& slots,
                         TimeNs now) {
  auto& workers = queues_[place];
  if (workers.size() >= kWorkersPerQueueMax && !workers.contains(worker)) {
    return absl::ResourceExhaustedError(absl::StrCat("queue ", place.queue, " has ", workers.size(),
                                                     " workers, and no more than ",
                                                     kWorkersPerQueueMax, " are kept"));
  }
  auto& entry = workers[worker];
  for (size_t kind = 0; kind < kKinds; ++kind) {
    entry.slots[kind] = std::max<int64_t>(0, slots[kind].value_or(kSlotsUnsaid));
  }
  entry.is_registered = true;
  entry.heard_at = std::max(entry.heard_at, now);
  return absl::OkStatus();
}

void Roster::seen(const Place& place, const std::string& worker, TaskKind kind, TimeNs now) {
  auto& workers = queues_[place];
  if (workers.size() >= kWorkersPerQueueMax && !workers.contains(worker)) return;
  auto& entry = workers[worker];
  if (entry.is_registered) return;
  entry.slots[at(kind)] = kSlotsUnsaid;
  entry.heard_at = std::max(entry.heard_at, now);
}

bool Roster::heartbeat(const Place& place, const std::string& worker, TimeNs now) {
  Worker* const found = find(place, worker);
  if (found == nullptr || !found->is_registered) return false;
  found->heard_at = std::max(found->heard_at, now);
  return true;
}

bool Roster::remove(const Place& place, const std::string& worker) {
  const auto queue = queues_.find(place);
  if (queue == queues_.end() || queue->second.erase(worker) == 0) return false;
  if (queue->second.empty()) queues_.erase(queue);
  return true;
}

bool Roster::set_draining(const Place& place, const std::string& worker, bool is_draining) {
  Worker* const found = find(place, worker);
  if (found == nullptr) return false;
  found->is_draining = is_draining;
  return true;
}

Slots Roster::slots(const Place& place, TaskKind kind, DurationNs stale_after, TimeNs now) const {
  Slots slots;
  const auto queue = queues_.find(place);
  if (queue == queues_.end()) return slots;
  for (const auto& [id, worker] : queue->second) {
    if (add_saturated(worker.heard_at, stale_after) <= now) {
      ++slots.stale_workers;
    } else if (!worker.is_draining) {
      ++slots.active_workers;
      slots.configured = add_saturated(slots.configured, worker.slots[at(kind)]);
    }
  }
  return slots;
}

void Roster::forget(TimeNs since) {
  absl::erase_if(queues_, [&](auto& queue) {
    auto& workers = queue.second;
    for (auto next = workers.begin(); next != workers.end();) {
      next = next->second.heard_at < since ? workers.erase(next) : std::next(next);
    }
    return workers.empty();
  });
}

}  // namespace fairlead::admission
