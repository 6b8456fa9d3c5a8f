#include "shard/schedule_list.h"

#include <algorithm>

#include "base/assert.h"
#include "store/keys.h"

namespace fairlead::shard {

std::vector<ScheduleList::Named> ScheduleList::names(NamespaceNum ns) const {
  std::vector<Named> found;
  for (uint16_t i = 0; i < shards_; ++i) {
    const ShardId shard(i);
    const auto range = store::keys::schedule_names(shard, ns);
    const auto status =
        store_.scan(range.begin, range.end, [&](std::string_view, std::string_view key) {
          found.push_back({std::string(key), shard});
          return true;
        });
    FL_ASSERT(status.ok(), "the store can be read");
  }
  // A key begins with the time at which it was made.
  std::sort(found.begin(), found.end(),
            [](const Named& a, const Named& b) { return a.key > b.key; });
  return found;
}

std::optional<model::Schedule> ScheduleList::load(const Named& named) const {
  const auto row = store_.get(store::keys::schedule(named.shard, named.key));
  FL_ASSERT(row.ok(), "the store can be read");
  model::Schedule schedule;
  // It may have gone since its name was read.
  if (!row->has_value() || !schedule.ParseFromString(**row)) return std::nullopt;
  if (schedule.deleted_ns() != 0) return std::nullopt;
  return schedule;
}

void ScheduleList::list(const ListSchedules& request, Reply<SchedulePage> reply) const {
  SchedulePage page;
  std::string last;
  for (const auto& named : names(request.ns)) {
    if (!request.before.empty() && named.key >= request.before) continue;
    auto schedule = load(named);
    if (!schedule.has_value() || !request.matches(*schedule)) continue;
    if (page.schedules.size() == request.max) {
      page.next = last;
      break;
    }
    last = named.key;
    page.schedules.push_back(*std::move(schedule));
  }
  commits_.after_durable(
      [reply = std::move(reply), page = std::move(page)]() mutable { reply(std::move(page)); });
}

int64_t ScheduleList::count(NamespaceNum ns) const {
  int64_t count = 0;
  for (const auto& named : names(ns)) count += load(named).has_value() ? 1 : 0;
  return count;
}

// Names cost less than rows, and mostly they say enough.
bool ScheduleList::has_fewer(NamespaceNum ns, int64_t max) const {
  return static_cast<int64_t>(names(ns).size()) < max || count(ns) < max;
}

}  // namespace fairlead::shard
