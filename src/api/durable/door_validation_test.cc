// Updates that a worker judges before they are accepted.

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;

void register_judge(World& world, const std::string& id = "w1") {
  const auto answer = world.ask(
      "POST", "/api/worker/register",
      {{"worker_id", id},
       {"task_queue", "q"},
       {"runtime", "python"},
       {"supported_workflow_types", json::array{"greeter"}},
       {"workflow_command_contracts",
        {{"greeter",
          {{"updates", json::array{"add", "take"}}, {"update_validators", json::array{"add"}}}}}},
       {"capabilities", json::array{"query_tasks", "update_validation_tasks"}}});
  ASSERT_EQ(answer->status(), 201);
}

// A poll for workflow tasks that takes questions as well.
AnswerPtr poll_both(World& world, const std::string& request_id = "", int64_t seconds = 5) {
  json::object body{{"worker_id", "w1"},
                    {"task_queue", "q"},
                    {"timeout_seconds", seconds},
                    {"task_kinds", json::array{"workflow", "update_validation"}}};
  if (!request_id.empty()) body["poll_request_id"] = request_id;
  return world.ask("POST", "/api/worker/workflow-tasks/poll", std::move(body));
}

AnswerPtr update(World& world, const std::string& name = "add", const std::string& id = "r1") {
  return world.ask("POST", "/api/workflows/order-1/update/" + name,
                   {{"request_id", id}, {"input", json::array{7}}});
}

AnswerPtr judge(World& world, const Answer& polled, const char* verb, json::object more = {},
                const std::string& owner = "w1") {
  more["lease_owner"] = owner;
  more["update_validation_attempt"] = 1;
  return world.ask("POST",
                   "/api/worker/update-validation-tasks/" +
                       text_of(polled.task(), "update_validation_task_id") + "/" + verb,
                   std::move(more));
}

// A run that waits for something.
std::string begin(World& world) {
  const std::string run = world.start()->text("run_id");
  world.turn({json::object{{"type", "open_condition_wait"}, {"condition_key", "k"}}});
  return run;
}

TEST(Validation, AnApprovedUpdateIsAccepted) {
  World world(open_door());
  register_judge(world);
  const std::string run = begin(world);
  const auto sent = update(world);
  EXPECT_FALSE(sent->is_there());
  EXPECT_THAT(world.event_types("order-1", run), Not(Contains("UpdateAccepted")));

  const auto polled = poll_both(world);
  ASSERT_TRUE(polled->has_task());
  const auto& task = polled->task();
  EXPECT_EQ(text_of(task, "task_kind"), "update_validation");
  EXPECT_EQ(text_of(task, "update_name"), "add");
  EXPECT_EQ(task.at("update_arguments"), json::value(payload(json::array{7})));
  EXPECT_EQ(task.at("history_events").as_array().size(), 3u);
  EXPECT_EQ(judge(world, *polled, "approve", {}, "w2")->text("reason"), "lease_owner_mismatch");
  EXPECT_EQ(judge(world, *polled, "approve")->text("outcome"), "approved");
  EXPECT_EQ(sent->status(), 202);
  EXPECT_THAT(world.event_types("order-1", run), Contains("UpdateAccepted"));
  EXPECT_EQ(judge(world, *polled, "approve")->text("reason"), "update_validation_task_not_found");

  // Sent again, it is the same update, and nobody is asked.
  const auto again = update(world);
  EXPECT_EQ(again->text("update_id"), sent->text("update_id"));
  // The task that carries it to the workflow comes by the same kind of poll.
  const auto next = poll_both(world);
  EXPECT_EQ(text_of(next->task(), "workflow_update_id"), sent->text("update_id"));
}

TEST(Validation, ARejectedUpdateLeavesNoTrace) {
  World world(open_door());
  register_judge(world);
  const std::string run = begin(world);
  const auto waiting = poll_both(world);
  const auto sent = update(world);
  // A poll that waits for anything gets it at once.
  ASSERT_TRUE(waiting->is_there() && waiting->has_task());
  const auto told = judge(world, *waiting, "reject",
                          {{"failure",
                            {{"message", "too much"},
                             {"reason", "update_validator_rejected"},
                             {"validation_errors", {{"amount", "at most 5"}}}}}});
  EXPECT_EQ(told->text("outcome"), "rejected");
  EXPECT_EQ(sent->status(), 422);
  EXPECT_EQ(sent->text("reason"), "update_validator_rejected");
  EXPECT_EQ(sent->body.at("validation_errors"),
            json::value(json::object{{"amount", json::array{"at most 5"}}}));
  EXPECT_THAT(world.event_types("order-1", run), Not(Contains("UpdateAccepted")));
  EXPECT_FALSE(poll_both(world, "", 0)->has_task());
}

TEST(Validation, AnUpdateWithoutAValidatorIsAcceptedAtOnce) {
  World world(open_door());
  register_judge(world);
  begin(world);
  EXPECT_EQ(update(world, "take")->status(), 202);
}

TEST(Validation, ARepeatedPollGetsTheSameQuestion) {
  World world(open_door());
  register_judge(world);
  begin(world);
  update(world);
  const auto first = poll_both(world, "p1");
  const auto again = poll_both(world, "p1");
  EXPECT_EQ(text_of(first->task(), "update_validation_task_id"),
            text_of(again->task(), "update_validation_task_id"));
}

TEST(Validation, ComesByAPollOfItsOwn) {
  World world(open_door());
  register_judge(world);
  begin(world);
  const auto waiting = world.poll("update-validation");
  const auto sent = update(world);
  ASSERT_TRUE(waiting->is_there() && waiting->has_task());
  EXPECT_EQ(
      judge(world, *waiting, "reject",
            {{"failure", {{"message", "broken"}, {"reason", "update_validation_worker_failed"}}}})
          ->status(),
      200);
  EXPECT_EQ(sent->status(), 409);
  EXPECT_EQ(sent->text("reason"), "update_validation_worker_failed");
  const auto empty = world.poll("update-validation");
  world.advance(5 * kSecond);
  EXPECT_EQ(empty->text("poll_status"), "empty");
}

// A worker that asks for workflow tasks only would not know what to do with a question.
TEST(Validation, IsNotGivenToWhoDidNotAskForIt) {
  World world(open_door());
  register_judge(world);
  begin(world);
  const auto waiting = world.poll();
  const auto sent = update(world);
  EXPECT_FALSE(waiting->is_there());
  world.advance(30 * kSecond);
  EXPECT_EQ(sent->status(), 504);
  EXPECT_EQ(sent->text("reason"), "update_validation_task_not_claimed");
}

TEST(Validation, EndsWithItsWorkerItsTimeAndItsCaller) {
  World world(open_door());
  register_judge(world);
  begin(world);
  const auto slow = update(world, "add", "r1");
  ASSERT_TRUE(poll_both(world)->has_task());
  world.advance(30 * kSecond);
  EXPECT_EQ(slow->text("reason"), "update_validation_execution_timeout");

  register_judge(world);
  const auto lost = update(world, "add", "r2");
  ASSERT_TRUE(poll_both(world)->has_task());
  world.ask("DELETE", "/api/worker/registrations/w1");
  EXPECT_EQ(lost->status(), 409);
  EXPECT_EQ(lost->text("reason"), "update_validator_worker_lost");

  register_judge(world);
  update(world, "add", "r3");
  world.hang_up();
  EXPECT_FALSE(poll_both(world, "", 0)->has_task());

  world.advance(2 * kMinute);  // nobody has heard of the worker for so long
  EXPECT_EQ(update(world, "add", "r4")->text("reason"), "update_validator_worker_unavailable");
}

// What the worker declared outlives a crash, as the worker does.
TEST(Validation, HoldsAfterARestart) {
  World world(open_door());
  register_judge(world);
  begin(world);
  world.restart();
  EXPECT_FALSE(update(world)->is_there());
  ASSERT_TRUE(poll_both(world)->has_task());
}

}  // namespace
}  // namespace fairlead::durable::testing
