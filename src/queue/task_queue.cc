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
  add_levels(settings_.levels);
}

void TaskQueue::add_levels(uint32_t levels) {
  FL_ASSERT(levels <= kLevelsMax, "levels are clipped before they get here");
  while (levels_.size() < levels) {
    levels_.push_back(std::make_unique<Level>());
    at_epoch_[levels_.size() - 1] = first_epoch_of(levels_.size() - 1);
    rebuild(static_cast<uint32_t>(levels_.size()));
  }
}

void TaskQueue::Lines::add(uint32_t level, uint32_t line) {
  const auto after = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.level > level; });
  entries_.insert(after, {level, line});
}

void TaskQueue::Lines::erase(uint32_t level) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.level == level; });
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

Member TaskQueue::get_line(uint32_t number, uint32_t key) {
  if (const uint32_t known = keys_[key].lines.find(number); known != kNone) return known;
  auto& owner = level(number);
  const Member member = owner.domain.add();
  const uint32_t line = owner.lines.add();
  FL_ASSERT(line == member, "lines and members are numbered alike");
  owner.lines[line].key = key;
  owner.domain.set_running(member, keys_[key].running);
  keys_[key].lines.add(number, member);
  return member;
}

// Forgets a line without tasks, debts or rows.
void TaskQueue::retire(uint32_t number, Member member) {
  auto& owner = level(number);
  auto& line = owner.lines[member];
  if (line.key == kNone || line.count() > 0 || line.picks > 0) return;
  if (!owner.domain.can_free(member)) return;
  const uint32_t key = line.key;
  keys_[key].lines.erase(number);
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

void TaskQueue::set_head(uint32_t number, Line& line, const Numbered* head) {
  auto& heads = level(number).heads;
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
void TaskQueue::find_head(uint32_t number, Line& line) {
  if (line.window.empty() && !load_window(number, line)) {
    set_head(number, line, nullptr);
    return;
  }
  const Numbered head = line.window.front();
  set_head(number, line, &head);
  keep_bound(line);
}

bool TaskQueue::takes_part(uint32_t number, const Line& line) const {
  const auto& key = keys_[line.key];
  if (line.head == 0 || key.holds != 0 || !is_in_play(number, line.head)) return false;
  return !is_drained(key, line.head);
}

bool TaskQueue::is_drained(const Key& key, uint64_t seq) const {
  const auto* rule = rule_of(key);
  return rule != nullptr && rule->drain_below() != 0 && seq >= rule->drain_below();
}

// Brings the line's part in the order up to date.
void TaskQueue::refresh(uint32_t number, Member member) {
  auto& owner = level(number);
  const auto& line = owner.lines[member];
  const auto& key = keys_[line.key];
  const bool takes_part = this->takes_part(number, line);
  if (takes_part && !owner.domain.is_active(member)) {
    owner.domain.activate(member, weight_of(key, line.head_weight), line.head);
  } else if (takes_part) {
    owner.domain.set_head(member, weight_of(key, line.head_weight), line.head);
  } else if (owner.domain.is_active(member)) {
    owner.domain.rest(member);
  }
}

void TaskQueue::refresh_key(uint32_t key) {
  for (const auto& own : keys_[key].lines) refresh(own.level, own.line);
}

// --- Tasks --------------------------------------------------------------------------------------

Place TaskQueue::reserve(uint32_t number, const std::string& key) {
  FL_ASSERT(number >= 1 && number <= kLevelsMax, "levels are clipped before they get here");
  const uint64_t seq = next_seq_++;
  reserved_.insert(seq);
  return {number, key, TaskSeq(seq)};
}

void TaskQueue::add(const Place& place, const Task& task, TimeNs now) {
  const uint64_t seq = place.seq.value();
  reserved_.erase(seq);
  const uint32_t key = get_key(place.key);
  // Somebody new who may not start at all must not be in the books until that is noticed.
  if (keys_[key].holds == 0 && is_stopped(keys_[key])) recheck_key(key, now);
  const Member member = get_line(place.level, key);
  auto& owner = level(place.level);
  auto& line = owner.lines[member];
  ++size_;
  ++owner.waiting;
  ++epoch_of(seq).tasks[place.level - 1];
  owner.added.count(now);
  const bool fits = line.beyond == 0 && in_memory_ < settings_.tasks_in_memory_max &&
                    line.window.size() < Window::kTasksMax;
  if (fits || seq <= line.loaded_to) {
    if (seq > line.loaded_to) {
      line.window.push_back({place.seq, task});
    } else {
      line.window.insert({place.seq, task});
    }
    ++in_memory_;
    line.loaded_to = std::max(line.loaded_to, seq);
  } else {
    set_beyond(line, line.beyond + 1);
  }
  if (line.head != 0 && line.head < seq) return;
  const Numbered head{place.seq, task};
  set_head(place.level, line, &head);
  refresh(place.level, member);
}

void TaskQueue::remove(const Place& place, TimeNs now) {
  const uint64_t seq = place.seq.value();
  if (picked_.contains(seq)) {
    const Picked picked = picked_.extract(seq).mapped();
    --level(picked.level).lines[picked.line].picks;
    give_back(picked, now);
    leave_epoch(picked.level, seq);
    return;
  }
  const uint32_t key = find_key(place.key);
  if (key == kNone || keys_[key].lines.find(place.level) == kNone) {
    leave_epoch(place.level, seq);  // found missing, and then its line had nothing left
    return;
  }
  const Member member = keys_[key].lines.find(place.level);
  auto& owner = level(place.level);
  auto& line = owner.lines[member];
  if (line.window.erase(place.seq)) {
    --in_memory_;
  } else if (line.beyond > 0) {
    set_beyond(line, line.beyond - 1);
  } else {
    leave_epoch(place.level, seq);  // found missing when its rows were read
    return;
  }
  --size_;
  --owner.waiting;
  if (line.head == seq) {
    find_head(place.level, line);
    refresh(place.level, member);
  }
  leave_epoch(place.level, seq);
  retire(place.level, member);
}

Numbered TaskQueue::pop_head(uint32_t number, Line& line) {
  if (line.window.empty() && !load_window(number, line)) return {};
  const Numbered head = line.window.front();
  line.window.pop_front();
  --in_memory_;
  --size_;
  --level(number).waiting;
  find_head(number, line);
  return head;
}

// The member was taken out of the order by a pick or a charge: how does it go on?
void TaskQueue::settle_picked(uint32_t number, Member member) {
  auto& owner = level(number);
  const auto& line = owner.lines[member];
  const auto& key = keys_[line.key];
  if (takes_part(number, line)) {
    owner.domain.next(member, weight_of(key, line.head_weight), line.head);
  } else {
    owner.domain.rest(member);
  }
}

// With a million keys nothing of the next one is in the processor's caches. Its line has been asked
// for while it was second, its key and its tasks are asked for now, and meanwhile this start is
// brought to its end.
void TaskQueue::fetch_ahead(const Level& owner, const Slab<Key>& keys) {
  owner.domain.fetch_ahead(
      [&](Member next) {
        const auto& line = owner.lines[next];
        keys.fetch(line.key);
        line.window.fetch();
      },
      [&](Member soon) { owner.lines.fetch(soon); });
}

std::optional<Waiting> TaskQueue::pick(TimeNs now) {
  if (!may_start(now)) return std::nullopt;
  const Turn turn = take_turn();
  if (turn.level == 0) return std::nullopt;
  if (auto found = pick_from(turn, now)) return found;
  // Everyone there turned out to be held back.
  give_turn_back(turn);
  for (uint32_t number = 1; number <= levels(); ++number) {
    if (auto found = pick_from({.level = number}, now)) return found;
  }
  return std::nullopt;
}

std::optional<Waiting> TaskQueue::pick_from(const Turn& turn, TimeNs now) {
  const uint32_t number = turn.level;
  auto& owner = level(number);
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
    Numbered head = pop_head(number, line);
    if (head.seq.value() == 0) {
      owner.domain.rest(member);
      owner.domain.undo(member);
      continue;
    }
    Picked picked{number, member, head.task};
    picked.turn = turn;
    ++line.picks;
    take_tokens(key, weight_of(keys_[key], head.task.weight), now, &picked);
    // A hold that begins with this start must not find the member half in the order.
    settle_picked(number, member);
    after_start(key, now);
    picked_.emplace(head.seq.value(), picked);
    fetch_ahead(owner, keys_);
    return Waiting{{number, keys_[key].name, head.seq}, head.task, size_};
  }
  return std::nullopt;
}

void TaskQueue::started(const Place& place, TimeNs now) {
  const auto found = picked_.find(place.seq.value());
  if (found == picked_.end()) return;  // removed meanwhile
  const Picked picked = found->second;
  picked_.erase(found);
  auto& owner = level(picked.level);
  auto& line = owner.lines[picked.line];
  --line.picks;
  keep_bound(line);
  commit_turn(picked.turn);
  if (picked.is_charged) owner.domain.commit(picked.line);
  count_dispatch(picked.level, owner.lines[picked.line].key, now);
  leave_epoch(picked.level, place.seq.value());
  retire(picked.level, picked.line);
}

void TaskQueue::put_back(const Place& place, TimeNs now) {
  const auto found = picked_.find(place.seq.value());
  if (found == picked_.end()) return;  // removed while it was out
  const Picked picked = found->second;
  picked_.erase(found);
  auto& owner = level(picked.level);
  auto& line = owner.lines[picked.line];
  --line.picks;
  const Numbered task{place.seq, picked.task};
  line.window.insert(task);
  ++in_memory_;
  ++size_;
  ++owner.waiting;
  give_back(picked, now);
  if (line.head == 0 || line.head > place.seq.value()) {
    set_head(picked.level, line, &task);
    refresh(picked.level, picked.line);
  }
  keep_bound(line);
}

// A start that did not happen costs nothing.
void TaskQueue::give_back(const Picked& picked, TimeNs now) {
  auto& owner = level(picked.level);
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
  retire(picked.level, picked.line);
}

void TaskQueue::count_dispatch(uint32_t number, uint32_t key, TimeNs now) {
  level(number).dispatched.count(now);
  if (level(number).domain.is_prompt()) state_changed_ = true;  // whose turn is next
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

bool TaskQueue::may_hand_over(uint32_t number, const std::string& key, TimeNs now) {
  if (!may_start(now) || epochs_.size() > 1) return false;
  for (uint32_t above = 1; above <= number; ++above) {
    if (level(above).domain.actives() > 0) return false;
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

bool TaskQueue::hand_over_leaves_rows(uint32_t number) const {
  return (number <= levels() && level(number).domain.members() > 0) || limit().has_value() ||
         key_clock_.is_on() || !rules_.keys().empty();
}

void TaskQueue::hand_over(uint32_t number, const std::string& name, float weight, TimeNs now) {
  const uint32_t key = get_key(name);
  Picked picked;
  level(number).added.count(now);
  take_tokens(key, weight_of(keys_[key], weight), now, &picked);
  if (level(number).domain.members() > 0) charge(number, name, weight, now);
  after_start(key, now);
  count_dispatch(number, key, now);
}

Place TaskQueue::claim(uint32_t number, const std::string& name, float weight, TimeNs now) {
  const uint32_t key = get_key(name);
  const Member member = get_line(number, key);
  auto& owner = level(number);
  Picked picked{number, member, {}};
  picked.is_charged = owner.domain.members() > 0;
  owner.added.count(now);
  take_tokens(key, weight_of(keys_[key], weight), now, &picked);
  ++owner.lines[member].picks;
  if (picked.is_charged) {
    owner.domain.charge(member, weight_of(keys_[key], weight));
    settle_picked(number, member);
  }
  after_start(key, now);
  const uint64_t seq = next_seq_++;
  ++epoch_of(seq).tasks[number - 1];
  picked_.emplace(seq, picked);
  return {number, name, TaskSeq(seq)};
}

void TaskQueue::charge(uint32_t number, const std::string& name, float weight, TimeNs now) {
  auto& owner = level(number);
  if (owner.domain.members() == 0) return;  // nobody waits, nobody is owed anything
  const uint32_t key = get_key(name);
  const Member member = get_line(number, key);
  owner.domain.charge(member, weight_of(keys_[key], weight));
  settle_picked(number, member);
  owner.domain.commit(member);
  retire(number, member);
}

bool TaskQueue::is_idle() const {
  return size_ == 0 && picked_.empty() && reserved_.empty() && running_ == 0;
}

uint32_t TaskQueue::next_level(TimeNs now) {
  if (!may_start(now)) return kLevelsMax + 1;
  for (uint32_t number = 1; number <= levels(); ++number) {
    if (level(number).domain.actives() > 0) return number;
  }
  return kLevelsMax + 1;
}

}  // namespace fairlead::queue
