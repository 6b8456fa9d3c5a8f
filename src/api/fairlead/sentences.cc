#include "api/fairlead/sentences.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "api/fairlead/views.h"
#include "api/fairlead/words.h"
#include "queue/priority.h"

namespace fairlead::api::queues {

namespace {

using model::QueueRules;
using shard::Explanation;

// Collects the sentences about one task.
class Speaker {
 public:
  Speaker(const shard::ExplainRequest& asked, const Explanation& why, const QueueRules& rules,
          TimeNs now)
      : asked_(asked), why_(why), rules_(rules), now_(now) {
    const auto found = rules.keys().find(key());
    if (found != rules.keys().end()) rule_ = found->second;
  }

  std::vector<std::string> speak() {
    switch (why_.state) {
      case Explanation::State::kNothingToDo:
        say_nothing_to_do();
        break;
      case Explanation::State::kWaiting:
        say(subject(), " waits in ", place(), ", since ", age(why_.since_ns), ".");
        say_what_is_before();
        say_what_holds_the_queue();
        say_what_holds_the_key();
        say_who_would_take_it();
        break;
      case Explanation::State::kRunning:
        say(subject(), " runs since ", age(why_.since_ns), worker(), ". It came from ", place(),
            ".");
        if (why_.pause.has_value()) {
          say("It is paused", since(why_.pause), ". No attempt will follow this one.");
        }
        break;
      case Explanation::State::kBackingOff:
        say(subject(), " waits for its next attempt, which is due ", due(why_.next_attempt_ns),
            ". It will go to ", place(), ".");
        break;
      case Explanation::State::kPaused:
        say(subject(), " is paused", since(why_.pause), ". Unpaused, it will go to ", place(), ".");
        break;
    }
    return std::move(sentences_);
  }

 private:
  template <typename... Parts>
  void say(const Parts&... parts) {
    sentences_.push_back(absl::StrCat(parts...));
  }

  const std::string& key() const { return why_.priority.fairness_key(); }

  std::string subject() const {
    if (asked_.activity_id.empty()) {
      return absl::StrCat("The workflow task of workflow ", asked_.run.workflow_id);
    }
    return absl::StrCat("Activity ", asked_.activity_id, " of workflow ", asked_.run.workflow_id);
  }

  std::string place() const {
    std::string text = absl::StrCat(
        "queue ", why_.queue.name, " (",
        word_of(*v1::TaskQueueType_descriptor()->FindValueByNumber(type_of(why_.queue.kind))),
        "), level ", level_of(why_));
    absl::StrAppend(&text, key().empty() ? ", no key" : ", key ", key());
    if (why_.sticky_queue.empty()) return text;
    return absl::StrCat("the queue of one worker (", why_.sticky_queue, ") that belongs to ", text);
  }

  std::string age(TimeNs since) const { return human_duration(now_ - since); }
  std::string due(TimeNs time) const {
    return time <= now_ ? "now" : absl::StrCat("in ", human_duration(time - now_));
  }
  std::string worker() const {
    return why_.worker_identity.empty() ? "" : absl::StrCat(", on worker ", why_.worker_identity);
  }

  void say_nothing_to_do() {
    if (asked_.activity_id.empty()) {
      say("Workflow ", asked_.run.workflow_id,
          " has no workflow task now: it waits for something else, or it is closed.");
    } else {
      say("Workflow ", asked_.run.workflow_id, " has no open activity ", asked_.activity_id, ".");
    }
  }

  void say_what_is_before() {
    const auto& standing = why_.standing;
    if (standing.is_behind_older_order) {
      say("The order of the queue was changed; the tasks from before the change go first.");
    }
    // A worker's own queue knows no keys.
    const int64_t tasks = standing.tasks_before_in_line;
    if (tasks > 0) {
      say(count_of(tasks, "task"), why_.sticky_queue.empty() ? " of its key" : "",
          tasks == 1 ? " is" : " are", " before it.");
    }
    if (!why_.shared_line.empty()) {
      say("The queue has more keys than it may: its key shares the line ", why_.shared_line,
          " with others, and ", count_of(why_.others_before, "task"), " of theirs ",
          why_.others_before == 1 ? "is" : "are", " before it.");
    }
    if (standing.keys_before > 0) {
      say(count_of(static_cast<int64_t>(standing.keys_before), "key"),
          standing.keys_before == 1 ? " is" : " are", " served before its key's next task.");
    }
    const bool is_held = standing.holds != 0 || is_queue_held();
    if (tasks + why_.others_before == 0 && standing.keys_before == 0 &&
        !standing.is_behind_older_order && !is_held) {
      say("It is next in its level.");
    }
  }

  bool is_queue_held() const {
    const auto& standing = why_.standing;
    return standing.is_queue_paused || standing.is_queue_capped || standing.queue_ready_ns > now_ ||
           !why_.admission.empty();
  }

  void say_what_holds_the_queue() {
    const auto& standing = why_.standing;
    if (standing.is_queue_paused) say("The queue is paused", since(why_.queue_pause), ".");
    if (standing.is_queue_capped) {
      say("The queue has as many tasks running as it may have", most(running_max()), ".");
    }
    if (standing.queue_ready_ns > now_) {
      const bool is_set = rules_.queue_limit().has_per_second();
      const std::string limit =
          is_set ? absl::StrCat(" (limit ", rules_.queue_limit().per_second(), "/s)") : "";
      say("The queue is throttled ", until(standing.queue_ready_ns), limit, ".");
    }
    if (!why_.admission.empty()) say("A budget is used up: ", why_.admission, ".");
  }

  void say_what_holds_the_key() {
    const auto& standing = why_.standing;
    if ((standing.holds & queue::kPaused) != 0) {
      say("Its key is paused", since(why_.key_pause), ".");
    }
    if ((standing.holds & queue::kDrained) != 0) {
      say("Its key is being drained, and it came after the drain began.");
    }
    if ((standing.holds & queue::kCapped) != 0) {
      say("Its key has as many tasks running as it may have", most(key_running_max()), ".");
    }
    if ((standing.holds & queue::kThrottled) != 0) {
      say("Its key is throttled ", until(standing.key_ready_ns), " (limit ",
          rules_.key_limit().per_second(), "/s x weight ", why_.weight, ").");
    }
    if ((standing.holds & queue::kTimed) != 0) {
      say("Its key is throttled ", until(standing.key_ready_ns), " (its own limit ",
          rule_.per_second(), "/s).");
    }
  }

  void say_who_would_take_it() {
    if (why_.is_type_refused) {
      say("Workers poll here, and none of them takes its type.");
    } else if (!why_.version.empty()) {
      const auto polls = static_cast<int64_t>(why_.parked_polls);
      say("Only workers of version ", why_.version, " may have it, and ",
          polls == 0 ? "none waits for a task here."
                     : absl::StrCat(count_of(polls, "poll"), " of theirs ",
                                    polls == 1 ? "waits here." : "wait here."));
    } else if (why_.parked_polls > 0) {
      say(count_of(static_cast<int64_t>(why_.parked_polls), "poll"),
          why_.parked_polls == 1 ? " of a worker waits" : " of workers wait", " for a task here.");
    } else if (why_.last_poll_ns == 0) {
      say("No worker has polled here since the server started.");
    } else {
      say("No worker waits for a task here; the last poll was ", age(why_.last_poll_ns), " ago.");
    }
  }

  std::optional<uint32_t> running_max() const {
    if (!rules_.has_running_max()) return std::nullopt;
    return rules_.running_max();
  }
  std::optional<uint32_t> key_running_max() const {
    if (rule_.has_running_max()) return rule_.running_max();
    if (rules_.has_running_max_per_key()) return rules_.running_max_per_key();
    return std::nullopt;
  }
  static std::string most(std::optional<uint32_t> running_max) {
    return running_max.has_value() ? absl::StrCat(" (", *running_max, ")") : "";
  }

  // " since 3 min, by ada: bad deploy"
  template <typename Pause>
  std::string since(const std::optional<Pause>& pause) const {
    if (!pause.has_value()) return "";
    std::string text = absl::StrCat(" since ", age(pause->since_ns()));
    if (!pause->identity().empty()) absl::StrAppend(&text, ", by ", pause->identity());
    if (!pause->reason().empty()) absl::StrAppend(&text, ": ", pause->reason());
    return text;
  }

  std::string until(TimeNs ready) const {
    if (ready == kNever) return "until its limit is changed";
    return absl::StrCat("for another ", human_duration(ready - now_));
  }

  const shard::ExplainRequest& asked_;
  const Explanation& why_;
  const QueueRules& rules_;
  const TimeNs now_;
  QueueRules::KeyRule rule_;  // of the key; empty if it has none
  std::vector<std::string> sentences_;
};

}  // namespace

uint32_t level_of(const Explanation& why) {
  return why.level != 0 ? why.level : queue::effective_level(why.priority, queue::kLevelsDefault);
}

std::vector<std::string> sentences_of(const shard::ExplainRequest& asked, const Explanation& why,
                                      const QueueRules& rules, TimeNs now) {
  return Speaker(asked, why, rules, now).speak();
}

}  // namespace fairlead::api::queues
