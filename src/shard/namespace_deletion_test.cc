#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shard/node_testing.h"
#include "store/keys.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

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
