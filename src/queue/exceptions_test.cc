#include "queue/exceptions.h"

#include <gtest/gtest.h>

namespace fairlead::queue {
namespace {

const QueueName kBilling{NamespaceNum(1), model::ACTIVITY_TASK, "billing"};

Settings settings_of(const std::vector<Exception>& exceptions, const QueueName& queue) {
  Settings settings;
  apply_exceptions(exceptions, "prod", queue, &settings);
  return settings;
}

// The example of the file that operators bring along: most queues without fairness, a namespace
// with it, and one of its queues without.
TEST(Exceptions, TheOneThatSaysMostAboutAQueueWins) {
  const std::vector<Exception> exceptions = {
      {.kind = model::ACTIVITY_TASK, .order = Order::kFair},
      {.ns = "prod", .queue = "billing", .kind = model::ACTIVITY_TASK, .order = Order::kFifo},
      {.ns = "prod", .queue = "billing", .order = Order::kInFlight},
  };
  EXPECT_EQ(settings_of(exceptions, kBilling).order, Order::kFifo);
  const QueueName workflows{NamespaceNum(1), model::WORKFLOW_TASK, "billing"};
  EXPECT_EQ(settings_of(exceptions, workflows).order, Order::kInFlight);
  const QueueName mails{NamespaceNum(1), model::ACTIVITY_TASK, "mails"};
  EXPECT_EQ(settings_of(exceptions, mails).order, Order::kFair);
}

TEST(Exceptions, EachSettingIsTakenByItself) {
  const std::vector<Exception> exceptions = {
      {.ns = "prod", .levels = 9},
      {.ns = "prod", .queue = "billing", .order = Order::kFifo},
      {.ns = "prod", .levels = 7},  // says as much as the first and comes later
      {.ns = "other", .queue = "billing", .levels = 3},
  };
  const auto settings = settings_of(exceptions, kBilling);
  EXPECT_EQ(settings.order, Order::kFifo);
  EXPECT_EQ(settings.levels, 9U);
}

TEST(Exceptions, AmongEqualsTheFirstCountsAndStrangersDoNot) {
  const std::vector<Exception> exceptions = {
      {.ns = "other", .queue = "billing", .order = Order::kFair},
      {.ns = "prod", .order = Order::kFifo},
      {.queue = "billing", .order = Order::kInFlight},
  };
  EXPECT_EQ(settings_of(exceptions, kBilling).order, Order::kFifo);
  EXPECT_EQ(settings_of({}, kBilling).order, Settings().order);
}

}  // namespace
}  // namespace fairlead::queue
