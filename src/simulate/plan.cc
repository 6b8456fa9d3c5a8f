#include "simulate/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/spelling.h"
#include "queue/priority.h"
#include "queue/weight.h"
#include "simulate/toml_table.h"

namespace fairlead::simulate {

namespace {

using Rules = model::QueueRules;

constexpr double kSecondsMax = 7 * 86'400;
constexpr double kRateMax = 1e6;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

class PlanReader {
 public:
  PlanReader(const std::string& file_name, Plan* plan) : toml_(file_name), plan_(plan) {}

  absl::Status read(std::string_view text) {
    toml::table file;
    if (auto status = toml_.parse(text, &file); !status.ok()) return status;
    auto status = toml_.read(
        file, "",
        {
            toml_.text("title", &plan_->title),
            toml_.time("duration_s", &plan_->duration, 0.001, kSecondsMax),
            toml_.number("workers", &plan_->workers, 0, 1e6),
            toml_.number("seed", &plan_->seed, 0, 1e15),
            toml_.flag("random", &plan_->is_random),
            toml_.table("queue", [&](const toml::table& table) { return read_queue(table); }),
            toml_.list("keys", [&](const toml::table& table) { return read_keys(table); }),
            toml_.list("events", [&](const toml::table& table) { return read_event(table); }),
        });
    if (!status.ok()) return status;
    return check(file);
  }

 private:
  absl::Status read_queue(const toml::table& table) {
    std::optional<std::string> fairness, basis, first_turn, transition;
    std::optional<double> limit, key_limit;
    std::optional<uint32_t> running_max, running_max_per_key;
    auto status = toml_.read(
        table, "queue",
        {
            toml_.choice("fairness", &fairness, {"on", "off"}),
            toml_.choice("basis", &basis, {"dispatch", "in-flight"}),
            toml_.choice("first_turn", &first_turn, {"scheduled", "prompt"}),
            toml_.choice("transition", &transition, {"drain", "drain-per-level", "immediate"}),
            toml_.number("limit_per_second", &limit, 0, kRateMax),
            toml_.number("key_limit_per_second", &key_limit, 0, kRateMax),
            toml_.number("running_max", &running_max, 0, 1e6),
            toml_.number("running_max_per_key", &running_max_per_key, 0, 1e6),
        });
    if (!status.ok()) return status;
    auto& rules = plan_->rules;
    if (fairness.has_value()) rules.set_fairness(*fairness == "on" ? Rules::ON : Rules::OFF);
    if (basis == "in-flight") rules.set_basis(Rules::IN_FLIGHT);
    if (first_turn == "prompt") rules.set_first_turn(Rules::PROMPT);
    if (transition == "immediate") rules.set_transition(Rules::IMMEDIATE);
    if (transition == "drain-per-level") rules.set_transition(Rules::DRAIN_PER_LEVEL);
    if (limit.has_value()) rules.mutable_queue_limit()->set_per_second(*limit);
    if (key_limit.has_value()) rules.mutable_key_limit()->set_per_second(*key_limit);
    if (running_max.has_value()) rules.set_running_max(*running_max);
    if (running_max_per_key.has_value()) rules.set_running_max_per_key(*running_max_per_key);
    return absl::OkStatus();
  }

  absl::Status read_keys(const toml::table& table) {
    Plan::Keys keys;
    std::optional<double> limit;
    std::optional<uint32_t> running_max;
    int32_t priority = 0;
    auto status = toml_.read(
        table, "keys",
        {
            toml_.text("name", &keys.name),
            toml_.number("count", &keys.count, 1, static_cast<double>(kKeysMax)),
            toml_.number("weight", &keys.weight, queue::Weight::kMin, queue::Weight::kMax),
            toml_.number("priority", &priority, 1, 1e6),
            toml_.number("backlog", &keys.backlog, 0, static_cast<double>(kTasksMax)),
            toml_.number("arrivals_per_second", &keys.arrivals_per_second, 0, kRateMax),
            toml_.time("arrivals_from_s", &keys.arrivals_from, 0, kSecondsMax),
            toml_.time("arrivals_until_s", &keys.arrivals_until, 0, kSecondsMax),
            toml_.time("service_ms", &keys.service, 0, kSecondsMax * 1000, kMillisecond),
            toml_.number("limit_per_second", &limit, 0, kRateMax),
            toml_.number("running_max", &running_max, 0, 1e6),
        });
    if (!status.ok()) return status;
    if (!table.contains("name")) {
      return toml_.error(table.source(), "keys want a name; \"\" for tasks without a key");
    }
    if (keys.name.empty() && keys.count > 1) {
      return toml_.error(table.source(), "tasks without a key are one line; a count wants a name");
    }
    model::Priority asked;
    asked.set_priority_key(priority);
    keys.level = queue::effective_level(asked, queue::kLevelsDefault);
    for (int64_t i = 1; i <= keys.count; ++i) {
      const std::string key = keys.key(i);
      if (!seen_.insert({keys.level, key}).second) {
        return toml_.error(table.source(), absl::StrCat("two keys are called \"", key,
                                                        "\" at priority ", keys.level));
      }
      names_.insert(key);
      if (!limit.has_value() && !running_max.has_value()) continue;
      auto& rule = (*plan_->rules.mutable_keys())[key];
      if (limit.has_value()) rule.set_per_second(*limit);
      if (running_max.has_value()) rule.set_running_max(*running_max);
    }
    plan_->keys.push_back(std::move(keys));
    return absl::OkStatus();
  }

  absl::Status read_event(const toml::table& table) {
    Plan::Event event;
    auto status = toml_.read(
        table, "events",
        {
            toml_.time("at_s", &event.at, 0, kSecondsMax),
            toml_.text("key", &event.key),
            toml_.number("weight", &event.weight, queue::Weight::kMin, queue::Weight::kMax),
            toml_.flag("pause", &event.pause),
            toml_.number("tasks", &event.tasks, 1, static_cast<double>(kTasksMax)),
            toml_.choice("fairness", &event.fairness, {"on", "off"}),
            toml_.number("limit_per_second", &event.limit_per_second, 0, kNoLimit),
            toml_.number("key_limit_per_second", &event.key_limit_per_second, 0, kNoLimit),
            toml_.number("workers", &event.workers, 0, 1e6),
        });
    if (!status.ok()) return status;
    if (!table.contains("at_s")) return toml_.error(table.source(), "events want at_s, when");
    if (!event.key.has_value() && (event.weight.has_value() || event.tasks.has_value())) {
      return toml_.error(table.source(), "a weight or tasks of which key?");
    }
    if (event.text().empty()) return toml_.error(table.source(), "an event that does nothing");
    events_.push_back(&table);
    plan_->events.push_back(std::move(event));
    return absl::OkStatus();
  }

  // What only the whole can tell.
  absl::Status check(const toml::table& file) const {
    if (plan_->keys.empty()) {
      return toml_.error(file.source(), "nobody sends tasks; add a table [[keys]]");
    }
    double tasks = 0;
    int64_t count = 0;
    for (const auto& keys : plan_->keys) {
      const DurationNs until = std::min(keys.arrivals_until, plan_->duration);
      const double seconds =
          static_cast<double>(std::max<DurationNs>(0, until - keys.arrivals_from)) / kSecond;
      tasks += static_cast<double>(keys.count) *
               (static_cast<double>(keys.backlog) + keys.arrivals_per_second * seconds);
      count += keys.count;
    }
    for (size_t i = 0; i < plan_->events.size(); ++i) {
      const auto& event = plan_->events[i];
      tasks += static_cast<double>(event.tasks.value_or(0));
      if (event.key.has_value() && !names_.contains(*event.key)) {
        const std::string meant(nearest(*event.key, {names_.begin(), names_.end()}));
        return toml_.error(
            events_[i]->source(),
            absl::StrCat("an event of \"", *event.key, "\", and no key is called that",
                         meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?")));
      }
    }
    if (count > kKeysMax || tasks > static_cast<double>(kTasksMax)) {
      return toml_.error(file.source(),
                         absl::StrFormat("%d keys and %.0f tasks; at most %d and %d are simulated",
                                         count, tasks, kKeysMax, kTasksMax));
    }
    return absl::OkStatus();
  }

  const TomlReader toml_;
  Plan* const plan_;
  std::set<std::pair<uint32_t, std::string>> seen_;
  std::set<std::string> names_;
  std::vector<const toml::table*> events_;
};

std::string shown(const std::string& key) { return key.empty() ? "(no key)" : key; }

}  // namespace

std::string Plan::Keys::key(int64_t number) const {
  return count == 1 ? name : absl::StrCat(name, "-", number);
}

std::string Plan::Keys::text() const {
  return count == 1 ? shown(name) : absl::StrCat(name, " (", count, " keys)");
}

std::string Plan::Event::text() const {
  const std::string who = key.has_value() ? shown(*key) : "";
  std::vector<std::string> parts;
  const auto rate = [](double value) {
    return std::isinf(value) ? std::string("off") : absl::StrCat(value, "/s");
  };
  if (weight.has_value()) parts.push_back(absl::StrCat("weight of ", who, " ", *weight));
  if (pause.has_value()) {
    parts.push_back(absl::StrCat(who.empty() ? "queue" : who, *pause ? " paused" : " resumed"));
  }
  if (tasks.has_value()) parts.push_back(absl::StrCat(*tasks, " tasks of ", who));
  if (fairness.has_value()) parts.push_back(absl::StrCat("fairness ", *fairness));
  if (limit_per_second.has_value()) {
    parts.push_back(absl::StrCat(who.empty() ? "queue limit " : absl::StrCat("limit of ", who, " "),
                                 rate(*limit_per_second)));
  }
  if (key_limit_per_second.has_value()) {
    parts.push_back(absl::StrCat("key limit ", rate(*key_limit_per_second)));
  }
  if (workers.has_value()) parts.push_back(absl::StrCat(*workers, " workers"));
  return absl::StrJoin(parts, ", ");
}

absl::StatusOr<Plan> Plan::parse(const std::string& file_name, std::string_view text) {
  Plan plan;
  PlanReader reader(file_name, &plan);
  if (auto status = reader.read(text); !status.ok()) return status;
  std::stable_sort(plan.events.begin(), plan.events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  return plan;
}

}  // namespace fairlead::simulate
