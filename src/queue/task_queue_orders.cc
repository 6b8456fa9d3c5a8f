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

int64_t TaskQueue::Epoch::total() const {
  int64_t sum = 0;
  for (const int64_t count : tasks) sum += count;
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

bool TaskQueue::is_in_play(uint32_t number, uint64_t seq) const {
  return epochs_.size() == 1 || epoch_index(seq) <= at_epoch_[number - 1];
}

void TaskQueue::leave_epoch(uint32_t number, uint64_t seq) {
  --epoch_of(seq).tasks[number - 1];
  if (epochs_.size() > 1) find_current_epochs();
}

// The first epoch that still has something for a level.
size_t TaskQueue::first_epoch_of(size_t index) const {
  size_t at = 0;
  while (at + 1 < epochs_.size()) {
    const bool has_more =
        epochs_[at + 1].per_level ? epochs_[at].tasks[index] > 0 : epochs_[at].total() > 0;
    if (has_more) break;
    ++at;
  }
  return at;
}

// Brings each level to the epoch it is at.
void TaskQueue::find_current_epochs() {
  std::array<bool, kLevelsMax> has_moved{};
  size_t drained = epochs_.size();
  for (size_t i = 0; i < levels_.size(); ++i) {
    const size_t at = first_epoch_of(i);
    has_moved[i] = at != at_epoch_[i];
    at_epoch_[i] = at;
    drained = std::min(drained, at);
  }
  if (drained > 0) {
    epochs_.erase(epochs_.begin(), epochs_.begin() + static_cast<std::ptrdiff_t>(drained));
    for (size_t i = 0; i < levels_.size(); ++i) at_epoch_[i] -= drained;
    save_epochs();
  }
  for (uint32_t number = 1; number <= levels(); ++number) {
    if (!has_moved[number - 1]) continue;
    rebuild(number);
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
  for (uint32_t number = 1; number <= levels(); ++number)
    level(number).domain.set_prompt(is_prompt());
  if (epochs_.back().order == order) return;
  auto transition = rules_.transition();
  if (transition == Rules::TRANSITION_UNSET) transition = settings_.transition;
  Epoch next{order, next_seq_, transition == Rules::DRAIN_PER_LEVEL};
  if (transition == Rules::IMMEDIATE) {
    for (const auto& epoch : epochs_) {
      for (size_t i = 0; i < kLevelsMax; ++i) next.tasks[i] += epoch.tasks[i];
    }
    epochs_.assign(1, next);
    at_epoch_.fill(0);
    save_epochs();
    for (uint32_t number = 1; number <= levels(); ++number) rebuild(number);
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

void TaskQueue::rebuild(uint32_t number) {
  auto& owner = level(number);
  owner.domain.reset(epochs_[at_epoch_[number - 1]].order);
  owner.domain.set_prompt(is_prompt());
  refresh_all(number);
}

// In the order in which they came, as if they came now.
void TaskQueue::refresh_all(uint32_t number) {
  auto& owner = level(number);
  std::vector<Member> members;
  for (Member member = 0; member < owner.lines.size(); ++member) {
    if (owner.lines[member].key != kNone) members.push_back(member);
  }
  std::sort(members.begin(), members.end(),
            [&](Member a, Member b) { return owner.lines[a].head < owner.lines[b].head; });
  for (const Member member : members) {
    owner.domain.set_running(member, keys_[owner.lines[member].key].running);
    refresh(number, member);
  }
}

// --- Rows ---------------------------------------------------------------------------------------

void TaskQueue::load_rules(const Rules& rules) {
  rules_ = rules;
  if (rules_.key_limit().has_per_second() && !std::isinf(rules_.key_limit().per_second())) {
    key_clock_.restart(rules_.key_clock(), rules_.key_clock_ns());
    key_clock_.set_rate(rules_.key_clock_ns(), rules_.key_limit().per_second());
  }
  epochs_.clear();
  for (const auto& row : rules_.epochs()) {
    epochs_.push_back({from_row(row.order()), row.first_seq(), row.per_level()});
  }
  if (epochs_.empty()) epochs_.push_back({asked_order()});
  at_epoch_.fill(0);
  for (uint32_t number = 1; number <= levels(); ++number) rebuild(number);
}

void TaskQueue::load_state(const model::QueueState& state) {
  bucket_.set_ready(state.ready_ns());
  for (uint32_t number = 1; number <= kLevelsMax; ++number) {
    const bool toggle = (state.toggles() >> toggle_bit(number) & 1) != 0;
    if (toggle || number <= levels()) level(number).domain.set_toggle(toggle);
  }
  for (int i = 0; i < state.owes_size(); ++i) {
    auto& owner = level(static_cast<uint32_t>(i) + 1);
    owner.owes = owner.owes_committed = state.owes(i);
  }
}

void TaskQueue::load_task(uint32_t number, const std::string& name, const Numbered& task) {
  const uint32_t key = get_key(name);
  auto& line = level(number).lines[get_line(number, key)];
  if (line.head == 0 || task.seq.value() < line.head) set_head(number, line, &task);
  keep_loaded(line, task);
  ++size_;
  ++level(number).waiting;
  ++epoch_of(task.seq.value()).tasks[number - 1];
  next_seq_ = std::max(next_seq_, task.seq.value() + 1);
}

void TaskQueue::load_account(uint32_t number, const std::string& name,
                             const model::AccountRow& row) {
  loading_.emplace_back(number, get_key(name),
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
  // A level may be further than another one: its accounts are of the order in which it was.
  for (uint32_t number = 1; number <= levels(); ++number) {
    at_epoch_[number - 1] = first_epoch_of(number - 1);
    level(number).domain.reset(epochs_[at_epoch_[number - 1]].order);
  }
  for (const auto& [number, key, saved] : loading_) {
    const Member member = get_line(number, key);
    auto& owner = level(number);
    const auto& line = owner.lines[member];
    owner.domain.restore(
        member, saved,
        takes_part(number, line) ? std::optional<uint64_t>(line.head) : std::nullopt);
  }
  loading_.clear();
  loading_.shrink_to_fit();
  for (uint32_t number = 1; number <= levels(); ++number) {
    auto& owner = level(number);
    owner.domain.restored();
    refresh_all(number);
  }
  if (epochs_.size() > 1) find_current_epochs();
  change_order();
  if (rules_.epochs().empty()) save_epochs();
}

bool TaskQueue::are_rows_due() const {
  // What is remembered of an order that has ended must not be taken for the next one's.
  return has_begun_anew_ || std::any_of(levels_.begin(), levels_.end(), [](const auto& owner) {
           return owner->domain.is_save_due();
         });
}

std::vector<RowChange> TaskQueue::take_rows() {
  std::vector<RowChange> rows;
  has_begun_anew_ = false;
  for (uint32_t number = 1; number <= levels(); ++number) {
    auto& owner = level(number);
    if (!owner.domain.has_unsaved()) continue;
    std::vector<Member> left;
    owner.domain.save([&](Member member, const std::optional<Domain::Saved>& saved) {
      RowChange change{RowChange::Table::kAccount, number, keys_[owner.lines[member].key].name,
                       std::nullopt};
      if (saved.has_value()) {
        model::AccountRow row;
        row.set_start(saved->start);
        row.set_weight(saved->weight);
        row.set_fresh(saved->is_fresh);
        change.value = row.SerializeAsString();
      } else {
        left.push_back(member);
      }
      rows.push_back(std::move(change));
    });
    for (const Member member : left) retire(number, member);
  }
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
    model::QueueState state;
    state.set_ready_ns(bucket_.ready());
    uint64_t toggles = 0;
    for (uint32_t number = 1; number <= levels(); ++number) {
      if (level(number).domain.toggle()) toggles |= 1ULL << toggle_bit(number);
    }
    state.set_toggles(toggles);
    const auto owes = [](const auto& owner) { return owner->owes_committed != 0; };
    if (std::any_of(levels_.begin(), levels_.end(), owes)) {
      for (const auto& owner : levels_) state.add_owes(owner->owes_committed);
    }
    rows.push_back({RowChange::Table::kState, 0, {}, state.SerializeAsString()});
  }
  return rows;
}

}  // namespace fairlead::queue
