#include "api/fairlead/queues_testing.h"
#include "api/temporal/reflection.h"
#include "base/wire.h"
#include "google/protobuf/descriptor.h"
#include "queue/task_queue.h"

namespace fairlead::api::queues {
namespace {

using testing::kInvalidArgument;
using testing::kNotFound;
using testing::kNow;
using testing::kOk;
using testing::kRunId;

// A method that nobody serves is found out by the first user.
TEST_F(QueuesTest, EveryMethodOfTheServiceAnswersOnce) {
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(kTaskQueueService);
  ASSERT_NE(service, nullptr);
  EXPECT_EQ(service->method_count(), 12);
  for (int i = 0; i < service->method_count(); ++i) {
    EXPECT_EQ(call_bytes(path(service->method(i)->name()), "")->replies, 1);
  }
  EXPECT_EQ(engine.asked, 0);
}

// `grpcurl describe fairlead.v1.TaskQueueService` needs the file and all that it stands on.
TEST_F(QueuesTest, ReflectionKnowsTheService) {
  std::string question;
  wire::Writer(&question).bytes(4, kTaskQueueService);
  const std::string response = answer_reflection(question, {kTaskQueueService});
  int files = 0;
  wire::Reader reader(response);
  while (reader.next()) {
    if (reader.field() != 4) continue;
    wire::Reader nested(reader.bytes());
    while (nested.next()) files += nested.field() == 1 ? 1 : 0;
  }
  EXPECT_EQ(files, 3);  // ours, durations, timestamps
}

// ---- queues
// --------------------------------------------------------------------------------------

shard::QueueSummary summary(const std::string& name, model::TaskKind kind) {
  shard::QueueSummary summary;
  summary.queue = {NamespaceNum(7), kind, name};
  return summary;
}

TEST_F(QueuesTest, QueuesAreListedByNameInPages) {
  auto busy = summary("b", model::ACTIVITY_TASK);
  busy.waiting = 5;
  busy.running = 4;
  busy.keys = 3;
  busy.pollers = 2;
  busy.is_paused = true;
  engine.queue_lists.result = std::vector<shard::QueueSummary>{
      summary("c", model::WORKFLOW_TASK), busy, summary("a", model::ACTIVITY_TASK),
      summary("a", model::WORKFLOW_TASK)};
  v1::ListTaskQueuesRequest request;
  request.set_namespace_("default");
  request.set_page_size(2);
  const auto first = ask<v1::ListTaskQueuesResponse>("ListTaskQueues", request);
  ASSERT_EQ(first.task_queues_size(), 2);
  EXPECT_EQ(first.task_queues(0).task_queue().type(), v1::TASK_QUEUE_TYPE_WORKFLOW);
  EXPECT_EQ(first.task_queues(1).task_queue().type(), v1::TASK_QUEUE_TYPE_ACTIVITY);
  request.set_next_page_token(first.next_page_token());
  const auto second = ask<v1::ListTaskQueuesResponse>("ListTaskQueues", request);
  expect_same(second, from_text<v1::ListTaskQueuesResponse>(R"(
      task_queues {
        task_queue { namespace: "default" name: "b" type: TASK_QUEUE_TYPE_ACTIVITY }
        waiting: 5 running: 4 keys: 3 pollers: 2 is_paused: true
      }
      task_queues {
        task_queue { namespace: "default" name: "c" type: TASK_QUEUE_TYPE_WORKFLOW }
      })"));
  EXPECT_EQ(engine.queue_lists.requests[0].ns, NamespaceNum(7));
}

TEST_F(QueuesTest, WrongListsAreRefused) {
  using Request = v1::ListTaskQueuesRequest;
  Request valid;
  valid.set_namespace_("default");
  expect_refusals<Request>(
      path("ListTaskQueues"), valid,
      {{[](Request& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
       {[](Request& r) { r.set_namespace_("nope"); }, kNotFound, "Namespace nope is not found."},
       {[](Request& r) { r.set_page_size(-1); }, kInvalidArgument, "page_size -1 is negative"},
       {[](Request& r) { r.set_next_page_token("3/x"); }, kInvalidArgument,
        "next_page_token did not come from ListTaskQueues"},
       {[](Request& r) { r.set_next_page_token("1"); }, kInvalidArgument,
        "next_page_token did not come from ListTaskQueues"}});
}

TEST_F(QueuesTest, AQueueIsDescribedWithItsRules) {
  shard::QueueView view;
  view.pollers = {{"w1", kNow - 2 * kSecond, 5.0}, {"w2", kNow, std::nullopt}};
  view.levels[0] = {3, kNow - kSecond, 1.5, 0.5};
  view.levels[4] = {7, kNow - 90 * kSecond, 0, 0};
  view.rules.set_running_max(4);
  view.limit_per_second = 0;
  view.limit_source = shard::QueueView::LimitSource::kApi;
  view.is_limiting = true;
  view.is_fair = false;
  view.is_draining = true;
  view.running = 2;
  view.keys = 6;
  view.throttled_keys = 1;
  view.lag_max = 0.75;
  view.last_poll_ns = kNow - 3 * kSecond;
  view.parked_polls = 8;
  view.targets = {{{.version = "", .waiting = 4, .oldest_ns = kNow - kSecond, .percent = 80}, 6},
                  {{.version = "v2", .waiting = 6, .percent = 20}, 2}};
  engine.described_queues.result = view;
  admission::Payload payload;
  payload.workflow_tasks.status = admission::Status::kThrottled;
  payload.workflow_tasks.leased = 8;
  payload.workflow_tasks.budgets[at(admission::Budget::kQueueLeases)] = {8, 8, 0};
  payload.workflow_tasks.group = "openai";
  payload.activity_tasks.kind = admission::TaskKind::kActivity;
  payload.query_tasks.pending = 7;
  engine.described_admissions.result = payload;
  auto shown = ask<v1::DescribeTaskQueueResponse>("DescribeTaskQueue",
                                                  about_orders<v1::DescribeTaskQueueRequest>());
  expect_same(shown.admission(), from_text<v1::Admission>(R"(
      workflow_tasks {
        status: "throttled" leased_count: 8
        server_max_active_leases_per_queue: 8 server_active_lease_count: 8
        server_remaining_active_lease_capacity: 0
        server_dispatch_budget_group: "openai" server_lock_supported: true
        budget_source: "worker_registration.max_concurrent_workflow_tasks"
      }
      activity_tasks {
        status: "accepting" server_lock_supported: true
        budget_source: "worker_registration.max_concurrent_activity_tasks"
      }
      query_tasks {
        status: "accepting" approximate_pending_count: 7 lock_required: true lock_supported: true
        budget_source: "server.query_tasks.max_pending_per_queue"
      })"));
  EXPECT_EQ(engine.described_admissions.requests[0].queue, "orders");
  shown.clear_admission();
  expect_same(shown, from_text<v1::DescribeTaskQueueResponse>(R"(
      task_queue { namespace: "default" name: "orders" type: TASK_QUEUE_TYPE_ACTIVITY }
      waiting: 10 running: 2 oldest_age { seconds: 90 }
      levels { level: 1 waiting: 3 oldest_age { seconds: 1 } added_per_second: 1.5
               dispatched_per_second: 0.5 }
      levels { level: 2 } levels { level: 3 } levels { level: 4 }
      levels { level: 5 waiting: 7 oldest_age { seconds: 90 } }
      pollers { identity: "w1" last_access_age { seconds: 2 } max_tasks_per_second: 5 }
      pollers { identity: "w2" last_access_age {} }
      parked_polls: 8 last_poll_age { seconds: 3 } is_draining: true keys: 6 throttled_keys: 1
      lag_max: 0.75 rate_per_second: 0 rate_source: LIMIT_SOURCE_API is_rate_limiting: true
      config { running_max: 4 fairness: FAIRNESS_DEFAULT first_turn: FIRST_TURN_DEFAULT
               transition: TRANSITION_DEFAULT basis: BASIS_DEFAULT
               poller_order: POLLER_ORDER_DEFAULT }
      versions { waiting: 4 oldest_age { seconds: 1 } parked_polls: 6 default_percent: 80 }
      versions { version: "v2" waiting: 6 parked_polls: 2 default_percent: 20 })"));
  EXPECT_EQ(engine.described_queues.requests[0].name, "orders");
  EXPECT_EQ(engine.described_queues.requests[0].kind, model::ACTIVITY_TASK);

  // An unused queue has no rate, no age and no poll.
  engine.described_queues.result = shard::QueueView{.limit_per_second = 100'000};
  const auto empty = ask<v1::DescribeTaskQueueResponse>(
      "DescribeTaskQueue", about_orders<v1::DescribeTaskQueueRequest>());
  EXPECT_FALSE(empty.has_rate_per_second());
  EXPECT_EQ(empty.rate_source(), v1::DescribeTaskQueueResponse::LIMIT_SOURCE_SYSTEM);
  EXPECT_FALSE(empty.has_oldest_age());
  EXPECT_FALSE(empty.has_last_poll_age());
  EXPECT_TRUE(empty.is_fair());
}

TEST_F(QueuesTest, EveryRuleIsShown) {
  shard::QueueView view;
  view.rules = from_text<model::QueueRules>(R"(
      queue_limit { per_second: 500 reason: "overall" identity: "ada" updated_ns: 5000000001 }
      key_limit { reason: "gone" identity: "bob" updated_ns: 6000000000 }
      weights { key: "b" value: 2.5 }
      weights { key: "a" value: 0.5 }
      keys { key: "a" value { per_second: 7 running_max: 2 } }
      keys { key: "" value { pause { reason: "r" identity: "i" since_ns: 7000000000 } } }
      keys { key: "c" value { drain_below: 12 } }
      running_max: 0 running_max_per_key: 3
      pause { since_ns: 1000000000 }
      fairness: OFF first_turn: PROMPT transition: IMMEDIATE basis: IN_FLIGHT
      poller_order: LIFO)");
  engine.described_queues.result = view;
  const auto shown = ask<v1::DescribeTaskQueueResponse>(
      "DescribeTaskQueue", about_orders<v1::DescribeTaskQueueRequest>());
  expect_same(shown.config(), from_text<v1::TaskQueueConfig>(R"(
      queue_rate { per_second: 500 reason: "overall" identity: "ada"
                   updated { seconds: 5 nanos: 1 } }
      key_rate_default { reason: "gone" identity: "bob" updated { seconds: 6 } }
      running_max: 0 running_max_per_key: 3
      pause { since { seconds: 1 } }
      fairness: FAIRNESS_OFF first_turn: FIRST_TURN_PROMPT transition: TRANSITION_IMMEDIATE
      basis: BASIS_IN_FLIGHT poller_order: POLLER_ORDER_LIFO
      keys { key: "" pause { reason: "r" identity: "i" since { seconds: 7 } } }
      keys { key: "a" weight: 0.5 running_max: 2 rate_per_second: 7 }
      keys { key: "b" weight: 2.5 }
      keys { key: "c" is_draining: true })"));
}

TEST_F(QueuesTest, WrongQueuesAreRefused) {
  using Request = v1::DescribeTaskQueueRequest;
  expect_refusals<Request>(path("DescribeTaskQueue"), about_orders<Request>(),
                           bad_queues<Request>());
}

// ---- keys
// ----------------------------------------------------------------------------------------

queue::KeyView key_named(const std::string& name) {
  queue::KeyView view;
  view.key = name;
  return view;
}

TEST_F(QueuesTest, KeysAreShownWithWhatTheyGotAndWhatHoldsThem) {
  queue::KeyView view = key_named("acme");
  view.waiting = 9;
  view.waiting_by_level = {0, 0, 9, 0, 0};
  view.oldest_ns = kNow - 4 * kSecond;
  view.dispatched = 100;
  view.running = 3;
  view.recent = 25;
  view.weight = 2.5;
  view.is_weight_overridden = true;
  view.ideal_share = 0.5;
  view.lag = -0.25;
  view.holds =
      queue::kPaused | queue::kCapped | queue::kThrottled | queue::kTimed | queue::kDrained;
  view.throttled_until = kNow + kSecond / 2;
  engine.key_lists.result = shard::KeysView{{view, key_named("")}, 40, 50};
  const auto list = ask<v1::ListKeysResponse>("ListKeys", about_orders<v1::ListKeysRequest>());
  expect_same(list, from_text<v1::ListKeysResponse>(R"(
      keys {
        key: "acme" waiting: 9 waiting_by_level: [0, 0, 9, 0, 0] oldest_age { seconds: 4 }
        running: 3 dispatched: 100 share: 0.5 ideal_share: 0.5 lag: -0.25 weight: 2.5
        weight_source: WEIGHT_SOURCE_OVERRIDE
        holds: [HOLD_PAUSED, HOLD_CAPPED, HOLD_THROTTLED, HOLD_OWN_RATE, HOLD_DRAINED]
        throttled_for { nanos: 500000000 }
      }
      keys { weight: 1 weight_source: WEIGHT_SOURCE_TASK }
      total: 40)"));
  const auto& asked = engine.key_lists.requests[0];
  EXPECT_EQ(asked.by, shard::KeysRequest::By::kBacklog);
  EXPECT_EQ(asked.max, 100u);
  EXPECT_EQ(asked.queue.name, "orders");
}

// A limit of 0 lets a key go when it is changed, and no clock knows when that is.
TEST_F(QueuesTest, AKeyThatIsThrottledForGoodHasNoEndOfIt) {
  queue::KeyView view = key_named("acme");
  view.holds = queue::kThrottled;
  view.throttled_until = kNever;
  engine.key_lists.result = shard::KeysView{{view}, 1, 0};
  const auto list = ask<v1::ListKeysResponse>("ListKeys", about_orders<v1::ListKeysRequest>());
  EXPECT_FALSE(list.keys(0).has_throttled_for());
  EXPECT_EQ(list.keys(0).share(), 0);
}

TEST_F(QueuesTest, KeysByNameHavePages) {
  engine.key_lists.result = shard::KeysView{{key_named(""), key_named("a"), key_named("b")}, 3, 0};
  auto request = about_orders<v1::ListKeysRequest>("order: ORDER_NAME page_size: 2");
  const auto first = ask<v1::ListKeysResponse>("ListKeys", request);
  EXPECT_EQ(engine.key_lists.requests[0].by, shard::KeysRequest::By::kName);
  EXPECT_EQ(engine.key_lists.requests[0].after, "");
  EXPECT_EQ(engine.key_lists.requests[0].max, 3u);
  ASSERT_EQ(first.keys_size(), 2);
  ASSERT_NE(first.next_page_token(), "");
  request.set_next_page_token(first.next_page_token());
  engine.key_lists.result = shard::KeysView{{key_named("b")}, 3, 0};
  const auto second = ask<v1::ListKeysResponse>("ListKeys", request);
  EXPECT_EQ(engine.key_lists.requests[1].after, "a");
  ASSERT_EQ(second.keys_size(), 1);
  EXPECT_EQ(second.next_page_token(), "");
}

// The first key of all has an empty name, and "after nothing" is where a list begins: a reader who
// turns the page there must not come back to it for ever.
TEST_F(QueuesTest, APageMayEndWithTheTasksWithoutAKey) {
  engine.key_lists.result = shard::KeysView{{key_named(""), key_named("a"), key_named("b")}, 3, 0};
  auto request = about_orders<v1::ListKeysRequest>("order: ORDER_NAME page_size: 1");
  std::string seen;
  for (int page = 0; page < 2; ++page) {
    const auto list = ask<v1::ListKeysResponse>("ListKeys", request);
    ASSERT_EQ(list.keys_size(), 1);
    seen += "[" + list.keys(0).key() + "]";
    request.set_next_page_token(list.next_page_token());
  }
  EXPECT_EQ(seen, "[][a]");
  EXPECT_EQ(engine.key_lists.requests[1].max, 3u);
}

// The same with a real queue behind it, from the first page to the last: every key comes once, the
// unkeyed group among them, whether it waits or not, and then the list ends.
TEST_F(QueuesTest, PagesOfOneKeyComeToAnEnd) {
  struct NoRows : queue::Backlog {
    std::vector<queue::Numbered> read(const std::string&, uint32_t, const std::string&, TaskSeq,
                                      size_t) override {
      return {};
    }
  };
  engine.key_lists.holds = true;
  const std::vector<std::vector<std::string>> cases{{""}, {"", "a"}, {"", "a", "b"}, {"a", "b"}};
  for (const auto& names : cases) {
    for (int page_size = 1; page_size <= 3; ++page_size) {
      NoRows rows;
      queue::TaskQueue waiting(&rows, {});
      for (const auto& name : names) waiting.add(waiting.reserve(3, name), {}, kNow);
      auto request = about_orders<v1::ListKeysRequest>("order: ORDER_NAME");
      request.set_page_size(page_size);
      std::vector<std::string> seen;
      size_t pages = 0;
      do {
        ASSERT_LE(++pages, names.size()) << "the list has no end";
        const auto made = call(path("ListKeys"), request);
        const auto& asked = engine.key_lists.requests.back();
        engine.key_lists.held.back()(
            shard::KeysView{waiting.list_keys(asked.after, asked.max, kNow), waiting.keys(), 0});
        v1::ListKeysResponse list;
        ASSERT_TRUE(list.ParseFromString(made->answer));
        for (const auto& key : list.keys()) seen.push_back(key.key());
        request.set_next_page_token(list.next_page_token());
      } while (!request.next_page_token().empty());
      EXPECT_EQ(seen, names) << "pages of " << page_size;
    }
  }
}

TEST_F(QueuesTest, NamedKeysAreAskedForByName) {
  ask<v1::ListKeysResponse>(
      "ListKeys", about_orders<v1::ListKeysRequest>(R"(keys: "a" keys: "" page_size: 1)"));
  const auto& asked = engine.key_lists.requests[0];
  EXPECT_EQ(asked.by, shard::KeysRequest::By::kNamed);
  EXPECT_EQ(asked.named, (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(asked.max, 2u);
}

TEST_F(QueuesTest, WrongKeyListsAreRefused) {
  using Request = v1::ListKeysRequest;
  auto cases = bad_queues<Request>();
  cases.push_back(
      {[](Request& r) { r.set_page_size(-5); }, kInvalidArgument, "page_size -5 is negative"});
  cases.push_back({[](Request& r) { r.set_next_page_token("ka"); }, kInvalidArgument,
                   "only keys by name have pages"});
  cases.push_back({[](Request& r) {
                     r.set_order(Request::ORDER_NAME);
                     r.set_next_page_token("a");
                   },
                   kInvalidArgument, "next_page_token did not come from ListKeys"});
  cases.push_back({[](Request& r) { r.set_order(static_cast<Request::Order>(9)); },
                   kInvalidArgument, "order 9 is unknown; 1 is by backlog, 2 is by name"});
  cases.push_back({[](Request& r) { r.add_keys(std::string(65, 'k')); }, kInvalidArgument,
                   "a fairness key of 65 bytes is too long; 64 are allowed"});
  cases.push_back({[](Request& r) {
                     for (int i = 0; i < 1001; ++i) r.add_keys("k");
                   },
                   kInvalidArgument, "1001 keys are named; at most 1000 may be in one request"});
  expect_refusals<Request>(path("ListKeys"), about_orders<Request>(), cases);
}

// ---- explain
// -------------------------------------------------------------------------------------

v1::ExplainRequest explain_order_1() {
  return from_text<v1::ExplainRequest>(
      R"(namespace: "default" workflow_id: "order-1" activity_id: "5")");
}

TEST_F(QueuesTest, AWaitingTaskIsExplainedInFieldsAndInWords) {
  shard::Explanation why;
  why.state = shard::Explanation::State::kWaiting;
  why.queue = {NamespaceNum(7), model::ACTIVITY_TASK, "orders"};
  why.level = 3;
  why.priority.set_fairness_key("acme");
  why.weight = 2.5;
  why.is_weight_overridden = true;
  why.since_ns = kNow - 12 * kSecond;
  why.standing.tasks_before_in_line = 3;
  why.standing.keys_before = 2;
  why.standing.holds = queue::kThrottled;
  why.standing.key_ready_ns = kNow + 400 * kMillisecond;
  why.last_poll_ns = kNow - 5 * kSecond;
  engine.explanations.result = why;
  engine.described_queues.result->rules.mutable_key_limit()->set_per_second(10);
  const auto shown = ask<v1::ExplainResponse>("Explain", explain_order_1());
  expect_same(shown, from_text<v1::ExplainResponse>(R"(
      state: STATE_WAITING
      sentences: "Activity 5 of workflow order-1 waits in queue orders (activity), level 3, key acme, since 12 s."
      sentences: "3 tasks of its key are before it."
      sentences: "2 keys are served before its key's next task."
      sentences: "Its key is throttled for another 0.4 s (limit 10/s x weight 2.5)."
      sentences: "No worker waits for a task here; the last poll was 5 s ago."
      task_queue { namespace: "default" name: "orders" type: TASK_QUEUE_TYPE_ACTIVITY }
      level: 3 key: "acme" weight: 2.5 weight_source: WEIGHT_SOURCE_OVERRIDE
      age { seconds: 12 } tasks_before: 3 keys_before: 2 holds: HOLD_THROTTLED
      key_ready_in { nanos: 400000000 } last_poll_age { seconds: 5 })"));
  EXPECT_EQ(engine.explanations.requests[0].run.workflow_id, "order-1");
  EXPECT_EQ(engine.explanations.requests[0].activity_id, "5");
  // The rules are those of the queue that the task is in.
  EXPECT_EQ(engine.described_queues.requests[0].name, "orders");
}

TEST_F(QueuesTest, ATaskThatDoesNotWaitNeedsNoQueueToBeExplained) {
  engine.explanations.result->state = shard::Explanation::State::kBackingOff;
  engine.explanations.result->queue = {NamespaceNum(7), model::ACTIVITY_TASK, "orders"};
  engine.explanations.result->next_attempt_ns = kNow + 3 * kSecond;
  auto shown = ask<v1::ExplainResponse>("Explain", explain_order_1());
  EXPECT_EQ(shown.state(), v1::ExplainResponse::STATE_BACKING_OFF);
  EXPECT_EQ(shown.next_attempt_in().seconds(), 3);
  EXPECT_FALSE(shown.has_age());

  engine.explanations.result->state = shard::Explanation::State::kRunning;
  engine.explanations.result->since_ns = kNow - kSecond;
  engine.explanations.result->worker_identity = "w1";
  shown = ask<v1::ExplainResponse>("Explain", explain_order_1());
  EXPECT_EQ(shown.state(), v1::ExplainResponse::STATE_RUNNING);
  EXPECT_EQ(shown.age().seconds(), 1);
  EXPECT_EQ(shown.worker_identity(), "w1");

  engine.explanations.result = shard::Explanation();
  shown = ask<v1::ExplainResponse>("Explain", explain_order_1());
  expect_same(shown, from_text<v1::ExplainResponse>(R"(
      state: STATE_NOTHING_TO_DO
      sentences: "Workflow order-1 has no open activity 5.")"));
  EXPECT_TRUE(engine.described_queues.requests.empty());
}

TEST_F(QueuesTest, TheEnginesRefusalIsTheAnswer) {
  engine.explanations.result = errors::workflow_not_found("order-1");
  EXPECT_EQ(call(path("Explain"), explain_order_1())->status.code, kNotFound);
  engine.explanations.result = shard::Explanation{.state = shard::Explanation::State::kWaiting};
  engine.described_queues.result = errors::system_overloaded();
  const auto made = call(path("Explain"), explain_order_1());
  EXPECT_EQ(made->replies, 1);
  EXPECT_EQ(made->status.code, testing::kResourceExhausted);
}

TEST_F(QueuesTest, WrongQuestionsAreRefused) {
  using Request = v1::ExplainRequest;
  expect_refusals<Request>(
      path("Explain"), explain_order_1(),
      {{[](Request& r) { r.set_namespace_("nope"); }, kNotFound, "Namespace nope is not found."},
       {[](Request& r) { r.clear_workflow_id(); }, kInvalidArgument,
        "WorkflowId is not set on request."},
       {[](Request& r) { r.set_run_id("x"); }, kInvalidArgument, "Invalid RunId."},
       {[](Request& r) { r.set_activity_id(std::string(1001, 'a')); }, kInvalidArgument,
        "ActivityId length exceeds limit."}});
  auto request = explain_order_1();
  request.set_run_id(kRunId);
  EXPECT_EQ(call(path("Explain"), request)->status.code, kOk);
  EXPECT_EQ(engine.explanations.requests.back().run.run_id, kRunId);
}

}  // namespace
}  // namespace fairlead::api::queues
