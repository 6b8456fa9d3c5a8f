#include "admission/payload.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "admission/json_reader.h"
#include "admission/policy_testing.h"
#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

constexpr TimeNs kNow = 28'333'333 * kMinute + 30 * kSecond;
constexpr auto kWorkflow = TaskKind::kWorkflow;
constexpr auto kActivity = TaskKind::kActivity;

// The payload that the feature's document shows.
constexpr char kDocumented[] = R"({
  "workflow_tasks": {
    "status": "throttled",
    "active_worker_count": 3,
    "configured_slot_count": 24,
    "leased_count": 8,
    "ready_count": 5,
    "available_slot_count": 16,
    "server_max_active_leases_per_queue": 8,
    "server_active_lease_count": 8,
    "server_remaining_active_lease_capacity": 0,
    "server_max_active_leases_per_namespace": 300,
    "server_namespace_active_lease_count": 149,
    "server_remaining_namespace_active_lease_capacity": 151,
    "server_max_dispatches_per_minute": 120,
    "server_dispatch_count_this_minute": 120,
    "server_remaining_dispatch_capacity": 0,
    "server_max_dispatches_per_minute_per_namespace": 6000,
    "server_namespace_dispatch_count_this_minute": 3520,
    "server_remaining_namespace_dispatch_capacity": 2480,
    "server_dispatch_budget_group": "downstream-openai",
    "server_max_dispatches_per_minute_per_budget_group": 600,
    "server_budget_group_dispatch_count_this_minute": 600,
    "server_remaining_budget_group_dispatch_capacity": 0,
    "server_lock_required": true,
    "server_lock_supported": true,
    "budget_source": "worker_registration.max_concurrent_workflow_tasks",
    "server_budget_source": "server.admission.queue_overrides"
  },
  "activity_tasks": {
    "status": "accepting",
    "configured_slot_count": 36,
    "server_max_active_leases_per_queue": 12,
    "server_remaining_active_lease_capacity": 4,
    "server_max_dispatches_per_minute": 240,
    "server_remaining_dispatch_capacity": 197
  },
  "query_tasks": {
    "status": "accepting",
    "max_pending_per_queue": 1024,
    "approximate_pending_count": 7,
    "remaining_pending_capacity": 1017,
    "lock_supported": true,
    "budget_source": "server.query_tasks.max_pending_per_queue"
  }
})";

std::string text_of(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNumber:
      return std::to_string(static_cast<int64_t>(value.number));
    case JsonValue::Kind::kBoolean:
      return value.number != 0 ? "true" : "false";
    case JsonValue::Kind::kString:
      return value.text;
    default:
      return "null";
  }
}

const JsonValue* find(const JsonValue& object, const std::string& name) {
  const auto found =
      std::find_if(object.members.begin(), object.members.end(),
                   [&](const JsonValue::Member& member) { return member.name == name; });
  return found == object.members.end() ? nullptr : &found->value;
}

// Grants so many tasks and ends all but some of them.
void dispatch(Ledger& ledger, const QueueId& id, int times, int kept) {
  auto* const queue = ledger.open(id);
  for (int i = 0; i < times; ++i) {
    const auto decision = ledger.admit(queue, kNow);
    ASSERT_TRUE(std::holds_alternative<Ledger::Grant>(decision)) << id.queue << " " << i;
    ledger.start(std::get<Ledger::Grant>(decision));
    if (i < times - kept) ledger.release(queue, kNow);
  }
}

// The document's queue at the document's moment, by asking for every single one of those tasks.
TEST(Payload, ReproducesTheDocumentedExampleFieldByField) {
  const auto policies = std::make_shared<const Policies>(
      policies_of(absl::StrReplaceAll(kExample, {{"\"production:*\"",
                                                  R"("production:invoices": {"workflow_tasks": {
        "budget_group": "downstream-openai", "max_dispatches_per_minute_per_budget_group": 600}},
        "production:*")"}})));
  Ledger ledger(policies);
  ledger.restored(kNow);
  dispatch(ledger, {"production", "payments", kWorkflow}, 120, 8);
  dispatch(ledger, {"production", "invoices", kWorkflow}, 480, 41);
  dispatch(ledger, {"production", "orders", kWorkflow}, 1500, 50);
  dispatch(ledger, {"production", "reports", kWorkflow}, 1420, 50);
  dispatch(ledger, {"production", "payments", kActivity}, 43, 8);
  Roster roster;
  const Roster::Place place{"production", "payments"};
  for (const char* worker : {"one", "two", "three"}) {
    ASSERT_TRUE(roster.put(place, worker, {8, 12}, kNow).ok());
  }
  PendingQueries queries;
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(queries.try_add(policies->queries_pending_max()));

  const auto section = [&](TaskKind kind, int64_t ready) {
    auto* const queue = ledger.open({"production", "payments", kind});
    TaskFacts facts;
    facts.caps = ledger.caps_of(queue);
    facts.usage = ledger.usage(queue, kNow);
    facts.slots = roster.slots(place, kind, policies->worker_stale_after(), kNow);
    facts.ready = ready;
    facts.is_available = ledger.is_restored();
    return make_section(facts);
  };
  const Payload payload{section(kWorkflow, 5), section(kActivity, 0),
                        make_section(policies->queries_pending_max(), queries.pending(), true)};

  const auto ours = read_json(to_json(payload));
  const auto documented = read_json(kDocumented);
  ASSERT_TRUE(ours.ok()) << ours.status();
  ASSERT_TRUE(documented.ok()) << documented.status();
  for (const auto& wanted : documented->members) {
    const auto* const got = find(*ours, wanted.name);
    ASSERT_NE(got, nullptr) << wanted.name;
    for (const auto& field : wanted.value.members) {
      const auto* const value = find(*got, field.name);
      ASSERT_NE(value, nullptr) << field.name;
      EXPECT_EQ(text_of(*value), text_of(field.value)) << wanted.name << "." << field.name;
    }
  }
  // The document abbreviates its second section; the first is whole, and in this order.
  const auto& whole = ours->members[0].value.members;
  ASSERT_EQ(whole.size(), documented->members[0].value.members.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i].name, documented->members[0].value.members[i].name);
    EXPECT_EQ(ours->members[1].value.members[i].name, whole[i].name);
  }
}

TaskFacts facts(int64_t workers, int64_t slots, int64_t leases) {
  TaskFacts facts;
  facts.usage.leases = leases;
  facts.usage.namespace_leases = leases;
  facts.slots.active_workers = workers;
  facts.slots.configured = slots;
  return facts;
}

TEST(Payload, StatusesFollowTheWorkersWhereNoCapHolds) {
  EXPECT_EQ(make_section(facts(2, 10, 3)).status, Status::kAccepting);
  EXPECT_EQ(make_section(facts(2, 10, 10)).status, Status::kSaturated);
  EXPECT_EQ(make_section(facts(2, 10, 12)).status, Status::kSaturated);
  EXPECT_EQ(make_section(facts(2, 10, 12)).available_slots, 0);
  EXPECT_EQ(make_section(facts(2, 0, 0)).status, Status::kNoSlots);
  EXPECT_EQ(make_section(facts(0, 0, 0)).status, Status::kNoActiveWorkers);
}

TEST(Payload, AnyFullCapIsThrottledWhateverTheWorkersSay) {
  for (const Budget budget : kAllBudgets) {
    auto full = facts(0, 0, 5);
    full.usage = {5, 5, 5, 5, 5};
    full.caps.group = "g";
    full.caps.caps[at(budget)].max = 5;
    EXPECT_EQ(make_section(full).status, Status::kThrottled) << field_of(budget);
    EXPECT_EQ(make_section(full).budgets[at(budget)].remaining, 0);
    full.caps.caps[at(budget)].max = 6;
    EXPECT_EQ(make_section(full).status, Status::kNoActiveWorkers) << field_of(budget);
    EXPECT_EQ(make_section(full).budgets[at(budget)].remaining, 1);
  }
}

TEST(Payload, WithoutCountsACappedQueueIsUnavailable) {
  auto unknown = facts(1, 10, 3);
  unknown.is_available = false;
  EXPECT_EQ(make_section(unknown).status, Status::kAccepting);
  EXPECT_FALSE(make_section(unknown).is_lock_supported);
  unknown.caps.caps[at(Budget::kQueueLeases)].max = 3;
  const auto section = make_section(unknown);
  EXPECT_EQ(section.status, Status::kUnavailable);
  EXPECT_TRUE(section.is_lock_required);
  const auto& view = section.budgets[at(Budget::kQueueLeases)];
  EXPECT_EQ(view.max, 3);
  EXPECT_EQ(view.used, 0);
  EXPECT_EQ(view.remaining, std::nullopt);
}

TEST(Payload, ExpiredLeasesAreLeasedButNotActive) {
  auto late = facts(1, 10, 3);
  late.caps.caps[at(Budget::kQueueLeases)].max = 3;
  late.expired = 1;
  late.expired_namespace = 1;
  const auto section = make_section(late);
  EXPECT_EQ(section.leased, 3);
  EXPECT_EQ(section.budgets[at(Budget::kQueueLeases)].used, 2);
  EXPECT_EQ(section.budgets[at(Budget::kNamespaceLeases)].used, 2);
  EXPECT_EQ(section.budgets[at(Budget::kNamespaceLeases)].remaining, std::nullopt);
}

TEST(Payload, QueriesAreAcceptingFullOrUnavailable) {
  EXPECT_EQ(make_section(2, 1, true).status, Status::kAccepting);
  EXPECT_EQ(make_section(2, 2, true).status, Status::kFull);
  EXPECT_EQ(make_section(2, 3, true).remaining, 0);
  EXPECT_EQ(make_section(2, 2, false).status, Status::kUnavailable);
  PendingQueries queries;
  EXPECT_TRUE(queries.try_add(1));
  EXPECT_FALSE(queries.try_add(1));
  queries.remove();
  EXPECT_TRUE(queries.try_add(1));
}

TEST(Payload, StatusesHaveTheirDocumentedNames) {
  EXPECT_EQ(name_of(Status::kAccepting), "accepting");
  EXPECT_EQ(name_of(Status::kThrottled), "throttled");
  EXPECT_EQ(name_of(Status::kSaturated), "saturated");
  EXPECT_EQ(name_of(Status::kNoSlots), "no_slots");
  EXPECT_EQ(name_of(Status::kNoActiveWorkers), "no_active_workers");
  EXPECT_EQ(name_of(Status::kUnavailable), "unavailable");
  EXPECT_EQ(name_of(Status::kFull), "full");
}

TEST(Payload, NamesOfGroupsAreWrittenAsJson) {
  TaskFacts odd;
  odd.caps.group = "a \"b\"\n\\é";
  const auto json = read_json(to_json({make_section(odd), make_section(odd), {}}));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(find(json->members[0].value, "server_dispatch_budget_group")->text, odd.caps.group);
}

}  // namespace
}  // namespace fairlead::admission
