// What a commit costs: the CPU of a batch, and the wait for the disk shared by a group.

#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "base/random.h"
#include "store/keys.h"
#include "store/rocksdb_store.h"

namespace fairlead::store {
namespace {

class Folder {
 public:
  Folder() { path_ = ::mkdtemp(name_.data()); }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::unique_ptr<RocksDbStore> open() const { return open_rocksdb(path_ + "/store", {}).value(); }

 private:
  // Beside the benchmark and not in /tmp, which may be memory.
  std::string name_ = "store_bench_XXXXXX";
  std::string path_;
};

// A step's batch as the engine writes it: one value for each table it touches.
WriteBatch make_batch(int64_t puts, Random& random, int64_t step) {
  const ShardId shard(static_cast<uint16_t>(random.below(64)));
  const std::string run = uuid_to_bytes(make_uuid(random, step * kMillisecond));
  WriteBatch batch;
  for (int64_t i = 0; i < puts; ++i) {
    batch.put(keys::events(shard, run, i + 1), std::string(300, static_cast<char>('a' + i)));
  }
  return batch;
}

// Writes only; a sync every 64 batches keeps the log moving as it does in life, and is not timed.
void BM_Write(benchmark::State& state) {
  const Folder folder;
  const auto store = folder.open();
  Random random(1);
  int64_t step = 0;
  for (auto _ : state) {
    const WriteBatch batch = make_batch(state.range(0), random, step);
    benchmark::DoNotOptimize(store->write(batch));
    if (++step % 64 != 0) continue;
    state.PauseTiming();
    benchmark::DoNotOptimize(store->sync());
    state.ResumeTiming();
  }
  state.SetItemsProcessed(step);
}
BENCHMARK(BM_Write)->Arg(1)->Arg(2)->Arg(5);

void BM_MakeBatchOnly(benchmark::State& state) {
  Random random(1);
  int64_t step = 0;
  for (auto _ : state) benchmark::DoNotOptimize(make_batch(state.range(0), random, ++step));
}
BENCHMARK(BM_MakeBatchOnly)->Arg(1)->Arg(2)->Arg(5);

// One iteration is a group: its batches of 2 puts each, then one sync for all of them.
void BM_GroupCommit(benchmark::State& state) {
  const Folder folder;
  const auto store = folder.open();
  Random random(1);
  int64_t step = 0;
  for (auto _ : state) {
    for (int64_t i = 0; i < state.range(0); ++i) {
      benchmark::DoNotOptimize(store->write(make_batch(2, random, ++step)));
    }
    benchmark::DoNotOptimize(store->sync());
  }
  state.SetItemsProcessed(step);
}
BENCHMARK(BM_GroupCommit)->Arg(1)->Arg(16)->Arg(64)->UseRealTime()->MeasureProcessCPUTime();

void BM_Get(benchmark::State& state) {
  const Folder folder;
  const auto store = folder.open();
  Random random(1);
  std::vector<std::string> written;
  for (int i = 0; i < 10'000; ++i) {
    WriteBatch batch = make_batch(1, random, i);
    written.push_back(batch.ops().front().key);
    benchmark::DoNotOptimize(store->write(batch));
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(store->get(written[random.below(written.size())]));
  }
}
BENCHMARK(BM_Get);

}  // namespace
}  // namespace fairlead::store
