#include "api/temporal/validate.h"

#include <cmath>
#include <limits>

#include "api/temporal/convert.h"
#include "api/temporal/proto_testing.h"
#include "gtest/gtest.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {
namespace {

using google::protobuf::Duration;
using temporal::api::common::v1::Priority;
using temporal::api::common::v1::RetryPolicy;
using temporal::api::failure::v1::Failure;

std::string text_of(const absl::Status& status) {
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(Validate, Priorities) {
  const auto check = [](int32_t key, std::string fairness_key, float weight) {
    Priority priority;
    priority.set_priority_key(key);
    priority.set_fairness_key(std::move(fairness_key));
    priority.set_fairness_weight(weight);
    return text_of(check_priority(priority));
  };
  EXPECT_EQ(check(0, "", 0), "");
  EXPECT_EQ(check(1'000'000, std::string(64, 'k'), 1e9f), "");
  EXPECT_EQ(check(-1, "", 0), "priority key can't be negative");
  // Bytes count, not letters.
  std::string umlauts;
  for (int i = 0; i < 33; ++i) umlauts += "ä";
  EXPECT_EQ(check(0, umlauts, 0), "fairness key length exceeds limit");
  EXPECT_EQ(check(0, "", -1), "must be greater than zero");
  EXPECT_EQ(check(0, "", std::nanf("")), "must be greater than zero");
  EXPECT_EQ(check(0, "", std::numeric_limits<float>::infinity()), "must be greater than zero");
}

TEST(Validate, RetryPolicies) {
  const auto check = [](const char* text) {
    return text_of(check_retry_policy(from_text<RetryPolicy>(text)));
  };
  EXPECT_EQ(check(""), "");
  EXPECT_EQ(check("initial_interval{seconds:-1}"),
            "InitialInterval cannot be negative on retry policy.");
  EXPECT_EQ(check("backoff_coefficient:0.5"),
            "BackoffCoefficient cannot be less than 1 on retry policy.");
  EXPECT_EQ(check("backoff_coefficient:nan"),
            "BackoffCoefficient cannot be less than 1 on retry policy.");
  EXPECT_EQ(check("maximum_interval{nanos:-1}"),
            "MaximumInterval cannot be negative on retry policy.");
  EXPECT_EQ(check("initial_interval{seconds:3} maximum_interval{seconds:2}"),
            "MaximumInterval cannot be less than InitialInterval on retry policy.");
  // The initial interval that it is compared with is the default of a second.
  EXPECT_EQ(check("maximum_interval{nanos:999999999}"),
            "MaximumInterval cannot be less than InitialInterval on retry policy.");
  EXPECT_EQ(check("maximum_attempts:-1"), "MaximumAttempts cannot be negative on retry policy.");
  EXPECT_EQ(check("non_retryable_error_types:'TemporalTimeout:Heartbeat'"), "");
  EXPECT_EQ(check("non_retryable_error_types:'TemporalTimeout:Lunch'"),
            "Invalid timeout type value: Lunch.");
  // A single attempt is never followed by another, so the rest of the policy is of no interest.
  EXPECT_EQ(check("maximum_attempts:1 backoff_coefficient:0.5"), "");
}

TEST(Validate, CompletesARetryPolicyWithTheDefaults) {
  auto policy = from_text<RetryPolicy>("");
  complete_retry_policy(policy);
  expect_same(policy, from_text<RetryPolicy>("initial_interval{seconds:1} backoff_coefficient:2 "
                                             "maximum_interval{seconds:100}"));
  policy = from_text<RetryPolicy>("initial_interval{nanos:15000000} backoff_coefficient:1");
  complete_retry_policy(policy);
  expect_same(policy, from_text<RetryPolicy>("initial_interval{nanos:15000000} "
                                             "backoff_coefficient:1 "
                                             "maximum_interval{seconds:1 nanos:500000000}"));
}

TEST(Validate, TaskQueueNames) {
  EXPECT_EQ(text_of(check_task_queue(nullptr, 1000)), "taskQueue is not set");
  EXPECT_EQ(text_of(check_task_queue_name("", 1000)), "missing task queue name");
  EXPECT_EQ(text_of(check_task_queue_name(std::string(1001, 'q'), 1000)),
            "taskQueue length exceeds limit");
  EXPECT_EQ(text_of(check_task_queue_name("/_sys/q/1", 1000)),
            "task queue name cannot start with reserved prefix /_sys/");
  EXPECT_EQ(text_of(check_task_queue_name(std::string(1000, 'q'), 1000)), "");
}

// Durations come from any client in any shape. Too long is as good as the longest.
TEST(Convert, DurationsAreCappedAndNeverOverflow) {
  const auto read = [](int64_t seconds, int32_t nanos) {
    Duration duration;
    duration.set_seconds(seconds);
    duration.set_nanos(nanos);
    return read_duration(duration);
  };
  EXPECT_EQ(*read(1, 500), kSecond + 500);
  EXPECT_EQ(*read(std::numeric_limits<int64_t>::max(), 999'999'999), kDurationMax);
  EXPECT_EQ(*read(kDurationMax / kSecond - 1, 999'999'999), kDurationMax - 1);
  EXPECT_FALSE(read(-1, 0).ok());
  EXPECT_FALSE(read(1, -1).ok());
  EXPECT_FALSE(read(std::numeric_limits<int64_t>::min(), 0).ok());
  EXPECT_FALSE(read(0, 1'000'000'000).ok());
}

TEST(Convert, ShortNamesAreSpelledAsClientsSpellThem) {
  EXPECT_EQ(short_name("WORKFLOW_TASK_FAILED_CAUSE_BAD_BINARY", "WORKFLOW_TASK_FAILED_CAUSE_"),
            "BadBinary");
  EXPECT_EQ(short_name("INDEXED_VALUE_TYPE_KEYWORD_LIST", "INDEXED_VALUE_TYPE_"), "KeywordList");
}

// A link that leads nowhere is of no use to whoever follows it later.
TEST(Validate, LinksLeadSomewhere) {
  const auto problem = [](const std::string& link) {
    const auto event = from_text<temporal::api::history::v1::HistoryEvent>("links {" + link + "}");
    return std::string(check_links(event.links()).message());
  };
  EXPECT_EQ(problem("batch_job { job_id: 'j' }"), "");
  EXPECT_EQ(problem("batch_job {}"), "batch job link must not have an empty job ID");
  EXPECT_EQ(problem("workflow_event { namespace: 'n' workflow_id: 'w' run_id: 'r' }"), "");
  EXPECT_EQ(problem("workflow_event { namespace: 'n' workflow_id: 'w' }"),
            "workflow event link must not have an empty run ID field");
  EXPECT_EQ(
      problem("workflow_event { namespace: 'n' workflow_id: 'w' run_id: 'r' "
              "event_ref { event_id: 3 } }"),
      "workflow event link ref cannot have an unspecified event type and a non-zero event ID");
  EXPECT_EQ(problem("activity { namespace: 'n' run_id: 'r' }"),
            "activity link must not have an empty activity ID field");
  EXPECT_EQ(problem("nexus_operation { operation_id: 'o' run_id: 'r' }"),
            "nexus operation link must not have an empty namespace field");
  EXPECT_EQ(problem(""), "unsupported link variant");
}

TEST(Convert, CutTextNeverSplitsACharacter) {
  EXPECT_EQ(cut_text("häuser", 2), "h");
  EXPECT_EQ(cut_text("häuser", 3), "hä");
  EXPECT_EQ(cut_text("haus", 9), "haus");
  EXPECT_EQ(cut_text("ä", 1), "");
}

TEST(Convert, AFailureKeepsItsBytesAndTellsWhatRetriesNeed) {
  const auto failure = from_text<Failure>(R"(
      message: "no" application_failure_info {
        type: "Full" non_retryable: true next_retry_delay { seconds: 5 } })");
  const auto read = read_failure(failure);
  EXPECT_EQ(read.kind(), model::Failure::APPLICATION);
  EXPECT_EQ(read.type(), "Full");
  EXPECT_TRUE(read.non_retryable());
  EXPECT_EQ(read.next_retry_delay_ns(), 5 * kSecond);
  expect_same(parse<Failure>(read.door()), failure);

  EXPECT_EQ(read_failure(from_text<Failure>("canceled_failure_info{}")).kind(),
            model::Failure::CANCELED);
  EXPECT_EQ(read_failure(from_text<Failure>("")).kind(), model::Failure::OTHER);
  EXPECT_FALSE(
      read_failure(from_text<Failure>("application_failure_info{}")).has_next_retry_delay_ns());
}

TEST(Convert, AShortenedFailureFitsAndKeepsItsKind) {
  Failure failure;
  failure.set_message(std::string(1 << 20, 'm'));
  failure.set_stack_trace(std::string(1 << 20, 's'));
  failure.mutable_application_failure_info()->set_type("Full");
  failure.mutable_application_failure_info()->mutable_details()->add_payloads()->set_data(
      std::string(1 << 20, 'd'));
  const Failure shorter = shorten_failure(failure, 4096);
  EXPECT_LE(shorter.ByteSizeLong(), 4096u);
  EXPECT_EQ(shorter.application_failure_info().type(), "Full");
  EXPECT_EQ(shorter.message().size(), 2048u);
}

}  // namespace
}  // namespace fairlead::api
