#include "simulation/store_check.h"

#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/codec.h"
#include "base/assert.h"
#include "base/random.h"
#include "base/wire.h"
#include "history/callbacks.h"
#include "history/deadlines.h"
#include "history/durable.h"
#include "history/rebuild_testing.h"
#include "history/run.h"
#include "history/standalone.h"
#include "schedule/schedule.h"
#include "store/keys.h"

namespace fairlead::sim {

namespace {

namespace keys = store::keys;

template <typename Message>
Message parse(std::string_view bytes) {
  Message message;
  FL_ASSERT(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
            "a row of the store is of its table's type");
  return message;
}

// A place in a queue, however it was written down.
using Spot = std::tuple<int, std::string, uint32_t, uint64_t>;  // kind, queue, level, seq

class StoreChecker {
 public:
  StoreChecker(const store::Store& store, uint16_t shards, StoreCount* count)
      : store_(store), shards_(shards), count_(*count) {}

  std::string check() {
    for (uint16_t i = 0; i < shards_ && error_.empty(); ++i) read_tasks(ShardId(i));
    for (uint16_t i = 0; i < shards_ && error_.empty(); ++i) check_shard(ShardId(i));
    for (const auto& [spot, row] : tasks_) {
      fail(absl::StrCat("a task waits in queue ", std::get<1>(spot), " (level ", std::get<2>(spot),
                        ", seq ", std::get<3>(spot), ") that no open run points to: ",
                        uuid_from_bytes(row.run()), " ", row.scheduled_id()));
    }
    for (const auto& [queue, run, id] : leases_) {
      fail(absl::StrCat("queue ", queue, " counts activity ", id, " of run ", uuid_from_bytes(run),
                        " as running, which it is not"));
    }
    return error_;
  }

 private:
  void fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }

  template <typename Visit>
  void scan(const keys::Range& range, Visit visit) {
    const auto status =
        store_.scan(range.begin, range.end, [&](std::string_view key, std::string_view value) {
          visit(key, value);
          return true;
        });
    FL_ASSERT(status.ok(), "the simulated store can be read");
  }

  void read_tasks(ShardId shard) {
    scan(keys::tasks(shard), [&](std::string_view key, std::string_view value) {
      const auto task = keys::parse_task(key);
      tasks_[Spot{task.queue.type, task.queue.name, task.level, task.seq.value()}] =
          parse<model::TaskRow>(value);
      ++count_.tasks;
    });
    scan(keys::pinned_tasks(shard), [&](std::string_view key, std::string_view value) {
      const auto task = keys::parse_pinned_task(key).task;
      tasks_[Spot{task.queue.type, task.queue.name, task.level, task.seq.value()}] =
          parse<model::TaskRow>(value);
      ++count_.tasks;
    });
    scan(keys::leases(shard), [&](std::string_view key, std::string_view) {
      const auto lease = keys::parse_lease(key);
      leases_.insert({lease.queue.name, lease.run, lease.scheduled_event_id});
      ++count_.other;
    });
  }

  // The run's waiting task has its row. Found rows are taken away: what is left belongs to nobody.
  void claim(const std::string& run, model::TaskKind kind, const model::TaskPlace& place,
             int64_t scheduled_id, uint64_t stamp) {
    const auto found = tasks_.find(Spot{kind, place.queue().name(), place.level(), place.seq()});
    if (found == tasks_.end()) {
      fail(absl::StrCat("run ", run, " waits for task ", scheduled_id, ", which is in no queue"));
      return;
    }
    const auto& row = found->second;
    if (uuid_from_bytes(row.run()) != run || row.scheduled_id() != scheduled_id ||
        row.stamp() != stamp) {
      fail(absl::StrCat("task ", scheduled_id, " of run ", run, " has somebody else's place"));
    }
    tasks_.erase(found);
  }

  void check_shard(ShardId shard) {
    absl::btree_map<std::string, history::Run> runs;
    scan(keys::runs(shard), [&](std::string_view key, std::string_view value) {
      runs[std::string(key.substr(key.size() - 16))].state = parse<model::RunState>(value);
    });
    absl::btree_set<std::pair<TimeNs, std::string>> wakeups;
    scan(keys::wakeups(shard), [&](std::string_view key, std::string_view) {
      const auto row = keys::parse_wakeup(key);
      wakeups.insert({row.at, row.run});
      ++count_.wakeups;
    });
    scan(keys::letters(shard), [&](std::string_view, std::string_view) { ++count_.letters; });
    for (auto& [key, run] : runs) {
      ++count_.runs;
      count_.open_runs += run.is_open() ? 1 : 0;
      load_pending(shard, key, run);
      if (!run.is_open() && history::callback_deadline(run) != kNever) ++count_.callbacks;
      check_tasks(run);
      check_events(shard, key, run);
      const TimeNs armed = run.state.armed_ns();
      const TimeNs next = history::next_deadline(run);
      const std::string& id = run.state.run_id();
      if (next != kNever && (armed == 0 || armed > next)) {
        fail(absl::StrCat("run ", id, " sleeps past its next deadline"));
      }
      if (armed != 0 && wakeups.erase({armed, key}) == 0) {
        fail(absl::StrCat("run ", id, " has no wake-up row"));
      }
    }
    check_schedules(shard, &wakeups);
    if (!wakeups.empty()) {
      fail(absl::StrCat("a wake-up row belongs to nobody: run ",
                        uuid_from_bytes(wakeups.begin()->second)));
    }
    check_orphans(shard, runs);
  }

  // A schedule is woken in time, and what it waits to hear it has asked for. Its rows belong to it.
  void check_schedules(ShardId shard, absl::btree_set<std::pair<TimeNs, std::string>>* wakeups) {
    absl::btree_set<std::string> found;
    scan(keys::schedules(shard), [&](std::string_view row, std::string_view value) {
      const auto schedule = parse<model::Schedule>(value);
      const std::string& key = schedule.key();
      const std::string& id = schedule.schedule_id();
      ++count_.other;
      found.insert(key);
      if (row != keys::schedule(shard, key)) fail(absl::StrCat("schedule ", id, " is misplaced"));
      const TimeNs next = schedule::Step::next_look(schedule);
      if (schedule.armed_ns() != (next == kNever ? 0 : next)) {
        fail(absl::StrCat("schedule ", id, " sleeps past its next time"));
      }
      if (schedule.armed_ns() != 0) {
        if (wakeups->erase({schedule.armed_ns(), key}) == 0) {
          fail(absl::StrCat("schedule ", id, " has no wake-up row"));
        }
        --count_.wakeups;
        ++count_.other;
      }
      for (const auto& fire : schedule.open()) {
        const auto letter = store_.get(keys::letter(shard, key, fire.number()));
        const bool is_asked = letter.ok() && letter->has_value();
        if (!fire.is_started() && !is_asked) {
          fail(absl::StrCat("schedule ", id, " waits for ", fire.workflow_id(),
                            ", which nobody was asked for"));
        }
      }
    });
    auto range = keys::schedules(shard);
    range.begin[0] = range.end[0] = 'I';
    scan(range, [&](std::string_view, std::string_view key) {
      ++count_.other;
      if (!found.contains(std::string(key))) fail("the schedule of an id does not exist");
    });
    range.begin[0] = range.end[0] = 'H';
    scan(range, [&](std::string_view key, std::string_view) {
      ++count_.other;
      if (!found.contains(std::string(key.substr(3, 16)))) {
        fail("a line of history belongs to a schedule that does not exist");
      }
    });
  }

  void load_pending(ShardId shard, const std::string& key, history::Run& run) {
    const auto range = keys::pending(shard, key);
    scan(range, [&](std::string_view row_key, std::string_view value) {
      const char kind = row_key[range.begin.size()];
      // What was open at the end is for those who ask for it by name.
      if (run.state.has_no_pending() && kind != 'z') {
        fail(absl::StrCat("run ", run.state.run_id(), " has rows that it does not know of"));
      }
      // What became of an update can be asked after the end, and so can callbacks and what was
      // open.
      const bool is_kept = std::string_view("ubrz").find(kind) != std::string_view::npos;
      if (!is_kept) ++count_.pending;
      if (!run.is_open() && !is_kept)
        fail(absl::StrCat("closed run ", run.state.run_id(), " has pending rows"));
      switch (kind) {
        case 'a':
          return run.add_loaded(parse<model::ActivityState>(value));
        case 't':
          return run.add_loaded(parse<model::TimerState>(value));
        case 'u':
          return run.add_loaded(parse<model::UpdateState>(value));
        case 'c':
          return run.add_loaded(parse<model::ChildState>(value));
        case 'b':
          return run.add_loaded(parse<model::CallbackState>(value));
        case 'r':
          return run.add_loaded(parse<model::AttachedRequest>(value));
        case 'z':
          return;
        default:
          return run.add_loaded(parse<model::ExternalState>(value));
      }
    });
    const auto must_have_letter = [&](int64_t id) {
      const auto row = store_.get(keys::letter(shard, key, id));
      if (row.ok() && row->has_value()) return;
      fail(absl::StrCat("run ", run.state.run_id(), " waits for an answer to event ", id,
                        " and nobody was asked"));
    };
    for (const auto& [id, child] : run.children) {
      if (!child.is_started()) must_have_letter(id);
    }
    for (const auto& [id, external] : run.externals) must_have_letter(id);
  }

  void check_tasks(const history::Run& run) {
    if (!run.is_open()) return;
    const auto& state = run.state;
    const auto& task = state.workflow_task();
    // One of the second door that has failed rests before it waits again.
    const bool is_resting = history::is_durable(state) && task.available_ns() != 0;
    if (is_resting && task.has_place()) {
      fail(absl::StrCat("run ", state.run_id(), " has a task that rests and waits in a queue"));
    }
    if (state.has_workflow_task() && !run.has_started_task() && !is_resting) {
      claim(state.run_id(), model::WORKFLOW_TASK, task.place(), task.scheduled_id(), task.stamp());
    }
    for (const auto& [id, activity] : run.activities) {
      if (activity.started_ns() != 0 &&
          leases_.erase({activity.lease().queue(), uuid_to_bytes(state.run_id()), id}) == 0) {
        fail(absl::StrCat("activity ", id, " of run ", state.run_id(),
                          " runs and is not counted by its queue"));
      }
      if (activity.has_pause() && activity.place().seq() != 0) {
        fail(absl::StrCat("activity ", id, " of run ", state.run_id(), " is paused in a queue"));
      }
      if (activity.started_ns() != 0 || activity.backing_off() || activity.has_pause()) continue;
      claim(state.run_id(), model::ACTIVITY_TASK, activity.place(), id, activity.stamp());
    }
  }

  // The history has no gap, and the run is what its history says.
  void check_events(ShardId shard, const std::string& key, const history::Run& run) {
    const auto& state = run.state;
    const bool is_lone = history::is_standalone(state);  // its state tells more than its history
    history::Rebuild rebuild(history::identity_of(state));
    int64_t next = 1;
    scan(keys::events(shard, key), [&](std::string_view row_key, std::string_view value) {
      ++count_.other;
      if (row_key != keys::events(shard, key, next)) {
        fail(absl::StrCat("run ", state.run_id(), " has a gap before event ", next));
      }
      wire::Reader reader(value);
      while (reader.next()) {
        ++next;
        if (is_lone || history::is_durable(state)) continue;  // nobody resets those
        rebuild.apply(codec_.read_event(reader.raw()), static_cast<int64_t>(reader.raw().size()));
      }
    });
    if (next != state.next_event_id()) {
      fail(absl::StrCat("run ", state.run_id(), " has events up to ", next - 1, " and says ",
                        state.next_event_id() - 1));
    }
    if (is_lone || history::is_durable(state) || !history::is_told_completely(run)) return;
    const auto told = history::told_by_history(rebuild.run());
    const auto is = history::told_by_history(run);
    if (told != is) {
      fail(absl::StrCat("the history of run ", state.run_id(), " says\n", told, "\nand it is\n",
                        is));
    }
  }

  // Rows under the name of a run that does not exist, in the tables where its id follows the shard.
  void check_orphans(ShardId shard, const absl::btree_map<std::string, history::Run>& runs) {
    for (const char table : {'P', 'E', 'D'}) {
      auto range = keys::runs(shard);
      range.begin[0] = table;
      range.end[0] = table;
      scan(range, [&](std::string_view key, std::string_view) {
        const std::string run(key.substr(3, 16));
        if (table == 'D') ++count_.other;
        if (!runs.contains(run)) {
          fail(absl::StrCat("a row of table ", std::string(1, table), " belongs to run ",
                            uuid_from_bytes(run), ", which does not exist"));
        }
      });
    }
    for (const char table : {'C', 'B'}) {
      auto range = keys::runs(shard);
      range.begin[0] = table;
      range.end[0] = table;
      scan(range, [&](std::string_view, std::string_view value) {
        ++count_.other;
        if (!runs.contains(std::string(value))) {
          fail("the current run of a workflow's or an activity's id does not exist");
        }
      });
    }
  }

  const api::TemporalCodec codec_;
  const store::Store& store_;
  const uint16_t shards_;
  StoreCount& count_;
  absl::btree_set<std::tuple<std::string, std::string, int64_t>> leases_;  // queue, run, activity
  std::string error_;
  absl::btree_map<Spot, model::TaskRow> tasks_;
};

}  // namespace

std::string check_store(const store::Store& store, uint16_t shards, StoreCount* count) {
  return StoreChecker(store, shards, count).check();
}

}  // namespace fairlead::sim
