#include "queue/ideal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "queue/fluid_testing.h"

namespace fairlead::queue {
namespace {

constexpr double kNear = 1e-6;

// The same thing computed key by key and slot by slot, without a clock: they agree at every step.
TEST(Ideal, IsTheFluidComputedQuickly) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const size_t count = 1 + random.below(12);
    Ideal ideal;
    Fluid<long double> fluid(count);
    std::vector<int64_t> waiting(count, 0);
    for (size_t key = 0; key < count; ++key) {
      const double weight = std::pow(10.0, static_cast<double>(random.below(4000)) / 1000 - 2);
      ideal.add(weight);
      fluid.set_weight(key, weight);
    }
    for (int step = 0; step < 2000; ++step) {
      const size_t key = random.below(count);
      if (random.chance(0.4)) {
        const auto tasks = static_cast<int>(1 + random.below(4));
        ideal.arrive(key, tasks);
        fluid.arrive(key, tasks);
        waiting[key] += tasks;
      } else if (random.chance(0.02)) {
        const double weight = 1 + static_cast<double>(random.below(100));
        ideal.set_weight(key, weight);
        fluid.set_weight(key, weight);
      } else if (waiting[key] > 0) {
        ideal.serve(key);
        fluid.serve(key);
        --waiting[key];
      }
      for (size_t one = 0; one < count; ++one) {
        ASSERT_NEAR(ideal.lag(one), static_cast<double>(fluid.lag(one)), kNear)
            << "seed " << seed << " step " << step;
      }
    }
  }
}

TEST(Ideal, SharesByWeightAmongThoseWhoWait) {
  Ideal ideal;
  const auto heavy = ideal.add(3);
  const auto light = ideal.add(1);
  ideal.arrive(heavy, 100);
  ideal.arrive(light, 1);
  for (int i = 0; i < 4; ++i) ideal.serve(heavy);
  EXPECT_NEAR(ideal.due(heavy), 3, kNear);
  EXPECT_NEAR(ideal.lag(light), 1, kNear);
  ideal.serve(light);
  EXPECT_NEAR(ideal.due(heavy), 4, kNear) << "light has nothing left";
}

TEST(Ideal, WhoIsHeldGetsNoCreditAndWhatItWasOwedGoesToTheOthers) {
  Ideal ideal;
  const auto a = ideal.add(1);
  const auto b = ideal.add(1);
  const auto c = ideal.add(1);
  for (const auto key : {a, b, c}) ideal.arrive(key, 100);
  ideal.serve(a);
  EXPECT_NEAR(ideal.lag(b), 1.0 / 3, kNear);
  ideal.hold(b);
  EXPECT_NEAR(ideal.lag(b), 0, kNear);
  EXPECT_NEAR(ideal.lag(a) + ideal.lag(c), 0, kNear);
  EXPECT_NEAR(ideal.lag(c), 0.5, kNear);
  for (int i = 0; i < 10; ++i) ideal.serve(c);
  EXPECT_NEAR(ideal.lag(b), 0, kNear);
  ideal.release(b);
  ideal.serve(b);
  EXPECT_NEAR(ideal.due(b), 1.0 / 3, kNear);
}

TEST(Ideal, WhoIsHeldStillPaysForWhatItHadTooMuch) {
  Ideal ideal;
  const auto a = ideal.add(1);
  const auto b = ideal.add(1);
  ideal.arrive(a, 10);
  ideal.arrive(b, 10);
  ideal.serve(a);
  ideal.hold(a);
  EXPECT_NEAR(ideal.lag(a), -0.5, kNear);
  ideal.serve(b);
  EXPECT_NEAR(ideal.lag(a), 0, kNear);
  ideal.serve(b);
  EXPECT_NEAR(ideal.due(a), 1, kNear);
}

TEST(Ideal, WorkOnATaskThatGoesAwayIsSharedOut) {
  Ideal ideal;
  const auto a = ideal.add(1);
  const auto b = ideal.add(1);
  ideal.arrive(a, 10);
  ideal.arrive(b, 1);
  ideal.serve(a);
  EXPECT_NEAR(ideal.lag(b), 0.5, kNear);
  ideal.lose(b);
  EXPECT_NEAR(ideal.lag(b), 0, kNear);
  EXPECT_NEAR(ideal.lag(a), 0, kNear);
}

}  // namespace
}  // namespace fairlead::queue
