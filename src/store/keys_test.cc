#include "store/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/hash/hash.h"
#include "base/random.h"

namespace fairlead::store::keys {
namespace {

using namespace std::string_literals;

const std::string kRunA = "\x01\x92\x00\x00\x00\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\x0a"s;
const QueueName kOrders{NamespaceNum(7), 2, "orders"};

// These bytes are on disk. A test that fails here means that an upgrade would lose people's rows:
// change the code back, not the bytes.
TEST(Keys, HaveTheirGoldenBytes) {
  const ShardId shard(0x0102);
  EXPECT_EQ(meta("format"), "Mformat");
  EXPECT_EQ(namespace_row("default"), "Ndefault");
  EXPECT_EQ(current_run(shard, NamespaceNum(7), "order-1"), "C\x01\x02\x00\x00\x00\x07order-1"s);
  EXPECT_EQ(current_activity(shard, NamespaceNum(7), "pay-1"), "B\x01\x02\x00\x00\x00\x07pay-1"s);
  EXPECT_EQ(run(shard, kRunA), "R\x01\x02"s + kRunA);
  EXPECT_EQ(pending_activity(shard, kRunA, 5),
            "P\x01\x02"s + kRunA + "a\x00\x00\x00\x00\x00\x00\x00\x05"s);
  EXPECT_EQ(pending_timer(shard, kRunA, 0x1234),
            "P\x01\x02"s + kRunA + "t\x00\x00\x00\x00\x00\x00\x12\x34"s);
  EXPECT_EQ(pending_child(shard, kRunA, 5),
            "P\x01\x02"s + kRunA + "c\x00\x00\x00\x00\x00\x00\x00\x05"s);
  EXPECT_EQ(pending_external(shard, kRunA, 5),
            "P\x01\x02"s + kRunA + "x\x00\x00\x00\x00\x00\x00\x00\x05"s);
  EXPECT_EQ(accepted_update(shard, kRunA, "u-1"), "P\x01\x02"s + kRunA + "uu-1");
  EXPECT_EQ(callback(shard, kRunA, 5), "P\x01\x02"s + kRunA + "b\x00\x00\x00\x00\x00\x00\x00\x05"s);
  EXPECT_EQ(attached_request(shard, kRunA, "req"), "P\x01\x02"s + kRunA + "rreq");
  EXPECT_EQ(left_open(shard, kRunA), "P\x01\x02"s + kRunA + "z");
  EXPECT_EQ(letter(shard, kRunA, 5), "O\x01\x02"s + kRunA + "\x00\x00\x00\x00\x00\x00\x00\x05"s);
  EXPECT_EQ(events(shard, kRunA, 1), "E\x01\x02"s + kRunA + "\x00\x00\x00\x00\x00\x00\x00\x01"s);
  EXPECT_EQ(request_id(shard, kRunA, "req"), "D\x01\x02"s + kRunA + "req");
  EXPECT_EQ(schedule_name(shard, NamespaceNum(7), "nightly"), "I\x01\x02\x00\x00\x00\x07nightly"s);
  EXPECT_EQ(schedule(shard, kRunA), "J\x01\x02"s + kRunA);
  EXPECT_EQ(schedule_event(shard, kRunA, 5),
            "H\x01\x02"s + kRunA + "\x00\x00\x00\x00\x00\x00\x00\x05"s);
  EXPECT_EQ(wakeup(shard, 0x1122334455667788, kRunA),
            "W\x01\x02\x11\x22\x33\x44\x55\x66\x77\x88"s + kRunA);
  const std::string orders = "\x01\x02\x00\x00\x00\x07\x02\x00\x06orders"s;
  EXPECT_EQ(task(shard, kOrders, 3, "acme", TaskSeq(0x0a0b)),
            "T" + orders + "\x03\x04"s + "acme" + "\x00\x00\x00\x00\x00\x00\x0a\x0b"s);
  EXPECT_EQ(pinned_task(shard, kOrders, "v1.2", 3, "acme", TaskSeq(0x0a0b)),
            "V" + orders + "\x00\x04"s + "v1.2" + "\x03\x04"s + "acme" +
                "\x00\x00\x00\x00\x00\x00\x0a\x0b"s);
  EXPECT_EQ(account(shard, kOrders, 3, "acme"), "A" + orders + "\x03" + "acme");
  EXPECT_EQ(version_account(shard, kOrders, "v1.2", 3, "acme"),
            "F" + orders + "\x00\x04"s + "v1.2" + "\x03" + "acme");
  EXPECT_EQ(type_account(shard, kOrders, 0x0a0b, "v1.2", 3, "acme"),
            "G" + orders + "\x00\x00\x0a\x0b"s + "\x00\x04"s + "v1.2" + "\x03" + "acme");
  EXPECT_EQ(limiter(shard, kOrders, "acme"), "K" + orders + "acme");
  EXPECT_EQ(lease(shard, kOrders, kRunA, 5),
            "L" + orders + kRunA + "\x00\x00\x00\x00\x00\x00\x00\x05"s);
  EXPECT_EQ(dispatch(shard, kOrders, 0x0a0b), "U" + orders + "\x00\x00\x0a\x0b"s);
  EXPECT_EQ(queue_rules(shard, kOrders), "Q" + orders);
  EXPECT_EQ(queue_state(shard, kOrders), "S" + orders);
  EXPECT_EQ(session(NamespaceNum(7), "gpu"), "Z\x00\x00\x00\x07gpu"s);
  EXPECT_EQ(parse_session(session(NamespaceNum(7), "gpu")).ns, NamespaceNum(7));
  EXPECT_EQ(parse_session(session(NamespaceNum(7), "gpu")).session_id, "gpu");
}

TEST(Keys, RangesHaveTheirGoldenBytes) {
  const ShardId shard(0x0102);
  const std::string run_b = kRunA.substr(0, 15) + "\x0b";
  EXPECT_EQ(namespaces(), (Range{"N", "O"}));
  EXPECT_EQ(sessions(), (Range{"Z", "["}));
  EXPECT_EQ(runs(shard), (Range{"R\x01\x02", "R\x01\x03"}));
  EXPECT_EQ(pending(shard, kRunA), (Range{"P\x01\x02" + kRunA, "P\x01\x02" + run_b}));
  EXPECT_EQ(events(shard, kRunA), (Range{"E\x01\x02" + kRunA, "E\x01\x02" + run_b}));
  EXPECT_EQ(request_ids(shard, kRunA), (Range{"D\x01\x02" + kRunA, "D\x01\x02" + run_b}));
  EXPECT_EQ(dispatches(shard), (Range{"U\x01\x02", "U\x01\x03"}));
  EXPECT_EQ(letters(shard), (Range{"O\x01\x02", "O\x01\x03"}));
  EXPECT_EQ(letters(shard, kRunA), (Range{"O\x01\x02" + kRunA, "O\x01\x02" + run_b}));
  EXPECT_EQ(schedules(shard), (Range{"J\x01\x02", "J\x01\x03"}));
  EXPECT_EQ(schedule_names(shard, NamespaceNum(7)),
            (Range{"I\x01\x02\x00\x00\x00\x07"s, "I\x01\x02\x00\x00\x00\x08"s}));
  EXPECT_EQ(schedule_events(shard, kRunA), (Range{"H\x01\x02" + kRunA, "H\x01\x02" + run_b}));
  EXPECT_EQ(wakeups(shard), (Range{"W\x01\x02", "W\x01\x03"}));
  EXPECT_EQ(tasks(shard), (Range{"T\x01\x02", "T\x01\x03"}));
  const std::string queue = "T\x01\x02\x00\x00\x00\x07\x02\x00\x06order"s;
  EXPECT_EQ(tasks(shard, kOrders), (Range{queue + "s", queue + "t"}));
  EXPECT_EQ(task_line(shard, kOrders, 3, "k"), (Range{queue + "s\x03\x01k", queue + "s\x03\x01l"}));
  EXPECT_EQ(pinned_tasks(shard), (Range{"V\x01\x02", "V\x01\x03"}));
  const std::string pinned = "V\x01\x02\x00\x00\x00\x07\x02\x00\x06order"s;
  EXPECT_EQ(pinned_tasks(shard, kOrders), (Range{pinned + "s", pinned + "t"}));
  EXPECT_EQ(pinned_task_line(shard, kOrders, "v", 3, "k"),
            (Range{pinned + "s\x00\x01v\x03\x01k"s, pinned + "s\x00\x01v\x03\x01l"s}));
  const std::string accounts_of_versions = "F\x01\x02\x00\x00\x00\x07\x02\x00\x06order"s;
  EXPECT_EQ(version_accounts(shard, kOrders),
            (Range{accounts_of_versions + "s", accounts_of_versions + "t"}));
  const std::string accounts_of_types = "G\x01\x02\x00\x00\x00\x07\x02\x00\x06order"s;
  EXPECT_EQ(type_accounts(shard, kOrders),
            (Range{accounts_of_types + "s", accounts_of_types + "t"}));
}

// The last of its kind has no successor of the same length: the range's end gets shorter instead.
TEST(Keys, ARangeEndsAfterThePrefixThatIsAllOnes) {
  EXPECT_EQ(wakeups(ShardId(0xffff)), (Range{"W\xff\xff", "X"}));
  EXPECT_EQ(tasks(ShardId(1), {NamespaceNum(0), 0, "\xff"}).end,
            "T\x00\x01\x00\x00\x00\x00\x00\x00\x02"s);
}

// Hints for rows of a front and erased ranges must not meet in RocksDB.
TEST(Keys, NoRangeThatIsErasedBeginsInAFront) {
  const ShardId shard(1);
  EXPECT_EQ(front_bytes(run(shard, kRunA)), 3);
  EXPECT_EQ(front_bytes(events(shard, kRunA, 1)), 3);
  EXPECT_EQ(front_bytes(wakeup(shard, 1, kRunA)), 6);
  EXPECT_EQ(front_bytes(task(shard, kOrders, 3, "", TaskSeq(1))), 3);
  EXPECT_EQ(front_bytes(queue_state(shard, kOrders)), 3);
  for (const Range& range : {events(shard, kRunA), pending(shard, kRunA), request_ids(shard, kRunA),
                             letters(shard, kRunA), schedule_events(shard, kRunA)}) {
    EXPECT_EQ(front_bytes(range.begin), 0) << range.begin;
  }
  EXPECT_EQ(front_bytes(""), 0);
}

bool contains(const Range& range, const std::string& key) {
  return range.begin <= key && key < range.end;
}

// A queue's range that held a neighbour's tasks would deliver them to the wrong workers.
TEST(Keys, AQueuesRangeHoldsItsOwnTasksOnly) {
  const ShardId shard(1);
  const std::vector<QueueName> queues = {
      {NamespaceNum(1), 1, "a"},         {NamespaceNum(1), 1, "ab"},
      {NamespaceNum(1), 1, "b"},         {NamespaceNum(1), 2, "a"},
      {NamespaceNum(2), 1, "a"},         {NamespaceNum(1), 1, ""},
      {NamespaceNum(1), 1, "a"s + '\0'}, {NamespaceNum(1), 1, "\xff\xff"},
  };
  for (const QueueName& mine : queues) {
    for (const QueueName& other : queues) {
      for (const uint8_t level : {0, 1, 255}) {
        const std::string key = task(shard, other, level, "k", TaskSeq(UINT64_MAX));
        EXPECT_EQ(contains(tasks(shard, mine), key), mine == other) << mine.name << other.name;
        EXPECT_EQ(contains(task_line(shard, mine, 1, "k"), key), mine == other && level == 1);
        EXPECT_FALSE(contains(task_line(shard, mine, 1, ""), key));
        EXPECT_FALSE(contains(task_line(shard, mine, 1, "kk"), key));
        EXPECT_TRUE(contains(tasks(shard), key));
        EXPECT_FALSE(contains(tasks(ShardId(2)), key));
      }
    }
  }
}

// Numbers of all magnitudes: uniform ones would nearly always differ in their first byte.
uint64_t any_number(Random& random) { return random.next() >> random.below(64); }
int64_t any_id(Random& random) { return static_cast<int64_t>(any_number(random) >> 1); }
std::string any_run(Random& random) { return uuid_to_bytes(make_uuid(random, any_id(random))); }

TEST(Keys, ByteOrderIsNumericOrder) {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const ShardId shard(static_cast<uint16_t>(random.next()));
    const int64_t a = any_id(random);
    const int64_t b = random.chance(0.1) ? a : any_id(random);
    EXPECT_EQ(events(shard, kRunA, a) <=> events(shard, kRunA, b), a <=> b);
    EXPECT_EQ(pending_timer(shard, kRunA, a) <=> pending_timer(shard, kRunA, b), a <=> b);
    EXPECT_EQ(wakeup(shard, a, kRunA) <=> wakeup(shard, b, kRunA), a <=> b);

    const TaskSeq seq_a(any_number(random));
    const TaskSeq seq_b(any_number(random));
    const auto level_a = static_cast<uint8_t>(random.next());
    const auto level_b = static_cast<uint8_t>(random.next());
    EXPECT_EQ(
        task(shard, kOrders, level_a, "k", seq_a) <=> task(shard, kOrders, level_b, "k", seq_b),
        std::pair(level_a, seq_a) <=> std::pair(level_b, seq_b));
    EXPECT_TRUE(contains(tasks(shard, kOrders), task(shard, kOrders, level_a, "k", seq_a)));
    EXPECT_TRUE(contains(events(shard, kRunA), events(shard, kRunA, a)));
  }
}

TEST(Keys, WhatIsParsedIsWhatWasMade) {
  Random random(2);
  for (int i = 0; i < 5'000; ++i) {
    const ShardId shard(static_cast<uint16_t>(random.next()));
    const TimeNs at = any_id(random);
    const std::string run = any_run(random);
    const Wakeup woken = parse_wakeup(wakeup(shard, at, run));
    EXPECT_EQ(woken.at, at);
    EXPECT_EQ(woken.run, run);

    QueueName queue{NamespaceNum(static_cast<uint32_t>(any_number(random))),
                    static_cast<uint8_t>(random.next()), std::string(random.below(300), 'q')};
    for (char& c : queue.name) c = static_cast<char>(random.next());
    const auto level = static_cast<uint8_t>(random.next());
    const TaskSeq seq(any_number(random));
    std::string fairness_key(random.below(65), 'k');
    for (char& c : fairness_key) c = static_cast<char>(random.next());
    const Task parsed = parse_task(task(shard, queue, level, fairness_key, seq));
    EXPECT_EQ(parsed.fairness_key, fairness_key);
    EXPECT_EQ(parse_account(account(shard, queue, level, fairness_key)).fairness_key, fairness_key);
    EXPECT_EQ(parse_account(account(shard, queue, level, fairness_key)).level, level);
    EXPECT_EQ(parse_limiter(limiter(shard, queue, fairness_key)), fairness_key);
    std::string version(1 + random.below(300), 'v');
    for (char& c : version) c = static_cast<char>(random.next());
    const auto pinned =
        parse_pinned_task(pinned_task(shard, queue, version, level, fairness_key, seq));
    EXPECT_EQ(pinned.version, version);
    EXPECT_EQ(pinned.task.queue, queue);
    EXPECT_EQ(pinned.task.level, level);
    EXPECT_EQ(pinned.task.fairness_key, fairness_key);
    EXPECT_EQ(pinned.task.seq, seq);
    const auto of_version =
        parse_version_account(version_account(shard, queue, version, level, fairness_key));
    EXPECT_EQ(of_version.version, version);
    EXPECT_EQ(of_version.account.level, level);
    EXPECT_EQ(of_version.account.fairness_key, fairness_key);
    const auto group = static_cast<uint32_t>(random.next());
    const auto of_types =
        parse_type_account(type_account(shard, queue, group, version, level, fairness_key));
    EXPECT_EQ(of_types.group, group);
    EXPECT_EQ(of_types.account.version, version);
    EXPECT_EQ(of_types.account.account.level, level);
    EXPECT_EQ(of_types.account.account.fairness_key, fairness_key);
    EXPECT_EQ(parse_queue_rules(queue_rules(shard, queue)), queue);
    const Letter written = parse_letter(letter(shard, run, at));
    EXPECT_EQ(written.run, run);
    EXPECT_EQ(written.event_id, at);
    const std::string name(random.below(100), 'n');
    EXPECT_EQ(parse_schedule_name(schedule_name(shard, queue.ns, name)), name);
    const Lease leased = parse_lease(lease(shard, queue, run, at));
    EXPECT_EQ(leased.queue, queue);
    EXPECT_EQ(leased.run, run);
    EXPECT_EQ(leased.scheduled_event_id, at);
    const auto slot = static_cast<uint32_t>(random.next());
    EXPECT_EQ(parse_dispatch(dispatch(shard, queue, slot)).queue, queue);
    EXPECT_EQ(parse_dispatch(dispatch(shard, queue, slot)).slot, slot);
    EXPECT_EQ(parsed.queue, queue);
    EXPECT_EQ(parsed.level, level);
    EXPECT_EQ(parsed.seq, seq);
  }
}

TEST(KeysDeathTest, RefusesWhatWouldBreakTheOrder) {
  EXPECT_DEATH(events(ShardId(1), kRunA, -1), "negative");
  EXPECT_DEATH(run(ShardId(1), "not sixteen bytes long"), "16 bytes");
  EXPECT_DEATH(parse_task(wakeup(ShardId(1), 1, kRunA)), "another table");
  EXPECT_DEATH(parse_wakeup(wakeup(ShardId(1), 1, kRunA).substr(0, 20)), "too short");
  EXPECT_DEATH(parse_wakeup(wakeup(ShardId(1), 1, kRunA) + "x"), "too long");
}

TEST(QueueName, EqualNamesHashAlike) {
  QueueName same = kOrders;
  EXPECT_EQ(absl::HashOf(same), absl::HashOf(kOrders));
  same.type = 1;
  EXPECT_NE(same, kOrders);
}

}  // namespace
}  // namespace fairlead::store::keys
