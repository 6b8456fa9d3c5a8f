#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "base/strong.h"
#include "base/time.h"
#include "model/model.pb.h"
#include "queue/domain.h"
#include "queue/limits.h"
#include "queue/meter.h"
#include "queue/priority.h"
#include "queue/task.h"
#include "queue/views.h"
#include "queue/window.h"

namespace fairlead::queue {

// What a queue does where its rules say nothing, from the namespace's and the server's settings.
struct Settings {
  Order order = Order::kFair;
  model::QueueRules::Transition transition = model::QueueRules::DRAIN;
  bool is_prompt = false;
  double client_weight_max = Weight::kMax;
  bool ignore_client_weights = false;
  bool counts_running = true;  // whoever is handed a task says when it is done with it
  size_t tasks_in_memory_max = 512 * 1024;
  size_t keys_max = 4'000'000;       // beyond it new keys share lines
  uint32_t levels = kLevelsDefault;  // of new tasks; those that wait keep theirs
  uint32_t lower_level_share = 0;    // turns that a level leaves to those below it, in hundredths
  friend bool operator==(const Settings&, const Settings&) = default;
};

// A change of a row of the queue. No value: the row goes.
struct RowChange {
  enum class Table : uint8_t { kAccount, kLimiter, kState };
  Table table;
  uint32_t level = 0;
  std::string key;
  std::optional<std::string> value;
  // Of an account: the target's.
  std::string version = {};  // empty: workers without one
  uint32_t group = 0;
};

// Some of a queue's targets have something that may go now.
struct Source {
  std::string version;  // of its workers; empty: those without one
  uint32_t group = 0;   // of types; 0: nobody refuses them
  uint32_t level = 0;   // the most urgent one
};

// The waiting tasks of one queue, and whose turn it is.
//
//   level 1   key a  [4][9]               ┐
//             key b  [7]                  ├ lines: heads in memory, the rest in rows
//   level 3   key a  [1][2] … | 17 …      ┘ `|`: everything beyond is only on disk
//
// A task is for workers of one version, to which it is pinned, or it is of the default stream,
// which the routing sends to one target or divides among two. Every target, workers of a version or
// those without one, has levels and lines of its own: what a poll of it could be given, wherever it
// was meant for when it came. Targets never wait for each other; what limits a key or the whole
// queue is common to all of them. Rows know nothing of the routing, only of the stream.
//
// Workers may take some types only. As long as nobody is offered what it does not take, nothing
// comes of that. A list of types that once was met by another type has a slot, and types are told
// apart by which of these lists refuse them: a group is a bit for each such slot. Types of another
// group than 0 are a target of their own, beside that of the same version; so a worker that has a
// slot takes from some targets and not from others, and never meets what it does not take.
//
// Levels are strict, unless a share of each one's turns is left to those below it: then every level
// with something to do gives that part of its turns, evenly spread, to the next one that has, which
// does the same with what it is given. Inside a level a Domain says which key is next; inside a key
// the oldest task goes first. A key that is paused, throttled or at its cap takes no part, and
// delays nobody.
//
// A pick is a proposal: it ends with `started`, `put_back` or `remove`. What the queue has to
// remember of committed starts is handed out by `take_rows`, to be written in the batch of the
// start or before it.
class TaskQueue {
 public:
  TaskQueue(Backlog* backlog, Settings settings);

  // Loading, in this order: rules, rows, then `loaded`.
  void load_rules(const model::QueueRules& rules);
  void load_state(const model::QueueState& state);
  void load_task(uint32_t level, const std::string& key, const Numbered& task,
                 const std::string& version = {});
  // Accounts before tasks or after them; both ways are the same.
  void load_account(uint32_t level, const std::string& key, const model::AccountRow& row,
                    const std::string& version = {}, uint32_t group = 0);
  void load_limiter(const std::string& key, const model::LimiterRow& row);
  void load_lease(const std::string& key);
  void loaded(TimeNs now);

  // The name of the line that a new task of this key belongs to: the key itself, or one of a fixed
  // number of lines that keys share when the queue has as many as it may. A task is asked for under
  // this name everywhere else.
  std::string line_of(const std::string& key) const;
  // Gives out the next place of a line, for the row that is about to be written there.
  Place reserve(uint32_t level, const std::string& key, Stream stream = {});
  // The row at a reserved place is written: the task waits from now on.
  void add(const Place& place, const Task& task, TimeNs now);
  // Its row is gone, though no worker has it.
  void remove(const Place& place, TimeNs now);

  // For a worker of a version, or one without; of types of this group.
  std::optional<Waiting> pick(TimeNs now, std::string_view version = {}, uint32_t group = 0);
  void started(const Place& place, TimeNs now);
  void put_back(const Place& place, TimeNs now);
  bool is_picked(const Place& place) const { return picked_.contains(place.seq.value()); }
  // Its number was given out, and its row is being written.
  bool is_reserved(const Place& place) const { return reserved_.contains(place.seq.value()); }

  // A new task may go to a worker without waiting here: nothing that waits has a better claim.
  bool may_hand_over(uint32_t level, const std::string& key, TimeNs now, const Stream& stream = {});
  // It does: its key pays as for any other start.
  void hand_over(uint32_t level, const std::string& key, float weight, TimeNs now,
                 const Stream& stream = {});
  // The same, as a pick: it is charged now and ends with `started`.
  Place claim(uint32_t level, const std::string& key, float weight, TimeNs now,
              const Stream& stream = {});
  // Whether a hand-over leaves something to write.
  bool hand_over_leaves_rows(uint32_t level, const Stream& stream = {}) const;
  // A task of this key goes out elsewhere, on a queue of one worker's own.
  void charge(uint32_t level, const std::string& key, float weight, TimeNs now,
              const Stream& stream = {});
  // The version whose workers a task of this stream goes to now; empty: those without one.
  const std::string& target_of(const Stream& stream) const;

  // Lists of types that have a slot: they are told apart from now on, or no longer. What waits goes
  // to where it belongs then. The rules remember it; see `set_rules`.
  static constexpr uint32_t kTypeListsMax = 16;
  void set_type_list(uint32_t slot, const TypeList* list);
  std::optional<uint32_t> slot_of(const TypeList& list) const;
  // The lists with a slot that refuse this type.
  uint32_t group_of(TaskType type) const;
  // The slots in use, as bits.
  uint32_t type_slots() const;
  const absl::btree_map<uint32_t, TypeList>& type_lists() const { return type_lists_; }
  // Whether a task of this key that does not wait here may go to a worker: neither the queue nor
  // the key is paused or at its cap.
  bool may_run(const std::string& key) const;
  // New tasks of this key are held; what waited when that was ordered goes out.
  bool is_key_draining(const std::string& key) const;
  // A worker has a task of this key that did not go out here: it went out on a queue of its own, or
  // before this process began.
  void occupy(const std::string& key, TimeNs now);
  // A worker is done with a task of this key.
  void release(const std::string& key, TimeNs now);
  bool has_caps() const;

  // Rows that must be written before, or with, the next start.
  std::vector<RowChange> take_rows();
  // Better write them at once, even without a start.
  bool are_rows_due() const;

  const model::QueueRules& rules() const { return rules_; }
  // New rules; the queue adds what it has to remember. To be written as a row.
  const model::QueueRules& set_rules(model::QueueRules rules, TimeNs now);
  // The queue changed what it remembers with its rules since they were last taken.
  bool rules_changed() const { return rules_changed_; }
  const model::QueueRules& take_rules();
  void set_settings(const Settings& settings, TimeNs now);
  // Limit that workers ask for; nullopt: none do.
  void set_worker_limit(std::optional<double> per_second, TimeNs now);
  // Starts per second of the whole queue.
  std::optional<double> limit() const;

  // When something that is held back by time alone may go; kNever if nothing is.
  TimeNs next_release(TimeNs now);
  // The most urgent level with a task that may go now to a worker of this version; kLevelsMax + 1
  // if there is none.
  uint32_t next_level(TimeNs now, std::string_view version = {});
  // The groups of types with such a task, but for those that one of the lists in `slots` refuses.
  void find_sources(TimeNs now, std::string_view version, uint32_t slots,
                    std::vector<Source>* sources);

  int64_t size() const { return size_; }
  int64_t running() const { return running_; }
  size_t keys() const { return keys_.used(); }
  bool has_key(const std::string& name) const { return find_key(name) != kNone; }
  // As many as are asked for, and more while older tasks wait in them.
  uint32_t levels() const { return static_cast<uint32_t>(targets_[0]->lanes.size()); }
  size_t targets() const { return targets_.size(); }
  // Versions that something waits for.
  std::vector<std::string> waiting_versions() const;
  size_t throttled_keys() const { return throttled_keys_.size() + timed_.size(); }
  bool is_idle() const;
  size_t tasks_in_memory() const { return in_memory_; }

  // Over all targets.
  LevelView level_view(uint32_t level, TimeNs now);
  // Those that something waits for, or that the routing names.
  std::vector<TargetView> target_views() const;
  std::optional<KeyView> key_view(const std::string& key, TimeNs now) const;
  // Keys in order of their names after `after`; or those with most waiting.
  std::vector<KeyView> list_keys(const std::string& after, size_t max, TimeNs now) const;
  std::vector<KeyView> top_keys(size_t max, TimeNs now) const;
  size_t recent() const { return recent_.size(); }
  Standing standing(const Place& place, TimeNs now);
  // Where the task stands that has waited longest. Looks at every key.
  std::optional<Place> oldest() const;
  // The largest distance of a waiting key from its ideal share, in tasks. Looks at every key.
  double lag_max() const;
  bool is_limiting(TimeNs now) const {
    return limited_at_ != 0 && now - limited_at_ < 30 * kSecond;
  }

  // More comes than goes.
  bool grows(TimeNs now);
  // What new tasks are ordered by, and whether older ones still go by another order.
  Order order() const { return epochs_.back().order; }
  bool is_draining() const { return epochs_.size() > 1; }

  static constexpr size_t kRecent = 1000;

 private:
  static constexpr uint32_t kNone = ~0U;

  // A level of a target, in one number that is larger for less urgent levels.
  using LaneId = uint32_t;
  static constexpr int kTargetBits = 24;
  static LaneId lane_of(uint32_t level, uint32_t target) { return level << kTargetBits | target; }
  static uint32_t level_of(LaneId lane) { return lane >> kTargetBits; }
  static uint32_t target_in(LaneId lane) { return lane & ((1U << kTargetBits) - 1); }

  struct Line {
    uint32_t key = kNone;
    float head_weight = 0;
    uint64_t head = 0;
    TimeNs head_created = 0;
    uint64_t loaded_to = 0;  // every waiting task up to here is in the window
    Window window;
    uint32_t beyond = 0;  // waiting tasks after it
    uint32_t picks = 0;   // out for a start that is not committed yet
    int64_t count() const {
      return static_cast<int64_t>(beyond) + static_cast<int64_t>(window.size());
    }
  };
  struct Lane {
    Domain domain;
    Slab<Line> lines;                          // numbered as the domain's members
    absl::btree_map<int64_t, uint32_t> heads;  // by the second in which they were made
    int64_t waiting = 0;
    int64_t pinned = 0;  // of these, at most: rows that are gone are not missed here
    size_t epoch = 0;    // that it is at
    Meter added;
    Meter dispatched;
    // Hundredths of a turn that the levels below are due: with every pick that is out, and as far
    // as they are committed.
    int32_t owes = 0;
    int32_t owes_committed = 0;
  };
  struct Target {
    std::string version;                       // empty: workers without one
    uint32_t group = 0;                        // of types
    std::vector<std::unique_ptr<Lane>> lanes;  // by level
  };
  // Where the default stream goes.
  struct Routes {
    uint32_t current = 0;
    uint32_t ramping = 0;
    uint32_t percent = 0;  // of all slots, to the ramping one
    uint32_t of_slot(uint8_t slot) const {
      const bool ramps = slot != 0 ? slot <= percent : percent >= kSlots;
      return ramps ? ramping : current;
    }
    // One target has all of it.
    std::optional<uint32_t> only() const;
    std::vector<uint32_t> targets() const;
    friend bool operator==(const Routes&, const Routes&) = default;
  };
  // Whose turn a pick was.
  struct Turn {
    uint32_t level = 0;
    uint32_t target = 0;
    uint32_t share = 0;       // 0: nobody yields
    uint64_t yielded = 0;     // a bit for each level that left the turn to those below it
    bool is_counted = false;  // the level itself might have yielded
  };
  // The lines of a key, by level and target. Most keys have one.
  class Lines {
   public:
    struct Entry {
      LaneId lane;
      uint32_t line;
    };
    uint32_t find(LaneId lane) const {
      for (const auto& entry : entries_) {
        if (entry.lane == lane) return entry.line;
      }
      return kNone;
    }
    void add(LaneId lane, uint32_t line);
    void erase(LaneId lane);
    bool empty() const { return entries_.empty(); }
    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }

   private:
    absl::InlinedVector<Entry, 2> entries_;
  };
  struct Key {
    std::string name;
    Lines lines;
    int64_t arrival = 0;
    TimeNs ready = 0;  // under a limit of its own
    uint64_t dispatched = 0;
    uint32_t running = 0;
    uint16_t recent = 0;  // kRecent at most
    uint32_t place = 0;   // in a heap of arrivals
    uint8_t holds = 0;
    enum class Arrival : uint8_t { kNone, kThrottled, kDebt } has_arrival = Arrival::kNone;
    bool limiter_unsaved = false;
    bool has_limiter_row = false;
  };
  struct ByArrival {
    TaskQueue* queue;
    bool before(const HeapEntry& a, const HeapEntry& b) const {
      return static_cast<int64_t>(a.tag - b.tag) < 0;
    }
    void moved(uint32_t item, uint32_t place) const { queue->keys_[item].place = place; }
  };
  struct KeyHash {
    using is_transparent = void;
    const TaskQueue* queue;
    size_t operator()(uint32_t key) const { return (*this)(queue->keys_[key].name); }
    size_t operator()(std::string_view name) const { return absl::Hash<std::string_view>{}(name); }
  };
  struct KeyEqual {
    using is_transparent = void;
    const TaskQueue* queue;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t a, std::string_view b) const { return queue->keys_[a].name == b; }
    bool operator()(std::string_view a, uint32_t b) const { return queue->keys_[b].name == a; }
  };
  struct Picked {
    LaneId lane = 0;  // where it was charged
    Member line = 0;
    std::string home;  // the version whose workers it is for if it comes back
    Task task;
    double limit = 0;  // of the whole queue, when it was picked; 0: none
    int64_t cost = 0;  // on the key clock
    double own_limit = 0;
    bool is_running = false;
    bool is_charged = true;  // not if nobody waited who could be owed anything
    Turn turn = {};
  };
  struct Epoch {
    Order order = Order::kFair;
    uint64_t first_seq = 0;
    bool per_level = false;
    std::vector<std::array<int64_t, kLevelsMax>> tasks = {};  // by target and level
    int64_t& count(LaneId lane);
    int64_t count(LaneId lane) const;
    int64_t total(uint32_t target) const;
  };

  Lane& at(LaneId lane) { return *targets_[target_in(lane)]->lanes[level_of(lane) - 1]; }
  const Lane& at(LaneId lane) const {
    return *targets_[target_in(lane)]->lanes[level_of(lane) - 1];
  }
  void add_levels(uint32_t levels);
  // Calls `visit(lane)` for all lanes: by level, and in it by target.
  template <typename Visit>
  void for_each_lane(Visit visit) const;

  // Targets.
  uint32_t find_target(std::string_view version, uint32_t group = 0) const;
  uint32_t get_target(const std::string& version, uint32_t group = 0);
  bool is_in_use(uint32_t target) const;
  uint32_t next_level_of(uint32_t target) const;
  // Where a task goes; its lane is made if there is none.
  LaneId get_lane(uint32_t level, const Stream& stream);
  // kNone if nobody has ever been there.
  LaneId find_lane(uint32_t level, const Stream& stream) const;
  uint32_t route(const Stream& stream) const;
  void change_routes();
  bool moves_whole(const Routes& before) const;
  void move_line(LaneId from, Member member, LaneId to);
  // Versions of which every target is concerned.
  using Versions = absl::btree_set<std::string>;
  std::vector<uint32_t> targets_of(const Versions& versions) const;
  void recount(uint32_t level, uint32_t key, const Versions& versions,
               const std::vector<uint32_t>& targets);
  bool regroup(uint32_t level, uint32_t key, const std::vector<uint32_t>& targets);
  void recount_all(const Versions& versions, bool only_types);
  void send_home();
  struct Page {
    std::vector<Numbered> rows;
    uint64_t to = 0;  // these are all up to here
    bool is_last = false;
  };
  // Rows of a line, of all streams that feed it.
  Page read_line(LaneId lane, const std::string& key, TaskSeq from, size_t max) const;
  uint32_t find_key(std::string_view name) const;
  uint32_t get_key(const std::string& name);
  Member get_line(LaneId lane, uint32_t key);
  Weight weight_of(const Key& key, float asked) const;
  const model::QueueRules::KeyRule* rule_of(const Key& key) const;

  // Lines.
  bool load_window(LaneId lane, Line& line);
  void keep(LaneId lane, Line& line, const Numbered& task);
  void set_beyond(Line& line, uint32_t beyond);
  // How many tasks of a line may be in memory if all that have rows beyond get the same.
  size_t share() const;
  void trim_windows(size_t tasks_max);
  void keep_bound(Line& line);
  void keep_loaded(Line& line, const Numbered& task);
  void set_head(LaneId lane, Line& line, const Numbered* head);
  void find_head(LaneId lane, Line& line);
  Numbered pop_head(LaneId lane, Line& line);
  static void fetch_ahead(const Lane& owner, const Slab<Key>& keys);
  bool takes_part(LaneId lane, const Line& line) const;
  // Whether a drain of the key holds its task of this number.
  bool is_drained(const Key& key, uint64_t seq) const;
  void refresh(LaneId lane, Member member);
  void refresh_key(uint32_t key);
  void settle_picked(LaneId lane, Member member);
  void retire(LaneId lane, Member member);
  void retire_key(uint32_t key);
  void charge_lane(LaneId lane, uint32_t key, float weight);

  // Turns of levels.
  Turn take_turn(uint32_t target);
  void give_turn_back(const Turn& turn);
  void commit_turn(const Turn& turn);
  std::optional<Waiting> pick_from(const Turn& turn, TimeNs now);

  // Holds.
  void hold(uint32_t key, uint8_t why);
  void release_hold(uint32_t key, uint8_t why);
  bool conforms(const Key& key, TimeNs now) const;
  bool is_stopped(const Key& key) const;  // by a limit of zero
  void take_tokens(uint32_t key, Weight weight, TimeNs now, Picked* picked);
  void after_start(uint32_t key, TimeNs now);
  void place_arrival(uint32_t key, bool is_throttled, TimeNs now);
  void mark_limiter(uint32_t key);
  void release_due(TimeNs now);
  bool is_capped(const Key& key) const;
  void recheck_key(uint32_t key, TimeNs now);
  bool may_start(TimeNs now);
  bool has_room() const;
  bool may_begin(const std::string& name) const;
  void count_dispatch(LaneId lane, uint32_t key, TimeNs now);
  void give_back(const Picked& picked, TimeNs now);

  // Orders.
  Epoch& epoch_of(uint64_t seq);
  size_t epoch_index(uint64_t seq) const;
  size_t first_epoch_of(LaneId lane) const;
  bool is_in_play(LaneId lane, uint64_t seq) const;
  void leave_epoch(LaneId lane, uint64_t seq);
  void change_order();
  Order asked_order() const;
  bool is_prompt() const;
  void find_current_epochs();
  void rebuild(LaneId lane);
  void refresh_all(LaneId lane);
  void save_epochs();

  std::string state_row() const;
  KeyView view(uint32_t key, TimeNs now) const;

  Backlog* const backlog_;
  Settings settings_;
  model::QueueRules rules_;
  bool rules_changed_ = false;
  bool has_begun_anew_ = false;  // a level, since rows were last taken
  bool state_changed_ = false;

  std::vector<std::unique_ptr<Target>> targets_;  // the first: workers without a version
  // By group and version.
  absl::btree_map<uint32_t, std::map<std::string, uint32_t, std::less<>>> named_targets_;
  Routes routes_;
  absl::btree_map<uint32_t, TypeList> type_lists_;  // by slot
  bool is_loaded_ = false;
  Slab<Key> keys_;
  absl::flat_hash_set<uint32_t, KeyHash, KeyEqual> names_;
  absl::flat_hash_map<uint64_t, Picked> picked_;
  absl::btree_set<uint64_t> reserved_;  // places given out whose rows are still being written
  std::vector<Epoch> epochs_;           // the first is drained before the next
  uint64_t next_seq_ = 1;
  int64_t size_ = 0;
  size_t in_memory_ = 0;
  size_t deep_lines_ = 0;  // with rows beyond their windows
  size_t refills_ = 0;     // since windows were trimmed
  size_t load_share_ = Window::kTasksMax;

  Bucket bucket_;
  KeyClock key_clock_;
  // Keys whose arrival is ahead of the clock: too far to start, or not.
  Heap<ByArrival> throttled_keys_;
  Heap<ByArrival> debts_;
  absl::btree_set<std::pair<TimeNs, uint32_t>> timed_;
  std::vector<uint32_t> limiters_unsaved_;
  std::optional<double> worker_limit_;
  TimeNs limited_at_ = 0;
  int64_t running_ = 0;
  std::deque<uint32_t> recent_;
  // Until everything is loaded.
  std::vector<std::tuple<LaneId, uint32_t, Domain::Saved>> loading_;  // lane, key, account
};

template <typename Visit>
void TaskQueue::for_each_lane(Visit visit) const {
  for (uint32_t level = 1; level <= levels(); ++level) {
    for (uint32_t target = 0; target < targets_.size(); ++target) visit(lane_of(level, target));
  }
}

}  // namespace fairlead::queue
