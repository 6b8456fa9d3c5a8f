#include "api/durable/openapi.h"

#include "api/durable/door_testing.h"
#include "gmock/gmock.h"

namespace fairlead::durable::testing {
namespace {

// Every "$ref" of a document.
void collect_refs(const json::value& value, std::set<std::string>* refs) {
  if (value.is_array()) {
    for (const auto& each : value.as_array()) collect_refs(each, refs);
  }
  if (!value.is_object()) return;
  for (const auto& entry : value.as_object()) {
    if (entry.key() == "$ref") refs->insert(to_std(entry.value().as_string()));
    collect_refs(entry.value(), refs);
  }
}

TEST(OpenApi, IsServed) {
  World world(open_door());
  const auto answer = world.ask("GET", "/api/openapi.json");
  EXPECT_EQ(answer->status(), 200);
  EXPECT_EQ(answer->text("openapi"), "3.1.0");
  const auto& start = answer->body.at("paths").at("/api/workflows").at("post").as_object();
  EXPECT_TRUE(start.at("responses").as_object().contains("201"));
  EXPECT_TRUE(start.contains("requestBody"));
}

TEST(OpenApi, NamesOnlyWhatItHas) {
  const auto api = object_of(Door::openapi("1"));
  std::set<std::string> refs;
  collect_refs(api, &refs);
  std::set<std::string> used;
  for (const auto& ref : refs) {
    json::error_code failed;
    EXPECT_NE(json::value(api).find_pointer(ref.substr(1), failed), nullptr) << ref;
    used.insert(ref.substr(ref.rfind('/') + 1));
  }
  for (const auto& kind : {"schemas", "parameters"}) {
    for (const auto& entry : api.at("components").at(kind).as_object()) {
      EXPECT_TRUE(used.contains(to_std(entry.key()))) << to_std(entry.key()) << " is used nowhere";
    }
  }
}

// The description is made of the table of routes, so none can be missing from it. This is the way
// back: what it promises is there, and no other method is.
TEST(OpenApi, PromisesWhatIsServedAndNothingElse) {
  World world(open_door());
  const auto api = object_of(Door::openapi("1"));
  size_t routes = 0;
  for (const auto& entry : api.at("paths").as_object()) {
    std::string path;
    const std::vector<std::string> parts = absl::StrSplit(to_std(entry.key()).substr(1), '/');
    for (const auto& part : parts) {
      path += part.starts_with('{') ? "/x" : "/" + part;
    }
    const auto& methods = entry.value().as_object();
    for (const std::string method : {"GET", "POST", "PUT", "DELETE", "PATCH"}) {
      const auto answer = world.ask(method, path);
      ASSERT_TRUE(answer->is_there()) << method << " " << path;
      if (!methods.contains(absl::AsciiStrToLower(method))) {
        EXPECT_EQ(answer->status(), 405) << method << " " << path;
        bool has_allow = false;
        for (const auto& [name, value] : answer->response->headers) has_allow |= name == "Allow";
        EXPECT_TRUE(has_allow);
        continue;
      }
      ++routes;
      EXPECT_NE(answer->status(), 405) << method << " " << path;
      EXPECT_NE(answer->text("reason"), "not_found") << method << " " << path;
      const auto& tag = methods.at(absl::AsciiStrToLower(method)).at("tags").at(0).as_string();
      EXPECT_EQ(answer->status() == 501, tag == "not built") << method << " " << path;
    }
  }
  EXPECT_GT(routes, 50u);
}

TEST(OpenApi, NeedsACredentialLikeTheRest) {
  Options options;
  options.auth_token = "secret";
  World world(options);
  EXPECT_EQ(world.ask("GET", "/api/openapi.json")->status(), 401);
  EXPECT_EQ(
      world.ask("GET", "/api/openapi.json", {}, {{"Authorization", "Bearer secret"}})->status(),
      200);
}

}  // namespace
}  // namespace fairlead::durable::testing
