#include "api/temporal/callbacks.h"

#include <map>

#include "api/temporal/codec.h"
#include "api/temporal/proto_testing.h"
#include "gtest/gtest.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {
namespace {

using temporal::api::common::v1::Callback;
using temporal::api::common::v1::Payload;
using temporal::api::history::v1::History;
using Kind = history::CallbackOutcome::Kind;

std::string refusal_of(const CallbackAddresses& allowed, const std::string& url) {
  return std::string(allowed.check(url).message());
}

// Whoever may start a workflow could otherwise send the server anywhere.
TEST(CallbackAddresses, NothingIsAllowedUnlessAnOperatorSaysSo) {
  const CallbackAddresses nothing;
  EXPECT_EQ(refusal_of(nothing, "https://example.com/x"),
            "invalid url: url does not match any configured callback address: "
            "https://example.com/x");
  EXPECT_EQ(refusal_of(nothing, "ftp://example.com"),
            "invalid url: unknown scheme: ftp://example.com");
  EXPECT_EQ(refusal_of(nothing, ""), "invalid url: unknown scheme: ");
  EXPECT_EQ(refusal_of(nothing, "http:///x"), "invalid url: missing host");
}

TEST(CallbackAddresses, AreHostsAndPortsWithStars) {
  const auto allowed = *CallbackAddresses::parse("*.example.com, localhost:*,https://a.*.b:443");
  EXPECT_EQ(refusal_of(allowed, "https://x.example.com/path?q=1#f"), "");
  EXPECT_EQ(refusal_of(allowed, "HTTPS://x.example.com"), "");
  EXPECT_EQ(refusal_of(allowed, "https://localhost:8080"), "");
  EXPECT_EQ(refusal_of(allowed, "https://a.1.2.b:443/"), "");
  for (const char* url : {"https://example.com", "https://x.example.com:444", "https://localhost",
                          "https://a.b:443", "https://evil.com/.example.com",
                          "https://evil.com?x.example.com", "https://evil.com#x.example.com"}) {
    EXPECT_NE(refusal_of(allowed, url), "") << url;
  }
}

TEST(CallbackAddresses, TlsIsNeededUnlessTheAddressSaysOtherwise) {
  const auto allowed = *CallbackAddresses::parse("a:1 http://b:1");
  EXPECT_EQ(refusal_of(allowed, "http://a:1/x"),
            "invalid url: callback address does not allow insecure connections: http://a:1/x");
  EXPECT_EQ(refusal_of(allowed, "https://a:1"), "");
  EXPECT_EQ(refusal_of(allowed, "http://b:1"), "");
  EXPECT_EQ(refusal_of(allowed, "https://b:1"), "");
}

// What reads an address must not be led elsewhere than what checked it.
TEST(CallbackAddresses, HostsThatCanBeReadInTwoWaysAreRefused) {
  const auto everything = *CallbackAddresses::parse("http://*");
  for (const char* url : {"http://user@host", "http://good\\@evil", "http://a b", "http://a%2fb",
                          "http://a\tb", "http://host/a b", "http://host/\r\nX: y"}) {
    EXPECT_NE(refusal_of(everything, url), "") << url;
  }
}

TEST(CallbackAddresses, WhatIsNoAddressIsNamed) {
  EXPECT_FALSE(CallbackAddresses::parse("http://").ok());
  EXPECT_FALSE(CallbackAddresses::parse("a, b/c").ok());
  EXPECT_TRUE(CallbackAddresses::parse("").ok());
}

class ReadCallbacks : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<std::string>> read() {
    return read_callbacks(callbacks, *CallbackAddresses::parse("*"), limits);
  }
  std::string refusal() { return std::string(read().status().message()); }
  Callback::Nexus& add(const std::string& url) {
    auto& nexus = *callbacks.Add()->mutable_nexus();
    nexus.set_url(url);
    return nexus;
  }

  google::protobuf::RepeatedPtrField<Callback> callbacks;
  history::Limits limits;
};

TEST_F(ReadCallbacks, HeadersAreKeptInSmallLetters) {
  (*add("https://a").mutable_header())["Token"] = "T";
  const auto read_back = read();
  ASSERT_TRUE(read_back.ok()) << read_back.status();
  expect_same(parse<Callback>(read_back->at(0)), from_text<Callback>(R"(
      nexus { url: "https://a" header { key: "token" value: "T" } })"));
}

TEST_F(ReadCallbacks, HaveLimits) {
  add("https://" + std::string(1000, 'a'));
  EXPECT_EQ(refusal(), "invalid url: url length longer than max length allowed of 1000");
  callbacks.Clear();
  (*add("https://a").mutable_header())["h"] = std::string(8192, 'v');
  EXPECT_EQ(refusal(), "invalid header: header size longer than max allowed size of 8192");
  callbacks.Clear();
  limits.callbacks = 1;
  add("https://a");
  add("https://a");
  EXPECT_EQ(refusal(), "cannot attach more than 1 callbacks to an execution");
}

// A line break in a header would be a header of somebody else's making.
TEST_F(ReadCallbacks, HeadersHoldNoControlCharacters) {
  (*add("https://a").mutable_header())["h"] = "v\r\nx: y";
  EXPECT_FALSE(read().ok());
  callbacks.Clear();
  (*add("https://a").mutable_header())["h:x"] = "v";
  EXPECT_FALSE(read().ok());
}

TEST_F(ReadCallbacks, WhatIsNotBuiltSaysSo) {
  callbacks.Add();
  EXPECT_TRUE(absl::IsUnimplemented(read().status()));
  callbacks.Clear();
  add("temporal://system");
  EXPECT_TRUE(absl::IsUnimplemented(read().status()));
}

TEST(JudgeCallback, WhatCannotSucceedIsNotTriedAgain) {
  EXPECT_EQ(judge({200}).kind, Kind::kDelivered);
  EXPECT_EQ(judge({204}).kind, Kind::kDelivered);
  for (const int status : {400, 401, 403, 404, 409, 501}) {
    EXPECT_EQ(judge({status}).kind, Kind::kRefused) << status;
    EXPECT_EQ(judge({status, "", "true"}).kind, Kind::kFailed) << status;
  }
  for (const int status : {408, 429, 500, 503, 520}) {
    EXPECT_EQ(judge({status}).kind, Kind::kFailed) << status;
    EXPECT_EQ(judge({status, "", "False"}).kind, Kind::kRefused) << status;
  }
  EXPECT_EQ(judge({404}).failure, "handler error (NOT_FOUND)");
  // Nobody knows what these mean, so they may pass.
  EXPECT_EQ(judge({302, "Found"}).kind, Kind::kFailed);
  EXPECT_EQ(judge({302, "Found"}).failure, "unexpected response status: \"302 Found\"");
}

class CallBack : public ::testing::Test {
 protected:
  CallBack() {
    run.set_workflow_id("order 1/2");
    run.set_run_id("run-1");
    run.set_start_ns(1'700'000'000 * kSecond);
    run.set_close_ns(1'700'000'060 * kSecond + 120 * kMillisecond);
    callback.set_door(bytes_of<Callback>(R"(
        nexus { url: "https://ear/x" header { key: "token" value: "T" } })"));
    callback.set_request_id("r 1");
  }

  void call(const std::string& closing) {
    const auto history = bytes_of<History>("events { " + closing + " }");
    const auto request = TemporalCodec().call_back({run, "default", history, callback});
    EXPECT_EQ(request.url, "https://ear/x");
    headers = {request.headers.begin(), request.headers.end()};
    body = request.body;
  }

  model::RunState run;
  model::CallbackState callback;
  std::map<std::string, std::string> headers;
  std::string body;
};

TEST_F(CallBack, AResultIsTheBody) {
  call(R"(workflow_execution_completed_event_attributes { result { payloads {
      metadata { key: "encoding" value: "json/plain" } data: "\"done\"" } } })");
  EXPECT_EQ(body, "\"done\"");
  EXPECT_EQ(headers, (std::map<std::string, std::string>{
                         {"content-type", "application/json"},
                         {"nexus-operation-state", "succeeded"},
                         {"nexus-operation-start-time", "Tue, 14 Nov 2023 22:13:20 GMT"},
                         {"nexus-operation-close-time", "2023-11-14T22:14:20.120Z"},
                         {"nexus-link",
                          "<temporal:///namespaces/default/workflows/order%201%2F2/run-1/history?"
                          "eventID=1&eventType=WorkflowExecutionStarted&referenceType="
                          "EventReference>; type=\"temporal.api.common.v1.Link.WorkflowEvent\""},
                         {"token", "T"},
                         {"user-agent", "fairlead"}}));
}

TEST_F(CallBack, NoResultIsNoBody) {
  run.set_close_ns(1'700'000'060 * kSecond);
  call("workflow_execution_completed_event_attributes {}");
  EXPECT_EQ(body, "");
  EXPECT_FALSE(headers.contains("content-type"));
  EXPECT_EQ(headers["nexus-operation-close-time"], "2023-11-14T22:14:20Z");
}

TEST_F(CallBack, APayloadThatHttpHasNoNameForIsSentAsItIs) {
  call(R"(workflow_execution_completed_event_attributes { result { payloads {
      metadata { key: "encoding" value: "binary/encrypted" } data: "x" } } })");
  EXPECT_EQ(headers["content-type"], "application/x-temporal-payload");
  EXPECT_EQ(parse<Payload>(body).data(), "x");
  call(R"(workflow_execution_completed_event_attributes { result { payloads {
      metadata { key: "encoding" value: "binary/protobuf" }
      metadata { key: "messageType" value: "my.Type" } data: "x" } } })");
  EXPECT_EQ(headers["content-type"], "application/x-protobuf; message-type=\"my.Type\"");
  EXPECT_EQ(body, "x");
}

TEST_F(CallBack, AFailureKeepsWhatOnlyWeUnderstandInItsDetails) {
  call(R"(workflow_execution_failed_event_attributes { failure {
      message: "no \"money\"" application_failure_info { type: "Broke" }
      cause { message: "why" } } })");
  EXPECT_EQ(headers["nexus-operation-state"], "failed");
  EXPECT_EQ(headers["content-type"], "application/json");
  EXPECT_EQ(body,
            R"({"message":"no \"money\"","metadata":{"type":"temporal.api.failure.v1.Failure"},)"
            R"("details":{"cause":{"message":"why"},"applicationFailureInfo":{"type":"Broke"}},)"
            R"("cause":{"message":"why","metadata":{"type":"temporal.api.failure.v1.Failure"},)"
            R"("details":{}}})");
}

// A callback may go to anybody: what an operator wrote is not for them.
TEST_F(CallBack, NobodyIsToldWhyAWorkflowWasTerminated) {
  call(R"(workflow_execution_terminated_event_attributes { reason: "secret" })");
  EXPECT_EQ(headers["nexus-operation-state"], "failed");
  EXPECT_EQ(body.find("secret"), std::string::npos);
  EXPECT_NE(body.find("operation terminated"), std::string::npos);
  call("workflow_execution_canceled_event_attributes {}");
  EXPECT_EQ(headers["nexus-operation-state"], "canceled");
  call("workflow_execution_timed_out_event_attributes {}");
  EXPECT_EQ(headers["nexus-operation-state"], "failed");
}

TEST_F(CallBack, OneThatWasAttachedNamesTheRequestThatBroughtIt) {
  callback.set_attached(true);
  call("workflow_execution_completed_event_attributes {}");
  EXPECT_EQ(headers["nexus-link"],
            "<temporal:///namespaces/default/workflows/order%201%2F2/run-1/history?"
            "eventType=WorkflowExecutionOptionsUpdated&referenceType=RequestIdReference&"
            "requestID=r%201>; type=\"temporal.api.common.v1.Link.WorkflowEvent\"");
}

}  // namespace
}  // namespace fairlead::api
