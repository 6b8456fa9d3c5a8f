#include "server/task_queue_commands.h"

#include <deque>
#include <sstream>

#include "api/temporal/proto_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/task_queue_flags.h"

// Whole command lines against a server that notes what it is asked.
namespace fairlead::server {
namespace {

using api::expect_same;
using api::from_text;
using ::testing::HasSubstr;

constexpr int kUsage = -1;

class TaskQueueCommandsTest : public ::testing::Test {
 protected:
  // The exit code, or kUsage if the line was not understood; the reason is in `errors` then.
  int run(std::vector<std::string> words) {
    calls.clear();
    out.str("");
    errors.str("");
    CLI::App app;
    CommandRun chosen;
    Desk desk;
    desk.ask = [this](const std::string& address, DurationNs timeout, const std::string& method,
                      const std::string& body) -> absl::StatusOr<std::string> {
      calls.push_back({address, timeout, method, body});
      if (answers.empty()) return std::string();
      auto answer = std::move(answers.front());
      answers.pop_front();
      return answer;
    };
    desk.identity = "ada@host";
    desk.out = &out;
    desk.errors = &errors;
    add_task_queue_commands(&app, &chosen, std::move(desk));
    words.insert(words.begin(), {"fairlead", "task-queue"});
    std::vector<const char*> argv;
    for (const auto& word : words) argv.push_back(word.c_str());
    try {
      app.parse(static_cast<int>(argv.size()), argv.data());
    } catch (const CLI::ParseError& error) {
      errors << error.what();
      return kUsage;
    }
    return chosen();
  }

  // Adds the flags that name the queue orders (activity).
  int run_on_orders(std::vector<std::string> words) {
    words.insert(words.end(), {"--task-queue", "orders", "--task-queue-type", "activity"});
    return run(std::move(words));
  }

  template <typename Request>
  void expect_asked(const std::string& method, const std::string& text) {
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].method, "/fairlead.v1.TaskQueueService/" + method);
    Request request;
    ASSERT_TRUE(request.ParseFromString(calls[0].body));
    expect_same(request, from_text<Request>(text));
  }

  template <typename Response>
  void will_answer(const std::string& text) {
    answers.push_back(from_text<Response>(text).SerializeAsString());
  }

  struct Asked {
    std::string address;
    DurationNs timeout;
    std::string method;
    std::string body;
  };
  std::vector<Asked> calls;
  std::deque<absl::StatusOr<std::string>> answers;
  std::ostringstream out;
  std::ostringstream errors;
};

const std::string kOrders =
    R"(task_queue { namespace: "default" name: "orders" type: TASK_QUEUE_TYPE_ACTIVITY } )";

// ---- looking
// -------------------------------------------------------------------------------------

TEST_F(TaskQueueCommandsTest, ListShowsEveryPage) {
  will_answer<v1::ListTaskQueuesResponse>(R"(
      task_queues {
        task_queue { name: "orders" type: TASK_QUEUE_TYPE_ACTIVITY }
        waiting: 1200 running: 8 keys: 3 pollers: 2 is_paused: true
      }
      next_page_token: "2/orders")");
  will_answer<v1::ListTaskQueuesResponse>(
      R"(task_queues { task_queue { name: "orders" type: TASK_QUEUE_TYPE_WORKFLOW } })");
  EXPECT_EQ(run({"list", "-n", "shop", "--address", "there:1", "--timeout", "2.5"}), 0);
  EXPECT_EQ(out.str(),
            "TASK QUEUE  TYPE      WAITING  RUNNING  KEYS  POLLERS  STATE\n"
            "orders      activity     1200        8     3        2  paused\n"
            "orders      workflow        0        0     0        0\n");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].address, "there:1");
  EXPECT_EQ(calls[0].timeout, 2'500 * kMillisecond);
  v1::ListTaskQueuesRequest second;
  ASSERT_TRUE(second.ParseFromString(calls[1].body));
  expect_same(second, from_text<v1::ListTaskQueuesRequest>(
                          R"(namespace: "shop" page_size: 1000 next_page_token: "2/orders")"));
}

TEST_F(TaskQueueCommandsTest, DescribeShowsAQueue) {
  will_answer<v1::DescribeTaskQueueResponse>(kOrders + R"(
      waiting: 10 running: 2 oldest_age { seconds: 90 }
      levels { level: 1 waiting: 10 oldest_age { seconds: 90 } added_per_second: 1.5 }
      levels { level: 2 }
      pollers { identity: "w1" last_access_age { seconds: 2 } max_tasks_per_second: 5 }
      parked_polls: 8 last_poll_age { seconds: 3 } is_fair: true is_draining: true keys: 1
      lag_max: 0.75 rate_per_second: 500 rate_source: LIMIT_SOURCE_API is_rate_limiting: true
      config {
        queue_rate { per_second: 500 reason: "overall" identity: "ada"
                     updated { seconds: 1700000000 } }
        key_rate_default { identity: "bob" updated { seconds: 1700000000 } }
        running_max: 10 fairness: FAIRNESS_DEFAULT first_turn: FIRST_TURN_PROMPT
        transition: TRANSITION_DRAIN_PER_LEVEL basis: BASIS_DEFAULT poller_order: POLLER_ORDER_DEFAULT
        keys { key: "a" weight: 2.5 running_max: 3 rate_per_second: 7 is_draining: true }
        keys { key: "" pause { identity: "ada" reason: "why" since { seconds: 1700000000 } } }
      }
      admission {
        workflow_tasks { status: "no_active_workers" }
        activity_tasks {
          status: "throttled"
          server_max_active_leases_per_queue: 8 server_active_lease_count: 8
          server_max_active_leases_per_namespace: 300 server_namespace_active_lease_count: 149
          server_max_dispatches_per_minute: 120 server_dispatch_count_this_minute: 14
          server_max_dispatches_per_minute_per_namespace: 6000
          server_dispatch_budget_group: "openai"
          server_max_dispatches_per_minute_per_budget_group: 600
          server_budget_group_dispatch_count_this_minute: 599
        }
      })");
  EXPECT_EQ(run_on_orders({"describe"}), 0);
  expect_asked<v1::DescribeTaskQueueRequest>("DescribeTaskQueue", kOrders);
  EXPECT_EQ(out.str(),
            R"(task queue        orders (activity)
namespace         default
waiting           10 tasks of 1 key, the oldest since 1 min 30 s
running           2 tasks
order             fair; tasks of an older order go first
largest lag       0.75 tasks
rate              at most 500/s (api), which holds tasks back
throttled         0 keys
polls             8 waiting, the last came 3 s ago
workflow tasks    no_active_workers
activity tasks    throttled: 8 of 8 leases of the queue, 149 of 300 leases of the namespace, 14 of 120 dispatches of the queue in this minute, 0 of 6000 dispatches of the namespace in this minute, 599 of 600 dispatches of budget group openai in this minute

LEVEL  WAITING      OLDEST  ADDED/S  DISPATCHED/S
    1       10  1 min 30 s      1.5           0.0
    2        0           -      0.0           0.0

POLLER  LAST SEEN  ASKS FOR
w1            2 s       5/s

queue rate        500/s, set 2023-11-14T22:13:20Z, by ada: overall
rate per key      none, set 2023-11-14T22:13:20Z, by bob
max running       10
max running/key   -
fairness          default
first turn        prompt
transition        drain-per-level
basis             default
poller order      default
paused            no

KEY       WEIGHT  MAX RUNNING  RATE  STATE
a            2.5            3   7/s  draining
(no key)       -            -     -  paused since 2023-11-14T22:13:20Z, by ada: why
)");
}

TEST_F(TaskQueueCommandsTest, AnEmptyQueueHasLittleToTell) {
  EXPECT_EQ(run_on_orders({"describe"}), 0);
  EXPECT_THAT(out.str(), HasSubstr("waiting           0 tasks of 0 keys\n"));
  EXPECT_THAT(out.str(), HasSubstr("order             first come, first served\n"));
  EXPECT_THAT(out.str(), HasSubstr("rate              no limit\n"));
  EXPECT_THAT(out.str(),
              HasSubstr("polls             0 waiting, none seen since the server started\n"));
}

TEST_F(TaskQueueCommandsTest, ConfigGetShowsTheRulesAlone) {
  will_answer<v1::DescribeTaskQueueResponse>("waiting: 10 config { running_max: 3 }");
  EXPECT_EQ(run_on_orders({"config", "get", "--json"}), 0);
  expect_asked<v1::DescribeTaskQueueRequest>("DescribeTaskQueue", kOrders);
  EXPECT_THAT(out.str(), HasSubstr("{\n  \"queue_rate\": null,\n"));
  EXPECT_THAT(out.str(), HasSubstr("\"running_max\": 3,\n"));
}

TEST_F(TaskQueueCommandsTest, KeysShowsTheLongestBacklogs) {
  will_answer<v1::ListKeysResponse>(R"(
      keys {
        key: "acme" waiting: 9 oldest_age { seconds: 4 } running: 3 dispatched: 100 share: 0.5
        ideal_share: 0.667 lag: -0.25 weight: 2.5 weight_source: WEIGHT_SOURCE_OVERRIDE
        holds: [HOLD_CAPPED, HOLD_THROTTLED] throttled_for { nanos: 500000000 }
      }
      keys { key: "" weight: 1 weight_source: WEIGHT_SOURCE_TASK holds: HOLD_PAUSED }
      total: 40)");
  EXPECT_EQ(run_on_orders({"keys", "--limit", "2"}), 0);
  expect_asked<v1::ListKeysRequest>("ListKeys", kOrders + "order: ORDER_BACKLOG page_size: 2");
  EXPECT_EQ(
      out.str(),
      "KEY       WAITING  OLDEST  RUNNING  WEIGHT  FROM       SHARE   IDEAL    LAG  DISPATCHED  "
      "HELD\n"
      "acme            9     4 s        3     2.5  override  50.0 %  66.7 %  -0.25         100  "
      "capped, throttled for 0.5 s\n"
      "(no key)        0       -        0       1  task       0.0 %   0.0 %   0.00           0  "
      "paused\n"
      "2 of 40 keys\n");
}

TEST_F(TaskQueueCommandsTest, KeysByNameTurnsPagesUntilTheLimit) {
  const std::string page = R"(keys { key: "a" } keys { key: "b" } total: 5 next_page_token: "kb")";
  will_answer<v1::ListKeysResponse>(page);
  will_answer<v1::ListKeysResponse>(page);
  EXPECT_EQ(run_on_orders({"keys", "--by", "name", "--limit", "3", "--json"}), 0);
  ASSERT_EQ(calls.size(), 2u);
  v1::ListKeysRequest second;
  ASSERT_TRUE(second.ParseFromString(calls[1].body));
  expect_same(second, from_text<v1::ListKeysRequest>(
                          kOrders + R"(order: ORDER_NAME page_size: 1 next_page_token: "kb")"));
  answers.clear();
  will_answer<v1::ListKeysResponse>(page);
  will_answer<v1::ListKeysResponse>("total: 2");
  EXPECT_EQ(run_on_orders({"keys", "--by", "name", "--limit", "0"}), 0);
  EXPECT_EQ(calls.size(), 2u);
}

TEST_F(TaskQueueCommandsTest, KeysMayBeNamed) {
  EXPECT_EQ(run_on_orders({"keys", "--key", "a", "--key", "", "--key", "[x]"}), 0);
  expect_asked<v1::ListKeysRequest>(
      "ListKeys", kOrders + R"(order: ORDER_BACKLOG keys: "a" keys: "" keys: "[x]" page_size: 20)");
}

TEST_F(TaskQueueCommandsTest, ExplainPrintsTheSentences) {
  will_answer<v1::ExplainResponse>(R"(
      sentences: "Activity 5 of workflow w waits."
      sentences: "Its key \033[2J is paused.")");
  EXPECT_EQ(run({"explain", "-w", "w", "-r", "r", "--activity-id", "5"}), 0);
  expect_asked<v1::ExplainRequest>(
      "Explain", R"(namespace: "default" workflow_id: "w" run_id: "r" activity_id: "5")");
  EXPECT_EQ(out.str(), "Activity 5 of workflow w waits.\nIts key \\x1b[2J is paused.\n");
}

// ---- changing
// ------------------------------------------------------------------------------------

// The flags of `temporal task-queue config set`, as its users have them in their scripts.
TEST_F(TaskQueueCommandsTest, ConfigSetTakesTemporalsFlags) {
  EXPECT_EQ(run_on_orders({"config", "set", "--queue-rps-limit", "500", "--queue-rps-limit-reason",
                           "overall limit", "--fairness-key-rps-limit-default", "33.3",
                           "--fairness-key-rps-limit-reason", "per-key limit",
                           "--fairness-key-weight", "premium=5.0", "--fairness-key-weight",
                           "a=b=0.5", "--fairness-key-weight", "free=default"}),
            0);
  expect_asked<v1::SetTaskQueueRequest>("SetTaskQueue", kOrders + R"(
      identity: "ada@host"
      queue_rate { per_second: 500 reason: "overall limit" }
      key_rate_default { per_second: 33.3 reason: "per-key limit" }
      weights { key: "premium" value: 5 } weights { key: "a=b" value: 0.5 }
      unset_weights: "free")");
  EXPECT_EQ(errors.str(), "");
  EXPECT_THAT(out.str(), HasSubstr("queue rate        -\n"));
}

TEST_F(TaskQueueCommandsTest, ConfigSetTakesOurFlags) {
  EXPECT_EQ(run_on_orders({"config", "set", "--max-running", "10", "--max-running-per-key", "2",
                           "--fairness", "off", "--first-turn", "scheduled", "--transition",
                           "drain-per-level", "--basis", "in-flight", "--poller-order", "lifo",
                           "--fairness-key-weight-clear-all"}),
            0);
  expect_asked<v1::SetTaskQueueRequest>("SetTaskQueue", kOrders + R"(
      identity: "ada@host" running_max: 10 running_max_per_key: 2 fairness: FAIRNESS_OFF
      first_turn: FIRST_TURN_SCHEDULED transition: TRANSITION_DRAIN_PER_LEVEL
      basis: BASIS_IN_FLIGHT poller_order: POLLER_ORDER_LIFO unset_all_weights: true)");
}

TEST_F(TaskQueueCommandsTest, DefaultUnsets) {
  EXPECT_EQ(run_on_orders({"config",
                           "set",
                           "--queue-rps-limit",
                           "default",
                           "--fairness-key-rps-limit-default",
                           "default",
                           "--max-running",
                           "default",
                           "--max-running-per-key",
                           "default",
                           "--fairness",
                           "default",
                           "--first-turn",
                           "default",
                           "--transition",
                           "default",
                           "--basis",
                           "default",
                           "--poller-order",
                           "default"}),
            0);
  expect_asked<v1::SetTaskQueueRequest>("SetTaskQueue", kOrders + R"(
      identity: "ada@host" queue_rate { unset: true } key_rate_default { unset: true }
      unset_running_max: true unset_running_max_per_key: true fairness: FAIRNESS_DEFAULT
      first_turn: FIRST_TURN_DEFAULT transition: TRANSITION_DEFAULT basis: BASIS_DEFAULT
      poller_order: POLLER_ORDER_DEFAULT)");
}

TEST_F(TaskQueueCommandsTest, AZeroIsSentWithAWarning) {
  EXPECT_EQ(run_on_orders({"config", "set", "--queue-rps-limit", "0"}), 0);
  EXPECT_EQ(errors.str(), "fairlead: warning: a limit of 0 stops the queue\n");
  expect_asked<v1::SetTaskQueueRequest>(
      "SetTaskQueue", kOrders + R"(identity: "ada@host" queue_rate { per_second: 0 })");
}

TEST_F(TaskQueueCommandsTest, ConfigSetKeyChangesOneKey) {
  will_answer<v1::SetKeyResponse>(
      R"(config { key: "a" weight: 2.5 running_max: 3 rate_per_second: 7 })");
  EXPECT_EQ(run_on_orders({"config", "set-key", "--key", "a", "--weight", "2.5", "--max-running",
                           "3", "--rps-limit", "7"}),
            0);
  expect_asked<v1::SetKeyRequest>(
      "SetKey", kOrders + R"(key: "a" weight: 2.5 running_max: 3 rate_per_second: 7)");
  EXPECT_EQ(out.str(),
            "key               a\n"
            "weight            2.5\n"
            "max running       3\n"
            "rate              7/s\n"
            "paused            no\n"
            "draining          no\n");
  EXPECT_EQ(run_on_orders({"config", "set-key", "--key", "", "--weight", "default", "--max-running",
                           "default", "--rps-limit", "default"}),
            0);
  expect_asked<v1::SetKeyRequest>(
      "SetKey", kOrders + R"(key: "" unset_weight: true unset_running_max: true unset_rate: true)");
}

TEST_F(TaskQueueCommandsTest, PauseAndResumeMeanTheQueueOrOneKey) {
  EXPECT_EQ(run_on_orders({"pause", "--reason", "bad deploy"}), 0);
  expect_asked<v1::PauseTaskQueueRequest>("PauseTaskQueue",
                                          kOrders + R"(reason: "bad deploy" identity: "ada@host")");
  EXPECT_EQ(run_on_orders({"pause", "--key", "a"}), 0);
  expect_asked<v1::PauseKeyRequest>("PauseKey", kOrders + R"(key: "a" identity: "ada@host")");
  // An empty key is said, and is not the whole queue.
  EXPECT_EQ(run_on_orders({"pause", "--key", ""}), 0);
  expect_asked<v1::PauseKeyRequest>("PauseKey", kOrders + R"(key: "" identity: "ada@host")");
  EXPECT_EQ(run_on_orders({"resume"}), 0);
  expect_asked<v1::ResumeTaskQueueRequest>("ResumeTaskQueue", kOrders);
  EXPECT_EQ(run_on_orders({"resume", "--key", "a"}), 0);
  expect_asked<v1::ResumeKeyRequest>("ResumeKey", kOrders + R"(key: "a")");
}

TEST_F(TaskQueueCommandsTest, DrainAndPurgeNeedAKey) {
  EXPECT_EQ(run_on_orders({"drain"}), kUsage);
  EXPECT_EQ(run_on_orders({"purge", "--yes"}), kUsage);
  EXPECT_TRUE(calls.empty());
  EXPECT_EQ(run_on_orders({"drain", "--key", "a"}), 0);
  expect_asked<v1::DrainKeyRequest>("DrainKey", kOrders + R"(key: "a")");
  will_answer<v1::PurgeKeyResponse>("tasks: 12");
  EXPECT_EQ(run_on_orders({"purge", "--key", "a", "--reason", "gone", "--yes"}), 0);
  expect_asked<v1::PurgeKeyRequest>("PurgeKey",
                                    kOrders + R"(key: "a" reason: "gone" identity: "ada@host")");
  EXPECT_EQ(out.str(), "12 tasks of key a in orders (activity) ended\n");
}

TEST_F(TaskQueueCommandsTest, PurgeAsksWhetherOneIsSure) {
  EXPECT_EQ(run_on_orders({"purge", "--key", "a"}), kUsage);
  EXPECT_THAT(errors.str(), HasSubstr("say --yes if you are sure"));
  EXPECT_TRUE(calls.empty());
}

// ---- what goes wrong
// -----------------------------------------------------------------------------

TEST_F(TaskQueueCommandsTest, ARefusalIsPrintedWithItsCode) {
  answers.push_back(absl::NotFoundError("Namespace nope is not found."));
  EXPECT_EQ(run({"list", "-n", "nope"}), 1);
  EXPECT_EQ(errors.str(), "fairlead: NOT_FOUND: Namespace nope is not found.\n");
  EXPECT_EQ(out.str(), "");
  answers.push_back(std::string("\xff\xff"));
  EXPECT_EQ(run({"list"}), 1);
  EXPECT_THAT(errors.str(), HasSubstr("INTERNAL: the answer to "));
}

TEST_F(TaskQueueCommandsTest, MistakesOnTheLineAreNotSent) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "subcommand"},
      {{"config", "set"}, "nothing to set"},
      {{"config", "set-key", "--key", "a"}, "nothing to set"},
      {{"config", "set-key", "--weight", "1"}, "--key is required"},
      {{"config", "set", "--queue-rps-limit", "-1"}, "'-1' is neither a number from 0 nor"},
      {{"config", "set", "--queue-rps-limit", "nan"}, "'nan' is neither a number from 0 nor"},
      {{"config", "set", "--queue-rps-limit", "many"}, "'many' is neither a number from 0 nor"},
      {{"config", "set", "--queue-rps-limit-reason", "r"}, "no limit"},
      {{"config", "set", "--max-running", "1.5"}, "'1.5' is neither a whole number from 0 nor"},
      {{"config", "set", "--max-running-per-key", "-2"}, "is neither a whole number from 0 nor"},
      {{"config", "set", "--fairness", "maybe"}, "maybe not in {default,on,off}"},
      {{"config", "set", "--basis", "weight"}, "weight not in {default,dispatch,in-flight}"},
      {{"config", "set", "--poller-order", "any"}, "any not in {default,fifo,lifo}"},
      {{"config", "set", "--fairness-key-weight", "a"}, "'a' is not KEY=WEIGHT"},
      {{"config", "set", "--fairness-key-weight", "=1"}, "'=1' is not KEY=WEIGHT"},
      {{"config", "set", "--fairness-key-weight", "a=0"}, "must be more than 0"},
      {{"config", "set", "--fairness-key-weight", "a=1e-60"}, "must be more than 0"},
      {{"keys", "--limit", "0"}, "by backlog it is 1 to 1000"},
      {{"keys", "--limit", "1001"}, "by backlog it is 1 to 1000"},
      {{"keys", "--by", "age"}, "age not in"},
      {{"describe", "--colour"}, "--colour"},
  };
  for (const auto& [words, message] : cases) {
    EXPECT_EQ(run_on_orders(words), kUsage) << message;
    EXPECT_THAT(errors.str(), HasSubstr(message));
    EXPECT_TRUE(calls.empty()) << message;
  }
  EXPECT_EQ(run({"keys", "-t", "q"}), kUsage);
  EXPECT_THAT(errors.str(), HasSubstr("--task-queue-type is required"));
  EXPECT_EQ(run({"describe", "-t", "q", "--task-queue-type", "nexus"}), kUsage);
  EXPECT_THAT(errors.str(), HasSubstr("nexus not in {workflow,activity}"));
}

TEST_F(TaskQueueCommandsTest, TheEnvironmentNamesTheServer) {
  setenv("FAIRLEAD_ADDRESS", "elsewhere:7", 1);
  setenv("FAIRLEAD_NAMESPACE", "shop", 1);
  EXPECT_EQ(run({"list"}), 0);
  EXPECT_EQ(calls[0].address, "elsewhere:7");
  EXPECT_EQ(run({"list", "--address", "here:1"}), 0);
  EXPECT_EQ(calls[0].address, "here:1");
  unsetenv("FAIRLEAD_ADDRESS");
  unsetenv("FAIRLEAD_NAMESPACE");
  EXPECT_EQ(run({"list"}), 0);
  EXPECT_EQ(calls[0].address, "127.0.0.1:7233");
}

}  // namespace
}  // namespace fairlead::server
