// Caps and weights together: what a key at its cap costs the others, and what it gets when it comes
// back.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.h"
#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

std::string name_of(size_t key) { return "k" + std::to_string(key); }

float draw_weight(Random& random) {
  return static_cast<float>(std::pow(2.0, static_cast<double>(random.below(9)) - 4));
}

int64_t running_of(const QueueBench& bench, const std::string& key) {
  const auto view = bench.queue->key_view(key, bench.now);
  return view.has_value() ? view->running : 0;
}

void finish_all(QueueBench& bench) {
  while (!bench.disk.leases.empty()) bench.finish(std::string(bench.disk.leases.begin()->first));
}

void set_cap(QueueBench& bench, const std::string& key, uint32_t cap) {
  bench.change_rules([&](auto& rules) { (*rules.mutable_keys())[key].set_running_max(cap); });
}

// Random keys, weights, caps, ends of tasks and crashes.
TEST(CapsAndWeights, NoCapIsEverExceededAndNobodyIdlesBelowOne) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    QueueBench bench;
    const size_t keys = 2 + random.below(6);
    std::map<std::string, uint32_t> caps;
    const auto queue_cap = static_cast<uint32_t>(2 + random.below(12));
    bench.change_rules([&](auto& rules) {
      rules.set_running_max(queue_cap);
      rules.set_running_max_per_key(static_cast<uint32_t>(1 + random.below(5)));
      if (random.chance(0.5)) rules.set_basis(model::QueueRules::IN_FLIGHT);
    });
    for (size_t key = 0; key < keys; ++key) {
      caps[name_of(key)] = bench.queue->rules().running_max_per_key();
      if (random.chance(0.5)) {
        caps[name_of(key)] = static_cast<uint32_t>(random.below(4));
        set_cap(bench, name_of(key), caps[name_of(key)]);
      }
      bench.add_many(name_of(key), 200, draw_weight(random));
    }
    for (int step = 0; step < 600; ++step) {
      if (random.chance(0.6)) {
        const auto started = bench.start();
        bool could = bench.queue->running() - (started.has_value() ? 1 : 0) < queue_cap;
        bool any = false;
        for (const auto& [key, cap] : caps) {
          const auto view = bench.queue->key_view(key, bench.now);
          const bool is_this = started.has_value() && started->place.key == key;
          any |= is_this || (view.has_value() && view->waiting > 0 && view->running < cap);
          ASSERT_LE(running_of(bench, key), cap) << "seed " << seed << " step " << step;
        }
        ASSERT_EQ(started.has_value(), could && any) << "seed " << seed << " step " << step;
        ASSERT_LE(bench.queue->running(), queue_cap);
      } else if (!bench.disk.leases.empty()) {
        auto lease = bench.disk.leases.begin();
        std::advance(lease, static_cast<std::ptrdiff_t>(random.below(bench.disk.leases.size())));
        bench.finish(std::string(lease->first));
      } else if (random.chance(0.1)) {
        bench.reopen();
      }
    }
  }
}

// A key that may not run at all takes no part: without it the order is the same, task by task.
TEST(CapsAndWeights, AKeyThatIsCappedAwayDelaysNobody) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    QueueBench with;
    QueueBench without;
    set_cap(with, "held", 0);
    with.add_many("held", 50, draw_weight(random));
    for (size_t key = 0; key < 5; ++key) {
      const float weight = draw_weight(random);
      for (auto* bench : {&with, &without}) bench->add_many(name_of(key), 100, weight);
    }
    for (int i = 0; i < 500; ++i) {
      if (random.chance(0.1)) with.add("held");
      const auto expected = without.start();
      const auto started = with.start();
      ASSERT_TRUE(expected.has_value() && started.has_value());
      ASSERT_EQ(started->place.key, expected->place.key) << "seed " << seed << " start " << i;
    }
    EXPECT_FALSE(with.start().has_value());
  }
}

// Long at its cap, then free again: from there on it gets its exact share, and nothing for the time
// that it was away.
TEST(CapsAndWeights, AKeyComesBackAtItsShareAndWithoutCredit) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    QueueBench bench;
    const size_t keys = 2 + random.below(5);
    std::map<std::string, double> weights;
    double sum = 0;
    for (size_t key = 0; key < keys; ++key) {
      const float weight = draw_weight(random);
      weights[name_of(key)] = weight;
      sum += weight;
      bench.add_many(name_of(key), 3000, weight);
    }
    const std::string away = name_of(random.below(keys));
    const auto cap = static_cast<uint32_t>(1 + random.below(3));
    set_cap(bench, away, cap);
    // Its tasks take for ever, those of the others no time.
    for (int i = 0; i < 400; ++i) {
      const auto started = bench.start();
      if (!started.has_value()) break;
      if (started->place.key != away) bench.finish(std::string(started->place.key));
    }
    ASSERT_LE(running_of(bench, away), cap);
    if (seed % 2 == 0) bench.reopen();
    bench.change_rules([&](auto& rules) { rules.mutable_keys()->erase(away); });
    finish_all(bench);
    std::map<std::string, int> got;
    for (int i = 1; i <= 400; ++i) {
      const auto started = bench.start();
      ASSERT_TRUE(started.has_value());
      ++got[started->place.key];
      bench.finish(std::string(started->place.key));
      // Two moments of a key that waits all the time are within two tasks of its share: each of
      // them is within one.
      ASSERT_LE(std::abs(got[away] - weights[away] / sum * i), 2)
          << "seed " << seed << ": start " << i << " since it came back";
    }
  }
}

// Free workers go to whoever has the fewest running tasks for its weight, of those that may have
// one more.
TEST(CapsAndWeights, ByRunningTasksTheMixFollowsTheWeightsAsFarAsCapsAllow) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    QueueBench bench;
    bench.change_rules([](auto& rules) { rules.set_basis(model::QueueRules::IN_FLIGHT); });
    std::map<std::string, double> weights;
    std::map<std::string, uint32_t> caps;
    for (size_t key = 0; key < 5; ++key) {
      const float weight = draw_weight(random);
      weights[name_of(key)] = weight;
      caps[name_of(key)] = static_cast<uint32_t>(1 + random.below(12));
      set_cap(bench, name_of(key), caps[name_of(key)]);
      bench.add_many(name_of(key), 500, weight);
    }
    for (int step = 0; step < 500; ++step) {
      if (bench.disk.leases.empty() || random.chance(0.55)) {
        const auto started = bench.start();
        if (!started.has_value()) continue;
        const auto& one = started->place.key;
        const double load = static_cast<double>(running_of(bench, one) - 1) / weights[one];
        for (const auto& [other, weight] : weights) {
          const int64_t running = running_of(bench, other);
          if (other == one || running >= caps[other]) continue;
          ASSERT_LE(load, static_cast<double>(running) / weight + 1e-6)
              << "seed " << seed << " step " << step << ": " << one << " before " << other;
        }
      } else {
        auto lease = bench.disk.leases.begin();
        std::advance(lease, static_cast<std::ptrdiff_t>(random.below(bench.disk.leases.size())));
        bench.finish(std::string(lease->first));
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::queue
