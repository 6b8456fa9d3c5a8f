// What a worker hears when it asks whether a task is still its own.

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;

json::object schedule(json::object more = {}) {
  more["type"] = "schedule_activity";
  more["activity_type"] = "greet";
  more["queue"] = "q";
  return more;
}

// A run whose activity a worker has.
struct Attempt {
  explicit Attempt(World* in, json::object more = {}) : world(*in) {
    world.register_worker();
    run = world.start()->text("run_id");
    world.turn({schedule(std::move(more))});
    task = world.poll("activity");
  }
  AnswerPtr say(const char* verb, json::object more = {}) {
    return world.answer_activity(*task, verb, std::move(more));
  }
  std::string name() const { return text_of(task->task(), "task_id"); }

  World& world;
  std::string run;
  AnswerPtr task;
};

TEST(Claims, RenewingKeepsAnAttemptWithoutHeartbeats) {
  World world(open_door());
  Attempt attempt(&world);
  for (int i = 0; i < 3; ++i) {
    world.advance(200 * kSecond);
    const auto renewed = attempt.say("renew-lease");
    ASSERT_EQ(renewed->status(), 200);
    EXPECT_EQ(renewed->body.at("lease_renewed"), true);
    EXPECT_EQ(renewed->body.at("heartbeat_recorded"), false);
    EXPECT_EQ(renewed->text("activity_execution_id"),
              text_of(attempt.task->task(), "activity_execution_id"));
    EXPECT_EQ(renewed->text("workflow_task_id"), attempt.name());
    EXPECT_EQ(renewed->text("lease_expires_at"), format_time(world.clock.time + 300 * kSecond));
  }
  // What was promised holds after a crash.
  world.restart();
  world.advance(299 * kSecond);
  EXPECT_EQ(attempt.say("complete")->status(), 200);
}

TEST(Claims, AnAttemptThatIsNotRenewedIsLost) {
  World world(open_door());
  Attempt attempt(&world);
  world.advance(200 * kSecond);
  // Looking is no renewal.
  const auto seen = attempt.say("status");
  EXPECT_EQ(seen->body.at("can_continue"), true);
  EXPECT_EQ(seen->text("lease_expires_at"), format_time(world.clock.time + 100 * kSecond));
  world.advance(100 * kSecond);
  EXPECT_EQ(attempt.say("renew-lease")->text("reason"), "task_not_leased");
  ASSERT_TRUE(world.poll("activity")->has_task());
  EXPECT_EQ(attempt.say("renew-lease")->text("reason"), "stale_attempt");
  EXPECT_EQ(attempt.say("renew-lease")->status(), 409);
  EXPECT_EQ(attempt.say("complete")->text("reason"), "stale_attempt");
}

TEST(Claims, RenewingMovesNoOtherLimit) {
  World world(open_door());
  Attempt attempt(&world, {{"heartbeat_timeout", 10}, {"start_to_close_timeout", 60}});
  EXPECT_EQ(attempt.task->task().at("retry_policy").at("heartbeat_timeout"), 10);
  world.advance(8 * kSecond);
  const auto renewed = attempt.say("renew-lease");
  EXPECT_EQ(renewed->text("heartbeat_deadline_at"), format_time(world.clock.time + 2 * kSecond));
  world.advance(2 * kSecond);
  EXPECT_THAT(world.event_types("order-1", attempt.run), Contains("ActivityTimedOut"));
}

TEST(Claims, AHeartbeatIsProgressAndRenews) {
  World world(open_door());
  Attempt attempt(&world, {{"heartbeat_timeout", 10}, {"start_to_close_timeout", 600}});
  world.advance(8 * kSecond);
  const auto beat = attempt.say("heartbeat");
  EXPECT_EQ(beat->body.at("heartbeat_recorded"), true);
  EXPECT_EQ(beat->text("last_heartbeat_at"), format_time(world.clock.time));
  EXPECT_EQ(beat->text("lease_expires_at"), format_time(world.clock.time + 300 * kSecond));
  world.advance(8 * kSecond);
  EXPECT_EQ(attempt.say("renew-lease")->text("last_heartbeat_at"),
            format_time(world.clock.time - 8 * kSecond));
  EXPECT_THAT(world.event_types("order-1", attempt.run), Not(Contains("ActivityTimedOut")));
}

TEST(Claims, RefusesWhoHasNotTheAttempt) {
  World world(open_door());
  Attempt attempt(&world);
  const std::string path = "/api/worker/activity-tasks/" + attempt.name() + "/";
  const std::string id = text_of(attempt.task->task(), "activity_attempt_id");
  const auto ask = [&](const char* verb, const std::string& owner, const std::string& which) {
    return world.ask("POST", path + verb, {{"lease_owner", owner}, {"activity_attempt_id", which}});
  };
  for (const char* verb : {"renew-lease", "status", "heartbeat"}) {
    EXPECT_EQ(ask(verb, "w2", id)->text("reason"), "lease_owner_mismatch") << verb;
    EXPECT_EQ(ask(verb, "w1", id + "0")->text("reason"), "attempt_not_found") << verb;
    EXPECT_EQ(ask(verb, "w1", id + "0")->status(), 404) << verb;
    EXPECT_EQ(ask(verb, "", id)->status(), 422) << verb;
  }
  EXPECT_EQ(attempt.say("complete")->status(), 200);
  EXPECT_EQ(attempt.say("complete")->text("reason"), "task_not_leased");
}

TEST(Claims, AWorkerHearsThatItsRunIsClosed) {
  World world(open_door());
  Attempt attempt(&world);
  ASSERT_EQ(world.ask("POST", "/api/workflows/order-1/cancel")->status(), 200);
  for (const char* verb : {"heartbeat", "status"}) {
    const auto told = attempt.say(verb);
    EXPECT_EQ(told->status(), 200) << verb;
    EXPECT_EQ(told->body.at("can_continue"), false) << verb;
    EXPECT_EQ(told->body.at("cancel_requested"), true) << verb;
    EXPECT_EQ(told->body.at("heartbeat_recorded"), false) << verb;
    EXPECT_EQ(told->text("reason"), "run_cancelled") << verb;
  }
  for (const char* verb : {"complete", "renew-lease"}) {
    const auto refused = attempt.say(verb);
    EXPECT_EQ(refused->status(), 409) << verb;
    EXPECT_EQ(refused->text("reason"), "run_cancelled") << verb;
    EXPECT_EQ(refused->text("outcome"), "ignored") << verb;
  }
}

TEST(Claims, AQueryIsItsWorkersUntilItsCallerGivesUp) {
  World world(open_door());
  world.register_worker();
  world.start();
  const auto asked = world.ask("POST", "/api/workflows/order-1/query/status");
  const auto polled = world.poll("query");
  const auto& task = polled->task();
  const std::string path = "/api/worker/query-tasks/" + text_of(task, "query_task_id") + "/status";
  world.advance(5 * kSecond);
  const auto seen = world.ask("GET", path + "?lease_owner=w1&query_task_attempt=1");
  ASSERT_EQ(seen->status(), 200);
  EXPECT_EQ(seen->text("query_task_status"), "leased");
  for (const char* field : {"lease_expires_at", "query_admitted_at", "query_deadline_at"}) {
    EXPECT_EQ(seen->text(field), text_of(task, field)) << field;
  }
  // A lease of a minute, and a caller who waits half of that.
  EXPECT_EQ(seen->text("lease_expires_at"), seen->text("query_deadline_at"));
  EXPECT_EQ(world.ask("GET", path + "?lease_owner=w2&query_task_attempt=1")->text("reason"),
            "lease_owner_mismatch");
  EXPECT_EQ(world.ask("GET", path + "?lease_owner=w1&query_task_attempt=2")->text("reason"),
            "query_task_attempt_mismatch");
  EXPECT_EQ(world.ask("GET", path + "?lease_owner=w1")->status(), 422);
  world.advance(25 * kSecond);
  EXPECT_EQ(asked->text("reason"), "query_worker_execution_timeout");
  EXPECT_EQ(world.ask("GET", path + "?lease_owner=w1&query_task_attempt=1")->status(), 404);
}

}  // namespace
}  // namespace fairlead::durable::testing
