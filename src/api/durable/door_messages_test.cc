// Messages of streams that workflow code reads.

#include "api/durable/door_testing.h"

namespace fairlead::durable::testing {
namespace {

AnswerPtr append(World& world, json::object body, const std::string& stream = "orders") {
  return world.ask("POST", "/api/workflows/order-1/message-streams/" + stream + "/messages",
                   std::move(body));
}

TEST(Messages, AreSignalsThatTheSdkKnowsInOrderAndOnce) {
  World world{open_door()};
  const auto run = world.start()->text("run_id");
  const auto first = append(world, {{"message_id", "a"}, {"input", json::array{1}}});
  ASSERT_EQ(first->status(), 202) << first->response->body;
  const auto second = append(world, {{"message_id", "b"}});
  EXPECT_GT(*integer_of(second->body, "position"), *integer_of(first->body, "position"));
  world.restart();
  const auto again = append(world, {{"message_id", "a"}, {"input", json::array{1}}});
  EXPECT_EQ(again->body.at("position"), first->body.at("position"));

  const auto events = world.history("order-1", run);
  ASSERT_EQ(events.size(), 4u) << "started, and one of each message";
  const auto& payload = events[2].as_object().at("payload").as_object();
  EXPECT_EQ(text_of(payload, "signal_name"), "__durable_workflow_message_stream");
  const auto blob = text_of(payload.at("arguments").as_object(), "blob");
  const auto arguments = from_value(*value_of_blob(blob));
  const auto& message = arguments->as_array()[0].as_object();
  EXPECT_EQ(text_of(message, "stream_name"), "orders");
  EXPECT_EQ(text_of(message, "message_id"), "a");
  EXPECT_EQ(message.at("position"), first->body.at("position"));
  const auto inner = text_of(message.at("payload_envelope").as_object(), "blob");
  EXPECT_EQ(*from_value(*value_of_blob(inner)), json::value(json::array{1}));
}

TEST(Messages, AreRefusedIfTheyAreNotWhatTheySeem) {
  World world{open_door()};
  world.start();
  append(world, {{"message_id", "a"}, {"input", json::array{1}}});
  EXPECT_EQ(append(world, {{"message_id", "a"}, {"input", json::array{2}}})->text("reason"),
            "request_id_conflict");
  EXPECT_EQ(append(world, {{"input", json::array{2}}})->status(), 422);
  EXPECT_EQ(append(world, {{"message_id", std::string(201, 'x')}})->status(), 422);
  EXPECT_EQ(append(world, {{"message_id", "c"}}, "no%20blanks")->status(), 422);
  EXPECT_EQ(append(world, {{"message_id", "c"}, {"input", 5}})->status(), 422);
  world.ask("POST", "/api/workflows/order-1/terminate");
  EXPECT_EQ(append(world, {{"message_id", "c"}})->text("reason"), "run_not_active");
  EXPECT_EQ(append(world, {{"message_id", "a"}, {"input", json::array{1}}})->status(), 202)
      << "what was taken was taken";
}

}  // namespace
}  // namespace fairlead::durable::testing
