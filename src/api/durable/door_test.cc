#include "api/durable/door.h"

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

json::object schedule_activity() {
  return {{"type", "schedule_activity"},
          {"activity_type", "greet"},
          {"queue", "q"},
          {"arguments", payload(json::array{"world"})}};
}
json::object complete_workflow(const json::value& result = "done") {
  return {{"type", "complete_workflow"}, {"result", payload(result)}};
}
json::object open_wait() { return {{"type", "open_condition_wait"}, {"condition_key", "ready"}}; }

// ---- who may enter -----------------------------------------------------------------------------

TEST(Door, SaysThatItIsThereToAnyone) {
  World world;
  EXPECT_EQ(world.ask("GET", "/api/health")->text("status"), "serving");
  EXPECT_EQ(world.ask("GET", "/api/ready")->text("status"), "ready");
}

TEST(Door, OpensNothingWithoutAConfiguredToken) {
  World world;
  const auto answer = world.ask("GET", "/api/cluster/info");
  EXPECT_EQ(answer->status(), 500);
  EXPECT_THAT(answer->text("message"), ::testing::HasSubstr("DW_AUTH_TOKEN"));
}

TEST(Door, AsksForTheToken) {
  Options options;
  options.auth_token = "secret";
  World world(options);
  EXPECT_EQ(world.ask("GET", "/api/cluster/info")->text("reason"), "unauthorized");
  EXPECT_EQ(
      world.ask("GET", "/api/cluster/info", {}, {{"Authorization", "Bearer secrex"}})->status(),
      401);
  EXPECT_EQ(world.ask("GET", "/api/cluster/info", {}, {{"Authorization", "Bearer "}})->status(),
            401);
  EXPECT_EQ(
      world.ask("GET", "/api/cluster/info", {}, {{"Authorization", "Bearer secret"}})->status(),
      200);
  EXPECT_EQ(world
                .ask("POST", "/api/worker/heartbeat", {{"worker_id", "x"}},
                     {{"Authorization", "Bearer secret"}})
                ->text("reason"),
            "worker_not_registered");
}

TEST(Door, KeepsRolesApart) {
  Options options;
  options.auth_token = "shared";
  options.worker_token = "work";
  options.operator_token = "operate";
  options.admin_token = "rule";
  World world(options);
  struct Case {
    const char* token;
    const char* method;
    const char* path;
    int status;
  };
  constexpr Case kCases[] = {
      {"work", "POST", "/api/worker/heartbeat", 422},
      {"operate", "POST", "/api/worker/heartbeat", 403},
      {"rule", "POST", "/api/worker/heartbeat", 403},
      {"shared", "POST", "/api/worker/heartbeat", 403},
      {"work", "GET", "/api/workflows/x", 403},
      {"operate", "GET", "/api/workflows/x", 404},
      {"rule", "GET", "/api/workflows/x", 404},
      {"shared", "GET", "/api/workflows/x", 404},
      {"operate", "POST", "/api/namespaces", 403},
      {"rule", "POST", "/api/namespaces", 422},
      {"work", "GET", "/api/cluster/info", 200},
  };
  for (const auto& each : kCases) {
    const auto answer = world.ask(each.method, each.path, {},
                                  {{"Authorization", std::string("Bearer ") + each.token}});
    EXPECT_EQ(answer->status(), each.status) << each.token << " " << each.path;
  }
}

TEST(Door, ChecksTheVersionOfEachPlane) {
  World world(open_door());
  const auto control = [&](const char* version) {
    return world.ask("GET", "/api/workflows/x", {},
                     {{"X-Durable-Workflow-Control-Plane-Version", version}});
  };
  EXPECT_EQ(control("2")->status(), 404);
  EXPECT_EQ(control("1")->text("reason"), "unsupported_control_plane_version");
  EXPECT_EQ(control("1")->text("supported_version"), "2");
  const auto worker = [&](const char* version) {
    return world.ask("POST", "/api/worker/heartbeat", {},
                     {{"X-Durable-Workflow-Protocol-Version", version}});
  };
  for (const char* fine : {"1.0", "1.19", "1.20"}) EXPECT_EQ(worker(fine)->status(), 422) << fine;
  for (const char* wrong : {"1.21", "2.0", "1", "1.x"}) {
    EXPECT_EQ(worker(wrong)->text("reason"), "unsupported_protocol_version") << wrong;
  }
  EXPECT_EQ(worker("1.0")->text("protocol_version"), "1.20");
}

TEST(Door, RefusesWhatItCannotRead) {
  World world(open_door());
  const auto send = [&](std::string body, std::string type) {
    auto request = std::make_shared<Request>();
    request->method = "POST";
    request->path = "/api/workflows";
    request->body = std::move(body);
    request->headers = {{"Content-Type", std::move(type)},
                        {"X-Durable-Workflow-Control-Plane-Version", "2"}};
    return world.send(std::move(request));
  };
  EXPECT_EQ(send("{", "application/json")->text("reason"), "malformed_json");
  EXPECT_EQ(send(R"({"workflow_type":"x","memo":{"a":1e400}})", "application/json")->text("reason"),
            "malformed_json")
      << "it would be written as Infinity, which is not JSON";
  EXPECT_EQ(send("{}", "text/plain")->text("reason"), "unsupported_media_type");
  EXPECT_EQ(send(std::string(3 << 20, ' '), "application/json")->text("reason"),
            "payload_too_large");
  EXPECT_EQ(send("{}", "application/json; charset=utf-8")->text("reason"), "validation_failed");
}

TEST(Door, TellsWhatIsNotThereFromWhatIsNotBuilt) {
  World world(open_door());
  EXPECT_EQ(world.ask("GET", "/api/nonsense")->text("reason"), "not_found");
  EXPECT_EQ(world.ask("DELETE", "/api/workflows/x")->text("reason"), "method_not_allowed");
  EXPECT_EQ(world.ask("GET", "/api/external-payloads/v1/x")->status(), 501);
  EXPECT_EQ(world.ask("POST", "/api/storage/test")->status(), 501);
  EXPECT_EQ(world.ask("GET", "/api/workflows", {}, {{"X-Namespace", "nowhere"}})->text("reason"),
            "namespace_not_found");
}

// ---- a run from its start to its end -----------------------------------------------------------

TEST(Door, CarriesARunThroughAnActivityToItsResult) {
  World world(open_door());
  world.register_worker();
  const auto started = world.start("order-1", {{"input", json::array{"world"}}});
  ASSERT_EQ(started->status(), 201) << started->response->body;
  EXPECT_EQ(started->text("outcome"), "started_new");
  const std::string run = started->text("run_id");

  const auto first = world.poll();
  ASSERT_TRUE(first->has_task());
  EXPECT_EQ(first->task().at("arguments"), json::value(payload(json::array{"world"})));
  EXPECT_EQ(first->task().at("history_events").as_array().size(), 2u);
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1")->text("status"), "pending");
  ASSERT_EQ(world.complete(*first, {schedule_activity()})->status(), 200);
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1")->text("status"), "waiting");

  const auto activity = world.poll("activity");
  ASSERT_TRUE(activity->has_task());
  EXPECT_EQ(text_of(activity->task(), "activity_type"), "greet");
  EXPECT_EQ(activity->task().at("arguments"), json::value(payload(json::array{"world"})));
  EXPECT_EQ(world.answer_activity(*activity, "complete", {{"result", payload("hello")}})->status(),
            200);

  world.turn({complete_workflow("hello")});
  const auto about = world.ask("GET", "/api/workflows/order-1");
  EXPECT_EQ(about->text("status"), "completed");
  EXPECT_EQ(about->body.at("output_envelope"), json::value(payload("hello")));
  EXPECT_EQ(about->body.at("input_envelope"), json::value(payload(json::array{"world"})));
  EXPECT_THAT(world.event_types("order-1", run),
              ElementsAre("StartAccepted", "WorkflowStarted", "ActivityScheduled",
                          "ActivityStarted", "ActivityCompleted", "WorkflowCompleted"));
  int64_t sequence = 0;
  for (const auto& event : world.history("order-1", run)) {
    EXPECT_EQ(event.as_object().at("sequence").as_int64(), ++sequence);
  }
}

TEST(Door, TakesAWorkflowIdOnce) {
  World world(open_door());
  const auto first = world.start();
  EXPECT_EQ(world.start()->text("reason"), "instance_already_started");
  const auto same = world.start("order-1", {{"duplicate_policy", "use-existing"}});
  EXPECT_EQ(same->status(), 200);
  EXPECT_EQ(same->text("run_id"), first->text("run_id"));
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/terminate")->status(), 200);
  EXPECT_EQ(world.start()->text("outcome"), "rejected_duplicate") << "also when it is closed";
}

TEST(Door, NamesTheFieldThatIsWrong) {
  World world(open_door());
  struct Case {
    json::object body;
    const char* field;
  };
  const Case cases[] = {
      {{{"workflow_id", "x"}}, "workflow_type"},
      {{{"workflow_type", "t"}, {"workflow_id", "a b"}}, "workflow_id"},
      {{{"workflow_type", "t"}, {"input", "text"}}, "input"},
      {{{"workflow_type", "t"}, {"input", {{"codec", "json"}, {"blob", "e30="}}}}, "input"},
      {{{"workflow_type", "t"}, {"run_timeout_seconds", 0}}, "run_timeout_seconds"},
      {{{"workflow_type", "t"}, {"duplicate_policy", "maybe"}}, "duplicate_policy"},
      {{{"workflow_type", "t"}, {"memo", 5}}, "memo"},
      {{{"workflow_type", "t"}, {"request_id", "r"}}, "request_id"},
  };
  for (const auto& each : cases) {
    const auto answer = world.ask("POST", "/api/workflows", each.body);
    EXPECT_EQ(answer->status(), 422) << each.field;
    EXPECT_TRUE(answer->body.at("errors").as_object().contains(each.field)) << each.field;
    EXPECT_EQ(answer->body.at("errors"), answer->body.at("validation_errors"));
  }
}

TEST(Door, PollsWaitAndEndWhenTheirTimeIsOver) {
  World world(open_door());
  EXPECT_EQ(world.poll()->text("reason"), "worker_not_registered");
  world.register_worker();
  const auto polled = world.poll();
  EXPECT_FALSE(polled->is_there());
  world.advance(4 * kSecond);
  EXPECT_FALSE(polled->is_there()) << "never empty without having waited";
  world.advance(kSecond);
  ASSERT_TRUE(polled->is_there());
  EXPECT_EQ(polled->text("poll_status"), "empty");
  const auto next = world.poll();
  world.start();
  ASSERT_TRUE(next->is_there() && next->has_task()) << "a task ends the wait";
}

TEST(Door, GivesARepeatedPollTheTaskThatItHas) {
  World world(open_door());
  world.register_worker();
  world.start();
  const auto first = world.poll("workflow", "poll-1");
  const auto again = world.poll("workflow", "poll-1");
  ASSERT_TRUE(first->has_task() && again->has_task());
  EXPECT_EQ(first->body.at("task"), again->body.at("task"));
  EXPECT_FALSE(world.poll("workflow", "poll-2")->is_there()) << "there is one task";
  ASSERT_EQ(world.complete(*first, {open_wait()})->status(), 200);
  EXPECT_FALSE(world.poll("workflow", "poll-1")->is_there()) << "its lease is over";
}

TEST(Door, LetsARepeatedPollWaitInThePlaceOfTheFirst) {
  World world(open_door());
  world.register_worker();
  const auto first = world.poll("workflow", "poll-1");
  const auto again = world.poll("workflow", "poll-1");
  EXPECT_TRUE(first->is_there() && !first->has_task());
  world.start();
  EXPECT_TRUE(again->has_task());
}

TEST(Door, GivesNothingToAClientThatHasHungUp) {
  World world(open_door());
  world.register_worker();
  const auto gone = world.poll("workflow", "poll-1");
  world.hang_up();
  const auto gone_query = world.poll("query");
  world.hang_up();
  world.start();
  const auto there = world.poll("workflow", "poll-2");
  EXPECT_FALSE(gone->is_there());
  ASSERT_TRUE(there->is_there() && there->has_task());
  EXPECT_EQ(there->task().at("workflow_task_attempt").as_int64(), 1);
  const auto asked = world.ask("POST", "/api/workflows/order-1/query/status");
  world.advance(10 * kSecond);
  EXPECT_FALSE(gone_query->is_there());
  EXPECT_TRUE(world.poll("query")->has_task());
}

TEST(Door, GivesALostTaskToAnother) {
  World world(open_door());
  world.register_worker();
  world.start();
  const auto lost = world.poll();
  world.advance(61 * kSecond);
  world.register_worker();
  const auto found = world.poll();
  ASSERT_TRUE(found->is_there() && found->has_task());
  EXPECT_EQ(text_of(found->task(), "task_id"), text_of(lost->task(), "task_id"));
  EXPECT_EQ(found->task().at("workflow_task_attempt").as_int64(), 2);
  const auto late = world.complete(*lost, {complete_workflow()});
  EXPECT_EQ(late->text("reason"), "workflow_task_attempt_mismatch");
  EXPECT_EQ(late->body.at("current_attempt").as_int64(), 2);
  EXPECT_EQ(world.complete(*found, {complete_workflow()})->status(), 200);
  const auto twice = world.complete(*found, {complete_workflow()});
  EXPECT_EQ(twice->text("reason"), "run_closed");
  EXPECT_EQ(twice->text("stop_reason"), "run_completed");
}

TEST(Door, RenewsALeaseByHeartbeats) {
  World world(open_door());
  world.register_worker();
  world.start();
  const auto task = world.poll();
  for (int i = 0; i < 4; ++i) {
    world.advance(50 * kSecond);
    const auto beat = world.answer_task(*task, "heartbeat", {});
    ASSERT_EQ(beat->status(), 200);
    EXPECT_TRUE(beat->body.at("renewed").as_bool());
  }
  EXPECT_EQ(world.complete(*task, {complete_workflow()})->status(), 200);
}

TEST(Door, DeregistrationGivesTheWorkersTasksToOthers) {
  World world(open_door());
  world.register_worker("w1");
  world.start();
  ASSERT_TRUE(world.poll()->has_task());
  const auto parked = world.poll("activity");
  const auto gone = world.ask("DELETE", "/api/worker/registrations/w1");
  EXPECT_EQ(gone->text("outcome"), "deregistered");
  EXPECT_EQ(gone->body.at("recovered_workflow_task_count").as_int64(), 1);
  EXPECT_TRUE(parked->is_there()) << "its polls end";
  world.register_worker("w2");
  EXPECT_TRUE(world.poll("workflow", "", "w2")->has_task());
  EXPECT_EQ(world.ask("DELETE", "/api/worker/registrations/w1")->text("reason"),
            "worker_not_found");
}

TEST(Door, SaysNothingToDoWithoutCallingItAFailure) {
  World world(open_door());
  world.register_worker();
  world.start();
  world.turn({schedule_activity(), schedule_activity()});
  for (int i = 0; i < 2; ++i) {
    const auto activity = world.poll("activity");
    world.answer_activity(*activity, "complete", {{"result", payload(1)}});
    const auto task = world.poll();
    ASSERT_TRUE(task->is_there() && task->has_task());
    const auto waits = world.answer_task(
        *task, "fail",
        {{"failure", {{"message", "nothing new"}, {"type", "WorkflowTaskWaitingForHistory"}}}});
    EXPECT_EQ(waits->text("outcome"), "waiting_for_history");
  }
  const auto idle = world.poll();
  EXPECT_FALSE(idle->is_there()) << "no task is tried again";
}

TEST(Door, ParksARunThatCannotBeReplayedUntilItIsRepaired) {
  World world(open_door());
  world.register_worker();
  world.start();
  const auto task = world.poll();
  EXPECT_EQ(world
                .answer_task(*task, "fail",
                             {{"failure", {{"message", "history mismatch"}, {"type", "X"}}}})
                ->status(),
            200);
  const auto idle = world.poll("workflow", "", "w1", 60);
  world.advance(50 * kSecond);
  EXPECT_FALSE(idle->is_there());
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/repair")->text("outcome"),
            "repair_dispatched");
  EXPECT_TRUE(idle->is_there() && idle->has_task());
}

TEST(Door, PagesAHistoryAsItWasWhenTheTaskWasGiven) {
  World world(open_door());
  world.register_worker();
  const auto started = world.start();
  world.turn({open_wait()});
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    world.ask("POST", std::string("/api/workflows/order-1/signal/") + name);
  }
  const auto task = world.ask("POST", "/api/worker/workflow-tasks/poll",
                              {{"worker_id", "w1"}, {"task_queue", "q"}, {"history_page_size", 3}});
  ASSERT_TRUE(task->has_task());
  world.ask("POST", "/api/workflows/order-1/signal/late");
  size_t events = task->task().at("history_events").as_array().size();
  std::string token = text_of(task->task(), "next_history_page_token");
  int pages = 1;
  while (!token.empty()) {
    const auto page = world.answer_task(
        *task, "history", {{"next_history_page_token", token}, {"history_page_size", 3}});
    ASSERT_EQ(page->status(), 200) << page->response->body;
    events += page->body.at("history_events").as_array().size();
    token = text_of(page->body, "next_history_page_token");
    ASSERT_LE(++pages, 4);
  }
  EXPECT_EQ(events, 8u) << "two of the start, the wait, five signals, and not the late one";
  EXPECT_EQ(world.answer_task(*task, "history", {{"next_history_page_token", "?"}})->text("reason"),
            "invalid_page_token");
}

// ---- signals, updates, queries -----------------------------------------------------------------

TEST(Door, TakesASignalOnceForEachRequestId) {
  World world(open_door());
  const auto started = world.start();
  const std::string path = "/api/workflows/order-1/signal/approve";
  const json::object body{{"request_id", "r1"}, {"input", json::array{"ada"}}};
  const auto first = world.ask("POST", path, body);
  ASSERT_EQ(first->status(), 202) << first->response->body;
  EXPECT_EQ(first->text("outcome"), "signal_received");
  const auto again = world.ask("POST", path, body);
  EXPECT_EQ(again->text("command_id"), first->text("command_id"));
  const auto other = world.ask("POST", path, {{"request_id", "r1"}, {"input", json::array{"bo"}}});
  EXPECT_EQ(other->text("reason"), "request_id_conflict");
  EXPECT_EQ(other->text("retained_command_id"), first->text("command_id"));
  const auto types = world.event_types("order-1", started->text("run_id"));
  EXPECT_EQ(std::count(types.begin(), types.end(), "SignalReceived"), 1);
}

// A name that is no text would make the whole history unreadable for everyone who parses JSON.
TEST(Door, TakesNoNamesThatAreNoText) {
  World world(open_door());
  const auto started = world.start();
  for (const char* name : {"%FF", "%C0%AF", "%ED%A0%80", "a%80", "%F5%80%80%80"}) {
    EXPECT_EQ(world.ask("POST", std::string("/api/workflows/order-1/signal/") + name)->status(),
              404)
        << name;
  }
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/signal/caf%C3%A9%20%F0%9F%98%80")->status(),
            202);
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/signal/a%0Ab")->status(), 422);
  EXPECT_EQ(world.ask("GET", "/api/workflows/x", {}, {{"X-Namespace", "\xFF"}})->status(), 404);
  EXPECT_EQ(world.history("order-1", started->text("run_id")).size(), 3u);
}

TEST(Door, RefusesCommandsToRunsThatAreClosedOrNotThere) {
  World world(open_door());
  EXPECT_EQ(world.ask("POST", "/api/workflows/none/signal/x")->text("reason"),
            "instance_not_found");
  world.start();
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/cancel", {{"reason", "no"}})->text("outcome"),
            "cancelled");
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1")->text("status"), "cancelled");
  for (const char* verb : {"signal/x", "update/x", "cancel", "terminate"}) {
    const auto answer = world.ask("POST", std::string("/api/workflows/order-1/") + verb);
    EXPECT_EQ(answer->status(), 409) << verb;
    EXPECT_EQ(answer->text("reason"), "run_not_active") << verb;
  }
}

TEST(Door, CarriesAnUpdateToTheWorkflowAndItsAnswerBack) {
  World world(open_door());
  world.register_worker();
  const auto started = world.start();
  world.turn({open_wait()});
  const auto update = world.ask("POST", "/api/workflows/order-1/update/deposit",
                                {{"input", json::array{5}}, {"wait_for", "completed"}});
  EXPECT_FALSE(update->is_there());
  const auto task = world.poll();
  ASSERT_TRUE(task->has_task());
  const std::string id = text_of(task->task(), "workflow_update_id");
  ASSERT_FALSE(id.empty());
  ASSERT_EQ(world
                .complete(*task, {json::object{{"type", "complete_update"},
                                               {"update_id", id},
                                               {"result", payload(5)}}})
                ->status(),
            200);
  ASSERT_TRUE(update->is_there());
  EXPECT_EQ(update->status(), 200);
  EXPECT_EQ(update->text("update_status"), "completed");
  EXPECT_EQ(update->body.at("result_envelope"), json::value(payload(5)));
  const auto events = world.history("order-1", started->text("run_id"));
  const auto& applied = events[events.size() - 2].as_object();
  EXPECT_EQ(text_of(applied, "event_type"), "UpdateApplied");
  EXPECT_EQ(applied.at("payload").as_object().at("arguments"), json::value(payload(json::array{5})))
      << "a replay runs the handler with them";
  EXPECT_TRUE(world.poll()->has_task()) << "the condition may be met now";
}

TEST(Door, AnswersAnUpdateThatTakesTooLongAndAttachesToItLater) {
  World world(open_door());
  world.register_worker();
  world.start();
  world.turn({open_wait()});
  const json::object body{
      {"wait_for", "completed"}, {"wait_timeout_seconds", 2}, {"request_id", "u1"}};
  const auto first = world.ask("POST", "/api/workflows/order-1/update/deposit", body);
  world.advance(2 * kSecond);
  ASSERT_TRUE(first->is_there());
  EXPECT_EQ(first->status(), 202);
  EXPECT_TRUE(first->body.at("wait_timed_out").as_bool());
  const auto again = world.ask("POST", "/api/workflows/order-1/update/deposit", body);
  const auto task = world.poll();
  world.complete(*task, {json::object{{"type", "fail_update"},
                                      {"update_id", first->body.at("update_id")},
                                      {"message", "too little"}}});
  ASSERT_TRUE(again->is_there());
  EXPECT_EQ(again->status(), 422);
  EXPECT_EQ(again->text("update_status"), "failed");
  EXPECT_EQ(again->text("failure_message"), "too little");
}

TEST(Door, AsksAWorkerTheQuery) {
  World world(open_door());
  world.start();
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/query/status")->text("reason"),
            "query_worker_unavailable");
  world.register_worker();
  const auto asked = world.ask("POST", "/api/workflows/order-1/query/status");
  EXPECT_FALSE(asked->is_there());
  const auto task = world.poll("query");
  ASSERT_TRUE(task->has_task());
  EXPECT_EQ(task->task().at("history_events").as_array().size(), 2u);
  const std::string path = "/api/worker/query-tasks/" + text_of(task->task(), "query_task_id");
  const auto stranger =
      world.ask("POST", path + "/complete", {{"lease_owner", "thief"}, {"query_task_attempt", 1}});
  EXPECT_EQ(stranger->text("reason"), "lease_owner_mismatch");
  const json::object answer{{"lease_owner", "w1"},
                            {"query_task_attempt", 1},
                            {"result", "open"},
                            {"result_envelope", payload("open")}};
  EXPECT_EQ(world.ask("POST", path + "/complete", answer)->status(), 200);
  ASSERT_TRUE(asked->is_there());
  EXPECT_EQ(asked->text("result"), "open");
  EXPECT_EQ(world.ask("POST", path + "/complete", answer)->text("reason"), "query_task_not_found");
}

TEST(Door, EndsAQueryThatNobodyTakesOrAnswers) {
  World world(open_door());
  world.start();
  world.register_worker();
  const auto untaken = world.ask("POST", "/api/workflows/order-1/query/status");
  world.advance(30 * kSecond);
  ASSERT_TRUE(untaken->is_there());
  EXPECT_EQ(untaken->status(), 504);
  EXPECT_EQ(untaken->text("reason"), "query_task_not_claimed");
  world.register_worker();
  const auto taken = world.ask("POST", "/api/workflows/order-1/query/status");
  ASSERT_TRUE(world.poll("query")->has_task());
  world.advance(30 * kSecond);
  EXPECT_EQ(taken->text("reason"), "query_worker_execution_timeout");
}

// ---- commands ----------------------------------------------------------------------------------

TEST(Door, RefusesACompletionAsAWhole) {
  World world(open_door());
  world.register_worker();
  const auto started = world.start();
  const auto task = world.poll();
  struct Case {
    json::array commands;
    int status;
    const char* reason;
  };
  json::object grouped = schedule_activity();
  grouped["parallel_group_id"] = "parallel-activities:2:1";
  grouped["parallel_group_base_sequence"] = 2;
  grouped["parallel_group_size"] = 1;
  grouped["parallel_group_index"] = 0;
  const Case cases[] = {
      {{}, 422, "validation_failed"},
      {{json::object{{"type", "nonsense"}}}, 422, "validation_failed"},
      {{schedule_activity(), json::object{{"type", "start_timer"}}}, 422, "validation_failed"},
      {{complete_workflow(), schedule_activity()}, 409, "invalid_commands"},
      {{grouped}, 409, "invalid_commands"},
      {{json::object{{"type", "complete_update"}, {"update_id", "u"}}}, 409, "invalid_commands"},
  };
  for (const auto& each : cases) {
    const auto answer = world.complete(*task, each.commands);
    EXPECT_EQ(answer->status(), each.status) << answer->response->body;
    EXPECT_EQ(answer->text("reason"), each.reason);
  }
  EXPECT_EQ(world.event_types("order-1", started->text("run_id")).size(), 2u);
  EXPECT_EQ(world.complete(*task, {complete_workflow()})->status(), 200);
}

TEST(Door, ContinuesAsNewAndListsTheRuns) {
  World world(open_door());
  world.register_worker();
  const auto started = world.start("order-1", {{"memo", {{"who", "ada"}}}});
  world.turn({json::object{{"type", "continue_as_new"}, {"arguments", payload(json::array{2})}}});
  world.advance(2 * kSecond);
  const auto task = world.poll();
  ASSERT_TRUE(task->has_task());
  EXPECT_NE(text_of(task->task(), "run_id"), started->text("run_id"));
  EXPECT_EQ(task->task().at("arguments"), json::value(payload(json::array{2})));
  const auto runs = world.ask("GET", "/api/workflows/order-1/runs");
  EXPECT_EQ(runs->body.at("run_count").as_int64(), 2);
  const auto about = world.ask("GET", "/api/workflows/order-1");
  EXPECT_EQ(about->body.at("run_number").as_int64(), 2);
  EXPECT_EQ(about->body.at("memo").as_object().at("who"), json::value("ada"));
  const auto old =
      world.ask("POST", "/api/workflows/order-1/runs/" + started->text("run_id") + "/signal/x");
  EXPECT_EQ(old->text("reason"), "historical_run_command_rejected");
}

TEST(Door, StartsAChildAndTellsItsParentTheResult) {
  World world(open_door());
  world.register_worker();
  const auto started = world.start();
  world.turn({json::object{{"type", "start_child_workflow"},
                           {"workflow_type", "greeter"},
                           {"arguments", payload(json::array{"kid"})}}});
  const auto child = world.poll();
  ASSERT_TRUE(child->has_task());
  EXPECT_EQ(child->task().at("arguments"), json::value(payload(json::array{"kid"})));
  EXPECT_NE(text_of(child->task(), "workflow_id"), "order-1");
  world.complete(*child, {complete_workflow("grown")});
  const auto parent = world.poll();
  ASSERT_TRUE(parent->has_task());
  EXPECT_THAT(world.event_types("order-1", started->text("run_id")),
              ElementsAre("StartAccepted", "WorkflowStarted", "ChildWorkflowScheduled",
                          "ChildRunStarted", "ChildRunCompleted"));
}

// ---- what is on disk ---------------------------------------------------------------------------

TEST(Door, GoesOnAfterARestart) {
  World world(open_door());
  world.register_worker();
  const auto started = world.start();
  const auto task = world.poll();
  world.restart();
  EXPECT_FALSE(world.poll()->is_there()) << "the worker, which will not register again, is known";
  world.hang_up();
  EXPECT_EQ(world.complete(*task, {open_wait()})->status(), 200) << "its lease is on disk";
  const json::object body{{"request_id", "r1"}};
  const auto signal = world.ask("POST", "/api/workflows/order-1/signal/go", body);
  world.restart();
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/signal/go", body)->text("command_id"),
            signal->text("command_id"));
  world.turn({complete_workflow()});
  EXPECT_EQ(world.ask("GET", "/api/workflows/order-1")->text("status"), "completed");
}

// The other door asks for the same workflow id and polls a queue of the same name.
TEST(Door, KeepsItsRunsAndTasksFromTheOtherDoor) {
  World world(open_door());
  world.start();
  absl::Status described;
  const auto ns = NamespaceNum((*world.engine().namespaces().find("default"))->num());
  world.engine().describe_workflow(
      {ns, "order-1", ""}, [&](absl::StatusOr<shard::RunView> view) { described = view.status(); });
  bool has_task = true;
  shard::PollRequest poll;
  poll.ns = ns;
  poll.queue.set_name("q");
  poll.hold_until = world.clock.time + kSecond;
  world.engine().poll_workflow_task(poll, [&](absl::StatusOr<shard::WorkflowTask> task) {
    has_task = !task->token.workflow_id.empty();
  });
  world.advance(2 * kSecond);
  EXPECT_TRUE(absl::IsNotFound(described)) << described;
  EXPECT_FALSE(has_task);
  absl::Status started;
  shard::StartRequest start;
  start.ns = ns;
  start.workflow_id = "order-1";
  start.conflict = shard::ConflictPolicy::kUseExisting;
  world.engine().start_workflow(
      start, [&](absl::StatusOr<shard::StartResult> result) { started = result.status(); });
  world.advance(0);
  EXPECT_TRUE(absl::IsAlreadyExists(started)) << started;
}

TEST(Door, ManagesNamespaces) {
  World world(open_door());
  const auto made =
      world.ask("POST", "/api/namespaces", {{"name", "Team-A"}, {"retention_days", 3}});
  EXPECT_EQ(made->status(), 201) << made->response->body;
  EXPECT_EQ(made->text("name"), "team-a");
  EXPECT_EQ(world.ask("POST", "/api/namespaces", {{"name", "team-a"}})->text("reason"),
            "namespace_already_exists");
  EXPECT_EQ(world.ask("PUT", "/api/namespaces/team-a", {{"description", "the A team"}})
                ->text("description"),
            "the A team");
  EXPECT_EQ(world.ask("GET", "/api/namespaces/nobody")->text("reason"), "namespace_not_found");
  world.start();
  EXPECT_EQ(
      world.ask("GET", "/api/workflows/order-1", {}, {{"X-Namespace", "TEAM-A"}})->text("reason"),
      "instance_not_found")
      << "another namespace's run";
}

}  // namespace
}  // namespace fairlead::durable::testing
