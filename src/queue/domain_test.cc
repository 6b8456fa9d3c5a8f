#include "queue/domain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "queue/definition_testing.h"
#include "queue/fluid_testing.h"

namespace fairlead::queue {
namespace {

Weight random_weight(Random& random) {
  return Weight::of(std::pow(10.0, static_cast<double>(random.below(6001)) / 1000.0 - 3));
}

struct Key {
  Member member = 0;
  Weight weight;
  int waiting = 0;
  uint64_t head = 0;
  bool is_held = false;
  bool is_active() const { return waiting > 0 && !is_held; }
};

// Random arrivals, picks, holds and weights: the fast way and the definition agree at every step.
TEST(Domain, FollowsItsDefinition) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    Domain domain;
    Definition definition;
    std::vector<Key> keys(static_cast<size_t>(2 + random.below(39)));
    uint64_t seq = 0;
    for (auto& key : keys) {
      key.member = domain.add();
      key.weight = random_weight(random);
    }
    const auto set = [&](size_t i, bool was_active) {
      auto& key = keys[i];
      if (key.is_active() == was_active) return;
      if (key.is_active()) {
        domain.activate(key.member, key.weight, key.head);
        definition.activate(static_cast<int>(i), key.weight, key.head);
      } else {
        domain.rest(key.member);
        definition.rest(static_cast<int>(i));
      }
    };
    for (int step = 0; step < 3000; ++step) {
      const size_t i = static_cast<size_t>(random.below(keys.size()));
      auto& key = keys[i];
      const bool was_active = key.is_active();
      switch (random.below(10)) {
        case 0:
        case 1:
        case 2: {
          if (key.waiting == 0) key.head = ++seq;
          key.waiting += static_cast<int>(1 + random.below(6));
          set(i, was_active);
          break;
        }
        case 3:
          key.is_held = !key.is_held;
          set(i, was_active);
          break;
        case 4:
          key.weight = random_weight(random);
          domain.reweigh(key.member, key.weight);
          definition.settle();
          definition.reweigh(static_cast<int>(i), key.weight);
          break;
        default: {
          const auto picked = domain.pick();
          const int expected = definition.pick();
          if (expected < 0) {
            ASSERT_FALSE(picked.has_value()) << "seed " << seed << " step " << step;
            break;
          }
          ASSERT_TRUE(picked.has_value()) << "seed " << seed << " step " << step;
          ASSERT_EQ(*picked, keys[static_cast<size_t>(expected)].member)
              << "seed " << seed << " step " << step;
          auto& taken = keys[static_cast<size_t>(expected)];
          --taken.waiting;
          if (taken.waiting > 0) {
            taken.head = ++seq;
            domain.next(taken.member, taken.weight, taken.head);
            definition.members[expected].head = taken.head;
          } else {
            domain.rest(taken.member);
            definition.rest(expected);
          }
          domain.commit(taken.member);
        }
      }
    }
  }
}

// What a story of arrivals and dispatches is played with, and how long it is.
struct Story {
  uint64_t seed = 1;
  size_t keys_max = 60;
  int steps = 6000;
  int burst = 100;
  // How far from one task the fixed point of tags and strides may lead, in tasks.
  double slack = 0;
};

// Nobody who waits is ever more than one task from the share that an ideal server, working on
// everybody at once, would have given. `choose(random)` gives a weight as the domain knows it and
// as the ideal does.
template <typename Number, typename Choose>
void play_beside_ideal(const Story& story, Choose choose) {
  Random random(story.seed);
  Domain domain;
  const size_t count = static_cast<size_t>(2 + random.below(story.keys_max - 1));
  std::vector<Key> keys(count);
  Fluid<Number> fluid(count);
  const Number bound = Number(1) + Number(story.slack);
  uint64_t seq = 0;
  for (size_t i = 0; i < count; ++i) {
    keys[i].member = domain.add();
    const auto [weight, ideal] = choose(random);
    keys[i].weight = weight;
    fluid.set_weight(i, ideal);
  }
  uint64_t clock = domain.clock();
  for (int step = 0; step < story.steps; ++step) {
    const size_t i = static_cast<size_t>(random.below(count));
    if (random.chance(0.45)) {
      const int tasks = random.chance(0.05) ? story.burst : static_cast<int>(1 + random.below(3));
      if (keys[i].waiting == 0) {
        keys[i].head = ++seq;
        keys[i].waiting = tasks;
        domain.activate(keys[i].member, keys[i].weight, keys[i].head);
      } else {
        keys[i].waiting += tasks;
      }
      fluid.arrive(i, tasks);
      continue;
    }
    const auto picked = domain.pick();
    if (!picked.has_value()) {
      for (const auto& key : keys) ASSERT_EQ(key.waiting, 0) << "seed " << story.seed;
      continue;
    }
    auto& taken = keys[*picked];
    fluid.serve(*picked);
    --taken.waiting;
    taken.head = ++seq;
    if (taken.waiting > 0) {
      domain.next(taken.member, taken.weight, taken.head);
    } else {
      domain.rest(taken.member);
    }
    domain.commit(taken.member);
    for (size_t k = 0; k < count; ++k) {
      if (keys[k].waiting == 0) continue;
      const Number lag = fluid.lag(k);
      ASSERT_TRUE(lag <= bound && -lag <= bound)
          << "seed " << story.seed << " step " << step << " lag " << static_cast<double>(lag);
    }
    ASSERT_GE(static_cast<int64_t>(domain.clock() - clock), 0) << "time does not run backwards";
    clock = domain.clock();
  }
}

TEST(Domain, IsNeverMoreThanATaskFromTheIdeal) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    play_beside_ideal<long double>({.seed = seed, .slack = 1e-5}, [](Random& random) {
      const Weight weight = random_weight(random);
      return std::pair(weight, static_cast<long double>(weight.value()));
    });
  }
}

// The same with an ideal that is computed in fractions. Weights are eighths and a task of such a
// weight costs a round number of the clock's units or nearly so: what is left of the slack is the
// clock's last digit, once for each time that a key comes.
TEST(Domain, IsNeverMoreThanATaskFromTheExactIdeal) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    play_beside_ideal<Rational>(
        {.seed = seed, .keys_max = 9, .steps = 400, .burst = 12, .slack = 1e-6},
        [](Random& random) {
          const auto eighths = static_cast<int>(1 + random.below(100));
          return std::pair(Weight::of(eighths / 8.0), Rational(eighths));
        });
  }
}

// Two fluids, one of them exact: the long stories above are as good as the short ones.
TEST(Domain, TheIdealOfLongStoriesAgreesWithTheExactOne) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    constexpr size_t kKeys = 6;
    Fluid<Rational> exact(kKeys);
    Fluid<long double> rounded(kKeys);
    std::vector<int> waiting(kKeys);
    for (size_t key = 0; key < kKeys; ++key) {
      const auto weight = static_cast<int>(1 + random.below(50));
      exact.set_weight(key, weight);
      rounded.set_weight(key, weight);
    }
    for (int step = 0; step < 300; ++step) {
      const size_t key = random.below(kKeys);
      if (random.chance(0.45)) {
        exact.arrive(key, 2);
        rounded.arrive(key, 2);
        waiting[key] += 2;
      } else if (waiting[key] > 0) {
        exact.serve(key);
        rounded.serve(key);
        --waiting[key];
      }
      for (size_t one = 0; one < kKeys; ++one) {
        ASSERT_NEAR(static_cast<double>(exact.lag(one)), static_cast<double>(rounded.lag(one)),
                    1e-9)
            << "seed " << seed << " step " << step;
      }
    }
  }
}

// Two keys that began to wait together never differ by more than one task of the lighter one, even
// when newcomers get their first task early.
TEST(Domain, PairsStayTogetherEvenIfNewcomersAreServedPromptly) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Domain domain;
    domain.set_prompt(true);
    std::vector<double> weights;
    std::vector<int> served(20);
    for (size_t i = 0; i < served.size(); ++i) {
      const Weight weight = random_weight(random);
      weights.push_back(weight.value());
      const Member member = domain.add();
      domain.activate(member, weight, i + 1);
    }
    uint64_t seq = 100;
    for (int step = 0; step < 3000; ++step) {
      if (random.chance(0.1)) domain.activate(domain.add(), Weight(), ++seq);
      const Member picked = *domain.pick();
      if (picked < served.size()) {
        ++served[picked];
        domain.next(picked, Weight::of(weights[picked]), ++seq);
      } else {
        domain.rest(picked);
      }
      domain.commit(picked);
      for (size_t a = 0; a < served.size(); ++a) {
        for (size_t b = 0; b < a; ++b) {
          ASSERT_LE(std::abs(served[a] / weights[a] - served[b] / weights[b]),
                    std::max(1 / weights[a], 1 / weights[b]) * (1 + 1e-6))
              << "seed " << seed << " step " << step;
        }
      }
    }
  }
}

TEST(Domain, ANewcomerUnderAPromptFirstTurnWaitsForFewPicksNotForARound) {
  Domain domain;
  domain.set_prompt(true);
  uint64_t seq = 0;
  for (int i = 0; i < 1000; ++i) domain.activate(domain.add(), Weight(), ++seq);
  for (int i = 0; i < 2500; ++i) {
    const Member picked = *domain.pick();
    domain.next(picked, Weight(), ++seq);
    domain.commit(picked);
  }
  const Member newcomer = domain.add();
  domain.activate(newcomer, Weight(), ++seq);
  int waited = 0;
  for (Member picked = *domain.pick(); picked != newcomer; picked = *domain.pick()) {
    domain.next(picked, Weight(), ++seq);
    domain.commit(picked);
    ++waited;
  }
  EXPECT_LE(waited, 2);
}

std::vector<Member> order_of(const std::vector<Weight>& weights, int picks, uint64_t first = 0) {
  Domain domain;
  // Another beginning of the clock: tags are relative, and wrap around.
  const Member lone = domain.add();
  domain.restore(lone, {first, Weight().fixed(), false}, std::nullopt);
  domain.restored();
  std::vector<Member> order;
  std::vector<Member> members;
  for (size_t i = 0; i < weights.size(); ++i) members.push_back(domain.add());
  for (size_t i = 0; i < weights.size(); ++i) domain.activate(members[i], weights[i], i + 1);
  for (int i = 0; i < picks; ++i) {
    const Member picked = *domain.pick();
    order.push_back(picked);
    domain.next(picked, weights[picked - 1], 1000 + static_cast<uint64_t>(i));
    domain.commit(picked);
  }
  return order;
}

TEST(Domain, OnlyTheRatioOfWeightsMatters) {
  const std::vector<Weight> small{Weight::of(0.5), Weight::of(0.25), Weight::of(2)};
  const std::vector<Weight> large{Weight::of(64), Weight::of(32), Weight::of(256)};
  EXPECT_EQ(order_of(small, 500), order_of(large, 500));
}

TEST(Domain, TagsMayWrapAround) {
  const std::vector<Weight> weights{Weight::of(5), Weight::of(3), Weight::of(2)};
  const auto expected = order_of(weights, 2000);
  EXPECT_EQ(order_of(weights, 2000, ~0ULL - 10), expected);
  EXPECT_EQ(order_of(weights, 2000, (1ULL << 63) - 10), expected);
  EXPECT_EQ(order_of(weights, 2000, ~0ULL - (50ULL << 32)), expected);
}

TEST(Domain, AnUndonePickNeverHappened) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Domain plain;
    Domain undone;
    std::vector<Weight> weights;
    std::vector<int> waiting(30);
    std::vector<uint64_t> heads(30);
    for (Member i = 0; i < waiting.size(); ++i) {
      weights.push_back(random_weight(random));
      waiting[i] = static_cast<int>(1 + random.below(20));
      for (Domain* domain : {&plain, &undone}) {
        domain->add();
        domain->activate(i, weights[i], i + 1);
      }
      heads[i] = i + 1;
    }
    uint64_t seq = 100;
    while (const auto picked = plain.pick()) {
      while (random.chance(0.5)) {
        const Member other = *undone.pick();
        undone.next(other, weights[other], heads[other]);
        undone.undo(other);
      }
      ASSERT_EQ(undone.pick(), picked) << "seed " << seed;
      --waiting[*picked];
      heads[*picked] = ++seq;
      for (Domain* domain : {&plain, &undone}) {
        if (waiting[*picked] > 0) {
          domain->next(*picked, weights[*picked], seq);
        } else {
          domain->rest(*picked);
        }
        domain->commit(*picked);
      }
    }
  }
}

// What runs counts: a free slot goes to the key with the fewest running for its weight.
TEST(Domain, ByWhatRunsSlotsFollowTheWeights) {
  Domain domain(Order::kInFlight);
  const std::vector<double> weights{3, 1};
  std::vector<uint32_t> running(2);
  for (const double weight : weights) {
    const Member member = domain.add();
    domain.activate(member, Weight::of(weight), member + 1);
  }
  uint64_t seq = 10;
  for (int i = 0; i < 40; ++i) {
    const Member picked = *domain.pick();
    domain.next(picked, Weight::of(weights[picked]), ++seq);
    domain.commit(picked);
    domain.set_running(picked, ++running[picked]);
  }
  EXPECT_EQ(running[0], 30u);
  EXPECT_EQ(running[1], 10u);
}

// Heaps keep 32 bits of a task's number. After billions of tasks, and with tasks that have waited
// through all of them, ties are broken as among the first ones.
TEST(Domain, LargeNumbersAreOrderedLikeSmallOnes) {
  for (const Order order : {Order::kFair, Order::kInFlight, Order::kFifo}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      const auto large = [](uint64_t small) { return 5 + small * 700'000'001; };
      Domain plain(order);
      Domain spread(order);
      constexpr Member kMembers = 40;
      uint64_t seq = 0;
      for (Member i = 0; i < kMembers; ++i) {
        plain.add();
        spread.add();
      }
      for (int i = 0; i < 2000; ++i) {
        const auto member = static_cast<Member>(random.below(kMembers));
        if (!plain.is_active(member)) {
          ++seq;
          plain.activate(member, Weight(), seq);
          spread.activate(member, Weight(), large(seq));
        }
        if (random.chance(0.4)) continue;
        const auto picked = plain.pick();
        ASSERT_EQ(spread.pick(), picked) << "seed " << seed << ", step " << i;
        const bool goes_on = random.chance(0.5);
        if (goes_on) ++seq;
        for (Domain* domain : {&plain, &spread}) {
          const uint64_t head = domain == &plain ? seq : large(seq);
          goes_on ? domain->next(*picked, Weight(), head) : domain->rest(*picked);
          domain->commit(*picked);
          domain->set_running(*picked, static_cast<uint32_t>(i % 3));
        }
        ASSERT_EQ(spread.before(member), plain.before(member));
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::queue
