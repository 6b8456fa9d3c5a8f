#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/queue_name.h"
#include "model/model.pb.h"
#include "shard/queue_observer.h"
#include "simulation/fair_level.h"
#include "store/store.h"

namespace fairlead::sim {

// How much there was to judge, over all seeds.
struct FairCount {
  uint64_t starts = 0;         // of tasks that waited
  uint64_t against_level = 0;  // while something less urgent or in another level waited
  uint64_t in_line = 0;        // with others of the same key behind them
  uint64_t passes = 0;         // of tasks that did not wait, or waited on a worker's own queue
  uint64_t stale = 0;
  uint64_t told_apart = 0;  // times that a queue has told other types apart than before
  FairLevel::Judged share;

  void add(const FairCount& other);
};

// Holds the order in which tasks start against what is promised of it.
//
// What exists is read from the batches as they are written: tasks that wait, tasks that workers
// have, rules. What is decided is heard from the queues, because what was decided first may be
// written last: a queue has as many picks out as it likes. Each is held against the other: nothing
// starts that was not picked or did not pay, and nothing is picked that does not wait.
//
//   levels   no task is picked while a more urgent one could go
//   lines    of a key's tasks in a level the oldest goes first
//   shares   see fair_level.h; through crashes, where lost writes are struck out
//   ways out every start is a pick, or its key was charged for it, in its level
//
// Types that a queue tells apart are orders of their own.
class FairWatch final : public shard::QueueObserver {
 public:
  explicit FairWatch(std::function<void(const std::string&)> complain)
      : complain_(std::move(complain)) {}

  void saw(const store::WriteBatch& batch);
  // Power was lost, and with it the last `lost` batches; the store has what is left.
  void read_again(const store::Store& store, uint16_t shards, uint64_t lost);

  void waits(const QueueName& queue, const queue::Place& place) override;
  void removed(const QueueName& queue, const queue::Place& place) override;
  void picked(const QueueName& queue, bool is_sticky, const queue::Place& place) override;
  void passed(const QueueName& normal, const Passing& task, bool is_in_turn) override;

  // Closes all accounts.
  FairCount count();

 private:
  struct Row {
    queue::Place place;
    double weight = 0;  // as its sender asked
    std::string run;
    int64_t scheduled_id = 0;
    uint64_t stamp = 0;
    uint64_t written = 0;
    uint64_t erased = 0;
  };
  struct Level {
    absl::btree_map<std::string, absl::btree_map<uint64_t, double>> lines;  // by key and number
    absl::btree_map<uint64_t, std::string> out;                             // picked
    FairLevel share;
    bool is_empty() const { return lines.empty() && out.empty(); }
  };
  // A group of types, and a level of it.
  using Lane = std::pair<uint32_t, uint32_t>;
  struct Pass {
    uint64_t number;
    Lane lane;
    std::string key;
    queue::TaskType type;
  };
  struct Queue {
    absl::btree_map<uint64_t, Row> rows;  // by number; erased ones too, as long as it is known here
    absl::btree_map<Lane, Level> levels;
    model::QueueRules rules;
    absl::btree_map<uint32_t, queue::TypeList> lists;  // of these rules
    std::deque<Pass> passes;                           // whose starts are not written yet

    Lane lane(uint32_t level, queue::TaskType type) const;
    Level& at(const queue::Place& place) { return levels[lane(place.level, place.stream.type)]; }
    // Where it was picked; null: it was not.
    Level* with_pick(uint64_t number);
  };
  using Name = std::tuple<uint32_t, uint8_t, std::string>;  // namespace, type, name
  // A task that a worker has been given, as the rows of its run say.
  struct Start {
    QueueName queue;  // that pays
    std::string run;
    int64_t scheduled_id = 0;
    uint64_t stamp = 0;  // a task that is offered anew has another one
    std::string key;
    uint32_t level = 0;
    queue::TaskType type;
  };

  Queue& queue(const QueueName& name) { return queues_[{name.ns.value(), name.type, name.name}]; }
  static double weight_of(const Queue& queue, const std::string& key, double asked);
  // Nothing holds the key back but what holds the whole queue.
  static bool is_free(const model::QueueRules& rules, const std::string& key);
  static bool has_holds(const model::QueueRules& rules);
  void settle(Level& level);
  void disturb_held(Queue& queue);
  void check_levels(const Queue& queue, Lane below, const std::string& who);
  // The rules say which types are told apart: true if these are others than before.
  static bool know_lists(Queue& queue);
  void move_tasks(Queue& queue);
  void put_task(std::string_view key, std::string_view value);
  std::vector<Start> find_starts(const store::WriteBatch& batch);
  void started(const Start& start, std::vector<std::pair<QueueName, uint64_t>>& erased);
  void pay(const Start& start, bool is_newest);
  void set_rules(std::string_view key, std::string_view value);
  void forget(Queue& queue, uint64_t written);

  const std::function<void(const std::string&)> complain_;
  uint64_t written_ = 0;  // batches
  uint64_t passes_ = 0;
  absl::btree_map<Name, Queue> queues_;
  absl::btree_map<std::string, std::string> with_workers_;  // by row: what says which task it is
  FairCount count_;
};

}  // namespace fairlead::sim
