// How many workflow tasks are with workers at a time, and who gets the next one.

#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shard/node_testing.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

const NamespaceNum kNs(1);

struct Completion {
  std::string sticky;
  bool forces = false;
  bool takes_along = false;
  bool closes = false;
};

class WorkflowCapsTest : public testing::Test {
 protected:
  WorkflowCapsTest() { restart(); }

  // As after a crash.
  void restart() {
    const TimeNs now = life == nullptr ? 0 : life->thread.now();
    life = std::make_unique<Life>(&store);
    if (now != 0) life->thread.run_for(std::max<DurationNs>(0, now - life->thread.now()));
  }
  void start(const std::string& id, const std::string& key = "", int level = 0) {
    StartRequest request;
    request.ns = kNs;
    request.workflow_id = id;
    request.workflow_type = "Order";
    request.task_queue = "orders";
    request.priority.set_fairness_key(key);
    request.priority.set_priority_key(level);
    request.task_timeout = 10 * kSecond;
    life->node->start_workflow(request,
                               [](auto result) { ASSERT_TRUE(result.ok()) << result.status(); });
    life->thread.run();
  }
  StartResult start_eagerly(const std::string& id, const std::string& key) {
    StartRequest request;
    request.ns = kNs;
    request.workflow_id = id;
    request.workflow_type = "Order";
    request.task_queue = "orders";
    request.priority.set_fairness_key(key);
    request.task_timeout = 10 * kSecond;
    request.eager_identity = "ada";
    StartResult answer;
    life->node->start_workflow(request, [&](auto result) { answer = *result; });
    life->thread.run();
    return answer;
  }
  void signal(const std::string& id) {
    SignalRequest request;
    request.run = {kNs, id, ""};
    life->node->signal_workflow(request, [](auto result) { ASSERT_TRUE(result.ok()); });
    life->thread.run();
  }
  // What a poll gets, and whether it got something. One that waits is kept in `polls`.
  struct Polled {
    std::optional<WorkflowTask> task;
    bool has_task() const { return task.has_value() && !task->token.workflow_id.empty(); }
    std::string id() const { return has_task() ? task->token.workflow_id : ""; }
  };
  std::shared_ptr<Polled> poll(const std::string& sticky = "") {
    PollRequest request;
    request.ns = kNs;
    request.kind = model::WORKFLOW_TASK;
    request.queue = target(sticky);
    request.identity = "ada";
    request.hold_until = life->thread.now() + kMinute;
    auto polled = std::make_shared<Polled>();
    life->node->poll_workflow_task(request, [polled](auto task) { polled->task = *task; });
    life->thread.run();
    return polled;
  }
  static model::QueueTarget target(const std::string& sticky) {
    model::QueueTarget queue;
    queue.set_name(sticky.empty() ? "orders" : sticky);
    if (sticky.empty()) return queue;
    queue.set_sticky(true);
    queue.set_normal_name("orders");
    return queue;
  }
  std::optional<WorkflowTask> complete(const WorkflowTask& task, const Completion& how = {}) {
    CompleteWorkflowTask request;
    request.token = task.token;
    request.identity = "ada";
    request.force_new_task = how.forces;
    request.return_new_task = how.takes_along;
    if (how.closes) {
      model::Event event;
      event.set_kind(model::WORKFLOW_COMPLETED);
      event.mutable_workflow_closed();
      request.commands.push_back(event);
    }
    if (!how.sticky.empty()) {
      request.sticky.emplace();
      request.sticky->set_name(how.sticky);
      request.sticky->set_schedule_to_start_ns(10 * kSecond);
    }
    std::optional<WorkflowTask> next;
    life->node->complete_workflow_task(request, [&](auto result) {
      ASSERT_TRUE(result.ok()) << result.status();
      next = std::move(result->new_task);
    });
    life->thread.run();
    return next;
  }
  template <typename Change>
  void set_rules(Change change) {
    ChangeRules request{{kNs, model::WORKFLOW_TASK, "orders"},
                        [change](model::QueueRules& rules, TimeNs) {
                          change(rules);
                          return absl::OkStatus();
                        }};
    life->node->change_rules(std::move(request), [](auto result) { ASSERT_TRUE(result.ok()); });
    life->thread.run();
  }
  int64_t running() {
    int64_t running = -1;
    life->node->describe_queue({kNs, model::WORKFLOW_TASK, "orders"},
                               [&](auto view) { running = view->running; });
    life->thread.run();
    return running;
  }

  store::MemoryStore store;
  std::unique_ptr<Life> life;
};

TEST_F(WorkflowCapsTest, NoMoreRunThanTheQueueMayHave) {
  set_rules([](auto& rules) { rules.set_running_max(2); });
  for (const char* id : {"a", "b", "c"}) start(id);
  const auto first = poll();
  const auto second = poll();
  const auto third = poll();
  EXPECT_TRUE(first->has_task() && second->has_task());
  EXPECT_FALSE(third->has_task());
  EXPECT_EQ(running(), 2);
  complete(*first->task);
  EXPECT_EQ(third->id(), "c");
  EXPECT_EQ(running(), 2);
}

// A tenant at its cap delays nobody.
TEST_F(WorkflowCapsTest, NoMoreRunThanAKeyMayHave) {
  set_rules([](auto& rules) { rules.set_running_max_per_key(1); });
  start("a1", "acme");
  start("a2", "acme");
  start("b1", "bolt");
  const auto first = poll();
  const auto second = poll();
  const auto third = poll();
  EXPECT_EQ(first->id(), "a1");
  EXPECT_EQ(second->id(), "b1");
  EXPECT_FALSE(third->has_task());
  complete(*first->task, {.closes = true});
  EXPECT_EQ(third->id(), "a2");
}

// Every way in which a worker loses a workflow task gives its place back.
TEST_F(WorkflowCapsTest, APlaceIsFreeAgainHoweverTheTaskEnds) {
  set_rules([](auto& rules) { rules.set_running_max(1); });
  start("a");
  ASSERT_TRUE(poll()->has_task());
  life->thread.run_for(11 * kSecond);
  EXPECT_EQ(running(), 0) << "its time was over";
  const auto again = poll();
  ASSERT_TRUE(again->has_task());
  FailWorkflowTask failed;
  failed.token = again->task->token;
  life->node->fail_workflow_task(failed, [](auto result) { ASSERT_TRUE(result.ok()); });
  life->thread.run();
  EXPECT_EQ(running(), 0) << "it failed";
  life->thread.run_for(kMinute);
  const auto third = poll();
  ASSERT_TRUE(third->has_task());
  life->node->return_workflow_task(third->task->token);
  life->thread.run();
  EXPECT_EQ(running(), 0) << "the worker never got it";
  life->thread.run_for(kMinute);
  ASSERT_TRUE(poll()->has_task());
  EXPECT_EQ(running(), 1);
  TerminateRequest terminate;
  terminate.run = {kNs, "a", ""};
  life->node->terminate_workflow(terminate, [](auto result) { ASSERT_TRUE(result.ok()); });
  life->thread.run();
  EXPECT_EQ(running(), 0) << "its run was terminated";
}

TEST_F(WorkflowCapsTest, ACrashForgetsNoneAndCountsNoneTwice) {
  set_rules([](auto& rules) { rules.set_running_max_per_key(2); });
  for (const char* id : {"a1", "a2", "a3"}) start(id, "acme");
  const auto first = poll();
  const auto second = poll();
  ASSERT_TRUE(first->has_task() && second->has_task());
  restart();
  EXPECT_EQ(running(), 2);
  const auto third = poll();
  EXPECT_FALSE(third->has_task());
  complete(*first->task, {.closes = true});
  EXPECT_EQ(third->id(), "a3");
  EXPECT_EQ(running(), 2);
  restart();
  EXPECT_EQ(running(), 2);
}

// A queue is told of what is out when the server starts, and nothing that it reads later may count
// again what it was told.
TEST_F(WorkflowCapsTest, AnEndThatIsNotToldYetIsNotCountedTwice) {
  set_rules([](auto& rules) { rules.set_running_max(2); });
  for (const char* id : {"a", "b", "c", "d"}) start(id);
  const auto first = poll();
  const auto second = poll();
  restart();
  complete(*first->task, {.closes = true});
  const auto third = poll();
  const auto fourth = poll();
  EXPECT_TRUE(third->has_task());
  EXPECT_FALSE(fourth->has_task());
  EXPECT_EQ(running(), 2);
}

TEST_F(WorkflowCapsTest, TasksOnAWorkersOwnQueueCount) {
  set_rules([](auto& rules) { rules.set_running_max(1); });
  start("a");
  start("b");
  const auto first = poll();
  ASSERT_EQ(first->id(), "a");
  const auto own = poll("ada-1");
  complete(*first->task, {.sticky = "ada-1"});
  ASSERT_EQ(own->id(), "b") << "the worker took what everyone may have";
  signal("a");
  const auto next = poll("ada-1");
  EXPECT_FALSE(next->has_task()) << "its own task has to wait for a place";
  complete(*own->task);
  EXPECT_EQ(next->id(), "a");
  EXPECT_EQ(running(), 1);
}

// It had a place when it was put into the worker's queue, and then somebody else took that.
TEST_F(WorkflowCapsTest, ATaskThatWaitsForItsWorkerHasNoPlaceYet) {
  set_rules([](auto& rules) { rules.set_running_max(1); });
  start("a");
  const auto first = poll();
  complete(*first->task, {.sticky = "ada-1"});
  (void)poll("ada-1");
  life->thread.run_for(kMinute);  // the poll has just ended: the worker is alive, and busy
  signal("a");
  start("b");
  const auto other = poll();
  ASSERT_EQ(other->id(), "b");
  const auto own = poll("ada-1");
  EXPECT_FALSE(own->has_task());
  EXPECT_EQ(running(), 1);
  complete(*other->task, {.closes = true});
  EXPECT_EQ(own->id(), "a");
  EXPECT_EQ(running(), 1);
}

TEST_F(WorkflowCapsTest, EagerStartsCount) {
  set_rules([](auto& rules) { rules.set_running_max_per_key(1); });
  const auto first = start_eagerly("a1", "acme");
  ASSERT_NE(first.eager_task, nullptr);
  EXPECT_EQ(start_eagerly("a2", "acme").eager_task, nullptr);
  EXPECT_EQ(running(), 1);
  complete(*first.eager_task, {.closes = true});
  EXPECT_EQ(poll()->id(), "a2");
}

// ---- tasks taken along with a completion

TEST_F(WorkflowCapsTest, AWorkerTakesTheNextTaskAlongIfNobodyHasABetterClaim) {
  start("a", "acme");
  const auto first = poll();
  const auto next = complete(*first->task, {.forces = true, .takes_along = true});
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(running(), 1);
  start("b", "bolt");
  EXPECT_FALSE(complete(*next, {.forces = true, .takes_along = true}).has_value())
      << "bolt has waited";
  EXPECT_EQ(poll()->id(), "b");
  EXPECT_EQ(poll()->id(), "a");
}

TEST_F(WorkflowCapsTest, APauseHoldsWhatAWorkerWouldTakeAlong) {
  start("a", "acme");
  const auto first = poll();
  set_rules([](auto& rules) { (*rules.mutable_keys())["acme"].mutable_pause(); });
  EXPECT_FALSE(
      complete(*first->task, {.sticky = "ada-1", .forces = true, .takes_along = true}).has_value());
  EXPECT_EQ(running(), 0);
  const auto own = poll("ada-1");
  EXPECT_FALSE(own->has_task());
  set_rules([](auto& rules) { rules.mutable_keys()->erase("acme"); });
  EXPECT_EQ(own->id(), "a");

  set_rules([](auto& rules) { rules.mutable_pause(); });
  EXPECT_FALSE(
      complete(*own->task, {.sticky = "ada-1", .forces = true, .takes_along = true}).has_value());
  const auto later = poll("ada-1");
  EXPECT_FALSE(later->has_task());
  set_rules([](auto& rules) { rules.clear_pause(); });
  EXPECT_EQ(later->id(), "a");
}

// A worker with a local activity that takes long asks for a new task again and again. At a cap its
// place is its own: if it lost that, the activity would begin anew somewhere else, for ever.
TEST_F(WorkflowCapsTest, WhoGoesOnWithATaskKeepsItsPlaceAtACap) {
  set_rules([](auto& rules) { rules.set_running_max_per_key(1); });
  start("a1", "acme");
  start("a2", "acme");
  auto task = *poll()->task;
  (void)poll("ada-1");
  for (int i = 0; i < 5; ++i) {
    auto next = complete(task, {.sticky = "ada-1", .forces = true, .takes_along = true});
    ASSERT_TRUE(next.has_value()) << "heartbeat " << i;
    task = std::move(*next);
    EXPECT_EQ(running(), 1);
  }
  restart();
  EXPECT_EQ(running(), 1);
}

// One that is done with what it was asked has no such right: others of its key have waited longer.
TEST_F(WorkflowCapsTest, AtACapANewEventIsNoReasonToStayBeforeOthers) {
  set_rules([](auto& rules) { rules.set_running_max_per_key(1); });
  start("a1", "acme");
  start("a2", "acme");
  const auto first = poll();
  ASSERT_EQ(first->id(), "a1");
  (void)poll("ada-1");
  signal("a1");
  EXPECT_FALSE(complete(*first->task, {.sticky = "ada-1", .takes_along = true}).has_value());
  life->thread.run();
  EXPECT_EQ(running(), 1);
}

// On a worker's own queue only what is more urgent goes before its own next task.
TEST_F(WorkflowCapsTest, WhatIsMoreUrgentGoesBeforeATaskThatIsTakenAlong) {
  start("a", "acme", 3);
  const auto first = poll();
  const auto other = poll("ada-1");
  start("b", "bolt", 3);
  ASSERT_EQ(other->id(), "b");
  start("d", "bolt", 3);
  const auto next =
      complete(*first->task, {.sticky = "ada-1", .forces = true, .takes_along = true});
  ASSERT_TRUE(next.has_value()) << "its own task comes first among equals";
  start("c", "bolt", 1);
  EXPECT_FALSE(
      complete(*next, {.sticky = "ada-1", .forces = true, .takes_along = true}).has_value());
  EXPECT_EQ(poll("ada-1")->id(), "c");
  EXPECT_EQ(poll("ada-1")->id(), "a");
}

}  // namespace
}  // namespace fairlead::shard
