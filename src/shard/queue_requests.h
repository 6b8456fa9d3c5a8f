#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "admission/payload.h"
#include "queue/views.h"
#include "shard/requests.h"

// What doors may ask of a task queue, and what they get back.
namespace fairlead::shard {

// A queue that everyone polls; sticky queues belong to it.
struct QueueRef {
  NamespaceNum ns;
  model::TaskKind kind = model::WORKFLOW_TASK;
  std::string name;
};

struct PollerView {
  std::string identity;
  TimeNs last_access_ns = 0;
  std::optional<double> max_tasks_per_second;  // that its last poll asked for
  std::string about;                           // as its last poll said
};

struct OldestTask {
  std::string run;  // the key of its run
  ShardId shard;    // of the run
  int64_t number = 0;
  TimeNs created_ns = 0;
  std::string workflow_id;
  std::string run_id;
};

struct QueueView {
  enum class LimitSource { kApi, kWorker, kSystem };

  std::vector<PollerView> pollers;  // of the last five minutes
  std::vector<queue::LevelView> levels = std::vector<queue::LevelView>(queue::kLevelsDefault);
  uint32_t default_level = queue::kDefaultLevel;
  model::QueueRules rules;
  bool has_rules = false;  // somebody has set them
  double limit_per_second = 0;
  LimitSource limit_source = LimitSource::kSystem;
  bool is_limiting = false;  // a limit kept a task from a worker in the last half minute
  bool is_fair = true;       // the order of new tasks
  bool is_draining = false;  // tasks of an older order go first
  int64_t running = 0;
  size_t keys = 0;
  size_t throttled_keys = 0;
  double lag_max = 0;  // the largest distance of a waiting key from its ideal share, in tasks
  uint64_t sharing_lines =
      0;  // tasks, since it was loaded, of keys that came when there were too many
  TimeNs last_poll_ns = 0;
  size_t parked_polls = 0;
  std::optional<OldestTask> oldest;  // none while nothing waits
  struct Target {
    queue::TargetView tasks;
    size_t parked_polls = 0;  // that may take them
  };
  // Whom tasks wait for, or would: workers without a version, and of each version in use.
  std::vector<Target> targets;
};

// Changes the rules of a queue. `change` is called once, where the queue lives; if it refuses,
// nothing happens. The answer is the rules as they are then, durable and in force.
struct ChangeRules {
  QueueRef queue;
  absl::AnyInvocable<absl::Status(model::QueueRules& rules, TimeNs now)> change;
};

struct KeysRequest {
  QueueRef queue;
  enum class By { kName, kBacklog, kNamed };
  By by = By::kBacklog;
  std::string after;               // by name: those that follow it
  std::vector<std::string> named;  // exactly these; unknown ones are left out
  size_t max = 100;
};

struct KeysView {
  std::vector<queue::KeyView> keys;
  size_t total = 0;   // keys that the queue knows
  size_t recent = 0;  // how many dispatches KeyView::recent counts over
};

struct ListQueuesRequest {
  NamespaceNum ns;
};

struct QueueSummary {
  QueueRef queue;
  int64_t waiting = 0;
  int64_t running = 0;
  size_t keys = 0;
  size_t pollers = 0;
  bool is_paused = false;
};

// How long tasks waited, in seconds, in buckets that double: 1 ms, 2 ms, … 65 s, and beyond.
struct WaitHistogram {
  static constexpr size_t kBuckets = 18;
  std::array<uint64_t, kBuckets> counts{};
  double sum = 0;

  static double bound(size_t bucket) { return 0.001 * static_cast<double>(1ULL << bucket); }
  void add(DurationNs waited) {
    const double seconds = static_cast<double>(waited) / kSecond;
    size_t bucket = 0;
    while (bucket + 1 < kBuckets && seconds > bound(bucket)) ++bucket;
    ++counts[bucket];
    sum += seconds;
  }
};

// What a queue has done since it was loaded.
struct QueueCounts {
  uint64_t polls_with_task = 0;
  uint64_t polls_with_new_task = 0;  // that had not waited
  uint64_t polls_empty = 0;
  uint64_t added_to_backlog = 0;
  uint64_t added_without_poller = 0;  // nobody had polled for a while
  uint64_t dropped = 0;               // nobody wanted the task any more
  uint64_t sharing_lines = 0;         // tasks of keys that came when there were too many
  WaitHistogram waited;               // of tasks from the backlog
};

struct QueueMetrics {
  QueueRef queue;
  std::vector<queue::LevelView> levels;
  QueueCounts counts;
  size_t active_keys = 0;
  size_t throttled_keys = 0;
  double lag_max = 0;
  std::vector<queue::KeyView> top_keys;
};

// What admission says of a queue's tasks of every kind.
struct AdmissionRequest {
  NamespaceNum ns;
  std::string queue;
};

// Ends every task of a key that waits now: activities fail for good, workflows are terminated.
struct PurgeKey {
  QueueRef queue;
  std::string key;
  std::string reason;
  std::string identity;
};

struct Purged {
  int64_t tasks = 0;
};

// Why is it waiting? With an activity id: that activity; without: the run's workflow task.
struct ExplainRequest {
  RunRef run;
  std::string activity_id;
};

struct Explanation {
  enum class State {
    kNothingToDo,  // no such task: the run waits for something else, or is closed
    kWaiting,      // in a queue
    kRunning,      // a worker has it
    kBackingOff,   // waits for its next attempt
    kPaused,       // an operator has paused the activity
  };
  State state = State::kNothingToDo;
  QueueRef queue;
  std::string sticky_queue;  // not empty: it waits on a worker's own queue
  std::string version;       // of the only workers that may have it; empty: those without one
  uint32_t level = 0;
  model::Priority priority;  // merged with the workflow's
  double weight = 1;         // that counts
  bool is_weight_overridden = false;
  TimeNs since_ns = 0;         // waiting, running
  TimeNs next_attempt_ns = 0;  // backing off
  std::string worker_identity;
  queue::Standing standing;
  std::string shared_line;    // not empty: it waits in a line that its key shares with others
  int64_t others_before = 0;  // tasks of other keys before it in that line
  std::optional<model::QueueRules::Pause> queue_pause;
  std::optional<model::QueueRules::Pause> key_pause;
  std::optional<model::ActivityPause> pause;  // of the activity
  std::string admission;                      // the budget that holds the queue back, for people
  size_t parked_polls = 0;                    // of workers that may have it
  TimeNs last_poll_ns = 0;                    // 0: nobody has polled since the server started
  bool is_type_refused = false;               // workers poll, and none lately that takes its type
};

}  // namespace fairlead::shard
