#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "history/history_testing.h"
#include "shard/node.h"
#include "store/keys.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

// A thread and a clock that move when they are told to.
class HandCranked final : public Executor, public Clock {
 public:
  void post(Job job) override { jobs_.push_back(std::move(job)); }
  void post_at(TimeNs at, Job job) override { timers_.emplace(at, std::move(job)); }
  bool is_current() const override { return is_running_; }
  TimeNs now() override { return now_; }

  void run() {
    while (!jobs_.empty()) {
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      is_running_ = true;
      job();
      is_running_ = false;
    }
  }
  void run_for(DurationNs length) {
    const TimeNs end = now_ + length;
    run();
    while (!timers_.empty() && timers_.begin()->first <= end) {
      now_ = std::max(now_, timers_.begin()->first);
      jobs_.push_back(std::move(timers_.begin()->second));
      timers_.erase(timers_.begin());
      run();
    }
    now_ = end;
  }

 private:
  TimeNs now_ = 1000 * kDay;
  bool is_running_ = false;
  std::deque<Job> jobs_;
  std::multimap<TimeNs, Job> timers_;
};

// A disk without delay.
class DirectCommits final : public CommitLog {
 public:
  explicit DirectCommits(store::Store* store) : store_(*store) {}
  void write(const store::WriteBatch& batch) override { ASSERT_TRUE(store_.write(batch).ok()); }
  void after_durable(Job effect) override { effect(); }

 private:
  store::Store& store_;
};

// A server from its start to its end on a store that stays.
struct Life {
  explicit Life(store::Store* store) : commits(store) {
    Node::Parts parts;
    parts.store = store;
    parts.commits = &commits;
    parts.clock = &thread;
    parts.codec = &codec;
    parts.executors = {&thread};
    NodeOptions options;
    options.shards = 2;
    node = std::make_unique<Node>(options, parts, Random(7));
    EXPECT_TRUE(node->open().ok());
    thread.run();
  }

  HandCranked thread;
  DirectCommits commits;
  history::PlainCodec codec;
  std::unique_ptr<Node> node;
};

class NamespaceDeletionTest : public testing::Test {
 protected:
  static NamespacePtr make_namespace(Life& life, const std::string& name) {
    model::NamespaceRow row;
    row.set_name(name);
    row.set_retention_ns(kDay);
    NamespacePtr made;
    life.node->namespaces().add(row, [&](auto result) { made = *result; });
    life.thread.run();
    return made;
  }
  static void start(Life& life, const NamespacePtr& ns, int count) {
    for (int i = 0; i < count; ++i) {
      StartRequest request;
      request.ns = NamespaceNum(ns->num());
      request.workflow_id = absl::StrCat("order-", i);
      request.workflow_type = "Order";
      request.task_queue = "orders";
      life.node->start_workflow(request,
                                [](auto result) { ASSERT_TRUE(result.ok()) << result.status(); });
    }
    life.thread.run();
  }
  static absl::StatusOr<NamespacePtr> remove(Life& life, const std::string& name) {
    absl::StatusOr<NamespacePtr> answer;
    life.node->delete_namespace(name, [&](auto result) { answer = std::move(result); });
    life.thread.run();
    return answer;
  }
  // How many runs of a namespace the store has.
  size_t runs(const NamespacePtr& ns) {
    size_t found = 0;
    for (uint16_t shard = 0; shard < 2; ++shard) {
      const auto range = store::keys::runs(ShardId(shard));
      const auto visit = [&](std::string_view, std::string_view value) {
        model::RunState state;
        state.ParseFromArray(value.data(), static_cast<int>(value.size()));
        found += state.namespace_num() == ns->num() ? 1 : 0;
        return true;
      };
      EXPECT_TRUE(store.scan(range.begin, range.end, visit).ok());
    }
    return found;
  }
  size_t tasks() {
    size_t found = 0;
    for (uint16_t shard = 0; shard < 2; ++shard) {
      const auto range = store::keys::tasks(ShardId(shard));
      const auto visit = [&](std::string_view, std::string_view) { return ++found > 0; };
      EXPECT_TRUE(store.scan(range.begin, range.end, visit).ok());
    }
    return found;
  }

  store::MemoryStore store;
};

// More runs than a turn looks at, beside those of a neighbour, which stay.
TEST_F(NamespaceDeletionTest, ADeletedNamespaceLosesItsRunsAndOnlyThose) {
  Life life(&store);
  const auto doomed = make_namespace(life, "doomed");
  const auto neighbour = make_namespace(life, "neighbour");
  start(life, doomed, 1000);
  start(life, neighbour, 3);
  ASSERT_EQ(runs(doomed), 1000U);

  const auto deleted = remove(life, "doomed");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(absl::StartsWith((*deleted)->name(), "doomed-deleted-"));
  EXPECT_FALSE(life.node->namespaces().find("doomed").ok());
  EXPECT_FALSE(life.node->namespaces().find((*deleted)->name()).ok());
  life.thread.run_for(kMinute);
  EXPECT_EQ(runs(doomed), 0U);
  EXPECT_EQ(runs(neighbour), 3U);
  EXPECT_EQ(tasks(), 3U) << "what waits in queues goes with its runs";
  EXPECT_TRUE(life.node->namespaces().find_by_num(doomed->num())->is_purged());
}

TEST_F(NamespaceDeletionTest, ItsNameCanBeUsedAgainAtOnce) {
  Life life(&store);
  const auto first = make_namespace(life, "doomed");
  start(life, first, 3);
  ASSERT_TRUE(remove(life, "doomed").ok());
  EXPECT_TRUE(absl::IsNotFound(remove(life, "doomed").status()));
  const auto second = make_namespace(life, "doomed");
  EXPECT_NE(first->num(), second->num());
  start(life, second, 2);
  life.thread.run_for(kMinute);
  EXPECT_EQ(runs(first), 0U);
  EXPECT_EQ(runs(second), 2U);
}

TEST_F(NamespaceDeletionTest, ACrashDoesNotSaveItsRuns) {
  NamespacePtr doomed;
  {
    Life first(&store);
    doomed = make_namespace(first, "doomed");
    start(first, doomed, 1000);
    ASSERT_TRUE(remove(first, "doomed").ok());
    ASSERT_GT(runs(doomed), 0U) << "it dies before it is done";
  }
  Life second(&store);
  EXPECT_FALSE(second.node->namespaces().find("doomed").ok());
  second.thread.run_for(kMinute);
  EXPECT_EQ(runs(doomed), 0U);
}

// The store remembers that it had `default`, also when it has no longer.
TEST_F(NamespaceDeletionTest, TheDefaultNamespaceStaysDeleted) {
  { ASSERT_TRUE(remove(*std::make_unique<Life>(&store), "default").ok()); }
  Life second(&store);
  EXPECT_FALSE(second.node->namespaces().find("default").ok());
}

}  // namespace
}  // namespace fairlead::shard
