// What the question "may it go" costs inside a dispatch, and what a queue costs in memory.

#include <benchmark/benchmark.h>

#include <string>

#include "admission/ledger.h"

namespace fairlead::admission {
namespace {

constexpr TimeNs kNow = 28'333'333 * kMinute;

std::shared_ptr<const Policies> policies(int64_t max, Span span, bool is_leases_only) {
  Settings settings;
  auto& overrides = settings.overrides["*"][at(TaskKind::kActivity)];
  for (const Budget budget : kAllBudgets) {
    if (max == 0 || (is_leases_only && is_rate(budget))) continue;
    overrides.max[at(budget)].emplace(max);
    overrides.span[at(budget)].emplace(span);
  }
  overrides.budget_group.emplace("group");
  return std::make_shared<const Policies>(std::move(settings));
}

// One task is granted and ends.
void pass(benchmark::State& state, int64_t max, Span span, bool is_leases_only) {
  Ledger ledger(policies(max, span, is_leases_only));
  ledger.restored(kNow);
  auto* const queue = ledger.open({"default", "payments", TaskKind::kActivity});
  TimeNs now = kNow;
  for (auto _ : state) {
    now += kMillisecond;
    const auto decision = ledger.admit(queue, now);
    benchmark::DoNotOptimize(ledger.start(std::get<Ledger::Grant>(decision)));
    ledger.release(queue, now);
  }
}
BENCHMARK_CAPTURE(pass, no_cap, 0, Span::kFixed, false);
BENCHMARK_CAPTURE(pass, lease_caps, 1000, Span::kFixed, true);
BENCHMARK_CAPTURE(pass, all_caps_fixed, 1'000'000, Span::kFixed, false);
BENCHMARK_CAPTURE(pass, all_caps_sliding, 1'000'000, Span::kSliding, false);

// The answer is no, with this many other queues waiting for the same budget.
void refused(benchmark::State& state) {
  Ledger ledger(policies(1, Span::kFixed, true));
  ledger.restored(kNow);
  auto* const busy = ledger.open({"default", "busy", TaskKind::kActivity});
  benchmark::DoNotOptimize(ledger.admit(busy, kNow));
  Ledger::Queue* queue = nullptr;
  for (int64_t i = 0; i < state.range(0); ++i) {
    queue = ledger.open({"default", "queue-" + std::to_string(i), TaskKind::kActivity});
    benchmark::DoNotOptimize(ledger.admit(queue, kNow));
  }
  for (auto _ : state) benchmark::DoNotOptimize(ledger.admit(queue, kNow));
}
BENCHMARK(refused)->Arg(1)->Arg(1000);

// What a reload asks for every queue.
void resolve(benchmark::State& state) {
  Settings settings;
  for (int i = 0; i < 1000; ++i) {
    settings.overrides["queue-" + std::to_string(i)][0].max[0].emplace(i + 1);
  }
  const Policies all(std::move(settings));
  for (auto _ : state) {
    benchmark::DoNotOptimize(all.resolve("default", "queue-500", TaskKind::kWorkflow));
  }
}
BENCHMARK(resolve);

}  // namespace
}  // namespace fairlead::admission
