// What follows from the order's definition, and must hold in every story: about the clock, about
// any stretch of time, about changed weights, and about stories that differ in what should not
// matter.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "queue/domain.h"
#include "queue/fluid_testing.h"
#include "queue/queue_testing.h"

namespace fairlead::queue {
namespace {

Weight random_weight(Random& random) {
  return Weight::of(std::pow(10.0, static_cast<double>(random.below(6001)) / 1000.0 - 3));
}

double since(uint64_t clock, uint64_t begin) {
  return static_cast<double>(static_cast<int64_t>(clock - begin)) / std::pow(2.0, 32);
}

// Keys that come, go, and change their weights beside an ideal server.
template <typename Number>
class Stage {
 public:
  struct Key {
    Member member = 0;
    Weight weight;
    int waiting = 0;
    uint64_t head = 0;
  };

  explicit Stage(size_t count) : keys(count), fluid(count) {
    for (auto& key : keys) key.member = domain.add();
  }
  void set_weight(size_t i, Weight weight, Number ideal) {
    keys[i].weight = weight;
    fluid.set_weight(i, ideal);
    domain.reweigh(keys[i].member, weight);
  }
  void arrive(size_t i, int tasks) {
    auto& key = keys[i];
    if (key.waiting == 0) {
      key.head = ++seq_;
      domain.activate(key.member, key.weight, key.head);
    }
    key.waiting += tasks;
    fluid.arrive(i, tasks);
  }
  // Gives who was served.
  std::optional<size_t> serve() {
    const auto picked = domain.pick();
    if (!picked.has_value()) return std::nullopt;
    auto& key = keys[*picked];
    fluid.serve(*picked);
    key.head = ++seq_;
    if (--key.waiting > 0) {
      domain.next(key.member, key.weight, key.head);
    } else {
      domain.rest(key.member);
    }
    domain.commit(key.member);
    // As after every start: whom the clock has reached leaves the books.
    domain.save([](Member, const std::optional<Domain::Saved>&) {});
    return *picked;
  }

  std::vector<Key> keys;
  Domain domain;
  Fluid<Number> fluid;

 private:
  uint64_t seq_ = 0;
};

// The domain never computes what the ideal server does, and still its clock is that server's. All
// that is promised follows from this.
TEST(DomainLaws, TheClockIsThatOfTheIdealServer) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    Stage<Rational> stage(2 + random.below(8));
    for (size_t i = 0; i < stage.keys.size(); ++i) {
      const auto eighths = static_cast<int>(1 + random.below(100));
      stage.set_weight(i, Weight::of(eighths / 8.0), Rational(eighths, 8));
    }
    const uint64_t begin = stage.domain.clock();
    for (int step = 0; step < 300; ++step) {
      if (random.chance(0.45)) {
        stage.arrive(random.below(stage.keys.size()), static_cast<int>(1 + random.below(4)));
      } else {
        stage.serve();
      }
      ASSERT_NEAR(since(stage.domain.clock(), begin), static_cast<double>(stage.fluid.clock()),
                  1e-6)
          << "seed " << seed << " step " << step;
    }
  }
}

// In any stretch of time, not only since it began to wait, a key that waits gets its share within
// two tasks: one at each end.
TEST(DomainLaws, AnyStretchOfTimeHoldsItsShareWithinTwoTasks) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Stage<long double> stage(2 + random.below(40));
    for (size_t i = 0; i < stage.keys.size(); ++i) {
      const Weight weight = random_weight(random);
      stage.set_weight(i, weight, static_cast<long double>(weight.value()));
    }
    // How far ahead of, and behind, the clock a key was at most since it began to wait.
    struct Range {
      double served = 0, low = 0, high = 0;
      uint64_t begin = 0;
    };
    std::map<size_t, Range> waiting;
    for (int step = 0; step < 5000; ++step) {
      if (random.chance(0.4)) {
        const size_t i = random.below(stage.keys.size());
        stage.arrive(i, random.chance(0.1) ? 200 : 1);
        waiting.try_emplace(i, Range{0, 0, 0, stage.domain.clock()});
        continue;
      }
      const auto served = stage.serve();
      if (!served.has_value()) continue;
      waiting[*served].served += 1;
      for (auto at = waiting.begin(); at != waiting.end();) {
        auto& [i, range] = *at;
        if (stage.keys[i].waiting == 0) {
          at = waiting.erase(at);
          continue;
        }
        const double due = stage.keys[i].weight.value() * since(stage.domain.clock(), range.begin);
        range.low = std::min(range.low, range.served - due);
        range.high = std::max(range.high, range.served - due);
        ASSERT_LE(range.high - range.low, 2 + 1e-4) << "seed " << seed << " step " << step;
        ++at;
      }
    }
  }
}

// A new weight changes nothing of what is owed. An ideal server that is told of it at the same
// moment stays within two tasks, whoever is re-weighted and however often.
TEST(DomainLaws, ChangedWeightsLeadNobodyMoreThanTwoTasksAway) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Stage<long double> stage(2 + random.below(60));
    const auto reweigh = [&](size_t i) {
      const Weight weight = random_weight(random);
      stage.set_weight(i, weight, static_cast<long double>(weight.value()));
    };
    for (size_t i = 0; i < stage.keys.size(); ++i) reweigh(i);
    const uint64_t every = 20 + random.below(500);
    for (int step = 0; step < 6000; ++step) {
      if (random.below(every) == 0) reweigh(random.below(stage.keys.size()));
      if (random.chance(0.45)) {
        stage.arrive(random.below(stage.keys.size()), random.chance(0.05) ? 100 : 2);
        continue;
      }
      stage.serve();
      for (size_t i = 0; i < stage.keys.size(); ++i) {
        if (stage.keys[i].waiting == 0) continue;
        ASSERT_LE(std::abs(stage.fluid.lag(i)), 2.0L) << "seed " << seed << " step " << step;
      }
    }
  }
}

// --- Stories that differ in what should not matter
// ------------------------------------------------

// What happens to a queue, decided by a seed: who comes with how many tasks and which weight, and
// how many starts follow.
struct Chapter {
  size_t key = 0;
  int tasks = 0;
  int starts = 0;
};

struct Tale {
  std::vector<float> weights;
  std::vector<Chapter> chapters;

  explicit Tale(uint64_t seed) {
    Random random(seed);
    const size_t keys = 2 + random.below(9);
    for (size_t i = 0; i < keys; ++i) {
      weights.push_back(static_cast<float>(1 + random.below(64)) / 4);
    }
    for (int i = 0; i < 60; ++i) {
      chapters.push_back({random.below(keys), static_cast<int>(1 + random.below(12)),
                          static_cast<int>(random.below(10))});
    }
  }
};

using Turns = std::vector<std::string>;
using Name = std::function<std::string(size_t)>;

std::string plain(size_t key) { return "key-" + std::to_string(key); }

void arrive(QueueBench& bench, const Tale& tale, const Chapter& chapter, const Name& name) {
  bench.add_many(name(chapter.key), chapter.tasks, tale.weights[chapter.key]);
}

Turns tell(
    const Tale& tale, const Name& name = plain,
    const std::function<void(QueueBench&)>& before = [](QueueBench&) {}) {
  QueueBench bench;
  before(bench);
  Turns order;
  const auto start = [&](int count) {
    for (auto& key : bench.start_keys(count)) order.push_back(std::move(key));
  };
  for (const auto& chapter : tale.chapters) {
    arrive(bench, tale, chapter, name);
    start(chapter.starts);
  }
  start(10'000);
  return order;
}

TEST(DomainLaws, NamesDoNotMatter) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Tale tale(seed);
    // In the reverse order of the alphabet, and one of them empty.
    const auto renamed = [&](size_t key) {
      return key == 0 ? std::string() : "z" + std::to_string(100 - key);
    };
    Turns expected;
    for (const auto& name : tell(tale)) {
      expected.push_back(renamed(std::stoul(name.substr(4))));
    }
    ASSERT_EQ(tell(tale, renamed), expected) << "seed " << seed;
  }
}

TEST(DomainLaws, TwoKeysThatSwapTheirRolesSwapTheirTurns) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Tale tale(seed);
    const auto swapped = [](size_t key) { return plain(key < 2 ? 1 - key : key); };
    Turns expected;
    for (const auto& name : tell(tale)) {
      expected.push_back(swapped(std::stoul(name.substr(4))));
    }
    ASSERT_EQ(tell(tale, swapped), expected) << "seed " << seed;
  }
}

// Powers of two are exact in fixed point, so no tie is broken another way.
TEST(DomainLaws, ACommonFactorOfAllWeightsDoesNotMatter) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Tale light(seed);
    for (size_t i = 0; i < light.weights.size(); ++i) {
      light.weights[i] = static_cast<float>(1 << i % 7) / 8;
    }
    Tale heavy = light;
    for (auto& weight : heavy.weights) weight *= 64;
    ASSERT_EQ(tell(heavy), tell(light)) << "seed " << seed;
  }
}

// A key that has nothing to do, and one that may not do anything, are as good as not there.
TEST(DomainLaws, WhoTakesNoPartDoesNotMatter) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Tale tale(seed);
    const auto expected = tell(tale);
    const auto held = [](QueueBench& bench) {
      bench.change_rules([](model::QueueRules& rules) {
        (*rules.mutable_keys())["paused"].mutable_pause();
        (*rules.mutable_keys())["capped"].set_running_max(0);
        (*rules.mutable_keys())["throttled"].set_per_second(0);
        (*rules.mutable_weights())["nobody"] = 100;
      });
      for (const char* key : {"paused", "capped", "throttled"}) bench.add_many(key, 50, 9);
    };
    ASSERT_EQ(tell(tale, plain, held), expected) << "seed " << seed;
    const auto gone = [](QueueBench& bench) {
      const Place place = bench.add("cancelled", 9);
      bench.remove(place);
    };
    ASSERT_EQ(tell(tale, plain, gone), expected) << "seed " << seed;
  }
}

// Whether a tenant sends its tasks in one batch or in several makes no difference, as long as it
// never runs out in between. (Ties go to whoever came first, so the weights are such that there are
// none.)
TEST(DomainLaws, ABatchMayComeInParts) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const size_t keys = 2 + random.below(6);
    std::vector<float> weights;
    for (size_t key = 0; key < keys; ++key) {
      weights.push_back(1 + static_cast<float>(random.below(1'000'000)) / 1e5F);
    }
    QueueBench whole;
    QueueBench parts;
    for (size_t key = 0; key < keys; ++key) {
      whole.add_many(plain(key), 300, weights[key]);
      parts.add_many(plain(key), 30, weights[key]);
    }
    std::vector<int> left(keys, 270);
    std::vector<int> waiting(keys, 30);
    for (int step = 0; step < 250; ++step) {
      for (size_t key = 0; key < keys; ++key) {
        if (waiting[key] > 2 || left[key] == 0) continue;
        const int more = std::min(left[key], static_cast<int>(1 + random.below(40)));
        parts.add_many(plain(key), more, weights[key]);
        left[key] -= more;
        waiting[key] += more;
      }
      const auto started = parts.start();
      ASSERT_TRUE(started.has_value());
      ASSERT_EQ(started->place.key, whole.start()->place.key) << "seed " << seed;
      --waiting[std::stoul(started->place.key.substr(4))];
    }
  }
}

}  // namespace
}  // namespace fairlead::queue
