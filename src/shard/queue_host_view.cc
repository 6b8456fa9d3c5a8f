// What operators ask of queues, and tell them.

#include <algorithm>

#include "model/bytes.h"
#include "shard/queue_host.h"
#include "store/keys.h"

namespace fairlead::shard {

QueueView QueueHost::describe(const QueueAddress& queue) {
  const TimeNs now = env_.clock->now();
  auto& owner = line(queue);
  auto& waiting = load(queue, owner).tasks();
  QueueView view;
  for (const auto& [identity, poller] : owner.pollers) {
    view.pollers.push_back(
        {identity, poller.last_access, poller.max_tasks_per_second, poller.about});
  }
  view.levels.clear();
  for (uint32_t level = 1; level <= waiting.levels(); ++level) {
    view.levels.push_back(waiting.level_view(level, now));
  }
  view.default_level = queue::default_level(owner.settings.levels);
  view.rules = waiting.rules();
  view.has_rules =
      view.rules.has_queue_limit() || view.rules.has_key_limit() || !view.rules.weights().empty();
  view.limit_per_second = queue::kSystemLimit;
  if (const auto limit = waiting.limit(); limit.has_value() && *limit < queue::kSystemLimit) {
    view.limit_per_second = *limit;
    view.limit_source = view.rules.queue_limit().has_per_second() ? QueueView::LimitSource::kApi
                                                                  : QueueView::LimitSource::kWorker;
  }
  view.is_limiting = waiting.is_limiting(now);
  view.is_fair = waiting.order() != queue::Order::kFifo;
  view.is_draining = waiting.is_draining();
  view.running = waiting.running();
  view.keys = waiting.keys();
  view.throttled_keys = waiting.throttled_keys();
  view.lag_max = waiting.lag_max();
  view.sharing_lines = owner.counts.sharing_lines;
  view.last_poll_ns = owner.last_poll;
  view.parked_polls = owner.polls.size();
  for (auto& target : waiting.target_views()) {
    const size_t polls = polls_for(queue, target.version);
    target.version = admission::shown_stream(target.version);
    view.targets.push_back({std::move(target), polls});
  }
  if (const auto place = waiting.oldest()) {
    const auto row = env_.store->get(task_row(env_.shard, queue.name, *place));
    model::TaskRow task;
    if (row.ok() && row->has_value() && task.ParseFromString(**row)) {
      view.oldest = OldestTask{task.run(),
                               ShardId(static_cast<uint16_t>(task.shard())),
                               task.scheduled_id(),
                               task.created_ns(),
                               "",
                               ""};
    }
  }
  return view;
}

absl::StatusOr<model::QueueRules> QueueHost::change_rules(const QueueAddress& queue,
                                                          ChangeRules& request) {
  const TimeNs now = env_.clock->now();
  auto& owner = stored(queue);
  auto rules = owner.tasks().rules();
  if (auto status = request.change(rules, now); !status.ok()) return status;
  const auto changed = owner.tasks().set_rules(std::move(rules), now);
  store::WriteBatch batch;
  batch.put(store::keys::queue_rules(env_.shard, queue.name), model::stable_bytes(changed));
  owner.add_rows(&batch);
  env_.write(batch);
  serve(queue);
  return changed;
}

KeysView QueueHost::list_keys(const QueueAddress& queue, const KeysRequest& request) {
  const TimeNs now = env_.clock->now();
  auto& waiting = tasks(queue);
  KeysView view;
  view.total = waiting.keys();
  view.recent = waiting.recent();
  switch (request.by) {
    case KeysRequest::By::kName:
      view.keys = waiting.list_keys(request.after, request.max, now);
      break;
    case KeysRequest::By::kBacklog:
      view.keys = waiting.top_keys(request.max, now);
      break;
    case KeysRequest::By::kNamed:
      for (const auto& name : request.named) {
        if (auto known = stored(queue).key_view(name, now)) view.keys.push_back(std::move(*known));
      }
      break;
  }
  return view;
}

QueueSummary QueueHost::summarize(const QueueAddress& queue) {
  auto& owner = line(queue);
  const auto& waiting = load(queue, owner).tasks();
  QueueSummary summary;
  summary.queue = {queue.name.ns, static_cast<model::TaskKind>(queue.name.type), queue.name.name};
  summary.waiting = waiting.size();
  summary.running = waiting.running();
  summary.keys = waiting.keys();
  summary.pollers = owner.pollers.size();
  summary.is_paused = waiting.rules().has_pause();
  return summary;
}

int64_t QueueHost::ready(const QueueAddress& queue) {
  if (!families_.contains(queue.name)) {
    // A question is not a use: what nobody uses and has no rows stays unknown.
    bool has_rows = false;
    for (const auto& range : {store::keys::tasks(env_.shard, queue.name),
                              store::keys::pinned_tasks(env_.shard, queue.name)}) {
      (void)env_.store->scan(range.begin, range.end, [&](std::string_view, std::string_view) {
        has_rows = true;
        return false;
      });
    }
    if (!has_rows) return 0;
  }
  int64_t ready = tasks(queue).size();
  for (const auto& [name, line] : family(queue).sticky) {
    if (line.stored != nullptr) ready += line.stored->tasks().size();
  }
  return ready;
}

std::vector<queue::Waiting> QueueHost::tasks_of(const QueueAddress& queue, const std::string& key) {
  return stored(queue).tasks_of(key);
}

void QueueHost::explain(const QueueAddress& queue, const queue::Place& place,
                        Explanation* explanation) {
  const TimeNs now = env_.clock->now();
  const auto normal = queue.normal_queue();
  auto& waiting = tasks(queue);
  const auto& rules = tasks(normal).rules();
  explanation->queue = {queue.name.ns, static_cast<model::TaskKind>(queue.name.type), queue.normal};
  if (queue.is_sticky()) explanation->sticky_queue = queue.name.name;
  explanation->level = place.level;
  explanation->standing = waiting.standing(place, now);
  if (const auto& own = explanation->priority.fairness_key();
      queue::is_shared_line(place.key) && own != place.key) {
    // Whose task is asked about counts, and not who else stands in the line.
    auto& standing = explanation->standing;
    const int64_t of_key = stored(queue).tasks_before(place, own);
    explanation->shared_line = place.key;
    explanation->others_before = std::max<int64_t>(0, standing.tasks_before_in_line - of_key);
    standing.tasks_before_in_line = of_key;
  }
  if (const auto key = waiting.key_view(place.key, now)) explanation->weight = key->weight;
  explanation->is_weight_overridden = rules.weights().contains(place.key);
  if (rules.has_pause()) explanation->queue_pause = rules.pause();
  if (const auto rule = rules.keys().find(place.key);
      rule != rules.keys().end() && rule->second.has_pause()) {
    explanation->key_pause = rule->second.pause();
  }
  explanation->admission = env_.desk->explain(normal.name);
  explanation->version = explanation->standing.version;
  const auto& owner = line(queue);
  explanation->parked_polls = queue.is_sticky()
                                  ? owner.polls.size()
                                  : polls_for(queue, explanation->version, place.stream.type);
  explanation->version = admission::shown_stream(explanation->version);
  explanation->last_poll_ns = owner.last_poll;
  explanation->is_type_refused = owner.last_poll != 0 && place.stream.type != queue::TaskType() &&
                                 last_polled(owner, place.stream.type) == 0;
}

std::vector<MeasuredQueue> QueueHost::metrics(size_t queues_max, size_t keys_max) {
  const TimeNs now = env_.clock->now();
  std::vector<MeasuredQueue> all;
  for (auto& [name, owner] : families_) {
    if (all.size() == queues_max) break;
    if (owner->normal.stored == nullptr) continue;
    auto& waiting = owner->normal.stored->tasks();
    all.emplace_back();
    all.back().dispatches = owner->normal.dispatches;
    auto& metrics = all.back().figures;
    metrics.queue = {name.ns, static_cast<model::TaskKind>(name.type), name.name};
    for (uint32_t level = 1; level <= waiting.levels(); ++level) {
      metrics.levels.push_back(waiting.level_view(level, now));
    }
    metrics.counts = owner->normal.counts;
    metrics.active_keys = waiting.keys();
    metrics.throttled_keys = waiting.throttled_keys();
    metrics.lag_max = waiting.lag_max();
    metrics.top_keys = waiting.top_keys(keys_max, now);
  }
  return all;
}

std::vector<QueueAddress> QueueHost::queues(NamespaceNum ns) const {
  absl::btree_set<std::pair<uint8_t, std::string>> found;
  absl::btree_set<std::string> sticky;
  for (const auto& [name, owner] : families_) {
    if (name.ns == ns) found.insert({name.type, name.name});
    for (const auto& [own, line] : owner->sticky) sticky.insert(own);
  }
  // One look per queue, however long its backlog.
  for (const bool is_pinned : {false, true}) {
    const auto range =
        is_pinned ? store::keys::pinned_tasks(env_.shard) : store::keys::tasks(env_.shard);
    std::string from = range.begin;
    while (true) {
      std::optional<QueueName> next;
      (void)env_.store->scan(from, range.end, [&](std::string_view key, std::string_view) {
        next = is_pinned ? store::keys::parse_pinned_task(key).task.queue
                         : store::keys::parse_task(key).queue;
        return false;
      });
      if (!next.has_value()) break;
      if (next->ns == ns && !sticky.contains(next->name)) found.insert({next->type, next->name});
      from = is_pinned ? store::keys::pinned_tasks(env_.shard, *next).end
                       : store::keys::tasks(env_.shard, *next).end;
    }
  }
  std::vector<QueueAddress> queues;
  for (const auto& [type, name] : found) queues.push_back({{ns, type, name}, name});
  return queues;
}

}  // namespace fairlead::shard
