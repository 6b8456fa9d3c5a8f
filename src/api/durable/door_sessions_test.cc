// Worker sessions: activities that go to one worker.

#include "api/durable/door_testing.h"
#include "store/keys.h"

namespace fairlead::durable::testing {
namespace {

void register_worker(World& world, const std::string& id, json::object more = {}) {
  more["worker_id"] = id;
  more["task_queue"] = "q";
  more["runtime"] = "python";
  if (!more.contains("max_concurrent_worker_sessions")) more["max_concurrent_worker_sessions"] = 2;
  ASSERT_EQ(world.ask("POST", "/api/worker/register", std::move(more))->status(), 201);
}

json::object in_session(const std::string& session, json::object more = {},
                        json::object command = {}) {
  more["session_id"] = session;
  command["type"] = "schedule_activity";
  command["activity_type"] = "render";
  command["queue"] = "q";
  command["worker_session"] = std::move(more);
  return command;
}

AnswerPtr poll(World& world, const std::string& worker, int64_t seconds = 60) {
  return world.poll("activity", "", worker, seconds);
}

bool has_task(const AnswerPtr& polled) { return polled->is_there() && polled->has_task(); }

AnswerPtr answer(World& world, const Answer& polled, const char* verb, const std::string& worker,
                 json::object more = {}) {
  more["lease_owner"] = worker;
  more["activity_attempt_id"] = polled.task().at("activity_attempt_id");
  return world.ask("POST",
                   "/api/worker/activity-tasks/" + text_of(polled.task(), "task_id") + "/" + verb,
                   std::move(more));
}

AnswerPtr create(World& world, const std::string& worker, const std::string& id,
                 json::object more = {}) {
  more["worker_id"] = worker;
  more["session_id"] = id;
  return world.ask("POST", "/api/worker/sessions", std::move(more));
}

// Workflow tasks are w1's.
void schedule(World& world, const std::string& workflow, json::array commands) {
  ASSERT_EQ(world.start(workflow)->status(), 201);
  world.turn(std::move(commands));
}

TEST(WorkerSessions, ActivitiesOfOneGoToOneWorker) {
  World world(open_door());
  register_worker(world, "w1");
  register_worker(world, "w2");
  schedule(world, "a", {in_session("s", {{"max_concurrent_activities", 3}})});
  const auto first = poll(world, "w2");
  ASSERT_TRUE(has_task(first));
  const auto& session = first->task().at("worker_session").as_object();
  EXPECT_EQ(text_of(session, "session_id"), "s");
  EXPECT_EQ(text_of(session, "status"), "active");
  EXPECT_EQ(text_of(session, "lease_owner"), "w2");
  EXPECT_EQ(session.at("max_concurrent_activities"), 3);
  // Another workflow's, too: a session belongs to the namespace.
  schedule(world, "b", {in_session("s"), in_session("s")});
  const auto other = poll(world, "w1");
  EXPECT_FALSE(other->is_there());
  EXPECT_TRUE(has_task(poll(world, "w2")));
  EXPECT_EQ(answer(world, *first, "complete", "w2")->status(), 200);
  schedule(world, "c", {json::object{{"type", "schedule_activity"}, {"activity_type", "free"}}});
  EXPECT_TRUE(has_task(other)) << "what no session holds is for everyone";
}

// Whoever does not know the type of an activity neither gets it nor holds its session for it.
TEST(WorkerSessions, GoToWorkersThatKnowTheActivity) {
  World world(open_door());
  register_worker(world, "w1", {{"supported_activity_types", json::array{"free"}}});
  register_worker(world, "w2", {{"supported_activity_types", json::array{"render"}}});
  schedule(world, "a", {in_session("s"), in_session("t")});
  const auto waits = poll(world, "w1");
  EXPECT_FALSE(waits->is_there());
  const auto first = poll(world, "w2");
  ASSERT_TRUE(has_task(first));
  EXPECT_EQ(text_of(first->task().at("worker_session").as_object(), "lease_owner"), "w2");
  ASSERT_TRUE(has_task(poll(world, "w2")));
  const auto next = poll(world, "w2");
  schedule(world, "b", {in_session("u")});
  EXPECT_FALSE(has_task(next)) << "it holds as many as it may";
  EXPECT_FALSE(waits->is_there());
}

// One at a time, unless the session says otherwise; the next goes when the one before it has ended.
TEST(WorkerSessions, HaveAsManyActivitiesAtOnceAsTheySay) {
  World world(open_door());
  register_worker(world, "w1");
  schedule(world, "a", {in_session("s"), in_session("s")});
  const auto first = poll(world, "w1");
  ASSERT_TRUE(has_task(first));
  const auto second = poll(world, "w1");
  EXPECT_FALSE(second->is_there());
  EXPECT_EQ(answer(world, *first, "complete", "w1")->status(), 200);
  EXPECT_TRUE(has_task(second));
}

TEST(WorkerSessions, AWorkerHoldsAsManyAsItHasSlots) {
  World world(open_door());
  register_worker(world, "w1", {{"max_concurrent_worker_sessions", 1}});
  register_worker(world, "w2", {{"max_concurrent_worker_sessions", 0}});
  schedule(world, "a", {in_session("s"), in_session("t")});
  const auto first = poll(world, "w1");
  ASSERT_TRUE(has_task(first));
  const auto second = poll(world, "w1");
  const auto none = poll(world, "w2");
  EXPECT_FALSE(second->is_there());
  EXPECT_FALSE(none->is_there()) << "it said that it holds none";
  const auto held = text_of(first->task().at("worker_session").as_object(), "session_id");
  EXPECT_EQ(answer(world, *first, "complete", "w1")->status(), 200);
  EXPECT_FALSE(second->is_there()) << "the session goes on without activities";
  const auto closed = world.ask("DELETE", "/api/worker/sessions/" + held,
                                {{"worker_id", "w1"}, {"reason", "done"}});
  ASSERT_EQ(closed->status(), 200);
  EXPECT_EQ(closed->text("outcome"), "closed");
  ASSERT_TRUE(has_task(second));
  EXPECT_NE(text_of(second->task().at("worker_session").as_object(), "session_id"), held);
  const auto record = world.ask("GET", "/api/workers/w1");
  EXPECT_EQ(record->body.at("task_slots").at("session_capacity"), 1);
}

TEST(WorkerSessions, GoToWorkersThatHaveWhatTheyRequire) {
  World world(open_door());
  register_worker(world, "w1");
  register_worker(world, "w2", {{"capabilities", json::array{"gpu:l4"}}});
  schedule(world, "a", {in_session("s", {{"requirements", json::array{"gpu:l4"}}})});
  const auto plain = poll(world, "w1");
  EXPECT_FALSE(plain->is_there());
  EXPECT_TRUE(has_task(poll(world, "w2")));
}

// Its worker says nothing: another one takes the session over when the lease is over, and what the
// first one had when that attempt's own lease is.
TEST(WorkerSessions, AreTakenOverWhenTheirWorkerIsSilent) {
  World world(open_door());
  register_worker(world, "w1");
  register_worker(world, "w2");
  schedule(world, "a",
           {in_session("s", {{"lease_seconds", 20}, {"max_concurrent_activities", 2}}),
            in_session("s", {{"lease_seconds", 20}, {"max_concurrent_activities", 2}})});
  const auto first = poll(world, "w1");
  ASSERT_TRUE(has_task(first));
  const auto waits = poll(world, "w2");
  EXPECT_FALSE(waits->is_there());
  world.advance(19 * kSecond);
  EXPECT_FALSE(waits->is_there());
  // A sign of life of the activity is one of the session.
  EXPECT_EQ(answer(world, *first, "heartbeat", "w1")->status(), 200);
  world.advance(19 * kSecond);
  EXPECT_FALSE(waits->is_there());
  world.advance(1 * kSecond);
  ASSERT_TRUE(has_task(waits));
  EXPECT_EQ(text_of(waits->task().at("worker_session").as_object(), "lease_owner"), "w2");
  // The first worker hears of it when it asks.
  const auto status = answer(world, *first, "status", "w1");
  ASSERT_EQ(status->status(), 200);
  EXPECT_EQ(text_of(status->body.at("worker_session").as_object(), "lease_owner"), "w2");
}

TEST(WorkerSessions, AreOrphansWhenTheirWorkerLeaves) {
  World world(open_door());
  register_worker(world, "w1");
  register_worker(world, "w2");
  schedule(world, "a",
           {in_session("s", {{"max_concurrent_activities", 2}}),
            in_session("s", {{"max_concurrent_activities", 2}})});
  ASSERT_TRUE(has_task(poll(world, "w1")));
  const auto waits = poll(world, "w2");
  EXPECT_FALSE(waits->is_there());
  ASSERT_EQ(world.ask("DELETE", "/api/worker/registrations/w1")->status(), 200);
  EXPECT_TRUE(has_task(waits));
}

// Everything is on disk: who holds it, until when, and how much of it runs.
TEST(WorkerSessions, OutliveTheServer) {
  World world(open_door());
  register_worker(world, "w1");
  register_worker(world, "w2");
  schedule(world, "a", {in_session("s"), in_session("s")});
  const auto first = poll(world, "w1");
  ASSERT_TRUE(has_task(first));
  world.restart();
  const auto other = poll(world, "w2");
  const auto own = poll(world, "w1");
  EXPECT_FALSE(other->is_there());
  EXPECT_FALSE(own->is_there()) << "one at a time";
  EXPECT_EQ(answer(world, *first, "complete", "w1")->status(), 200);
  EXPECT_TRUE(has_task(own));
  EXPECT_FALSE(other->is_there());
  const auto renewed = world.ask("POST", "/api/worker/sessions/s/heartbeat", {{"worker_id", "w1"}});
  ASSERT_EQ(renewed->status(), 200);
  EXPECT_EQ(renewed->body.at("session").at("active_activity_count"), 1);
}

// Whatever moment the server dies in: the start of a task and the session that it makes are both
// there, or neither is; and nobody else is given a task of a session that somebody was told of.
TEST(WorkerSessions, AreMadeInTheWriteOfTheStart) {
  for (int jobs = 0; jobs < 40; ++jobs) {
    World world(open_door());
    register_worker(world, "w1");
    register_worker(world, "w2");
    schedule(world, "a",
             {in_session("s", {{"max_concurrent_activities", 5}}),
              in_session("s", {{"max_concurrent_activities", 5}})});
    auto polled = world.post(
        World::request("POST", "/api/worker/activity-tasks/poll",
                       {{"worker_id", "w1"}, {"task_queue", "q"}, {"timeout_seconds", 5}}));
    world.executor->run_some(jobs);
    world.restart();
    const auto row = world.store().get(store::keys::session(NamespaceNum(1), "s"));
    ASSERT_TRUE(row.ok());
    const auto other = poll(world, "w2");
    EXPECT_EQ(row->has_value(), !has_task(other)) << jobs;
    if (has_task(polled)) {
      EXPECT_TRUE(row->has_value()) << jobs;
    }
  }
}

TEST(WorkerSessions, BudgetsHoldForThemAsWell) {
  admission::Settings budgets;
  budgets.defaults[admission::at(admission::TaskKind::kActivity)]
      .max[admission::at(admission::Budget::kQueueLeases)] = 1;
  World world(open_door(), budgets);
  register_worker(world, "w1");
  schedule(world, "a", {in_session("s"), in_session("t")});
  const auto first = poll(world, "w1");
  ASSERT_TRUE(has_task(first));
  const auto second = poll(world, "w1");
  EXPECT_FALSE(second->is_there());
  EXPECT_EQ(answer(world, *first, "complete", "w1")->status(), 200);
  EXPECT_TRUE(has_task(second));
}

TEST(WorkerSessions, LeaveNoRowsOfTheirStreams) {
  World world(open_door());
  register_worker(world, "w1", {{"max_concurrent_worker_sessions", 100}});
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i);
    schedule(world, "run-" + name, {in_session("s-" + name), in_session("s-" + name)});
    for (int task = 0; task < 2; ++task) {
      const auto polled = poll(world, "w1");
      ASSERT_TRUE(has_task(polled));
      ASSERT_EQ(answer(world, *polled, "complete", "w1")->status(), 200);
    }
    world.turn({json::object{{"type", "complete_workflow"}}});
  }
  int rows = 0;
  for (const char* table : {"F", "V", "L"}) {
    const std::string end(1, static_cast<char>(*table + 1));
    ASSERT_TRUE(world.store()
                    .scan(table, end,
                          [&](std::string_view, std::string_view) {
                            ++rows;
                            return true;
                          })
                    .ok());
  }
  EXPECT_LE(rows, 2) << "what was of a session goes with it";
}

TEST(WorkerSessions, WorkersOpenKeepAndCloseThem) {
  World world(open_door());
  register_worker(world, "w1", {{"max_concurrent_worker_sessions", 1}});
  register_worker(world, "w2");
  const auto made = create(world, "w1", "s", {{"lease_seconds", 30}, {"queue", "q"}});
  ASSERT_EQ(made->status(), 201) << made->response->body;
  EXPECT_EQ(made->text("outcome"), "created");
  EXPECT_EQ(made->body.at("admitted"), true);
  EXPECT_EQ(made->body.at("session").at("lease_seconds"), 30);
  EXPECT_EQ(made->body.at("session").at("holder").at("worker_id"), "w1");
  EXPECT_EQ(create(world, "w1", "s")->text("outcome"), "reused");
  const auto again = create(world, "w2", "s");
  EXPECT_EQ(again->status(), 409);
  EXPECT_EQ(again->text("reason"), "session_owned_by_another_worker");
  EXPECT_EQ(create(world, "w1", "t")->text("reason"), "worker_session_limit_exceeded");
  EXPECT_EQ(create(world, "w3", "t")->text("reason"), "worker_not_registered");
  EXPECT_EQ(create(world, "w2", "t", {{"queue", "other"}})->text("reason"),
            "session_queue_mismatch");
  const auto missing = create(world, "w2", "t", {{"requirements", json::array{"gpu"}}});
  EXPECT_EQ(missing->text("reason"), "session_requirements_not_met");
  EXPECT_EQ(missing->body.at("missing_requirements"), (json::array{"gpu"}));
  EXPECT_EQ(create(world, "w2", "t", {{"create_if_missing", false}})->text("reason"),
            "session_missing");
  const auto beat = [&](const std::string& worker, const std::string& id) {
    return world.ask("POST", "/api/worker/sessions/" + id + "/heartbeat",
                     {{"worker_id", worker}, {"lease_seconds", 10}});
  };
  EXPECT_EQ(beat("w1", "s")->text("outcome"), "heartbeat_recorded");
  EXPECT_EQ(beat("w2", "s")->text("reason"), "session_owner_mismatch");
  EXPECT_EQ(beat("w2", "none")->status(), 404);
  EXPECT_EQ(beat("w2", "none")->text("reason"), "session_not_found");
  world.advance(10 * kSecond);
  EXPECT_EQ(beat("w1", "s")->text("reason"), "session_not_active");
  EXPECT_EQ(create(world, "w2", "s")->text("outcome"), "reacquired");
  const auto close = [&](const std::string& worker) {
    return world.ask("DELETE", "/api/worker/sessions/s", {{"worker_id", worker}});
  };
  EXPECT_EQ(close("w1")->text("reason"), "session_owner_mismatch");
  EXPECT_EQ(close("w2")->text("outcome"), "closed");
  world.restart();
  EXPECT_EQ(close("w2")->text("outcome"), "already_closed");
  EXPECT_EQ(create(world, "w2", "s")->text("reason"), "session_closed");
}

TEST(WorkerSessions, WhatIsWrongIsSaid) {
  World world(open_door());
  register_worker(world, "w1");
  const struct {
    json::object terms;
    const char* field;
  } kWrong[] = {{{{"session_id", " "}}, "session_id"},
                {{{"session_id", "a\nb"}}, "session_id"},
                {{{"session_id", std::string(256, 'x')}}, "session_id"},
                {{{"requirements", "gpu"}}, "requirements"},
                {{{"requirements", json::array{""}}}, "requirements"},
                {{{"requirements", json::array{1}}}, "requirements"},
                {{{"lease_seconds", 0}}, "lease_seconds"},
                {{{"ttl_seconds", "soon"}}, "ttl_seconds"},
                {{{"max_concurrent_activities", 0}}, "max_concurrent_activities"},
                {{{"create_if_missing", 1}}, "create_if_missing"}};
  ASSERT_EQ(world.start("a")->status(), 201);
  const auto polled = world.poll();
  ASSERT_TRUE(polled->has_task());
  for (const auto& [terms, field] : kWrong) {
    json::object body = terms;
    if (!body.contains("session_id")) body["session_id"] = "s";
    auto command = in_session("s");
    command["worker_session"] = body;
    const auto refused = world.complete(*polled, {command});
    EXPECT_EQ(refused->status(), 422);
    EXPECT_TRUE(refused->body.at("errors").as_object().contains(
        std::string("commands.0.worker_session.") + field))
        << refused->response->body;
    body["worker_id"] = "w1";
    const auto answer = world.ask("POST", "/api/worker/sessions", body);
    EXPECT_EQ(answer->status(), 422);
    EXPECT_TRUE(answer->body.at("errors").as_object().contains(field)) << answer->response->body;
  }
  EXPECT_EQ(world.ask("POST", "/api/worker/sessions", {{"session_id", "s"}})->status(), 422);
  auto command = in_session("s");
  command["worker_session"] = "s";
  EXPECT_EQ(world.complete(*polled, {command})->status(), 422);
}

}  // namespace
}  // namespace fairlead::durable::testing
