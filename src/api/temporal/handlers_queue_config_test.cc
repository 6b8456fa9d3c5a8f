#include <cmath>

#include "absl/strings/str_cat.h"
#include "api/temporal/proto_testing.h"
#include "api/temporal/service_testing.h"
#include "temporal/api/workflowservice/v1/request_response.pb.h"

namespace fairlead::api {
namespace {

using model::QueueRules;
using testing::kInvalidArgument;
using testing::kNotFound;
using testing::kNow;
using testing::kOk;
using testing::kUnimplemented;
using testing::ServiceTest;
using namespace temporal::api::workflowservice::v1;
using namespace temporal::api::enums::v1;

constexpr const char* kMethod = "UpdateTaskQueueConfig";

class QueueConfigTest : public ServiceTest {
 protected:
  static UpdateTaskQueueConfigRequest request(const std::string& text) {
    return from_text<UpdateTaskQueueConfigRequest>(
        R"(namespace: "default" identity: "me" task_queue: "q" )" + text);
  }
  static UpdateTaskQueueConfigRequest activity(const std::string& text) {
    return request("task_queue_type: TASK_QUEUE_TYPE_ACTIVITY " + text);
  }
  static UpdateTaskQueueConfigRequest valid() {
    return activity(R"(
        update_queue_rate_limit { rate_limit { requests_per_second: 500 } reason: "all" }
        update_fairness_key_rate_limit_default {
          rate_limit { requests_per_second: 33.3 } reason: "each" }
        set_fairness_weight_overrides { key: "gold" value: 5 }
        set_fairness_weight_overrides { key: "iron" value: 0.0001 }
        unset_fairness_weight_overrides: "gone")");
  }

  // What the request does to rules, where the queue lives.
  absl::Status change(const UpdateTaskQueueConfigRequest& asked, QueueRules& rules) {
    EXPECT_EQ(call(kMethod, asked)->status.code, kOk);
    return engine.rule_changes.requests.back().change(rules, kNow);
  }
  QueueRules changed(const UpdateTaskQueueConfigRequest& asked, QueueRules rules = {}) {
    EXPECT_TRUE(change(asked, rules).ok());
    return rules;
  }
};

TEST_F(QueueConfigTest, SetsLimitsAndWeightsOfOneQueue) {
  const auto rules = changed(valid(), from_text<QueueRules>(R"(
      weights { key: "gone" value: 2 } weights { key: "kept" value: 3 }
      weights { key: "gold" value: 1 } running_max: 4)"));
  const auto& queue = engine.rule_changes.requests[0].queue;
  EXPECT_EQ(queue.ns, NamespaceNum(7));
  EXPECT_EQ(queue.kind, model::ACTIVITY_TASK);
  EXPECT_EQ(queue.name, "q");
  auto expected = from_text<QueueRules>(R"(
      queue_limit { per_second: 500 reason: "all" identity: "me" }
      key_limit { reason: "each" identity: "me" }
      weights { key: "kept" value: 3 } weights { key: "gold" value: 5 }
      weights { key: "iron" value: 0.0001 } running_max: 4)");
  expected.mutable_key_limit()->set_per_second(33.3f);
  expected.mutable_queue_limit()->set_updated_ns(kNow);
  expected.mutable_key_limit()->set_updated_ns(kNow);
  expect_same(rules, expected);
}

// Each setting is changed by its own message: two operators who turn two knobs do not meet.
TEST_F(QueueConfigTest, WhatIsNotMentionedStays) {
  const auto before = changed(valid());
  auto expected = before;
  (*expected.mutable_weights())["gold"] = 9;
  expect_same(changed(activity("set_fairness_weight_overrides { key: 'gold' value: 9 }"), before),
              expected);

  expected = before;
  expected.mutable_queue_limit()->set_per_second(7);
  expected.mutable_queue_limit()->clear_reason();
  expect_same(changed(activity("update_queue_rate_limit { rate_limit { requests_per_second: 7 } }"),
                      before),
              expected);
  expect_same(changed(activity("unset_fairness_weight_overrides: 'nobody'"), before), before);
}

// Who lifted the limit, and why, is what the next operator wants to know.
TEST_F(QueueConfigTest, AnUpdateWithoutALimitRemovesItAndSaysWhoDidSo) {
  const auto rules = changed(activity(R"(
      update_queue_rate_limit { reason: "sale is over" }
      update_fairness_key_rate_limit_default {})"),
                             changed(valid()));
  EXPECT_FALSE(rules.queue_limit().has_per_second());
  EXPECT_EQ(rules.queue_limit().reason(), "sale is over");
  EXPECT_EQ(rules.queue_limit().identity(), "me");
  EXPECT_EQ(rules.queue_limit().updated_ns(), kNow);
  EXPECT_TRUE(rules.has_key_limit());
  EXPECT_FALSE(rules.key_limit().has_per_second());
  EXPECT_EQ(rules.key_limit().reason(), "");
}

TEST_F(QueueConfigTest, ZeroStopsAndInfinityIsNoLimit) {
  const auto limit_for = [&](float asked) {
    auto request = activity("update_queue_rate_limit { rate_limit {} }");
    request.mutable_update_queue_rate_limit()->mutable_rate_limit()->set_requests_per_second(asked);
    return changed(request).queue_limit();
  };
  EXPECT_TRUE(limit_for(0).has_per_second());
  EXPECT_EQ(limit_for(0).per_second(), 0);
  EXPECT_EQ(limit_for(INFINITY).per_second(), INFINITY);
  EXPECT_FALSE(std::signbit(limit_for(-0.0f).per_second())) << "an interval of -1/0 is no stop";
}

TEST_F(QueueConfigTest, AWorkflowQueueHasWeightsAndMayLoseLimits) {
  const auto rules = changed(request(R"(
      task_queue_type: TASK_QUEUE_TYPE_WORKFLOW
      update_queue_rate_limit {} update_fairness_key_rate_limit_default {}
      set_fairness_weight_overrides { key: "gold" value: 5 })"));
  EXPECT_EQ(engine.rule_changes.requests.back().queue.kind, model::WORKFLOW_TASK);
  EXPECT_EQ(rules.weights().at("gold"), 5);
  EXPECT_TRUE(rules.has_queue_limit());
}

TEST_F(QueueConfigTest, AQueueHasAThousandOverridesAndNoMore) {
  auto full = activity("");
  for (int i = 0; i < 1'000; ++i) {
    (*full.mutable_set_fairness_weight_overrides())[absl::StrCat("k", i)] = 1;
  }
  auto rules = changed(full);
  EXPECT_EQ(rules.weights().size(), 1'000u);

  // The one that goes makes room for the one that comes.
  auto swap = activity("unset_fairness_weight_overrides: 'k7'");
  (*swap.mutable_set_fairness_weight_overrides())["new"] = 2;
  rules = changed(swap, rules);
  EXPECT_EQ(rules.weights().size(), 1'000u);
  EXPECT_FALSE(rules.weights().contains("k7"));

  // All or nothing: the limit in the same request is not set either.
  const auto before = rules;
  const auto refusal = change(activity(R"(
      update_queue_rate_limit { rate_limit { requests_per_second: 1 } }
      set_fairness_weight_overrides { key: "one too many" value: 1 })"),
                              rules);
  EXPECT_EQ(refusal.message(),
            "fairness weight overrides update rejected: exceeding maximum key size");
  EXPECT_EQ(refusal.code(), absl::StatusCode::kInvalidArgument);
  expect_same(rules, before);
}

// A program that looks before it changes must not leave traces on every queue it looks at.
TEST_F(QueueConfigTest, NothingToChangeIsAQuestion) {
  engine.described_queues.result->rules = changed(valid());
  const auto response = succeed<UpdateTaskQueueConfigResponse>(kMethod, activity(""));
  EXPECT_EQ(response.config().fairness_weight_overrides().at("gold"), 5);
  EXPECT_EQ(engine.described_queues.requests.at(0).name, "q");
  EXPECT_EQ(engine.rule_changes.requests.size(), 1u) << "the question changed something";

  engine.described_queues.result = shard::QueueView{};
  expect_same(succeed<UpdateTaskQueueConfigResponse>(kMethod, activity("")),
              from_text<UpdateTaskQueueConfigResponse>("config {}"));
}

TEST_F(QueueConfigTest, AnswersWithTheWholeConfiguration) {
  engine.rule_changes.result = from_text<QueueRules>(R"(
      queue_limit { per_second: 0 reason: "stop" identity: "ada" updated_ns: 1500000000 }
      key_limit { reason: "free again" identity: "bob" updated_ns: 2000000000 }
      weights { key: "gold" value: 1e9 } weights { key: "iron" value: 0.0001 }
      pause { reason: "not the API's" })");
  expect_same(succeed<UpdateTaskQueueConfigResponse>(kMethod, valid()),
              from_text<UpdateTaskQueueConfigResponse>(R"(
      config {
        queue_rate_limit {
          rate_limit {}
          metadata { reason: "stop" update_identity: "ada"
                     update_time { seconds: 1 nanos: 500000000 } } }
        fairness_keys_rate_limit_default {
          metadata { reason: "free again" update_identity: "bob" update_time { seconds: 2 } } }
        fairness_weight_overrides { key: "gold" value: 1e9 }
        fairness_weight_overrides { key: "iron" value: 0.0001 } })"));

  // Floats in, floats out: 33.3 must not come back as 33.2999992.
  engine.rule_changes.result = changed(valid());
  const auto response = succeed<UpdateTaskQueueConfigResponse>(kMethod, valid());
  EXPECT_EQ(response.config().fairness_keys_rate_limit_default().rate_limit().requests_per_second(),
            33.3f);

  engine.rule_changes.result = errors::invalid_argument("fairness weight overrides: no");
  const auto refused = call(kMethod, valid());
  EXPECT_EQ(refused->replies, 1);
  EXPECT_EQ(refused->status.code, kInvalidArgument);
  EXPECT_EQ(refused->status.message, "fairness weight overrides: no");
}

TEST_F(QueueConfigTest, NexusQueuesHaveNoConfigurationYet) {
  auto nexus = valid();
  nexus.set_task_queue_type(TASK_QUEUE_TYPE_NEXUS);
  const auto made = call(kMethod, nexus);
  EXPECT_EQ(made->status.code, kUnimplemented);
  EXPECT_EQ(made->status.message, "Nexus task queues are not implemented by this server");
  expect_same(succeed<UpdateTaskQueueConfigResponse>(
                  kMethod, request("task_queue_type: TASK_QUEUE_TYPE_NEXUS")),
              from_text<UpdateTaskQueueConfigResponse>("config {}"));
  EXPECT_EQ(engine.asked, 0);
}

TEST_F(QueueConfigTest, RefusesABadName) {
  expect_refusals<UpdateTaskQueueConfigRequest>(
      kMethod, valid(),
      {{[](auto& r) { r.clear_namespace_(); }, kInvalidArgument, "Namespace is empty."},
       {[](auto& r) { r.set_namespace_("x"); }, kNotFound, "Namespace x is not found."},
       {[](auto& r) { r.clear_task_queue(); }, kInvalidArgument, "missing task queue name"},
       {[](auto& r) { r.set_task_queue("/_sys/q/1"); }, kInvalidArgument,
        "task queue family name cannot have prefix /_sys/ /_sys/q/1"},
       {[](auto& r) { r.set_task_queue(std::string(1001, 'q')); }, kInvalidArgument,
        "taskQueue length exceeds limit"},
       {[](auto& r) { r.clear_task_queue_type(); }, kInvalidArgument, "task queue type is not set"},
       {[](auto& r) { r.set_task_queue_type(static_cast<TaskQueueType>(4)); }, kInvalidArgument,
        "task queue type 4 is unknown; there are 1, 2 and 3"}});
}

TEST_F(QueueConfigTest, RefusesABadLimit) {
  const auto queue_limit = [](UpdateTaskQueueConfigRequest& r) -> auto& {
    return *r.mutable_update_queue_rate_limit();
  };
  const auto key_limit = [](UpdateTaskQueueConfigRequest& r) -> auto& {
    return *r.mutable_update_fairness_key_rate_limit_default();
  };
  const std::string of_queue =
      "RequestsPerSecond for UpdateQueueRateLimit rate limit must be non-negative.";
  const std::string of_keys =
      "RequestsPerSecond for UpdateFairnessKeyRateLimitDefault rate limit must be non-negative.";
  const std::string reason = ".Reason field too long (max 1000 characters).";
  expect_refusals<UpdateTaskQueueConfigRequest>(
      kMethod, valid(),
      {{[=](auto& r) { queue_limit(r).mutable_rate_limit()->set_requests_per_second(-0.1f); },
        kInvalidArgument, of_queue},
       {[=](auto& r) { queue_limit(r).mutable_rate_limit()->set_requests_per_second(NAN); },
        kInvalidArgument, of_queue},
       {[=](auto& r) { queue_limit(r).mutable_rate_limit()->set_requests_per_second(-INFINITY); },
        kInvalidArgument, of_queue},
       {[=](auto& r) { key_limit(r).mutable_rate_limit()->set_requests_per_second(-1); },
        kInvalidArgument, of_keys},
       {[=](auto& r) { key_limit(r).mutable_rate_limit()->set_requests_per_second(NAN); },
        kInvalidArgument, of_keys},
       {[](auto& r) { r.set_task_queue_type(TASK_QUEUE_TYPE_WORKFLOW); }, kInvalidArgument,
        "Setting rate limit on workflow task queues is not allowed."},
       {[](auto& r) {
          r.set_task_queue_type(TASK_QUEUE_TYPE_WORKFLOW);
          r.clear_update_queue_rate_limit();
        },
        kInvalidArgument,
        "Setting fairness key rate limit on workflow task queues is not allowed."},
       {[=](auto& r) { queue_limit(r).set_reason(std::string(1001, 'r')); }, kInvalidArgument,
        "UpdateQueueRateLimit" + reason},
       {[=](auto& r) { key_limit(r).set_reason(std::string(1001, 'r')); }, kInvalidArgument,
        "UpdateFairnessKeyRateLimitDefault" + reason},
       // Removing a limit is no way around it.
       {[=](auto& r) {
          queue_limit(r).clear_rate_limit();
          queue_limit(r).set_reason(std::string(1001, 'r'));
        },
        kInvalidArgument, "UpdateQueueRateLimit" + reason},
       {[](auto& r) { r.set_identity(std::string(1001, 'i')); }, kInvalidArgument,
        "Identity field too long (max 1000 characters)."}});
  auto longest = valid();
  longest.set_identity(std::string(1000, 'i'));
  queue_limit(longest).set_reason(std::string(1000, 'r'));
  EXPECT_EQ(call(kMethod, longest)->status.code, kOk);
}

TEST_F(QueueConfigTest, RefusesABadWeight) {
  const auto set = [](const std::string& key, float weight) {
    return [=](UpdateTaskQueueConfigRequest& r) {
      (*r.mutable_set_fairness_weight_overrides())[key] = weight;
    };
  };
  const auto unset = [](const std::string& key) {
    return [=](UpdateTaskQueueConfigRequest& r) { r.add_unset_fairness_weight_overrides(key); };
  };
  const std::string weight =
      "invalid fairness weight weight for key \"k\": must be greater than zero";
  const std::string length = "fairness key length exceeds limit";
  const std::string empty = "fairness weight override key must not be empty";
  expect_refusals<UpdateTaskQueueConfigRequest>(
      kMethod, valid(),
      {{set("k", 0), kInvalidArgument, weight},
       {set("k", -1), kInvalidArgument, weight},
       {set("k", NAN), kInvalidArgument, weight},
       {set("k", INFINITY), kInvalidArgument, weight},
       {set("\"\n", 0), kInvalidArgument,
        R"(invalid fairness weight weight for key "\"\n": must be greater than zero)"},
       {set(std::string(65, 'k'), 1), kInvalidArgument, length},
       // Bytes, not letters.
       {set("äääääääääääääääääääääääääääääääää", 1), kInvalidArgument, length},
       {unset(std::string(65, 'k')), kInvalidArgument, length},
       {set("", 1), kInvalidArgument, empty},
       {unset(""), kInvalidArgument, empty},
       {unset("gold"), kInvalidArgument,
        "fairness weight override key \"gold\" present in both set and unset lists"},
       {[](auto& r) {
          r.clear_set_fairness_weight_overrides();
          for (int i = 0; i < 1'000; ++i) {
            (*r.mutable_set_fairness_weight_overrides())[absl::StrCat("k", i)] = 1;
          }
        },
        kInvalidArgument,
        "too many fairness weight overrides in request: got 1001, maximum 1000"}});
  auto longest = valid();
  set(std::string(64, 'k'), 1)(longest);
  EXPECT_EQ(call(kMethod, longest)->status.code, kOk);
}

TEST_F(QueueConfigTest, TheUnkeyedGroupMayHaveAWeightIfItsNamespaceSaysSo) {
  auto& data = *engine.registry.rows[0]->mutable_data();
  data["fairlead.allow_override_of_unkeyed"] = "on";
  auto rules = changed(activity(R"(set_fairness_weight_overrides { key: "" value: 4 })"));
  EXPECT_EQ(rules.weights().at(""), 4);
  rules = changed(activity(R"(unset_fairness_weight_overrides: "")"), rules);
  EXPECT_TRUE(rules.weights().empty());
  data["fairlead.allow_override_of_unkeyed"] = "off";
  const auto refused =
      call(kMethod, activity(R"(set_fairness_weight_overrides { key: "" value: 4 })"));
  EXPECT_EQ(refused->status.message, "fairness weight override key must not be empty");
}

}  // namespace
}  // namespace fairlead::api
