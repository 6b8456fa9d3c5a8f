#include "admission/dispatch_window.h"

#include <deque>
#include <set>

#include "base/random.h"
#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

// A minute's beginning.
constexpr TimeNs kStart = 28'333'333 * kMinute;

bool try_take(DispatchWindow& window, Span span, int64_t max, TimeNs now,
              uint32_t slot = DispatchWindow::kNoSlot) {
  const TimeNs present = window.advance(now);
  if (window.used(span) >= max) return false;
  window.take(present, slot);
  return true;
}

TEST(DispatchWindow, AFixedMinuteBeginsWithTheWallClocks) {
  DispatchWindow window;
  EXPECT_TRUE(try_take(window, Span::kFixed, 2, kStart + 58 * kSecond));
  EXPECT_TRUE(try_take(window, Span::kFixed, 2, kStart + 59 * kSecond));
  EXPECT_FALSE(try_take(window, Span::kFixed, 2, kStart + kMinute - 1));
  EXPECT_EQ(window.next_free(Span::kFixed, 2), kStart + kMinute);
  // The documented buckets let twice the cap through around a boundary.
  EXPECT_TRUE(try_take(window, Span::kFixed, 2, kStart + kMinute));
  EXPECT_TRUE(try_take(window, Span::kFixed, 2, kStart + kMinute + 1));
  EXPECT_FALSE(try_take(window, Span::kFixed, 2, kStart + kMinute + 2));
}

TEST(DispatchWindow, ASlidingMinuteEndsNow) {
  DispatchWindow window;
  EXPECT_TRUE(try_take(window, Span::kSliding, 2, kStart + 58 * kSecond));
  EXPECT_TRUE(try_take(window, Span::kSliding, 2, kStart + 59 * kSecond));
  EXPECT_FALSE(try_take(window, Span::kSliding, 2, kStart + 61 * kSecond));
  EXPECT_EQ(window.next_free(Span::kSliding, 2), kStart + 118 * kSecond);
  EXPECT_FALSE(try_take(window, Span::kSliding, 2, kStart + 118 * kSecond - 1));
  EXPECT_TRUE(try_take(window, Span::kSliding, 2, kStart + 118 * kSecond));
  EXPECT_FALSE(try_take(window, Span::kSliding, 2, kStart + 118 * kSecond));
}

TEST(DispatchWindow, ALoweredCapHasRoomWhenEnoughIsOver) {
  DispatchWindow window;
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(try_take(window, Span::kSliding, 5, kStart + i * kSecond));
  EXPECT_EQ(window.next_free(Span::kSliding, 5), kStart + kMinute);
  // Of five, four have to go before there is room for one within two.
  EXPECT_EQ(window.next_free(Span::kSliding, 2), kStart + 3 * kSecond + kMinute);
}

TEST(DispatchWindow, WhatIsGivenBackMayBeTakenAgain) {
  DispatchWindow window;
  ASSERT_TRUE(try_take(window, Span::kFixed, 2, kStart, 7));
  ASSERT_TRUE(try_take(window, Span::kFixed, 2, kStart, 8));
  ASSERT_FALSE(try_take(window, Span::kFixed, 2, kStart));
  EXPECT_TRUE(window.give_back(kStart, 7));
  EXPECT_FALSE(window.give_back(kStart, 7));
  EXPECT_TRUE(try_take(window, Span::kFixed, 2, kStart));
  // Of a minute that is over nothing comes back.
  window.advance(kStart + kMinute);
  EXPECT_FALSE(window.give_back(kStart, 8));
  EXPECT_EQ(window.used(Span::kFixed), 0);
}

TEST(DispatchWindow, AClockThatStepsBackGivesNothingAway) {
  DispatchWindow window;
  const TimeNs later = kStart + kMinute;
  ASSERT_TRUE(try_take(window, Span::kFixed, 1, later));
  // The minute before was another one, with room. The window does not go back to it.
  EXPECT_FALSE(try_take(window, Span::kFixed, 1, later - kSecond));
  EXPECT_FALSE(try_take(window, Span::kFixed, 1, later + kSecond));
  // A day back: what was dispatched just now was dispatched just now.
  EXPECT_FALSE(try_take(window, Span::kFixed, 1, later - kDay));
  EXPECT_FALSE(try_take(window, Span::kSliding, 1, later - kDay + 59 * kSecond));
  EXPECT_TRUE(try_take(window, Span::kSliding, 1, later - kDay + kMinute));
}

TEST(DispatchWindow, RowsInAnyOrderMakeTheSameWindow) {
  DispatchWindow window;
  for (const int second : {50, 10, 70, 65, 30}) {
    window.load({kStart + second * kSecond, static_cast<uint32_t>(second)});
  }
  window.loaded();
  std::vector<uint32_t> freed;
  window.advance(kStart + 75 * kSecond, &freed);
  EXPECT_EQ(freed, std::vector<uint32_t>{10});
  EXPECT_EQ(window.used(Span::kFixed), 2);
  EXPECT_EQ(window.used(Span::kSliding), 4);
}

// Both spans against their definitions.
TEST(DispatchWindow, CountsWhatItsDefinitionCounts) {
  Random random(7);
  DispatchWindow window;
  std::multiset<TimeNs> taken;
  TimeNs now = kStart;
  for (int step = 0; step < 200'000; ++step) {
    now += static_cast<TimeNs>(random.below(random.chance(0.01) ? 40 * kSecond : kSecond));
    window.advance(now);
    const TimeNs minute = now / kMinute * kMinute;
    ASSERT_EQ(window.used(Span::kFixed), std::distance(taken.lower_bound(minute), taken.end()));
    ASSERT_EQ(window.used(Span::kSliding),
              std::distance(taken.upper_bound(now - kMinute), taken.end()));
    if (!taken.empty() && *taken.rbegin() > now - kMinute && random.chance(0.3)) {
      ASSERT_TRUE(window.give_back(*taken.rbegin()));
      taken.erase(std::prev(taken.end()));
    } else if (random.chance(0.8)) {
      window.take(now);
      taken.insert(now);
    }
    while (!taken.empty() && *taken.begin() < now - 2 * kMinute) taken.erase(taken.begin());
  }
}

}  // namespace
}  // namespace fairlead::admission
