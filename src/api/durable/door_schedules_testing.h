#pragma once

#include <string>
#include <vector>

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {

using ::testing::ElementsAre;

// Schedules on a clock that the test moves. It begins at 2023-11-14T22:13:20Z.
class Schedules : public ::testing::Test {
 protected:
  static json::object action(json::object more = {}) {
    more["workflow_type"] = "greeter";
    more["task_queue"] = "q";
    return more;
  }
  AnswerPtr create(const std::string& id, json::object spec, json::object more = {}) {
    more["schedule_id"] = id;
    more["spec"] = std::move(spec);
    if (!more.contains("action")) more["action"] = action();
    return world.ask("POST", "/api/schedules", std::move(more));
  }
  static json::object every(const char* duration) {
    return {{"intervals", json::array{json::object{{"every", duration}}}}};
  }
  AnswerPtr post(const std::string& id, const std::string& verb, json::object body = {}) {
    return world.ask("POST", "/api/schedules/" + id + "/" + verb, std::move(body));
  }
  json::object describe(const std::string& id) {
    const auto answer = world.ask("GET", "/api/schedules/" + id);
    EXPECT_EQ(answer->status(), 200) << answer->response->body;
    return answer->body;
  }
  std::vector<std::string> events(const std::string& id) {
    std::vector<std::string> types;
    const auto page = world.ask("GET", "/api/schedules/" + id + "/history?limit=500");
    EXPECT_EQ(page->status(), 200) << page->response->body;
    for (const auto& event : page->body.at("events").as_array()) {
      types.push_back(text_of(event.as_object(), "event_type"));
      const auto reason = text_of(event.at("payload").as_object(), "reason");
      if (!reason.empty()) types.back() += " " + reason;
    }
    return types;
  }
  // The workflows that are there, oldest first.
  std::vector<std::string> workflows(const std::string& status = "") {
    std::vector<std::string> ids;
    const auto page = world.ask(
        "GET", "/api/workflows?page_size=200" + (status.empty() ? "" : "&status=" + status));
    for (const auto& each : page->body.at("workflows").as_array()) {
      ids.insert(ids.begin(), text_of(each.as_object(), "workflow_id"));
    }
    return ids;
  }
  void finish_one() { world.turn({json::object{{"type", "complete_workflow"}}}); }

  World world{open_door()};
};

}  // namespace fairlead::durable::testing
