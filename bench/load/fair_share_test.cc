#include "load/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fairlead::load {
namespace {

constexpr double kRounding = 1e-9;

void expect_distance(const Distance& distance, double behind, double ahead) {
  EXPECT_NEAR(distance.behind, behind, kRounding);
  EXPECT_NEAR(distance.ahead, ahead, kRounding);
}

FairShare keys_with(const std::vector<double>& weights, int64_t tasks) {
  FairShare share;
  for (size_t key = 0; key < weights.size(); ++key) {
    share.arrive(static_cast<int>(key), weights[key], tasks);
  }
  return share;
}

void dispatch(FairShare* share, const std::vector<int>& order) {
  for (const int key : order) share->dispatch(key);
}

TEST(FairShare, TakingTurnsIsHalfATaskAway) {
  FairShare share = keys_with({1, 1}, 3);
  dispatch(&share, {0, 1, 0, 1, 0, 1});
  expect_distance(share.distance(), 0.5, 0.5);
}

// What a first-come-first-served queue does with two tenants: the meter has to see it.
TEST(FairShare, OneKeyAfterTheOtherIsAsFarAwayAsHalfABacklog) {
  FairShare share = keys_with({1, 1}, 100);
  dispatch(&share, std::vector<int>(100, 0));
  expect_distance(share.distance(), 50, 50);
  dispatch(&share, std::vector<int>(100, 1));
  expect_distance(share.distance(), 50, 50);
}

TEST(FairShare, AKeyThatGetsNothingFallsBehindWithEveryDispatch) {
  FairShare share = keys_with({1, 1, 2}, 100);
  for (int n = 0; n < 20; ++n) dispatch(&share, {0, 1});
  // Of 40 dispatches key 2 should have had 20. Key 0 had 20 of 39 instead of a quarter.
  expect_distance(share.distance(), 20, 20 - 39 / 4.0);
}

TEST(FairShare, WeightsDivideTheFluid) {
  FairShare share = keys_with({3, 1}, 100);
  dispatch(&share, {0, 0, 1, 0});
  // After each dispatch key 0 should have 0.75, 1.5, 2.25 and 3.
  expect_distance(share.distance(), 0.5, 0.5);
}

TEST(FairShare, WhoeverRunsDryLeavesItsShareToTheOthers) {
  FairShare share;
  share.arrive(0, 1, 1);
  share.arrive(1, 1, 9);
  dispatch(&share, {1, 0});
  expect_distance(share.distance(), 0.5, 0.5);
  // From here on key 1 is alone and every dispatch is rightly its own.
  dispatch(&share, std::vector<int>(8, 1));
  expect_distance(share.distance(), 0.5, 0.5);
}

TEST(FairShare, ANewWeightCountsFromTheNextDispatchAndForgetsNothing) {
  FairShare share = keys_with({1, 1}, 1000);
  for (int n = 0; n < 50; ++n) dispatch(&share, {0, 1});
  share.set_weight(0, 9);
  for (int n = 0; n < 10; ++n) dispatch(&share, {0, 0, 0, 0, 0, 1, 0, 0, 0, 0});
  // Within a round key 1 is behind by half a task before its turn and ahead by 0.4 after it.
  expect_distance(share.distance(), 0.5, 0.5);
  // The old shares would now be 5 tasks a round away from the new ideal.
  for (int n = 0; n < 5; ++n) dispatch(&share, {0, 1});
  expect_distance(share.distance(), 4, 4);
}

TEST(FairShare, ALateKeyHasNoClaimOnWhatWentBefore) {
  FairShare share;
  share.arrive(0, 1, 100);
  dispatch(&share, std::vector<int>(50, 0));
  share.arrive(1, 1, 50);
  dispatch(&share, {1, 0, 1, 0});
  expect_distance(share.distance(), 0.5, 0.5);
}

// The same definition without any cleverness: a level of fluid per key, poured step by step.
class NaiveShare {
 public:
  explicit NaiveShare(size_t keys)
      : weight_(keys, 1), arrived_(keys, 0), dispatched_(keys, 0), fluid_(keys, 0) {}

  void arrive(size_t key, double weight, int64_t tasks) {
    weight_[key] = weight;
    arrived_[key] += static_cast<double>(tasks);
  }
  void set_weight(size_t key, double weight) { weight_[key] = weight; }
  bool has_waiting(size_t key) const { return dispatched_[key] < arrived_[key]; }
  void dispatch(size_t key) {
    pour(1);
    ++dispatched_[key];
    for (size_t k = 0; k < fluid_.size(); ++k) {
      worst_.behind = std::max(worst_.behind, fluid_[k] - dispatched_[k]);
      worst_.ahead = std::max(worst_.ahead, dispatched_[k] - fluid_[k]);
    }
  }
  Distance distance() const { return worst_; }

 private:
  void pour(double left) {
    while (left > 1e-15) {
      double weights = 0;
      for (size_t k = 0; k < fluid_.size(); ++k) weights += is_flowing(k) ? weight_[k] : 0;
      if (weights == 0) return;
      double step = left / weights;
      for (size_t k = 0; k < fluid_.size(); ++k) {
        if (is_flowing(k)) step = std::min(step, (arrived_[k] - fluid_[k]) / weight_[k]);
      }
      for (size_t k = 0; k < fluid_.size(); ++k) {
        if (is_flowing(k)) fluid_[k] += step * weight_[k];
      }
      left -= step * weights;
    }
  }
  bool is_flowing(size_t key) const { return arrived_[key] - fluid_[key] > 1e-12; }

  std::vector<double> weight_;
  std::vector<double> arrived_;
  std::vector<double> dispatched_;
  std::vector<double> fluid_;
  Distance worst_;
};

// Keys join, run dry, return and change their weight in the middle of any order, good or bad.
TEST(FairShare, AgreesWithTheDefinitionOnRandomOrders) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 chance(seed);
    const size_t keys = 2 + chance() % 8;
    FairShare share;
    NaiveShare naive(keys);
    const auto weight = [&] { return static_cast<double>(1 + chance() % 1000) / 100; };
    const auto arrive = [&](size_t key) {
      const double w = weight();
      const auto tasks = static_cast<int64_t>(1 + chance() % 20);
      share.arrive(static_cast<int>(key), w, tasks);
      naive.arrive(key, w, tasks);
    };
    for (size_t key = 0; key < keys; ++key) arrive(key);
    for (int step = 0; step < 300; ++step) {
      const size_t key = chance() % keys;
      const auto what = chance() % 20;
      if (what == 0) arrive(key);
      if (what == 1) {
        const double w = weight();
        share.set_weight(static_cast<int>(key), w);
        naive.set_weight(key, w);
      }
      if (what > 1 && naive.has_waiting(key)) {
        share.dispatch(static_cast<int>(key));
        naive.dispatch(key);
      }
    }
    ASSERT_NEAR(share.distance().behind, naive.distance().behind, kRounding) << "seed " << seed;
    ASSERT_NEAR(share.distance().ahead, naive.distance().ahead, kRounding) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fairlead::load
