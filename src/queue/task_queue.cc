// Lines: what waits, and what goes out.

#include "queue/task_queue.h"

#include <algorithm>

#include "base/assert.h"

namespace fairlead::queue {

namespace {

constexpr size_t kFetchedKeys = 4;

}  // namespace

TaskQueue::TaskQueue(Backlog* backlog, Settings settings)
    : backlog_(backlog),
      settings_(settings),
      names_(0, KeyHash{this}, KeyEqual{this}),
      throttled_keys_(ByArrival{this}),
      debts_(ByArrival{this}) {
  epochs_.push_back({asked_order()});
  targets_.push_back(std::make_unique<Target>());
  named_targets_[0][""] = 0;
  add_levels(settings_.levels);
}

void TaskQueue::Lines::add(LaneId lane, uint32_t line) {
  const auto after = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.lane > lane; });
  entries_.insert(after, {lane, line});
}

void TaskQueue::Lines::erase(LaneId lane) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.lane == lane; });
  if (found != entries_.end()) entries_.erase(found);
}

// --- Keys and lines -----------------------------------------------------------------------------

uint32_t TaskQueue::find_key(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? kNone : *found;
}

uint32_t TaskQueue::get_key(const std::string& name) {
  const uint32_t found = find_key(name);
  if (found != kNone) return found;
  const uint32_t key = keys_.add();
  keys_[key].name = name;
  names_.insert(key);
  if (const auto* rule = rule_of(keys_[key]); rule != nullptr && rule->has_pause()) {
    keys_[key].holds |= kPaused;
  }
  if (is_capped(keys_[key])) keys_[key].holds |= kCapped;
  return key;
}

// A key with rules of its own has a line of its own: whoever made them meant this key and no other.
// Which line keys share depends on their names alone, so that it is the same after a restart.
std::string TaskQueue::line_of(const std::string& key) const {
  if (names_.size() < settings_.keys_max || find_key(key) != kNone ||
      rules_.weights().contains(key) || rules_.keys().contains(key)) {
    return key;
  }
  return shared_line(key);
}

Member TaskQueue::get_line(LaneId lane, uint32_t key) {
  if (const uint32_t known = keys_[key].lines.find(lane); known != kNone) return known;
  auto& owner = at(lane);
  const Member member = owner.domain.add();
  const uint32_t line = owner.lines.add();
  FL_ASSERT(line == member, "lines and members are numbered alike");
  owner.lines[line].key = key;
  owner.domain.set_running(member, keys_[key].running);
  keys_[key].lines.add(lane, member);
  return member;
}

// Forgets a line without tasks, debts or rows.
void TaskQueue::retire(LaneId lane, Member member) {
  auto& owner = at(lane);
  auto& line = owner.lines[member];
  if (line.key == kNone || line.count() > 0 || line.picks > 0) return;
  if (!owner.domain.can_free(member)) return;
  const uint32_t key = line.key;
  keys_[key].lines.erase(lane);
  owner.lines.free(member);
  owner.domain.free(member);
  retire_key(key);
}

void TaskQueue::retire_key(uint32_t key) {
  auto& entry = keys_[key];
  if (entry.running > 0 || entry.recent > 0 || entry.limiter_unsaved || entry.has_limiter_row ||
      entry.has_arrival != Key::Arrival::kNone || (entry.holds & kTimed) != 0) {
    return;
  }
  if (!entry.lines.empty()) return;
  names_.erase(key);
  keys_.free(key);
}

Weight TaskQueue::weight_of(const Key& key, float asked) const {
  const auto& overrides = rules_.weights();
  if (!overrides.empty()) {
    const auto found = overrides.find(key.name);
    if (found != overrides.end()) return Weight::of(static_cast<double>(found->second));
  }
  if (settings_.ignore_client_weights) return Weight();
  return Weight::of(std::min(static_cast<double>(asked), settings_.client_weight_max));
}

const model::QueueRules::KeyRule* TaskQueue::rule_of(const Key& key) const {
  if (rules_.keys().empty()) return nullptr;
  const auto found = rules_.keys().find(key.name);
  return found == rules_.keys().end() ? nullptr : &found->second;
}

void TaskQueue::set_head(LaneId lane, Line& line, const Numbered* head) {
  auto& heads = at(lane).heads;
  if (line.head != 0) {
    const auto found = heads.find(line.head_created / kSecond);
    if (found != heads.end() && --found->second == 0) heads.erase(found);
  }
  line.head = head == nullptr ? 0 : head->seq.value();
  if (head == nullptr) return;
  line.head_created = head->task.created_ns;
  line.head_weight = head->task.weight;
  ++heads[line.head_created / kSecond];
}

// Finds out which task is the line's first. The line's window may be read.
void TaskQueue::find_head(LaneId lane, Line& line) {
  if (line.window.empty() && !load_window(lane, line)) {
    set_head(lane, line, nullptr);
    return;
  }
  const Numbered head = line.window.front();
  set_head(lane, line, &head);
  keep_bound(line);
}

bool TaskQueue::takes_part(LaneId lane, const Line& line) const {
  const auto& key = keys_[line.key];
  if (line.head == 0 || key.holds != 0 || !is_in_play(lane, line.head)) return false;
  return !is_drained(key, line.head);
}

bool TaskQueue::is_drained(const Key& key, uint64_t seq) const {
  const auto* rule = rule_of(key);
  return rule != nullptr && rule->drain_below() != 0 && seq >= rule->drain_below();
}

// Brings the line's part in the order up to date.
void TaskQueue::refresh(LaneId lane, Member member) {
  auto& owner = at(lane);
  const auto& line = owner.lines[member];
  const auto& key = keys_[line.key];
  const bool takes_part = this->takes_part(lane, line);
  if (takes_part && !owner.domain.is_active(member)) {
    owner.domain.activate(member, weight_of(key, line.head_weight), line.head);
  } else if (takes_part) {
    owner.domain.set_head(member, weight_of(key, line.head_weight), line.head);
  } else if (owner.domain.is_active(member)) {
    owner.domain.rest(member);
  }
}

void TaskQueue::refresh_key(uint32_t key) {
  for (const auto& own : keys_[key].lines) refresh(own.lane, own.line);
}

// --- Tasks --------------------------------------------------------------------------------------

Place TaskQueue::reserve(uint32_t level, const std::string& key, Stream stream) {
  FL_ASSERT(level >= 1 && level <= kLevelsMax, "levels are clipped before they get here");
  const uint64_t seq = next_seq_++;
  reserved_.insert(seq);
  return {level, key, TaskSeq(seq), std::move(stream)};
}

// A task waits in its line from now on: in memory if there is room, or if everything around it is
// there.
void TaskQueue::keep(LaneId lane, Line& line, const Numbered& task) {
  auto& owner = at(lane);
  const uint64_t seq = task.seq.value();
  ++size_;
  ++owner.waiting;
  if (task.task.is_pinned) ++owner.pinned;
  const bool fits = line.beyond == 0 && in_memory_ < settings_.tasks_in_memory_max &&
                    line.window.size() < Window::kTasksMax;
  if (fits || seq <= line.loaded_to) {
    if (seq > line.loaded_to) {
      line.window.push_back(task);
    } else {
      line.window.insert(task);
    }
    ++in_memory_;
    line.loaded_to = std::max(line.loaded_to, seq);
  } else {
    set_beyond(line, line.beyond + 1);
  }
}

void TaskQueue::add(const Place& place, const Task& task, TimeNs now) {
  const uint64_t seq = place.seq.value();
  reserved_.erase(seq);
  const uint32_t key = get_key(place.key);
  // Somebody new who may not start at all must not be in the books until that is noticed.
  if (keys_[key].holds == 0 && is_stopped(keys_[key])) recheck_key(key, now);
  const LaneId lane = get_lane(place.level, place.stream);
  const Member member = get_line(lane, key);
  ++epoch_of(seq).count(lane);
  at(lane).added.count(now);
  Numbered numbered{place.seq, task};
  numbered.task.is_pinned = place.stream.is_pinned();
  numbered.task.type = place.stream.type;
  auto& line = at(lane).lines[member];
  keep(lane, line, numbered);
  if (line.head != 0 && line.head < seq) return;
  set_head(lane, line, &numbered);
  refresh(lane, member);
}

void TaskQueue::remove(const Place& place, TimeNs now) {
  const uint64_t seq = place.seq.value();
  if (picked_.contains(seq)) {
    const Picked picked = picked_.extract(seq).mapped();
    --at(picked.lane).lines[picked.line].picks;
    give_back(picked, now);
    leave_epoch(picked.lane, seq);
    return;
  }
  const LaneId lane = find_lane(place.level, place.stream);
  if (lane == kNone) return;
  const uint32_t key = find_key(place.key);
  if (key == kNone || keys_[key].lines.find(lane) == kNone) {
    leave_epoch(lane, seq);  // found missing, and then its line had nothing left
    return;
  }
  const Member member = keys_[key].lines.find(lane);
  auto& owner = at(lane);
  auto& line = owner.lines[member];
  if (line.window.erase(place.seq)) {
    --in_memory_;
  } else if (line.beyond > 0 && seq > line.loaded_to) {
    set_beyond(line, line.beyond - 1);
  } else {
    leave_epoch(lane, seq);  // found missing when its rows were read
    return;
  }
  --size_;
  --owner.waiting;
  if (place.stream.is_pinned()) --owner.pinned;
  if (line.head == seq) {
    find_head(lane, line);
    refresh(lane, member);
  }
  leave_epoch(lane, seq);
  retire(lane, member);
}

Numbered TaskQueue::pop_head(LaneId lane, Line& line) {
  if (line.window.empty() && !load_window(lane, line)) return {};
  const Numbered head = line.window.front();
  line.window.pop_front();
  --in_memory_;
  --size_;
  auto& owner = at(lane);
  --owner.waiting;
  if (head.task.is_pinned) --owner.pinned;
  find_head(lane, line);
  return head;
}

// The member was taken out of the order by a pick or a charge: how does it go on?
void TaskQueue::settle_picked(LaneId lane, Member member) {
  auto& owner = at(lane);
  const auto& line = owner.lines[member];
  const auto& key = keys_[line.key];
  if (takes_part(lane, line)) {
    owner.domain.next(member, weight_of(key, line.head_weight), line.head);
  } else {
    owner.domain.rest(member);
  }
}

// With a million keys nothing of the next one is in the processor's caches. Its line has been asked
// for while it was second, its key and its tasks are asked for now, and meanwhile this start is
// brought to its end.
void TaskQueue::fetch_ahead(const Lane& owner, const Slab<Key>& keys) {
  owner.domain.fetch_ahead(
      [&](Member next) {
        const auto& line = owner.lines[next];
        keys.fetch(line.key);
        line.window.fetch();
      },
      [&](Member soon) { owner.lines.fetch(soon); });
}

std::optional<Waiting> TaskQueue::pick(TimeNs now, std::string_view version, uint32_t group) {
  const uint32_t target = find_target(version, group);
  if (target == kNone || !may_start(now)) return std::nullopt;
  const Turn turn = take_turn(target);
  if (turn.level == 0) return std::nullopt;
  if (auto found = pick_from(turn, now)) return found;
  // Everyone there turned out to be held back.
  give_turn_back(turn);
  for (uint32_t level = 1; level <= levels(); ++level) {
    if (auto found = pick_from({.level = level, .target = target}, now)) return found;
  }
  return std::nullopt;
}

std::optional<Waiting> TaskQueue::pick_from(const Turn& turn, TimeNs now) {
  const LaneId lane = lane_of(turn.level, turn.target);
  auto& owner = at(lane);
  while (const auto found = owner.domain.pick()) {
    const Member member = *found;
    auto& line = owner.lines[member];
    const uint32_t key = line.key;
    // A limit that was lowered while the key waited.
    if (!conforms(keys_[key], now)) {
      owner.domain.rest(member);
      owner.domain.undo(member);
      recheck_key(key, now);
      continue;
    }
    Numbered head = pop_head(lane, line);
    if (head.seq.value() == 0) {
      owner.domain.rest(member);
      owner.domain.undo(member);
      continue;
    }
    Picked picked{lane, member, targets_[turn.target]->version, head.task};
    picked.turn = turn;
    ++line.picks;
    take_tokens(key, weight_of(keys_[key], head.task.weight), now, &picked);
    // A hold that begins with this start must not find the member half in the order.
    settle_picked(lane, member);
    after_start(key, now);
    picked_.emplace(head.seq.value(), picked);
    fetch_ahead(owner, keys_);
    Waiting waiting{{turn.level, keys_[key].name, head.seq}, head.task, size_};
    waiting.place.stream.type = head.task.type;
    if (head.task.is_pinned) waiting.place.stream.version = targets_[turn.target]->version;
    return waiting;
  }
  return std::nullopt;
}

void TaskQueue::started(const Place& place, TimeNs now) {
  const auto found = picked_.find(place.seq.value());
  if (found == picked_.end()) return;  // removed meanwhile
  const Picked picked = found->second;
  picked_.erase(found);
  auto& owner = at(picked.lane);
  auto& line = owner.lines[picked.line];
  --line.picks;
  keep_bound(line);
  commit_turn(picked.turn);
  if (picked.is_charged) owner.domain.commit(picked.line);
  count_dispatch(picked.lane, owner.lines[picked.line].key, now);
  leave_epoch(picked.lane, place.seq.value());
  retire(picked.lane, picked.line);
}

void TaskQueue::put_back(const Place& place, TimeNs now) {
  const auto found = picked_.find(place.seq.value());
  if (found == picked_.end()) return;  // removed while it was out
  const Picked picked = found->second;
  picked_.erase(found);
  const uint64_t seq = place.seq.value();
  const uint32_t key = at(picked.lane).lines[picked.line].key;
  // The routing may have changed meanwhile: then it comes back to another line than it was taken
  // from.
  const LaneId home = lane_of(place.level, get_target(picked.home, group_of(picked.task.type)));
  const Member member = get_line(home, key);
  auto& line = at(home).lines[member];
  --at(picked.lane).lines[picked.line].picks;
  if (line.beyond == 0) line.loaded_to = std::max(line.loaded_to, seq);
  const Numbered task{place.seq, picked.task};
  keep(home, line, task);
  give_back(picked, now);
  if (line.head == 0 || line.head > seq) {
    set_head(home, line, &task);
    refresh(home, member);
  }
  keep_bound(line);
  if (home == picked.lane) return;
  ++epoch_of(seq).count(home);
  leave_epoch(picked.lane, seq);
}

// A start that did not happen costs nothing.
void TaskQueue::give_back(const Picked& picked, TimeNs now) {
  auto& owner = at(picked.lane);
  const uint32_t key = owner.lines[picked.line].key;
  auto& entry = keys_[key];
  owner.domain.undo(picked.line);
  give_turn_back(picked.turn);
  if (picked.limit > 0) bucket_.give_back(picked.limit);
  if (picked.cost > 0) {
    entry.arrival -= picked.cost;
    mark_limiter(key);
  }
  if (picked.own_limit > 0) {
    timed_.erase({entry.ready, key});
    entry.ready -= Bucket::interval(picked.own_limit);
    mark_limiter(key);
  }
  if (picked.is_running) {
    --entry.running;
    --running_;
  }
  recheck_key(key, now);
  retire(picked.lane, picked.line);
}

void TaskQueue::count_dispatch(LaneId lane, uint32_t key, TimeNs now) {
  at(lane).dispatched.count(now);
  if (at(lane).domain.is_prompt()) state_changed_ = true;  // whose turn is next
  auto& entry = keys_[key];
  ++entry.dispatched;
  ++entry.recent;
  recent_.push_back(key);
  if (recent_.size() <= kRecent) return;
  keys_.fetch(recent_[kFetchedKeys]);  // one that is the oldest soon
  const uint32_t oldest = recent_.front();
  recent_.pop_front();
  --keys_[oldest].recent;
  if (oldest != key) retire_key(oldest);
}

// --- Past the line ------------------------------------------------------------------------------

bool TaskQueue::may_hand_over(uint32_t level, const std::string& key, TimeNs now,
                              const Stream& stream) {
  if (!may_start(now)) return false;
  if (const LaneId lane = find_lane(level, stream); lane != kNone) {
    if (at(lane).epoch + 1 < epochs_.size()) return false;
    for (uint32_t above = 1; above <= level; ++above) {
      if (at(lane_of(above, target_in(lane))).domain.actives() > 0) return false;
    }
  }
  if (is_key_draining(key)) return false;
  const uint32_t found = find_key(key);
  if (found != kNone) return keys_[found].holds == 0 && conforms(keys_[found], now);
  if (key_clock_.is_frozen() || !may_begin(key)) return false;
  const auto rule = rules_.keys().find(key);
  const bool is_stopped = rule != rules_.keys().end() && rule->second.has_per_second() &&
                          !(rule->second.per_second() > 1e-9);
  return !is_stopped;
}

bool TaskQueue::is_key_draining(const std::string& key) const {
  const auto rule = rules_.keys().find(key);
  return rule != rules_.keys().end() && rule->second.drain_below() != 0;
}

bool TaskQueue::hand_over_leaves_rows(uint32_t level, const Stream& stream) const {
  const LaneId lane = find_lane(level, stream);
  return (lane != kNone && at(lane).domain.members() > 0) || limit().has_value() ||
         key_clock_.is_on() || !rules_.keys().empty();
}

void TaskQueue::hand_over(uint32_t level, const std::string& name, float weight, TimeNs now,
                          const Stream& stream) {
  const uint32_t key = get_key(name);
  const LaneId lane = get_lane(level, stream);
  Picked picked;
  at(lane).added.count(now);
  take_tokens(key, weight_of(keys_[key], weight), now, &picked);
  charge_lane(lane, key, weight);
  after_start(key, now);
  count_dispatch(lane, key, now);
}

Place TaskQueue::claim(uint32_t level, const std::string& name, float weight, TimeNs now,
                       const Stream& stream) {
  const uint32_t key = get_key(name);
  const LaneId lane = get_lane(level, stream);
  const Member member = get_line(lane, key);
  auto& owner = at(lane);
  Picked picked{lane, member, targets_[target_in(lane)]->version, {}};
  picked.task.is_pinned = stream.is_pinned();
  picked.task.type = stream.type;
  picked.is_charged = owner.domain.members() > 0;
  owner.added.count(now);
  take_tokens(key, weight_of(keys_[key], weight), now, &picked);
  ++owner.lines[member].picks;
  if (picked.is_charged) {
    owner.domain.charge(member, weight_of(keys_[key], weight));
    settle_picked(lane, member);
  }
  after_start(key, now);
  const uint64_t seq = next_seq_++;
  ++epoch_of(seq).count(lane);
  picked_.emplace(seq, picked);
  return {level, name, TaskSeq(seq), stream};
}

void TaskQueue::charge(uint32_t level, const std::string& name, float weight, TimeNs /*now*/,
                       const Stream& stream) {
  const LaneId lane = find_lane(level, stream);
  if (lane == kNone || at(lane).domain.members() == 0) return;
  charge_lane(lane, get_key(name), weight);
}

void TaskQueue::charge_lane(LaneId lane, uint32_t key, float weight) {
  auto& owner = at(lane);
  if (owner.domain.members() == 0) return;  // nobody waits, nobody is owed anything
  const Member member = get_line(lane, key);
  owner.domain.charge(member, weight_of(keys_[key], weight));
  settle_picked(lane, member);
  owner.domain.commit(member);
  retire(lane, member);
}

bool TaskQueue::is_idle() const {
  return size_ == 0 && picked_.empty() && reserved_.empty() && running_ == 0;
}

uint32_t TaskQueue::next_level(TimeNs now, std::string_view version) {
  const bool may = may_start(now);
  const uint32_t target = find_target(version);
  return may && target != kNone ? next_level_of(target) : kLevelsMax + 1;
}

uint32_t TaskQueue::next_level_of(uint32_t target) const {
  for (uint32_t level = 1; level <= levels(); ++level) {
    if (at(lane_of(level, target)).domain.actives() > 0) return level;
  }
  return kLevelsMax + 1;
}

void TaskQueue::find_sources(TimeNs now, std::string_view version, uint32_t slots,
                             std::vector<Source>* sources) {
  if (!may_start(now)) return;
  for (const auto& [group, targets] : named_targets_) {
    if ((group & slots) != 0) continue;
    const uint32_t target = find_target(version, group);
    if (target == kNone) continue;
    const uint32_t level = next_level_of(target);
    if (level <= kLevelsMax) sources->push_back({std::string(version), group, level});
  }
}

}  // namespace fairlead::queue
