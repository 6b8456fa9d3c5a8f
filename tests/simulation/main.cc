// Runs the simulation over a range of seeds. See README.md in this folder.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "CLI/CLI.hpp"
#include "simulation/simulation.h"

namespace {

using namespace fairlead;
using namespace fairlead::sim;

// Where an assertion of the server's own ends up: it has said what is wrong, this says how to see
// it again.
uint64_t running_seed = 0;
const char* program = "simulation";

void print_replay(std::FILE* out) {
  std::fprintf(out, "replay: %s --seed %llu --trace\n", program,
               static_cast<unsigned long long>(running_seed));
}

void on_abort(int) {
  std::printf("not ok - simulation: seed %llu aborted\n",
              static_cast<unsigned long long>(running_seed));
  print_replay(stdout);
  std::fflush(stdout);
}

struct Totals {
  uint64_t seeds = 0;
  uint64_t workflows = 0;
  uint64_t crashes = 0;
  uint64_t steps = 0;
  double days = 0;
  FairCount fair;
};

bool run_seed(const SimulationOptions& options, Probes* probes, Totals* totals) {
  running_seed = options.seed;
  const auto result = Simulation(options, probes).run();
  ++totals->seeds;
  totals->workflows += result.workflows;
  totals->crashes += result.crashes;
  totals->steps += result.steps;
  totals->days += static_cast<double>(result.time) / kDay;
  totals->fair.add(result.fair);
  if (result.failure.empty()) return true;
  std::printf("not ok - simulation: seed %llu: %s\n", static_cast<unsigned long long>(options.seed),
              result.failure.c_str());
  print_replay(stdout);
  return false;
}

// A seed is worth nothing if it does not bring back the same day.
bool check_replay(SimulationOptions options) {
  running_seed = options.seed;
  options.prints_trace = false;
  Probes probes;
  const auto first = Simulation(options, &probes).run();
  const auto second = Simulation(options, &probes).run();
  if (first.hash == second.hash && first.steps == second.steps) {
    std::printf("ok - simulation: seed %llu run twice is the same run (%016llx)\n",
                static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(first.hash));
    return true;
  }
  std::printf("not ok - simulation: seed %llu run twice differs: %llu steps, then %llu\n",
              static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(first.steps),
              static_cast<unsigned long long>(second.steps));
  return false;
}

// An auditor that never complains proves nothing either: each fault, put in on purpose, is found.
bool check_sabotage(Sabotage sabotage, const char* what) {
  Probes probes;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    running_seed = seed;
    SimulationOptions options;
    options.seed = seed;
    options.sabotage = sabotage;
    const auto result = Simulation(options, &probes).run();
    if (result.failure.empty()) continue;
    std::printf("ok - simulation: the auditor notices when %s (seed %llu: %s)\n", what,
                static_cast<unsigned long long>(seed), result.failure.c_str());
    return true;
  }
  std::printf("not ok - simulation: the auditor does not notice when %s\n", what);
  return false;
}

bool print_probes(const Probes& probes, bool all_must_be_hit) {
  bool all_hit = true;
  std::printf("# probes:");
  for (size_t i = 0; i < kProbeNames.size(); ++i) {
    const uint64_t hits = probes.hits(static_cast<Probe>(i));
    all_hit &= hits > 0;
    std::printf("%s %s %llu", i == 0 ? "" : ",", kProbeNames[i].data(),
                static_cast<unsigned long long>(hits));
  }
  std::printf("\n");
  if (all_hit || !all_must_be_hit) return true;
  for (size_t i = 0; i < kProbeNames.size(); ++i) {
    if (probes.hits(static_cast<Probe>(i)) > 0) continue;
    std::printf("not ok - simulation: no seed has reached: %s\n", kProbeNames[i].data());
  }
  return false;
}

// How much of the order of starts was judged. Nothing judged, nothing proven.
bool print_fairness(const FairCount& fair, bool all_must_be_judged) {
  const std::pair<const char*, uint64_t> figures[] = {
      {"starts", fair.starts},
      {"with other levels waiting", fair.against_level},
      {"with more of their key behind them", fair.in_line},
      {"past the order", fair.passes},
      {"stale", fair.stale},
      {"times other types told apart", fair.told_apart},
      {"held against a share", fair.share.picks},
      {"of these after a crash", fair.share.over_crashes},
      {"after a stale task", fair.share.after_stale},
      {"after a task past the order", fair.share.after_passes},
      {"long intervals", fair.share.intervals},
      {"keys in these", fair.share.keys},
  };
  bool all_judged = true;
  const char* separator = "# fairness judged: ";
  for (const auto& [what, count] : figures) {
    std::printf("%s%llu %s", separator, static_cast<unsigned long long>(count), what);
    separator = ", ";
    all_judged &= count > 0;
  }
  std::printf("\n");
  if (all_judged || !all_must_be_judged) return true;
  std::printf("not ok - simulation: some of the order of starts was never judged\n");
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  std::signal(SIGABRT, on_abort);
  CLI::App app{"A server's bad days on a virtual clock, replayed from seeds."};
  SimulationOptions options;
  uint64_t seeds = 300;
  uint64_t first_seed = 1;
  bool keeps_going = false;
  auto* one_seed = app.add_option("--seed", options.seed, "Run this seed only");
  app.add_option("--seeds", seeds, "How many seeds")->capture_default_str();
  app.add_option("--first-seed", first_seed, "The first of them")->capture_default_str();
  app.add_flag("--crashes,!--no-crashes", options.has_crashes, "Crash the server (default)");
  app.add_flag("--trace", options.prints_trace, "Print what happens");
  app.add_flag("--keep-going", keeps_going, "Do not stop at the first failing seed");
  CLI11_PARSE(app, argc, argv);

  Probes probes;
  Totals totals;
  if (one_seed->count() > 0) {
    const bool is_fine = run_seed(options, &probes, &totals);
    if (is_fine) {
      std::printf("ok - simulation: seed %llu, %llu workflows, %llu crashes, %llu steps\n",
                  static_cast<unsigned long long>(options.seed),
                  static_cast<unsigned long long>(totals.workflows),
                  static_cast<unsigned long long>(totals.crashes),
                  static_cast<unsigned long long>(totals.steps));
    }
    return is_fine ? 0 : 1;
  }

  bool is_fine = true;
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    options.seed = seed;
    is_fine &= run_seed(options, &probes, &totals);
    if (!is_fine && !keeps_going) return 1;
  }
  is_fine &= print_probes(probes, options.has_crashes && seeds >= 100);
  is_fine &= print_fairness(totals.fair, options.has_crashes && seeds >= 100);
  options.seed = first_seed;
  is_fine &= check_replay(options);
  if (options.has_crashes) {
    is_fine &= check_sabotage(Sabotage::kReplyBeforeDurable, "a reply comes before the sync");
    is_fine &= check_sabotage(Sabotage::kKeepTaskRows, "a started task keeps its row");
    is_fine &= check_sabotage(Sabotage::kForgetWakeups, "wake-up rows are not written");
    is_fine &= check_sabotage(Sabotage::kForgetLetters, "letters between runs are not written");
    is_fine &= check_sabotage(Sabotage::kSplitBatches, "a step is two batches");
    is_fine &= check_sabotage(Sabotage::kForgetRunning, "queues forget what workers have");
    is_fine &= check_sabotage(Sabotage::kForgetAccounts, "what keys have had is not written");
    is_fine &= check_sabotage(Sabotage::kForgetWeights, "weights do not count");
    is_fine &= check_sabotage(Sabotage::kForgetKeys, "queues are first come, first served");
    is_fine &= check_sabotage(Sabotage::kInvertLevels, "a less urgent task goes first");
  }
  std::printf("%s - simulation: %llu seeds, %llu workflows, %llu crashes, %llu steps, %.0f days\n",
              is_fine ? "ok" : "not ok", static_cast<unsigned long long>(totals.seeds),
              static_cast<unsigned long long>(totals.workflows),
              static_cast<unsigned long long>(totals.crashes),
              static_cast<unsigned long long>(totals.steps), totals.days);
  return is_fine ? 0 : 1;
}
