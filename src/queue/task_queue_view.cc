// What operators may know of a queue.

#include <algorithm>
#include <cmath>

#include "queue/task_queue.h"

namespace fairlead::queue {

LevelView TaskQueue::level_view(uint32_t level, TimeNs now) {
  if (level > levels()) add_levels(level);
  LevelView view;
  for (const auto& target : targets_) {
    auto& owner = *target->lanes[level - 1];
    view.waiting += owner.waiting;
    view.added_per_second += owner.added.per_second(now);
    view.dispatched_per_second += owner.dispatched.per_second(now);
    if (owner.heads.empty()) continue;
    const TimeNs oldest = owner.heads.begin()->first * kSecond;
    if (view.oldest_ns == 0 || oldest < view.oldest_ns) view.oldest_ns = oldest;
  }
  return view;
}

std::vector<TargetView> TaskQueue::target_views() const {
  std::vector<TargetView> views;
  for (uint32_t target = 0; target < targets_.size(); ++target) {
    const auto& version = targets_[target]->version;
    auto found = std::find_if(views.begin(), views.end(),
                              [&](const TargetView& view) { return view.version == version; });
    if (found == views.end()) {
      found = views.emplace(views.end());
      found->version = version;
      found->waiting_by_level.resize(levels());
    }
    auto& view = *found;
    if (routes_.only().has_value()) {
      if (*routes_.only() == target) view.percent = kSlots;
    } else if (target == routes_.current) {
      view.percent = kSlots - routes_.percent;
    } else if (target == routes_.ramping) {
      view.percent = routes_.percent;
    }
    const auto& lanes = targets_[target]->lanes;
    for (size_t i = 0; i < lanes.size(); ++i) {
      view.waiting += lanes[i]->waiting;
      view.waiting_by_level[i] += lanes[i]->waiting;
      if (lanes[i]->heads.empty()) continue;
      const TimeNs oldest = lanes[i]->heads.begin()->first * kSecond;
      if (view.oldest_ns == 0 || oldest < view.oldest_ns) view.oldest_ns = oldest;
    }
  }
  std::erase_if(views,
                [](const TargetView& view) { return view.waiting == 0 && view.percent == 0; });
  return views;
}

KeyView TaskQueue::view(uint32_t key, TimeNs now) const {
  const auto& entry = keys_[key];
  KeyView view;
  view.key = entry.name;
  view.dispatched = entry.dispatched;
  view.running = entry.running;
  view.recent = entry.recent;
  view.holds = entry.holds;
  view.is_weight_overridden = rules_.weights().contains(entry.name);
  view.weight = weight_of(entry, 0).value();
  bool is_first = true;
  view.waiting_by_level.resize(levels());
  for (const auto& [lane, member] : entry.lines) {
    const auto& line = at(lane).lines[member];
    view.waiting_by_level[level_of(lane) - 1] += line.count();
    view.waiting += line.count();
    if (line.head == 0) continue;
    if (view.oldest_ns == 0 || line.head_created < view.oldest_ns)
      view.oldest_ns = line.head_created;
    if (!is_first) continue;
    is_first = false;
    if (is_drained(entry, line.head)) view.holds |= kDrained;
    view.weight = weight_of(entry, line.head_weight).value();
    view.lag = at(lane).domain.lag(member);
    view.ideal_share = at(lane).domain.share(member);
  }
  if ((entry.holds & kThrottled) != 0) {
    view.throttled_until = key_clock_.when(entry.arrival - key_clock_.burst());
  } else if ((entry.holds & kTimed) != 0) {
    view.throttled_until = timed_.contains({entry.ready, key}) ? entry.ready : kNever;
  }
  return view;
}

std::optional<KeyView> TaskQueue::key_view(const std::string& name, TimeNs now) const {
  const uint32_t key = find_key(name);
  if (key == kNone) return std::nullopt;
  return view(key, now);
}

std::vector<KeyView> TaskQueue::list_keys(const std::string& after, size_t max, TimeNs now) const {
  std::vector<uint32_t> found;
  const auto by_name = [&](uint32_t a, uint32_t b) { return keys_[a].name < keys_[b].name; };
  // The smallest `max` names beyond `after`, without sorting a million.
  for (const uint32_t key : names_) {
    if (keys_[key].name <= after && !(after.empty() && keys_[key].name.empty())) continue;
    if (found.size() == max && !by_name(key, found.front())) continue;
    if (found.size() == max) {
      std::pop_heap(found.begin(), found.end(), by_name);
      found.pop_back();
    }
    found.push_back(key);
    std::push_heap(found.begin(), found.end(), by_name);
  }
  std::sort_heap(found.begin(), found.end(), by_name);
  std::vector<KeyView> views;
  views.reserve(found.size());
  for (const uint32_t key : found) views.push_back(view(key, now));
  return views;
}

std::optional<Place> TaskQueue::oldest() const {
  uint32_t found = kNone;
  LaneId found_lane = 0;
  const Line* oldest = nullptr;
  for (const uint32_t key : names_) {
    for (const auto& own : keys_[key].lines) {
      const auto& line = at(own.lane).lines[own.line];
      if (line.head == 0) continue;
      if (oldest != nullptr && std::pair(line.head_created, line.head) >=
                                   std::pair(oldest->head_created, oldest->head)) {
        continue;
      }
      oldest = &line;
      found = key;
      found_lane = own.lane;
    }
  }
  if (oldest == nullptr) return std::nullopt;
  Place place{level_of(found_lane), keys_[found].name, TaskSeq(oldest->head), {}};
  if (!targets_[target_in(found_lane)]->version.empty()) {
    // Which stream it came with is not kept of a head.
    const auto page = read_line(found_lane, place.key, place.seq, 1);
    const bool is_pinned = !page.rows.empty() && page.rows.front().task.is_pinned;
    if (is_pinned) place.stream.version = targets_[target_in(found_lane)]->version;
  }
  return place;
}

std::vector<KeyView> TaskQueue::top_keys(size_t max, TimeNs now) const {
  struct Weighed {
    int64_t waiting;
    uint32_t running;
    uint32_t key;
  };
  std::vector<Weighed> all;
  all.reserve(names_.size());
  for (const uint32_t key : names_) {
    int64_t waiting = 0;
    for (const auto& own : keys_[key].lines) {
      waiting += at(own.lane).lines[own.line].count();
    }
    all.push_back({waiting, keys_[key].running, key});
  }
  const auto by_weight = [&](const Weighed& a, const Weighed& b) {
    if (a.waiting != b.waiting) return a.waiting > b.waiting;
    if (a.running != b.running) return a.running > b.running;
    return keys_[a.key].name < keys_[b.key].name;
  };
  const size_t count = std::min(max, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    by_weight);
  std::vector<KeyView> views;
  views.reserve(count);
  for (size_t i = 0; i < count; ++i) views.push_back(view(all[i].key, now));
  return views;
}

Standing TaskQueue::standing(const Place& place, TimeNs now) {
  Standing standing;
  release_due(now);
  standing.is_queue_paused = rules_.has_pause();
  standing.is_queue_capped = rules_.has_running_max() && running_ >= rules_.running_max();
  if (const auto per_second = limit()) {
    standing.queue_ready_ns = *per_second > 1e-9 ? bucket_.ready() : kNever;
  }
  standing.version = target_of(place.stream);
  const uint32_t key = find_key(place.key);
  const LaneId lane = find_lane(place.level, place.stream);
  if (key == kNone || lane == kNone || keys_[key].lines.find(lane) == kNone) return standing;
  const auto known = view(key, now);
  // A drain lets some tasks of a key go and holds others: this one counts, not the key's next.
  standing.holds = known.holds & ~kDrained;
  if (is_drained(keys_[key], place.seq.value())) standing.holds |= kDrained;
  standing.key_ready_ns = known.throttled_until;
  const Member member = keys_[key].lines.find(lane);
  auto& line = at(lane).lines[member];
  standing.is_behind_older_order = !is_in_play(lane, place.seq.value());
  // Those in memory are counted; the others are read.
  int64_t before = 0;
  TaskSeq from(std::max(line.loaded_to + 1, line.head));
  before += static_cast<int64_t>(line.window.before(place.seq));
  while (line.beyond > 0 && from < place.seq) {
    const auto page = read_line(lane, place.key, from, 1024);
    for (const auto& row : page.rows) {
      if (row.seq < place.seq) ++before;
    }
    if (page.is_last) break;
    from = TaskSeq(page.to + 1);
  }
  standing.tasks_before_in_line = before;
  for (uint32_t above = 1; above < place.level; ++above) {
    standing.keys_before += at(lane_of(above, target_in(lane))).domain.actives();
  }
  const auto& domain = at(lane).domain;
  standing.keys_before += domain.is_active(member) ? domain.before(member) : domain.actives();
  return standing;
}

bool TaskQueue::grows(TimeNs now) {
  double added = 0;
  double dispatched = 0;
  for_each_lane([&](LaneId lane) {
    added += at(lane).added.per_second(now);
    dispatched += at(lane).dispatched.per_second(now);
  });
  return size_ > 0 && added > 1.2 * dispatched;
}

double TaskQueue::lag_max() const {
  double most = 0;
  for_each_lane([&](LaneId lane) {
    const auto& owner = at(lane);
    for (Member member = 0; member < owner.lines.size(); ++member) {
      if (owner.lines[member].key == kNone || !owner.domain.is_active(member)) continue;
      most = std::max(most, std::abs(owner.domain.lag(member)));
    }
  });
  return most;
}

}  // namespace fairlead::queue
