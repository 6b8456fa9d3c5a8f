// Tasks that workers take along from queues that live on another thread.

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "model/model.pb.h"
#include "shard/node_testing.h"
#include "store/keys.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

const NamespaceNum kNs(1);

// A server with two threads, of which one has the queue and each has some of the runs.
class TakeAlongTest : public testing::Test {
 protected:
  TakeAlongTest() { restart(); }

  void restart() {
    node.reset();
    threads = std::make_unique<std::array<HandCranked, 2>>();
    Node::Parts parts;
    parts.store = &store;
    parts.commits = &commits;
    parts.clock = &threads->front();
    parts.codec = &codec;
    parts.executors = {&threads->front(), &threads->back()};
    NodeOptions options;
    options.shards = 2;
    node = std::make_unique<Node>(options, parts, Random(7));
    ASSERT_TRUE(node->open().ok());
    run();
  }
  // More often than any step goes from one to the other.
  void run() {
    for (int i = 0; i < 20; ++i) {
      for (auto& thread : *threads) thread.run();
    }
  }
  WorkflowTask start_and_poll(const std::string& id, const std::string& key = "") {
    StartRequest request;
    request.ns = kNs;
    request.workflow_id = id;
    request.workflow_type = "Order";
    request.task_queue = "orders";
    request.priority.set_fairness_key(key);
    request.task_timeout = 10 * kSecond;
    node->start_workflow(request, [](auto result) { ASSERT_TRUE(result.ok()) << result.status(); });
    run();
    PollRequest poll;
    poll.ns = kNs;
    poll.kind = model::WORKFLOW_TASK;
    poll.queue.set_name("orders");
    poll.identity = "ada";
    poll.hold_until = threads->front().now() + kMinute;
    WorkflowTask got;
    node->poll_workflow_task(poll, [&](auto task) { got = *task; });
    run();
    EXPECT_EQ(got.token.workflow_id, id);
    return got;
  }
  // The worker has done its task and would like the run's next one.
  std::optional<WorkflowTask> go_on(const WorkflowTask& task) {
    CompleteWorkflowTask request;
    request.token = task.token;
    request.identity = "ada";
    request.force_new_task = true;
    request.return_new_task = true;
    std::optional<WorkflowTask> next;
    node->complete_workflow_task(request, [&](auto result) {
      ASSERT_TRUE(result.ok()) << result.status();
      next = std::move(result->new_task);
    });
    run();
    return next;
  }
  template <typename Change>
  void set_rules(Change change) {
    ChangeRules request{{kNs, model::WORKFLOW_TASK, "orders"},
                        [change](model::QueueRules& rules, TimeNs) {
                          change(rules);
                          return absl::OkStatus();
                        }};
    node->change_rules(std::move(request), [](auto result) { ASSERT_TRUE(result.ok()); });
    run();
  }
  // When the queue's limit lets the next task go, as its row says.
  TimeNs ready() {
    for (const uint16_t shard : {0, 1}) {
      const auto row = store.get(
          store::keys::queue_state(ShardId(shard), {kNs, model::WORKFLOW_TASK, "orders"}));
      if (!row->has_value()) continue;
      model::QueueState state;
      EXPECT_TRUE(state.ParseFromString(**row));
      return state.ready_ns();
    }
    return 0;
  }

  store::MemoryStore store;
  DirectCommits commits{&store};
  history::PlainCodec codec;
  std::unique_ptr<std::array<HandCranked, 2>> threads;
  std::unique_ptr<Node> node;
};

// Half of these runs live on the other thread. Whether a worker may go on at once depends on the
// queue's order and limits, and not on where things happen to live; and the queue remembers each.
TEST_F(TakeAlongTest, AQueueOnAnotherThreadRemembersWhatIsTakenAlong) {
  set_rules([](auto& rules) { rules.mutable_queue_limit()->set_per_second(100); });
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    const auto task = start_and_poll(id);
    const TimeNs before = ready();
    const auto next = go_on(task);
    ASSERT_TRUE(next.has_value()) << id;
    EXPECT_EQ(next->token.workflow_id, id);
    EXPECT_EQ(ready() - before, kSecond / 100) << "one more start of 100 a second, written";
  }
}

// And the same things speak against it as anywhere.
TEST_F(TakeAlongTest, ABetterClaimOnAnotherThreadGoesFirst) {
  set_rules([](auto& rules) { rules.mutable_queue_limit()->set_per_second(100); });
  for (const char* id : {"a", "b", "c", "d"}) {
    const auto task = start_and_poll(id);
    const std::string other = std::string(id) + "-waits";
    StartRequest request;
    request.ns = kNs;
    request.workflow_id = other;
    request.workflow_type = "Order";
    request.task_queue = "orders";
    request.task_timeout = 10 * kSecond;
    node->start_workflow(request, [](auto result) { ASSERT_TRUE(result.ok()); });
    run();
    EXPECT_FALSE(go_on(task).has_value()) << id;
    // Both are taken, in the order in which they came.
    for (const auto& expected : {other, std::string(id)}) {
      PollRequest poll;
      poll.ns = kNs;
      poll.kind = model::WORKFLOW_TASK;
      poll.queue.set_name("orders");
      poll.identity = "ada";
      poll.hold_until = threads->front().now() + kMinute;
      WorkflowTask got;
      node->poll_workflow_task(poll, [&](auto found) { got = *found; });
      run();
      EXPECT_EQ(got.token.workflow_id, expected);
    }
  }
}

}  // namespace
}  // namespace fairlead::shard
