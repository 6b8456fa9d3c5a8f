// Workers that know some types only, on one queue.

#include "api/durable/door_testing.h"

namespace fairlead::durable::testing {
namespace {

using Names = std::vector<std::string>;

json::array list_of(const Names& names) { return json::array(names.begin(), names.end()); }

void register_worker(World& world, const std::string& id, const Names& workflows,
                     const Names& activities) {
  const auto answer = world.ask("POST", "/api/worker/register",
                                {{"worker_id", id},
                                 {"task_queue", "q"},
                                 {"runtime", "python"},
                                 {"supported_workflow_types", list_of(workflows)},
                                 {"supported_activity_types", list_of(activities)},
                                 {"capabilities", json::array{"query_tasks"}}});
  ASSERT_EQ(answer->status(), 201);
}

void start(World& world, const std::string& id, const std::string& type) {
  const auto answer =
      world.ask("POST", "/api/workflows",
                {{"workflow_id", id}, {"workflow_type", type}, {"task_queue", "q"}});
  ASSERT_EQ(answer->status(), 201);
}

json::object activity(const std::string& type) {
  return {{"type", "schedule_activity"},
          {"activity_type", type},
          {"queue", "q"},
          {"arguments", payload(json::array{1})}};
}

std::string got(const AnswerPtr& polled) {
  if (!polled->is_there() || !polled->has_task()) return "";
  return text_of(polled->task(), "workflow_id");
}
std::string type_got(const AnswerPtr& polled) {
  if (!polled->is_there() || !polled->has_task()) return "";
  return text_of(polled->task(), "activity_type");
}

TEST(Types, WorkflowTasksGoToWorkersThatKnowTheWorkflow) {
  World world(open_door());
  register_worker(world, "greets", {"greeter"}, {});
  register_worker(world, "pays", {"payment", "refund"}, {});
  start(world, "p1", "payment");
  start(world, "g1", "greeter");
  EXPECT_EQ(got(world.poll("workflow", "1", "greets")), "g1");
  const auto waits = world.poll("workflow", "2", "greets");
  EXPECT_EQ(got(waits), "");
  EXPECT_EQ(got(world.poll("workflow", "3", "pays")), "p1");
  // Polls that wait, too.
  const auto pays = world.poll("workflow", "4", "pays");
  start(world, "r1", "refund");
  start(world, "g2", "greeter");
  EXPECT_EQ(got(pays), "r1");
  EXPECT_EQ(got(waits), "g2");
}

TEST(Types, AWorkerWithoutAListTakesEverything) {
  World world(open_door());
  register_worker(world, "greets", {"greeter"}, {});
  register_worker(world, "any", {}, {});
  start(world, "p1", "payment");
  EXPECT_EQ(got(world.poll("workflow", "1", "greets", 0)), "");
  start(world, "g1", "greeter");
  EXPECT_EQ(got(world.poll("workflow", "2", "any")), "p1");
  EXPECT_EQ(got(world.poll("workflow", "3", "any")), "g1");
}

TEST(Types, ActivitiesGoToWorkersThatKnowThem) {
  World world(open_door());
  register_worker(world, "w1", {"greeter"}, {"mail"});
  register_worker(world, "w2", {"greeter"}, {"charge"});
  world.start();
  world.turn({activity("charge"), activity("mail"), activity("unknown")});
  EXPECT_EQ(type_got(world.poll("activity", "1", "w1")), "mail");
  const auto mails = world.poll("activity", "2", "w1", 60);
  EXPECT_EQ(type_got(mails), "");
  const auto charged = world.poll("activity", "3", "w2");
  EXPECT_EQ(type_got(charged), "charge");
  const auto charges = world.poll("activity", "4", "w2", 60);
  EXPECT_EQ(type_got(charges), "");

  // A type nobody takes waits, is not failed, and runs when a worker comes that knows it.
  world.advance(10 * kSecond);
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1")->text("status"), "waiting");
  register_worker(world, "w3", {}, {"unknown"});
  EXPECT_EQ(type_got(world.poll("activity", "5", "w3")), "unknown");
  EXPECT_EQ(type_got(mails), "");
  EXPECT_EQ(type_got(charges), "");
}

// What a worker says is what it registered last.
TEST(Types, ARegistrationWithOtherTypesActsOnItsNextPoll) {
  World world(open_door());
  register_worker(world, "w1", {"greeter"}, {"mail"});
  world.start();
  world.turn({activity("charge")});
  EXPECT_EQ(type_got(world.poll("activity", "1", "w1", 0)), "");
  register_worker(world, "w1", {"greeter"}, {"mail", "charge"});
  EXPECT_EQ(type_got(world.poll("activity", "2", "w1")), "charge");
}

TEST(Types, OutliveARestart) {
  World world(open_door());
  register_worker(world, "w1", {"greeter"}, {"mail"});
  register_worker(world, "w2", {"greeter"}, {"charge"});
  world.start();
  world.turn({activity("charge"), activity("charge"), activity("mail")});
  EXPECT_EQ(type_got(world.poll("activity", "1", "w1")), "mail");
  world.restart();
  EXPECT_EQ(type_got(world.poll("activity", "2", "w1", 0)), "");
  EXPECT_EQ(type_got(world.poll("activity", "3", "w2")), "charge");
  EXPECT_EQ(type_got(world.poll("activity", "4", "w2")), "charge");
}

// A run that ends takes its tasks out of the queue, wherever they wait there.
TEST(Types, TasksOfARunThatEndsAreGone) {
  World world(open_door());
  register_worker(world, "w1", {"greeter"}, {"mail"});
  register_worker(world, "w2", {"greeter"}, {"charge"});
  world.start();
  world.turn({activity("charge"), activity("mail")});
  EXPECT_EQ(type_got(world.poll("activity", "1", "w1")), "mail");
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/terminate")->status(), 200);
  EXPECT_EQ(type_got(world.poll("activity", "2", "w2", 0)), "");
  const auto queue = world.ask("GET", "/api/task-queues/q");
  EXPECT_EQ(queue->body.at("stats").at("approximate_backlog_count"), 0);
}

// An attempt that fails is tried again by a worker that knows the type, and not by the one that
// happens to wait.
TEST(Types, RetriesKeepToTheirType) {
  World world(open_door());
  register_worker(world, "w1", {"greeter"}, {"charge"});
  register_worker(world, "w2", {"greeter"}, {"mail"});
  world.start();
  auto command = activity("charge");
  command["retry_policy"] = {{"max_attempts", 3}, {"backoff_seconds", json::array{1}}};
  world.turn({command});
  const auto first = world.poll("activity", "1", "w1");
  ASSERT_EQ(type_got(first), "charge");
  const auto other = world.poll("activity", "2", "w2", 60);
  ASSERT_EQ(world.answer_activity(*first, "fail", {{"failure", {{"message", "no"}}}})->status(),
            200);
  world.advance(2 * kSecond);
  EXPECT_EQ(type_got(other), "");
  EXPECT_EQ(type_got(world.poll("activity", "3", "w1")), "charge");
}

// A query waits for a worker that knows the workflow, even if others poll for queries.
TEST(Types, QueriesGoToWorkersThatKnowTheWorkflow) {
  World world(open_door());
  register_worker(world, "greets", {"greeter"}, {});
  register_worker(world, "pays", {"payment"}, {});
  start(world, "p1", "payment");
  start(world, "g1", "greeter");
  const auto greets = world.poll("query", "", "greets");
  const auto asked = world.ask("POST", "/api/workflows/p1/query/status");
  EXPECT_FALSE(asked->is_there());
  EXPECT_EQ(got(greets), "");
  // One for the poll that waits is not held up by it.
  world.ask("POST", "/api/workflows/g1/query/status");
  EXPECT_EQ(got(greets), "g1");
  EXPECT_EQ(got(world.poll("query", "", "pays")), "p1");
  EXPECT_EQ(world.ask("POST", "/api/workflows/p1/query/status")->status(), 0);
  EXPECT_EQ(world.ask("DELETE", "/api/worker/registrations/pays")->status(), 200);
  EXPECT_EQ(world.ask("POST", "/api/workflows/p1/query/status")->text("reason"),
            "query_worker_unavailable");
}

}  // namespace
}  // namespace fairlead::durable::testing
