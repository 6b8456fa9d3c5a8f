#include "shard/queue_host.h"

#include "shard/queue_host_testing.h"

namespace fairlead::shard {
namespace {

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

// After a restart a queue is read when it is first needed. A task whose row went before that is
// unknown to it, and the word of its end may come when another task has its number.
TEST_F(QueueHostTest, ALateWordOfAnEndDoesNotEndAnotherTask) {
  desk->restored();
  const auto place = bring_row("acme", 1);
  host.remove(kMails, place);
  EXPECT_EQ(ids_of("acme"), std::vector<int64_t>{1});
  poll();
  EXPECT_EQ(started, 1) << "it waited and has its row";
}

// Two names of the same line, found by trying.
std::pair<std::string, std::string> two_of_a_line() {
  std::map<std::string, std::string> seen;
  for (int i = 0;; ++i) {
    const auto name = "tenant-" + std::to_string(i);
    const auto [found, is_new] = seen.try_emplace(queue::shared_line(name), name);
    if (!is_new) return {found->second, name};
  }
}

// An operator who purges or looks at a tenant means that tenant, also if it came when the queue had
// as many keys as it may and stands in one line with another.
TEST_F(QueueHostTest, AKeyInASharedLineIsKnownByItsOwnName) {
  desk->restored();
  settings.keys_max = 1;
  const auto [ours, theirs] = two_of_a_line();
  bring_row("first", 1);
  bring_row(theirs, 2);
  bring_row(ours, 3);
  bring_row(theirs, 4);
  const auto last = bring_row(ours, 5);
  ASSERT_TRUE(queue::is_shared_line(last.key));

  EXPECT_EQ(ids_of(ours), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(ids_of(theirs), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(ids_of("first"), (std::vector<int64_t>{1}));
  EXPECT_EQ(ids_of(last.key).size(), 4U) << "the line as a whole";
  EXPECT_EQ(ids_of("nobody").size(), 0U);

  const auto view = view_of(ours);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->key, ours);
  EXPECT_EQ(view->waiting, 2);
  EXPECT_EQ(view->waiting_by_level[2], 2);
  EXPECT_EQ(view->oldest_ns, clock.time + 3);
  EXPECT_EQ(view->shared_line, last.key);
  EXPECT_EQ(view_of("first")->shared_line, "");
  EXPECT_FALSE(view_of("nobody").has_value());

  Explanation explanation;
  explanation.priority.set_fairness_key(ours);
  host.explain(kMails, last, &explanation);
  EXPECT_EQ(explanation.standing.tasks_before_in_line, 1);
  EXPECT_EQ(explanation.others_before, 2);
  EXPECT_EQ(explanation.shared_line, last.key);
}

const queue::Stream kOfV1{"v1", 0};

// Workers of a version and workers without one wait for different things.
TEST_F(QueueHostTest, APollGetsWhatItsVersionMayHave) {
  desk->restored();
  poll("v2");
  poll();
  EXPECT_FALSE(bring(level(3), kOfV1)) << "nobody of that version waits";
  EXPECT_TRUE(bring(level(3)));
  EXPECT_EQ(takers, std::vector<uint64_t>{2});
  poll("v1");
  EXPECT_EQ(started, 1);
  poll("v1");
  EXPECT_TRUE(bring(level(3), kOfV1));
  EXPECT_EQ(takers, (std::vector<uint64_t>{2, 3, 4}));
  EXPECT_FALSE(bring(level(3)));
  EXPECT_EQ(started, 1) << "the poll of v2 is not for it";

  const auto view = host.describe(kMails);
  ASSERT_EQ(view.targets.size(), 1U);
  EXPECT_EQ(view.targets[0].tasks.waiting, 1);
  EXPECT_EQ(view.targets[0].tasks.percent, 100U);
  EXPECT_EQ(view.targets[0].parked_polls, 0U);
  EXPECT_EQ(view.parked_polls, 1U);
}

// What is more urgent first; where both are as urgent, in turn.
TEST_F(QueueHostTest, APollThatMayTakeBothStarvesNeither) {
  desk->restored();
  for (int i = 0; i < 3; ++i) {
    bring(level(3), kOfV1);
    bring(level(3));
  }
  bring(level(2));
  bring(level(1), kOfV1);
  for (int i = 0; i < 8; ++i) poll("v1", true);
  EXPECT_EQ(versions, (std::vector<std::string>{"v1", "", "v1", "", "v1", "", "v1", ""}));
  // While it waits, whichever comes first is its own.
  poll("v1", true);
  poll("v1", true);
  EXPECT_TRUE(bring(level(3)));
  EXPECT_TRUE(bring(level(3), kOfV1));
  EXPECT_EQ(host.parked(), 0U);
}

// Another routing serves those who wait for what it brings them.
TEST_F(QueueHostTest, AChangeOfTheRoutingServesParkedPolls) {
  desk->restored();
  bring(level(3), {"", 10});
  bring(level(3), {"", 60});
  poll("v1");
  poll("v2");
  EXPECT_EQ(started, 0);
  ChangeRules change{{kNs, model::ACTIVITY_TASK, "mails"}, [](auto& rules, TimeNs) {
                       rules.mutable_routing()->set_current("v1");
                       rules.mutable_routing()->set_ramping("v2");
                       rules.mutable_routing()->set_percent(30);
                       return absl::OkStatus();
                     }};
  ASSERT_TRUE(host.change_rules(kMails, change).ok());
  EXPECT_EQ(started, 2);
  EXPECT_EQ(takers, (std::vector<uint64_t>{1, 2}));
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
