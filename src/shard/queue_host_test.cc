#include "shard/queue_host.h"

#include "gtest/gtest.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

struct StoppedClock final : Clock {
  TimeNs now() override { return time; }
  TimeNs time = 1000 * kMinute;
};

const NamespaceNum kNs(7);
const QueueAddress kMails{{kNs, model::ACTIVITY_TASK, "mails"}, "mails"};

// A host whose tasks start as soon as a poll is there for them.
class QueueHostTest : public testing::Test {
 protected:
  static model::Priority level(int32_t key) {
    model::Priority priority;
    priority.set_priority_key(key);
    return priority;
  }

  // A task that finds nobody waits; gives whether somebody took it at once.
  bool bring(const model::Priority& priority) {
    store::WriteBatch batch;
    auto offered = host.offer(kMails, priority, std::nullopt, {&batch});
    if (offered.poll != nullptr) return true;
    queue::Task task;
    task.created_ns = clock.time;
    host.add(kMails, *offered.place, task);
    return false;
  }
  void set_poller_order(model::QueueRules::PollerOrder order) {
    ChangeRules change{{kNs, model::ACTIVITY_TASK, "mails"}, [order](auto& rules, TimeNs) {
                         rules.set_poller_order(order);
                         return absl::OkStatus();
                       }};
    ASSERT_TRUE(host.change_rules(kMails, change).ok());
  }
  // Who gets a task that comes now.
  uint64_t taker() {
    store::WriteBatch batch;
    const auto offered = host.offer(kMails, level(3), std::nullopt, {&batch});
    return offered.poll == nullptr ? 0 : offered.poll->number;
  }
  void poll() {
    auto one = std::make_unique<Poll>();
    one->number = ++polls;
    one->request.ns = kNs;
    one->request.kind = model::ACTIVITY_TASK;
    one->request.queue.set_name("mails");
    one->request.hold_until = clock.time + kMinute;
    one->reply = Reply<ActivityTask>([](absl::StatusOr<ActivityTask>) {});
    host.poll(std::move(one));
  }
  DispatchCounts counted() {
    const auto all = host.metrics(10, 10);
    return all.empty() ? DispatchCounts{} : all.front().dispatches;
  }

  StoppedClock clock;
  store::MemoryStore store;
  Alarms alarms;
  uint64_t polls = 0;
  int started = 0;
  std::shared_ptr<AdmissionDesk> desk = std::make_shared<AdmissionDesk>(
      std::make_shared<admission::Policies>(),
      AdmissionDesk::Env{.clock = &clock,
                         .namespace_name = [](NamespaceNum) { return "default"; },
                         .owner_of = [](const QueueName&) { return ShardId(3); },
                         .look_again = [](const QueueName&) {}});
  QueueHost host{QueueHost::Env{
      .shard = ShardId(3),
      .store = &store,
      .clock = &clock,
      .alarms = &alarms,
      .dispatch =
          [this](PollPtr, const QueueAddress& queue, const queue::Waiting& waiting) {
            ++started;
            store::WriteBatch batch;
            host.started(queue, waiting, &batch);
          },
      .dispatch_query = [](PollPtr, const QueueAddress&, const DirectQuery&) {},
      .sticky_lost = [](const queue::Task&) {},
      .write = [](const store::WriteBatch&) {},
      .settings = [](const QueueName&) { return queue::Settings(); },
      .desk = desk.get(),
  }};
};

// "How long until a worker had it?" is asked of tasks that waited and of those that did not.
TEST_F(QueueHostTest, EveryDispatchIsMeasuredByLevelAndByWhetherItWaited) {
  desk->restored();
  EXPECT_FALSE(bring(level(1)));
  EXPECT_FALSE(bring(level(4)));
  clock.time += 3 * kSecond;
  poll();
  poll();
  EXPECT_EQ(started, 2);
  poll();
  EXPECT_TRUE(bring(level(4)));

  const auto counts = counted();
  const auto total = [](const WaitHistogram& histogram) {
    uint64_t sum = 0;
    for (const uint64_t count : histogram.counts) sum += count;
    return sum;
  };
  ASSERT_EQ(counts.waited.size(), 2U);
  EXPECT_EQ(total(counts.waited.at(1)), 1U);
  EXPECT_DOUBLE_EQ(counts.waited.at(1).sum, 3);
  EXPECT_EQ(total(counts.waited.at(4)), 1U);
  ASSERT_EQ(counts.fresh.size(), 1U);
  EXPECT_EQ(total(counts.fresh.at(4)), 1U);
  EXPECT_DOUBLE_EQ(counts.fresh.at(4).sum, 0);
}

// Spread over all workers, or kept on few so that the others can go: the operator's choice, and it
// may change while polls wait.
TEST_F(QueueHostTest, APollGetsItsTaskInTheOrderThatTheQueueSays) {
  desk->restored();
  for (int i = 0; i < 5; ++i) poll();
  EXPECT_EQ(taker(), 1U);
  set_poller_order(model::QueueRules::LIFO);
  EXPECT_EQ(taker(), 5U);
  EXPECT_EQ(taker(), 4U);
  poll();
  EXPECT_EQ(taker(), 6U) << "the newest, whenever it came";
  set_poller_order(model::QueueRules::FIFO);
  EXPECT_EQ(taker(), 2U);
  EXPECT_EQ(taker(), 3U);
  EXPECT_EQ(taker(), 0U) << "nobody is left";
}

// What runs out of time on a worker's own queue counts for the queue that people know.
TEST_F(QueueHostTest, TasksThatNobodyTookAreCountedForTheNormalQueue) {
  desk->restored();
  bring(level(3));
  EXPECT_EQ(counted().expired, 0U);
  host.count_expired(kMails);
  host.count_expired({{kNs, model::ACTIVITY_TASK, "mails-of-ada"}, "mails"});
  EXPECT_EQ(counted().expired, 2U);
}

}  // namespace
}  // namespace fairlead::shard
