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
  std::vector<Numbered> read(uint32_t, const std::string&, TaskSeq from, size_t max) override {
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

// Bytes for a waiting key with one task, and for each further task of it.
void memory(benchmark::State& state) {
  constexpr int64_t kKeys = 1'000'000;
  double per_key = 0;
  double per_task = 0;
  for (auto _ : state) {
    NoRows rows;
    const auto empty = mallinfo2().uordblks + mallinfo2().hblkhd;
    TaskQueue queue(&rows, Settings{});
    fill(queue, kKeys, false);
    const auto keys = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int more = 0; more < 4; ++more) fill(queue, kKeys, false);
    const auto tasks = mallinfo2().uordblks + mallinfo2().hblkhd;
    per_key = static_cast<double>(keys - empty) / kKeys;
    per_task = static_cast<double>(tasks - keys) / (4 * kKeys);
  }
  state.counters["bytes_per_key"] = per_key;
  state.counters["bytes_per_task"] = per_task;
}
BENCHMARK(memory)->Iterations(1)->Unit(benchmark::kMillisecond);

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
