#include "server/task_queue_flags.h"

#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/fairlead/words.h"

namespace fairlead::server {

namespace {

constexpr const char* kDefault = "default";

[[noreturn]] void refuse(const std::string& flag, const std::string& why) {
  throw CLI::ValidationError(flag, why);
}

// A number from 0 that the value of `flag` says; nothing for `default`.
std::optional<double> read_number(const std::string& flag, const std::string& value) {
  if (value == kDefault) return std::nullopt;
  double number = 0;
  if (!absl::SimpleAtod(value, &number) || !std::isfinite(number) || number < 0) {
    refuse(flag, absl::StrCat("'", value, "' is neither a number from 0 nor 'default'"));
  }
  return number;
}

std::optional<uint32_t> read_count(const std::string& flag, const std::string& value) {
  if (value == kDefault) return std::nullopt;
  uint32_t count = 0;
  if (!absl::SimpleAtoi(value, &count)) {
    refuse(flag, absl::StrCat("'", value, "' is neither a whole number from 0 nor 'default'"));
  }
  return count;
}

std::optional<float> read_weight(const std::string& flag, const std::string& value) {
  const auto weight = read_number(flag, value);
  if (!weight.has_value()) return std::nullopt;
  // A tiny number may become nothing in fewer digits.
  const auto rounded = static_cast<float>(*weight);
  if (!(rounded > 0) || !std::isfinite(rounded)) {
    refuse(flag, absl::StrCat("a weight of ", value, " is not possible; it must be more than 0"));
  }
  return rounded;
}

// One of the enum's words. Unspecified if the flag was not given.
template <typename Enum>
Enum read_word(const google::protobuf::EnumDescriptor& type, const std::string& word) {
  return static_cast<Enum>(api::queues::number_of_word(type, word).value_or(0));
}

// The words that the enum has, for the help and for the refusal of any other.
CLI::Option* add_word_flag(CLI::App* app, const std::string& name, std::string* value,
                           const google::protobuf::EnumDescriptor& type, const std::string& help) {
  std::vector<std::string> words;
  for (int i = 1; i < type.value_count(); ++i) {
    words.push_back(api::queues::word_of(*type.value(i)));
  }
  return app->add_option(name, *value, help)
      ->check(CLI::IsMember(words).description(""))
      ->type_name(absl::StrJoin(words, "|"));
}

void warn_of_zero(double limit, const char* what, std::vector<std::string>* warnings) {
  if (limit == 0) warnings->push_back(absl::StrCat("a limit of 0 stops ", what));
}

}  // namespace

// ---- what many commands have
// ---------------------------------------------------------------------

void CommonFlags::add_to(CLI::App* app) {
  app->add_option("--address", address, "The server")
      ->envname("FAIRLEAD_ADDRESS")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  app->add_option("-n,--namespace", namespace_name, "The namespace")
      ->envname("FAIRLEAD_NAMESPACE")
      ->capture_default_str()
      ->type_name("NAME");
  app->add_option("--timeout", timeout_s, "Seconds to wait for the server")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 86'400.0).description(""))
      ->type_name("S");
  app->add_flag("--json", is_json, "Answer in JSON");
}

void QueueFlags::add_to(CLI::App* app) {
  app->add_option("-t,--task-queue,name", name, "The task queue")->required()->type_name("NAME");
  auto* option =
      add_word_flag(app, "--task-queue-type", &type, *v1::TaskQueueType_descriptor(), "Its type");
  type.empty() ? option->required() : option->capture_default_str();
}

v1::TaskQueue QueueFlags::queue(const CommonFlags& common) const {
  v1::TaskQueue queue;
  queue.set_namespace_(common.namespace_name);
  queue.set_name(name);
  queue.set_type(read_word<v1::TaskQueueType>(*v1::TaskQueueType_descriptor(), type));
  return queue;
}

CLI::Option* add_key_flag(CLI::App* app, std::string* key) {
  return app->add_option("--key", *key, "The fairness key; '' for the tasks that carry none")
      ->type_name("KEY");
}

// ---- config set
// ----------------------------------------------------------------------------------

void ConfigFlags::add_to(CLI::App* app) {
  app->add_option("--queue-rps-limit", queue_rate_, "Starts a second of the whole queue")
      ->type_name("N|default");
  app->add_option("--queue-rps-limit-reason", queue_rate_reason_, "Why")->type_name("TEXT");
  app->add_option("--fairness-key-rps-limit-default", key_rate_,
                  "Starts a second of each fairness key, times its weight")
      ->type_name("N|default");
  app->add_option("--fairness-key-rps-limit-reason", key_rate_reason_, "Why")->type_name("TEXT");
  app->add_option("--fairness-key-weight", weights_,
                  "Weight of a fairness key, instead of those that tasks carry; may be repeated")
      ->type_name("KEY=N|default")
      ->allow_extra_args(false);
  app->add_flag("--fairness-key-weight-clear-all", clears_weights_,
                "Unset all weights that --fairness-key-weight does not set");
  app->add_option("--max-running", running_max_, "Tasks of the queue that may run at a time")
      ->type_name("N|default");
  app->add_option("--max-running-per-key", running_max_per_key_,
                  "Tasks of each fairness key that may run at a time")
      ->type_name("N|default");
  add_word_flag(app, "--fairness", &fairness_, *v1::Fairness_descriptor(),
                "Whether fairness keys share the queue, or first come is first served");
  add_word_flag(app, "--first-turn", &first_turn_, *v1::FirstTurn_descriptor(),
                "When a key that was idle gets its first task out");
  add_word_flag(app, "--transition", &transition_, *v1::Transition_descriptor(),
                "What happens to waiting tasks when the order is changed");
  add_word_flag(app, "--basis", &basis_, *v1::Basis_descriptor(),
                "What is shared: dispatches, or running tasks");
  add_word_flag(app, "--poller-order", &poller_order_, *v1::PollerOrder_descriptor(),
                "Which poll gets a task: the one that has waited longest, or the newest");
}

namespace {

struct RateFlags {
  const char* flag;
  const std::string& value;
  const std::string& reason;
  const char* what;  // is stopped by a limit of 0
};

void read_rate(const RateFlags& flags, v1::RateChange* (v1::SetTaskQueueRequest::*mutable_rate)(),
               v1::SetTaskQueueRequest& request, std::vector<std::string>* warnings) {
  if (flags.value.empty()) {
    if (!flags.reason.empty()) {
      refuse(flags.flag, "there is a reason for a limit, but no limit");
    }
    return;
  }
  v1::RateChange& change = *(request.*mutable_rate)();
  change.set_reason(flags.reason);
  if (const auto limit = read_number(flags.flag, flags.value); limit.has_value()) {
    change.set_per_second(*limit);
    warn_of_zero(*limit, flags.what, warnings);
  } else {
    change.set_unset(true);
  }
}

// Numbers hold no '=', but keys may.
void read_weight_pair(const std::string& pair, v1::SetTaskQueueRequest& request) {
  constexpr const char* kFlag = "--fairness-key-weight";
  const size_t equals = pair.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    refuse(kFlag, absl::StrCat("'", pair, "' is not KEY=WEIGHT"));
  }
  const std::string key = pair.substr(0, equals);
  const auto weight = read_weight(kFlag, pair.substr(equals + 1));
  if (weight.has_value()) {
    (*request.mutable_weights())[key] = *weight;
  } else {
    request.add_unset_weights(key);
  }
}

}  // namespace

v1::SetTaskQueueRequest ConfigFlags::request(std::vector<std::string>* warnings) const {
  v1::SetTaskQueueRequest request;
  read_rate({"--queue-rps-limit", queue_rate_, queue_rate_reason_, "the queue"},
            &v1::SetTaskQueueRequest::mutable_queue_rate, request, warnings);
  read_rate({"--fairness-key-rps-limit-default", key_rate_, key_rate_reason_, "every key"},
            &v1::SetTaskQueueRequest::mutable_key_rate_default, request, warnings);
  for (const auto& pair : weights_) read_weight_pair(pair, request);
  request.set_unset_all_weights(clears_weights_);
  if (!running_max_.empty()) {
    const auto count = read_count("--max-running", running_max_);
    count.has_value() ? request.set_running_max(*count) : request.set_unset_running_max(true);
    warn_of_zero(count.value_or(1), "the queue", warnings);
  }
  if (!running_max_per_key_.empty()) {
    const auto count = read_count("--max-running-per-key", running_max_per_key_);
    count.has_value() ? request.set_running_max_per_key(*count)
                      : request.set_unset_running_max_per_key(true);
    warn_of_zero(count.value_or(1), "every key", warnings);
  }
  request.set_fairness(read_word<v1::Fairness>(*v1::Fairness_descriptor(), fairness_));
  request.set_first_turn(read_word<v1::FirstTurn>(*v1::FirstTurn_descriptor(), first_turn_));
  request.set_transition(read_word<v1::Transition>(*v1::Transition_descriptor(), transition_));
  request.set_basis(read_word<v1::Basis>(*v1::Basis_descriptor(), basis_));
  request.set_poller_order(
      read_word<v1::PollerOrder>(*v1::PollerOrder_descriptor(), poller_order_));
  if (request.ByteSizeLong() == 0) refuse("config set", "nothing to set; --help shows the flags");
  return request;
}

// ---- config set-key
// ------------------------------------------------------------------------------

void KeyConfigFlags::add_to(CLI::App* app) {
  add_key_flag(app, &key_)->required();
  app->add_option("--weight", weight_, "Its weight, instead of those that its tasks carry")
      ->type_name("N|default");
  app->add_option("--max-running", running_max_, "Its tasks that may run at a time")
      ->type_name("N|default");
  app->add_option("--rps-limit", rate_, "Its starts a second, whatever its weight")
      ->type_name("N|default");
}

v1::SetKeyRequest KeyConfigFlags::request(std::vector<std::string>* warnings) const {
  v1::SetKeyRequest request;
  if (!weight_.empty()) {
    const auto weight = read_weight("--weight", weight_);
    weight.has_value() ? request.set_weight(*weight) : request.set_unset_weight(true);
  }
  if (!running_max_.empty()) {
    const auto count = read_count("--max-running", running_max_);
    count.has_value() ? request.set_running_max(*count) : request.set_unset_running_max(true);
    warn_of_zero(count.value_or(1), "the key", warnings);
  }
  if (!rate_.empty()) {
    const auto rate = read_number("--rps-limit", rate_);
    rate.has_value() ? request.set_rate_per_second(*rate) : request.set_unset_rate(true);
    warn_of_zero(rate.value_or(1), "the key", warnings);
  }
  if (request.ByteSizeLong() == 0) {
    refuse("config set-key", "nothing to set; --help shows the flags");
  }
  request.set_key(key_);
  return request;
}

}  // namespace fairlead::server
