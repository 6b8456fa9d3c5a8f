#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/queue_name.h"
#include "base/strong.h"
#include "base/time.h"

// Every key of the store is made here and nowhere else.
//
// DO NOT CHANGE a key's bytes, a table's letter or their order: they are on people's disks. A new
// kind of row takes a new letter; another layout takes a new format version and a migration
// (kFormatVersion in rocksdb_store.h). keys_test.cc holds the golden bytes.
//
//   M name                                                    what the store knows about itself
//   N name                                                    a namespace
//   C shard:2 ns:4 workflow_id                                the current run of a workflow id
//   B shard:2 ns:4 activity_id                                the current run of a lone activity id
//   R shard:2 run:16                                          a run's state
//   P shard:2 run:16 'a' scheduled_event_id:8                 a pending activity of a run
//   P shard:2 run:16 't' started_event_id:8                   a pending timer of a run
//   P shard:2 run:16 'c' initiated_event_id:8                 a pending child of a run
//   P shard:2 run:16 'x' initiated_event_id:8                 a pending signal or cancel to another
//   P shard:2 run:16 'u' update_id                            an accepted update of a run
//   P shard:2 run:16 'b' number:8                             a callback of a run
//   P shard:2 run:16 'r' request_id                           a request that was left with a run
//   P shard:2 run:16 'z'                                      what was pending when the run closed
//   O shard:2 run:16 event_id:8                               what a run has to tell another run
//   E shard:2 run:16 first_event_id:8                         a batch of a run's history
//   D shard:2 run:16 text                                     a request id that a run has seen
//   I shard:2 ns:4 schedule_id                                the schedule of an id
//   J shard:2 schedule:16                                     a schedule
//   H shard:2 schedule:16 sequence:8                          a line of a schedule's history
//   W shard:2 at:8 run:16                                     a run wants to be woken at a time
//   T <queue> level:1 length:1 fairness_key seq:8             a waiting task
//   V <queue> length:2 version level:1 length:1 fairness_key seq:8
//                                                             a task that waits for a version
//   A <queue> level:1 fairness_key                            what a key has had in a level
//   F <queue> length:2 version level:1 fairness_key           the same, of workers of a version
//   G <queue> group:4 length:2 version level:1 fairness_key   the same, of types that some refuse
//   K <queue> fairness_key                                    when a key may be served again
//   L <queue> run:16 scheduled_event_id:8                     a task that a worker has
//   U <queue> slot:4                                          a dispatch that counts for a budget
//   Q <queue>                                                 a queue's rules
//   S <queue>                                                 a queue's changing state
//   Z ns:4 session_id                                         a worker session
//
// where <queue> is  shard:2 ns:4 type:1 length:2 name
//
// Integers are big-endian and unsigned, so the order of the bytes is the order of the numbers. A
// text that something follows is preceded by its length: without it queue "a" would run into queue
// "ab". A `run` is the 16 raw bytes of its UUID, and so is a `schedule`, which may stand in the
// place of a run where wake-ups and letters are concerned.
namespace fairlead::store::keys {

// The keys k with begin <= k < end.
struct Range {
  std::string begin;
  std::string end;

  friend bool operator==(const Range&, const Range&) = default;
};

std::string meta(std::string_view name);

std::string namespace_row(std::string_view name);
Range namespaces();

std::string current_run(ShardId shard, NamespaceNum ns, std::string_view workflow_id);
// Of an activity without a workflow: such ids and workflow ids do not know of each other.
std::string current_activity(ShardId shard, NamespaceNum ns, std::string_view activity_id);

std::string run(ShardId shard, std::string_view run);
Range runs(ShardId shard);

std::string pending_activity(ShardId shard, std::string_view run, int64_t scheduled_event_id);
std::string pending_timer(ShardId shard, std::string_view run, int64_t started_event_id);
std::string pending_child(ShardId shard, std::string_view run, int64_t initiated_event_id);
std::string pending_external(ShardId shard, std::string_view run, int64_t initiated_event_id);
std::string accepted_update(ShardId shard, std::string_view run, std::string_view update_id);
std::string callback(ShardId shard, std::string_view run, int64_t number);
std::string attached_request(ShardId shard, std::string_view run, std::string_view request_id);
std::string left_open(ShardId shard, std::string_view run);
Range pending(ShardId shard, std::string_view run);

std::string letter(ShardId shard, std::string_view run, int64_t event_id);
Range letters(ShardId shard);
Range letters(ShardId shard, std::string_view run);
struct Letter {
  std::string run;
  int64_t event_id = 0;
};
Letter parse_letter(std::string_view key);

std::string events(ShardId shard, std::string_view run, int64_t first_event_id);
Range events(ShardId shard, std::string_view run);

// What most keys begin with: a table's letter and a shard.
inline constexpr size_t kTableAndShardBytes = 3;

// How many bytes of a key are common to the rows that a run has in its table, where it has several:
// pending things, events, request ids. 0 for every other key.
size_t run_prefix_bytes(std::string_view key);

// How many bytes of a key say along which front it is written: one row of it goes right behind the
// last, as new runs do, or tasks that are taken in their order, or is the same once more. 0 for
// every other key, and for all that a range may begin with which is erased as a whole.
size_t front_bytes(std::string_view key);

std::string request_id(ShardId shard, std::string_view run, std::string_view request_id);
Range request_ids(ShardId shard, std::string_view run);

std::string schedule_name(ShardId shard, NamespaceNum ns, std::string_view schedule_id);
// The schedules of a namespace.
Range schedule_names(ShardId shard, NamespaceNum ns);
std::string parse_schedule_name(std::string_view key);
std::string schedule(ShardId shard, std::string_view schedule);
Range schedules(ShardId shard);
std::string schedule_event(ShardId shard, std::string_view schedule, int64_t sequence);
Range schedule_events(ShardId shard, std::string_view schedule);

std::string wakeup(ShardId shard, TimeNs at, std::string_view run);
Range wakeups(ShardId shard);
struct Wakeup {
  TimeNs at = 0;
  std::string run;
};
Wakeup parse_wakeup(std::string_view key);

std::string task(ShardId shard, const QueueName& queue, uint8_t level,
                 std::string_view fairness_key, TaskSeq seq);
// The tasks of one fairness key in one level.
Range task_line(ShardId shard, const QueueName& queue, uint8_t level,
                std::string_view fairness_key);
Range tasks(ShardId shard, const QueueName& queue);
Range tasks(ShardId shard);
struct Task {
  QueueName queue;
  uint8_t level = 0;
  std::string fairness_key;
  TaskSeq seq;
};
Task parse_task(std::string_view key);

// Tasks that are pinned to a version, whose workers alone may have them.
std::string pinned_task(ShardId shard, const QueueName& queue, std::string_view version,
                        uint8_t level, std::string_view fairness_key, TaskSeq seq);
Range pinned_task_line(ShardId shard, const QueueName& queue, std::string_view version,
                       uint8_t level, std::string_view fairness_key);
Range pinned_tasks(ShardId shard, const QueueName& queue);
Range pinned_tasks(ShardId shard);
struct PinnedTask {
  Task task;
  std::string version;
};
PinnedTask parse_pinned_task(std::string_view key);

std::string account(ShardId shard, const QueueName& queue, uint8_t level,
                    std::string_view fairness_key);
Range accounts(ShardId shard, const QueueName& queue);
struct Account {
  uint8_t level = 0;
  std::string fairness_key;
};
Account parse_account(std::string_view key);

std::string version_account(ShardId shard, const QueueName& queue, std::string_view version,
                            uint8_t level, std::string_view fairness_key);
Range version_accounts(ShardId shard, const QueueName& queue);
struct VersionAccount {
  Account account;
  std::string version;
};
VersionAccount parse_version_account(std::string_view key);

std::string type_account(ShardId shard, const QueueName& queue, uint32_t group,
                         std::string_view version, uint8_t level, std::string_view fairness_key);
Range type_accounts(ShardId shard, const QueueName& queue);
struct TypeAccount {
  VersionAccount account;
  uint32_t group = 0;
};
TypeAccount parse_type_account(std::string_view key);

std::string limiter(ShardId shard, const QueueName& queue, std::string_view fairness_key);
Range limiters(ShardId shard, const QueueName& queue);
std::string parse_limiter(std::string_view key);

std::string lease(ShardId shard, const QueueName& queue, std::string_view run,
                  int64_t scheduled_event_id);
Range leases(ShardId shard, const QueueName& queue);
Range leases(ShardId shard);
struct Lease {
  QueueName queue;
  std::string run;
  int64_t scheduled_event_id = 0;
};
Lease parse_lease(std::string_view key);

std::string dispatch(ShardId shard, const QueueName& queue, uint32_t slot);
Range dispatches(ShardId shard);
struct Dispatch {
  QueueName queue;
  uint32_t slot = 0;
};
Dispatch parse_dispatch(std::string_view key);

std::string queue_rules(ShardId shard, const QueueName& queue);
Range queue_rules(ShardId shard);
QueueName parse_queue_rules(std::string_view key);
std::string queue_state(ShardId shard, const QueueName& queue);

std::string session(NamespaceNum ns, std::string_view session_id);
Range sessions();
struct Session {
  NamespaceNum ns;
  std::string session_id;
};
Session parse_session(std::string_view key);

}  // namespace fairlead::store::keys
