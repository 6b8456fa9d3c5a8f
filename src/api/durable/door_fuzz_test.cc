#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "api/durable/call.h"
#include "api/durable/door_testing.h"
#include "api/durable/names.h"
#include "base/random.h"

// Whatever arrives at the door, the server stands, and each request gets one answer: JSON, with a
// status that the API's description has for the route, and never an error of the server's own.
// Requests are grown from that description, so that they get past the first checks and deep into
// the handlers; then some are damaged.
namespace fairlead::durable::testing {
namespace {

constexpr int64_t kNumbers[] = {0,  1,          2,       3,         -1,        60,
                                61, 2147483647, 1 << 31, INT64_MAX, INT64_MIN, 86'400'000'000};

class Grower {
 public:
  Grower(Random& random, const json::object& api) : random_(random), api_(api) {}

  // What the run has taught: ids of tasks, runs and workers that exist.
  void learn(const std::string& word) {
    if (!word.empty() && words_.size() < 4000) words_.push_back(word);
  }

  json::value grow(const json::value& schema, int depth = 0) {
    // Sometimes what is wrong must look like something else entirely.
    if (depth > 10 || random_.chance(0.03)) return anything(0);
    const auto& object = schema.as_object();
    if (const auto* ref = object.if_contains("$ref")) {
      const auto* found = find(to_std(ref->as_string()).substr(1));
      return found == nullptr ? anything(depth) : grow(*found, depth + 1);
    }
    if (const auto* all = object.if_contains("allOf")) {
      json::object merged;
      for (const auto& part : all->as_array()) {
        auto value = grow(part, depth + 1);
        if (!value.is_object()) continue;
        for (auto& entry : value.as_object()) merged[entry.key()] = std::move(entry.value());
      }
      return merged;
    }
    if (const auto* any = object.if_contains("anyOf")) {
      return grow(any->as_array()[random_.below(any->as_array().size())], depth + 1);
    }
    if (const auto* values = object.if_contains("enum")) {
      return values->as_array()[random_.below(values->as_array().size())];
    }
    if (const auto* value = object.if_contains("const")) return *value;
    return grow_type(object, depth);
  }

  std::string word() {
    if (random_.chance(0.02)) return std::string(random_.below(600), 'w');
    return words_[random_.below(words_.size())];
  }

  json::value anything(int depth) {
    switch (random_.below(depth > 3 ? 6 : 8)) {
      case 0:
        return nullptr;
      case 1:
        return random_.chance(0.5);
      case 2:
        return number();
      case 3:
        return static_cast<double>(number()) / 3;
      case 4:
        return 1e300;
      case 5:
        return json::value(word());
      case 6: {
        json::array array;
        for (uint64_t i = random_.below(3); i > 0; --i) array.push_back(anything(depth + 1));
        return array;
      }
      default: {
        json::object object;
        for (uint64_t i = random_.below(3); i > 0; --i) object[word()] = anything(depth + 1);
        return object;
      }
    }
  }

 private:
  const json::value* find(const std::string& pointer) {
    const json::value* at = nullptr;
    const json::object* object = &api_;
    const std::vector<std::string> parts = absl::StrSplit(pointer.substr(1), '/');
    for (const auto& part : parts) {
      at = object->if_contains(part);
      if (at == nullptr || !at->is_object()) return at;
      object = &at->as_object();
    }
    return at;
  }

  json::value grow_type(const json::object& schema, int depth) {
    const auto* type = schema.if_contains("type");
    std::string name = type == nullptr       ? ""
                       : type->is_string()   ? to_std(type->as_string())
                       : random_.chance(0.9) ? to_std(type->as_array()[0].as_string())
                                             : "null";
    if (name == "null") return nullptr;
    if (name == "string") return json::value(word());
    if (name == "boolean") return random_.chance(0.5);
    if (name == "integer") return number();
    if (name == "number") return static_cast<double>(number()) / 7;
    if (name == "array") {
      json::array array;
      const auto* items = schema.if_contains("items");
      for (uint64_t i = random_.below(4); i > 0; --i) {
        array.push_back(items == nullptr ? anything(depth + 1) : grow(*items, depth + 1));
      }
      return array;
    }
    if (name != "object") return anything(depth);
    json::object object;
    std::set<std::string> required;
    if (const auto* names = schema.if_contains("required")) {
      for (const auto& each : names->as_array()) required.insert(to_std(each.as_string()));
    }
    if (const auto* properties = schema.if_contains("properties")) {
      for (const auto& entry : properties->as_object()) {
        const bool is_needed = required.contains(to_std(entry.key()));
        if (!random_.chance(is_needed ? 0.97 : 0.3)) continue;
        object[entry.key()] = grow(entry.value(), depth + 1);
      }
    } else {
      return random_.chance(0.5) ? anything(depth + 1) : json::value(json::object());
    }
    return object;
  }

  int64_t number() {
    if (random_.chance(0.1)) return static_cast<int64_t>(random_.next());
    if (random_.chance(0.5)) return static_cast<int64_t>(random_.below(5));
    return kNumbers[random_.below(std::size(kNumbers))];
  }

  Random& random_;
  const json::object& api_;
  std::vector<std::string> words_ = {"",
                                     "q",
                                     "w1",
                                     "w1",
                                     "order-1",
                                     "greeter",
                                     "avro",
                                     "wwHioz3/VYAiNwwA",
                                     "wwHioz3/VYAiNwA=",
                                     "wwHioz3/VYAi",
                                     "MA==",
                                     "a/b",
                                     "%2F",
                                     "%",
                                     "\"",
                                     "\\",
                                     "\xc3\xa9",
                                     "\n",
                                     "default",
                                     "acme",
                                     std::string("\0", 1),
                                     "wt.1.x.y",
                                     "complete_workflow",
                                     "schedule_activity",
                                     "start_timer"};
};

void damage(Random& random, std::string* bytes) {
  if (bytes->empty()) return;
  if (random.chance(0.3)) bytes->resize(random.below(bytes->size()));
  for (uint64_t i = random.below(4); i > 0 && !bytes->empty(); --i) {
    (*bytes)[random.below(bytes->size())] = static_cast<char>(random.next());
  }
}

std::string noise(Random& random, size_t bytes_max) {
  std::string bytes(random.below(bytes_max), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

// "%41" for what a path cannot hold as it is.
std::string encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && std::string_view("/?%#").find(c) == std::string_view::npos) {
      out.push_back(c);
    } else {
      absl::StrAppend(&out, "%", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return out;
}

class Fuzzer {
 public:
  explicit Fuzzer(uint64_t seed)
      : random_(seed), api_(object_of(Door::openapi("1"))), grower_(random_, api_) {
    for (const auto& path : api_.at("paths").as_object()) {
      for (const auto& method : path.value().as_object()) {
        routes_.push_back({to_std(path.key()), absl::AsciiStrToUpper(to_std(method.key())),
                           &method.value().as_object()});
      }
    }
    world_.register_worker();
    world_.start();
  }

  void step() {
    const auto& route = routes_[random_.below(routes_.size())];
    auto request = std::make_shared<Request>();
    request->method = random_.chance(0.02) ? "PATCH" : route.method;
    const std::vector<std::string> parts = absl::StrSplit(route.path.substr(1), '/');
    for (const auto& part : parts) {
      const bool is_variable = part.starts_with('{');
      absl::StrAppend(&request->path, "/", is_variable ? encoded(grower_.word()) : part);
    }
    if (random_.chance(0.03)) damage(random_, &request->path);
    // Nothing could be asked of a world without it.
    const bool ends_all = request->method == "DELETE" && request->path == "/api/namespaces/default";
    if (ends_all) return;
    if (random_.chance(0.3)) {
      request->query =
          absl::StrCat("page_size=", grower_.word(), "&next_page_token=", encoded(grower_.word()),
                       "&status=", grower_.word());
    }
    if (random_.chance(0.05)) request->query = noise(random_, 40);
    if (const auto* body = route.about->if_contains("requestBody")) {
      const auto& schema = body->at("content").at("application/json").at("schema");
      request->body = json::serialize(grower_.grow(schema));
      if (random_.chance(0.1)) damage(random_, &request->body);
      if (random_.chance(0.01)) request->body = noise(random_, 200);
    }
    add_headers(request.get());
    send(std::move(request));
  }

  int refused() const { return refused_; }
  int done() const { return done_; }
  World& world() { return world_; }

 private:
  struct Route {
    std::string path;
    std::string method;
    const json::object* about;
  };

  void add_headers(Request* request) {
    const auto add = [&](const char* name, std::string value) {
      if (random_.chance(0.02)) damage(random_, &value);
      if (random_.chance(0.01)) value = noise(random_, 30);
      if (!random_.chance(0.02)) request->headers.emplace_back(name, std::move(value));
    };
    add("Content-Type", "application/json");
    add("X-Durable-Workflow-Control-Plane-Version", "2");
    add("X-Durable-Workflow-Protocol-Version", "1.20");
    add("X-Namespace", "default");
    if (random_.chance(0.1)) add("Authorization", noise(random_, 40));
    if (random_.chance(0.1)) add("Accept-Encoding", "gzip;q=0.5, deflate");
    if (random_.chance(0.05)) {
      if (random_.chance(0.7)) request->body = gzipped(request->body);
      if (random_.chance(0.3)) damage(random_, &request->body);
      add("Content-Encoding", "gzip");
    }
  }

  void send(std::shared_ptr<const Request> request) {
    const auto answer = world_.send(request);
    // Those that wait may wait: for as long as they ask, or until their client hangs up.
    if (!answer->is_there()) {
      if (random_.chance(0.3)) return world_.hang_up();
      world_.advance(61 * kSecond);
      world_.ask("POST", "/api/worker/heartbeat", {{"worker_id", "w1"}});
      if (!answer->is_there()) world_.advance(3600 * kSecond);
    }
    ASSERT_TRUE(answer->is_there()) << request->method << " " << request->path;
    ASSERT_TRUE(answer->status() < 500 || answer->status() == 501 || answer->status() == 504)
        << request->method << " " << request->path << " " << request->body << ": "
        << answer->response->body;
    if (answer->status() >= 400) {
      ++refused_;
      ASSERT_FALSE(answer->text("reason").empty()) << answer->response->body;
      ASSERT_FALSE(answer->text("message").empty()) << answer->response->body;
      return;
    }
    ++done_;
    for (const char* name : {"run_id", "workflow_id", "next_page_token"}) {
      grower_.learn(answer->text(name));
    }
    const auto* task = member(answer->body, "task");
    if (task == nullptr || !task->is_object()) return;
    for (const char* name : {"task_id", "activity_attempt_id", "query_task_id"}) {
      grower_.learn(text_of(task->as_object(), name));
    }
  }

  Random random_;
  const json::object api_;
  Grower grower_;
  World world_{open_door()};
  std::vector<Route> routes_;
  int refused_ = 0;
  int done_ = 0;
};

TEST(DoorFuzz, GrownAndDamagedRequestsAreAnsweredOnce) {
  int done = 0;
  int refused = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Fuzzer fuzzer(seed);
    for (int i = 0; i < 4000; ++i) {
      fuzzer.step();
      if (::testing::Test::HasFailure()) return;
    }
    done += fuzzer.done();
    refused += fuzzer.refused();
    EXPECT_EQ(fuzzer.world().ask("GET", "/api/health")->text("status"), "serving");
  }
  // Random requests that never get through would prove little.
  EXPECT_GT(done, 2000);
  EXPECT_GT(refused, 2000);
}

// Parsers alone, where no route is in the way: whatever is read is written again as it was read.
TEST(DoorFuzz, WhatIsReadCanBeWritten) {
  Random random(7);
  const auto api = object_of(Door::openapi("1"));
  Grower grower(random, api);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = json::serialize(grower.anything(0));
    if (random.chance(0.7)) damage(random, &text);
    const auto value = parse_json(text);
    if (!value.has_value()) continue;
    ++read;
    const std::string again = json::serialize(*value);
    const auto twice = parse_json(again);
    ASSERT_TRUE(twice.has_value()) << again;
    ASSERT_EQ(json::serialize(*twice), again);
    const auto blob = to_blob(*value);
    if (!blob.ok()) continue;
    const auto bytes = value_of_blob(*blob);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_TRUE(from_value(*bytes).ok());
  }
  EXPECT_GT(read, 2000);
}

TEST(DoorFuzz, NoiseIsNoPayload) {
  Random random(11);
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes("\xC3\x01\xE2\xA3\x3D\xFF\x55\x80\x22\x37", 10);
    bytes += noise(random, 40);
    if (random.chance(0.2)) damage(random, &bytes);
    const auto value = value_of_blob(absl::Base64Escape(bytes));
    // What the door lets in must be what it can show.
    if (value.ok()) (void)from_value(*value);
    (void)percent_decoded(bytes);
    (void)TaskName::parse(bytes);
  }
}

}  // namespace
}  // namespace fairlead::durable::testing
