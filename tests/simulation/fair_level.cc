#include "simulation/fair_level.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fairlead::sim {

namespace {

// Less than this is how weights and shares are rounded.
constexpr double kRounding = 1e-3;
// Beyond this a bound says nothing.
constexpr double kLoose = 4;

}  // namespace

void FairLevel::note_weight(const std::string& key, double weight) {
  const auto found = keys_.find(key);
  // What a key owes or is owed is carried over to its new weight; the bound is not.
  if (found != keys_.end() && found->second.weight != weight) is_disturbed_ = true;
}

void FairLevel::apply(const Event& event) {
  if (!ideal_.has_value()) ideal_.emplace();
  auto [found, is_new] = keys_.try_emplace(event.key);
  auto& key = found->second;
  if (is_new) {
    key.number = ideal_->add(event.weight);
    key.weight = event.weight;
  }
  switch (event.kind) {
    case Kind::kArrive:
      ideal_->arrive(key.number);
      ++key.waiting;
      break;
    case Kind::kPick:
      ideal_->serve(key.number);
      --key.waiting;
      break;
    case Kind::kPass:
      ideal_->arrive(key.number);
      ideal_->serve(key.number);
      ++passes_;
      break;
    case Kind::kLose:
      --key.waiting;
      // Its last task: what it was owed goes to the others.
      if (key.waiting == 0) forfeited_ += std::max(0.0, ideal_->lag(key.number));
      ideal_->lose(key.number);
      break;
  }
}

void FairLevel::play_again() {
  ideal_.reset();
  keys_.clear();
  forfeited_ = 0;
  passes_ = 0;
  for (const auto& event : events_) apply(event);
}

void FairLevel::arrive(const std::string& key, double weight, uint64_t task, uint64_t written) {
  note_weight(key, weight);
  events_.push_back({Kind::kArrive, key, weight, task, written});
  apply(events_.back());
}

std::string FairLevel::pick(const std::string& key, double weight, uint64_t task) {
  note_weight(key, weight);
  size_t rivals = 0;
  for (const auto& [name, one] : keys_) rivals += one.waiting > 0 ? 1 : 0;
  const double lag = ideal_->lag(keys_.at(key).number);
  events_.push_back({Kind::kPick, key, weight, task, 0});
  apply(events_.back());
  const double behind_max = 1 + behind_slack_ + forfeited_ + static_cast<double>(passes_);
  if (behind_max > kLoose || ahead_slack_ > kLoose) is_disturbed_ = true;
  if (is_disturbed_ || rivals < 2) return "";
  ++picks_;
  ++judged.picks;
  if (has_crashed_) ++judged.over_crashes;
  if (passes_ > 0) ++judged.after_passes;
  if (has_stale_) ++judged.after_stale;
  // Passes delay those who wait, perhaps by more than they have tasks: the ideal server then runs
  // out of work on them and does that of others, which the real one will not have done.
  const double ahead_max = ahead_slack_ + static_cast<double>(passes_);
  if (lag < -ahead_max - kRounding) {
    return absl::StrCat("key '", key, "' is served though it has had ", -lag,
                        " tasks more than its share");
  }
  for (const auto& [name, one] : keys_) {
    if (one.waiting <= 0) continue;
    const double owed = ideal_->lag(one.number);
    if (owed > behind_max + kRounding) {
      return absl::StrCat("key '", name, "' waits and is owed ", owed, " tasks of its share, of ",
                          behind_max, " at most");
    }
  }
  return "";
}

void FairLevel::pass(const std::string& key, double weight, uint64_t pass) {
  note_weight(key, weight);
  events_.push_back({Kind::kPass, key, weight, pass, 0});
  apply(events_.back());
}

void FairLevel::lose(uint64_t task, uint64_t written) {
  std::string key;
  double weight = 0;
  for (size_t i = events_.size(); i-- > 0;) {
    if (events_[i].task != task || events_[i].kind == Kind::kPass) continue;
    key = events_[i].key;
    weight = events_[i].weight;
    if (events_[i].kind == Kind::kPick) {
      // It was stale: it costs its key nothing.
      has_stale_ = true;
      // What was decided while it was out counted it.
      if (i + 1 < events_.size()) {
        ahead_slack_ += 1;
        behind_slack_ += 1;
      }
      events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
      play_again();
    }
    break;
  }
  events_.push_back({Kind::kLose, key, weight, task, written});
  apply(events_.back());
}

void FairLevel::set_written(Kind kind, uint64_t task, uint64_t written) {
  for (size_t i = events_.size(); i-- > 0;) {
    auto& event = events_[i];
    if (event.kind != kind || event.task != task) continue;
    event.written = written;
    return;
  }
}

void FairLevel::forget_after(uint64_t written) {
  const size_t before = events_.size();
  std::erase_if(events_,
                [&](const Event& event) { return event.written == 0 || event.written > written; });
  const auto lost = static_cast<double>(before - events_.size());
  ahead_slack_ += std::min(lost, 1.0);
  behind_slack_ += lost;
  has_crashed_ = true;
  play_again();
}

absl::btree_map<uint64_t, std::string> FairLevel::waiting() const {
  absl::btree_map<uint64_t, std::string> tasks;
  for (const auto& event : events_) {
    if (event.kind == Kind::kArrive) tasks[event.task] = event.key;
    if (event.kind == Kind::kPick || event.kind == Kind::kLose) tasks.erase(event.task);
  }
  return tasks;
}

void FairLevel::close() {
  if (picks_ >= kLong) {
    ++judged.intervals;
    judged.keys += keys_.size();
  }
  events_.clear();
  ideal_.reset();
  keys_.clear();
  is_disturbed_ = false;
  forfeited_ = ahead_slack_ = behind_slack_ = 0;
  passes_ = picks_ = 0;
  has_crashed_ = has_stale_ = false;
}

}  // namespace fairlead::sim
