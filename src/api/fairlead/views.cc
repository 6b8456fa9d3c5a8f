#include "api/fairlead/views.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "google/protobuf/util/json_util.h"

namespace fairlead::api::queues {

namespace {

using model::QueueRules;

// "Leave it as it is" stands before the model's words, so this API's numbers are one higher.
template <typename To, typename From>
To enum_of(From value) {
  return static_cast<To>(static_cast<int>(value) + 1);
}
static_assert(v1::FAIRNESS_DEFAULT == QueueRules::UNSET + 1);
static_assert(v1::FAIRNESS_ON == QueueRules::ON + 1 && v1::FAIRNESS_OFF == QueueRules::OFF + 1);
static_assert(v1::FIRST_TURN_SCHEDULED == QueueRules::SCHEDULED + 1);
static_assert(v1::FIRST_TURN_PROMPT == QueueRules::PROMPT + 1);
static_assert(v1::TRANSITION_DRAIN == QueueRules::DRAIN + 1);
static_assert(v1::TRANSITION_DRAIN_PER_LEVEL == QueueRules::DRAIN_PER_LEVEL + 1);
static_assert(v1::TRANSITION_IMMEDIATE == QueueRules::IMMEDIATE + 1);
static_assert(v1::BASIS_DISPATCH == QueueRules::DISPATCH + 1);
static_assert(v1::BASIS_IN_FLIGHT == QueueRules::IN_FLIGHT + 1);
static_assert(v1::POLLER_ORDER_FIFO == QueueRules::FIFO + 1);
static_assert(v1::POLLER_ORDER_LIFO == QueueRules::LIFO + 1);

v1::RateLimit rate_of(const QueueRules::Limit& limit) {
  v1::RateLimit rate;
  if (limit.has_per_second()) rate.set_per_second(limit.per_second());
  rate.set_reason(limit.reason());
  rate.set_identity(limit.identity());
  *rate.mutable_updated() = timestamp_of(limit.updated_ns());
  return rate;
}

v1::DescribeTaskQueueResponse::LimitSource source_of(shard::QueueView::LimitSource source) {
  switch (source) {
    case shard::QueueView::LimitSource::kApi:
      return v1::DescribeTaskQueueResponse::LIMIT_SOURCE_API;
    case shard::QueueView::LimitSource::kWorker:
      return v1::DescribeTaskQueueResponse::LIMIT_SOURCE_WORKER;
    case shard::QueueView::LimitSource::kSystem:
      return v1::DescribeTaskQueueResponse::LIMIT_SOURCE_SYSTEM;
  }
  return v1::DescribeTaskQueueResponse::LIMIT_SOURCE_UNSPECIFIED;
}

google::protobuf::Duration age_of(TimeNs time, TimeNs now) {
  return duration_of(std::max<DurationNs>(now - time, 0));
}

}  // namespace

google::protobuf::Duration duration_of(DurationNs duration) {
  google::protobuf::Duration out;
  out.set_seconds(duration / kSecond);
  out.set_nanos(static_cast<int32_t>(duration % kSecond));
  return out;
}

google::protobuf::Timestamp timestamp_of(TimeNs time) {
  google::protobuf::Timestamp out;
  out.set_seconds(time / kSecond);
  out.set_nanos(static_cast<int32_t>(time % kSecond));
  return out;
}

v1::TaskQueueType type_of(model::TaskKind kind) {
  if (kind == model::WORKFLOW_TASK) return v1::TASK_QUEUE_TYPE_WORKFLOW;
  if (kind == model::ACTIVITY_TASK) return v1::TASK_QUEUE_TYPE_ACTIVITY;
  return v1::TASK_QUEUE_TYPE_UNSPECIFIED;
}

v1::TaskQueue task_queue_of(const shard::QueueRef& queue, const std::string& namespace_name) {
  v1::TaskQueue out;
  out.set_namespace_(namespace_name);
  out.set_name(queue.name);
  out.set_type(type_of(queue.kind));
  return out;
}

v1::WeightSource weight_source_of(bool is_overridden) {
  return is_overridden ? v1::WEIGHT_SOURCE_OVERRIDE : v1::WEIGHT_SOURCE_TASK;
}

v1::Pause pause_of(const QueueRules::Pause& pause) {
  v1::Pause out;
  out.set_reason(pause.reason());
  out.set_identity(pause.identity());
  *out.mutable_since() = timestamp_of(pause.since_ns());
  return out;
}

void write_holds(uint8_t holds, google::protobuf::RepeatedField<int>& out) {
  static constexpr std::pair<queue::Hold, v1::Hold> kHolds[] = {
      {queue::kPaused, v1::HOLD_PAUSED},       {queue::kCapped, v1::HOLD_CAPPED},
      {queue::kThrottled, v1::HOLD_THROTTLED}, {queue::kTimed, v1::HOLD_OWN_RATE},
      {queue::kDrained, v1::HOLD_DRAINED},
  };
  for (const auto& [bit, hold] : kHolds) {
    if ((holds & bit) != 0) out.Add(hold);
  }
}

v1::TaskQueueConfig config_of(const QueueRules& rules) {
  v1::TaskQueueConfig config;
  if (rules.has_queue_limit()) *config.mutable_queue_rate() = rate_of(rules.queue_limit());
  if (rules.has_key_limit()) *config.mutable_key_rate_default() = rate_of(rules.key_limit());
  if (rules.has_running_max()) config.set_running_max(rules.running_max());
  if (rules.has_running_max_per_key()) {
    config.set_running_max_per_key(rules.running_max_per_key());
  }
  if (rules.has_pause()) *config.mutable_pause() = pause_of(rules.pause());
  config.set_fairness(enum_of<v1::Fairness>(rules.fairness()));
  config.set_first_turn(enum_of<v1::FirstTurn>(rules.first_turn()));
  config.set_transition(enum_of<v1::Transition>(rules.transition()));
  config.set_basis(enum_of<v1::Basis>(rules.basis()));
  config.set_poller_order(enum_of<v1::PollerOrder>(rules.poller_order()));
  std::set<std::string> keys;
  for (const auto& [key, weight] : rules.weights()) keys.insert(key);
  for (const auto& [key, rule] : rules.keys()) keys.insert(key);
  for (const auto& key : keys) *config.add_keys() = key_config_of(rules, key);
  return config;
}

v1::KeyConfig key_config_of(const QueueRules& rules, const std::string& key) {
  v1::KeyConfig config;
  config.set_key(key);
  const auto weight = rules.weights().find(key);
  if (weight != rules.weights().end()) config.set_weight(weight->second);
  const auto found = rules.keys().find(key);
  if (found == rules.keys().end()) return config;
  const QueueRules::KeyRule& rule = found->second;
  if (rule.has_running_max()) config.set_running_max(rule.running_max());
  if (rule.has_per_second()) config.set_rate_per_second(rule.per_second());
  if (rule.has_pause()) *config.mutable_pause() = pause_of(rule.pause());
  config.set_is_draining(rule.drain_below() != 0);
  return config;
}

// The message has the document's names, so the document is the one place that maps them.
v1::Admission admission_of(const admission::Payload& payload) {
  v1::Admission message;
  const auto status =
      google::protobuf::util::JsonStringToMessage(admission::to_json(payload), &message);
  FL_ASSERT(status.ok(), "the message has every field of the document");
  return message;
}

v1::DescribeTaskQueueResponse description_of(const shard::QueueView& view, TimeNs now) {
  v1::DescribeTaskQueueResponse out;
  int64_t waiting = 0;
  TimeNs oldest = 0;
  for (size_t i = 0; i < view.levels.size(); ++i) {
    const auto& level = view.levels[i];
    auto& shown = *out.add_levels();
    shown.set_level(static_cast<uint32_t>(i + 1));
    shown.set_waiting(level.waiting);
    if (level.oldest_ns != 0) *shown.mutable_oldest_age() = age_of(level.oldest_ns, now);
    shown.set_added_per_second(level.added_per_second);
    shown.set_dispatched_per_second(level.dispatched_per_second);
    waiting += level.waiting;
    if (level.oldest_ns != 0 && (oldest == 0 || level.oldest_ns < oldest)) {
      oldest = level.oldest_ns;
    }
  }
  out.set_waiting(waiting);
  if (oldest != 0) *out.mutable_oldest_age() = age_of(oldest, now);
  out.set_running(view.running);
  for (const auto& poller : view.pollers) {
    auto& shown = *out.add_pollers();
    shown.set_identity(poller.identity);
    *shown.mutable_last_access_age() = age_of(poller.last_access_ns, now);
    if (poller.max_tasks_per_second.has_value()) {
      shown.set_max_tasks_per_second(*poller.max_tasks_per_second);
    }
  }
  out.set_parked_polls(static_cast<int64_t>(view.parked_polls));
  if (view.last_poll_ns != 0) *out.mutable_last_poll_age() = age_of(view.last_poll_ns, now);
  out.set_is_fair(view.is_fair);
  out.set_is_draining(view.is_draining);
  out.set_keys(static_cast<int64_t>(view.keys));
  out.set_throttled_keys(static_cast<int64_t>(view.throttled_keys));
  out.set_lag_max(view.lag_max);
  out.set_sharing_lines(view.sharing_lines);
  const bool has_versions =
      std::any_of(view.targets.begin(), view.targets.end(),
                  [](const auto& target) { return !target.tasks.version.empty(); });
  for (const auto& target : view.targets) {
    if (!has_versions) break;
    auto& shown = *out.add_versions();
    shown.set_version(target.tasks.version);
    shown.set_waiting(target.tasks.waiting);
    if (target.tasks.oldest_ns != 0) {
      *shown.mutable_oldest_age() = age_of(target.tasks.oldest_ns, now);
    }
    shown.set_parked_polls(static_cast<int64_t>(target.parked_polls));
    shown.set_default_percent(target.tasks.percent);
  }
  // The system's is a number for clients that want one; nothing holds a queue to it.
  if (view.limit_source != shard::QueueView::LimitSource::kSystem) {
    out.set_rate_per_second(view.limit_per_second);
  }
  out.set_rate_source(source_of(view.limit_source));
  out.set_is_rate_limiting(view.is_limiting);
  *out.mutable_config() = config_of(view.rules);
  return out;
}

v1::Key key_of(const queue::KeyView& view, size_t recent, TimeNs now) {
  v1::Key out;
  out.set_key(view.key);
  out.set_is_shared(queue::is_shared_line(view.key));
  out.set_shared_line(view.shared_line);
  out.set_waiting(view.waiting);
  for (const int64_t waiting : view.waiting_by_level) out.add_waiting_by_level(waiting);
  if (view.oldest_ns != 0) *out.mutable_oldest_age() = age_of(view.oldest_ns, now);
  out.set_running(view.running);
  out.set_dispatched(view.dispatched);
  if (recent > 0) out.set_share(static_cast<double>(view.recent) / static_cast<double>(recent));
  out.set_ideal_share(view.ideal_share);
  out.set_lag(view.lag);
  out.set_weight(view.weight);
  out.set_weight_source(weight_source_of(view.is_weight_overridden));
  write_holds(view.holds, *out.mutable_holds());
  if (view.throttled_until > now && view.throttled_until != kNever) {
    *out.mutable_throttled_for() = duration_of(view.throttled_until - now);
  }
  return out;
}

}  // namespace fairlead::api::queues
