#include "admission/read_settings.h"

#include "admission/json_reader.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

using ::testing::HasSubstr;

std::string complaint(const absl::StatusOr<Settings>& settings) {
  EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(settings.status().message());
}

std::string variable(const std::string& name, const std::string& value) {
  return complaint(read_environment({{name, value}}));
}

// What is wrong with the overrides, without the name of their variable.
std::string overrides(const std::string& text) {
  const auto whole = variable("DW_TASK_QUEUE_ADMISSION_OVERRIDES", text);
  EXPECT_THAT(whole, HasSubstr("DW_TASK_QUEUE_ADMISSION_OVERRIDES:"));
  return whole.substr(whole.find(':') + 1);
}

std::string file(const std::string& text) {
  toml::parse_result parsed = toml::parse(text);
  EXPECT_TRUE(parsed);
  const auto* section = parsed.table()["admission"].as_table();
  EXPECT_NE(section, nullptr);
  return complaint(read_toml(*section, "fairlead.toml"));
}

TEST(Environment, AMisspeltVariableIsNamedWithTheNearest) {
  EXPECT_EQ(variable("DW_WORKFLOW_TASK_MAX_ACTIVE_LEASE_PER_QUEUE", "1"),
            "DW_WORKFLOW_TASK_MAX_ACTIVE_LEASE_PER_QUEUE: unknown setting "
            "DW_WORKFLOW_TASK_MAX_ACTIVE_LEASE_PER_QUEUE; did you mean "
            "DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_QUEUE?");
}

TEST(Environment, VariablesOfOthersAndEmptyOnesAreLeftAlone) {
  EXPECT_TRUE(read_environment({{"DW_AUTH_TOKEN", "secret"},
                                {"DW_WORKFLOW_TASK_TIMEOUT", "60"},
                                {"DW_TASK_QUEUE_ADMISSION_OVERRIDES", ""},
                                {"DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE", ""}})
                  .ok());
}

TEST(Environment, WhatIsNoNumberIsRefused) {
  EXPECT_EQ(variable("DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE", "many"),
            "DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE: \"many\" is not a number; 0 is no cap");
  EXPECT_THAT(variable("DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE", "nan"),
              HasSubstr("is not a number"));
  EXPECT_THAT(variable("DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE", "1e12"),
              HasSubstr("is more than 1000000000"));
  EXPECT_THAT(variable("DW_WORKER_STALE_AFTER_SECONDS", "0"), HasSubstr("from 1 to 86400"));
  EXPECT_THAT(variable("DW_WORKFLOW_TASK_DISPATCH_WINDOW", "moving"),
              HasSubstr("one of \"fixed\", \"sliding\""));
}

TEST(Overrides, AMistakeIsNamedWithItsPlace) {
  EXPECT_EQ(overrides("{\n  \"q\": {\n    \"activity_task\": {}\n  }\n}"),
            "3:5: unknown kind of task activity_task; did you mean activity_tasks?");
  EXPECT_EQ(overrides(R"({"q": {"activity_tasks": {"max_active_lease": 1}}})"),
            "1:27: unknown field max_active_lease; did you mean max_active_leases?");
  EXPECT_EQ(overrides(R"({"q": {"activity_tasks": {"max_active_leases": "ten"}}})"),
            "1:48: max_active_leases: \"ten\" is not a number; 0 is no cap");
  EXPECT_EQ(overrides(R"({"q": {"activity_tasks": {"max_active_leases": true}}})"),
            "1:48: max_active_leases: true is not a number; 0 is no cap");
  EXPECT_EQ(overrides(R"({"q": {"activity_tasks": {"budget_group": 7}}})"),
            "1:43: budget_group: 7 is not the name of a budget group");
  EXPECT_EQ(overrides("[1]"), "1:1: an object is wanted here");
  EXPECT_EQ(overrides(R"({"q": 5})"), "1:7: an object is wanted here");
  EXPECT_EQ(overrides("{\"q\": {},\n \"q\": {}}"), "2:2: \"q\" is here twice");
}

TEST(Overrides, WhatIsNotJsonIsRefusedWithThePlace) {
  EXPECT_EQ(overrides("{\n\"q\": {}\n"), "3:1: a comma or a closing brace is missing");
  EXPECT_EQ(overrides("{'q': 1}"), "1:2: a name in quotes is missing");
  EXPECT_EQ(overrides("{\"q\": {}} x"), "1:11: the text should end here");
  EXPECT_EQ(overrides("{\"q\": nil}"), "1:7: nil is not a value of JSON");
  EXPECT_EQ(overrides("{\"q\": 007}"), "1:7: 007 is not a value of JSON");
  EXPECT_EQ(overrides("{\"q"), "1:2: a string without an end");
  EXPECT_EQ(overrides("{\"\\x\": 1}"), "1:3: an unknown escape");
  EXPECT_EQ(overrides("{\"\\ud800\": 1}"), "1:3: half of a surrogate pair");
  EXPECT_EQ(overrides(std::string(100, '[')), "1:34: too deep");
}

// PHP writes an empty map as a list.
TEST(Overrides, EmptyEntriesAreFine) {
  EXPECT_TRUE(read_environment({{"DW_TASK_QUEUE_ADMISSION_OVERRIDES", "[]"}}).ok());
  EXPECT_TRUE(read_environment({{"DW_TASK_QUEUE_ADMISSION_OVERRIDES",
                                 R"({"q": [], "r": null, "s": {"workflow_tasks": []}})"}})
                  .ok());
}

// Operators paste this text from anywhere. Whatever it is, it is read or refused with a place.
TEST(Json, DamagedTextIsReadOrRefusedWithItsPlace) {
  const std::string whole = R"({"production:payments": {"workflow_tasks": {"max_active_leases": 8,
      "dispatch_budget_group": "down\u0073tream", "max_dispatches_per_minute": 1.2e2}},
      "*": {"activity_tasks": {"max_active_leases_per_queue": null, "x": [true, false, {}]}}})";
  Random random(17);
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text = whole;
    for (uint64_t changes = 1 + random.below(4); changes > 0 && !text.empty(); --changes) {
      const size_t at = random.below(text.size());
      const uint64_t how = random.below(4);
      if (how == 0) text[at] = static_cast<char>(random.below(256));
      if (how == 1) text.erase(at, 1 + random.below(8));
      if (how == 2) text.insert(at, text.substr(random.below(text.size()), random.below(20)));
      if (how == 3) text.resize(at);
    }
    const auto value = read_json(text);
    (value.ok() ? read : refused) += 1;
    if (value.ok()) continue;
    const std::string message(value.status().message());
    const size_t colon = message.find(':');
    ASSERT_TRUE(colon != message.npos && message.find(": ", colon + 1) != message.npos) << message;
    ASSERT_EQ(message.substr(0, colon).find_first_not_of("0123456789"), std::string::npos);
    EXPECT_FALSE(read_environment({{"DW_TASK_QUEUE_ADMISSION_OVERRIDES", text}}).ok() &&
                 !text.empty())
        << text;
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 5'000);
}

TEST(Json, EscapesAreRead) {
  const auto value = read_json(R"(["a\"\\\/\b\f\n\r\t", "\u00e9\u20AC\ud83d\ude00", -1.5e2])");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->elements[0].text, "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(value->elements[1].text, "é€😀");
  EXPECT_EQ(value->elements[2].number, -150);
}

TEST(File, AMistakeIsNamedWithItsPlace) {
  EXPECT_EQ(file("[admission.workflow_task]\n"),
            "fairlead.toml:1:12: unknown key admission.workflow_task; did you mean "
            "admission.workflow_tasks?");
  EXPECT_EQ(file("[admission.workflow_tasks]\nmax_dispatches_per_min = 1\n"),
            "fairlead.toml:2:1: unknown field max_dispatches_per_min; did you mean "
            "max_dispatches_per_minute?");
  EXPECT_EQ(file("[admission.workflow_tasks]\nbudget_group = \"x\"\n"),
            "fairlead.toml:2:1: budget_group belongs into queue_overrides");
  EXPECT_EQ(file("[admission.workflow_tasks]\nmax_dispatches_per_minute = \"6\"\n"),
            "fairlead.toml:2:29: max_dispatches_per_minute wants an integer from 0 to 1000000000; "
            "0 is no cap");
  EXPECT_EQ(file("[admission.query_tasks]\nmax_pending_per_queue = 0\n"),
            "fairlead.toml:2:25: max_pending_per_queue wants an integer from 1 to 10000");
  EXPECT_EQ(file("[admission.queue_overrides.\"a:b\".activity_tasks]\ndispatch_window = 1\n"),
            "fairlead.toml:2:19: dispatch_window: 1 is not one of \"fixed\", \"sliding\"");
  EXPECT_EQ(file("[admission.queue_overrides]\nq = 1\n"),
            "fairlead.toml:2:5: an override wants a table");
}

}  // namespace
}  // namespace fairlead::admission
