#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/commands.h"
#include "server/files.h"
#include "server/simulate_text.h"
#include "simulate/plan.h"
#include "simulate/plot.h"
#include "simulate/simulation.h"

namespace fairlead::server {

namespace {

struct Flags {
  std::string file;
  std::string picture;
  std::optional<uint64_t> seed;
  bool is_json = false;
};

int complain(const std::string& what, int code) {
  std::fprintf(stderr, "fairlead: %s\n", what.c_str());
  return code;
}

int run_simulation(const Flags& flags) {
  const auto text = read_file(flags.file);
  if (!text.ok()) return complain(std::string(text.status().message()), 2);
  auto plan = simulate::Plan::parse(flags.file, *text);
  if (!plan.ok()) return complain(std::string(plan.status().message()), 2);
  if (flags.seed.has_value()) plan->seed = *flags.seed;
  const auto result = simulate::simulate(*plan);
  if (!flags.picture.empty()) {
    std::ofstream picture(flags.picture);
    picture << simulate::plot(*plan, result);
    picture.close();
    if (!picture) return complain(absl::StrCat(flags.picture, ": cannot be written"), 1);
  }
  std::fputs(
      (flags.is_json ? simulation_json(*plan, result) : simulation_text(*plan, result)).c_str(),
      stdout);
  return 0;
}

}  // namespace

void add_simulate_command(CLI::App* app, CommandRun* run) {
  auto* command = app->add_subcommand(
      "simulate", "Play a task queue with invented tenants and workers, and show who gets what");
  command->footer(
      "The file says who sends tasks, who works on them and under which rules; docs/simulations "
      "has\n"
      "examples. The queue is the real one, time is not: an hour takes a moment, and the same "
      "file\n"
      "always gives the same result.\n\n"
      "FURTHEST  the largest distance of a key from its ideal share at any moment, in tasks\n"
      "WORKERS   how many it kept busy on average\n"
      "LONGEST   the longest wait, also of tasks that still wait at the end\n\n"
      "The second table has the tasks handed out in each tenth of the time.");
  auto flags = std::make_shared<Flags>();
  command->add_option("file", flags->file, "What to play, as TOML")->required()->type_name("FILE");
  command
      ->add_option("--plot", flags->picture, "Draw dispatched tasks over time into this SVG file")
      ->type_name("FILE");
  command->add_option("--seed", flags->seed, "Another seed than the file's, for what is random");
  command->add_flag("--json", flags->is_json, "JSON with every key instead of a table");
  command->callback([flags, run] { *run = [flags] { return run_simulation(*flags); }; });
}

}  // namespace fairlead::server
