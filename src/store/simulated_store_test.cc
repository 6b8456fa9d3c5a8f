#include "store/simulated_store.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "store/store_testing.h"

namespace fairlead::store {
namespace {

// Every batch raises "last" and adds a row of its own, so the rows tell which batches survived.
WriteBatch numbered(uint64_t number) {
  WriteBatch batch;
  batch.put(absl::StrCat("row ", absl::Dec(number, absl::kZeroPad6)),
            std::string(number % 50, 'x'));
  batch.put("last", absl::StrCat(number));
  return batch;
}

uint64_t survivors(const Store& store) {
  const auto last = store.get("last");
  const uint64_t number = last->has_value() ? std::stoull(**last) : 0;
  const Rows found = rows(store, "row ", "row~");
  EXPECT_EQ(found.size(), number) << "a batch before the last one is missing, or torn";
  for (uint64_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].first, absl::StrCat("row ", absl::Dec(i + 1, absl::kZeroPad6)));
    EXPECT_EQ(found[i].second.size(), (i + 1) % 50);
  }
  return number;
}

// The promise of store.h, in a year of power failures: a prefix survives, and it holds all that was
// synced. The simulator is only worth its name if it also visits the extremes.
TEST(SimulatedStore, ACrashLeavesAPrefixThatHoldsEverythingSynced) {
  int lost_none = 0, lost_some = 0, lost_all = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    SimulatedStore store;
    uint64_t written = 0, synced = 0;
    for (int life = 0; life < 5; ++life) {
      for (uint64_t steps = random.below(20); steps > 0; --steps) {
        ASSERT_OK(store.write(numbered(++written)));
        if (random.chance(0.1)) {
          ASSERT_OK(store.sync());
          synced = written;
        }
      }
      ASSERT_EQ(survivors(store), written) << "seed " << seed;
      ASSERT_EQ(store.unsynced_batches(), written - synced);
      store.crash(random);
      const uint64_t left = survivors(store);
      ASSERT_GE(left, synced) << "seed " << seed;
      ASSERT_LE(left, written) << "seed " << seed;
      if (written > synced + 1) {
        ++(left == written ? lost_none : left == synced ? lost_all : lost_some);
      }
      written = synced = left;
    }
  }
  EXPECT_GT(lost_none, 20);
  EXPECT_GT(lost_some, 20);
  EXPECT_GT(lost_all, 20);
}

TEST(SimulatedStore, ASeedReplaysTheSameCrash) {
  const auto outcome = [](uint64_t seed) {
    Random random(seed);
    SimulatedStore store;
    for (uint64_t i = 1; i <= 100; ++i) EXPECT_TRUE(store.write(numbered(i)).ok());
    store.crash(random);
    return survivors(store);
  };
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(outcome(seed), outcome(seed));
}

TEST(SimulatedStore, AFailedSyncIsFinal) {
  SimulatedStore store;
  ASSERT_OK(store.write(numbered(1)));
  ASSERT_OK(store.sync());
  ASSERT_OK(store.write(numbered(2)));
  store.fail_next_sync();
  const absl::Status first = store.sync();
  EXPECT_EQ(first.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store.sync(), first);
  EXPECT_EQ(store.write(numbered(3)), first);
  EXPECT_EQ(store.get("last").status(), first);
  EXPECT_EQ(store.scan("a", "b", nullptr), first);
  EXPECT_EQ(store.scan_reverse("a", "b", nullptr), first);

  Random random(1);
  store.crash(random);
  EXPECT_GE(survivors(store), 1u);
  ASSERT_OK(store.sync());
}

// A write that reports a failure may be on the disk all the same: nobody may rely on either.
TEST(SimulatedStore, AFailedWriteMayOrMayNotSurvive) {
  bool survived = false, vanished = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    SimulatedStore store;
    store.fail_after(1);
    ASSERT_OK(store.write(numbered(1)));
    EXPECT_FALSE(store.write(numbered(2)).ok());
    EXPECT_FALSE(store.sync().ok());
    store.crash(random);
    (survivors(store) == 2 ? survived : vanished) = true;
  }
  EXPECT_TRUE(survived);
  EXPECT_TRUE(vanished);
}

}  // namespace
}  // namespace fairlead::store
