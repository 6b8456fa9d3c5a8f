// A queue that lives for a very long time. A small part of that in every run of the tests;
// FAIRLEAD_SOAK_DISPATCHES=1000000000 is a long day's worth of a busy server.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

#include "queue/domain.h"

namespace fairlead::queue {
namespace {

uint64_t dispatches() {
  const char* asked = std::getenv("FAIRLEAD_SOAK_DISPATCHES");
  return asked == nullptr ? 2'000'000 : std::stoull(asked);
}

// Tags have 64 bits and begin just below the last of them, so that they wrap around at once.
// Weights that divide a task evenly are exact: one task is the bound at every prefix, however long
// the queue lives.
TEST(Soak, EveryPrefixOfALongLifeIsWithinOneTaskOfItsShare) {
  constexpr std::array<int64_t, 6> kWeights = {8, 4, 2, 1, 1, 16};
  constexpr int64_t kSum = 32;
  Domain domain;
  std::array<int64_t, kWeights.size()> got{};
  uint64_t head = 0;
  for (const int64_t weight : kWeights) {
    const Member member = domain.add();
    const auto exact = Weight::of(static_cast<double>(weight));
    domain.restore(member, {~uint64_t{0} - 1000, exact.fixed(), false}, ++head);
  }
  domain.restored();
  const uint64_t total = dispatches();
  for (uint64_t n = 1; n <= total; ++n) {
    const auto picked = domain.pick();
    ASSERT_TRUE(picked.has_value());
    const auto weight = Weight::of(static_cast<double>(kWeights[*picked]));
    domain.next(*picked, weight, ++head);
    domain.commit(*picked);
    ++got[*picked];
    for (size_t key = 0; key < kWeights.size(); ++key) {
      const int64_t behind = kWeights[key] * static_cast<int64_t>(n) - kSum * got[key];
      ASSERT_LE(std::abs(behind), kSum) << "key " << key << " after dispatch " << n;
    }
  }
  RecordProperty("dispatches", std::to_string(total));
}

}  // namespace
}  // namespace fairlead::queue
