// What holds a key, or the whole queue, back.

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "queue/task_queue.h"

namespace fairlead::queue {

namespace {

// Debts that time has paid are forgotten in passing, a few at a time.
constexpr int kDebtsPerLook = 4;

bool is_zero(double per_second) { return !(per_second > 1e-9); }

bool is_same(const model::QueueRules::Limit& a, const model::QueueRules::Limit& b) {
  return a.has_per_second() == b.has_per_second() && a.per_second() == b.per_second();
}

}  // namespace

std::optional<double> TaskQueue::limit() const {
  if (rules_.queue_limit().has_per_second()) {
    const double asked = rules_.queue_limit().per_second();
    if (std::isinf(asked)) return std::nullopt;
    return asked;
  }
  return worker_limit_;
}

// The whole queue is neither paused nor at its cap.
bool TaskQueue::has_room() const {
  return !rules_.has_pause() && (!rules_.has_running_max() || running_ < rules_.running_max());
}

bool TaskQueue::may_start(TimeNs now) {
  release_due(now);
  if (!has_room()) return false;
  const auto per_second = limit();
  if (!per_second.has_value() || bucket_.is_ready(now, *per_second)) return true;
  if (size_ > 0) limited_at_ = now;
  return false;
}

bool TaskQueue::is_capped(const Key& key) const {
  if (const auto* rule = rule_of(key); rule != nullptr && rule->has_running_max()) {
    return key.running >= rule->running_max();
  }
  return rules_.has_running_max_per_key() && key.running >= rules_.running_max_per_key();
}

bool TaskQueue::conforms(const Key& key, TimeNs now) const {
  if (const auto* rule = rule_of(key); rule != nullptr && rule->has_per_second()) {
    return !is_zero(rule->per_second()) && key.ready <= now;
  }
  if (!key_clock_.is_on()) return true;
  if (key_clock_.is_frozen()) return false;
  return key.arrival - key_clock_.at(now) <= key_clock_.burst();
}

bool TaskQueue::is_stopped(const Key& key) const {
  const auto* rule = rule_of(key);
  const bool has_own = rule != nullptr && rule->has_per_second();
  return has_own ? is_zero(rule->per_second()) : key_clock_.is_frozen();
}

void TaskQueue::take_tokens(uint32_t key, Weight weight, TimeNs now, Picked* picked) {
  auto& entry = keys_[key];
  if (const auto per_second = limit()) {
    picked->limit = *per_second;
    bucket_.take(now, *per_second);
    state_changed_ = true;
  }
  if (const auto* rule = rule_of(entry); rule != nullptr && rule->has_per_second()) {
    Bucket own;
    own.set_ready(entry.ready);
    own.take(now, rule->per_second());
    entry.ready = own.ready();
    picked->own_limit = rule->per_second();
    mark_limiter(key);
  } else if (key_clock_.is_on()) {
    const int64_t clock = key_clock_.at(now);
    if (entry.arrival - clock < 0 || entry.has_arrival == Key::Arrival::kNone) {
      entry.arrival = clock;
    }
    picked->cost = KeyClock::cost(weight.value());
    entry.arrival += picked->cost;
    mark_limiter(key);
  }
  if (settings_.counts_running) {
    picked->is_running = true;
    ++entry.running;
    ++running_;
  }
}

void TaskQueue::after_start(uint32_t key, TimeNs now) { recheck_key(key, now); }

void TaskQueue::mark_limiter(uint32_t key) {
  auto& entry = keys_[key];
  if (entry.limiter_unsaved) return;
  entry.limiter_unsaved = true;
  limiters_unsaved_.push_back(key);
}

void TaskQueue::place_arrival(uint32_t key, bool is_throttled, TimeNs now) {
  auto& entry = keys_[key];
  if (entry.has_arrival == Key::Arrival::kThrottled) throttled_keys_.erase(entry.place);
  if (entry.has_arrival == Key::Arrival::kDebt) debts_.erase(entry.place);
  entry.has_arrival = Key::Arrival::kNone;
  const HeapEntry at{static_cast<uint64_t>(entry.arrival), 0, key};
  if (is_throttled) {
    entry.has_arrival = Key::Arrival::kThrottled;
    throttled_keys_.push(at);
  } else if (key_clock_.is_on() && entry.arrival - key_clock_.at(now) > 0) {
    entry.has_arrival = Key::Arrival::kDebt;
    debts_.push(at);
  } else if (entry.has_limiter_row) {
    mark_limiter(key);
  }
}

// Looks at everything that may hold the key, and lets it go or not.
void TaskQueue::recheck_key(uint32_t key, TimeNs now) {
  auto& entry = keys_[key];
  const auto* rule = rule_of(entry);
  uint8_t holds = 0;
  if (rule != nullptr && rule->has_pause()) holds |= kPaused;
  if (is_capped(entry)) holds |= kCapped;
  timed_.erase({entry.ready, key});
  bool is_throttled = false;
  if (rule != nullptr && rule->has_per_second()) {
    if (!conforms(entry, now)) {
      holds |= kTimed;
      if (!is_zero(rule->per_second())) timed_.insert({entry.ready, key});
    }
  } else if (key_clock_.is_on()) {
    is_throttled = !conforms(entry, now);
    if (is_throttled) holds |= kThrottled;
  }
  if (is_throttled || entry.has_arrival != Key::Arrival::kNone || key_clock_.is_on()) {
    place_arrival(key, is_throttled, now);
  }
  for (const auto& own : entry.lines) {
    at(own.lane).domain.set_running(own.line, entry.running);
  }
  if (holds == entry.holds) return;
  entry.holds = holds;
  refresh_key(key);
}

void TaskQueue::release_due(TimeNs now) {
  if (key_clock_.is_on() && !key_clock_.is_frozen()) {
    const int64_t clock = key_clock_.at(now);
    const int64_t burst = key_clock_.burst();
    while (!throttled_keys_.empty()) {
      const uint32_t key = throttled_keys_.top().item;
      if (keys_[key].arrival - clock > burst) break;
      recheck_key(key, now);
    }
    for (int i = 0; i < kDebtsPerLook && !debts_.empty(); ++i) {
      const uint32_t key = debts_.top().item;
      if (keys_[key].arrival - clock > 0) break;
      recheck_key(key, now);
    }
  }
  while (!timed_.empty() && timed_.begin()->first <= now) {
    recheck_key(timed_.begin()->second, now);
  }
}

TimeNs TaskQueue::next_release(TimeNs now) {
  if (size_ == 0 || rules_.has_pause()) return kNever;
  release_due(now);
  TimeNs next = kNever;
  if (const auto per_second = limit(); per_second.has_value() && !is_zero(*per_second)) {
    if (bucket_.ready() > now) next = bucket_.ready();
  }
  if (!throttled_keys_.empty() && !key_clock_.is_frozen()) {
    const int64_t arrival = keys_[throttled_keys_.top().item].arrival;
    next = std::min(next, std::max(now + 1, key_clock_.when(arrival - key_clock_.burst())));
  }
  if (!timed_.empty()) next = std::min(next, timed_.begin()->first);
  return next;
}

bool TaskQueue::has_caps() const {
  if (rules_.has_running_max() || rules_.has_running_max_per_key()) return true;
  return std::any_of(rules_.keys().begin(), rules_.keys().end(),
                     [](const auto& rule) { return rule.second.has_running_max(); });
}

// A key that nobody knows may still have rules.
bool TaskQueue::may_begin(const std::string& name) const {
  const auto found = rules_.keys().find(name);
  const bool has_rule = found != rules_.keys().end();
  if (has_rule && found->second.has_pause()) return false;
  if (has_rule && found->second.has_running_max()) return found->second.running_max() > 0;
  return !rules_.has_running_max_per_key() || rules_.running_max_per_key() > 0;
}

bool TaskQueue::may_run(const std::string& name) const {
  if (!has_room()) return false;
  const uint32_t key = find_key(name);
  return key == kNone ? may_begin(name) : keys_[key].holds == 0;
}

void TaskQueue::occupy(const std::string& name, TimeNs now) {
  const uint32_t key = get_key(name);
  ++keys_[key].running;
  ++running_;
  recheck_key(key, now);
}

void TaskQueue::release(const std::string& name, TimeNs now) {
  const uint32_t key = find_key(name);
  if (key == kNone || keys_[key].running == 0) return;
  --keys_[key].running;
  --running_;
  recheck_key(key, now);
  retire_key(key);
}

void TaskQueue::set_worker_limit(std::optional<double> per_second, TimeNs now) {
  if (worker_limit_ == per_second) return;
  worker_limit_ = per_second;
  if (const auto effective = limit()) bucket_.change(now, *effective);
}

const model::QueueRules& TaskQueue::set_rules(model::QueueRules rules, TimeNs now) {
  const auto before = rules_;
  save_epochs();
  *rules.mutable_epochs() = rules_.epochs();
  *rules.mutable_type_lists() = rules_.type_lists();
  // "From now on": only the queue knows which number that is.
  for (auto& [key, rule] : *rules.mutable_keys()) {
    if (rule.drain_below() == std::numeric_limits<uint64_t>::max()) {
      rule.set_drain_below(next_seq_);
    }
  }

  // Keys whose weight is another one now.
  absl::btree_set<std::string> reweighed;
  for (const auto& [key, weight] : before.weights()) {
    const auto found = rules.weights().find(key);
    if (found == rules.weights().end() || found->second != weight) reweighed.insert(key);
  }
  for (const auto& [key, weight] : rules.weights()) {
    if (!before.weights().contains(key)) reweighed.insert(key);
  }
  std::vector<std::pair<uint32_t, double>> old_weights;
  for (const auto& name : reweighed) {
    const uint32_t key = find_key(name);
    if (key == kNone) continue;
    // What time has still to pay stays the same in tasks.
    old_weights.emplace_back(key, weight_of(keys_[key], 0).value());
  }

  if (!rules.weights().empty()) rules.set_weights_were_set(true);
  rules_ = std::move(rules);
  for (const auto& [key, was] : old_weights) {
    auto& entry = keys_[key];
    if (entry.has_arrival != Key::Arrival::kNone) {
      const int64_t clock = key_clock_.at(now);
      const double ratio = was / weight_of(entry, 0).value();
      entry.arrival = clock + static_cast<int64_t>(
                                  std::ceil(static_cast<double>(entry.arrival - clock) * ratio));
      mark_limiter(key);
      recheck_key(key, now);
    }
    refresh_key(key);
  }

  if (!is_same(before.queue_limit(), rules_.queue_limit())) {
    if (const auto per_second = limit()) bucket_.change(now, *per_second);
  }
  if (!is_same(before.key_limit(), rules_.key_limit())) {
    const bool is_on =
        rules_.key_limit().has_per_second() && !std::isinf(rules_.key_limit().per_second());
    if (is_on) {
      key_clock_.set_rate(now, rules_.key_limit().per_second());
    } else {
      key_clock_.turn_off(now);
      while (!throttled_keys_.empty()) recheck_key(throttled_keys_.top().item, now);
      while (!debts_.empty()) recheck_key(debts_.top().item, now);
    }
  }
  rules_.set_key_clock(key_clock_.reading());
  rules_.set_key_clock_ns(key_clock_.since());

  const bool all_caps_changed =
      before.has_running_max_per_key() != rules_.has_running_max_per_key() ||
      before.running_max_per_key() != rules_.running_max_per_key();
  if (all_caps_changed) {
    for (uint32_t key = 0; key < keys_.size(); ++key) {
      if (names_.contains(key)) recheck_key(key, now);
    }
  } else {
    for (const auto* rules_of_keys : {&before.keys(), &rules_.keys()}) {
      for (const auto& [name, rule] : *rules_of_keys) {
        const uint32_t key = find_key(name);
        if (key == kNone) continue;
        recheck_key(key, now);
        refresh_key(key);
      }
    }
  }
  change_routes();
  change_order();
  return take_rules();
}

}  // namespace fairlead::queue
