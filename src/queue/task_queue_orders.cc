// Which order is in force, how one order follows another, and how the queue comes back from its
// rows.

#include <algorithm>

#include "base/assert.h"
#include "queue/task_queue.h"

namespace fairlead::queue {

namespace {

using Rules = model::QueueRules;

Rules::Basis to_row(Order order) {
  switch (order) {
    case Order::kFair:
      return Rules::DISPATCH;
    case Order::kInFlight:
      return Rules::IN_FLIGHT;
    case Order::kFifo:
      return Rules::BASIS_UNSET;
  }
  return Rules::BASIS_UNSET;
}

Order from_row(Rules::Basis basis) {
  if (basis == Rules::DISPATCH) return Order::kFair;
  return basis == Rules::IN_FLIGHT ? Order::kInFlight : Order::kFifo;
}

// The last of all levels has the bit that no other has.
uint32_t toggle_bit(uint32_t number) { return number % kLevelsMax; }

}  // namespace

int64_t& TaskQueue::Epoch::count(LaneId lane) {
  if (target_in(lane) >= tasks.size()) tasks.resize(target_in(lane) + 1);
  return tasks[target_in(lane)][level_of(lane) - 1];
}

int64_t TaskQueue::Epoch::count(LaneId lane) const {
  return target_in(lane) < tasks.size() ? tasks[target_in(lane)][level_of(lane) - 1] : 0;
}

int64_t TaskQueue::Epoch::total(uint32_t target) const {
  if (target >= tasks.size()) return 0;
  int64_t sum = 0;
  for (const int64_t count : tasks[target]) sum += count;
  return sum;
}

Order TaskQueue::asked_order() const {
  if (rules_.fairness() == Rules::OFF) return Order::kFifo;
  if (rules_.fairness() == Rules::UNSET && settings_.order == Order::kFifo) return Order::kFifo;
  return rules_.basis() == Rules::IN_FLIGHT ? Order::kInFlight : Order::kFair;
}

bool TaskQueue::is_prompt() const {
  if (rules_.first_turn() == Rules::FIRST_TURN_UNSET) return settings_.is_prompt;
  return rules_.first_turn() == Rules::PROMPT;
}

size_t TaskQueue::epoch_index(uint64_t seq) const {
  for (size_t at = epochs_.size() - 1; at > 0; --at) {
    if (epochs_[at].first_seq <= seq) return at;
  }
  return 0;
}

TaskQueue::Epoch& TaskQueue::epoch_of(uint64_t seq) { return epochs_[epoch_index(seq)]; }

bool TaskQueue::is_in_play(LaneId lane, uint64_t seq) const {
  return epochs_.size() == 1 || epoch_index(seq) <= at(lane).epoch;
}

void TaskQueue::leave_epoch(LaneId lane, uint64_t seq) {
  --epoch_of(seq).count(lane);
  if (epochs_.size() > 1) find_current_epochs();
}

// The first epoch that still has something for a lane. Targets do not wait for each other.
size_t TaskQueue::first_epoch_of(LaneId lane) const {
  size_t found = 0;
  while (found + 1 < epochs_.size()) {
    const auto& epoch = epochs_[found];
    const bool has_more =
        epochs_[found + 1].per_level ? epoch.count(lane) > 0 : epoch.total(target_in(lane)) > 0;
    if (has_more) break;
    ++found;
  }
  return found;
}

// Brings each lane to the epoch it is at.
void TaskQueue::find_current_epochs() {
  std::vector<LaneId> moved;
  size_t drained = epochs_.size();
  for_each_lane([&](LaneId lane) {
    const size_t epoch = first_epoch_of(lane);
    if (epoch != at(lane).epoch) moved.push_back(lane);
    at(lane).epoch = epoch;
    drained = std::min(drained, epoch);
  });
  if (drained > 0) {
    epochs_.erase(epochs_.begin(), epochs_.begin() + static_cast<std::ptrdiff_t>(drained));
    for_each_lane([&](LaneId lane) { at(lane).epoch -= drained; });
    save_epochs();
  }
  for (const LaneId lane : moved) {
    rebuild(lane);
    has_begun_anew_ = true;
  }
}

void TaskQueue::save_epochs() {
  rules_.clear_epochs();
  for (const auto& epoch : epochs_) {
    auto* row = rules_.add_epochs();
    row->set_order(to_row(epoch.order));
    row->set_first_seq(epoch.first_seq);
    row->set_per_level(epoch.per_level);
  }
  rules_changed_ = true;
}

const Rules& TaskQueue::take_rules() {
  rules_changed_ = false;
  return rules_;
}

void TaskQueue::change_order() {
  const Order order = asked_order();
  for_each_lane([&](LaneId lane) { at(lane).domain.set_prompt(is_prompt()); });
  if (epochs_.back().order == order) return;
  auto transition = rules_.transition();
  if (transition == Rules::TRANSITION_UNSET) transition = settings_.transition;
  Epoch next{order, next_seq_, transition == Rules::DRAIN_PER_LEVEL};
  if (transition == Rules::IMMEDIATE) {
    for_each_lane([&](LaneId lane) {
      for (const auto& epoch : epochs_) next.count(lane) += epoch.count(lane);
    });
    epochs_.assign(1, next);
    save_epochs();
    for_each_lane([&](LaneId lane) {
      at(lane).epoch = 0;
      rebuild(lane);
    });
    return;
  }
  epochs_.push_back(next);
  save_epochs();
  find_current_epochs();
}

void TaskQueue::set_settings(const Settings& settings, TimeNs now) {
  const auto before = settings_;
  settings_ = settings;
  add_levels(settings_.levels);
  change_order();
  if (before.client_weight_max == settings.client_weight_max &&
      before.ignore_client_weights == settings.ignore_client_weights) {
    return;
  }
  for (uint32_t key = 0; key < keys_.size(); ++key) {
    if (names_.contains(key)) refresh_key(key);
  }
}

void TaskQueue::rebuild(LaneId lane) {
  auto& owner = at(lane);
  owner.domain.reset(epochs_[owner.epoch].order);
  owner.domain.set_prompt(is_prompt());
  refresh_all(lane);
}

// In the order in which they came, as if they came now.
void TaskQueue::refresh_all(LaneId lane) {
  auto& owner = at(lane);
  std::vector<Member> members;
  for (Member member = 0; member < owner.lines.size(); ++member) {
    if (owner.lines[member].key != kNone) members.push_back(member);
  }
  std::sort(members.begin(), members.end(),
            [&](Member a, Member b) { return owner.lines[a].head < owner.lines[b].head; });
  for (const Member member : members) {
    owner.domain.set_running(member, keys_[owner.lines[member].key].running);
    refresh(lane, member);
  }
}

// --- Rows ---------------------------------------------------------------------------------------

void TaskQueue::load_rules(const Rules& rules) {
  rules_ = rules;
  change_routes();  // before there are epochs that could seem to be drained
  if (rules_.key_limit().has_per_second() && !std::isinf(rules_.key_limit().per_second())) {
    key_clock_.restart(rules_.key_clock(), rules_.key_clock_ns());
    key_clock_.set_rate(rules_.key_clock_ns(), rules_.key_limit().per_second());
  }
  epochs_.clear();
  for (const auto& row : rules_.epochs()) {
    epochs_.push_back({from_row(row.order()), row.first_seq(), row.per_level()});
  }
  if (epochs_.empty()) epochs_.push_back({asked_order()});
  for_each_lane([&](LaneId lane) {
    at(lane).epoch = 0;
    rebuild(lane);
  });
}

void TaskQueue::load_state(const model::QueueState& state) {
  bucket_.set_ready(state.ready_ns());
  const auto load = [&](uint32_t target, uint64_t toggles, const auto& owes) {
    for (uint32_t level = 1; level <= kLevelsMax; ++level) {
      const bool toggle = (toggles >> toggle_bit(level) & 1) != 0;
      if (toggle) add_levels(level);
      if (level <= levels()) at(lane_of(level, target)).domain.set_toggle(toggle);
    }
    add_levels(static_cast<uint32_t>(owes.size()));
    for (int i = 0; i < owes.size(); ++i) {
      auto& owner = at(lane_of(static_cast<uint32_t>(i) + 1, target));
      owner.owes = owner.owes_committed = owes[i];
    }
  };
  load(0, state.toggles(), state.owes());
  for (const auto& one : state.targets())
    load(get_target(one.version(), one.group()), one.toggles(), one.owes());
}

void TaskQueue::load_task(uint32_t level, const std::string& name, const Numbered& row,
                          const std::string& version) {
  const uint32_t key = get_key(name);
  const LaneId lane = get_lane(level, {version, row.task.slot, row.task.type});
  Numbered task = row;
  task.task.is_pinned = !version.empty();
  auto& owner = at(lane);
  auto& line = owner.lines[get_line(lane, key)];
  if (line.head == 0 || task.seq.value() < line.head) set_head(lane, line, &task);
  keep_loaded(line, task);
  ++size_;
  ++owner.waiting;
  if (task.task.is_pinned) ++owner.pinned;
  ++epoch_of(task.seq.value()).count(lane);
  next_seq_ = std::max(next_seq_, task.seq.value() + 1);
}

void TaskQueue::load_account(uint32_t level, const std::string& name, const model::AccountRow& row,
                             const std::string& version, uint32_t group) {
  if (level > levels()) add_levels(level);
  loading_.emplace_back(lane_of(level, get_target(version, group)), get_key(name),
                        Domain::Saved{row.start(), row.weight(), row.fresh()});
}

void TaskQueue::load_limiter(const std::string& name, const model::LimiterRow& row) {
  const uint32_t key = get_key(name);
  keys_[key].arrival = row.arrival();
  keys_[key].ready = row.ready_ns();
  keys_[key].has_limiter_row = true;
  // Told apart from a key that never started; `loaded` finds out where it stands.
  keys_[key].has_arrival = Key::Arrival::kDebt;
  debts_.push({static_cast<uint64_t>(row.arrival()), 0, key});
}

void TaskQueue::load_lease(const std::string& name) {
  ++keys_[get_key(name)].running;
  ++running_;
}

void TaskQueue::loaded(TimeNs now) {
  for (const auto& epoch : epochs_) next_seq_ = std::max(next_seq_, epoch.first_seq);
  for (uint32_t key = 0; key < keys_.size(); ++key) recheck_key(key, now);
  // A lane may be further than another one: its accounts are of the order in which it was.
  for_each_lane([&](LaneId lane) {
    at(lane).epoch = first_epoch_of(lane);
    at(lane).domain.reset(epochs_[at(lane).epoch].order);
  });
  for (const auto& [lane, key, saved] : loading_) {
    const Member member = get_line(lane, key);
    auto& owner = at(lane);
    const auto& line = owner.lines[member];
    owner.domain.restore(
        member, saved, takes_part(lane, line) ? std::optional<uint64_t>(line.head) : std::nullopt);
  }
  loading_.clear();
  loading_.shrink_to_fit();
  for_each_lane([&](LaneId lane) {
    at(lane).domain.restored();
    refresh_all(lane);
  });
  if (epochs_.size() > 1) find_current_epochs();
  change_order();
  if (rules_.epochs().empty()) save_epochs();
  is_loaded_ = true;
}

bool TaskQueue::are_rows_due() const {
  // What is remembered of an order that has ended must not be taken for the next one's.
  bool is_due = has_begun_anew_;
  for_each_lane([&](LaneId lane) { is_due = is_due || at(lane).domain.is_save_due(); });
  return is_due;
}

std::string TaskQueue::state_row() const {
  model::QueueState state;
  state.set_ready_ns(bucket_.ready());
  for (const auto& target : targets_) {
    uint64_t toggles = 0;
    bool owes = false;
    for (size_t i = 0; i < target->lanes.size(); ++i) {
      const auto& lane = *target->lanes[i];
      if (lane.domain.toggle()) toggles |= 1ULL << toggle_bit(static_cast<uint32_t>(i) + 1);
      owes = owes || lane.owes_committed != 0;
    }
    const auto put = [&](auto* row) {
      row->set_toggles(toggles);
      if (!owes) return;
      for (const auto& lane : target->lanes) row->add_owes(lane->owes_committed);
    };
    if (target == targets_.front()) {
      put(&state);
    } else if (toggles != 0 || owes) {
      auto* row = state.add_targets();
      row->set_version(target->version);
      row->set_group(target->group);
      put(row);
    }
  }
  return state.SerializeAsString();
}

std::vector<RowChange> TaskQueue::take_rows() {
  std::vector<RowChange> rows;
  has_begun_anew_ = false;
  for_each_lane([&](LaneId lane) {
    auto& owner = at(lane);
    if (!owner.domain.has_unsaved()) return;
    std::vector<Member> left;
    const auto write = [&](Member member, const std::optional<Domain::Saved>& saved) {
      RowChange change{RowChange::Table::kAccount, level_of(lane),
                       keys_[owner.lines[member].key].name, std::nullopt};
      change.version = targets_[target_in(lane)]->version;
      change.group = targets_[target_in(lane)]->group;
      if (saved.has_value()) {
        model::AccountRow row;
        row.set_start(saved->start);
        row.set_weight(saved->weight);
        row.set_fresh(saved->is_fresh);
        change.value = row.SerializeAsString();
      }
      rows.push_back(std::move(change));
    };
    owner.domain.save(write, [&](Member member) { left.push_back(member); });
    for (const Member member : left) retire(lane, member);
  });
  auto limiters = std::move(limiters_unsaved_);
  limiters_unsaved_.clear();
  for (const uint32_t key : limiters) {
    auto& entry = keys_[key];
    entry.limiter_unsaved = false;
    RowChange change{RowChange::Table::kLimiter, 0, entry.name, std::nullopt};
    if (entry.has_arrival != Key::Arrival::kNone || entry.ready != 0) {
      model::LimiterRow row;
      row.set_arrival(entry.arrival);
      row.set_ready_ns(entry.ready);
      change.value = row.SerializeAsString();
      entry.has_limiter_row = true;
      rows.push_back(std::move(change));
    } else if (entry.has_limiter_row) {
      entry.has_limiter_row = false;
      rows.push_back(std::move(change));
    }
    retire_key(key);
  }
  if (state_changed_) {
    state_changed_ = false;
    rows.push_back({RowChange::Table::kState, 0, {}, state_row()});
  }
  return rows;
}

}  // namespace fairlead::queue
