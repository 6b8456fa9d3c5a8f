#include "server/task_queue_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "api/fairlead/words.h"
#include "google/protobuf/util/time_util.h"
#include "server/table.h"

namespace fairlead::server {

namespace {

using api::queues::count_of;
using api::queues::human_duration;
using api::queues::word_of;
using google::protobuf::util::TimeUtil;

constexpr const char* kNone = "-";

std::string word(const google::protobuf::EnumDescriptor& type, int number) {
  const auto* value = type.FindValueByNumber(number);
  return value == nullptr ? absl::StrCat(number) : word_of(*value);
}

std::string text(const google::protobuf::Duration& duration) {
  return human_duration(TimeUtil::DurationToNanoseconds(duration));
}

std::string percent(double share) { return absl::StrFormat("%.1f %%", share * 100); }

// ", by ada: bad deploy"
std::string who_and_why(const std::string& identity, const std::string& reason) {
  std::string out;
  if (!identity.empty()) absl::StrAppend(&out, ", by ", identity);
  if (!reason.empty()) absl::StrAppend(&out, ": ", reason);
  return out;
}

std::string text(const v1::Pause& pause) {
  return absl::StrCat("since ", TimeUtil::ToString(pause.since()),
                      who_and_why(pause.identity(), pause.reason()));
}

std::string text(bool is_set, const v1::RateLimit& rate, const char* times) {
  if (!is_set) return kNone;
  const std::string limit =
      rate.has_per_second() ? absl::StrCat(rate.per_second(), "/s", times) : "none";
  return absl::StrCat(limit, ", set ", TimeUtil::ToString(rate.updated()),
                      who_and_why(rate.identity(), rate.reason()));
}

template <typename Number>
std::string number_or_none(bool is_set, Number number, const char* unit = "") {
  return is_set ? absl::StrCat(number, unit) : kNone;
}

std::string text(const google::protobuf::RepeatedField<int>& holds) {
  std::vector<std::string> words;
  for (const int hold : holds) words.push_back(word(*v1::Hold_descriptor(), hold));
  return absl::StrJoin(words, ", ");
}

// "paused since …", "draining" or nothing.
std::string state_text(const v1::KeyConfig& config) {
  if (config.has_pause()) return absl::StrCat("paused ", text(config.pause()));
  return config.is_draining() ? "draining" : "";
}

// Lines of a name and what is to be said about it.
class Lines {
 public:
  void add(const char* name, const std::string& value) {
    absl::StrAppendFormat(&out_, "%-17s %s\n", name, printable(value));
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

std::string keys_with_rules(const v1::TaskQueueConfig& config) {
  if (config.keys_size() == 0) return "";
  Table table({"KEY", ">WEIGHT", ">MAX RUNNING", ">RATE", "STATE"});
  for (const auto& key : config.keys()) {
    table.add({key_name(key.key()), number_or_none(key.has_weight(), key.weight()),
               number_or_none(key.has_running_max(), key.running_max()),
               number_or_none(key.has_rate_per_second(), key.rate_per_second(), "/s"),
               state_text(key)});
  }
  return "\n" + table.text();
}

std::string order_text(const v1::DescribeTaskQueueResponse& description) {
  std::string out = description.is_fair() ? "fair" : "first come, first served";
  if (description.is_draining()) out += "; tasks of an older order go first";
  return out;
}

std::string rate_text(const v1::DescribeTaskQueueResponse& description) {
  if (!description.has_rate_per_second()) return "no limit";
  return absl::StrCat(
      "at most ", description.rate_per_second(), "/s (",
      word(*v1::DescribeTaskQueueResponse::LimitSource_descriptor(), description.rate_source()),
      ")", description.is_rate_limiting() ? ", which holds tasks back" : "");
}

std::string polls_text(const v1::DescribeTaskQueueResponse& description) {
  std::string out = absl::StrCat(description.parked_polls(), " waiting");
  if (!description.has_last_poll_age()) return out + ", none seen since the server started";
  return absl::StrCat(out, ", the last came ", text(description.last_poll_age()), " ago");
}

// "throttled: 8 of 8 leases of the queue, 14 of 120 dispatches of the queue in this minute"
std::string admission_text(const v1::Admission::Tasks& tasks) {
  std::vector<std::string> budgets;
  const auto add = [&](bool is_set, int64_t max, int64_t used, const std::string& what) {
    if (is_set) budgets.push_back(absl::StrCat(used, " of ", max, " ", what));
  };
  add(tasks.has_server_max_active_leases_per_queue(), tasks.server_max_active_leases_per_queue(),
      tasks.server_active_lease_count(), "leases of the queue");
  add(tasks.has_server_max_active_leases_per_namespace(),
      tasks.server_max_active_leases_per_namespace(), tasks.server_namespace_active_lease_count(),
      "leases of the namespace");
  add(tasks.has_server_max_dispatches_per_minute(), tasks.server_max_dispatches_per_minute(),
      tasks.server_dispatch_count_this_minute(), "dispatches of the queue in this minute");
  add(tasks.has_server_max_dispatches_per_minute_per_namespace(),
      tasks.server_max_dispatches_per_minute_per_namespace(),
      tasks.server_namespace_dispatch_count_this_minute(),
      "dispatches of the namespace in this minute");
  add(tasks.has_server_max_dispatches_per_minute_per_budget_group(),
      tasks.server_max_dispatches_per_minute_per_budget_group(),
      tasks.server_budget_group_dispatch_count_this_minute(),
      "dispatches of budget group " + tasks.server_dispatch_budget_group() + " in this minute");
  if (budgets.empty()) return tasks.status();
  return absl::StrCat(tasks.status(), ": ", absl::StrJoin(budgets, ", "));
}

}  // namespace

std::string name_text(const v1::TaskQueue& queue) {
  return absl::StrCat(printable(queue.name()), " (",
                      word(*v1::TaskQueueType_descriptor(), queue.type()), ")");
}

std::string key_name(const std::string& key) { return key.empty() ? "(no key)" : key; }

std::string list_text(const v1::ListTaskQueuesResponse& list) {
  Table table({"TASK QUEUE", "TYPE", ">WAITING", ">RUNNING", ">KEYS", ">POLLERS", "STATE"});
  for (const auto& entry : list.task_queues()) {
    const auto& queue = entry.task_queue();
    table.add({queue.name(), word(*v1::TaskQueueType_descriptor(), queue.type()),
               absl::StrCat(entry.waiting()), absl::StrCat(entry.running()),
               absl::StrCat(entry.keys()), absl::StrCat(entry.pollers()),
               entry.is_paused() ? "paused" : ""});
  }
  return table.text();
}

std::string description_text(const v1::DescribeTaskQueueResponse& description) {
  Lines lines;
  lines.add("task queue", name_text(description.task_queue()));
  lines.add("namespace", description.task_queue().namespace_());
  lines.add("waiting", absl::StrCat(count_of(description.waiting(), "task"), " of ",
                                    count_of(description.keys(), "key"),
                                    description.has_oldest_age()
                                        ? ", the oldest since " + text(description.oldest_age())
                                        : ""));
  lines.add("running", count_of(description.running(), "task"));
  lines.add("order", order_text(description));
  lines.add("largest lag", absl::StrFormat("%.2f tasks", description.lag_max()));
  if (description.sharing_lines() > 0) {
    lines.add("sharing lines",
              absl::StrCat(description.sharing_lines(), " tasks of too many keys"));
  }
  lines.add("rate", rate_text(description));
  lines.add("throttled", count_of(description.throttled_keys(), "key"));
  lines.add("polls", polls_text(description));

  lines.add("workflow tasks", admission_text(description.admission().workflow_tasks()));
  lines.add("activity tasks", admission_text(description.admission().activity_tasks()));

  Table levels({">LEVEL", ">WAITING", ">OLDEST", ">ADDED/S", ">DISPATCHED/S"});
  for (const auto& level : description.levels()) {
    levels.add({absl::StrCat(level.level()), absl::StrCat(level.waiting()),
                level.has_oldest_age() ? text(level.oldest_age()) : kNone,
                absl::StrFormat("%.1f", level.added_per_second()),
                absl::StrFormat("%.1f", level.dispatched_per_second())});
  }
  std::string versions;
  if (description.versions_size() > 0) {
    Table table({"VERSION", ">WAITING", ">OLDEST", ">POLLS", ">OF UNPINNED"});
    for (const auto& each : description.versions()) {
      table.add({each.version().empty() ? "(none)" : each.version(), absl::StrCat(each.waiting()),
                 each.has_oldest_age() ? text(each.oldest_age()) : kNone,
                 absl::StrCat(each.parked_polls()), absl::StrCat(each.default_percent(), " %")});
    }
    versions = "\n" + table.text();
  }
  std::string pollers;
  if (description.pollers_size() > 0) {
    Table table({"POLLER", ">LAST SEEN", ">ASKS FOR"});
    for (const auto& poller : description.pollers()) {
      table.add(
          {poller.identity(), text(poller.last_access_age()),
           number_or_none(poller.has_max_tasks_per_second(), poller.max_tasks_per_second(), "/s")});
    }
    pollers = "\n" + table.text();
  }
  return absl::StrCat(lines.take(), "\n", levels.text(), versions, pollers, "\n",
                      config_text(description.config()));
}

std::string config_text(const v1::TaskQueueConfig& config) {
  Lines lines;
  lines.add("queue rate", text(config.has_queue_rate(), config.queue_rate(), ""));
  lines.add("rate per key",
            text(config.has_key_rate_default(), config.key_rate_default(), " x weight"));
  lines.add("max running", number_or_none(config.has_running_max(), config.running_max()));
  lines.add("max running/key",
            number_or_none(config.has_running_max_per_key(), config.running_max_per_key()));
  lines.add("fairness", word(*v1::Fairness_descriptor(), config.fairness()));
  lines.add("first turn", word(*v1::FirstTurn_descriptor(), config.first_turn()));
  lines.add("transition", word(*v1::Transition_descriptor(), config.transition()));
  lines.add("basis", word(*v1::Basis_descriptor(), config.basis()));
  lines.add("poller order", word(*v1::PollerOrder_descriptor(), config.poller_order()));
  lines.add("paused", config.has_pause() ? text(config.pause()) : "no");
  return lines.take() + keys_with_rules(config);
}

std::string key_config_text(const v1::KeyConfig& config) {
  Lines lines;
  lines.add("key", key_name(config.key()));
  lines.add("weight", number_or_none(config.has_weight(), config.weight()));
  lines.add("max running", number_or_none(config.has_running_max(), config.running_max()));
  lines.add("rate", number_or_none(config.has_rate_per_second(), config.rate_per_second(), "/s"));
  lines.add("paused", config.has_pause() ? text(config.pause()) : "no");
  lines.add("draining", config.is_draining() ? "yes" : "no");
  return lines.take();
}

std::string keys_text(const v1::ListKeysResponse& list) {
  Table table({"KEY", ">WAITING", ">OLDEST", ">RUNNING", ">WEIGHT", "FROM", ">SHARE", ">IDEAL",
               ">LAG", ">DISPATCHED", "HELD"});
  for (const auto& key : list.keys()) {
    std::string held = text(key.holds());
    if (key.has_throttled_for()) {
      absl::StrAppend(&held, " for ", text(key.throttled_for()));
    }
    if (!key.shared_line().empty()) {
      absl::StrAppend(&held, held.empty() ? "" : ", ", "in a shared line, ",
                      printable(key.shared_line()));
    }
    table.add({key_name(key.key()), absl::StrCat(key.waiting()),
               key.has_oldest_age() ? text(key.oldest_age()) : kNone, absl::StrCat(key.running()),
               absl::StrCat(key.weight()),
               word(*v1::WeightSource_descriptor(), key.weight_source()), percent(key.share()),
               percent(key.ideal_share()), absl::StrFormat("%.2f", key.lag()),
               absl::StrCat(key.dispatched()), held});
  }
  std::string out = table.text();
  if (list.total() > list.keys_size()) {
    absl::StrAppend(&out, list.keys_size(), " of ", list.total(), " keys\n");
  }
  return out;
}

std::string explanation_text(const v1::ExplainResponse& explanation) {
  std::string out;
  for (const auto& sentence : explanation.sentences()) {
    absl::StrAppend(&out, printable(sentence), "\n");
  }
  return out;
}

}  // namespace fairlead::server
