#include "shard/commit_log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

// A store that counts what a sync has covered, and can be made to fail.
class CountingStore final : public store::Store {
 public:
  absl::StatusOr<std::optional<std::string>> get(std::string_view) const override {
    return std::nullopt;
  }
  absl::Status scan(std::string_view, std::string_view, const Visit&) const override {
    return absl::OkStatus();
  }
  absl::Status scan_reverse(std::string_view, std::string_view, const Visit&) const override {
    return absl::OkStatus();
  }
  absl::Status write(const store::WriteBatch&) override {
    ++written;
    return absl::OkStatus();
  }
  absl::Status sync() override {
    const uint64_t covered = written;
    if (fails) return absl::ResourceExhaustedError("no space left");
    synced = covered;
    return absl::OkStatus();
  }

  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> synced{0};
  std::atomic<bool> fails{false};
};

store::WriteBatch one_put() {
  store::WriteBatch batch;
  batch.put("key", "value");
  return batch;
}

// The promise that everything rests on: nobody hears of a write before it is on disk.
TEST(CommitLog, AnEffectRunsOnlyWhenEveryWriteBeforeItIsSynced) {
  CountingStore store;
  std::atomic<int> broken{0};
  std::atomic<int> told{0};
  {
    ThreadedCommitLog log(&store, [](const absl::Status&) {});
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i) {
      writers.emplace_back([&] {
        for (int n = 0; n < 2000; ++n) {
          log.write(one_put());
          const uint64_t mine = store.written;
          // Others may have written since, so `mine` is a bound from above; the count before our
          // own write would be one from below. Ours is among the first `mine`.
          log.after_durable([&, mine] {
            if (store.synced + 4 < mine) ++broken;
            ++told;
          });
        }
      });
    }
    for (auto& writer : writers) writer.join();
  }
  EXPECT_EQ(told, 8000) << "and everybody hears of it, at the latest when the log closes";
  EXPECT_EQ(broken, 0);
}

TEST(CommitLog, WithNothingToSyncAnEffectRunsAtOnce) {
  CountingStore store;
  ThreadedCommitLog log(&store, [](const absl::Status&) {});
  bool ran = false;
  log.after_durable([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(CommitLog, AfterAFailureNobodyIsToldAnything) {
  CountingStore store;
  store.fails = true;
  std::promise<absl::Status> failed;
  std::atomic<bool> told{false};
  {
    ThreadedCommitLog log(&store, [&](const absl::Status& status) { failed.set_value(status); });
    log.write(one_put());
    log.after_durable([&] { told = true; });
    EXPECT_EQ(failed.get_future().get().code(), absl::StatusCode::kResourceExhausted);
    log.after_durable([&] { told = true; });
  }
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace fairlead::shard
