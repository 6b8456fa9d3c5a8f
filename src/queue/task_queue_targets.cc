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

uint32_t TaskQueue::find_target(std::string_view version, uint32_t group) const {
  if (version.empty() && group == 0) return 0;
  const auto of_group = named_targets_.find(group);
  if (of_group == named_targets_.end()) return kNone;
  const auto found = of_group->second.find(version);
  return found == of_group->second.end() ? kNone : found->second;
}

std::vector<std::string> TaskQueue::waiting_versions() const {
  std::vector<std::string> versions;
  for (size_t target = 1; target < targets_.size(); ++target) {
    const auto& lanes = targets_[target]->lanes;
    const bool waits =
        std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane->waiting > 0; });
    if (waits) versions.push_back(targets_[target]->version);
  }
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  return versions;
}

bool TaskQueue::is_in_use(uint32_t target) const {
  if (target == 0 || target == routes_.current || target == routes_.ramping) return true;
  const auto& version = targets_[target]->version;
  const bool is_named =
      version == rules_.routing().current() || version == rules_.routing().ramping();
  if (is_named && targets_[target]->group == 0) return true;
  const auto& lanes = targets_[target]->lanes;
  return std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) {
    return lane->lines.used() > 0 || lane->domain.has_unsaved();
  });
}

// Versions and groups come and go for as long as a queue lives: the place of one that nothing is
// left of is taken by the next.
uint32_t TaskQueue::get_target(const std::string& version, uint32_t group) {
  if (const uint32_t known = find_target(version, group); known != kNone) return known;
  auto target = static_cast<uint32_t>(targets_.size());
  // Not before everything is loaded: until then a version may have no more than an account.
  if (is_loaded_) {
    for (target = 0; target < targets_.size() && is_in_use(target);) ++target;
  }
  if (target == targets_.size()) {
    targets_.push_back(std::make_unique<Target>());
  } else {
    const auto of_group = named_targets_.find(targets_[target]->group);
    of_group->second.erase(targets_[target]->version);
    if (of_group->second.empty()) named_targets_.erase(of_group);
    *targets_[target] = Target();
    for (auto& epoch : epochs_) {
      if (target < epoch.tasks.size()) epoch.tasks[target] = {};
    }
  }
  targets_[target]->version = version;
  targets_[target]->group = group;
  named_targets_[group][version] = target;
  add_levels(levels());
  return target;
}

uint32_t TaskQueue::route(const Stream& stream) const {
  const uint32_t group = group_of(stream.type);
  if (!stream.is_pinned() && group == 0) return routes_.of_slot(stream.slot);
  return find_target(target_of(stream), group);
}

const std::string& TaskQueue::target_of(const Stream& stream) const {
  return stream.is_pinned() ? stream.version : targets_[routes_.of_slot(stream.slot)]->version;
}

TaskQueue::LaneId TaskQueue::find_lane(uint32_t level, const Stream& stream) const {
  const uint32_t target = route(stream);
  return target == kNone || level > levels() ? kNone : lane_of(level, target);
}

TaskQueue::LaneId TaskQueue::get_lane(uint32_t level, const Stream& stream) {
  if (level > levels()) add_levels(level);
  uint32_t target = route(stream);
  if (target == kNone) {
    target = get_target(std::string(target_of(stream)), group_of(stream.type));
  }
  return lane_of(level, target);
}

// --- Types --------------------------------------------------------------------------------------

uint32_t TaskQueue::group_of(TaskType type) const {
  uint32_t group = 0;
  if (type == TaskType()) return group;
  for (const auto& [slot, list] : type_lists_) {
    if (!list.contains(type)) group |= 1U << slot;
  }
  return group;
}

std::optional<uint32_t> TaskQueue::slot_of(const TypeList& list) const {
  for (const auto& [slot, known] : type_lists_) {
    if (known == list) return slot;
  }
  return std::nullopt;
}

uint32_t TaskQueue::type_slots() const {
  uint32_t slots = 0;
  for (const auto& [slot, list] : type_lists_) slots |= 1U << slot;
  return slots;
}

void TaskQueue::set_type_list(uint32_t slot, const TypeList* list) {
  FL_ASSERT(slot < kTypeListsMax, "a group has a bit for each slot");
  auto lists = type_lists_;
  lists.erase(slot);
  if (list != nullptr) lists.emplace(slot, *list);
  rules_.clear_type_lists();
  for (const auto& [number, types] : lists) {
    auto* row = rules_.add_type_lists();
    row->set_slot(number);
    for (const TaskType type : types) row->add_types(type.value());
  }
  rules_changed_ = true;
  change_routes();
}

// --- Routing ------------------------------------------------------------------------------------

// Rows of the default stream, as far as the routing gives them to this target, and rows that are
// pinned to its version; of both those whose types are its own. What is read of one stream beyond
// the end of the other's page is read again later.
TaskQueue::Page TaskQueue::read_line(LaneId lane, const std::string& key, TaskSeq from,
                                     size_t max) const {
  const uint32_t level = level_of(lane);
  const auto& target = *targets_[target_in(lane)];
  const uint32_t base = find_target(target.version);
  constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
  Page page;
  page.to = kEnd;
  const auto limit_to = [&](const std::vector<Numbered>& rows) {
    if (rows.size() == max) page.to = std::min(page.to, rows.back().seq.value());
  };
  const auto only = routes_.only();
  if (base != kNone && only.value_or(base) == base) {
    page.rows = backlog_->read({}, level, key, from, max);
    limit_to(page.rows);
    if (!only.has_value()) {
      std::erase_if(page.rows,
                    [&](const Numbered& row) { return routes_.of_slot(row.task.slot) != base; });
    }
  }
  if (!target.version.empty()) {
    auto pinned = backlog_->read(target.version, level, key, from, max);
    limit_to(pinned);
    for (auto& row : pinned) row.task.is_pinned = true;
    const auto middle = page.rows.insert(page.rows.end(), pinned.begin(), pinned.end());
    std::inplace_merge(page.rows.begin(), middle, page.rows.end(),
                       [](const Numbered& a, const Numbered& b) { return a.seq < b.seq; });
    std::erase_if(page.rows, [&](const Numbered& row) { return row.seq.value() > page.to; });
  }
  if (!type_lists_.empty()) {
    std::erase_if(page.rows,
                  [&](const Numbered& row) { return group_of(row.task.type) != target.group; });
  }
  page.is_last = page.to == kEnd;
  return page;
}

// All of the default stream changes over from one target to another, and nothing in its lines is
// pinned: they move as they are, however long they are.
bool TaskQueue::moves_whole(const Routes& before) const {
  if (epochs_.size() > 1 || !before.only().has_value() || !routes_.only().has_value()) return false;
  if (!type_lists_.empty()) return false;
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

std::vector<uint32_t> TaskQueue::targets_of(const Versions& versions) const {
  std::vector<uint32_t> targets;
  for (uint32_t target = 0; target < targets_.size(); ++target) {
    if (versions.contains(targets_[target]->version)) targets.push_back(target);
  }
  return targets;
}

// Only types are told apart anew, and all that waits for the key in these targets is in memory: no
// row has to be read. False: that is not so.
bool TaskQueue::regroup(uint32_t level, uint32_t key, const std::vector<uint32_t>& targets) {
  std::vector<LaneId> lanes;
  size_t total = 0;
  for (const uint32_t target : targets) {
    const LaneId lane = lane_of(level, target);
    const Member member = keys_[key].lines.find(lane);
    if (member == kNone) continue;
    const auto& line = at(lane).lines[member];
    if (line.beyond > 0) return false;
    total += line.window.size();
    lanes.push_back(lane);
  }
  if (total > Window::kTasksMax) return false;
  std::vector<std::pair<LaneId, Numbered>> tasks;
  for (const LaneId lane : lanes) {
    auto& line = at(lane).lines[keys_[key].lines.find(lane)];
    const std::string version = targets_[target_in(lane)]->version;
    for (; !line.window.empty(); line.window.pop_front()) {
      const Numbered task = line.window.front();
      const LaneId to = lane_of(level, get_target(version, group_of(task.task.type)));
      get_line(to, key);  // so that its place is not taken by the next
      tasks.emplace_back(to, task);
    }
    set_head(lane, line, nullptr);
  }
  std::sort(tasks.begin(), tasks.end(),
            [](const auto& a, const auto& b) { return a.second.seq < b.second.seq; });
  for (const auto& [lane, task] : tasks) {
    auto& line = at(lane).lines[get_line(lane, key)];
    if (line.head == 0) set_head(lane, line, &task);
    line.window.push_back(task);
    line.loaded_to = next_seq_ - 1;
    ++epoch_of(task.seq.value()).count(lane);
    ++at(lane).waiting;
    if (task.task.is_pinned) ++at(lane).pinned;
  }
  return true;
}

// Finds out from the rows what waits for a key in the targets of these versions.
//
// A row may be gone whose end has not been told yet, and nobody knows which: then each line is
// taken to be longer than it is, until it is read to its end. The other way round its last tasks
// would be forgotten.
void TaskQueue::recount(uint32_t level, uint32_t key, const Versions& versions,
                        const std::vector<uint32_t>& targets) {
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
  struct Counted {
    uint32_t tasks = 0;
    Numbered head;
  };
  absl::btree_map<LaneId, Counted> counts;
  int64_t found = 0;
  const auto count = [&](const std::string& version) {
    std::vector<Numbered> rows;
    TaskSeq from(1);
    do {
      rows = backlog_->read(version, level, keys_[key].name, from, kPage);
      for (const auto& row : rows) {
        const uint64_t seq = row.seq.value();
        if (reserved_.contains(seq) || picked_.contains(seq)) continue;
        const LaneId lane = get_lane(level, {version, row.task.slot, row.task.type});
        get_line(lane, key);  // so that its place is not taken by the next
        auto& counted = counts[lane];
        if (counted.tasks++ == 0 || row.seq < counted.head.seq) counted.head = row;
        ++found;
        ++epoch_of(seq).count(lane);
        if (!version.empty()) ++at(lane).pinned;
      }
      if (!rows.empty()) from = rows.back().seq.next();
    } while (rows.size() == kPage);
  };
  count({});
  for (const auto& version : versions) {
    if (!version.empty()) count(version);
  }
  const auto untold = static_cast<uint32_t>(std::max<int64_t>(was - found, 0));
  size_ -= was;
  for (const auto& [lane, counted] : counts) {
    auto& line = at(lane).lines[get_line(lane, key)];
    set_head(lane, line, &counted.head);
    line.loaded_to = line.head - 1;
    set_beyond(line, counted.tasks + untold);
    at(lane).waiting += counted.tasks + untold;
    size_ += counted.tasks + untold;
  }
}

// The rules say where the default stream goes, and which types are told apart. What waits goes
// there now: whoever comes to a target that way joins it like anybody else who begins to wait, and
// what it has had elsewhere it has had.
void TaskQueue::change_routes() {
  const auto& asked = rules_.routing();
  Routes next;
  next.current = get_target(asked.current());
  next.percent = std::min(asked.percent(), kSlots);
  next.ramping = next.percent == 0 ? next.current : get_target(asked.ramping());
  const Routes before = std::exchange(routes_, next);
  absl::btree_map<uint32_t, TypeList> lists;
  for (const auto& row : rules_.type_lists()) {
    std::vector<TaskType> types;
    for (const uint64_t type : row.types()) types.emplace_back(type);
    if (row.slot() < kTypeListsMax) lists.emplace(row.slot(), TypeList(std::move(types)));
  }
  const bool has_new_lists = lists != type_lists_;
  type_lists_ = std::move(lists);
  const bool is_same_stream =
      next == before || (next.only().has_value() && next.only() == before.only());
  if (is_same_stream && !has_new_lists) return;

  Versions concerned;
  for (const auto& routes : {before, next}) {
    for (const uint32_t target : routes.targets()) concerned.insert(targets_[target]->version);
  }
  if (has_new_lists) {
    for (const auto& target : targets_) concerned.insert(target->version);
  }
  if (!has_new_lists && moves_whole(before)) {
    for (uint32_t level = 1; level <= levels(); ++level) {
      const LaneId from = lane_of(level, *before.only());
      for (Member member = 0; member < at(from).lines.size(); ++member) {
        if (at(from).lines[member].key != kNone) {
          move_line(from, member, lane_of(level, *next.only()));
        }
      }
    }
  } else {
    recount_all(concerned, is_same_stream);
  }
  send_home();
  for (uint32_t level = 1; level <= levels(); ++level) {
    for (const uint32_t target : targets_of(concerned)) {
      const LaneId lane = lane_of(level, target);
      refresh_all(lane);
      for (Member member = 0; member < at(lane).lines.size(); ++member) retire(lane, member);
    }
  }
  if (epochs_.size() > 1) find_current_epochs();
}

// Those that are out for a start come back to where they belong now.
void TaskQueue::send_home() {
  for (auto& [seq, picked] : picked_) {
    if (picked.task.is_pinned) continue;
    uint8_t slot = 0;
    if (!routes_.only().has_value()) {
      const auto& name = keys_[at(picked.lane).lines[picked.line].key].name;
      const auto rows = backlog_->read({}, level_of(picked.lane), name, TaskSeq(seq), 1);
      const bool is_there = !rows.empty() && rows.front().seq.value() == seq;
      if (is_there) slot = rows.front().task.slot;
    }
    picked.home = target_of({{}, slot});
  }
}

void TaskQueue::recount_all(const Versions& versions, bool only_types) {
  const auto is_concerned = [&](LaneId lane) {
    return versions.contains(targets_[target_in(lane)]->version);
  };
  const auto targets = targets_of(versions);
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
    for (const uint32_t level : own) {
      if (only_types && regroup(level, key, targets)) continue;
      recount(level, key, versions, targets);
    }
  }
}

}  // namespace fairlead::queue
