#include "store/keys.h"

#include <limits>

#include "base/assert.h"

namespace fairlead::store::keys {
namespace {

// DO NOT CHANGE: on disk.
constexpr char kMeta = 'M';
constexpr char kNamespace = 'N';
constexpr char kCurrentRun = 'C';
constexpr char kCurrentActivity = 'B';
constexpr char kRun = 'R';
constexpr char kPending = 'P';
constexpr char kLetter = 'O';
constexpr char kEvents = 'E';
constexpr char kRequestId = 'D';
constexpr char kScheduleName = 'I';
constexpr char kSchedule = 'J';
constexpr char kScheduleEvent = 'H';
constexpr char kWakeup = 'W';
constexpr char kTask = 'T';
constexpr char kPinnedTask = 'V';
constexpr char kAccount = 'A';
constexpr char kVersionAccount = 'F';
constexpr char kTypeAccount = 'G';
constexpr char kLimiter = 'K';
constexpr char kLease = 'L';
constexpr char kDispatch = 'U';
constexpr char kQueueRules = 'Q';
constexpr char kQueueState = 'S';
constexpr char kSession = 'Z';
constexpr char kActivity = 'a';
constexpr char kTimer = 't';
constexpr char kChild = 'c';
constexpr char kExternal = 'x';
constexpr char kUpdate = 'u';
constexpr char kCallback = 'b';
constexpr char kAttachedRequest = 'r';
constexpr char kLeftOpen = 'z';

constexpr size_t kRunBytes = 16;

class Builder {
 public:
  Builder(char table, size_t size_hint) {
    key_.reserve(size_hint);
    key_.push_back(table);
  }

  template <typename Unsigned>
  Builder& number(Unsigned value) {
    for (int shift = static_cast<int>(sizeof(Unsigned)) * 8 - 8; shift >= 0; shift -= 8) {
      key_.push_back(static_cast<char>(value >> shift));
    }
    return *this;
  }
  Builder& id(int64_t value) {
    FL_ASSERT(value >= 0, "a negative number would sort after all others");
    return number(static_cast<uint64_t>(value));
  }
  Builder& shard(ShardId shard) { return number(shard.value()); }
  Builder& run(std::string_view run) {
    FL_ASSERT(run.size() == kRunBytes, "a run in a key is the 16 bytes of its UUID");
    return text(run);
  }
  Builder& text(std::string_view text) {
    key_.append(text);
    return *this;
  }
  Builder& queue(const QueueName& queue) {
    FL_ASSERT(queue.name.size() <= std::numeric_limits<uint16_t>::max(),
              "the doors limit a queue's name far below this");
    number(queue.ns.value()).number(queue.type);
    return number(static_cast<uint16_t>(queue.name.size())).text(queue.name);
  }

  std::string key() { return std::move(key_); }
  // Everything that starts with what was built. The last byte that is not 0xff is raised by one; a
  // table's letter is one, so there always is such a byte.
  Range prefix() {
    Range range{key_, key_};
    while (range.end.back() == '\xff') range.end.pop_back();
    ++range.end.back();
    return range;
  }

 private:
  std::string key_;
};

// Takes a key apart again. The store checksums its rows: a key of the wrong shape is a mistake of
// ours, not of the disk.
class Parser {
 public:
  Parser(std::string_view key, char table) : rest_(key) {
    FL_ASSERT(!key.empty() && key.front() == table, "this key belongs to another table");
    rest_.remove_prefix(1);
  }

  template <typename Unsigned>
  Unsigned number() {
    uint64_t value = 0;
    for (const char c : text(sizeof(Unsigned))) value = value << 8 | static_cast<uint8_t>(c);
    return static_cast<Unsigned>(value);
  }
  std::string_view text(size_t size) {
    FL_ASSERT(rest_.size() >= size, "the key is too short");
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  std::string_view rest() const { return rest_; }
  void end() const { FL_ASSERT(rest_.empty(), "the key is too long"); }

 private:
  std::string_view rest_;
};

Builder of_run(char table, ShardId shard, std::string_view run, size_t more) {
  Builder builder(table, 1 + sizeof(uint16_t) + kRunBytes + more);
  builder.shard(shard).run(run);
  return builder;
}

Builder of_queue(char table, ShardId shard, const QueueName& queue, size_t more) {
  Builder builder(table, 10 + queue.name.size() + more);
  builder.shard(shard).queue(queue);
  return builder;
}

Builder of_line(ShardId shard, const QueueName& queue, uint8_t level, std::string_view key) {
  FL_ASSERT(key.size() <= std::numeric_limits<uint8_t>::max(),
            "the doors limit a fairness key far below this");
  auto builder = of_queue(kTask, shard, queue, 10 + key.size());
  builder.number(level).number(static_cast<uint8_t>(key.size())).text(key);
  return builder;
}

Builder of_version(char table, ShardId shard, const QueueName& queue, std::string_view version,
                   size_t more) {
  FL_ASSERT(version.size() <= std::numeric_limits<uint16_t>::max(),
            "the doors limit a version far below this");
  auto builder = of_queue(table, shard, queue, 2 + version.size() + more);
  builder.number(static_cast<uint16_t>(version.size())).text(version);
  return builder;
}

Builder of_pinned_line(ShardId shard, const QueueName& queue, std::string_view version,
                       uint8_t level, std::string_view key) {
  FL_ASSERT(key.size() <= std::numeric_limits<uint8_t>::max(),
            "the doors limit a fairness key far below this");
  auto builder = of_version(kPinnedTask, shard, queue, version, 10 + key.size());
  builder.number(level).number(static_cast<uint8_t>(key.size())).text(key);
  return builder;
}

QueueName parse_queue(Parser& parser) {
  parser.number<uint16_t>();
  QueueName queue;
  queue.ns = NamespaceNum(parser.number<uint32_t>());
  queue.type = parser.number<uint8_t>();
  queue.name = parser.text(parser.number<uint16_t>());
  return queue;
}

}  // namespace

std::string meta(std::string_view name) { return Builder(kMeta, 1 + name.size()).text(name).key(); }

std::string namespace_row(std::string_view name) {
  return Builder(kNamespace, 1 + name.size()).text(name).key();
}
Range namespaces() { return Builder(kNamespace, 1).prefix(); }

std::string current_run(ShardId shard, NamespaceNum ns, std::string_view workflow_id) {
  Builder builder(kCurrentRun, 7 + workflow_id.size());
  return builder.shard(shard).number(ns.value()).text(workflow_id).key();
}

std::string current_activity(ShardId shard, NamespaceNum ns, std::string_view activity_id) {
  Builder builder(kCurrentActivity, 7 + activity_id.size());
  return builder.shard(shard).number(ns.value()).text(activity_id).key();
}

std::string run(ShardId shard, std::string_view run) { return of_run(kRun, shard, run, 0).key(); }
Range runs(ShardId shard) { return Builder(kRun, 3).shard(shard).prefix(); }

std::string pending_activity(ShardId shard, std::string_view run, int64_t scheduled_event_id) {
  return of_run(kPending, shard, run, 9).number(kActivity).id(scheduled_event_id).key();
}
std::string pending_timer(ShardId shard, std::string_view run, int64_t started_event_id) {
  return of_run(kPending, shard, run, 9).number(kTimer).id(started_event_id).key();
}
std::string pending_child(ShardId shard, std::string_view run, int64_t initiated_event_id) {
  return of_run(kPending, shard, run, 9).number(kChild).id(initiated_event_id).key();
}

std::string pending_external(ShardId shard, std::string_view run, int64_t initiated_event_id) {
  return of_run(kPending, shard, run, 9).number(kExternal).id(initiated_event_id).key();
}

std::string accepted_update(ShardId shard, std::string_view run, std::string_view update_id) {
  return of_run(kPending, shard, run, 1 + update_id.size()).number(kUpdate).text(update_id).key();
}

std::string callback(ShardId shard, std::string_view run, int64_t number) {
  return of_run(kPending, shard, run, 9).number(kCallback).id(number).key();
}

std::string attached_request(ShardId shard, std::string_view run, std::string_view request_id) {
  return of_run(kPending, shard, run, 1 + request_id.size())
      .number(kAttachedRequest)
      .text(request_id)
      .key();
}

std::string left_open(ShardId shard, std::string_view run) {
  return of_run(kPending, shard, run, 1).number(kLeftOpen).key();
}

std::string letter(ShardId shard, std::string_view run, int64_t event_id) {
  return of_run(kLetter, shard, run, 8).id(event_id).key();
}

Range letters(ShardId shard) { return Builder(kLetter, 3).shard(shard).prefix(); }

Range letters(ShardId shard, std::string_view run) {
  return of_run(kLetter, shard, run, 0).prefix();
}

Letter parse_letter(std::string_view key) {
  Parser parser(key, kLetter);
  parser.number<uint16_t>();
  Letter letter;
  letter.run = parser.text(kRunBytes);
  letter.event_id = static_cast<int64_t>(parser.number<uint64_t>());
  parser.end();
  return letter;
}

Range pending(ShardId shard, std::string_view run) {
  return of_run(kPending, shard, run, 0).prefix();
}

std::string events(ShardId shard, std::string_view run, int64_t first_event_id) {
  return of_run(kEvents, shard, run, 8).id(first_event_id).key();
}
Range events(ShardId shard, std::string_view run) {
  return of_run(kEvents, shard, run, 0).prefix();
}

size_t run_prefix_bytes(std::string_view key) {
  constexpr size_t kBytes = sizeof(char) + sizeof(uint16_t) + kRunBytes;
  if (key.size() < kBytes) return 0;
  const char table = key.front();
  return table == kPending || table == kEvents || table == kRequestId ? kBytes : 0;
}

size_t front_bytes(std::string_view key) {
  constexpr size_t kOfRun = kTableAndShardBytes + kRunBytes;
  // Wake-ups have several fronts, minutes or days ahead of each other: a quarter of an hour each.
  constexpr size_t kTimeBytes = 3;
  if (key.size() <= kTableAndShardBytes) return 0;
  switch (key.front()) {
    case kRun:
    case kTask:
    case kPinnedTask:
    case kAccount:
    case kVersionAccount:
    case kLimiter:
    case kLease:
    case kQueueState:
      return kTableAndShardBytes;
    case kWakeup:
      return key.size() == kOfRun + sizeof(TimeNs) ? kTableAndShardBytes + kTimeBytes : 0;
    case kEvents:
      return key.size() == kOfRun + sizeof(int64_t) ? kTableAndShardBytes : 0;
    default:
      return 0;
  }
}

std::string request_id(ShardId shard, std::string_view run, std::string_view request_id) {
  return of_run(kRequestId, shard, run, request_id.size()).text(request_id).key();
}
Range request_ids(ShardId shard, std::string_view run) {
  return of_run(kRequestId, shard, run, 0).prefix();
}

std::string schedule_name(ShardId shard, NamespaceNum ns, std::string_view schedule_id) {
  Builder builder(kScheduleName, 7 + schedule_id.size());
  return builder.shard(shard).number(ns.value()).text(schedule_id).key();
}
Range schedule_names(ShardId shard, NamespaceNum ns) {
  return Builder(kScheduleName, 7).shard(shard).number(ns.value()).prefix();
}
std::string parse_schedule_name(std::string_view key) {
  Parser parser(key, kScheduleName);
  parser.number<uint16_t>();
  parser.number<uint32_t>();
  return std::string(parser.rest());
}
std::string schedule(ShardId shard, std::string_view schedule) {
  return of_run(kSchedule, shard, schedule, 0).key();
}
Range schedules(ShardId shard) { return Builder(kSchedule, 3).shard(shard).prefix(); }
std::string schedule_event(ShardId shard, std::string_view schedule, int64_t sequence) {
  return of_run(kScheduleEvent, shard, schedule, 8).id(sequence).key();
}
Range schedule_events(ShardId shard, std::string_view schedule) {
  return of_run(kScheduleEvent, shard, schedule, 0).prefix();
}

std::string wakeup(ShardId shard, TimeNs at, std::string_view run) {
  return Builder(kWakeup, 27).shard(shard).id(at).run(run).key();
}
Range wakeups(ShardId shard) { return Builder(kWakeup, 3).shard(shard).prefix(); }
Wakeup parse_wakeup(std::string_view key) {
  Parser parser(key, kWakeup);
  parser.number<uint16_t>();
  Wakeup wakeup;
  wakeup.at = static_cast<TimeNs>(parser.number<uint64_t>());
  wakeup.run = parser.text(kRunBytes);
  parser.end();
  return wakeup;
}

std::string task(ShardId shard, const QueueName& queue, uint8_t level,
                 std::string_view fairness_key, TaskSeq seq) {
  return of_line(shard, queue, level, fairness_key).number(seq.value()).key();
}
Range task_line(ShardId shard, const QueueName& queue, uint8_t level,
                std::string_view fairness_key) {
  return of_line(shard, queue, level, fairness_key).prefix();
}
Range tasks(ShardId shard, const QueueName& queue) {
  return of_queue(kTask, shard, queue, 0).prefix();
}
Range tasks(ShardId shard) { return Builder(kTask, 3).shard(shard).prefix(); }
Task parse_task(std::string_view key) {
  Parser parser(key, kTask);
  Task task;
  task.queue = parse_queue(parser);
  task.level = parser.number<uint8_t>();
  task.fairness_key = parser.text(parser.number<uint8_t>());
  task.seq = TaskSeq(parser.number<uint64_t>());
  parser.end();
  return task;
}

std::string pinned_task(ShardId shard, const QueueName& queue, std::string_view version,
                        uint8_t level, std::string_view fairness_key, TaskSeq seq) {
  return of_pinned_line(shard, queue, version, level, fairness_key).number(seq.value()).key();
}
Range pinned_task_line(ShardId shard, const QueueName& queue, std::string_view version,
                       uint8_t level, std::string_view fairness_key) {
  return of_pinned_line(shard, queue, version, level, fairness_key).prefix();
}
Range pinned_tasks(ShardId shard, const QueueName& queue) {
  return of_queue(kPinnedTask, shard, queue, 0).prefix();
}
Range pinned_tasks(ShardId shard) { return Builder(kPinnedTask, 3).shard(shard).prefix(); }
PinnedTask parse_pinned_task(std::string_view key) {
  Parser parser(key, kPinnedTask);
  PinnedTask pinned;
  pinned.task.queue = parse_queue(parser);
  pinned.version = parser.text(parser.number<uint16_t>());
  pinned.task.level = parser.number<uint8_t>();
  pinned.task.fairness_key = parser.text(parser.number<uint8_t>());
  pinned.task.seq = TaskSeq(parser.number<uint64_t>());
  parser.end();
  return pinned;
}

std::string account(ShardId shard, const QueueName& queue, uint8_t level,
                    std::string_view fairness_key) {
  return of_queue(kAccount, shard, queue, 1 + fairness_key.size())
      .number(level)
      .text(fairness_key)
      .key();
}
Range accounts(ShardId shard, const QueueName& queue) {
  return of_queue(kAccount, shard, queue, 0).prefix();
}
Account parse_account(std::string_view key) {
  Parser parser(key, kAccount);
  parse_queue(parser);
  Account account;
  account.level = parser.number<uint8_t>();
  account.fairness_key = parser.rest();
  return account;
}

std::string version_account(ShardId shard, const QueueName& queue, std::string_view version,
                            uint8_t level, std::string_view fairness_key) {
  return of_version(kVersionAccount, shard, queue, version, 1 + fairness_key.size())
      .number(level)
      .text(fairness_key)
      .key();
}
Range version_accounts(ShardId shard, const QueueName& queue) {
  return of_queue(kVersionAccount, shard, queue, 0).prefix();
}
VersionAccount parse_version_account(std::string_view key) {
  Parser parser(key, kVersionAccount);
  parse_queue(parser);
  VersionAccount found;
  found.version = parser.text(parser.number<uint16_t>());
  found.account.level = parser.number<uint8_t>();
  found.account.fairness_key = parser.rest();
  return found;
}

std::string type_account(ShardId shard, const QueueName& queue, uint32_t group,
                         std::string_view version, uint8_t level, std::string_view fairness_key) {
  FL_ASSERT(version.size() <= std::numeric_limits<uint16_t>::max(),
            "the doors limit a version far below this");
  return of_queue(kTypeAccount, shard, queue, 7 + version.size() + fairness_key.size())
      .number(group)
      .number(static_cast<uint16_t>(version.size()))
      .text(version)
      .number(level)
      .text(fairness_key)
      .key();
}
Range type_accounts(ShardId shard, const QueueName& queue) {
  return of_queue(kTypeAccount, shard, queue, 0).prefix();
}
TypeAccount parse_type_account(std::string_view key) {
  Parser parser(key, kTypeAccount);
  parse_queue(parser);
  TypeAccount found;
  found.group = parser.number<uint32_t>();
  found.account.version = parser.text(parser.number<uint16_t>());
  found.account.account.level = parser.number<uint8_t>();
  found.account.account.fairness_key = parser.rest();
  return found;
}

std::string limiter(ShardId shard, const QueueName& queue, std::string_view fairness_key) {
  return of_queue(kLimiter, shard, queue, fairness_key.size()).text(fairness_key).key();
}
Range limiters(ShardId shard, const QueueName& queue) {
  return of_queue(kLimiter, shard, queue, 0).prefix();
}
std::string parse_limiter(std::string_view key) {
  Parser parser(key, kLimiter);
  parse_queue(parser);
  return std::string(parser.rest());
}

std::string lease(ShardId shard, const QueueName& queue, std::string_view run,
                  int64_t scheduled_event_id) {
  return of_queue(kLease, shard, queue, 24).run(run).id(scheduled_event_id).key();
}
Range leases(ShardId shard, const QueueName& queue) {
  return of_queue(kLease, shard, queue, 0).prefix();
}
Range leases(ShardId shard) { return Builder(kLease, 3).shard(shard).prefix(); }
Lease parse_lease(std::string_view key) {
  Parser parser(key, kLease);
  Lease lease;
  lease.queue = parse_queue(parser);
  lease.run = parser.text(kRunBytes);
  lease.scheduled_event_id = static_cast<int64_t>(parser.number<uint64_t>());
  parser.end();
  return lease;
}

std::string dispatch(ShardId shard, const QueueName& queue, uint32_t slot) {
  return of_queue(kDispatch, shard, queue, 4).number(slot).key();
}
Range dispatches(ShardId shard) { return Builder(kDispatch, 3).shard(shard).prefix(); }
Dispatch parse_dispatch(std::string_view key) {
  Parser parser(key, kDispatch);
  Dispatch dispatch;
  dispatch.queue = parse_queue(parser);
  dispatch.slot = parser.number<uint32_t>();
  parser.end();
  return dispatch;
}

std::string queue_rules(ShardId shard, const QueueName& queue) {
  return of_queue(kQueueRules, shard, queue, 0).key();
}
Range queue_rules(ShardId shard) { return Builder(kQueueRules, 3).shard(shard).prefix(); }
QueueName parse_queue_rules(std::string_view key) {
  Parser parser(key, kQueueRules);
  auto queue = parse_queue(parser);
  parser.end();
  return queue;
}
std::string queue_state(ShardId shard, const QueueName& queue) {
  return of_queue(kQueueState, shard, queue, 0).key();
}

std::string session(NamespaceNum ns, std::string_view session_id) {
  return Builder(kSession, 5 + session_id.size()).number(ns.value()).text(session_id).key();
}
Range sessions() { return Builder(kSession, 1).prefix(); }
Session parse_session(std::string_view key) {
  Parser parser(key, kSession);
  Session session;
  session.ns = NamespaceNum(parser.number<uint32_t>());
  session.session_id = parser.rest();
  return session;
}

}  // namespace fairlead::store::keys
