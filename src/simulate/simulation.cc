#include "simulate/simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <deque>
#include <map>
#include <queue>

#include "absl/container/btree_map.h"
#include "base/random.h"
#include "queue/ideal.h"
#include "queue/task_queue.h"

namespace fairlead::simulate {

namespace {

using queue::TaskQueue;
using Rules = model::QueueRules;

// What a server has on disk: the waiting tasks, line by line. The queue itself keeps the first
// ones.
class Rows : public queue::Backlog {
 public:
  void put(const queue::Place& place, const queue::Task& task) {
    lines_[{place.level, place.key}].emplace(place.seq, task);
  }
  void erase(const queue::Place& place) { lines_[{place.level, place.key}].erase(place.seq); }

  std::vector<queue::Numbered> read(const std::string& /*version*/, uint32_t level,
                                    const std::string& key, TaskSeq from, size_t max) override {
    std::vector<queue::Numbered> found;
    const auto& line = lines_[{level, key}];
    for (auto at = line.lower_bound(from); at != line.end() && found.size() < max; ++at) {
      found.push_back({at->first, at->second});
    }
    return found;
  }

 private:
  absl::btree_map<std::pair<uint32_t, std::string>, absl::btree_map<TaskSeq, queue::Task>> lines_;
};

// Time begins here. Not at zero: to the queue, zero is "never".
constexpr TimeNs kStart = 1'000'000 * kSecond;

constexpr int64_t kSamples = 240;

class Simulation {
 public:
  explicit Simulation(const Plan& plan) : plan_(plan), random_(plan.seed), queue_(&rows_, {}) {}

  Result run() {
    queue_.set_rules(plan_.rules, now_);
    queue_.take_rows();
    workers_ = plan_.workers;
    add_keys();
    move_to(kStart);
    for (auto& line : lines_) {
      for (int64_t i = 0; i < group_of(line).backlog; ++i) arrive(line);
    }
    while (true) {
      happen();
      hand_out();
      const TimeNs next = next_moment();
      if (next >= end()) break;
      move_to(next);
    }
    move_to(end());
    return finish();
  }

 private:
  // A fairness key. What holds it back holds it at every level.
  struct Key {
    std::vector<size_t> lines;
    bool is_held = false;
    TimeNs release = 0;  // in `releases_`; 0: it is not there
  };
  // A key at a level, and what is counted of it.
  struct Line {
    Key* key = nullptr;
    KeyResult result;
    queue::Ideal::Key ideal = 0;
    double weight_asked = 1;
    DurationNs phase = 0;  // so that keys that are alike do not all send at once
    int64_t sent = 0;
    TimeNs next_arrival = kNever;
    std::deque<TimeNs> waiting;  // since when
  };
  // Something that time will do to a line.
  struct Moment {
    TimeNs at;
    size_t line;
    friend auto operator<=>(const Moment&, const Moment&) = default;
  };
  using Moments = std::priority_queue<Moment, std::vector<Moment>, std::greater<>>;

  TimeNs end() const { return kStart + plan_.duration; }
  const Plan::Keys& group_of(const Line& line) const { return plan_.keys[line.result.group]; }
  queue::Ideal& ideal_of(const Line& line) { return ideals_[line.result.level - 1]; }

  // ---- tasks come -------------------------------------------------------------------------------

  void add_keys() {
    for (size_t group = 0; group < plan_.keys.size(); ++group) {
      const auto& keys = plan_.keys[group];
      const double gap = gap_of(keys);
      for (int64_t i = 1; i <= keys.count; ++i) {
        Line line;
        line.result.key = keys.key(i);
        line.result.group = group;
        line.result.level = keys.level;
        line.weight_asked = keys.weight;
        line.ideal = ideals_[keys.level - 1].add(queue::Weight::of(keys.weight).value());
        line.phase = whole(gap * static_cast<double>(i - 1) / static_cast<double>(keys.count));
        line.key = &keys_[line.result.key];
        line.key->lines.push_back(lines_.size());
        lines_.push_back(std::move(line));
        plan_next_arrival(lines_.size() - 1);
      }
    }
  }

  static double gap_of(const Plan::Keys& keys) {
    return keys.arrivals_per_second > 0 ? static_cast<double>(kSecond) / keys.arrivals_per_second
                                        : 0;
  }

  void plan_next_arrival(size_t index) {
    auto& line = lines_[index];
    const auto& keys = group_of(line);
    if (keys.arrivals_per_second <= 0) return;
    const double gap = gap_of(keys);
    const TimeNs from = kStart + keys.arrivals_from;
    if (plan_.is_random) {
      const TimeNs last = line.sent == 0 ? from : line.next_arrival;
      line.next_arrival = last + drawn(gap);
    } else {
      line.next_arrival = from + line.phase + whole(gap * static_cast<double>(line.sent));
    }
    ++line.sent;
    const TimeNs until = add_saturated(kStart, keys.arrivals_until);
    if (line.next_arrival < std::min(until, end())) arrivals_.push({line.next_arrival, index});
  }

  // What lies beyond the end is all the same. A rate may be so low that its gap is no integer or
  // even infinite, and infinity times zero is NaN, which is not before the end, either.
  DurationNs whole(double ns) const {
    return ns < static_cast<double>(plan_.duration) ? static_cast<DurationNs>(ns) : plan_.duration;
  }

  // From the exponential distribution: as if nobody knew of the others.
  DurationNs drawn(double mean) {
    const double part = static_cast<double>(random_.next() >> 11) * 0x1.0p-53;
    return whole(-std::log1p(-part) * mean);
  }

  void arrive(Line& line) {
    const auto place = queue_.reserve(line.result.level, line.result.key);
    queue::Task task;
    task.created_ns = now_;
    task.weight = static_cast<float>(line.weight_asked);
    rows_.put(place, task);
    queue_.add(place, task, now_);
    ++line.result.arrived;
    line.waiting.push_back(now_);
    ideal_of(line).arrive(line.ideal);
    look_at(line);
  }

  // ---- things happen ----------------------------------------------------------------------------

  // All that belongs to this moment: first what the plan says, then ends, then arrivals.
  void happen() {
    while (next_event_ < plan_.events.size() && kStart + plan_.events[next_event_].at <= now_) {
      happen(plan_.events[next_event_++]);
    }
    while (!ends_.empty() && ends_.top().at <= now_) {
      auto& line = lines_[ends_.top().line];
      ends_.pop();
      --running_;
      queue_.release(line.result.key, now_);
      look_at(line);
    }
    while (!arrivals_.empty() && arrivals_.top().at <= now_) {
      const size_t index = arrivals_.top().line;
      arrivals_.pop();
      arrive(lines_[index]);
      plan_next_arrival(index);
    }
  }

  void happen(const Plan::Event& event) {
    auto rules = queue_.rules();
    const bool has_key = event.key.has_value();
    const std::string key = event.key.value_or("");
    if (event.weight.has_value()) {
      (*rules.mutable_weights())[key] = static_cast<float>(*event.weight);
    }
    if (event.fairness.has_value()) {
      rules.set_fairness(*event.fairness == "on" ? Rules::ON : Rules::OFF);
    }
    if (event.pause.has_value() && !has_key) {
      *event.pause ? void(rules.mutable_pause()) : rules.clear_pause();
    } else if (event.pause.has_value()) {
      auto& rule = (*rules.mutable_keys())[key];
      *event.pause ? void(rule.mutable_pause()) : rule.clear_pause();
    }
    if (event.limit_per_second.has_value() && has_key) {
      (*rules.mutable_keys())[key].set_per_second(*event.limit_per_second);
    } else if (event.limit_per_second.has_value()) {
      rules.mutable_queue_limit()->set_per_second(*event.limit_per_second);
    }
    if (event.key_limit_per_second.has_value()) {
      rules.mutable_key_limit()->set_per_second(*event.key_limit_per_second);
    }
    queue_.set_rules(std::move(rules), now_);
    queue_.take_rows();
    workers_ = event.workers.value_or(workers_);
    for (auto& line : lines_) {
      ideal_of(line).set_weight(line.ideal, weight_of(line));
      look_at(line);
    }
    if (!event.tasks.has_value()) return;
    auto& line = lines_[keys_.at(key).lines.front()];
    for (int64_t i = 0; i < *event.tasks; ++i) arrive(line);
  }

  double weight_of(const Line& line) const {
    const auto& overrides = queue_.rules().weights();
    const auto found = overrides.find(line.result.key);
    return queue::Weight::of(found == overrides.end() ? line.weight_asked : found->second).value();
  }

  // ---- tasks go ---------------------------------------------------------------------------------

  void hand_out() {
    look_at_released();
    while (running_ < workers_) {
      const auto picked = queue_.pick(now_);
      if (!picked.has_value()) return;
      rows_.erase(picked->place);
      queue_.started(picked->place, now_);
      queue_.take_rows();
      const size_t index = line_at(picked->place);
      auto& line = lines_[index];
      auto& result = line.result;
      auto& ideal = ideal_of(line);
      // Between two of its own starts a key is furthest from its share right before and right
      // after.
      measure(line);
      ideal.serve(line.ideal);
      measure(line);
      ++result.dispatched;
      const DurationNs waited = now_ - line.waiting.front();
      line.waiting.pop_front();
      result.wait_sum += waited;
      result.wait_max = std::max(result.wait_max, waited);
      ++running_;
      DurationNs service = group_of(line).service;
      if (plan_.is_random) service = drawn(static_cast<double>(service));
      result.worked += std::min(service, end() - now_);
      ends_.push({now_ + service, index});
      look_at(line);
    }
  }

  void measure(Line& line) {
    line.result.distance_max =
        std::max(line.result.distance_max, std::abs(ideal_of(line).lag(line.ideal)));
  }

  size_t line_at(const queue::Place& place) const {
    const auto& lines = keys_.at(place.key).lines;
    return *std::find_if(lines.begin(), lines.end(),
                         [&](size_t index) { return lines_[index].result.level == place.level; });
  }

  // Tells the ideal server whether this line's key is held back.
  void look_at(const Line& line) {
    auto& key = *line.key;
    const auto view = queue_.key_view(line.result.key, now_);
    const bool is_held = view.has_value() && view->holds != 0;
    if (is_held && view->throttled_until != 0 && view->throttled_until != kNever) {
      const TimeNs release = std::max(view->throttled_until, now_ + 1);
      if (key.release != release) releases_.push({release, key.lines.front()});
      key.release = release;
    }
    if (is_held == key.is_held) return;
    key.is_held = is_held;
    for (const size_t index : key.lines) {
      const auto& other = lines_[index];
      is_held ? ideal_of(other).hold(other.ideal) : ideal_of(other).release(other.ideal);
    }
  }

  void look_at_released() {
    if (releases_.empty() || releases_.top().at > now_) return;
    queue_.next_release(now_);  // lets go whom time has released
    while (!releases_.empty() && releases_.top().at <= now_) {
      const auto& line = lines_[releases_.top().line];
      releases_.pop();
      line.key->release = 0;
      look_at(line);
    }
  }

  // ---- time passes ------------------------------------------------------------------------------

  TimeNs next_moment() {
    TimeNs next = end();
    if (next_event_ < plan_.events.size()) {
      next = std::min(next, kStart + plan_.events[next_event_].at);
    }
    if (!ends_.empty()) next = std::min(next, ends_.top().at);
    if (!arrivals_.empty()) next = std::min(next, arrivals_.top().at);
    // Whoever waits for a worker does not wait for the clock.
    if (running_ < workers_) next = std::min(next, queue_.next_release(now_));
    return next;
  }

  void move_to(TimeNs time) {
    while (result_.samples.size() <= static_cast<size_t>(kSamples)) {
      const auto number = static_cast<int64_t>(result_.samples.size());
      const DurationNs at = plan_.duration * number / kSamples;
      if (kStart + at > time) break;
      take_sample(at);
    }
    busy_ += static_cast<double>(time - now_) * static_cast<double>(running_);
    could_ += static_cast<double>(time - now_) * static_cast<double>(std::max(workers_, running_));
    now_ = time;
  }

  void take_sample(DurationNs at) {
    Sample sample{at, std::vector<int64_t>(plan_.keys.size()),
                  std::vector<double>(plan_.keys.size())};
    for (auto& line : lines_) {
      sample.dispatched[line.result.group] += line.result.dispatched;
      sample.due[line.result.group] += ideal_of(line).due(line.ideal);
    }
    result_.samples.push_back(std::move(sample));
  }

  Result finish() {
    for (auto& line : lines_) {
      measure(line);
      auto& result = line.result;
      result.due = ideal_of(line).due(line.ideal);
      result.weight = weight_of(line);
      // Those who still wait have waited at least until now.
      if (!line.waiting.empty()) {
        result.wait_max = std::max(result.wait_max, now_ - line.waiting.front());
      }
      result_.dispatched += result.dispatched;
      result_.keys.push_back(result);
    }
    result_.busy = could_ > 0 ? busy_ / could_ : 0;
    return std::move(result_);
  }

  const Plan& plan_;
  Random random_;
  Rows rows_;
  TaskQueue queue_;
  TimeNs now_ = kStart;
  std::vector<Line> lines_;
  std::map<std::string, Key> keys_;
  std::array<queue::Ideal, queue::kLevelsDefault> ideals_;
  Moments ends_;
  Moments arrivals_;
  Moments releases_;
  size_t next_event_ = 0;
  int64_t workers_ = 0;
  int64_t running_ = 0;
  double busy_ = 0;
  double could_ = 0;
  Result result_;
};

}  // namespace

Result simulate(const Plan& plan) { return Simulation(plan).run(); }

}  // namespace fairlead::simulate
