#include "server/config_matching.h"

#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/spelling.h"

namespace fairlead::server {
namespace {

// A name of Temporal's that means nothing here, and why.
struct Stranger {
  std::string_view name;
  std::string_view answer;
};
constexpr std::array kStrangers = {
    Stranger{"useNewMatcher", "priority levels are always on; leave it out"},
    Stranger{"autoEnableV2", "fairness is on unless it is switched off; leave it out"},
    Stranger{"numTaskqueueReadPartitions", "task queues have no partitions; leave it out"},
    Stranger{"numTaskqueueWritePartitions", "task queues have no partitions; leave it out"},
    Stranger{"fairnessKeyRateLimitCacheSize",
             "the limits of all keys are remembered; leave it out"},
    Stranger{"fairnessCounter", "shares are exact, nothing is estimated; leave it out"},
    Stranger{"fairnessPassDither", "shares are exact, nothing is spread; leave it out"},
};

constexpr std::array<std::string_view, 3> kNames = {"enableFairness", "priorityLevels",
                                                    "maxFairnessKeyWeightOverrides"};

constexpr int64_t kOverridesMax = 1000;

class MatchingReader {
 public:
  MatchingReader(const std::string& file_name, Config* config)
      : file_name_(file_name), config_(config) {}

  absl::Status read(const toml::key& name, const toml::node& node) {
    if (name.str() == "enableFairness") return read_values(name, node, &MatchingReader::fairness);
    if (name.str() == "priorityLevels") return read_values(name, node, &MatchingReader::levels);
    if (name.str() == "maxFairnessKeyWeightOverrides") {
      return read_values(name, node, &MatchingReader::overrides);
    }
    for (const auto& stranger : kStrangers) {
      if (stranger.name == name.str()) {
        return error(name.source(),
                     absl::StrCat("matching.", std::string(name.str()),
                                  " has no counterpart: ", std::string(stranger.answer)));
      }
    }
    const auto near = nearest(name.str(), {kNames.begin(), kNames.end()});
    return error(name.source(),
                 absl::StrCat("unknown key matching.", std::string(name.str()),
                              near.empty() ? "; known are enableFairness, priorityLevels and "
                                             "maxFairnessKeyWeightOverrides"
                                           : absl::StrCat("; did you mean matching.",
                                                          std::string(near), "?")));
  }

 private:
  // Sets a value for the queues that the exception names, or for all if it names none.
  using Set = absl::Status (MatchingReader::*)(const toml::node& value, queue::Exception exception);

  absl::Status error(const toml::source_region& source, std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_name_, ":", source.begin.line, ":",
                                                   source.begin.column, ": ", std::string(what)));
  }

  absl::Status read_values(const toml::key& name, const toml::node& node, Set set) {
    const auto* list = node.as_array();
    if (list == nullptr) return (this->*set)(node, {});
    for (const auto& entry : *list) {
      const auto* table = entry.as_table();
      const auto* value = table == nullptr ? nullptr : table->get("value");
      if (value == nullptr) {
        return error(entry.source(), absl::StrCat("matching.", std::string(name.str()),
                                                  " wants a value, or a list of tables with a "
                                                  "value and constraints"));
      }
      queue::Exception exception;
      if (auto status = read_entry(*table, &exception); !status.ok()) return status;
      if (auto status = (this->*set)(*value, std::move(exception)); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status read_entry(const toml::table& entry, queue::Exception* exception) {
    for (const auto& [key, node] : entry) {
      if (key.str() == "value") continue;
      const auto* constraints = key.str() == "constraints" ? node.as_table() : nullptr;
      if (constraints == nullptr) {
        return error(key.source(), absl::StrCat(std::string(key.str()),
                                                " is neither a value nor a table of constraints"));
      }
      for (const auto& [name, text] : *constraints) {
        if (auto status = read_constraint(name, text, exception); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status read_constraint(const toml::key& name, const toml::node& node,
                               queue::Exception* exception) {
    const auto text = node.value<std::string>();
    if (name.str() == "namespace" && text.has_value()) {
      exception->ns = *text;
    } else if (name.str() == "taskQueueName" && text.has_value()) {
      exception->queue = *text;
    } else if (name.str() == "taskType") {
      return read_type(node, exception);
    } else {
      return error(name.source(),
                   absl::StrCat(std::string(name.str()),
                                " is no constraint; there are namespace, taskQueueName and "
                                "taskType, each with a string"));
    }
    return absl::OkStatus();
  }

  absl::Status read_type(const toml::node& node, queue::Exception* exception) {
    const auto text = node.value<std::string>();
    const auto number = node.is_integer() ? node.value<int64_t>() : std::nullopt;
    if (text == "Workflow" || number == 1) {
      exception->kind = model::WORKFLOW_TASK;
    } else if (text == "Activity" || number == 2) {
      exception->kind = model::ACTIVITY_TASK;
    } else {
      return error(node.source(), "taskType is not one of Workflow (1), Activity (2)");
    }
    return absl::OkStatus();
  }

  absl::Status fairness(const toml::node& value, queue::Exception exception) {
    const auto* is_on = value.as_boolean();
    if (is_on == nullptr) {
      return error(value.source(), "matching.enableFairness wants true or false");
    }
    if (exception.constraints() == 0) {
      config_->queues.fairness = is_on->get() ? "on" : "off";
      return absl::OkStatus();
    }
    exception.order = is_on->get() ? queue::Order::kFair : queue::Order::kFifo;
    config_->queues.exceptions.push_back(std::move(exception));
    return absl::OkStatus();
  }

  absl::Status levels(const toml::node& value, queue::Exception exception) {
    const auto* number = value.as_integer();
    if (number == nullptr || number->get() < 1 || number->get() > queue::kLevelsMax) {
      return error(value.source(), absl::StrCat("matching.priorityLevels wants a number from 1 to ",
                                                queue::kLevelsMax));
    }
    const auto levels = static_cast<uint32_t>(number->get());
    if (exception.constraints() == 0) {
      config_->queues.levels = levels;
      return absl::OkStatus();
    }
    exception.levels = levels;
    config_->queues.exceptions.push_back(std::move(exception));
    return absl::OkStatus();
  }
  // Said as it is, it may stay in the file.
  absl::Status overrides(const toml::node& value, queue::Exception) {
    return expect(value, kOverridesMax, "matching.maxFairnessKeyWeightOverrides");
  }
  absl::Status expect(const toml::node& value, int64_t wanted, const char* name) {
    const auto* number = value.as_integer();
    if (number != nullptr && number->get() == wanted) return absl::OkStatus();
    return error(value.source(),
                 absl::StrCat(name, " is always ", wanted, "; no other number is built yet"));
  }

  const std::string& file_name_;
  Config* const config_;
};

}  // namespace

absl::Status read_matching(const toml::table& section, const std::string& file_name,
                           Config* config) {
  MatchingReader reader(file_name, config);
  for (const auto& [name, node] : section) {
    if (auto status = reader.read(name, node); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace fairlead::server
