// Puts load on a server that speaks Durable Workflow's HTTP API and says what it did and what it
// cost.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "http/scenarios.h"
#include "load/transport.h"

namespace {

using namespace fairlead::http_load;

struct GlobalOptions {
  int port = 8233;
  int server_pid = 0;
  int64_t timeout_s = 300;
  bool is_json = false;
};

template <typename Value>
void add_count(CLI::App* app, const char* name, Value* value, const char* help, int64_t max) {
  app->add_option(name, *value, help)->check(CLI::Range(int64_t{1}, max))->capture_default_str();
}

CLI::App* add_workflows(CLI::App* app, WorkflowsOptions* options) {
  auto* sub = app->add_subcommand("workflows", "workflows with one activity, in a closed loop");
  add_count(sub, "--count", &options->count, "workflows to run", 10'000'000);
  add_count(sub, "--concurrency", &options->concurrency, "workflows in flight", 4000);
  add_count(sub, "--warmup", &options->warmup, "workflows before the measurement", 1'000'000);
  add_count(sub, "--pollers", &options->pollers, "polls of each kind", 1000);
  return sub;
}

CLI::App* add_reads(CLI::App* app, ReadsOptions* options) {
  auto* sub = app->add_subcommand("reads", "the same question again and again");
  sub->add_option("--what", options->what, "describe, history or queue")
      ->check(CLI::IsMember({"describe", "history", "queue"}));
  add_count(sub, "--count", &options->count, "questions", 10'000'000);
  add_count(sub, "--concurrency", &options->concurrency, "questions in flight", 4000);
  return sub;
}

CLI::App* add_polls(CLI::App* app, PollsOptions* options) {
  auto* sub =
      app->add_subcommand("polls", "parked polls: what they cost, and that one task wakes one");
  add_count(sub, "--count", &options->count, "polls to park", 20'000);
  add_count(sub, "--seconds", &options->seconds, "how long to watch them", 45);
  return sub;
}

CLI::App* add_storm(CLI::App* app, StormOptions* options) {
  auto* sub = app->add_subcommand(
      "storm", "workers that poll the capped queue `storm`, and what others notice of them");
  add_count(sub, "--workers", &options->workers, "who poll the capped queue", 10'000);
  add_count(sub, "--backlog", &options->backlog, "tasks that wait in it", 1'000'000);
  add_count(sub, "--rounds", &options->rounds, "with and without them", 100);
  add_count(sub, "--seconds", &options->seconds, "of a round", 600);
  add_count(sub, "--queues", &options->queues, "other queues", 1000);
  add_count(sub, "--starts", &options->starts_per_s, "workflows a second on the others", 10'000);
  add_count(sub, "--cap", &options->cap, "fail if its workers ever have more tasks than this",
            1'000'000);
  sub->add_flag("--drain", options->drains, "fail unless all tasks that wait in it run, once");
  return sub;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Load for servers that speak Durable Workflow's HTTP API", "fairlead_http_load"};
  app.require_subcommand(1);
  app.fallthrough();
  GlobalOptions global;
  WorkflowsOptions workflows;
  ReadsOptions reads;
  PollsOptions polls;
  StormOptions storm;
  app.add_option("--port", global.port, "the server's HTTP port on this machine")
      ->capture_default_str();
  app.add_option("--server-pid", global.server_pid,
                 "the server's process, to read its CPU time and memory");
  app.add_option("--timeout", global.timeout_s, "seconds after which the run has failed")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_flag("--json", global.is_json, "print one JSON object instead of lines");
  CLI::App* const run_as_workflows = add_workflows(&app, &workflows);
  CLI::App* const run_as_reads = add_reads(&app, &reads);
  CLI::App* const run_as_polls = add_polls(&app, &polls);
  add_storm(&app, &storm);
  CLI11_PARSE(app, argc, argv);

  Client client("127.0.0.1", global.port);
  Bench bench{&client,
              global.port,
              global.server_pid,
              global.timeout_s * fairlead::kSecond,
              "bench-" + std::to_string(getpid()),
              {}};
  bench.report.text("scenario", app.get_subcommands().front()->get_name());
  const bool is_complete = run_as_workflows->parsed() ? run_workflows(&bench, workflows)
                           : run_as_reads->parsed()   ? run_reads(&bench, reads)
                           : run_as_polls->parsed()   ? run_polls(&bench, polls)
                                                      : run_storm(&bench, storm);
  bench.report.count("errors", client.errors());
  if (client.errors() > 0) bench.report.text("first_error", client.first_error());
  bench.report.text("complete", is_complete ? "yes" : "no");
  bench.report.print(global.is_json);
  return is_complete ? 0 : 1;
}
