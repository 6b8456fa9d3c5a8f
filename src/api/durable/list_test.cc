#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

// What operators see of many things at once: workflows, task queues, workers.
namespace fairlead::durable::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Page {
  std::vector<std::string> ids;
  std::string next;
};

Page list(World& world, const std::string& parameters = "",
          std::vector<std::pair<std::string, std::string>> headers = {}) {
  const auto answer =
      world.ask("GET", absl::StrCat("/api/workflows?", parameters), {}, std::move(headers));
  EXPECT_EQ(answer->status(), 200) << answer->response->body;
  Page page;
  for (const auto& each : answer->body.at("workflows").as_array()) {
    page.ids.push_back(text_of(each.as_object(), "workflow_id"));
  }
  EXPECT_EQ(answer->body.at("workflow_count").to_number<size_t>(), page.ids.size());
  page.next = answer->text("next_page_token");
  return page;
}

void finish(World& world, const char* type) {
  world.turn({{{"type", type}, {"message", "no"}, {"result", payload("done")}}});
}

TEST(DoorList, TellsWorkflowsNewestFirstInPages) {
  World world(open_door());
  for (int i = 1; i <= 7; ++i) {
    world.start(absl::StrCat("order-", i));
    world.advance(kSecond);
  }
  const auto first = list(world, "page_size=3");
  EXPECT_THAT(first.ids, ElementsAre("order-7", "order-6", "order-5"));
  // Newer ones do not shift the pages that follow.
  world.start("late");
  const auto second = list(world, "page_size=3&next_page_token=" + first.next);
  EXPECT_THAT(second.ids, ElementsAre("order-4", "order-3", "order-2"));
  const auto third = list(world, "page_size=3&next_page_token=" + second.next);
  EXPECT_THAT(third.ids, ElementsAre("order-1"));
  EXPECT_EQ(third.next, "");
  EXPECT_THAT(list(world).ids.front(), "late");
}

TEST(DoorList, FiltersByTypeStatusAndText) {
  World world(open_door());
  world.register_worker();
  world.start("done");
  finish(world, "complete_workflow");
  world.advance(kSecond);
  world.start("broken");
  finish(world, "fail_workflow");
  world.advance(kSecond);
  world.start("open", {{"business_key", "invoice-77"}});
  world.advance(kSecond);
  world.ask("POST", "/api/workflows", {{"workflow_id", "other"}, {"workflow_type", "t2"}});
  EXPECT_THAT(list(world).ids, ElementsAre("other", "open", "broken", "done"));
  EXPECT_THAT(list(world, "status=running").ids, ElementsAre("other", "open"));
  EXPECT_THAT(list(world, "status=completed").ids, ElementsAre("done"));
  EXPECT_THAT(list(world, "status=failed").ids, ElementsAre("broken"));
  EXPECT_THAT(list(world, "workflow_type=t2").ids, ElementsAre("other"));
  EXPECT_THAT(list(world, "query=ok").ids, ElementsAre("broken"));
  EXPECT_THAT(list(world, "query=voice-7").ids, ElementsAre("open"));
  EXPECT_THAT(list(world, "query=voice-7&status=failed").ids, IsEmpty());
}

TEST(DoorList, ShowsAWorkflowOnceByItsLastRun) {
  World world(open_door());
  world.register_worker();
  world.start();
  world.turn({{{"type", "continue_as_new"}, {"arguments", payload(json::array{})}}});
  EXPECT_THAT(list(world).ids, ElementsAre("order-1"));
  EXPECT_THAT(list(world, "status=running").ids, ElementsAre("order-1"));
  EXPECT_THAT(list(world, "status=completed").ids, IsEmpty());
}

TEST(DoorList, ShowsNothingOfOtherNamespaces) {
  World world(open_door());
  world.ask("POST", "/api/namespaces", {{"name", "team"}});
  world.start();
  EXPECT_THAT(list(world, "", {{"X-Namespace", "team"}}).ids, IsEmpty());
  world.restart();
  EXPECT_THAT(list(world).ids, ElementsAre("order-1"));
}

// A page reads a bounded number of rows. What it looks for may be behind them: then it is in a
// later page, and never lost between two.
TEST(DoorList, FindsWhatIsFarBack) {
  World world(open_door());
  world.ask("POST", "/api/workflows", {{"workflow_id", "needle"}, {"workflow_type", "rare"}});
  world.advance(kSecond);
  for (size_t i = 0; i < 6 * shard::RunList::kRowsMax; ++i) world.start(absl::StrCat("hay-", i));
  auto page = list(world, "workflow_type=rare");
  EXPECT_THAT(page.ids, IsEmpty());
  int pages = 1;
  for (; !page.next.empty() && page.ids.empty() && pages < 20; ++pages) {
    page = list(world, "workflow_type=rare&next_page_token=" + page.next);
  }
  EXPECT_THAT(page.ids, ElementsAre("needle"));
  EXPECT_GT(pages, 1);
  size_t seen = 0;
  std::string token;
  do {
    page = list(world, "page_size=200&next_page_token=" + token);
    seen += page.ids.size();
    token = page.next;
  } while (!token.empty());
  EXPECT_EQ(seen, 6 * shard::RunList::kRowsMax + 1);
}

TEST(DoorList, RefusesWhatItCannotMean) {
  World world(open_door());
  for (const char* wrong : {"status=waiting", "page_size=0", "page_size=201", "page_size=x"}) {
    EXPECT_EQ(world.ask("GET", absl::StrCat("/api/workflows?", wrong))->status(), 422) << wrong;
  }
  for (const char* wrong : {"x", "MA=="}) {
    EXPECT_EQ(
        world.ask("GET", absl::StrCat("/api/workflows?next_page_token=", wrong))->text("reason"),
        "invalid_page_token");
  }
}

TEST(DoorQueues, TellAgesRatesAndLeases) {
  World world(open_door());
  world.register_worker();
  world.start("first");
  world.start("second");
  world.advance(65 * kSecond);
  auto queue = world.ask("GET", "/api/task-queues/q")->body;
  auto stats = queue.at("stats").as_object();
  EXPECT_EQ(stats.at("approximate_backlog_count").to_number<int>(), 2);
  EXPECT_EQ(text_of(stats, "approximate_backlog_age"), "1m05s");
  EXPECT_EQ(stats.at("approximate_backlog_age_seconds").to_number<int>(), 65);
  const auto oldest = stats.at("oldest_ready_task").as_object();
  EXPECT_EQ(text_of(oldest, "workflow_id"), "first");
  EXPECT_EQ(text_of(oldest, "task_type"), "workflow");
  EXPECT_EQ(oldest.at("age_seconds").to_number<int>(), 65);
  EXPECT_TRUE(queue.at("current_leases").as_array().empty());

  const auto polled = world.poll();
  EXPECT_EQ(text_of(oldest, "task_id"), text_of(polled->task(), "task_id"));
  queue = world.ask("GET", "/api/task-queues/q")->body;
  stats = queue.at("stats").as_object();
  EXPECT_EQ(text_of(stats.at("oldest_ready_task").as_object(), "workflow_id"), "second");
  EXPECT_GT(stats.at("tasks_dispatched_last_minute").to_number<int>(), 0);
  const auto& leases = queue.at("current_leases").as_array();
  ASSERT_EQ(leases.size(), 1u);
  const auto& lease = leases[0].as_object();
  EXPECT_EQ(text_of(lease, "task_id"), text_of(polled->task(), "task_id"));
  EXPECT_EQ(text_of(lease, "task_type"), "workflow");
  EXPECT_EQ(text_of(lease, "lease_owner"), "w1");
  EXPECT_EQ(lease.at("workflow_task_attempt").to_number<int>(), 1);
  EXPECT_FALSE(lease.at("is_expired").as_bool());

  world.complete(*polled, {{{"type", "complete_workflow"}, {"result", payload("done")}}});
  queue = world.ask("GET", "/api/task-queues/q")->body;
  EXPECT_TRUE(queue.at("current_leases").as_array().empty());
  const auto all = world.ask("GET", "/api/task-queues")->body;
  for (const auto& each : all.at("task_queues").as_array()) {
    EXPECT_TRUE(each.at("stats").as_object().contains("tasks_added_last_minute"));
    EXPECT_TRUE(each.as_object().contains("repair"));
  }
}

TEST(DoorQueues, AskingAfterOneThatNobodyUsesDoesNotMakeIt) {
  World world(open_door());
  const auto shown = world.ask("GET", "/api/task-queues/nobody")->body;
  EXPECT_EQ(shown.at("stats").at("approximate_backlog_age"), json::value());
  EXPECT_EQ(shown.at("stats").at("oldest_ready_task"), json::value());
  EXPECT_TRUE(world.ask("GET", "/api/task-queues")->body.at("task_queues").as_array().empty());
}

TEST(DoorWorkers, TellWhatIsFree) {
  World world(open_door());
  world.ask("POST", "/api/worker/register",
            {{"worker_id", "w1"},
             {"task_queue", "q"},
             {"runtime", "python"},
             {"max_concurrent_workflow_tasks", 8},
             {"task_slots", {{"workflow_available", 8}}}});
  const auto slots = [&] {
    return json::serialize(
        world.ask("GET", "/api/workers")->body.at("workers").at(0).at("task_slots"));
  };
  EXPECT_EQ(slots(), R"({"workflow_available":8,"workflow_capacity":8,"activity_available":null,)"
                     R"("activity_capacity":100,"session_available":null,"session_capacity":0})");
  world.ask("POST", "/api/worker/heartbeat",
            {{"worker_id", "w1"}, {"task_slots", {{"workflow_available", 3}}}});
  EXPECT_THAT(slots(), ::testing::HasSubstr(R"("workflow_available":3)"));
  const auto refused = world.ask("POST", "/api/worker/register",
                                 {{"worker_id", "w2"},
                                  {"task_queue", "q"},
                                  {"runtime", "python"},
                                  {"supported_workflow_types", json::array{1}}});
  EXPECT_EQ(refused->status(), 422);
}

}  // namespace
}  // namespace fairlead::durable::testing
