// A queue and its rows in the real store: how long it takes to come back after a restart, and
// whether a long backlog is handed out as fast as a short one. With FAIRLEAD_SCALE_TASKS=10000000
// and FAIRLEAD_SCALE_KEYS=1000000 also a backlog of that size, which takes minutes and gigabytes of
// disk.

#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

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

// ---- one very long backlog

int64_t asked(const char* variable, int64_t otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::stoll(value);
}

// From /proc/self/status, in MiB.
double memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size())) / 1024;
  }
  return 0;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Opens the queue and starts the first million of its tasks, as a server would: what the queue
// costs in memory, how long it takes to come back, and how long a decision takes.
void scale(benchmark::State& state) {
  const int64_t tasks = asked("FAIRLEAD_SCALE_TASKS", 0);
  const int64_t keys = asked("FAIRLEAD_SCALE_KEYS", 1'000'000);
  const int64_t starts = std::min<int64_t>(tasks - 1, 1'000'000);
  const Folder folder;
  fill(*folder.open(), tasks, keys);
  for (auto _ : state) {
    const auto store = folder.open();
    const double before = memory("VmRSS:");
    auto begin = std::chrono::steady_clock::now();
    StoredQueue queue(store.get(), kShard, kQueue, {}, kNow);
    state.counters["open_s"] = seconds_since(begin);
    state.counters["opened_MiB"] = memory("VmRSS:") - before;
    std::vector<uint32_t> picks_ns;
    picks_ns.reserve(static_cast<size_t>(starts) + 1);
    const auto start = [&] {
      const auto picking = std::chrono::steady_clock::now();
      const auto picked = queue.tasks().pick(kNow);
      picks_ns.push_back(static_cast<uint32_t>(seconds_since(picking) * 1e9));
      store::WriteBatch batch;
      batch.erase(store::keys::task(kShard, kQueue, 3, picked->place.key, picked->place.seq));
      queue.tasks().started(picked->place, kNow);
      queue.add_rows(&batch);
      benchmark::DoNotOptimize(store->write(batch));
    };
    begin = std::chrono::steady_clock::now();
    start();  // with an account for every key
    state.counters["first_start_s"] = seconds_since(begin);
    begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < starts; ++i) start();
    state.counters["starts_per_s"] = static_cast<double>(starts) / seconds_since(begin);
    double sum = 0;
    for (const uint32_t one : picks_ns) sum += one;
    const auto at = [&](double part) {
      const auto place =
          static_cast<std::ptrdiff_t>(part * static_cast<double>(picks_ns.size() - 1));
      std::nth_element(picks_ns.begin(), picks_ns.begin() + place, picks_ns.end());
      return static_cast<double>(picks_ns[static_cast<size_t>(place)]) / 1000;
    };
    state.counters["picks_per_s"] = 1e9 * static_cast<double>(picks_ns.size()) / sum;
    state.counters["pick_p50_us"] = at(0.5);
    state.counters["pick_p99_us"] = at(0.99);
    state.counters["pick_max_us"] = at(1);
    state.counters["tasks_in_memory"] = static_cast<double>(queue.tasks().tasks_in_memory());
    state.counters["store_MiB"] = before;
    state.counters["peak_MiB"] = memory("VmHWM:");
  }
}

[[maybe_unused]] const bool is_scale_asked_for = [] {
  if (asked("FAIRLEAD_SCALE_TASKS", 0) < 2) return false;
  benchmark::RegisterBenchmark("scale", scale)
      ->Iterations(1)
      ->UseRealTime()
      ->Unit(benchmark::kSecond);
  return true;
}();

}  // namespace
}  // namespace fairlead::shard
