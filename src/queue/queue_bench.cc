// What a decision costs, and what waiting costs in memory. No rows are read or written.

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cmath>

#include "base/random.h"
#include "queue/task_queue.h"

namespace fairlead::queue {
namespace {

constexpr TimeNs kNow = 1'700'000'000 * kSecond;

// Rows that always are what they were when the queue was told of them.
class NoRows : public Backlog {
 public:
  std::vector<Numbered> read(const std::string&, uint32_t, const std::string&, TaskSeq from,
                             size_t max) override {
    std::vector<Numbered> rows;
    for (size_t i = 0; i < max; ++i) {
      rows.push_back({TaskSeq(from.value() + i), Task{}});
    }
    return rows;
  }
};

std::string name_of(int64_t key) { return "tenant-" + std::to_string(key); }

Task task_of(float weight) {
  Task task;
  task.created_ns = kNow;
  task.weight = weight;
  return task;
}

void fill(TaskQueue& queue, int64_t keys, bool is_mixed) {
  Random random(1);
  for (int64_t key = 0; key < keys; ++key) {
    const float weight =
        is_mixed
            ? static_cast<float>(std::pow(10.0, static_cast<double>(random.below(6000)) / 1000 - 3))
            : 0;
    queue.add(queue.reserve(kDefaultLevel, name_of(key)), task_of(weight), kNow);
  }
}

// One task goes and its key gets another: pick, start, rows and a new task, with so many keys
// waiting.
void dispatch(benchmark::State& state, bool is_mixed) {
  NoRows rows;
  Settings settings;
  settings.tasks_in_memory_max = 1 << 22;
  settings.counts_running = false;
  TaskQueue queue(&rows, settings);
  fill(queue, state.range(0), is_mixed);
  int64_t round = 0;
  for (auto _ : state) {
    const auto picked = queue.pick(kNow);
    queue.started(picked->place, kNow);
    queue.add(queue.reserve(kDefaultLevel, picked->place.key), picked->task, kNow);
    if (++round % 8 == 0) benchmark::DoNotOptimize(queue.take_rows());
  }
  state.SetItemsProcessed(state.iterations());
}

void equal_weights(benchmark::State& state) { dispatch(state, false); }
void mixed_weights(benchmark::State& state) { dispatch(state, true); }
// A fixed number of rounds: the queue is filled once, and two runs do the same work.
constexpr int64_t kRounds = 1'000'000;
BENCHMARK(equal_weights)->Arg(1)->Arg(1'000)->Arg(100'000)->Arg(1'000'000)->Iterations(kRounds);
BENCHMARK(mixed_weights)->Arg(1'000)->Arg(100'000)->Arg(1'000'000)->Iterations(kRounds);

size_t bytes_in_use() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

// Bytes for a waiting key with one task, of which as many are in memory as by default.
void memory_of_keys(benchmark::State& state) {
  constexpr int64_t kKeys = 1'000'000;
  for (auto _ : state) {
    NoRows rows;
    const auto empty = bytes_in_use();
    TaskQueue queue(&rows, Settings{});
    fill(queue, kKeys, false);
    state.counters["bytes_per_key"] = static_cast<double>(bytes_in_use() - empty) / kKeys;
    state.counters["tasks_in_memory"] = static_cast<double>(queue.tasks_in_memory());
  }
}
BENCHMARK(memory_of_keys)->Iterations(1)->Unit(benchmark::kMillisecond);

// Bytes for each further task of a key, while it is in memory: tasks of runs of some length, one
// every 0.1 ms, of all keys in turn.
void memory_of_tasks(benchmark::State& state) {
  constexpr int64_t kKeys = 1'000;
  constexpr int64_t kTasks = 500;
  for (auto _ : state) {
    NoRows rows;
    Random random(1);
    TaskQueue queue(&rows, Settings{});
    fill(queue, kKeys, false);
    const auto before = bytes_in_use();
    for (int64_t i = 0; i < kKeys * kTasks; ++i) {
      Task task = task_of(0);
      for (char& byte : task.run) byte = static_cast<char>(random.next());
      task.created_ns = kNow + i * kMillisecond / 10;
      task.scheduled_id = static_cast<int64_t>(random.below(2'000));
      task.stamp = random.below(400);
      task.shard = ShardId(static_cast<uint16_t>(random.below(16)));
      queue.add(queue.reserve(kDefaultLevel, name_of(i % kKeys)), task, kNow);
    }
    const auto in_memory = static_cast<double>(queue.tasks_in_memory()) - kKeys;
    state.counters["bytes_per_task"] = static_cast<double>(bytes_in_use() - before) / in_memory;
    state.counters["tasks_in_memory"] = in_memory;
  }
}
BENCHMARK(memory_of_tasks)->Iterations(1)->Unit(benchmark::kMillisecond);

// Ten million tasks of a million keys: most of them are on disk only, and what is in memory has a
// ceiling.
void memory_of_a_large_backlog(benchmark::State& state) {
  constexpr int64_t kKeys = 1'000'000;
  constexpr int64_t kTasks = 10'000'000;
  constexpr size_t kBytesMax = size_t{512} << 20;
  for (auto _ : state) {
    NoRows rows;
    const auto empty = bytes_in_use();
    TaskQueue queue(&rows, Settings{});
    for (int64_t i = 0; i < kTasks; ++i) {
      queue.add(queue.reserve(kDefaultLevel, name_of(i % kKeys)), task_of(0), kNow);
    }
    const auto used = bytes_in_use() - empty;
    state.counters["mib"] = static_cast<double>(used) / (1 << 20);
    state.counters["tasks_in_memory"] = static_cast<double>(queue.tasks_in_memory());
    if (used > kBytesMax)
      state.SkipWithError("a backlog of ten million tasks is above its ceiling");
  }
}
BENCHMARK(memory_of_a_large_backlog)->Iterations(1)->Unit(benchmark::kMillisecond);

// A queue comes back: so many tasks over a hundred thousand keys.
void load(benchmark::State& state) {
  NoRows rows;
  for (auto _ : state) {
    TaskQueue queue(&rows, Settings{});
    for (int64_t i = 0; i < state.range(0); ++i) {
      const int64_t tasks_per_key = state.range(0) / 100'000;
      queue.load_task(kDefaultLevel, name_of(i / tasks_per_key),
                      {TaskSeq(static_cast<uint64_t>(i + 1)), task_of(0)});
    }
    queue.loaded(kNow);
    benchmark::DoNotOptimize(queue.size());
  }
}
BENCHMARK(load)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fairlead::queue
