#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "api/fairlead/queues_testing.h"

namespace fairlead::api::queues {
namespace {

using model::QueueRules;
using testing::kInvalidArgument;
using testing::kNow;

class ChangeTest : public QueuesTest {
 protected:
  // What a request does to `rules`, which are then also the engine's answer.
  template <typename Request>
  absl::Status change(const std::string& method, const Request& request) {
    const auto made = call(path(method), request);
    EXPECT_EQ(made->status.code, 0) << made->status.message;
    if (engine.rule_changes.requests.empty()) return absl::InternalError("nothing was asked");
    // The request is gone by now, as it is when the queue gets to it.
    auto asked = std::move(engine.rule_changes.requests.back());
    EXPECT_EQ(asked.queue.name, "orders");
    const absl::Status status = asked.change(rules, kNow);
    engine.rule_changes.result = rules;
    return status;
  }

  void expect_rules(const std::string& text) { expect_same(rules, from_text<QueueRules>(text)); }

  template <typename Request>
  static void add_bad_keys(std::vector<Spoiled<Request>>& cases) {
    cases.push_back({[](Request& r) { r.clear_key(); }, kInvalidArgument,
                     "key is not set; the key of the tasks that carry none is \"\", and must be "
                     "set as well"});
    cases.push_back({[](Request& r) { r.set_key(std::string(65, 'k')); }, kInvalidArgument,
                     "a fairness key of 65 bytes is too long; 64 are allowed"});
  }

  template <typename Request>
  static void add_bad_texts(std::vector<Spoiled<Request>>& cases) {
    cases.push_back({[](Request& r) { r.set_reason(std::string(1001, 'r')); }, kInvalidArgument,
                     "reason of 1001 bytes is too long; 1000 are allowed"});
    cases.push_back({[](Request& r) { r.set_identity(std::string(1001, 'i')); }, kInvalidArgument,
                     "identity of 1001 bytes is too long; 1000 are allowed"});
  }

  QueueRules rules;
};

// ---- SetTaskQueue
// --------------------------------------------------------------------------------

TEST_F(ChangeTest, AQueuesRulesAreSetAndUnsetTogether) {
  auto request = about_orders<v1::SetTaskQueueRequest>(R"(
      identity: "ada"
      queue_rate { per_second: 500 reason: "overall" }
      key_rate_default { per_second: 33.3 }
      running_max: 10 running_max_per_key: 2
      fairness: FAIRNESS_ON first_turn: FIRST_TURN_SCHEDULED
      transition: TRANSITION_DRAIN_PER_LEVEL basis: BASIS_IN_FLIGHT poller_order: POLLER_ORDER_LIFO
      weights { key: "a" value: 5 } weights { key: "b" value: 0.5 })");
  ASSERT_TRUE(change("SetTaskQueue", request).ok());
  const std::string stamp = absl::StrCat(R"(identity: "ada" updated_ns: )", kNow);
  expect_rules(absl::StrCat(R"(
      queue_limit { per_second: 500 reason: "overall" )",
                            stamp, R"( }
      key_limit { per_second: 33.3 )",
                            stamp, R"( }
      running_max: 10 running_max_per_key: 2 fairness: ON first_turn: SCHEDULED
      transition: DRAIN_PER_LEVEL basis: IN_FLIGHT poller_order: LIFO
      weights { key: "a" value: 5 } weights { key: "b" value: 0.5 })"));

  // Who took a limit away stays known.
  request = about_orders<v1::SetTaskQueueRequest>(R"(
      identity: "ada" queue_rate { unset: true reason: "over" } key_rate_default { unset: true }
      unset_running_max: true unset_running_max_per_key: true
      fairness: FAIRNESS_DEFAULT first_turn: FIRST_TURN_DEFAULT transition: TRANSITION_DEFAULT
      basis: BASIS_DEFAULT poller_order: POLLER_ORDER_DEFAULT
      unset_weights: "a" unset_weights: "unknown")");
  ASSERT_TRUE(change("SetTaskQueue", request).ok());
  expect_rules(absl::StrCat(R"(
      queue_limit { reason: "over" )",
                            stamp, R"( } key_limit { )", stamp, R"( }
      weights { key: "b" value: 0.5 })"));
}

TEST_F(ChangeTest, WhatARequestDoesNotNameStays) {
  rules = from_text<QueueRules>(R"(
      queue_limit { per_second: 1 reason: "r" } key_limit { per_second: 2 }
      weights { key: "a" value: 5 } keys { key: "a" value { running_max: 1 } }
      running_max: 3 running_max_per_key: 4 pause { reason: "p" } fairness: OFF
      first_turn: PROMPT transition: IMMEDIATE basis: DISPATCH poller_order: FIFO
      epochs { first_seq: 9 } key_clock: 7)");
  const QueueRules before = rules;
  ASSERT_TRUE(change("SetTaskQueue", about_orders<v1::SetTaskQueueRequest>()).ok());
  expect_same(rules, before);
}

TEST_F(ChangeTest, ZeroIsALimitAndNotTheAbsenceOfOne) {
  ASSERT_TRUE(change("SetTaskQueue", about_orders<v1::SetTaskQueueRequest>(R"(
      queue_rate { per_second: 0 } running_max: 0)"))
                  .ok());
  EXPECT_TRUE(rules.queue_limit().has_per_second());
  EXPECT_TRUE(rules.has_running_max());
  EXPECT_EQ(rules.running_max(), 0u);
}

TEST_F(ChangeTest, AllWeightsMayBeReplacedAtOnce) {
  rules = from_text<QueueRules>(
      R"(weights { key: "a" value: 5 } weights { key: "b" value: 6 } running_max: 1)");
  ASSERT_TRUE(change("SetTaskQueue", about_orders<v1::SetTaskQueueRequest>(
                                         R"(unset_all_weights: true
                                            weights { key: "b" value: 7 })"))
                  .ok());
  expect_rules(R"(weights { key: "b" value: 7 } running_max: 1)");
}

TEST_F(ChangeTest, WeightsBeyondTheLimitChangeNothing) {
  for (int i = 0; i < 1000; ++i) (*rules.mutable_weights())[absl::StrCat("k", i)] = 2;
  const QueueRules before = rules;
  auto status = change("SetTaskQueue", about_orders<v1::SetTaskQueueRequest>(
                                           R"(running_max: 1 weights { key: "x" value: 1 })"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "the queue would have 1001 fairness weight overrides; 1000 are allowed, so unset some");
  expect_same(rules, before);
  status = change("SetKey", about_orders<v1::SetKeyRequest>(R"(key: "x" weight: 1)"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  expect_same(rules, before);

  // In exchange for another one it fits, and a known one may always change.
  EXPECT_TRUE(change("SetTaskQueue", about_orders<v1::SetTaskQueueRequest>(
                                         R"(unset_weights: "k0" weights { key: "x" value: 1 })"))
                  .ok());
  EXPECT_TRUE(change("SetKey", about_orders<v1::SetKeyRequest>(R"(key: "k1" weight: 9)")).ok());
  EXPECT_EQ(rules.weights().size(), 1000u);
}

TEST_F(ChangeTest, TheAnswerIsTheRulesAsTheyAreThen) {
  engine.rule_changes.result = from_text<QueueRules>(R"(running_max: 3 fairness: OFF)");
  const auto answered =
      ask<v1::SetTaskQueueResponse>("SetTaskQueue", about_orders<v1::SetTaskQueueRequest>());
  EXPECT_EQ(answered.config().running_max(), 3u);
  EXPECT_EQ(answered.config().fairness(), v1::FAIRNESS_OFF);
}

TEST_F(ChangeTest, WrongRulesAreRefused) {
  using Request = v1::SetTaskQueueRequest;
  auto cases = bad_queues<Request>();
  const auto bad = [&](std::function<void(Request&)> spoil, const std::string& message) {
    cases.push_back({std::move(spoil), kInvalidArgument, message});
  };
  bad([](Request& r) { r.set_identity(std::string(1001, 'i')); },
      "identity of 1001 bytes is too long; 1000 are allowed");
  bad([](Request& r) { r.mutable_queue_rate()->set_reason("only"); },
      "queue_rate has neither a limit nor unset");
  bad([](Request& r) { r.mutable_queue_rate()->set_unset(false); },
      "queue_rate.unset is false; leave it out to change nothing");
  bad([](Request& r) { r.mutable_queue_rate()->set_per_second(-1); },
      "queue_rate of -1 per second is not allowed; say 0 or more, or unset it to have no limit");
  bad([](Request& r) { r.mutable_key_rate_default()->set_per_second(std::nan("")); },
      "key_rate_default of nan per second is not allowed; say 0 or more, or unset it to have no "
      "limit");
  bad(
      [](Request& r) {
        r.mutable_key_rate_default()->set_per_second(std::numeric_limits<double>::infinity());
      },
      "key_rate_default of inf per second is not allowed; say 0 or more, or unset it to have no "
      "limit");
  bad(
      [](Request& r) {
        r.mutable_queue_rate()->set_per_second(1);
        r.mutable_queue_rate()->set_reason(std::string(1001, 'r'));
      },
      "queue_rate.reason of 1001 bytes is too long; 1000 are allowed");
  bad([](Request& r) { r.set_unset_running_max(false); },
      "unset_running_max is false; leave it out to change nothing");
  bad([](Request& r) { r.set_unset_running_max_per_key(false); },
      "unset_running_max_per_key is false; leave it out to change nothing");
  bad([](Request& r) { r.set_fairness(static_cast<v1::Fairness>(4)); }, "fairness 4 is unknown");
  bad([](Request& r) { r.set_first_turn(static_cast<v1::FirstTurn>(-1)); },
      "first_turn -1 is unknown");
  bad([](Request& r) { r.set_poller_order(static_cast<v1::PollerOrder>(9)); },
      "poller_order 9 is unknown");
  bad([](Request& r) { r.set_transition(static_cast<v1::Transition>(5)); },
      "transition 5 is unknown");
  bad([](Request& r) { r.set_basis(static_cast<v1::Basis>(9)); }, "basis 9 is unknown");
  bad([](Request& r) { (*r.mutable_weights())["a"] = 0; },
      "fairness weight 0 of key \"a\" is not allowed; it must be greater than zero");
  bad([](Request& r) { (*r.mutable_weights())["a"] = std::numeric_limits<float>::infinity(); },
      "fairness weight inf of key \"a\" is not allowed; it must be greater than zero");
  bad([](Request& r) { (*r.mutable_weights())[""] = 1; },
      "fairness weight override key must not be empty");
  bad([](Request& r) { (*r.mutable_weights())[std::string(65, 'k')] = 1; },
      "a fairness key of 65 bytes is too long; 64 are allowed");
  bad([](Request& r) { r.add_unset_weights(""); },
      "fairness weight override key must not be empty");
  bad(
      [](Request& r) {
        (*r.mutable_weights())["a"] = 1;
        r.add_unset_weights("a");
      },
      "fairness weight override key \"a\" present in both set and unset lists");
  bad(
      [](Request& r) {
        for (int i = 0; i < 1001; ++i) r.add_unset_weights("a");
      },
      "too many fairness weight overrides in request: got 1001, maximum 1000");
  expect_refusals<Request>(path("SetTaskQueue"), about_orders<Request>(), cases);
}

// As at Temporal's door: what is set here is shown there.
TEST_F(ChangeTest, WorkflowQueuesHaveCapsAndNoRates) {
  using Request = v1::SetTaskQueueRequest;
  auto valid = about_orders<Request>(R"(queue_rate { unset: true } weights { key: "a" value: 1 })");
  valid.mutable_task_queue()->set_type(v1::TASK_QUEUE_TYPE_WORKFLOW);
  expect_refusals<Request>(
      path("SetTaskQueue"), valid,
      {{[](Request& r) { r.mutable_queue_rate()->set_per_second(1); }, kInvalidArgument,
        "Setting rate limit on workflow task queues is not allowed."},
       {[](Request& r) { r.mutable_key_rate_default()->set_per_second(1); }, kInvalidArgument,
        "Setting fairness key rate limit on workflow task queues is not allowed."}});
  auto key = about_orders<v1::SetKeyRequest>(R"(key: "a" weight: 2)");
  key.mutable_task_queue()->set_type(v1::TASK_QUEUE_TYPE_WORKFLOW);
  expect_refusals<v1::SetKeyRequest>(
      path("SetKey"), key,
      {{[](v1::SetKeyRequest& r) { r.set_rate_per_second(1); }, kInvalidArgument,
        "Setting fairness key rate limit on workflow task queues is not allowed."}});
  // How many of them run is counted like everyone's.
  valid.set_running_max(4);
  valid.set_running_max_per_key(1);
  valid.set_basis(v1::BASIS_IN_FLIGHT);
  EXPECT_TRUE(change("SetTaskQueue", valid).ok());
  key.set_running_max(2);
  EXPECT_TRUE(change("SetKey", key).ok());
}

// ---- pause and resume
// ----------------------------------------------------------------------------

TEST_F(ChangeTest, AQueueIsPausedAndResumed) {
  ASSERT_TRUE(change("PauseTaskQueue", about_orders<v1::PauseTaskQueueRequest>(
                                           R"(reason: "bad deploy" identity: "ada")"))
                  .ok());
  expect_rules(
      absl::StrCat(R"(pause { reason: "bad deploy" identity: "ada" since_ns: )", kNow, " }"));
  // It began when it began, whoever says it again.
  rules.mutable_pause()->set_since_ns(5);
  ASSERT_TRUE(
      change("PauseTaskQueue", about_orders<v1::PauseTaskQueueRequest>(R"(identity: "bob")")).ok());
  expect_rules(R"(pause { identity: "bob" since_ns: 5 })");
  ASSERT_TRUE(change("ResumeTaskQueue", about_orders<v1::ResumeTaskQueueRequest>()).ok());
  expect_rules("");
}

TEST_F(ChangeTest, AKeyIsPausedDrainedAndResumed) {
  ASSERT_TRUE(change("PauseKey", about_orders<v1::PauseKeyRequest>(
                                     R"(key: "a" reason: "noisy" identity: "ada")"))
                  .ok());
  expect_rules(
      absl::StrCat(R"(keys { key: "a" value { pause { reason: "noisy" identity: "ada" since_ns: )",
                   kNow, " } } }"));
  // What is paused would not go out, so a drain ends the pause. The queue knows the number.
  ASSERT_TRUE(change("DrainKey", about_orders<v1::DrainKeyRequest>(R"(key: "a")")).ok());
  expect_rules(R"(keys { key: "a" value { drain_below: 18446744073709551615 } })");
  ASSERT_TRUE(change("PauseKey", about_orders<v1::PauseKeyRequest>(R"(key: "a")")).ok());
  ASSERT_TRUE(change("ResumeKey", about_orders<v1::ResumeKeyRequest>(R"(key: "a")")).ok());
  // A rule that says nothing is none.
  expect_rules("");
  ASSERT_TRUE(change("ResumeKey", about_orders<v1::ResumeKeyRequest>(R"(key: "unknown")")).ok());
  expect_rules("");
}

TEST_F(ChangeTest, AResumedKeyKeepsItsOtherRules) {
  rules = from_text<QueueRules>(R"(
      keys { key: "a" value { running_max: 2 pause { reason: "r" } } }
      keys { key: "b" value { pause { reason: "r" } } })");
  ASSERT_TRUE(change("ResumeKey", about_orders<v1::ResumeKeyRequest>(R"(key: "a")")).ok());
  expect_rules(R"(
      keys { key: "a" value { running_max: 2 } }
      keys { key: "b" value { pause { reason: "r" } } })");
}

// ---- SetKey
// --------------------------------------------------------------------------------------

TEST_F(ChangeTest, AKeysRulesAreSetAndUnset) {
  ASSERT_TRUE(change("SetKey", about_orders<v1::SetKeyRequest>(
                                   R"(key: "a" weight: 2.5 running_max: 3 rate_per_second: 7)"))
                  .ok());
  expect_rules(R"(weights { key: "a" value: 2.5 }
                  keys { key: "a" value { per_second: 7 running_max: 3 } })");
  const auto shown =
      ask<v1::SetKeyResponse>("SetKey", about_orders<v1::SetKeyRequest>(R"(key: "a")"));
  expect_same(shown.config(), from_text<v1::KeyConfig>(
                                  R"(key: "a" weight: 2.5 running_max: 3 rate_per_second: 7)"));
  ASSERT_TRUE(
      change("SetKey", about_orders<v1::SetKeyRequest>(R"(key: "a" unset_rate: true)")).ok());
  expect_rules(R"(weights { key: "a" value: 2.5 } keys { key: "a" value { running_max: 3 } })");
  ASSERT_TRUE(change("SetKey", about_orders<v1::SetKeyRequest>(
                                   R"(key: "a" unset_weight: true unset_running_max: true)"))
                  .ok());
  expect_rules("");
}

TEST_F(ChangeTest, RulesForTooManyKeysChangeNothing) {
  for (int i = 0; i < 1000; ++i) {
    (*rules.mutable_keys())[absl::StrCat("k", i)].set_running_max(1);
  }
  const QueueRules before = rules;
  for (const auto& status : {change("PauseKey", about_orders<v1::PauseKeyRequest>(R"(key: "x")")),
                             change("DrainKey", about_orders<v1::DrainKeyRequest>(R"(key: "x")")),
                             change("SetKey", about_orders<v1::SetKeyRequest>(
                                                  R"(key: "x" running_max: 1 weight: 1)"))}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(),
              "the queue has rules for 1000 keys, as many as there may be; resume or unset some");
  }
  expect_same(rules, before);
  EXPECT_TRUE(change("PauseKey", about_orders<v1::PauseKeyRequest>(R"(key: "k1")")).ok());
  EXPECT_TRUE(change("SetKey", about_orders<v1::SetKeyRequest>(R"(key: "x" weight: 2)")).ok());
}

// ---- what is wrong with requests about a key
// -----------------------------------------------------

// The empty key is a key like any other, but nobody may hit it by forgetting to name one.
TEST_F(ChangeTest, WrongKeysAreRefused) {
  const std::string unkeyed = R"(key: "")";
  auto pauses = bad_queues<v1::PauseKeyRequest>();
  add_bad_keys(pauses);
  add_bad_texts(pauses);
  expect_refusals(path("PauseKey"), about_orders<v1::PauseKeyRequest>(unkeyed), pauses);
  auto resumes = bad_queues<v1::ResumeKeyRequest>();
  add_bad_keys(resumes);
  expect_refusals(path("ResumeKey"), about_orders<v1::ResumeKeyRequest>(unkeyed), resumes);
  auto drains = bad_queues<v1::DrainKeyRequest>();
  add_bad_keys(drains);
  expect_refusals(path("DrainKey"), about_orders<v1::DrainKeyRequest>(unkeyed), drains);
  auto purges = bad_queues<v1::PurgeKeyRequest>();
  add_bad_keys(purges);
  add_bad_texts(purges);
  expect_refusals(path("PurgeKey"), about_orders<v1::PurgeKeyRequest>(unkeyed), purges);

  using Request = v1::SetKeyRequest;
  auto sets = bad_queues<Request>();
  add_bad_keys(sets);
  const auto bad = [&](std::function<void(Request&)> spoil, const std::string& message) {
    sets.push_back({std::move(spoil), kInvalidArgument, message});
  };
  bad([](Request& r) { r.set_weight(1); }, "fairness weight override key must not be empty");
  bad(
      [](Request& r) {
        r.set_key("a");
        r.set_weight(-1);
      },
      "fairness weight -1 of key \"a\" is not allowed; it must be greater than zero");
  bad([](Request& r) { r.set_rate_per_second(-2); },
      "rate_per_second of -2 per second is not allowed; say 0 or more, or unset it to have no "
      "limit");
  bad([](Request& r) { r.set_unset_weight(false); },
      "unset_weight is false; leave it out to change nothing");
  bad([](Request& r) { r.set_unset_rate(false); },
      "unset_rate is false; leave it out to change nothing");
  bad([](Request& r) { r.set_unset_running_max(false); },
      "unset_running_max is false; leave it out to change nothing");
  expect_refusals(path("SetKey"), about_orders<Request>(R"(key: "" running_max: 1)"), sets);
}

TEST_F(ChangeTest, WrongPausesOfAQueueAreRefused) {
  auto pauses = bad_queues<v1::PauseTaskQueueRequest>();
  add_bad_texts(pauses);
  expect_refusals(path("PauseTaskQueue"), about_orders<v1::PauseTaskQueueRequest>(), pauses);
  expect_refusals(path("ResumeTaskQueue"), about_orders<v1::ResumeTaskQueueRequest>(),
                  bad_queues<v1::ResumeTaskQueueRequest>());
}

TEST_F(ChangeTest, APurgeTellsHowManyTasksItEnded) {
  engine.purges.result = shard::Purged{12};
  const auto purged = ask<v1::PurgeKeyResponse>(
      "PurgeKey", about_orders<v1::PurgeKeyRequest>(R"(key: "a" reason: "r" identity: "i")"));
  EXPECT_EQ(purged.tasks(), 12);
  const auto& asked = engine.purges.requests[0];
  EXPECT_EQ(asked.queue.name, "orders");
  EXPECT_EQ(asked.key, "a");
  EXPECT_EQ(asked.reason, "r");
  EXPECT_EQ(asked.identity, "i");
}

// Where the namespace says so, the tasks without a key may be given a weight like any key. Nowhere
// else: "" is easily written by mistake.
TEST_F(ChangeTest, TheUnkeyedGroupMayHaveAWeightIfItsNamespaceSaysSo) {
  (*engine.registry.rows[0]->mutable_data())["fairlead.allow_override_of_unkeyed"] = "on";
  ASSERT_TRUE(change("SetKey", about_orders<v1::SetKeyRequest>(R"(key: "" weight: 2.5)")).ok());
  expect_rules(R"(weights { key: "" value: 2.5 })");
  ASSERT_TRUE(change("SetTaskQueue", about_orders<v1::SetTaskQueueRequest>(
                                         R"(weights { key: "" value: 3 } unset_weights: "a")"))
                  .ok());
  expect_rules(R"(weights { key: "" value: 3 })");
  ASSERT_TRUE(
      change("SetKey", about_orders<v1::SetKeyRequest>(R"(key: "" unset_weight: true)")).ok());
  expect_rules("");
}

// Its rate and its cap were never in doubt.
TEST_F(ChangeTest, TheUnkeyedGroupMayHaveARateAndACap) {
  ASSERT_TRUE(change("SetKey", about_orders<v1::SetKeyRequest>(
                                   R"(key: "" rate_per_second: 4 running_max: 2)"))
                  .ok());
  expect_rules(R"(keys { key: "" value { per_second: 4 running_max: 2 } })");
}

}  // namespace
}  // namespace fairlead::api::queues
