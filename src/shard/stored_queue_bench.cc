// A queue and its rows in the real store: how long it takes to come back after a restart, and
// whether a long backlog is handed out as fast as a short one.

#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "shard/stored_queue.h"
#include "store/keys.h"
#include "store/rocksdb_store.h"

namespace fairlead::shard {
namespace {

constexpr TimeNs kNow = 1'700'000'000 * kSecond;
const ShardId kShard(3);
const QueueName kQueue{NamespaceNum(1), model::ACTIVITY_TASK, "orders"};
const QueueName kOtherQueue{NamespaceNum(1), model::ACTIVITY_TASK, "invoices"};

class Folder {
 public:
  Folder() { path_ = ::mkdtemp(name_.data()); }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::unique_ptr<store::RocksDbStore> open() const {
    return store::open_rocksdb(path_ + "/store", {}).value();
  }

 private:
  // Beside the benchmark and not in /tmp, which may be memory.
  std::string name_ = "queue_bench_XXXXXX";
  std::string path_;
};

// Tasks of all keys in turn, as if every tenant sent one at a time.
void fill(store::Store& store, int64_t tasks, int64_t keys, const QueueName& queue = kQueue) {
  store::WriteBatch batch;
  for (int64_t i = 0; i < tasks; ++i) {
    model::TaskRow row;
    row.set_kind(model::ACTIVITY_TASK);
    row.set_run(std::string(16, static_cast<char>(i)));
    row.set_scheduled_id(i);
    row.set_created_ns(kNow);
    const std::string key = "tenant-" + std::to_string(i % keys);
    row.mutable_priority()->set_fairness_key(key);
    batch.put(store::keys::task(kShard, queue, 3, key, TaskSeq(static_cast<uint64_t>(i + 1))),
              row.SerializeAsString());
    if (batch.ops().size() < 1000) continue;
    benchmark::DoNotOptimize(store.write(batch));
    batch = {};
  }
  benchmark::DoNotOptimize(store.write(batch));
  benchmark::DoNotOptimize(store.sync());
}

void open_backlog(benchmark::State& state) {
  const Folder folder;
  fill(*folder.open(), state.range(0), state.range(1));
  for (auto _ : state) {
    const auto store = folder.open();
    const StoredQueue queue(store.get(), kShard, kQueue, {}, kNow);
    benchmark::DoNotOptimize(queue.tasks().size());
  }
}
BENCHMARK(open_backlog)
    ->Args({1'000'000, 100'000})
    ->Iterations(3)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Starts from a backlog: pick, the rows of the start, one write each. The first ten thousand after
// a restart, or so many that what was in memory at first is gone for most keys.
void drain(benchmark::State& state) {
  const int64_t starts = state.range(3);
  for (auto _ : state) {
    state.PauseTiming();
    const Folder folder;
    auto store = folder.open();
    // The rows of others, where a full store is to be told from a long backlog.
    fill(*store, state.range(2), state.range(1), kOtherQueue);
    fill(*store, state.range(0), state.range(1));
    auto queue =
        std::make_unique<StoredQueue>(store.get(), kShard, kQueue, queue::Settings{}, kNow);
    const auto start = [&] {
      const auto picked = queue->tasks().pick(kNow);
      store::WriteBatch batch;
      batch.erase(store::keys::task(kShard, kQueue, 3, picked->place.key, picked->place.seq));
      queue->tasks().started(picked->place, kNow);
      queue->add_rows(&batch);
      benchmark::DoNotOptimize(store->write(batch));
      return batch.ops().size();
    };
    // The first start writes an account for everyone who has come: a cost of coming, not of going.
    state.counters["rows_of_first"] = static_cast<double>(start());
    state.ResumeTiming();
    for (int64_t i = 1; i < starts; ++i) start();
    state.PauseTiming();
    queue.reset();
    store.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * starts);
}
BENCHMARK(drain)
    ->ArgNames({"tasks", "keys", "others", "starts"})
    ->Args({10'000, 1, 0, 10'000})
    ->Args({1'000'000, 1, 0, 10'000})
    ->Args({1'000'000, 1, 0, 300'000})
    ->Args({10'000, 1'000, 0, 10'000})
    ->Args({10'000, 1'000, 990'000, 10'000})
    ->Args({1'000'000, 1'000, 0, 10'000})
    ->Args({1'000'000, 1'000, 0, 300'000})
    ->Args({1'000'000, 100'000, 0, 10'000})
    ->Args({1'000'000, 100'000, 0, 300'000})
    ->Iterations(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fairlead::shard
