#include "shard/stored_queue.h"

#include "base/assert.h"
#include "base/hash.h"
#include "model/bytes.h"
#include "store/keys.h"

namespace fairlead::shard {

namespace {

template <typename Row>
Row parse(std::string_view value) {
  Row row;
  FL_ASSERT(row.ParseFromArray(value.data(), static_cast<int>(value.size())),
            "a row of a queue is what its table says");
  return row;
}

queue::Numbered task_from_row(TaskSeq seq, const model::TaskRow& row) {
  queue::Task task;
  FL_ASSERT(row.run().size() == task.run.size(), "a task's row names a run");
  std::copy(row.run().begin(), row.run().end(), task.run.begin());
  task.scheduled_id = row.scheduled_id();
  task.stamp = row.stamp();
  task.created_ns = row.created_ns();
  task.weight = row.priority().fairness_weight();
  task.shard = ShardId(static_cast<uint16_t>(row.shard()));
  task.slot = static_cast<uint8_t>(row.slot());
  task.type = queue::TaskType(row.type());
  return {seq, task};
}

queue::Waiting waiting_at(queue::Place place, const queue::Task& task) {
  place.stream.type = task.type;
  return {std::move(place), task};
}

}  // namespace

std::string task_row(ShardId shard, const QueueName& queue, const queue::Place& place) {
  const auto level = static_cast<uint8_t>(place.level);
  if (!place.stream.is_pinned()) {
    return store::keys::task(shard, queue, level, place.key, place.seq);
  }
  return store::keys::pinned_task(shard, queue, place.stream.version, level, place.key, place.seq);
}

queue::Place place_from(const model::TaskPlace& place) {
  return {place.level(),
          place.fairness_key(),
          TaskSeq(place.seq()),
          {place.version(), static_cast<uint8_t>(place.slot()), queue::TaskType(place.type())}};
}

// DO NOT CHANGE: a ramp that goes on after a restart goes on with the same workflows.
uint8_t ramp_slot(std::string_view workflow_id) {
  return static_cast<uint8_t>(1 + stable_hash(workflow_id) / 65'536 % queue::kSlots);
}

StoredQueue::StoredQueue(const store::Store* store, ShardId shard, QueueName name,
                         const queue::Settings& settings, TimeNs now)
    : store_(store), shard_(shard), name_(std::move(name)), tasks_(this, settings) {
  load(now);
}

void StoredQueue::load(TimeNs now) {
  const auto scan = [&](const store::keys::Range& range, const store::Store::Visit& visit) {
    const auto status = store_->scan(range.begin, range.end, visit);
    FL_ASSERT(status.ok(), "the store can be read");
  };
  const auto rules = store_->get(store::keys::queue_rules(shard_, name_));
  const auto state = store_->get(store::keys::queue_state(shard_, name_));
  FL_ASSERT(rules.ok() && state.ok(), "the store can be read");
  if (rules->has_value()) tasks_.load_rules(parse<model::QueueRules>(**rules));
  if (state->has_value()) tasks_.load_state(parse<model::QueueState>(**state));
  scan(store::keys::tasks(shard_, name_), [&](std::string_view key, std::string_view value) {
    const auto place = store::keys::parse_task(key);
    tasks_.load_task(place.level, place.fairness_key,
                     task_from_row(place.seq, parse<model::TaskRow>(value)));
    return true;
  });
  scan(store::keys::pinned_tasks(shard_, name_), [&](std::string_view key, std::string_view value) {
    const auto pinned = store::keys::parse_pinned_task(key);
    tasks_.load_task(pinned.task.level, pinned.task.fairness_key,
                     task_from_row(pinned.task.seq, parse<model::TaskRow>(value)), pinned.version);
    return true;
  });
  scan(store::keys::accounts(shard_, name_), [&](std::string_view key, std::string_view value) {
    const auto account = store::keys::parse_account(key);
    tasks_.load_account(account.level, account.fairness_key, parse<model::AccountRow>(value));
    return true;
  });
  scan(store::keys::version_accounts(shard_, name_),
       [&](std::string_view key, std::string_view value) {
         const auto found = store::keys::parse_version_account(key);
         tasks_.load_account(found.account.level, found.account.fairness_key,
                             parse<model::AccountRow>(value), found.version);
         return true;
       });
  scan(store::keys::type_accounts(shard_, name_),
       [&](std::string_view key, std::string_view value) {
         const auto found = store::keys::parse_type_account(key);
         const auto& at = found.account;
         tasks_.load_account(at.account.level, at.account.fairness_key,
                             parse<model::AccountRow>(value), at.version, found.group);
         return true;
       });
  scan(store::keys::limiters(shard_, name_), [&](std::string_view key, std::string_view value) {
    tasks_.load_limiter(store::keys::parse_limiter(key), parse<model::LimiterRow>(value));
    return true;
  });
  scan(store::keys::leases(shard_, name_), [&](std::string_view, std::string_view value) {
    tasks_.load_lease(parse<model::LeaseRow>(value).fairness_key());
    return true;
  });
  tasks_.loaded(now);
}

std::vector<queue::Numbered> StoredQueue::read(const std::string& version, uint32_t level,
                                               const std::string& key, TaskSeq from, size_t max) {
  std::vector<queue::Numbered> found;
  const auto number = static_cast<uint8_t>(level);
  const bool is_pinned = !version.empty();
  const auto line = is_pinned ? store::keys::pinned_task_line(shard_, name_, version, number, key)
                              : store::keys::task_line(shard_, name_, number, key);
  const auto status = store_->scan(
      task_row(shard_, name_, {level, key, from, {version}}), line.end,
      [&](std::string_view row_key, std::string_view value) {
        const TaskSeq seq = is_pinned ? store::keys::parse_pinned_task(row_key).task.seq
                                      : store::keys::parse_task(row_key).seq;
        found.push_back(task_from_row(seq, parse<model::TaskRow>(value)));
        return found.size() < max;
      });
  FL_ASSERT(status.ok(), "the store can be read");
  return found;
}

std::string StoredQueue::account_row(const queue::RowChange& change) const {
  const auto level = static_cast<uint8_t>(change.level);
  if (change.group != 0) {
    return store::keys::type_account(shard_, name_, change.group, change.version, level,
                                     change.key);
  }
  if (!change.version.empty()) {
    return store::keys::version_account(shard_, name_, change.version, level, change.key);
  }
  return store::keys::account(shard_, name_, level, change.key);
}

void StoredQueue::add_rows(store::WriteBatch* batch) {
  for (auto& change : tasks_.take_rows()) {
    std::string key;
    switch (change.table) {
      case queue::RowChange::Table::kAccount:
        key = account_row(change);
        break;
      case queue::RowChange::Table::kLimiter:
        key = store::keys::limiter(shard_, name_, change.key);
        break;
      case queue::RowChange::Table::kState:
        key = store::keys::queue_state(shard_, name_);
        break;
    }
    if (change.value.has_value()) {
      batch->put(std::move(key), std::move(*change.value));
    } else {
      batch->erase(std::move(key));
    }
  }
  add_rules(batch);
}

void StoredQueue::add_rules(store::WriteBatch* batch) {
  if (!tasks_.rules_changed()) return;
  batch->put(store::keys::queue_rules(shard_, name_), model::stable_bytes(tasks_.take_rules()));
}

bool StoredQueue::has_task_at(const queue::Place& place) const {
  if (tasks_.is_reserved(place)) return true;
  const auto row = store_->get(task_row(shard_, name_, place));
  FL_ASSERT(row.ok(), "the store can be read");
  return row->has_value();
}

std::vector<queue::Waiting> StoredQueue::tasks_of(const std::string& key) {
  std::vector<queue::Waiting> waiting;
  for (uint32_t level = 1; level <= tasks_.levels(); ++level) {
    for (const auto& task : read({}, level, key, TaskSeq(0), std::numeric_limits<size_t>::max())) {
      waiting.push_back(waiting_at({level, key, task.seq}, task.task));
    }
  }
  for (auto& task : pinned_tasks()) {
    if (task.place.key == key) waiting.push_back(std::move(task));
  }
  for (auto& task : shared_tasks_of(key)) waiting.push_back(std::move(task));
  return waiting;
}

// Which line a key shares is known by its name, and whose a task is by its row.
std::vector<queue::Waiting> StoredQueue::shared_tasks_of(const std::string& key) {
  std::vector<queue::Waiting> waiting;
  const auto line = queue::shared_line(key);
  if (queue::is_shared_line(key) || !tasks_.has_key(line)) return waiting;
  for (uint32_t level = 1; level <= tasks_.levels(); ++level) {
    const auto range = store::keys::task_line(shard_, name_, static_cast<uint8_t>(level), line);
    const auto status =
        store_->scan(range.begin, range.end, [&](std::string_view row_key, std::string_view value) {
          const auto row = parse<model::TaskRow>(value);
          if (row.priority().fairness_key() != key) return true;
          const auto seq = store::keys::parse_task(row_key).seq;
          waiting.push_back(waiting_at({level, line, seq}, task_from_row(seq, row).task));
          return true;
        });
    FL_ASSERT(status.ok(), "the store can be read");
  }
  return waiting;
}

std::optional<queue::KeyView> StoredQueue::key_view(const std::string& key, TimeNs now) {
  auto view = tasks_.key_view(key, now);
  const auto shared = shared_tasks_of(key);
  if (shared.empty()) return view;
  const auto line = queue::shared_line(key);
  if (!view.has_value()) {
    // What holds its next task, and what that weighs, is the line's. What it has had is not known.
    const auto of_line = tasks_.key_view(line, now);
    view.emplace();
    view->key = key;
    view->waiting_by_level.resize(tasks_.levels());
    if (of_line.has_value()) {
      view->weight = of_line->weight;
      view->holds = of_line->holds;
      view->throttled_until = of_line->throttled_until;
    }
  }
  view->shared_line = line;
  for (const auto& one : shared) {
    ++view->waiting;
    ++view->waiting_by_level[one.place.level - 1];
    if (view->oldest_ns == 0 || one.task.created_ns < view->oldest_ns) {
      view->oldest_ns = one.task.created_ns;
    }
  }
  return view;
}

int64_t StoredQueue::tasks_before(const queue::Place& place, const std::string& key) {
  queue::Place first = place;
  first.seq = TaskSeq(0);
  int64_t before = 0;
  const auto status =
      store_->scan(task_row(shard_, name_, first), task_row(shard_, name_, place),
                   [&](std::string_view, std::string_view value) {
                     before += parse<model::TaskRow>(value).priority().fairness_key() == key;
                     return true;
                   });
  FL_ASSERT(status.ok(), "the store can be read");
  return before;
}

std::vector<queue::Waiting> StoredQueue::pinned_tasks() {
  std::vector<queue::Waiting> waiting;
  const auto range = store::keys::pinned_tasks(shard_, name_);
  const auto status =
      store_->scan(range.begin, range.end, [&](std::string_view key, std::string_view value) {
        const auto pinned = store::keys::parse_pinned_task(key);
        const auto& at = pinned.task;
        waiting.push_back(waiting_at({at.level, at.fairness_key, at.seq, {pinned.version}},
                                     task_from_row(at.seq, parse<model::TaskRow>(value)).task));
        return true;
      });
  FL_ASSERT(status.ok(), "the store can be read");
  return waiting;
}

std::vector<queue::Waiting> StoredQueue::all_tasks() {
  auto waiting = pinned_tasks();
  const auto range = store::keys::tasks(shard_, name_);
  const auto status =
      store_->scan(range.begin, range.end, [&](std::string_view key, std::string_view value) {
        const auto place = store::keys::parse_task(key);
        waiting.push_back(waiting_at({place.level, place.fairness_key, place.seq},
                                     task_from_row(place.seq, parse<model::TaskRow>(value)).task));
        return true;
      });
  FL_ASSERT(status.ok(), "the store can be read");
  return waiting;
}

}  // namespace fairlead::shard
