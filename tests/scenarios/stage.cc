#include "scenarios/stage.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace fairlead::scenarios {

namespace {

// A restart reads every row; with more of them "always" becomes "once a statement takes too long".
constexpr size_t kRowsMaxForRestarts = 2000;

}  // namespace

void Stage::arrive(const std::string& key, double weight, int32_t priority, int64_t tasks) {
  model::Priority asked;
  asked.set_priority_key(priority);
  asked.set_fairness_key(key);
  asked.set_fairness_weight(static_cast<float>(weight));
  if (const auto status = queue::check_priority(asked); !status.ok()) {
    throw Wrong(absl::StrCat("refused: ", std::string(status.message())));
  }
  const uint32_t level = queue::effective_level(asked, queue::kLevelsDefault);
  auto& ideal = ideals_[level];
  const auto ideal_of_key = ideal_key(level, key, weight);
  for (int64_t i = 0; i < tasks; ++i) {
    bench_.add(key, asked.fairness_weight(), level);
    ideal.arrive(ideal_of_key);
  }
  look_at(level, key);
  restart_if_always();
}

// The oldest ones, of its most urgent level.
void Stage::cancel(const std::string& key, int64_t tasks) {
  for (int64_t i = 0; i < tasks; ++i) {
    const auto& rows = bench_.disk.tasks;
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const auto& row) { return std::get<1>(row.first) == key; });
    if (found == rows.end()) throw Wrong(absl::StrCat(shown(key), " has no task that waits"));
    const auto [level, name, seq] = found->first;
    bench_.remove({level, name, seq});
    ideals_[level].lose(ideal_keys_.at({level, name}));
  }
  restart_if_always();
}

void Stage::finish(const std::string& key, int64_t tasks) {
  if (running_[key] < tasks) {
    throw Wrong(absl::StrCat("only ", running_[key], " of ", shown(key), " run"));
  }
  running_[key] -= tasks;
  for (int64_t i = 0; i < tasks; ++i) bench_.finish(key);
  for (uint32_t level = 1; level <= queue::kLevelsDefault; ++level) look_at(level, key);
  restart_if_always();
}

void Stage::set_worker_limit(double per_second) {
  worker_limit_ = per_second;
  bench_.queue->set_worker_limit(per_second, bench_.now);
}

std::optional<std::string> Stage::start() {
  look_at_held_keys();
  const auto picked = bench_.queue->pick(bench_.now);
  if (!picked.has_value()) return std::nullopt;
  const auto& place = picked->place;
  const auto oldest = bench_.disk.tasks.lower_bound({place.level, place.key, TaskSeq(0)});
  if (std::get<2>(oldest->first) != place.seq) {
    throw Wrong(absl::StrCat("a task of ", shown(place.key), " started before an older one"));
  }
  const IdealKey key(place.level, place.key);
  auto& ideal = ideals_[place.level];
  // Between two of its own starts a key is furthest from its share right before and right after.
  measure(place.key, ideal.lag(ideal_keys_.at(key)));
  ideal.serve(ideal_keys_.at(key));
  measure(place.key, ideal.lag(ideal_keys_.at(key)));
  bench_.commit(place);
  started_.push_back({bench_.now, place.key});
  running_max_[place.key] = std::max(running_max_[place.key], ++running_[place.key]);
  if (task_time_.has_value()) ends_.emplace(bench_.now + *task_time_, place.key);
  look_at(place.level, place.key);
  restart_if_always();
  return place.key;
}

void Stage::fail_start() {
  const auto picked = bench_.queue->pick(bench_.now);
  if (!picked.has_value()) throw Wrong("nothing may start now");
  bench_.queue->put_back(picked->place, bench_.now);
  restart_if_always();
}

void Stage::restart() {
  bench_.reopen();
  // Workers come back, too, and ask for the same.
  if (worker_limit_.has_value()) bench_.queue->set_worker_limit(*worker_limit_, bench_.now);
}

void Stage::restart_if_always() {
  if (restarts_always_ && bench_.disk.tasks.size() <= kRowsMaxForRestarts) restart();
}

void Stage::end_tasks() {
  while (!ends_.empty() && ends_.begin()->first <= bench_.now) {
    const std::string key = ends_.begin()->second;
    ends_.erase(ends_.begin());
    finish(key, 1);
  }
}

void Stage::wait(DurationNs duration) {
  const TimeNs until = bench_.now + duration;
  while (!ends_.empty() && ends_.begin()->first <= until) {
    bench_.now = ends_.begin()->first;
    end_tasks();
  }
  bench_.now = until;
}

// From now on and up to, but without, the last moment: two runs of a second are one of two.
Tally Stage::run(DurationNs duration) {
  const TimeNs until = bench_.now + duration;
  Tally tally;
  while (true) {
    end_tasks();
    while (!workers_.has_value() || running() < *workers_) {
      const auto started = start();
      if (!started.has_value()) break;
      ++tally[*started];
    }
    TimeNs next = bench_.queue->next_release(bench_.now);
    if (!ends_.empty()) next = std::min(next, ends_.begin()->first);
    if (next >= until) break;
    if (next <= bench_.now) throw Wrong("the queue says that time does not move");
    bench_.now = next;
  }
  bench_.now = until;
  end_tasks();
  return tally;
}

int64_t Stage::waiting(const std::string& key) const {
  const auto view = bench_.queue->key_view(key, bench_.now);
  return view.has_value() ? view->waiting : 0;
}

int64_t Stage::running_max(const std::string& key) const {
  const auto found = running_max_.find(key);
  return found == running_max_.end() ? 0 : found->second;
}

// With n(i) starts before the i-th: n(j) + 1 - n(i) > rate * (t(j) - t(i) + 1) + 1 for some i <= j.
bool Stage::exceeded(const std::optional<std::string>& key, double per_second) const {
  double least = 0;
  int64_t count = 0;
  for (const auto& [at, name] : started_) {
    if (key.has_value() && name != *key) continue;
    const double seconds = static_cast<double>(at - started_.front().at) / kSecond;
    const double beyond = static_cast<double>(count) - per_second * seconds;
    least = count == 0 ? beyond : std::min(least, beyond);
    if (beyond - least > per_second + 1e-6) return true;
    ++count;
  }
  return false;
}

// ---- the ideal ----------------------------------------------------------------------------------

double Stage::weight_of(const std::string& key, double asked) const {
  const auto& overrides = bench_.queue->rules().weights();
  const auto found = overrides.find(key);
  return queue::Weight::of(found == overrides.end() ? asked : found->second).value();
}

queue::Ideal::Key Stage::ideal_key(uint32_t level, const std::string& key, double weight) {
  asked_[{level, key}] = weight;
  auto& ideal = ideals_[level];
  const auto found = ideal_keys_.find({level, key});
  if (found != ideal_keys_.end()) {
    ideal.set_weight(found->second, weight_of(key, weight));
    return found->second;
  }
  const auto made = ideal.add(weight_of(key, weight));
  ideal_keys_.emplace(IdealKey(level, key), made);
  return made;
}

// Tells the ideal server whether the key may go.
void Stage::look_at(uint32_t level, const std::string& key) {
  const auto found = ideal_keys_.find({level, key});
  if (found == ideal_keys_.end()) return;
  const auto view = bench_.queue->key_view(key, bench_.now);
  if (view.has_value() && view->holds != 0) {
    ideals_[level].hold(found->second);
    held_.insert(found->first);
  } else {
    ideals_[level].release(found->second);
    held_.erase(found->first);
  }
}

void Stage::look_at_held_keys() {
  bench_.queue->next_release(bench_.now);  // lets go whom time has released
  for (const auto& [level, key] : std::set<IdealKey>(held_)) look_at(level, key);
}

void Stage::look_at_all_keys() {
  for (const auto& [key, number] : ideal_keys_) {
    ideals_[key.first].set_weight(number, weight_of(key.second, asked_[key]));
    look_at(key.first, key.second);
  }
}

void Stage::measure(const std::string& key, double lag) {
  if (std::abs(lag) > distance_max_.first) distance_max_ = {std::abs(lag), key};
}

}  // namespace fairlead::scenarios
