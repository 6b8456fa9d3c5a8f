#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/queue_name.h"
#include "queue/task_queue.h"
#include "store/store.h"

namespace fairlead::shard {

// The key of a waiting task's row: of the default stream, or of the version that it is pinned to.
std::string task_row(ShardId shard, const QueueName& queue, const queue::Place& place);
queue::Place place_from(const model::TaskPlace& place);

// Where a workflow stands in every ramp: the same for all of its tasks, for ever.
uint8_t ramp_slot(std::string_view workflow_id);

// A task queue with its rows in the store.
class StoredQueue final : private queue::Backlog {
 public:
  // Reads what the store has of it.
  StoredQueue(const store::Store* store, ShardId shard, QueueName name,
              const queue::Settings& settings, TimeNs now);

  queue::TaskQueue& tasks() { return tasks_; }
  const queue::TaskQueue& tasks() const { return tasks_; }

  // Adds what the queue has to remember to the batch of a start, or to one written before it.
  void add_rows(store::WriteBatch* batch);
  // The rules' row, if the queue changed it.
  void add_rules(store::WriteBatch* batch);
  // Whether there is a task at this place, or will be.
  bool has_task_at(const queue::Place& place) const;
  // Every waiting task of a key, also in a line that it shares with others; or every one of a
  // shared line.
  std::vector<queue::Waiting> tasks_of(const std::string& key);
  // What is known of a key, by its own name, wherever its tasks wait.
  std::optional<queue::KeyView> key_view(const std::string& key, TimeNs now);
  // Tasks of a key that stand before a place in its line.
  int64_t tasks_before(const queue::Place& place, const std::string& key);
  // Every waiting task.
  std::vector<queue::Waiting> all_tasks();

 private:
  std::vector<queue::Numbered> read(const std::string& version, uint32_t level,
                                    const std::string& key, TaskSeq from, size_t max) override;
  std::string account_row(const queue::RowChange& change) const;
  // Tasks that are pinned to some version.
  std::vector<queue::Waiting> pinned_tasks();
  void load(TimeNs now);
  // Tasks of a key in the line that it may share with others.
  std::vector<queue::Waiting> shared_tasks_of(const std::string& key);

  const store::Store* const store_;
  const ShardId shard_;
  const QueueName name_;
  queue::TaskQueue tasks_;
};

}  // namespace fairlead::shard
