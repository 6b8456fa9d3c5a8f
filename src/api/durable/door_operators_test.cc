// What operators look after: builds, blocked runs, retention, the archive.

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

void register_build(World& world, const std::string& id, const json::value& build) {
  const auto answer = world.ask("POST", "/api/worker/register",
                                {{"worker_id", id},
                                 {"task_queue", "q"},
                                 {"runtime", "python"},
                                 {"sdk_version", "sdk/1"},
                                 {"build_id", build},
                                 {"capabilities", json::array{"query_tasks"}},
                                 {"max_concurrent_workflow_tasks", 4}});
  ASSERT_EQ(answer->status(), 201);
}

AnswerPtr change(World& world, const char* verb, const json::value& build) {
  return world.ask("POST", std::string("/api/task-queues/q/build-ids/") + verb,
                   {{"build_id", build}});
}

json::object build_of(World& world, const json::value& id) {
  const auto answer = world.ask("GET", "/api/task-queues/q/build-ids");
  for (const auto& each : answer->body.at("build_ids").as_array()) {
    if (each.at("build_id") == id) return each.as_object();
  }
  return {};
}

json::value slots_of(World& world) {
  const auto queue = world.ask("GET", "/api/task-queues/q");
  return queue->body.at("admission").at("workflow_tasks").at("configured_slot_count");
}

TEST(Builds, OneThatDrainsGetsNothingNew) {
  World world(open_door());
  register_build(world, "old", "v1");
  register_build(world, "new", "v2");
  register_build(world, "plain", nullptr);
  EXPECT_EQ(slots_of(world), 12);
  const auto waiting = world.poll("workflow", "p1", "old");
  const auto asking = world.poll("query", "", "old");

  const auto drained = change(world, "drain", "v1");
  ASSERT_EQ(drained->status(), 200);
  EXPECT_EQ(drained->text("drain_intent"), "draining");
  EXPECT_EQ(waiting->text("poll_status"), "draining");
  EXPECT_EQ(asking->text("poll_status"), "draining");
  for (const char* kind : {"workflow", "activity", "query"}) {
    EXPECT_EQ(world.poll(kind, "", "old")->text("reason"), "worker_draining") << kind;
  }
  EXPECT_EQ(slots_of(world), 8);
  EXPECT_EQ(text_of(build_of(world, "v1"), "rollout_status"), "draining");
  EXPECT_EQ(text_of(build_of(world, "v2"), "rollout_status"), "active");
  EXPECT_EQ(text_of(build_of(world, nullptr), "rollout_status"), "active");
  EXPECT_EQ(world.ask("GET", "/api/workers/old")->text("status"), "draining");
  world.start();
  EXPECT_TRUE(world.poll("workflow", "", "new")->has_task());
}

TEST(Builds, WhatAWorkerHasStaysItsOwn) {
  World world(open_door());
  register_build(world, "w1", "v1");
  world.start();
  const auto task = world.poll("workflow", "p1", "w1");
  change(world, "drain", "v1");
  EXPECT_EQ(world
                .complete(*task, {json::object{{"type", "complete_workflow"},
                                               {"result", payload("done")}}})
                ->status(),
            200);
}

TEST(Builds, DrainingHoldsForLaterWorkersAndAfterACrash) {
  World world(open_door());
  const auto first = change(world, "drain", "v1")->text("drained_at");
  world.advance(kSecond);
  EXPECT_EQ(change(world, "drain", "v1")->text("drained_at"), first);
  EXPECT_EQ(text_of(build_of(world, "v1"), "rollout_status"), "no_workers");
  register_build(world, "w1", "v1");
  EXPECT_EQ(slots_of(world), 0);
  world.restart();
  EXPECT_EQ(world.poll("workflow", "", "w1")->text("reason"), "worker_draining");
  EXPECT_EQ(text_of(build_of(world, "v1"), "drained_at"), first);
  EXPECT_EQ(slots_of(world), 0);

  EXPECT_EQ(change(world, "resume", "v1")->text("drain_intent"), "active");
  EXPECT_EQ(change(world, "resume", "v1")->status(), 200);
  EXPECT_EQ(slots_of(world), 4);
  world.restart();
  world.start();
  EXPECT_TRUE(world.poll("workflow", "", "w1")->has_task());
}

TEST(Builds, StaleWorkersAreToldApart) {
  World world(open_door());
  register_build(world, "w1", "v1");
  world.advance(2 * kMinute);
  EXPECT_EQ(text_of(build_of(world, "v1"), "rollout_status"), "stale_only");
  register_build(world, "w2", "v1");
  const auto build = build_of(world, "v1");
  EXPECT_EQ(text_of(build, "rollout_status"), "active");
  EXPECT_EQ(build.at("stale_worker_count"), 1);
  EXPECT_EQ(build.at("total_worker_count"), 2);
  EXPECT_EQ(build.at("sdk_versions"), (json::array{"sdk/1"}));
}

TEST(Builds, NeedABuildId) {
  World world(open_door());
  EXPECT_EQ(world.ask("POST", "/api/task-queues/q/build-ids/drain")->status(), 422);
  EXPECT_EQ(change(world, "drain", 7)->status(), 422);
  EXPECT_EQ(change(world, "drain", "a\nb")->status(), 422);
  EXPECT_EQ(change(world, "drain", nullptr)->status(), 200);
}

// ---- repair, retention, timeouts ---------------------------------------------------------------

void block(World& world, const std::string& id) {
  world.start(id);
  const auto task = world.poll();
  const auto failed = world.answer_task(
      *task, "fail", {{"failure", {{"message", "non-determinism: another step was expected"}}}});
  ASSERT_EQ(failed->status(), 200);
}

TEST(System, APassRepairsBlockedRuns) {
  World world(open_door());
  world.register_worker();
  for (const char* id : {"a", "b", "c"}) block(world, id);
  world.start("fine");
  const auto candidates = [&] {
    return world.ask("GET", "/api/system/repair")->body.at("candidates").as_object();
  };
  EXPECT_EQ(candidates().at("total_candidates"), 3);
  EXPECT_EQ(candidates().at("is_complete"), true);

  const auto one = world.ask("POST", "/api/system/repair/pass", {{"instance_id", "b"}});
  EXPECT_EQ(one->body.at("repaired_count"), 1);
  EXPECT_EQ(candidates().at("total_candidates"), 2);
  const auto none = world.ask("POST", "/api/system/repair/pass", {{"run_ids", json::array{"x"}}});
  EXPECT_EQ(none->body.at("repaired_count"), 0);
  EXPECT_EQ(world.ask("POST", "/api/system/repair/pass")->body.at("repaired_count"), 2);
  EXPECT_EQ(candidates().at("total_candidates"), 0);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(world.poll()->has_task());
  EXPECT_EQ(world.ask("POST", "/api/system/repair/pass", {{"run_ids", 1}})->status(), 422);
}

TEST(System, RunsGoByThemselvesWhenTheirTimeIsOver) {
  World world(open_door());
  world.start();
  world.ask("POST", "/api/workflows/order-1/terminate");
  const auto status = world.ask("GET", "/api/system/retention");
  EXPECT_EQ(status->body.at("expired_run_count"), 0);
  const auto pass = world.ask("POST", "/api/system/retention/pass", {{"limit", 5}});
  EXPECT_EQ(pass->body.at("processed"), 0);
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1")->status(), 200);
  world.advance(status->body.at("retention_days").as_int64() * kDay + kMinute);
  EXPECT_EQ(world.ask("GET", "/api/system/retention")->body.at("expired_run_count"), 0);
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1")->status(), 404);
  EXPECT_EQ(world.ask("POST", "/api/system/retention/pass", {{"limit", 0}})->status(), 422);
}

TEST(System, NoActivityIsLate) {
  World world(open_door());
  EXPECT_EQ(world.ask("GET", "/api/system/activity-timeouts")->body.at("expired_count"), 0);
  const auto pass = world.ask("POST", "/api/system/activity-timeouts/pass",
                              {{"execution_ids", json::array{"x", "y"}}, {"limit", 1}});
  EXPECT_EQ(pass->body.at("enforced"), 0);
  EXPECT_EQ(pass->body.at("skipped"), 1);
}

TEST(System, IsForAdmins) {
  Options options;
  options.operator_token = "operate";
  options.admin_token = "rule";
  World world(options);
  for (const char* path : {"repair", "retention", "activity-timeouts"}) {
    const std::string at = std::string("/api/system/") + path;
    const auto ask = [&](const char* token) {
      return world.ask("GET", at, {}, {{"Authorization", std::string("Bearer ") + token}});
    };
    EXPECT_EQ(ask("operate")->status(), 403) << path;
    EXPECT_EQ(ask("rule")->status(), 200) << path;
  }
}

// ---- the archive -------------------------------------------------------------------------------

TEST(Archive, MarksAClosedRunOnce) {
  World world(open_door());
  world.start();
  const auto early = world.ask("POST", "/api/workflows/order-1/archive");
  EXPECT_EQ(early->status(), 409);
  EXPECT_EQ(early->text("outcome"), "rejected_run_not_closed");
  world.ask("POST", "/api/workflows/order-1/terminate");
  const auto can_archive = [&] {
    return world.ask("GET", "/api/workflows/order-1")->body.at("actions").at("can_archive");
  };
  EXPECT_EQ(can_archive(), true);
  const auto archived = world.ask("POST", "/api/workflows/order-1/archive", {{"reason", "old"}});
  EXPECT_EQ(archived->status(), 200);
  EXPECT_EQ(archived->text("outcome"), "archived");
  world.restart();
  world.advance(kSecond);
  const auto again = world.ask("POST", "/api/workflows/order-1/archive");
  EXPECT_EQ(again->text("outcome"), "archive_not_needed");
  EXPECT_EQ(again->text("archived_at"), archived->text("archived_at"));
  EXPECT_EQ(can_archive(), false);
  EXPECT_EQ(world.ask("POST", "/api/workflows/nothing/archive")->status(), 404);
}

}  // namespace
}  // namespace fairlead::durable::testing
