#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "base/queue_name.h"
#include "queue/task_queue.h"
#include "shard/alarms.h"
#include "shard/requests.h"
#include "store/store.h"

namespace fairlead::shard {

// A poll without a task yet. Whoever holds it owes it an answer.
struct Poll {
  uint64_t number = 0;
  PollRequest request;
  std::variant<Reply<WorkflowTask>, Reply<ActivityTask>> reply;
  Alarms::Handle alarm{};

  void answer_empty();
};
using PollPtr = std::unique_ptr<Poll>;

// A queue of this shard with its place for the key of a row.
struct QueueAddress {
  QueueName name;      // the queue itself, sticky or not
  std::string normal;  // the queue that everyone polls; equal to name.name unless sticky
  bool is_sticky() const { return name.name != normal; }
};
QueueAddress address_of(NamespaceNum ns, model::TaskKind kind, const model::QueueTarget& target);

struct DirectQuery {
  ShardId shard;  // of the run
  std::string id;
};

// The task queues that a shard owns, the polls that wait for them, and the matching of the two.
//
// A sticky queue lives with the normal queue that it belongs to: a sticky poll that finds nothing
// of its own, or something more urgent on the normal queue, takes that.
class QueueHost {
 public:
  struct Env {
    ShardId shard;
    const store::Store* store;
    Clock* clock;
    Alarms* alarms;
    // A poll and a task came together: start it, or say through `stale` that nobody wants it.
    std::function<void(PollPtr, QueueAddress, queue::Waiting)> dispatch;
    // A poll and a direct query came together.
    std::function<void(PollPtr, QueueAddress, DirectQuery)> dispatch_query;
    // A sticky queue died with this task waiting in it.
    std::function<void(const queue::Task&)> sticky_lost;
  };
  explicit QueueHost(Env env) : env_(std::move(env)) {}

  // What became of a new task: a poll takes it, it waits at a place, or the sticky queue is dead.
  struct Offered {
    PollPtr poll;
    bool poll_from_sticky = false;
    std::optional<queue::Place> place;
  };
  Offered offer(const QueueAddress& queue, uint32_t level);
  // The row at a reserved place is written.
  void add(const QueueAddress& queue, queue::Place place, const queue::Task& task);
  // The task's row is (being) erased.
  void remove(const QueueAddress& queue, queue::Place place);

  // False if the sticky queue is dead.
  bool offer_query(const QueueAddress& queue, DirectQuery query);
  void withdraw_query(const QueueAddress& queue, const std::string& id);

  void poll(PollPtr poll);
  void cancel_poll(uint64_t number);
  // Answers to `dispatch`.
  void started(const QueueAddress& queue, queue::Place place);
  void stale(PollPtr poll, const QueueAddress& queue, queue::Place place);

  // A worker is going away: its polls end, its sticky queue is given up.
  void shut_down_worker(const ShutdownWorkerRequest& request);
  void answer_all_polls();
  // Forgets queues that nobody has used for a while.
  void sweep();

  int64_t backlog(const QueueAddress& queue);
  size_t parked() const { return parked_.size(); }

 private:
  struct Line {
    std::unique_ptr<queue::TaskQueue> tasks;
    absl::btree_set<uint64_t> polls;
    std::deque<DirectQuery> queries;
    TimeNs last_poll = 0;
    bool is_released = false;
  };
  struct Family {
    Line normal;
    absl::btree_map<std::string, Line> sticky;
    absl::btree_map<uint64_t, std::string> sticky_polls;  // parked, by number
  };

  Family& family(const QueueAddress& queue);
  Line& line(const QueueAddress& queue);
  queue::TaskQueue& tasks(const QueueAddress& queue);
  queue::TaskQueue& load(const QueueAddress& queue, Line& line);
  void page_in(const QueueAddress& queue, queue::TaskQueue& tasks);
  bool is_live(const Line& line) const;
  void park(PollPtr poll);
  // Takes a parked poll out of everywhere.
  PollPtr unpark(uint64_t number);
  PollPtr take_poll(const QueueAddress& queue);
  bool hand_out(PollPtr& poll, const QueueAddress& queue);
  void end_poll(uint64_t number);

  Env env_;
  absl::flat_hash_map<QueueName, std::unique_ptr<Family>> families_;  // by the normal queue
  absl::flat_hash_map<uint64_t, PollPtr> parked_;
  absl::btree_map<std::string, TimeNs> ended_workers_;
};

}  // namespace fairlead::shard
