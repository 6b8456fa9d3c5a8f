#include "shard/runs.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "store/keys.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

constexpr ShardId kShard(3);

// Counts how often somebody searches.
class CountingStore final : public store::Store {
 public:
  absl::StatusOr<std::optional<std::string>> get(std::string_view key) const override {
    ++searches;
    return rows.get(key);
  }
  absl::Status scan(std::string_view begin, std::string_view end,
                    const Visit& visit) const override {
    ++searches;
    return rows.scan(begin, end, visit);
  }
  absl::Status scan_reverse(std::string_view begin, std::string_view end,
                            const Visit& visit) const override {
    ++searches;
    return rows.scan_reverse(begin, end, visit);
  }
  absl::Status write(const store::WriteBatch& batch) override { return rows.write(batch); }
  absl::Status sync() override { return rows.sync(); }

  store::MemoryStore rows;
  mutable int searches = 0;
};

class RunsTest : public testing::Test {
 protected:
  // Runs that were made one after the other, `apart` from each other.
  void make_runs(int count, DurationNs apart) {
    Random random(7);
    for (int i = 0; i < count; ++i) {
      keys_.push_back(uuid_to_bytes(make_uuid(random, 1'700'000'000 * kSecond + i * apart)));
      write_run(keys_.back(), absl::StrCat("w", i), absl::StrCat("\x0a\x01", i % 10));
    }
  }

  void write_run(const std::string& key, const std::string& workflow_id,
                 const std::string& events) {
    model::RunState state;
    state.set_status(model::RUNNING);
    state.set_workflow_id(workflow_id);
    state.set_has_no_pending(true);
    state.set_batches(1);
    store::WriteBatch batch;
    batch.put(store::keys::run(kShard, key), state.SerializeAsString());
    batch.put(store::keys::events(kShard, key, 1), events);
    ASSERT_TRUE(store_.write(batch).ok());
  }

  CountingStore store_;
  std::vector<std::string> keys_;
  RunCache runs_{kShard, &store_, 8 * 1024};  // room for a few
};

// A backlog of a million runs is worked off in the order in which they came. Searching for each of
// them would cost more than handing it out.
TEST_F(RunsTest, RunsThatFollowEachOtherAreReadTogether) {
  make_runs(320, kMillisecond);
  for (int i = 0; i < 320; ++i) {
    auto* entry = runs_.find(keys_[i]);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->run.state.workflow_id(), absl::StrCat("w", i));
  }
  EXPECT_LT(store_.searches, 320 / 10);
}

// Clients start many at once: those of one moment wait in another order than their ids have.
TEST_F(RunsTest, RunsInRoughOrderAreReadTogether) {
  make_runs(640, kMillisecond);
  Random random(11);
  std::vector<int> order;
  for (int i = 0; i < 640; ++i) order.push_back(i);
  for (int i = 0; i + 4 < 640; ++i) std::swap(order[i], order[i + random.below(4)]);
  for (const int i : order) {
    auto* entry = runs_.find(keys_[i]);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->run.state.workflow_id(), absl::StrCat("w", i));
  }
  EXPECT_LT(store_.searches, 640 / 5);
}

TEST_F(RunsTest, TheirEventsComeAlong) {
  make_runs(10, kMillisecond);
  runs_.find(keys_[0]);  // read alone: nothing was missing before it
  runs_.find(keys_[1]);
  const auto* entry = runs_.find(keys_[2]);
  ASSERT_EQ(entry->recent.size(), 1U);
  EXPECT_EQ(entry->recent[0].first, 1);
  EXPECT_EQ(entry->recent[0].second,
            "\x0a\x01"
            "2");
}

// A row that was read ahead is not what the run is once somebody has changed it.
TEST_F(RunsTest, AChangedRunIsReadAgain) {
  make_runs(40, kMillisecond);
  runs_.find(keys_[0]);
  runs_.find(keys_[1]);                // reads those behind it
  auto* entry = runs_.find(keys_[5]);  // taken from what was read
  ASSERT_NE(entry, nullptr);
  write_run(keys_[5], "changed", "\x0a\x01z");
  runs_.erase(entry);
  EXPECT_EQ(runs_.find(keys_[5])->run.state.workflow_id(), "changed");
}

// What is in memory may be ahead of its row by a step that is under way.
TEST_F(RunsTest, ARunInMemoryIsNotReadAhead) {
  make_runs(40, kMillisecond);
  auto* held = runs_.find(keys_[6]);
  held->is_locked = true;  // never evicted
  runs_.find(keys_[0]);
  runs_.find(keys_[1]);
  runs_.find(keys_[2]);
  write_run(keys_[6], "changed", "\x0a\x01z");
  held->is_locked = false;
  runs_.erase(held);
  EXPECT_EQ(runs_.find(keys_[6])->run.state.workflow_id(), "changed");
}

// Runs of different hours: those behind one of them are not wanted.
TEST_F(RunsTest, RunsFarFromEachOtherAreReadAlone) {
  make_runs(50, kMinute);
  for (int i = 0; i < 50; ++i) ASSERT_NE(runs_.find(keys_[i]), nullptr);
  EXPECT_EQ(store_.searches, 50);
}

// Every second one is wanted, then hardly any: reading on is given up.
TEST_F(RunsTest, AWrongGuessIsNotRepeated) {
  make_runs(4000, kMillisecond);
  for (int i = 0; i < 4000; i += 40) ASSERT_NE(runs_.find(keys_[i]), nullptr);
  EXPECT_LT(store_.searches, 110);
}

TEST_F(RunsTest, ARunThatIsNotThereIsNotFound) {
  make_runs(3, kMillisecond);
  Random random(9);
  EXPECT_NE(runs_.find(keys_[0]), nullptr);
  const auto missing = uuid_to_bytes(make_uuid(random, 1'700'000'000 * kSecond + kMillisecond));
  EXPECT_EQ(runs_.find(missing), nullptr);
  EXPECT_NE(runs_.find(keys_[2]), nullptr);
}

TEST_F(RunsTest, ClosedRunsLeaveMemoryFirst) {
  make_runs(20, kMinute);
  auto* closed = runs_.find(keys_[0]);
  runs_.find(keys_[1]);
  closed->run.state.set_status(model::COMPLETED);
  runs_.resize(closed);
  store_.searches = 0;
  for (int i = 2; i < 8; ++i) runs_.find(keys_[i]);  // one more than there is room for
  const int others = store_.searches;
  runs_.find(keys_[1]);
  EXPECT_EQ(store_.searches, others) << "the open run, used before the closed one, is still there";
  runs_.find(keys_[0]);
  EXPECT_EQ(store_.searches, others + 1);
}

}  // namespace
}  // namespace fairlead::shard
