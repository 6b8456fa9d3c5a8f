#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "model/model.pb.h"

namespace fairlead::simulate {

// What a simulation is asked to play: who sends tasks, who works on them, under which rules, and
// what happens meanwhile.
struct Plan {
  // One key, or several alike.
  struct Keys {
    std::string name;
    int64_t count = 1;  // more than one: name-1, name-2, …
    double weight = 1;
    uint32_t level = 3;
    int64_t backlog = 0;  // tasks that wait at the start
    double arrivals_per_second = 0;
    DurationNs arrivals_from = 0;
    DurationNs arrivals_until = kNever;
    DurationNs service = kSecond;  // what a worker needs for a task

    std::string key(int64_t number) const;
    std::string text() const;  // for people
  };
  // All that is set happens at once.
  struct Event {
    DurationNs at = 0;
    std::optional<std::string> key;  // none: the whole queue
    std::optional<double> weight;
    std::optional<bool> pause;
    std::optional<int64_t> tasks;  // come, at the first of the key's priorities in the file
    std::optional<std::string> fairness;
    std::optional<double> limit_per_second;
    std::optional<double> key_limit_per_second;
    std::optional<int64_t> workers;

    std::string text() const;  // for people
  };

  std::string title;
  DurationNs duration = kMinute;
  int64_t workers = 1;  // tasks that run at a time
  uint64_t seed = 1;
  bool is_random = false;  // gaps between arrivals and times of service are drawn, else even
  model::QueueRules rules;
  std::vector<Keys> keys;
  std::vector<Event> events;

  // Shares are counted in tasks handed out: then there is an ideal share of those, too.
  bool has_ideal() const { return rules.basis() != model::QueueRules::IN_FLIGHT; }

  // Pure. An error is InvalidArgument and begins with the place to look at: "plan.toml:3:1: …".
  static absl::StatusOr<Plan> parse(const std::string& file_name, std::string_view text);
};

// Beyond these a simulation would take more memory and patience than its answer is worth.
inline constexpr int64_t kKeysMax = 100'000;
inline constexpr int64_t kTasksMax = 10'000'000;

}  // namespace fairlead::simulate
