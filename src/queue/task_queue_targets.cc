// Whose workers a task is for: versions, the routing of the default stream, and what happens to
// tasks that wait while it changes.

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "queue/task_queue.h"

namespace fairlead::queue {

namespace {

constexpr size_t kPage = 256;

}  // namespace

std::optional<uint32_t> TaskQueue::Routes::only() const {
  if (percent == 0 || ramping == current) return current;
  if (percent >= kSlots) return ramping;
  return std::nullopt;
}

std::vector<uint32_t> TaskQueue::Routes::targets() const {
  if (const auto one = only()) return {*one};
  return {current, ramping};
}

// --- Targets ------------------------------------------------------------------------------------

void TaskQueue::add_levels(uint32_t levels) {
  FL_ASSERT(levels <= kLevelsMax, "levels are clipped before they get here");
  levels = std::max(levels, this->levels());
  for (uint32_t target = 0; target < targets_.size(); ++target) {
    auto& lanes = targets_[target]->lanes;
    while (lanes.size() < levels) {
      lanes.push_back(std::make_unique<Lane>());
      const LaneId lane = lane_of(static_cast<uint32_t>(lanes.size()), target);
      at(lane).epoch = first_epoch_of(lane);
      rebuild(lane);
    }
  }
}

uint32_t TaskQueue::find_target(std::string_view version) const {
  if (version.empty()) return 0;
  const auto found = versions_.find(version);
  return found == versions_.end() ? kNone : found->second;
}

std::vector<std::string> TaskQueue::waiting_versions() const {
  std::vector<std::string> versions;
  for (size_t target = 1; target < targets_.size(); ++target) {
    const auto& lanes = targets_[target]->lanes;
    const bool waits =
        std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane->waiting > 0; });
    if (waits) versions.push_back(targets_[target]->version);
  }
  return versions;
}

bool TaskQueue::is_in_use(uint32_t target) const {
  if (target == 0 || target == routes_.current || target == routes_.ramping) return true;
  const auto& version = targets_[target]->version;
  if (version == rules_.routing().current() || version == rules_.routing().ramping()) return true;
  const auto& lanes = targets_[target]->lanes;
  return std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) {
    return lane->lines.used() > 0 || lane->domain.has_unsaved();
  });
}

// Versions come and go for as long as a queue lives: the place of one that nothing is left of is
// taken by the next.
uint32_t TaskQueue::get_target(const std::string& version) {
  if (const uint32_t known = find_target(version); known != kNone) return known;
  auto target = static_cast<uint32_t>(targets_.size());
  // Not before everything is loaded: until then a version may have no more than an account.
  if (is_loaded_) {
    for (target = 0; target < targets_.size() && is_in_use(target);) ++target;
  }
  if (target == targets_.size()) {
    targets_.push_back(std::make_unique<Target>());
  } else {
    versions_.erase(targets_[target]->version);
    *targets_[target] = Target();
    for (auto& epoch : epochs_) {
      if (target < epoch.tasks.size()) epoch.tasks[target] = {};
    }
  }
  targets_[target]->version = version;
  versions_[version] = target;
  add_levels(levels());
  return target;
}

uint32_t TaskQueue::route(const Stream& stream) const {
  return stream.is_pinned() ? find_target(stream.version) : routes_.of_slot(stream.slot);
}

const std::string& TaskQueue::target_of(const Stream& stream) const {
  return stream.is_pinned() ? stream.version : targets_[route(stream)]->version;
}

TaskQueue::LaneId TaskQueue::find_lane(uint32_t level, const Stream& stream) const {
  const uint32_t target = route(stream);
  return target == kNone || level > levels() ? kNone : lane_of(level, target);
}

TaskQueue::LaneId TaskQueue::get_lane(uint32_t level, const Stream& stream) {
  if (level > levels()) add_levels(level);
  return lane_of(level, stream.is_pinned() ? get_target(stream.version) : route(stream));
}

// --- Routing ------------------------------------------------------------------------------------

// Rows of the default stream, as far as the routing gives them to this target, and rows that are
// pinned to it. What is read of one stream beyond the end of the other's page is read again later.
TaskQueue::Page TaskQueue::read_line(LaneId lane, const std::string& key, TaskSeq from,
                                     size_t max) const {
  const uint32_t level = level_of(lane);
  const uint32_t target = target_in(lane);
  constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
  Page page;
  page.to = kEnd;
  const auto limit_to = [&](const std::vector<Numbered>& rows) {
    if (rows.size() == max) page.to = std::min(page.to, rows.back().seq.value());
  };
  const auto only = routes_.only();
  if (only.value_or(target) == target) {
    page.rows = backlog_->read({}, level, key, from, max);
    limit_to(page.rows);
    if (!only.has_value()) {
      std::erase_if(page.rows,
                    [&](const Numbered& row) { return routes_.of_slot(row.task.slot) != target; });
    }
  }
  if (target != 0) {
    auto pinned = backlog_->read(targets_[target]->version, level, key, from, max);
    limit_to(pinned);
    for (auto& row : pinned) row.task.is_pinned = true;
    const auto middle = page.rows.insert(page.rows.end(), pinned.begin(), pinned.end());
    std::inplace_merge(page.rows.begin(), middle, page.rows.end(),
                       [](const Numbered& a, const Numbered& b) { return a.seq < b.seq; });
    std::erase_if(page.rows, [&](const Numbered& row) { return row.seq.value() > page.to; });
  }
  page.is_last = page.to == kEnd;
  return page;
}

// All of the default stream changes over from one target to another, and nothing in its lines is
// pinned: they move as they are, however long they are.
bool TaskQueue::moves_whole(const Routes& before) const {
  if (epochs_.size() > 1 || !before.only().has_value() || !routes_.only().has_value()) return false;
  const auto& lanes = targets_[*before.only()]->lanes;
  return std::all_of(lanes.begin(), lanes.end(),
                     [](const auto& lane) { return lane->pinned == 0; });
}

void TaskQueue::move_line(LaneId from, Member member, LaneId to) {
  auto& source = at(from).lines[member];
  const int64_t count = source.count();
  if (count == 0) return;
  auto& line = at(to).lines[get_line(to, source.key)];
  Numbered head{TaskSeq(source.head), {}};
  head.task.created_ns = source.head_created;
  head.task.weight = source.head_weight;
  set_head(from, source, nullptr);
  if (line.count() == 0) {
    line.window = std::move(source.window);
    line.loaded_to = source.loaded_to;
    set_beyond(line, source.beyond);
  } else {
    // Two lines become one: it is read again when its turn comes.
    const auto both = static_cast<uint32_t>(line.count() + count);
    in_memory_ -= source.window.size() + line.window.size();
    source.window = Window();
    line.window = Window();
    set_beyond(line, both);
    line.loaded_to = std::min(line.head, head.seq.value()) - 1;
  }
  set_beyond(source, 0);
  if (line.head == 0 || head.seq.value() < line.head) set_head(to, line, &head);
  at(from).waiting -= count;
  at(to).waiting += count;
  epochs_[0].count(from) -= count;
  epochs_[0].count(to) += count;
}

// Finds out from the rows what waits for a key in these targets.
//
// A row may be gone whose end has not been told yet, and nobody knows which: then each line is
// taken to be longer than it is, until it is read to its end. The other way round its last tasks
// would be forgotten.
void TaskQueue::recount(uint32_t level, uint32_t key, const std::vector<uint32_t>& targets) {
  int64_t was = 0;
  for (const uint32_t target : targets) {
    const LaneId lane = lane_of(level, target);
    const Member member = keys_[key].lines.find(lane);
    if (member == kNone) continue;
    auto& line = at(lane).lines[member];
    was += line.count();
    in_memory_ -= line.window.size();
    line.window = Window();
    set_beyond(line, 0);
    set_head(lane, line, nullptr);
  }
  int64_t found = 0;
  std::vector<std::pair<LaneId, uint32_t>> counts;
  for (const uint32_t target : targets) {
    const LaneId lane = lane_of(level, target);
    uint32_t count = 0;
    Numbered head;
    Page page;
    for (TaskSeq from(1); !page.is_last; from = TaskSeq(page.to + 1)) {
      page = read_line(lane, keys_[key].name, from, kPage);
      for (const auto& row : page.rows) {
        const uint64_t seq = row.seq.value();
        if (reserved_.contains(seq) || picked_.contains(seq)) continue;
        if (count++ == 0) head = row;
        ++epoch_of(seq).count(lane);
        if (row.task.is_pinned) ++at(lane).pinned;
      }
    }
    if (count == 0) continue;
    auto& line = at(lane).lines[get_line(lane, key)];
    set_head(lane, line, &head);
    line.loaded_to = line.head - 1;
    found += count;
    counts.emplace_back(lane, count);
  }
  const auto untold = static_cast<uint32_t>(std::max<int64_t>(was - found, 0));
  size_ -= was;
  for (const auto& [lane, count] : counts) {
    set_beyond(at(lane).lines[keys_[key].lines.find(lane)], count + untold);
    at(lane).waiting += count + untold;
    size_ += count + untold;
  }
}

// The rules say where the default stream goes. What waits goes there now: whoever comes to a target
// that way joins it like anybody else who begins to wait, and what it has had elsewhere it has had.
void TaskQueue::change_routes() {
  const auto& asked = rules_.routing();
  Routes next;
  next.current = get_target(asked.current());
  next.percent = std::min(asked.percent(), kSlots);
  next.ramping = next.percent == 0 ? next.current : get_target(asked.ramping());
  const Routes before = std::exchange(routes_, next);
  if (next == before || (next.only().has_value() && next.only() == before.only())) return;

  auto concerned = before.targets();
  for (const uint32_t target : next.targets()) {
    if (std::find(concerned.begin(), concerned.end(), target) == concerned.end()) {
      concerned.push_back(target);
    }
  }
  if (moves_whole(before)) {
    for (uint32_t level = 1; level <= levels(); ++level) {
      const LaneId from = lane_of(level, *before.only());
      for (Member member = 0; member < at(from).lines.size(); ++member) {
        if (at(from).lines[member].key != kNone) {
          move_line(from, member, lane_of(level, *next.only()));
        }
      }
    }
  } else {
    recount_all(concerned);
  }
  // Those that are out for a start come back to where they belong now.
  for (auto& [seq, picked] : picked_) {
    if (picked.task.is_pinned) continue;
    const uint32_t level = level_of(picked.lane);
    uint32_t target = next.only().value_or(next.current);
    if (!next.only().has_value()) {
      const auto& name = keys_[at(picked.lane).lines[picked.line].key].name;
      const auto rows = backlog_->read({}, level, name, TaskSeq(seq), 1);
      const bool is_there = !rows.empty() && rows.front().seq.value() == seq;
      target = next.of_slot(is_there ? rows.front().task.slot : 0);
    }
    picked.home = lane_of(level, target);
  }
  for (uint32_t level = 1; level <= levels(); ++level) {
    for (const uint32_t target : concerned) {
      const LaneId lane = lane_of(level, target);
      refresh_all(lane);
      for (Member member = 0; member < at(lane).lines.size(); ++member) retire(lane, member);
    }
  }
  if (epochs_.size() > 1) find_current_epochs();
}

void TaskQueue::recount_all(const std::vector<uint32_t>& targets) {
  const auto is_concerned = [&](LaneId lane) {
    return std::find(targets.begin(), targets.end(), target_in(lane)) != targets.end();
  };
  for (const uint32_t target : targets) {
    for (auto& epoch : epochs_) {
      if (target < epoch.tasks.size()) epoch.tasks[target] = {};
    }
    for (auto& lane : targets_[target]->lanes) lane->waiting = lane->pinned = 0;
  }
  for (const auto& [seq, picked] : picked_) {
    if (is_concerned(picked.lane)) ++epoch_of(seq).count(picked.lane);
  }
  for (const uint32_t key : names_) {
    std::vector<uint32_t> own;
    for (const auto& entry : keys_[key].lines) {
      const uint32_t level = level_of(entry.lane);
      if (is_concerned(entry.lane) && (own.empty() || own.back() != level)) own.push_back(level);
    }
    for (const uint32_t level : own) recount(level, key, targets);
  }
}

}  // namespace fairlead::queue
