// Events of webhooks that start, signal and update workflows.

#include "api/durable/door_testing.h"

namespace fairlead::durable::testing {
namespace {

AnswerPtr send(World& world, json::object body, const std::string& adapter = "stripe") {
  return world.ask("POST", "/api/bridge-adapters/webhook/" + adapter, std::move(body));
}

json::object starting(json::object target = {{"workflow_type", "order"},
                                             {"task_queue", "orders"}}) {
  return {{"action", "start_workflow"},
          {"idempotency_key", "event-1"},
          {"target", std::move(target)},
          {"input", {{"order", 7}}}};
}

json::object telling(const char* action, const char* field, const char* name, json::array input) {
  return {{"action", action},
          {"idempotency_key", "event-2"},
          {"target", {{"workflow_id", "order-1"}, {field, name}}},
          {"input", std::move(input)}};
}

size_t count_events(World& world, const std::string& run, const std::string& type) {
  size_t found = 0;
  for (const auto& event : world.history("order-1", run)) {
    if (text_of(event.as_object(), "event_type") == type) ++found;
  }
  return found;
}

TEST(Bridge, StartsAWorkflowOnceForEachEvent) {
  World world{open_door()};
  auto event = starting();
  event["correlation"] = {{"provider", "stripe"}};
  const auto first = send(world, event);
  ASSERT_EQ(first->status(), 202) << first->response->body;
  EXPECT_EQ(first->text("schema"), "durable-workflow.v2.bridge-adapter-outcome.contract");
  EXPECT_EQ(first->text("outcome"), "accepted");
  EXPECT_EQ(first->body.at("accepted"), json::value(true));
  EXPECT_EQ(first->text("control_plane_outcome"), "started_new");
  EXPECT_EQ(first->text("workflow_type"), "order");
  EXPECT_EQ(first->body.at("correlation"), event["correlation"]);
  EXPECT_FALSE(first->body.contains("input")) << "what an event carries is not told back";
  const auto id = first->text("workflow_id");
  EXPECT_TRUE(id.starts_with("bridge-stripe-")) << id;

  world.restart();
  const auto again = send(world, event);
  ASSERT_EQ(again->status(), 200) << again->response->body;
  EXPECT_EQ(again->text("outcome"), "duplicate");
  EXPECT_EQ(again->text("reason"), "duplicate_start");
  EXPECT_EQ(again->text("control_plane_outcome"), "returned_existing_active");
  EXPECT_EQ(again->text("run_id"), first->text("run_id"));

  world.ask("POST", "/api/workflows/" + id + "/terminate");
  EXPECT_EQ(send(world, event)->text("reason"), "duplicate_start") << "also when it has ended";
  EXPECT_EQ(send(world, event, "paddle")->status(), 202) << "another adapter's key is its own";

  std::string blob;
  for (const auto& each : world.history(id, first->text("run_id"))) {
    const auto payload = object_member(each.as_object(), "payload");
    for (const char* field : {"input", "arguments"}) {
      const std::string found = text_of(object_member(payload, field), "blob");
      if (!found.empty()) blob = found;
    }
  }
  ASSERT_FALSE(blob.empty());
  const json::value argument{{"order", 7}};
  EXPECT_EQ(*from_value(*value_of_blob(blob)), json::value(json::array{argument}))
      << "an object is one argument";
}

TEST(Bridge, DoesWhatItsTargetSaysOfAnIdThatIsTaken) {
  World world{open_door()};
  world.start();
  json::object target{{"workflow_type", "order"}, {"workflow_id", "order-1"}};
  EXPECT_EQ(send(world, starting(target))->text("outcome"), "duplicate");
  target["duplicate_policy"] = "fail";
  const auto refused = send(world, starting(target));
  EXPECT_EQ(refused->status(), 422);
  EXPECT_EQ(refused->text("reason"), "instance_already_started");
  target["duplicate_policy"] = "maybe";
  EXPECT_EQ(send(world, starting(target))->text("reason"), "malformed_event");
}

TEST(Bridge, SignalsOnceWhateverTheSecondDeliveryCarries) {
  World world{open_door()};
  const auto run = world.start()->text("run_id");
  const auto first = send(world, telling("signal_workflow", "signal_name", "paid", {"Ada"}));
  ASSERT_EQ(first->status(), 202) << first->response->body;
  EXPECT_EQ(first->text("workflow_id"), "order-1");
  EXPECT_EQ(first->text("control_plane_outcome"), "signal_received");
  world.restart();
  for (const char* carried : {"Ada", "Grace"}) {
    const auto again = send(world, telling("signal_workflow", "signal_name", "paid", {carried}));
    EXPECT_EQ(again->status(), 200) << again->response->body;
    EXPECT_EQ(again->text("outcome"), "duplicate");
    EXPECT_EQ(again->text("control_plane_outcome"), "deduped_existing_command");
    EXPECT_EQ(again->text("workflow_id"), "order-1");
  }
  EXPECT_EQ(count_events(world, run, "SignalReceived"), 1u);
}

TEST(Bridge, UpdatesOnce) {
  World world{open_door()};
  const auto run = world.start()->text("run_id");
  const auto first = send(world, telling("update_workflow", "update_name", "approve", {true}));
  ASSERT_EQ(first->status(), 202) << first->response->body;
  EXPECT_EQ(first->text("outcome"), "accepted");
  for (const bool carried : {true, false}) {
    const auto again = send(world, telling("update_workflow", "update_name", "approve", {carried}));
    EXPECT_EQ(again->status(), 200) << again->response->body;
    EXPECT_EQ(again->text("outcome"), "duplicate");
    EXPECT_EQ(again->text("control_plane_outcome"), "deduped_existing_command");
  }
  EXPECT_EQ(count_events(world, run, "UpdateAccepted"), 1u);
}

TEST(Bridge, RejectsByName) {
  World world{open_door()};
  const auto rejected = [&](json::object event, const std::string& adapter = "github") {
    const auto answer = send(world, std::move(event), adapter);
    EXPECT_EQ(answer->status(), 422) << answer->response->body;
    EXPECT_EQ(answer->text("outcome"), "rejected");
    EXPECT_EQ(answer->body.at("accepted"), json::value(false));
    return answer->text("reason");
  };
  const auto signal = telling("signal_workflow", "signal_name", "paid", {});
  EXPECT_EQ(rejected(signal), "unknown_target");
  EXPECT_EQ(rejected(telling("update_workflow", "update_name", "approve", {})), "unknown_target");
  EXPECT_EQ(rejected(telling("launch_missiles", "signal_name", "paid", {})), "unsupported_action");
  EXPECT_EQ(rejected({}), "malformed_event");
  EXPECT_EQ(rejected(signal, "no%20blanks"), "malformed_event");
  auto wrong = signal;
  wrong["idempotency_key"] = std::string(256, 'x');
  EXPECT_EQ(rejected(wrong), "malformed_event");
  wrong = signal;
  wrong["correlation"] = {{"x", std::string(5000, 'x')}};
  EXPECT_EQ(rejected(wrong), "malformed_event");
  wrong = signal;
  wrong["target"] = {{"signal_name", "paid"}};
  EXPECT_EQ(rejected(wrong), "unknown_target");
  EXPECT_EQ(rejected(starting({})), "validation_failed") << "a start needs a type";

  world.start();
  EXPECT_EQ(rejected(telling("signal_workflow", "signal_name", "__durable_workflow_message_stream",
                             {json::object{{"schema", "forged"}}})),
            "runtime_reserved_signal");
  world.ask("POST", "/api/workflows/order-1/terminate");
  EXPECT_EQ(rejected(signal), "run_not_active");
}

TEST(Bridge, IsNotTheOnlyWayThatSignalsOfStreamsAreRefused) {
  World world{open_door()};
  world.start();
  const auto answer =
      world.ask("POST", "/api/workflows/order-1/signal/__durable_workflow_message_stream",
                {{"input", json::array{1}}});
  EXPECT_EQ(answer->status(), 422);
  EXPECT_EQ(answer->text("reason"), "runtime_reserved_signal");
}

TEST(Bridge, ReceiptsSayWhetherTheyWereGivenBefore) {
  World world{open_door()};
  world.start();
  const json::object body{{"request_id", "r"}, {"input", json::array{1}}};
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/signal/paid", body)->body.at("retained"),
            json::value(false));
  EXPECT_EQ(world.ask("POST", "/api/workflows/order-1/signal/paid", body)->body.at("retained"),
            json::value(true));
}

}  // namespace
}  // namespace fairlead::durable::testing
