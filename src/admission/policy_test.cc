#include "admission/policy.h"

#include <tuple>
#include <vector>

#include "admission/policy_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

using ::testing::ElementsAre;

constexpr auto kWorkflow = TaskKind::kWorkflow;
constexpr auto kActivity = TaskKind::kActivity;

std::vector<int64_t> numbers(const Caps& caps) {
  std::vector<int64_t> all;
  for (const auto& cap : caps.caps) all.push_back(cap.max);
  return all;
}

TEST(Policies, WithoutSettingsNothingIsCapped) {
  const auto caps = Policies().resolve("default", "payments", kWorkflow);
  EXPECT_FALSE(caps.is_any());
  EXPECT_EQ(caps.source(), "server.admission.workflow_tasks.max_active_leases_per_queue");
  EXPECT_EQ(Policies().queries_pending_max(), 1024);
  EXPECT_EQ(Policies().worker_stale_after(), 60 * kSecond);
}

TEST(Policies, TheDocumentedVariablesCapEveryQueue) {
  const auto policies =
      policies_of(Environment{{"DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_QUEUE", "25"},
                              {"DW_ACTIVITY_TASK_MAX_ACTIVE_LEASES_PER_QUEUE", "100"},
                              {"DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_NAMESPACE", "500"},
                              {"DW_ACTIVITY_TASK_MAX_ACTIVE_LEASES_PER_NAMESPACE", "2000"},
                              {"DW_WORKFLOW_TASK_MAX_DISPATCHES_PER_MINUTE", "600"},
                              {"DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE", "1200"},
                              {"DW_WORKFLOW_TASK_MAX_DISPATCHES_PER_MINUTE_PER_NAMESPACE", "12000"},
                              {"DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE_PER_NAMESPACE", "24000"},
                              {"DW_QUERY_TASK_MAX_PENDING_PER_QUEUE", "2048"}});
  const auto workflow = policies.resolve("a", "q", kWorkflow);
  EXPECT_THAT(numbers(workflow), ElementsAre(25, 500, 600, 12000, 0));
  EXPECT_EQ(workflow.source(),
            "server.admission.workflow_tasks.max_active_leases_per_queue;"
            "server.admission.workflow_tasks.max_active_leases_per_namespace;"
            "server.admission.workflow_tasks.max_dispatches_per_minute;"
            "server.admission.workflow_tasks.max_dispatches_per_minute_per_namespace");
  EXPECT_THAT(numbers(policies.resolve("b", "r", kActivity)),
              ElementsAre(100, 2000, 1200, 24000, 0));
  EXPECT_EQ(policies.queries_pending_max(), 2048);
}

TEST(Policies, TheDocumentsExampleResolvesAsItsTextSays) {
  const auto policies = policies_of(kExample);
  const auto payments = policies.resolve("production", "payments", kWorkflow);
  EXPECT_THAT(numbers(payments), ElementsAre(8, 300, 120, 6000, 600));
  EXPECT_EQ(payments.group, "downstream-openai");
  EXPECT_EQ(payments.source(), "server.admission.queue_overrides");

  const auto email = policies.resolve("production", "email", kActivity);
  EXPECT_THAT(numbers(email), ElementsAre(4, 1200, 60, 12000, 300));
  EXPECT_EQ(email.group, "downstream-sendgrid");

  EXPECT_THAT(numbers(policies.resolve("staging", "email", kWorkflow)),
              ElementsAre(50, 0, 0, 0, 0));
  EXPECT_FALSE(policies.resolve("staging", "video", kActivity).is_any());
}

// Each row adds a less special entry; the most special one that says the field wins, for each field
// on its own.
TEST(Policies, KeysAreSearchedFromTheMostSpecialToTheMostGeneral) {
  const std::string field = R"({"activity_tasks": {"max_active_leases_per_queue": )";
  const std::vector<std::tuple<std::string, int64_t>> entries = {
      {R"("ns:q": )" + field + "1}}", 1},
      {R"("ns:*": )" + field + "2}}", 2},
      {R"("q": )" + field + "3}}", 3},
      {R"("*": )" + field + "4}}", 4},
  };
  for (size_t first = 0; first < entries.size(); ++first) {
    std::string text = "{";
    for (size_t i = first; i < entries.size(); ++i) {
      text += (i == first ? "" : ",") + std::get<0>(entries[i]);
    }
    const auto policies =
        policies_of(Environment{{"DW_TASK_QUEUE_ADMISSION_OVERRIDES", text + "}"},
                                {"DW_ACTIVITY_TASK_MAX_ACTIVE_LEASES_PER_QUEUE", "5"}});
    EXPECT_EQ(policies.resolve("ns", "q", kActivity)[Budget::kQueueLeases].max,
              std::get<1>(entries[first]));
  }
  const auto policies =
      policies_of(Environment{{"DW_ACTIVITY_TASK_MAX_ACTIVE_LEASES_PER_QUEUE", "5"}});
  EXPECT_EQ(policies.resolve("ns", "q", kActivity)[Budget::kQueueLeases].max, 5);
}

// What one override does to a default of 5.
TEST(Policies, ZeroSwitchesACapOffAndNullLeavesTheDefault) {
  struct Case {
    std::string value;
    int64_t max;
    bool is_overridden;
  };
  const std::vector<Case> cases = {
      {"7", 7, true},       {"7.9", 7, true},   {R"(" 7 ")", 7, true}, {R"("1e1")", 10, true},
      {"0", 0, true},       {"-3", 0, true},    {"0.5", 0, true},      {R"("")", 0, true},
      {R"("-1")", 0, true}, {"null", 5, false},
  };
  for (const auto& one : cases) {
    // A less special entry must not be reached, whatever the more special one says.
    const auto policies = policies_of(
        Environment{{"DW_TASK_QUEUE_ADMISSION_OVERRIDES",
                     R"({"ns:q": {"workflow_tasks": {"max_active_leases_per_queue": )" + one.value +
                         R"(}}, "*": {"workflow_tasks": {"max_active_leases_per_queue": 9}}})"},
                    {"DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_QUEUE", "5"}});
    const auto cap = policies.resolve("ns", "q", kWorkflow)[Budget::kQueueLeases];
    EXPECT_EQ(cap.max, one.max) << one.value;
    EXPECT_EQ(cap.is_overridden, one.is_overridden) << one.value;
  }
}

TEST(Policies, ACapThatIsSwitchedOffNamesWhoDidIt) {
  const auto policies =
      policies_of(R"({"q": {"workflow_tasks": {"max_active_leases_per_queue": 0}}})");
  EXPECT_EQ(policies.resolve("ns", "q", kWorkflow).source(), "server.admission.queue_overrides");
}

TEST(Policies, TheShortNameOfTheLeaseCapWinsInsideAnEntryAndNotAcrossEntries) {
  const auto policies = policies_of(R"({
    "ns:both": {"workflow_tasks": {"max_active_leases_per_queue": 1, "max_active_leases": 2}},
    "ns:full": {"workflow_tasks": {"max_active_leases_per_queue": 3}},
    "*": {"workflow_tasks": {"max_active_leases": 4}}})");
  EXPECT_EQ(policies.resolve("ns", "both", kWorkflow)[Budget::kQueueLeases].max, 2);
  EXPECT_EQ(policies.resolve("ns", "full", kWorkflow)[Budget::kQueueLeases].max, 3);
  EXPECT_EQ(policies.resolve("ns", "other", kWorkflow)[Budget::kQueueLeases].max, 4);
}

TEST(Policies, TheFullNameOfAGroupIsLookedForEverywhereBeforeItsShortName) {
  const auto policies = policies_of(R"({
    "ns:q": {"activity_tasks": {"budget_group": "short",
                                "max_dispatches_per_minute_per_budget_group": 10}},
    "ns:r": {"workflow_tasks": {"budget_group": " short ",
                                "max_dispatches_per_minute_per_budget_group": 10}},
    "*": {"activity_tasks": {"dispatch_budget_group": "full"}}})");
  EXPECT_EQ(policies.resolve("ns", "q", kActivity).group, "full");
  EXPECT_EQ(policies.resolve("ns", "r", kWorkflow).group, "short");
}

TEST(Policies, WithoutAGroupTheGroupsCapIsIgnored) {
  const auto policies = policies_of(R"({
    "q": {"activity_tasks": {"max_dispatches_per_minute_per_budget_group": 10}},
    "r": {"activity_tasks": {"dispatch_budget_group": "  ",
                             "max_dispatches_per_minute_per_budget_group": 10}},
    "s": {"activity_tasks": {"dispatch_budget_group": "alone"}}})");
  EXPECT_FALSE(policies.resolve("ns", "q", kActivity).is_any());
  EXPECT_FALSE(policies.resolve("ns", "r", kActivity).is_any());
  EXPECT_FALSE(policies.resolve("ns", "s", kActivity).is_any());
  EXPECT_EQ(policies.resolve("ns", "s", kActivity).group, "alone");
}

TEST(Policies, NamespacesAreComparedInSmallLettersAndQueuesAsTheyAre) {
  const auto policies = policies_of(R"({"ns:Q": {"activity_tasks": {"max_active_leases": 1}}})");
  EXPECT_TRUE(policies.resolve("NS", "Q", kActivity).is_any());
  EXPECT_FALSE(policies.resolve("ns", "q", kActivity).is_any());
}

TEST(Policies, AWindowIsChosenForEachRateOnItsOwn) {
  const auto policies =
      policies_of(Environment{{"DW_TASK_QUEUE_ADMISSION_OVERRIDES",
                               R"({"q": {"activity_tasks": {"dispatch_window": "sliding",
                                                "max_dispatches_per_minute": 5}}})"},
                              {"DW_ACTIVITY_TASK_DISPATCH_WINDOW_PER_NAMESPACE", "sliding"}});
  const auto q = policies.resolve("ns", "q", kActivity);
  EXPECT_EQ(q[Budget::kQueueRate].span, Span::kSliding);
  EXPECT_EQ(q[Budget::kNamespaceRate].span, Span::kSliding);
  const auto r = policies.resolve("ns", "r", kActivity);
  EXPECT_EQ(r[Budget::kQueueRate].span, Span::kFixed);
}

TEST(Policies, TheEnvironmentIsLaidOverTheFileFieldByField) {
  toml::parse_result file = toml::parse(R"(
[workflow_tasks]
max_active_leases_per_queue = 1
max_dispatches_per_minute = 2
[queue_overrides."ns:q".workflow_tasks]
max_active_leases = 3
max_active_leases_per_namespace = 4
)");
  ASSERT_TRUE(file);
  auto settings = read_toml(file.table(), "fairlead.toml");
  ASSERT_TRUE(settings.ok()) << settings.status();
  const auto upper =
      read_environment({{"DW_WORKFLOW_TASK_MAX_DISPATCHES_PER_MINUTE", "20"},
                        {"DW_TASK_QUEUE_ADMISSION_OVERRIDES",
                         R"({"ns:q": {"workflow_tasks": {"max_active_leases_per_queue": 30}}})"}});
  ASSERT_TRUE(upper.ok()) << upper.status();
  settings->lay_over(*upper);
  const Policies policies(*settings);
  // 30 and not 3: the file's short name is the same field.
  EXPECT_THAT(numbers(policies.resolve("ns", "q", kWorkflow)), ElementsAre(30, 4, 20, 0, 0));
  EXPECT_THAT(numbers(policies.resolve("ns", "r", kWorkflow)), ElementsAre(1, 0, 20, 0, 0));
}

TEST(Policies, QueriesAndStalenessKeepTheirDocumentedBounds) {
  EXPECT_EQ(
      policies_of(Environment{{"DW_QUERY_TASK_MAX_PENDING_PER_QUEUE", "0"}}).queries_pending_max(),
      1);
  EXPECT_EQ(policies_of(Environment{{"DW_QUERY_TASK_MAX_PENDING_PER_QUEUE", "99999"}})
                .queries_pending_max(),
            10'000);
  EXPECT_EQ(policies_of(Environment{{"DW_WORKER_POLL_TIMEOUT", "45"}}).worker_stale_after(),
            90 * kSecond);
  EXPECT_EQ(policies_of(Environment{{"DW_WORKER_POLL_TIMEOUT", "10"}}).worker_stale_after(),
            60 * kSecond);
  EXPECT_EQ(policies_of(Environment{{"DW_WORKER_STALE_AFTER_SECONDS", "5"}}).worker_stale_after(),
            5 * kSecond);
}

}  // namespace
}  // namespace fairlead::admission
