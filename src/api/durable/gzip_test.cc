#include "api/durable/gzip.h"

#include "api/durable/door_testing.h"
#include "base/random.h"
#include "base/sha256.h"

namespace fairlead::durable::testing {
namespace {

TEST(Gzip, ComesBackAsItWas) {
  Random random(3);
  for (const size_t size : {0, 1, 100, 65'535, 65'536, 65'537, 300'000}) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random.below(size % 2 == 0 ? 256 : 2));
    const auto back = gunzipped(gzipped(text), 300'000);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, text);
  }
}

TEST(Gzip, PromisesOfTooMuchAreRefused) {
  const std::string bomb = gzipped(std::string(100 << 20, ' '));
  EXPECT_LT(bomb.size(), size_t{1} << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(gunzipped(bomb, 2 << 20).status()));
}

TEST(Gzip, DamageIsFound) {
  const std::string packed = gzipped("{\"workflow_type\":\"greeter\"}");
  for (size_t i = 0; i < packed.size(); ++i) {
    EXPECT_FALSE(gunzipped(packed.substr(0, i), 1000).ok()) << i;
  }
  EXPECT_FALSE(gunzipped(packed + "more", 1000).ok());
  EXPECT_FALSE(gunzipped("{}", 1000).ok());
}

TEST(Gzip, IsTakenWhenItIsAcceptable) {
  for (const char* fine : {"gzip", "deflate, gzip", "GZIP;q=0.5", "*", "br, gzip ; q=1"}) {
    EXPECT_TRUE(accepts_gzip(fine)) << fine;
  }
  for (const char* wrong : {"", "deflate", "gzip;q=0", "identity", "gzip;q=x"}) {
    EXPECT_FALSE(accepts_gzip(wrong)) << wrong;
  }
}

std::shared_ptr<Request> request_of(const char* method, const char* path) {
  auto request = std::make_shared<Request>();
  request->method = method;
  request->path = path;
  request->headers = {{"Content-Type", "application/json"},
                      {"X-Durable-Workflow-Control-Plane-Version", "2"}};
  return request;
}

std::string encoding_of(const Answer& answer) {
  for (const auto& [name, value] : answer.response->headers) {
    if (name == "Content-Encoding") return value;
  }
  return "";
}

TEST(DoorGzip, LargeAnswersArePackedForWhoAcceptsIt) {
  World world(open_door());
  const auto ask = [&](const char* path, const char* accepted) {
    auto request = request_of("GET", path);
    request->headers.emplace_back("Accept-Encoding", accepted);
    return world.send(std::move(request));
  };
  EXPECT_EQ(encoding_of(*ask("/api/openapi.json", "gzip, deflate")), "gzip");
  EXPECT_EQ(ask("/api/openapi.json", "gzip")->text("openapi"), "3.1.0");
  EXPECT_EQ(encoding_of(*ask("/api/openapi.json", "br")), "");
  EXPECT_EQ(encoding_of(*ask("/api/health", "gzip")), "") << "a few bytes are not worth it";
  Options options = open_door();
  options.compression_enabled = "false";
  World plain(options);
  auto request = request_of("GET", "/api/openapi.json");
  request->headers.emplace_back("Accept-Encoding", "gzip");
  EXPECT_EQ(encoding_of(*plain.send(std::move(request))), "");
}

TEST(DoorGzip, PackedRequestsAreReadWithinTheSameLimit) {
  World world(open_door());
  const auto send = [&](std::string body, const char* encoding) {
    auto request = request_of("POST", "/api/workflows");
    request->headers.emplace_back("Content-Encoding", encoding);
    request->body = std::move(body);
    return world.send(std::move(request));
  };
  EXPECT_EQ(send(gzipped(R"({"workflow_type":"greeter"})"), "gzip")->status(), 201);
  EXPECT_EQ(send(R"({"workflow_type":"greeter"})", "identity")->status(), 201);
  EXPECT_EQ(send(gzipped(std::string(3 << 20, ' ')), "gzip")->text("reason"), "payload_too_large");
  EXPECT_EQ(send("{}", "gzip")->text("reason"), "malformed_encoding");
  EXPECT_EQ(send("{}", "br")->text("reason"), "unsupported_content_encoding");
}

// ---- signatures
// ----------------------------------------------------------------------------------

Options signed_door() {
  Options options;
  options.auth_driver = "signature";
  options.worker_signature_key = "work";
  options.admin_signature_key = "rule";
  return options;
}

TEST(DoorSignature, OpensForTheKeyOfARole) {
  World world(signed_door());
  const auto send = [&](const char* key, const char* path, const char* signature = nullptr) {
    auto request = request_of("POST", path);
    request->headers.emplace_back("X-Durable-Workflow-Protocol-Version", "1.20");
    request->body = R"({"workflow_type":"greeter"})";
    request->headers.emplace_back(
        "X-Signature", signature != nullptr ? signature : hmac_sha256_hex(key, request->body));
    return world.send(std::move(request));
  };
  EXPECT_EQ(send("rule", "/api/workflows")->status(), 201);
  EXPECT_EQ(send("work", "/api/workflows")->text("reason"), "forbidden");
  EXPECT_EQ(send("work", "/api/worker/heartbeat")->status(), 422);
  EXPECT_EQ(send("guess", "/api/workflows")->text("reason"), "unauthorized");
  EXPECT_EQ(send("", "/api/workflows")->text("reason"), "unauthorized") << "no key is no key";
  EXPECT_EQ(send("rule", "/api/workflows", "")->text("reason"), "unauthorized");
  EXPECT_EQ(send("rule", "/api/workflows", hmac_sha256_hex("rule", "{}").c_str())->text("reason"),
            "unauthorized")
      << "the signature of another body";
}

TEST(DoorSignature, TokensDoNotOpenIt) {
  Options options = signed_door();
  options.auth_token = "secret";
  World world(options);
  EXPECT_EQ(
      world.ask("GET", "/api/cluster/info", {}, {{"Authorization", "Bearer secret"}})->status(),
      401);
  Options bare;
  bare.auth_driver = "signature";
  bare.auth_token = "secret";
  World unset(bare);
  EXPECT_EQ(unset.ask("GET", "/api/cluster/info")->status(), 500);
}

TEST(DoorSignature, OneKeyOpensEverything) {
  Options options;
  options.auth_driver = "signature";
  options.signature_key = "shared";
  World world(options);
  EXPECT_EQ(
      world.ask("GET", "/api/cluster/info", {}, {{"X-Signature", hmac_sha256_hex("shared", "")}})
          ->status(),
      200);
}

}  // namespace
}  // namespace fairlead::durable::testing
