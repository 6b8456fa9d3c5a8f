#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "base/queue_name.h"
#include "queue/task_queue.h"
#include "shard/admission_desk.h"
#include "shard/alarms.h"
#include "shard/dispatch_counts.h"
#include "shard/queue_observer.h"
#include "shard/queue_requests.h"
#include "shard/requests.h"
#include "shard/session_desk.h"
#include "shard/stored_queue.h"
#include "store/store.h"

namespace fairlead::shard {

// A poll without a task yet. Whoever holds it owes it an answer.
struct Poll {
  uint64_t number = 0;
  PollRequest request;
  std::variant<Reply<WorkflowTask>, Reply<ActivityTask>> reply;
  Alarms::Handle alarm{};
  TimeNs arrived_ns = 0;
  int delta = 0;                    // advice to its worker: more polls, fewer, or nothing said
  std::optional<Permit> permit;     // while a task is on its way to it
  std::optional<SessionHold> hold;  // likewise, if that is one of a worker session

  void answer_empty(PollEnd why = PollEnd::kNothing);
};
using PollPtr = std::unique_ptr<Poll>;

// Polls that wait, by whose tasks they may take: those of a version, or those for workers without
// one; and of these, which types. A poll that may take both stands in both.
class ParkedPolls {
 public:
  // Polls are numbered as they come.
  enum class Order { kOldestFirst, kNewestFirst };

  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  void add(uint64_t number, const PollRequest& request);
  void erase(uint64_t number, const PollRequest& request);
  // Those that may take tasks of worker sessions.
  const absl::btree_set<uint64_t>& of_sessions() const { return of_sessions_; }
  std::vector<std::string> versions() const;
  // How many may take a task of this version and type.
  size_t count(const std::string& version, queue::TaskType type = {}) const;
  // The first of them; none of those whose list is one of `but`.
  std::optional<uint64_t> find(const std::string& version, queue::TaskType type, Order order,
                               const std::vector<queue::TypeListPtr>& but = {}) const;
  std::optional<uint64_t> find_any(Order order) const;

 private:
  struct Alike {
    queue::TypeListPtr types;
    absl::btree_set<uint64_t> polls;
  };
  using Crowd = std::vector<Alike>;  // few lists: workers of one program have the same

  absl::btree_set<uint64_t> all_;
  absl::btree_set<uint64_t> of_sessions_;
  absl::btree_map<std::string, Crowd> by_version_;
};

// A queue of this shard with its place for the key of a row.
struct QueueAddress {
  QueueName name;      // the queue itself, sticky or not
  std::string normal;  // the queue that everyone polls; equal to name.name unless sticky
  bool is_sticky() const { return name.name != normal; }
  // The queue that pays for, and rules, what goes out here.
  QueueAddress normal_queue() const { return {{name.ns, name.type, normal}, normal}; }
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
    // Rows of queues that belong to no step.
    std::function<void(const store::WriteBatch&)> write;
    // What the server and the namespace say about a queue.
    std::function<queue::Settings(const QueueName&)> settings;
    AdmissionDesk* desk;
    SessionDesk* sessions = nullptr;  // without it no poll takes tasks of sessions
    QueueObserver* observer = nullptr;
  };
  explicit QueueHost(Env env) : env_(std::move(env)) {}

  // What became of a new task: a poll takes it, it waits at a place, or the sticky queue is dead.
  struct Offered {
    PollPtr poll;
    bool poll_from_sticky = false;
    bool is_taken = false;         // by whoever made the task
    bool keeps_slot = false;       // it took the place of the task that its worker gives back
    std::string key;               // under which the queue counts it while a worker has it
    std::optional<Permit> permit;  // if it goes at once
    std::optional<SessionHold> hold;
    std::optional<queue::Waiting> claim;  // it is taken if the step is written here: see `claimed`
    std::optional<queue::Place> place;
  };
  // Where the step that makes a task is written.
  struct Writing {
    // The step's batch, if it is written before anything else happens to the queue.
    store::WriteBatch* batch = nullptr;
    // Later, where the queue lives, with a word to `claimed` before.
    bool is_here_later = false;
    bool is_elsewhere() const { return batch == nullptr && !is_here_later; }
  };
  // Whoever makes a task would like to take it along.
  struct Along {
    // The key of the workflow task that this worker gives back in the same step, if it has one.
    std::optional<std::string> gives_back;
    bool goes_on = false;  // the worker is in the middle of something and asks for more time
    std::string version;   // of whoever takes it
  };
  // A task whose start the queue has to remember waits if its step is written elsewhere.
  Offered offer(const QueueAddress& queue, const model::Priority& priority,
                const queue::Stream& stream, const std::optional<Along>& along, Writing writing);
  struct Handed {
    Permit permit;
    std::string key;                      // under which the queue counts it
    std::optional<queue::Waiting> claim;  // to be told by `claimed`
  };
  // Whether a task that its maker would like to keep may go to it at once: nothing that waits has a
  // better claim, and no limit or budget speaks against it. If so, its key has paid.
  std::optional<Handed> hand_over(const QueueAddress& queue, const model::Priority& priority,
                                  const queue::Stream& stream, const Along& along, Writing writing);
  // The step of a task that was handed over to its maker is about to be written, which nothing may
  // precede that concerns the queue.
  void claimed(const QueueAddress& queue, const queue::Waiting& claim, store::WriteBatch* batch);
  // Reads what the store has of the queue, unless that has been done.
  void open(const QueueAddress& queue) { load(queue, line(queue)); }
  // The row at a reserved place is written.
  void add(const QueueAddress& queue, const queue::Place& place, const queue::Task& task);
  // The task's row was erased.
  void remove(const QueueAddress& queue, const queue::Place& place);
  // Nobody took a task within its schedule-to-start timeout.
  void count_expired(const QueueAddress& queue);
  // A worker has had a task of this key since before this process began.
  void occupy(const QueueAddress& queue, const std::string& key);
  // A worker is done with a task of this key.
  void release(const QueueAddress& queue, const std::string& key);

  enum class QueryOffer { kTaken, kDead, kFull };
  // Dead: nobody polls the sticky queue. Full: as many wait as may.
  QueryOffer offer_query(const QueueAddress& queue, DirectQuery query);
  void withdraw_query(const QueueAddress& queue, const std::string& id);
  // A worker waits for something to do on this normal queue, or has done so a little while ago.
  bool was_polled_lately(const QueueAddress& queue);

  void poll(PollPtr poll);
  void cancel_poll(uint64_t number);
  // Answers to `dispatch`. A start is told before its batch is written, which nothing may precede
  // that concerns the queue.
  void started(const QueueAddress& queue, const queue::Waiting& waiting, store::WriteBatch* batch);
  void stale(PollPtr poll, const QueueAddress& queue, const queue::Place& place);

  // A budget may have room for the queue.
  void look_again(const QueueName& queue);

  // Questions and orders of operators, to normal queues.
  QueueView describe(const QueueAddress& queue);
  absl::StatusOr<model::QueueRules> change_rules(const QueueAddress& queue, ChangeRules& request);
  KeysView list_keys(const QueueAddress& queue, const KeysRequest& request);
  QueueSummary summarize(const QueueAddress& queue);
  // Tasks that wait for a worker, on sticky queues too.
  int64_t ready(const QueueAddress& queue);
  std::vector<queue::Waiting> tasks_of(const QueueAddress& queue, const std::string& key);
  void explain(const QueueAddress& queue, const queue::Place& place, Explanation* explanation);
  // Of the queues in use; of each the keys with most to do.
  std::vector<MeasuredQueue> metrics(size_t queues_max, size_t keys_max);
  // Queues of a namespace that are in use or have rows.
  std::vector<QueueAddress> queues(NamespaceNum ns) const;

  // A worker is going away: its polls end, its sticky queue is given up.
  void shut_down_worker(const ShutdownWorkerRequest& request);
  void answer_all_polls();
  // Forgets queues that nobody has used for a while.
  void sweep();

  int64_t backlog(const QueueAddress& queue) { return tasks(queue).size(); }
  size_t parked() const { return parked_.size(); }

 private:
  struct Poller {
    TimeNs last_access = 0;
    std::optional<double> max_tasks_per_second;
    std::string about;
  };
  struct WaitingQuery {
    DirectQuery query;
    QueryPlace place;
  };
  struct Line {
    std::unique_ptr<StoredQueue> stored;
    queue::Settings settings;
    ParkedPolls polls;
    std::deque<WaitingQuery> queries;
    TimeNs last_poll = 0;
    bool is_released = false;
    absl::btree_map<std::string, Poller> pollers;
    TimeNs limit_carried = 0;  // when a poll last asked for a limit
    TimeNs alarm_at = kNever;
    Alarms::Handle alarm{};
    queue::Bucket advice;
    QueueCounts counts;
    DispatchCounts dispatches;
    bool is_refused = false;  // a budget was full when the line last had something to hand out
    TimeNs session_free_at = kNever;  // a session that somebody else holds may be free then
    // Of polls with several sources: when it was each one's turn, in turns.
    absl::btree_map<std::pair<std::string, uint32_t>, uint64_t> turns;
    uint64_t last_turn = 0;
    // Which types polls came for lately, and when.
    absl::btree_map<queue::TypeList, TimeNs> types_polled;
    TimeNs all_types_polled = 0;
    TimeNs loaded_at = 0;
    // Of a normal queue only, for all of its family.
    AdmissionDesk::SeatPtr seat;
    TimeNs look_again_at = kNever;  // a budget may have room then
    PollEnd refused = PollEnd::kNothing;
  };
  struct Family {
    Line normal;
    absl::btree_map<std::string, Line> sticky;
    ParkedPolls sticky_polls;
  };

  Family& family(const QueueAddress& queue);
  Line& line(const QueueAddress& queue);
  StoredQueue& stored(const QueueAddress& queue) { return load(queue, line(queue)); }
  queue::TaskQueue& tasks(const QueueAddress& queue) { return stored(queue).tasks(); }
  StoredQueue& load(const QueueAddress& queue, Line& line);
  // Hands out all that may go, and sets an alarm for what may go later.
  void serve(const QueueAddress& queue);
  void serve(const QueueAddress& queue, const std::string& version);
  // A task of this stream is new there.
  void serve_new(const QueueAddress& queue, const queue::Stream& stream);
  void watch(const QueueAddress& queue, Line& line);
  void line_alarm(const QueueAddress& queue);
  void write_due_rows(StoredQueue& queue);
  void remember_poller(Line& line, const PollRequest& request);
  int advise(Line& line, const Poll& poll, TimeNs task_created, bool from_backlog);
  uint32_t level_of(const QueueAddress& queue, const model::Priority& priority);
  bool is_live(const Line& line) const;
  void park(PollPtr poll);
  std::optional<Permit> admit(const QueueAddress& queue);
  bool has_poll(const QueueAddress& queue);
  // One that may take what is for workers of this version and type. A worker's own queue has
  // neither.
  bool has_poll(const QueueAddress& queue, const std::string& version, queue::TaskType type);
  // Takes a parked poll out of everywhere.
  PollPtr unpark(uint64_t number);
  PollPtr take_poll(const QueueAddress& queue, const std::string& version, queue::TaskType type,
                    const std::vector<queue::TypeListPtr>& but = {});
  PollPtr take_any_poll(const QueueAddress& queue);
  PollPtr take_session_poll(const QueueAddress& queue, const std::string& stream,
                            queue::TaskType type, const std::vector<queue::TypeListPtr>& but);
  // The streams of worker sessions that something waits in.
  std::vector<std::string> waiting_sessions(const QueueAddress& queue);
  bool may_take(const QueueAddress& queue, const std::string& stream, const PollRequest& request);
  // How many parked polls may take tasks of this version or session, and type.
  size_t polls_for(const QueueAddress& queue, const std::string& version,
                   queue::TaskType type = {});
  ParkedPolls::Order order_of_polls(const QueueAddress& queue);
  std::optional<Handed> hand_over_sticky(const QueueAddress& queue, const model::Priority& priority,
                                         const queue::Stream& stream, const Along& along,
                                         Writing writing);
  // A task on its way past the queue.
  using Passing = QueueObserver::Passing;
  Handed hand(const QueueAddress& queue, Passing task, Permit permit, bool leaves_rows,
              Writing writing);
  void charge(const QueueAddress& queue, const Passing& task);
  void pass(const QueueAddress& queue, const Passing& task);
  queue::Waiting claim(const QueueAddress& queue, const Passing& task);
  void take_along(const QueueAddress& queue, const model::Priority& priority,
                  const queue::Stream& stream, const Along& along, Writing writing,
                  Offered* offered);
  // What a poll may be served from, the one whose turn it is first; none: nothing is there for it.
  std::vector<queue::Source> sources(const PollRequest& request, const QueueAddress& queue);
  uint32_t next_level(const PollRequest& request, const QueueAddress& queue);
  static void take_turn(Line& line, const std::vector<queue::Source>& from);
  std::optional<queue::Waiting> pick(Poll& poll, const QueueAddress& queue,
                                     const std::vector<queue::Source>& from);
  std::optional<queue::Waiting> pick_from(const QueueAddress& queue, const queue::Source& source);
  // Types.
  void remember_types(Line& line, const PollRequest& request);
  static TimeNs last_polled(const Line& line, const queue::TypeList& types);
  static TimeNs last_polled(const Line& line, queue::TaskType type);
  // A poll that takes these types met another: from now on it does not. False: there are too many.
  bool tell_apart(const QueueAddress& queue, const queue::TypeList& types);
  void set_type_list(const QueueAddress& queue, uint32_t slot, const queue::TypeList* types);
  void forget_types(const QueueAddress& queue, Line& line);
  bool hand_out(PollPtr& poll, const QueueAddress& queue);
  void end_poll(uint64_t number);

  Env env_;
  absl::flat_hash_map<QueueName, std::unique_ptr<Family>> families_;  // by the normal queue
  absl::flat_hash_map<uint64_t, PollPtr> parked_;
  absl::btree_map<std::string, TimeNs> ended_workers_;
};

}  // namespace fairlead::shard
