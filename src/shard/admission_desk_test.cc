#include "shard/admission_desk.h"

#include "gtest/gtest.h"
#include "store/keys.h"

namespace fairlead::shard {
namespace {

using admission::Budget;
using admission::TaskKind;

struct StoppedClock final : Clock {
  TimeNs now() override { return time; }
  TimeNs time = 1000 * kMinute;
};

const NamespaceNum kNs(7);
const QueueName kOrders{kNs, model::WORKFLOW_TASK, "orders"};
const QueueName kMails{kNs, model::WORKFLOW_TASK, "mails"};

class AdmissionDeskTest : public testing::Test {
 protected:
  static std::shared_ptr<const admission::Policies> policies(
      std::vector<std::pair<Budget, int64_t>> caps) {
    admission::Settings settings;
    for (const auto& [budget, max] : caps) {
      for (auto& defaults : settings.defaults) defaults.max[at(budget)] = max;
    }
    return std::make_shared<admission::Policies>(settings);
  }

  std::shared_ptr<AdmissionDesk> open_desk(std::vector<std::pair<Budget, int64_t>> caps) {
    auto desk = std::make_shared<AdmissionDesk>(
        policies(std::move(caps)),
        AdmissionDesk::Env{
            .clock = &clock,
            .namespace_name = [](NamespaceNum) { return "default"; },
            .owner_of = [](const QueueName&) { return ShardId(3); },
            .look_again = [this](const QueueName& queue) { told.push_back(queue.name); },
        });
    return desk;
  }

  static bool is_refused(const AdmissionDesk::Decision& decision) {
    return std::holds_alternative<admission::Refusal>(decision);
  }

  static Permit take(AdmissionDesk& desk, const QueueName& queue) {
    auto decision = desk.admit(queue);
    EXPECT_FALSE(is_refused(decision));
    return std::move(std::get<Permit>(decision));
  }

  StoppedClock clock;
  std::vector<std::string> told;
};

TEST_F(AdmissionDeskTest, APermitThatIsNotUsedGoesBack) {
  auto desk = open_desk({{Budget::kQueueLeases, 1}});
  desk->restored();
  const auto seat = desk->open(kOrders);
  {
    const auto permit = take(*desk, kOrders);
    EXPECT_TRUE(is_refused(desk->admit(seat.get())));
  }
  EXPECT_EQ(told, (std::vector<std::string>{"orders"}));  // who was refused
  EXPECT_FALSE(is_refused(desk->admit(seat.get())));
}

TEST_F(AdmissionDeskTest, AStartedTaskCountsUntilItIsReleased) {
  auto desk = open_desk({{Budget::kQueueLeases, 1}});
  desk->restored();
  const auto seat = desk->open(kOrders);
  store::WriteBatch batch;
  take(*desk, kOrders).start(&batch);
  EXPECT_TRUE(batch.empty());  // no cap per minute: nothing to remember beside the lease
  EXPECT_TRUE(is_refused(desk->admit(seat.get())));
  EXPECT_TRUE(told.empty());
  desk->release(kOrders);
  EXPECT_EQ(told, (std::vector<std::string>{"orders"}));
  EXPECT_FALSE(is_refused(desk->admit(seat.get())));
}

TEST_F(AdmissionDeskTest, ALeaseOfOneQueueIsTheTurnOfAnother) {
  auto desk = open_desk({{Budget::kNamespaceLeases, 1}});
  desk->restored();
  const auto orders = desk->open(kOrders);
  const auto mails = desk->open(kMails);
  store::WriteBatch batch;
  take(*desk, kOrders).start(&batch);
  EXPECT_TRUE(is_refused(desk->admit(mails.get())));
  desk->release(kOrders);
  EXPECT_EQ(told, (std::vector<std::string>{"mails"}));
  // The place is kept for who waited.
  EXPECT_TRUE(is_refused(desk->admit(orders.get())));
  EXPECT_FALSE(is_refused(desk->admit(mails.get())));
}

TEST_F(AdmissionDeskTest, ADispatchIsARowAndCountsAfterARestart) {
  store::WriteBatch batch;
  {
    auto desk = open_desk({{Budget::kQueueRate, 1}});
    desk->restored();
    take(*desk, kOrders).start(&batch);
    desk->release(kOrders);
    EXPECT_TRUE(is_refused(desk->admit(kOrders)));
  }
  ASSERT_EQ(batch.ops().size(), 1U);
  const auto& row = batch.ops()[0];
  EXPECT_EQ(row.key, store::keys::dispatch(ShardId(3), kOrders, 0));
  model::DispatchRow dispatch;
  ASSERT_TRUE(dispatch.ParseFromString(row.value));

  auto desk = open_desk({{Budget::kQueueRate, 1}});
  EXPECT_TRUE(is_refused(desk->admit(kOrders)));  // nobody knows yet
  EXPECT_TRUE(desk->restore_dispatch(kOrders, 0, dispatch));
  desk->restored();
  EXPECT_TRUE(is_refused(desk->admit(kOrders)));
  clock.time += kMinute;
  EXPECT_FALSE(is_refused(desk->admit(kOrders)));
  clock.time += 2 * kMinute;
  EXPECT_FALSE(desk->restore_dispatch(kOrders, 0, dispatch));  // too old to count
}

TEST_F(AdmissionDeskTest, LeasesAreCountedAgainAfterARestart) {
  auto desk = open_desk({{Budget::kQueueLeases, 2}});
  desk->restore_lease(kOrders);
  desk->restore_lease(kOrders);
  desk->restored();
  EXPECT_TRUE(is_refused(desk->admit(kOrders)));
  desk->release(kOrders);
  EXPECT_FALSE(is_refused(desk->admit(kOrders)));
}

TEST_F(AdmissionDeskTest, NewPoliciesLetThoseWhoWaitLookAgain) {
  auto desk = open_desk({{Budget::kQueueLeases, 1}});
  desk->restored();
  const auto seat = desk->open(kOrders);
  store::WriteBatch batch;
  take(*desk, kOrders).start(&batch);
  EXPECT_TRUE(is_refused(desk->admit(seat.get())));
  desk->set_policies(policies({{Budget::kQueueLeases, 2}}));
  EXPECT_EQ(told, (std::vector<std::string>{"orders"}));
  EXPECT_FALSE(is_refused(desk->admit(seat.get())));
}

TEST_F(AdmissionDeskTest, NobodyIsToldOnceTheShardsAreGone) {
  auto desk = open_desk({{Budget::kQueueLeases, 1}});
  desk->restored();
  const auto seat = desk->open(kOrders);
  auto permit = std::make_unique<Permit>(take(*desk, kOrders));
  EXPECT_TRUE(is_refused(desk->admit(seat.get())));
  desk->detach();
  permit.reset();
  EXPECT_TRUE(told.empty());
}

TEST_F(AdmissionDeskTest, OperatorsSeeWhatIsUsed) {
  auto desk = open_desk({{Budget::kQueueLeases, 2}, {Budget::kQueueRate, 5}});
  desk->restored();
  store::WriteBatch batch;
  take(*desk, kOrders).start(&batch);
  desk->seen(kOrders, "worker-1");
  const AdmissionDesk::Ready waiting = {4, 0};
  std::vector<QueryPlace> queries;
  for (int i = 0; i < 3; ++i) queries.push_back(*desk->place_query(kNs, "orders"));
  auto shown = desk->describe(kNs, "orders", waiting);
  EXPECT_EQ(shown.workflow_tasks.status, admission::Status::kAccepting);
  EXPECT_EQ(shown.workflow_tasks.active_workers, 1);
  EXPECT_EQ(shown.workflow_tasks.leased, 1);
  EXPECT_EQ(shown.workflow_tasks.ready, 4);
  EXPECT_EQ(shown.workflow_tasks.budgets[at(Budget::kQueueRate)].used, 1);
  EXPECT_EQ(shown.activity_tasks.status, admission::Status::kNoSlots);
  EXPECT_EQ(shown.query_tasks.pending, 3);
  EXPECT_EQ(desk->explain(kOrders), "");

  const auto seat = desk->open(kOrders);
  take(*desk, kOrders).start(&batch);
  EXPECT_TRUE(is_refused(desk->admit(seat.get())));
  shown = desk->describe(kNs, "orders", waiting);
  EXPECT_EQ(shown.workflow_tasks.status, admission::Status::kThrottled);
  EXPECT_NE(desk->explain(kOrders).find("2 of 2"), std::string::npos);
}

TEST_F(AdmissionDeskTest, AQueryGivesItsPlaceBackOnce) {
  admission::Settings settings;
  settings.queries_pending_max = 2;
  auto desk = open_desk({});
  desk->restored();
  desk->set_policies(std::make_shared<admission::Policies>(settings));
  auto first = desk->place_query(kNs, "orders");
  auto second = desk->place_query(kNs, "orders");
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(desk->place_query(kNs, "orders").has_value());
  EXPECT_TRUE(desk->place_query(kNs, "mails").has_value());
  EXPECT_TRUE(desk->place_query(NamespaceNum(8), "orders").has_value());
  EXPECT_EQ(desk->describe(kNs, "orders", {}).query_tasks.status, admission::Status::kFull);
  *first = *std::move(second);
  second.reset();
  EXPECT_EQ(desk->describe(kNs, "orders", {}).query_tasks.pending, 1);
  first.reset();
  EXPECT_EQ(desk->describe(kNs, "orders", {}).query_tasks.pending, 0);
}

TEST_F(AdmissionDeskTest, ABudgetIsUnavailableUntilAllIsCounted) {
  auto desk = open_desk({{Budget::kQueueLeases, 2}});
  auto shown = desk->describe(kNs, "orders", {});
  EXPECT_EQ(shown.workflow_tasks.status, admission::Status::kUnavailable);
  EXPECT_EQ(shown.query_tasks.status, admission::Status::kUnavailable);
  EXPECT_EQ(std::get<admission::Refusal>(desk->admit(kOrders)).cause,
            admission::Refusal::Cause::kUnavailable);
  desk->restored();
  shown = desk->describe(kNs, "orders", {});
  EXPECT_EQ(shown.workflow_tasks.status, admission::Status::kNoActiveWorkers);
  EXPECT_EQ(shown.query_tasks.status, admission::Status::kAccepting);
}

}  // namespace
}  // namespace fairlead::shard
