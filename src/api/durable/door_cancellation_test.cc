// Runs that are asked to stop: what clients and workers hear, over the whole engine.

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class Stops : public ::testing::Test {
 protected:
  // A worker that can tell its code, and one that cannot.
  void add_worker(const std::string& id, bool can_stop) {
    json::array capabilities;
    if (can_stop) capabilities.emplace_back("cooperative_cancellation");
    const auto answer = world.ask("POST", "/api/worker/register",
                                  {{"worker_id", id},
                                   {"task_queue", "q"},
                                   {"runtime", "python"},
                                   {"capabilities", capabilities}});
    ASSERT_EQ(answer->status(), 201);
  }
  AnswerPtr ask_to_stop(json::object body = {}, const std::string& id = "order-1") {
    return world.ask("POST", "/api/workflows/" + id + "/request-cancellation", std::move(body));
  }
  AnswerPtr deliver(const Answer& polled, const std::string& request, json::object more = {}) {
    json::object body{{"request_id", request}, {"sequence", 1}, {"call_kind", "timer"}};
    for (auto& field : more) body[field.key()] = field.value();
    return world.answer_task(polled, "deliver-cancellation", std::move(body));
  }
  std::string begin(json::array commands) {
    run = world.start()->text("run_id");
    world.turn(std::move(commands));
    return run;
  }
  static std::string request_of(const AnswerPtr& asked) {
    return text_of(asked->body.at("cancellation_request").as_object(), "request_id");
  }
  json::object last_event() {
    const auto events = world.history("order-1", run);
    return events.back().as_object();
  }

  World world{open_door()};
  std::string run;
};

json::object timer_command() { return {{"type", "start_timer"}, {"delay_seconds", 300}}; }
json::object activity_command(const char* policy = nullptr) {
  json::object command{{"type", "schedule_activity"}, {"activity_type", "work"}};
  if (policy != nullptr) command["cancellation_policy"] = policy;
  return command;
}

TEST_F(Stops, ARunMayCleanUpAndIsThenCancelled) {
  add_worker("w1", true);
  begin({timer_command()});
  const auto asked = ask_to_stop({{"reason", "maintenance"}, {"cleanup_timeout_seconds", 60}});
  ASSERT_EQ(asked->status(), 202) << asked->response->body;
  EXPECT_TRUE(asked->body.at("accepted").as_bool());
  EXPECT_FALSE(asked->body.at("duplicate").as_bool());

  const auto polled = world.poll();
  ASSERT_TRUE(polled->has_task());
  EXPECT_EQ(polled->task().at("cancellation_request"), asked->body.at("cancellation_request"));
  const auto told = deliver(*polled, request_of(asked));
  ASSERT_EQ(told->status(), 200) << told->response->body;
  EXPECT_TRUE(told->body.at("delivered").as_bool());
  // The worker reads the history again and finds both events.
  const auto page = world.answer_task(*polled, "history", {{"next_history_page_token", "MA=="}});
  std::vector<std::string> seen;
  for (const auto& event : page->body.at("history_events").as_array()) {
    seen.push_back(text_of(event.as_object(), "event_type"));
  }
  EXPECT_THAT(seen, ElementsAre("StartAccepted", "WorkflowStarted", "TimerScheduled",
                                "CooperativeCancellationRequested", "TimerCancelled",
                                "CooperativeCancellationDelivered"));

  ASSERT_EQ(world.complete(*polled, {json::object{{"type", "complete_workflow"}}})->status(), 200);
  const auto end = last_event();
  EXPECT_EQ(text_of(end, "event_type"), "WorkflowCancelled");
  EXPECT_EQ(text_of(end, "workflow_command_id"), request_of(asked));
  const auto& payload = end.at("payload").as_object();
  EXPECT_EQ(text_of(payload, "reason"), "maintenance");
  EXPECT_EQ(text_of(payload.at("cancellation_cleanup").as_object(), "outcome"), "completed");
}

TEST_F(Stops, ARunIsAskedOnceAndKeepsItsDeadline) {
  add_worker("w1", true);
  begin({timer_command()});
  const auto first = ask_to_stop({{"cleanup_timeout_seconds", 60}});
  world.advance(10 * kSecond);
  const auto second = ask_to_stop({{"cleanup_timeout_seconds", 3600}});
  EXPECT_EQ(second->status(), 200);
  EXPECT_TRUE(second->body.at("duplicate").as_bool());
  EXPECT_EQ(second->body.at("cancellation_request"), first->body.at("cancellation_request"));
  world.restart();
  const auto third = ask_to_stop();
  EXPECT_EQ(third->body.at("cancellation_request"), first->body.at("cancellation_request"));
  const auto types = world.event_types("order-1", run);
  EXPECT_EQ(std::count(types.begin(), types.end(), "CooperativeCancellationRequested"), 1);
}

TEST_F(Stops, TheDeadlineEndsARunThatNobodyCanTell) {
  run = world.start()->text("run_id");
  const auto asked = ask_to_stop({{"cleanup_timeout_seconds", 5}});
  ASSERT_EQ(asked->status(), 202);
  world.restart();
  world.advance(6 * kSecond);
  const auto end = last_event();
  EXPECT_EQ(text_of(end, "event_type"), "WorkflowCancelled");
  EXPECT_EQ(
      text_of(end.at("payload").as_object().at("cancellation_cleanup").as_object(), "outcome"),
      "deadline_expired");
  EXPECT_EQ(ask_to_stop()->status(), 200) << "what was accepted is accepted";
}

TEST_F(Stops, OnlyAWorkerThatCanTellItsCodeGetsTheTask) {
  add_worker("w1", false);
  add_worker("w2", true);
  begin({timer_command()});
  const auto asked = ask_to_stop();
  const auto refused = world.poll("workflow", "", "w1", 1);
  world.advance(150 * kMillisecond);
  EXPECT_FALSE(refused->is_there()) << "it waits for another task";
  const auto polled = world.poll("workflow", "", "w2", 5);
  world.advance(2 * kSecond);
  ASSERT_TRUE(refused->is_there());
  EXPECT_TRUE(refused->body.at("task").is_null());
  ASSERT_TRUE(polled->is_there() && polled->has_task());
  EXPECT_TRUE(polled->task().contains("cancellation_request"));
  const auto told = world.answer_task(
      *polled, "deliver-cancellation",
      {{"request_id", request_of(asked)}, {"sequence", 1}, {"call_kind", "timer"}}, "w2");
  EXPECT_EQ(told->status(), 200) << told->response->body;
}

TEST_F(Stops, AWorkerThatCannotTellItsCodeFinishesWhatItHas) {
  add_worker("w1", false);
  run = world.start()->text("run_id");
  const auto polled = world.poll();
  ASSERT_EQ(ask_to_stop()->status(), 202);
  const auto beat = world.answer_task(*polled, "heartbeat", {});
  EXPECT_FALSE(beat->body.contains("cancellation_request"));
  EXPECT_EQ(deliver(*polled, "any")->text("reason"), "active_claim_cancellation_not_supported");
  EXPECT_EQ(world.complete(*polled, {timer_command()})->status(), 200);
}

TEST_F(Stops, AWorkerOnItsWayHearsOfTheRequest) {
  add_worker("w1", true);
  run = world.start()->text("run_id");
  const auto polled = world.poll();
  const auto asked = ask_to_stop();
  const auto beat = world.answer_task(*polled, "heartbeat", {});
  EXPECT_EQ(beat->body.at("cancellation_request"), asked->body.at("cancellation_request"));
  const auto told = deliver(*polled, request_of(asked), {{"call_kind", "local_activity"}});
  EXPECT_EQ(told->status(), 200) << told->response->body;
}

TEST_F(Stops, ADeliveryIsCheckedBeforeAnythingIsWritten) {
  add_worker("w1", true);
  begin({timer_command()});
  const auto request = request_of(ask_to_stop());
  const auto polled = world.poll();
  EXPECT_EQ(deliver(*polled, "other")->text("reason"), "cancellation_request_mismatch");
  EXPECT_EQ(deliver(*polled, request, {{"sequence", 9}})->text("reason"),
            "cancellation_delivery_sequence_mismatch");
  EXPECT_EQ(deliver(*polled, request, {{"call_kind", "activity"}})->text("reason"),
            "cancellation_delivery_shape_mismatch");
  EXPECT_EQ(deliver(*polled, request, {{"call_kind", "dance"}})->status(), 422);
  EXPECT_EQ(deliver(*polled, request, {{"sequence_span", 2}})->status(), 422);
  EXPECT_EQ(deliver(*polled, request, {{"operation_sequence", 1}})->status(), 422);
  EXPECT_EQ(deliver(*polled, request, {{"call_kind", "selection_handle"}})->status(), 422);
  EXPECT_THAT(world.event_types("order-1", run), Not(Contains("CooperativeCancellationDelivered")));
  EXPECT_EQ(deliver(*polled, request)->status(), 200);
  EXPECT_EQ(deliver(*polled, request)->status(), 200) << "said again";
}

TEST_F(Stops, AnActivityIsTakenFromItsWorkerWhoSaysThatItStopped) {
  add_worker("w1", true);
  begin({activity_command("wait_cancellation_completed")});
  const auto work = world.poll("activity");
  ASSERT_TRUE(work->has_task());
  const auto request = request_of(ask_to_stop());
  auto polled = world.poll();
  auto told = deliver(*polled, request, {{"call_kind", "activity"}});
  EXPECT_FALSE(told->body.at("delivered").as_bool());
  EXPECT_TRUE(told->body.at("claim_released").as_bool());
  EXPECT_EQ(told->text("reason"), "cancellation_waiting_for_activity");
  const auto nothing = world.poll("workflow", "", "w1", 1);
  world.advance(2 * kSecond);
  EXPECT_TRUE(nothing->body.at("task").is_null());

  const auto beat = world.answer_activity(*work, "heartbeat", {});
  EXPECT_TRUE(beat->body.at("cancel_requested").as_bool());
  EXPECT_FALSE(beat->body.at("can_continue").as_bool());
  EXPECT_EQ(world.answer_activity(*work, "complete", {})->text("reason"), "attempt_stopped");
  const auto status = world.answer_activity(*work, "status", {});
  const auto& record = status->body.at("cancellation_acknowledgement").as_object();
  EXPECT_EQ(text_of(record, "request_id"), request);
  EXPECT_EQ(text_of(record, "callback_state"), "unknown");
  EXPECT_EQ(world.answer_activity(*work, "acknowledge-cancellation", {{"request_id", "other"}})
                ->text("reason"),
            "cancellation_request_mismatch");
  const auto said =
      world.answer_activity(*work, "acknowledge-cancellation", {{"request_id", request}});
  ASSERT_EQ(said->status(), 200) << said->response->body;
  EXPECT_FALSE(said->body.at("duplicate").as_bool());
  const auto again =
      world.answer_activity(*work, "acknowledge-cancellation", {{"request_id", request}});
  EXPECT_TRUE(again->body.at("duplicate").as_bool());
  EXPECT_EQ(again->text("history_event_id"), said->text("history_event_id"));

  polled = world.poll();
  ASSERT_TRUE(polled->has_task());
  told = deliver(*polled, request, {{"call_kind", "activity"}});
  EXPECT_TRUE(told->body.at("delivered").as_bool()) << told->response->body;
  ASSERT_EQ(world.complete(*polled, {json::object{{"type", "complete_workflow"}}})->status(), 200);
  EXPECT_EQ(world.answer_activity(*work, "complete", {})->text("reason"), "run_cancelled");
  const auto after = world.answer_activity(*work, "status", {});
  EXPECT_EQ(text_of(after->body.at("cancellation_acknowledgement").as_object(), "callback_state"),
            "stopped");
}

TEST_F(Stops, AChildIsAskedWithItsParentsDeadline) {
  add_worker("w1", true);
  begin({json::object{{"type", "start_child_workflow"},
                      {"workflow_type", "child"},
                      {"cancellation_policy", "wait_cancellation_completed"}}});
  auto child = world.poll();
  ASSERT_TRUE(child->has_task());
  const auto child_id = text_of(child->task(), "workflow_id");
  const auto child_run = text_of(child->task(), "run_id");
  ASSERT_EQ(world.complete(*child, {timer_command()})->status(), 200);
  const auto asked = ask_to_stop({{"cleanup_timeout_seconds", 60}});
  auto parent = world.poll();
  auto told = deliver(*parent, request_of(asked), {{"call_kind", "child"}});
  EXPECT_EQ(told->text("reason"), "cancellation_waiting_for_child");

  child = world.poll();
  ASSERT_TRUE(child->has_task());
  const auto& own = child->task().at("cancellation_request").as_object();
  EXPECT_NE(text_of(own, "request_id"), request_of(asked));
  EXPECT_EQ(own.at("cleanup_deadline_at"),
            asked->body.at("cancellation_request").as_object().at("cleanup_deadline_at"));
  ASSERT_EQ(deliver(*child, text_of(own, "request_id"))->status(), 200);
  ASSERT_EQ(world.complete(*child, {json::object{{"type", "complete_workflow"}}})->status(), 200);
  EXPECT_THAT(world.event_types(child_id, child_run), Contains("WorkflowCancelled"));

  parent = world.poll();
  ASSERT_TRUE(parent->has_task());
  told = deliver(*parent, request_of(asked), {{"call_kind", "child"}});
  EXPECT_TRUE(told->body.at("delivered").as_bool()) << told->response->body;
  EXPECT_THAT(world.event_types("order-1", run), Contains("ChildRunCancelled"));
}

TEST_F(Stops, AClosedRunIsNotAsked) {
  run = world.start()->text("run_id");
  world.ask("POST", "/api/workflows/order-1/cancel");
  EXPECT_EQ(ask_to_stop()->text("reason"), "run_not_active");
  EXPECT_EQ(ask_to_stop({}, "nobody")->status(), 404);
  world.start("order-2");
  EXPECT_EQ(ask_to_stop({{"cleanup_timeout_seconds", 0}}, "order-2")->status(), 422);
  EXPECT_EQ(ask_to_stop({{"cleanup_timeout_seconds", 3601}}, "order-2")->status(), 422);
  EXPECT_EQ(ask_to_stop({{"reason", std::string(1001, 'x')}}, "order-2")->status(), 422);
}

TEST_F(Stops, AnActivityWithoutAWorkflowHasNoCodeToBeTold) {
  world.ask("POST", "/api/activities",
            {{"activity_type", "work"}, {"task_queue", "q"}, {"activity_id", "lone"}});
  EXPECT_EQ(ask_to_stop({}, "lone")->text("reason"), "cooperative_cancellation_not_supported");
}

}  // namespace
}  // namespace fairlead::durable::testing
