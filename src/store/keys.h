#pragma once

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
//   R shard:2 run:16                                          a run's state
//   P shard:2 run:16 'a' scheduled_event_id:8                 a pending activity of a run
//   P shard:2 run:16 't' started_event_id:8                   a pending timer of a run
//   E shard:2 run:16 first_event_id:8                         a batch of a run's history
//   D shard:2 run:16 text                                     a request id that a run has seen
//   W shard:2 at:8 run:16                                     a run wants to be woken at a time
//   T shard:2 ns:4 type:1 length:2 name level:1 seq:8         a waiting task
//
// Integers are big-endian and unsigned, so the order of the bytes is the order of the numbers. A
// text that something follows is preceded by its length: without it queue "a" would run into queue
// "ab". A `run` is the 16 raw bytes of its UUID.
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

std::string run(ShardId shard, std::string_view run);
Range runs(ShardId shard);

std::string pending_activity(ShardId shard, std::string_view run, int64_t scheduled_event_id);
std::string pending_timer(ShardId shard, std::string_view run, int64_t started_event_id);
Range pending(ShardId shard, std::string_view run);

std::string events(ShardId shard, std::string_view run, int64_t first_event_id);
Range events(ShardId shard, std::string_view run);

std::string request_id(ShardId shard, std::string_view run, std::string_view request_id);
Range request_ids(ShardId shard, std::string_view run);

std::string wakeup(ShardId shard, TimeNs at, std::string_view run);
Range wakeups(ShardId shard);
struct Wakeup {
  TimeNs at = 0;
  std::string run;
};
Wakeup parse_wakeup(std::string_view key);

std::string task(ShardId shard, const QueueName& queue, uint8_t level, TaskSeq seq);
Range task_level(ShardId shard, const QueueName& queue, uint8_t level);
Range tasks(ShardId shard, const QueueName& queue);
Range tasks(ShardId shard);
struct Task {
  QueueName queue;
  uint8_t level = 0;
  TaskSeq seq;
};
Task parse_task(std::string_view key);

}  // namespace fairlead::store::keys
