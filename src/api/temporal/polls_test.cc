#include "api/temporal/polls.h"

#include "base/error.h"
#include "gtest/gtest.h"

namespace fairlead::api {
namespace {

constexpr TimeNs kNow = 1'000'000 * kSecond;
constexpr PollHold kHold{60 * kSecond, 10 * kSecond};

// SDKs wait for the answer until their deadline; one that comes later than that is a lost task.
TEST(PollHold, EndsASecondBeforeTheCallersDeadline) {
  EXPECT_EQ(*kHold.until(kNow, kNow + 5 * kSecond, 0.99), kNow + 4 * kSecond);
  EXPECT_EQ(*kHold.until(kNow, kNow + 2 * kSecond, 0), kNow + kSecond);
  EXPECT_EQ(*kHold.until(kNow, kNow + 70 * kSecond, 0), kNow + 60 * kSecond);
}

TEST(PollHold, SpreadsTheEndsOfLongHolds) {
  EXPECT_EQ(*kHold.until(kNow, kNow + 70 * kSecond, 0.5), kNow + 55 * kSecond);
  EXPECT_EQ(*kHold.until(kNow, kNever, 0.5), kNow + 55 * kSecond);
}

TEST(PollHold, LeavesShortHoldsWhole) {
  constexpr PollHold brief{15 * kSecond, 10 * kSecond};
  EXPECT_EQ(*brief.until(kNow, kNever, 0.25), kNow + 12'500 * kMillisecond);
  EXPECT_EQ(*brief.until(kNow, kNever, 0.75), kNow + 15 * kSecond);
}

TEST(PollHold, RefusesACallerInAHurry) {
  for (const TimeNs deadline : {kNow + 2 * kSecond - 1, kNow, TimeNs{0}, TimeNs{-1}}) {
    const auto until = kHold.until(kNow, deadline, 0);
    EXPECT_EQ(until.status(), errors::failed_precondition("Context timeout is too short."));
  }
}

TEST(PollLimiter, CountsEachNamespaceAndKindByItself) {
  PollLimiter limiter(2, 1);
  const NamespaceNum ns(1);
  auto first = limiter.park(ns, model::WORKFLOW_TASK);
  {
    const auto second = limiter.park(ns, model::WORKFLOW_TASK);
    ASSERT_TRUE(second.ok());
    const auto third = limiter.park(ns, model::WORKFLOW_TASK);
    EXPECT_EQ(third.status().message(), "namespace concurrent poller limit exceeded");
    EXPECT_EQ(error_detail(third.status()).kind, ErrorKind::kConcurrentLimit);
    EXPECT_TRUE(limiter.park(ns, model::ACTIVITY_TASK).ok());
    EXPECT_TRUE(limiter.park(NamespaceNum(2), model::WORKFLOW_TASK).ok());
  }
  // The second has ended and its place is free again.
  EXPECT_TRUE(limiter.park(ns, model::WORKFLOW_TASK).ok());
}

// A refused poll must not keep the place it was refused.
TEST(PollLimiter, RefusalsCostNothing) {
  PollLimiter limiter(1, 1);
  auto only = std::make_optional(limiter.park(NamespaceNum(1), model::WORKFLOW_TASK));
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(limiter.park(NamespaceNum(1), model::WORKFLOW_TASK).ok());
  }
  only.reset();
  EXPECT_TRUE(limiter.park(NamespaceNum(1), model::WORKFLOW_TASK).ok());
}

}  // namespace
}  // namespace fairlead::api
